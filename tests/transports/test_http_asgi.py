"""The same endpoint as an ASGI application: under real servers, mounted, and spoken to message by message."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from http_tools import (
    LATEST,
    Site,
    Tools,
    initialize,
    make,
    modern,
    modern_headers,
    notification,
    request,
    serving_asgi,
    tool,
    until,
)
from starlette.applications import Starlette
from starlette.routing import Mount

from typedmcp.transports.asgi import create_asgi_app, read_body

KINDS = pytest.mark.parametrize("kind", ["httptools", "h11"])


@asynccontextmanager
async def served(kind: str = "httptools", tools: Tools | None = None, **options: Any) -> AsyncIterator[Site]:
    app = create_asgi_app(make(tools), **options)
    async with serving_asgi(app, kind) as site:
        site.endpoint = app.endpoint
        yield site


@KINDS
@pytest.mark.req("M-088", "M-096", "M-101", "M-095", "B-143")
async def test_both_eras(kind: str) -> None:
    async with served(kind) as site:
        answer = await site.ask_modern(tool("add", a=20, b=22))
        assert (answer.status, answer.text) == (200, "42")
        assert answer.headers["content-length"] == str(len(answer.body))
        assert (await site.ask_modern(request("no/such"))).status == 404
        session = await site.handshake("2025-11-25")
        assert len((await site.ask(tool("quick", token=1), session)).messages) == 3
        assert (await site.ask(request(), {**session, "Mcp-Session-Id": None})).status == 400
        assert (await site.ask(request(), {**session, "Mcp-Session-Id": "x"})).status == 404
        assert (await site.ask(None, session, method="DELETE")).status == 204
        assert (await site.ask(None, session, method="GET")).status == 404
        assert (await site.ask(None, method="GET")).status == 405
        assert (await site.ask(raw=b"{")).error == -32700


@KINDS
@pytest.mark.req("H-047", "H-044", "H-032")
async def test_streams_and_resumption(kind: str) -> None:
    tools = Tools()
    async with served(kind, tools) as site:
        session = await site.handshake("2025-11-25")
        wire = await site.open(tool("steps", 1, token=1, before=1), session)
        prime = await wire.event()
        assert prime is not None
        assert (prime.data, prime.retry) == ("", 1000)
        assert (await wire.message())["params"]["progress"] == 1
        wire.drop()
        resumed = await site.listen(session, **{"Last-Event-ID": prime.id or ""})
        assert (await resumed.message())["params"]["progress"] == 1
        tools.go.set()
        assert (await resumed.message())["id"] == 1
        assert await resumed.event() is None


@KINDS
async def test_a_body_too_large_is_413(kind: str) -> None:
    async with served(kind, max_body=1000) as site:
        message = modern(tool("deep", value="x" * 2000))
        answer = await site.ask(message, modern_headers(message))
        assert (answer.status, answer.error) == (413, -32600)
        assert (await site.ask_modern(tool("add"))).status == 200


@KINDS
async def test_paths_and_probes(kind: str) -> None:
    message = modern(tool("add"))
    async with served(kind, path="/deep/mcp") as site:
        for path in ("/deep/mcp", "/deep/mcp/"):
            assert (await site.ask(message, modern_headers(message), path=path)).status == 200
        for path in ("/", "/mcp", "/deep"):
            assert (await site.ask(message, modern_headers(message), path=path)).status == 404
        for path in ("/healthz", "/readyz"):
            assert (await site.ask(None, method="GET", path=path)).status == 200


@KINDS
async def test_a_slow_reader_loses_its_stream(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    tools = Tools()
    async with served(kind, tools) as site:
        slow = await site.connect()
        message = modern(tool("flood", token=1, count=400, size=100_000))
        slow.send(message, modern_headers(message))
        slow.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await until(lambda: tools.stopped or tools.ended)
        await until(lambda: site.endpoint.open == 0)
        assert (await site.ask_modern(tool("add"))).status == 200
        assert "bytes behind" in caplog.text
        slow.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert not (await slow.gone()).endswith(b"0\r\n\r\n")


# -- mounted -----------------------------------------------------------------------------------------------------------


@pytest.mark.req("M-088")
@pytest.mark.parametrize("mount", ["/svc/a", ""])
async def test_mounted_in_starlette(mount: str) -> None:
    """F056, F057: below a prefix, with and without a slash, and no path is announced."""
    inner = create_asgi_app(make())
    outer = Starlette(routes=[Mount(mount, app=inner)])
    message = modern(tool("add"))
    async with serving_asgi(outer) as site:
        for path in (f"{mount}/mcp", f"{mount}/mcp/", f"{mount}/") if mount else ("/mcp", "/mcp/"):
            answer = await site.ask(message, modern_headers(message), path=path)
            assert (answer.status, answer.text) == (200, "3")
        assert (await site.ask(message, modern_headers(message), path=f"{mount}/other")).status == 404
        assert (await site.ask(None, method="GET", path=f"{mount}/healthz")).status == 200


# -- message by message ------------------------------------------------------------------------------------------------


def scope(**changes: Any) -> dict[str, Any]:
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"accept", b"*/*")]
    return {"type": "http", "method": "POST", "path": "/mcp", "headers": headers, **changes}


async def test_a_body_in_pieces_and_one_that_breaks_off() -> None:
    def receiving(*messages: dict[str, Any]) -> Any:
        left = list(messages)

        async def receive() -> dict[str, Any]:
            return left.pop(0)

        return receive

    piece = {"type": "http.request", "body": b"ab", "more_body": True}
    last = {"type": "http.request", "body": b"c"}
    assert await read_body(receiving(piece, piece, last), 5) == b"ababc"
    assert await read_body(receiving(piece, piece, last), 4) is None
    assert await read_body(receiving(last), 1) == b"c"
    assert await read_body(receiving({"type": "http.request"}), 1) == b""
    assert await read_body(receiving(piece, {"type": "http.disconnect"}), 5) == b"ab"


async def exchange(app: Any, at: dict[str, Any], body: bytes = b"") -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(at, receive, send)
    return sent


@pytest.mark.parametrize(
    ("root", "path", "served"),
    [
        ("", "/mcp", True),
        ("/svc", "/svc/mcp", True),
        ("/svc", "/mcp", True),  # older frameworks leave the prefix out
        ("/svc", "/svc", True),
        ("/svc", "/svc/", True),
        ("/svc", "/svc/else", False),
        ("", "", False),
        ("", "/mcp/x", False),
    ],
)
async def test_root_paths(root: str, path: str, served: bool) -> None:
    app = create_asgi_app(make())
    body = json.dumps(notification()).encode()
    start, *_ = await exchange(app, scope(root_path=root, path=path), body)
    assert start["status"] == (400 if served else 404)


async def test_other_scopes() -> None:
    app = create_asgi_app(make())
    assert await exchange(app, {"type": "websocket"}) == [{"type": "websocket.close", "code": 1000}]
    with pytest.raises(ValueError, match="carrier"):
        await exchange(app, {"type": "carrier"})


async def test_the_lifespan_ends_what_runs() -> None:
    tools = Tools()
    app = create_asgi_app(make(tools))
    events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    sent: list[str] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message["type"])

    life = asyncio.create_task(app({"type": "lifespan"}, events.get, send))
    events.put_nowait({"type": "lifespan.startup"})
    await until(lambda: sent)
    (start, _) = await exchange(app, scope(), json.dumps(initialize()).encode())
    session = dict(start["headers"])[b"mcp-session-id"]
    at = scope()
    at["headers"].append((b"mcp-session-id", session))
    running = asyncio.create_task(exchange(app, at, json.dumps(tool("wait")).encode()))
    await tools.begun.wait()
    events.put_nowait({"type": "lifespan.shutdown"})
    await life
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    await running
    assert tools.stopped == [1]
    assert len(app.endpoint.sessions) == 0


# -- other servers -----------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
sys.path[:0] = [{here!r}]
from http_tools import Tools, make
from typedmcp.transports.asgi import create_asgi_app
class Told(Tools):
    async def _wait(self, context):
        print("begun", flush=True)
        try:
            return await super()._wait(context)
        finally:
            print("stopped", flush=True)
app = create_asgi_app(make(Told()))
"""
COMMANDS = {
    "hypercorn": ["-m", "hypercorn", "--bind", "127.0.0.1:{port}", "served_app:app"],
    "granian": ["-m", "granian", "--interface", "asgi", "--host", "127.0.0.1", "--port", "{port}", "served_app:app"],
    "uvicorn": ["-m", "uvicorn", "--port", "{port}", "--log-level", "warning", "served_app:app"],
}


def free_port() -> int:
    """A port nobody listens on, from below the range the system hands out to other tests meanwhile."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@asynccontextmanager
async def other_server(name: str, folder: Path) -> AsyncIterator[tuple[asyncio.StreamReader, Site]]:
    """What a server's application prints, and where it listens."""
    (folder / "served_app.py").write_text(SCRIPT.format(here=str(Path(__file__).parent)))
    port = free_port()
    command = [part.format(port=port) for part in COMMANDS[name]]
    child = await asyncio.create_subprocess_exec(
        sys.executable, *command, cwd=folder, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert child.stdout is not None
    site = Site(port, name)
    try:
        async with asyncio.timeout(30):
            while True:
                assert child.returncode is None, "the server did not start"
                try:
                    (await site.connect()).drop()
                    break
                except OSError:
                    await asyncio.sleep(0.05)
        yield child.stdout, site
    finally:
        site.close()
        # The server and its workers.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(10):
                await child.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            await child.wait()


@pytest.mark.req("M-137", "M-096", "H-029")
@pytest.mark.parametrize("name", ["hypercorn", "granian", "uvicorn"])
async def test_under_other_servers(name: str, tmp_path: Path) -> None:
    async with other_server(name, tmp_path) as (printed, site):
        assert (await site.ask_modern(tool("add"))).text == "3"
        answer = await site.ask_modern(tool("quick", token=1))
        assert [m.get("id") for m in answer.messages] == [None, None, 1]
        session = await site.handshake("2025-11-25")
        assert (await site.ask(tool("add"), session)).text == "3"
        listening = await site.listen(session)
        listening.drop()
        assert (await site.ask(None, session, method="DELETE")).status == 204
        message = modern(tool("wait"))
        wire = await site.connect()
        wire.send(message, modern_headers(message, Accept="application/json"))

        async def line() -> str:
            async with asyncio.timeout(10):
                while True:  # servers print lines of their own
                    text = (await printed.readline()).decode().strip()
                    if text in ("begun", "stopped"):
                        return text
                    assert text, "the server has ended"

        assert await line() == "begun"
        wire.drop()
        assert await line() == "stopped"


def test_the_application_needs_no_web_framework() -> None:
    code = (
        "import sys; from typedmcp.transports.asgi import create_asgi_app; "
        "from typedmcp.server.server import MCPServer; from typedmcp.server.tools import ToolManager; "
        "create_asgi_app(MCPServer(name='x', version='1', tools=ToolManager())); "
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'aiohttp', 'starlette', 'uvicorn'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.req("M-091", "H-042")
async def test_who_calls_is_told_from_the_scope() -> None:
    def told(scope: Any) -> str:
        return dict(scope["headers"])[b"authorization"].decode()

    async def looked_up(scope: Any) -> str:
        await asyncio.sleep(0)
        return told(scope)

    for identify in (told, looked_up):
        async with served(identify=identify) as site:
            assert (await site.ask_modern(tool("whoami"), Authorization="ann")).text == f"ann {LATEST}"
            session = await site.handshake(Authorization="ann")
            assert (await site.ask(request(), {**session, "Authorization": "bob"})).status == 404


@pytest.mark.req("M-062", "M-063")
async def test_discover() -> None:
    async with served() as site:
        answer = await site.ask_modern(request("server/discover"))
        assert answer.json["result"]["supportedVersions"][0] == LATEST
