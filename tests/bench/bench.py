"""Ratios against the official Python SDK, measured side by side in one run (`make bench`).

1. In process: the bytes of a tools/call of 2026-07-28 in, the bytes of the answer out.
2. Start: from the start of a server process to its first answer on stdio, and its peak memory.

Processor time is what counts: on a shared machine elapsed time also measures the neighbours.  The peer is installed
from PyPI into an environment of its own on first use.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEER = HERE / ".peer"
PIN = "mcp==2.3.0"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
CALL = {"name": "add", "arguments": {"a": 2, "b": 5}, "_meta": META}
DISCOVER = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": META}}

OURS = """
import asyncio, json, sys, time
from our_server import app
body = sys.stdin.buffer.read()

async def main():
    async def burst(count):
        began = time.process_time()
        for _ in range(count):
            reply = await app.server.handle(body)
        return (time.process_time() - began) / count, reply
    await burst(2000)
    cost, reply = await burst(20000)
    print(json.dumps({"us": cost * 1e6, "reply": json.loads(reply)}))

asyncio.run(main())
"""
THEIRS = """
import asyncio, json, sys, time
from peer_server import server
body = sys.stdin.buffer.read()
HEADERS = [(b"host", b"127.0.0.1:8000"), (b"content-type", b"application/json"),
           (b"accept", b"application/json, text/event-stream"), (b"mcp-protocol-version", b"2026-07-28"),
           (b"mcp-method", b"tools/call"), (b"mcp-name", b"add"), (b"content-length", str(len(body)).encode())]

async def main():
    app = server.streamable_http_app(json_response=True)

    async def call():
        out = []
        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}
        async def send(message):
            out.append(message.get("body", b""))
        await app({"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
                   "scheme": "http", "path": "/mcp", "raw_path": b"/mcp", "query_string": b"", "root_path": "",
                   "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8000), "state": {}, "headers": HEADERS},
                  receive, send)
        return b"".join(out)

    async def burst(count):
        began = time.process_time()
        for _ in range(count):
            reply = await call()
        return (time.process_time() - began) / count, reply

    async with app.router.lifespan_context(app):
        await burst(100)
        cost, reply = await burst(500)
    print(json.dumps({"us": cost * 1e6, "reply": json.loads(reply)}))

asyncio.run(main())
"""


def peer_python() -> str:
    """The interpreter of the peer's environment, made when it is not there."""
    python = PEER / "bin" / "python"
    if not python.exists():
        print(f"installing {PIN} into {PEER.relative_to(Path.cwd()) if PEER.is_relative_to(Path.cwd()) else PEER} ...")
        venv.create(PEER, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", PIN], check=True)
    return str(python)


def in_process(python: str, script: str) -> float:
    """Microseconds of processor time for one call, its answer checked."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALL}).encode()
    done = subprocess.run([python, "-c", script], input=body, capture_output=True, cwd=HERE, check=True)
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["reply"]["result"]["structuredContent"] == {"result": 7}, told
    return float(told["us"])


def start(python: str, server: str) -> tuple[float, float]:
    """Milliseconds of processor time to the first answer and the end, and peak memory in MB."""
    process = subprocess.Popen(
        [python, str(HERE / server)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(DISCOVER).encode() + b"\n")
    process.stdin.flush()
    reply = json.loads(process.stdout.readline())
    assert "2026-07-28" in reply["result"]["supportedVersions"], reply
    process.stdin.close()
    process.stdout.close()
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return (usage.ru_utime + usage.ru_stime) * 1000, usage.ru_maxrss / 1024


def rounds(count: int, ours: Callable[[], float], theirs: Callable[[], float]) -> tuple[float, float, float]:
    """Medians of both, and the median of the ratios taken inside each round."""
    pairs: list[tuple[float, float]] = []
    for index in range(count):
        first, second = (ours, theirs) if index % 2 == 0 else (theirs, ours)
        values = first(), second()
        pairs.append(values if index % 2 == 0 else (values[1], values[0]))
        print(f"  round {index + 1}/{count}", end="\r", file=sys.stderr)
    mine, other = zip(*pairs, strict=True)
    return statistics.median(mine), statistics.median(other), statistics.median(b / a for a, b in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured (default 5)")
    count = parser.parse_args().rounds
    peer = peer_python()
    # Bytecode makes the start; the environment of a checkout may have switched it off.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    start(sys.executable, "our_server.py")
    start(peer, "peer_server.py")
    print(f"{'':34}{'typedmcp':>12}{PIN:>14}{'ratio':>8}")
    ours, theirs, ratio = rounds(count, lambda: in_process(sys.executable, OURS), lambda: in_process(peer, THEIRS))
    print(f"{'tools/call in process, us':34}{ours:12.1f}{theirs:14.1f}{ratio:8.1f}")
    ours, theirs, ratio = rounds(
        count, lambda: start(sys.executable, "our_server.py")[0], lambda: start(peer, "peer_server.py")[0]
    )
    print(f"{'start to first answer, ms':34}{ours:12.1f}{theirs:14.1f}{ratio:8.1f}")
    ours, theirs = start(sys.executable, "our_server.py")[1], start(peer, "peer_server.py")[1]
    print(f"{'peak memory of that process, MB':34}{ours:12.1f}{theirs:14.1f}{theirs / ours:8.1f}")


if __name__ == "__main__":
    main()
