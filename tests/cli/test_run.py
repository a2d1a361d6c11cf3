"""``typedmcp run``, as a client sees it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from typedmcp import connect

Start = Callable[..., subprocess.Popen[str]]

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
}


def request(method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META, **params}}) + "\n"


def test_nothing_but_messages_on_the_output_and_an_end_with_the_input(start: Start, servers: Path) -> None:
    process = start("run", str(servers / "tools.py"))
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(request("tools/call", name="echo", arguments={"text": "hello"}))
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    assert answer["result"]["structuredContent"] == {"result": "hello"}
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "")
    assert "printed while imported" in err
    assert "printed while called" in err


async def test_a_client_connects(servers: Path, child_environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "typedmcp", "run", "pack/served.py"]
    async with connect(command, env=child_environment, cwd=str(servers)) as client:
        assert client.server_info is not None
        assert client.server_info.name == "packed"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_signals_end_it_cleanly(start: Start, servers: Path, number: int, code: int) -> None:
    process = start("run", str(servers / "tools.py"))
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(request("server/discover"))
    process.stdin.flush()
    assert process.stdout.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (code, "")
    assert "Traceback" not in err


@pytest.mark.parametrize(("flag", "scheme"), [("--http", "http"), ("--ws", "ws")])
async def test_it_serves_an_address(start: Start, servers: Path, flag: str, scheme: str) -> None:
    process = start("run", str(servers / "tools.py"), flag, "--port", "0", "--path", "/tools")
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    url = next(line for line in lines if line.startswith("Serving")).split()[-1]
    assert url.startswith(f"{scheme}://127.0.0.1:")
    assert url.endswith("/tools")
    async with connect(url) as client:
        assert await client.call("echo", {"text": "hello"}) == "hello"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--port", "9000"], "--port needs --http or --ws"),
        (["--origin", "https://a.example"], "--origin needs --http or --ws"),
        (["--http", "--path", "mcp"], "--path begins with a slash: --path /mcp"),
        (["--http", "--port", "70000"], "70000 is not in the range"),
    ],
)
def test_what_does_not_fit_is_told(start: Start, servers: Path, words: list[str], told: str) -> None:
    process = start("run", str(servers / "tools.py"), *words)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 2
    assert told in err


def test_a_port_in_use_is_told(start: Start, servers: Path) -> None:
    first = start("run", str(servers / "tools.py"), "--http", "--port", "0")
    assert first.stderr is not None
    url = next(line for line in iter(first.stderr.readline, "") if line.startswith("Serving")).split()[-1]
    port = url.rpartition(":")[2].partition("/")[0]
    second = start("run", str(servers / "tools.py"), "--http", "--port", port)
    _, err = second.communicate(timeout=30)
    assert second.returncode != 0
    assert "choose another port" in err
    assert "Traceback" not in err
