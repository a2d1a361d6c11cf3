"""The safe WebSocket application, and ``App.run("ws")`` in a process of its own."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from typedmcp import App, connect
from typedmcp.core.errors import UsageError
from typedmcp.serving import serve_ws
from typedmcp.transports.websocket import create_websocket_app

SCRIPT = """
import asyncio
from typedmcp import App
app = App("told", "1")

@app.tool
async def wait() -> int:
    print("begun", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("stopped", flush=True)

app.run("ws", port=0, path="/tools", grace=5)
print("ended", flush=True)
"""


def calculator() -> App:
    app = App("calculator", "1")

    @app.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return app


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[int]:
    """The port of an application on the loopback interface."""
    runner = web.AppRunner(create_websocket_app(calculator(), **options), shutdown_timeout=5)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def test_a_client_calls_over_it() -> None:
    async with serving() as port, connect(f"ws://127.0.0.1:{port}/mcp") as client:
        assert await client.call("add", {"a": 1, "b": 2}) == 3


@pytest.mark.req("M-091")
@pytest.mark.parametrize(
    ("options", "headers", "allowed"),
    [
        ({}, {}, True),
        ({}, {"Origin": "http://localhost:3000"}, True),
        ({}, {"Origin": "https://evil.example"}, False),
        ({}, {"Origin": "null"}, False),
        ({"origins": ["https://app.example"]}, {"Origin": "https://app.example"}, True),
        ({}, {"Host": "rebound.example"}, False),
        ({"hosts": ["mcp.example"]}, {"Host": "mcp.example"}, True),
        ({"host": "0.0.0.0"}, {"Host": "mcp.example"}, True),
        ({"host": "0.0.0.0"}, {"Origin": "https://evil.example"}, False),
    ],
)
async def test_pages_of_other_origins_may_not_connect(
    options: dict[str, Any], headers: dict[str, str], allowed: bool
) -> None:
    async with serving(**options) as port, aiohttp.ClientSession() as http:
        if allowed:
            async with http.ws_connect(f"http://127.0.0.1:{port}/mcp", headers=headers, protocols=["mcp"]) as socket:
                await socket.send_json(
                    {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": CALL["_meta"]}}
                )
                assert "result" in await socket.receive_json(timeout=10)
        else:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await http.ws_connect(f"http://127.0.0.1:{port}/mcp", headers=headers)
            assert refused.value.status == 403


async def test_one_connection_more_than_the_bound_waits_for_a_place() -> None:
    async with serving(max_connections=1) as port, aiohttp.ClientSession() as http:
        url = f"http://127.0.0.1:{port}/mcp"
        async with http.ws_connect(url):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await http.ws_connect(url)
            assert refused.value.status == 503
            async with http.get(f"http://127.0.0.1:{port}/healthz") as healthy:
                assert (healthy.status, await healthy.text()) == (200, "ok\n")
        async with asyncio.timeout(10):
            while True:
                try:
                    async with http.ws_connect(url):
                        break
                except aiohttp.WSServerHandshakeError:
                    await asyncio.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_process_in_order(number: signal.Signals) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SCRIPT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        assert child.stderr is not None
        async with asyncio.timeout(30):
            line = (await child.stderr.readline()).decode()
            assert line.startswith("Serving told at ws://127.0.0.1:")
            url = line.split()[-1]
            assert url.endswith("/tools")
            async with aiohttp.ClientSession() as http, http.ws_connect(url.replace("ws:", "http:")) as socket:
                await socket.send_json({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALL})
                assert await child.stdout.readline() == b"begun\n"
                child.send_signal(number)
                closing = await socket.receive()
                assert (closing.type, closing.data) == (aiohttp.WSMsgType.CLOSE, 1001)
            out, errors = await child.communicate()
        assert out.decode().splitlines() == ["stopped", "ended"]
        assert errors == b""
        assert child.returncode == 0
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


CALL = {
    "name": "wait",
    "arguments": {},
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    },
}


async def test_options_that_do_not_exist_are_told() -> None:
    with pytest.raises(UsageError, match=r"no option 'prot'; there are port, grace, path"):
        await serve_ws(calculator().server, prot=8000)


async def test_a_port_in_use_is_told() -> None:
    async with serving() as port:
        with pytest.raises(UsageError, match="choose another port="):
            await serve_ws(calculator().server, port=port)
