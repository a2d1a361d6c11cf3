"""A client and a server over a real WebSocket, in both eras; and each of them with the library `websockets`."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from tests.transports.test_websocket_server import PATIENCE, Watched, listening, until
from websockets.asyncio.client import connect as foreign_connect
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as foreign_serve
from websockets.exceptions import ConnectionClosed as ForeignClosed
from websockets.typing import Subprotocol

from typedmcp import App, Context, MCPClient, ToolError, connect
from typedmcp.core.errors import ConnectionClosed, TransportError, UsageError
from typedmcp.transports.websocket import (
    WebSocketClientTransport,
    create_websocket_client_transport,
    create_websocket_routes,
    create_websocket_server,
)

ERAS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


class Tools:
    """An app, and what its tools have seen."""

    def __init__(self) -> None:
        self.app = App("pair", "1.0.0")
        self.begun = asyncio.Event()
        self.cancelled = 0
        self.app.tool(self.add)
        self.app.tool(self.wait)
        self.app.tool(self.blob)
        self.app.tool(self.count)
        self.app.tool(self.fail)

    async def add(self, a: int, b: int) -> int:
        """Add."""
        return a + b

    async def wait(self) -> str:
        """Wait for ever."""
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return "never"

    async def blob(self, size: int) -> str:
        """Much text."""
        return "é" * size

    async def count(self, to: int, ctx: Context) -> int:
        """Count, and report."""
        for number in range(to):
            await ctx.report_progress(number + 1, to)
        return to

    async def fail(self) -> str:
        """Fail."""
        raise ToolError("it failed")


@pytest.fixture(autouse=True)
async def nothing_left_behind() -> AsyncIterator[None]:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    yield
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect(1)
    assert asyncio.all_tasks() - {asyncio.current_task()} == set()
    assert complaints == []


@pytest.mark.req("A-286", "A-285")
@pytest.mark.parametrize("era", ERAS)
async def test_a_conversation(era: str) -> None:
    tools = Tools()
    listening = Watched(tools.app.server).listening()
    async with listening as port, connect(f"ws://127.0.0.1:{port}/mcp", version=era) as client:
        assert client.protocol_version == era
        assert client.server_info is not None
        assert client.server_info.name == "pair"
        assert len((await client.list_tools()).tools) == 5
        assert await client.call("add", {"a": 1, "b": 2}) == 3
        with pytest.raises(ToolError, match="it failed"):
            await client.call("fail")
        reports: list[tuple[float, float | None]] = []
        value = await client.call("count", {"to": 3}, on_progress=lambda done, total, _: reports.append((done, total)))
        assert (value, reports) == (3, [(1, 3), (2, 3), (3, 3)])
        assert await client.call("blob", {"size": 5 * 2**19}) == "é" * (5 * 2**19)
        answers = await asyncio.gather(*[client.call("add", {"a": n, "b": n}) for n in range(200)])
        assert answers == [2 * n for n in range(200)]


@pytest.mark.req("A-286", "M-139", "M-140")
@pytest.mark.parametrize("era", ERAS)
async def test_cancellation_and_the_end(era: str) -> None:
    tools = Tools()
    async with Watched(tools.app.server).listening() as port:
        async with connect(f"ws://127.0.0.1:{port}/mcp", version=era) as client:
            waiting = asyncio.create_task(client.call("wait"))
            await tools.begun.wait()
            waiting.cancel()
            await until(lambda: tools.cancelled == 1)
            assert await client.call("add", {"a": 1, "b": 2}) == 3
            with pytest.raises(TimeoutError):
                await client.call("wait", timeout=0.05)
            await until(lambda: tools.cancelled == 2)
            tools.begun.clear()
            waiting = asyncio.create_task(client.call("wait"))
            await tools.begun.wait()
        with pytest.raises(ConnectionClosed):
            await waiting
        await until(lambda: tools.cancelled == 3)


async def test_the_newest_revision_is_agreed_on() -> None:
    async with listening(create_websocket_routes(Tools().app.server)) as port:
        transport = create_websocket_client_transport(f"http://127.0.0.1:{port}/mcp")
        async with MCPClient(transport=transport) as client:
            assert client.protocol_version == "2026-07-28"


async def test_a_shutdown_fails_the_calls_with_its_code() -> None:
    tools = Tools()
    watched = Watched(tools.app.server)
    gone: list[object] = []
    async with watched.listening() as port:
        client = await connect(f"ws://127.0.0.1:{port}/mcp", on={"disconnect": lambda: gone.append(True)})
        waiting = asyncio.create_task(client.call("wait"))
        await tools.begun.wait()
    with pytest.raises(ConnectionClosed, match="code 1001: the server is shutting down"):
        await waiting
    assert gone == [True]
    assert not client.connected
    await client.disconnect()


async def test_limits_name_themselves() -> None:
    tools = Tools()
    async with listening(create_websocket_routes(tools.app.server, limit=10_000)) as port:
        async with MCPClient(transport=WebSocketClientTransport(f"ws://127.0.0.1:{port}/mcp", limit=9_000)) as client:
            with pytest.raises(ConnectionClosed, match="limit of 9000 bytes"):
                await client.call("blob", {"size": 20_000})
        async with MCPClient(transport=WebSocketClientTransport(f"ws://127.0.0.1:{port}/mcp")) as client:
            with pytest.raises(ConnectionClosed, match="1009: a message may have 10000 bytes"):
                await client.call("fail", {"text": "x" * 2**22})
            # A new connection makes good.
            await client.connect()
            assert await client.call("add", {"a": 1, "b": 2}) == 3


async def test_a_lost_connection_fails_the_calls() -> None:
    tools = Tools()
    requests: list[web.Request] = []
    server = create_websocket_server(tools.app.server)

    async def upgrade(request: web.Request) -> web.StreamResponse:
        requests.append(request)
        response = await server(request)
        assert response is not None
        return response

    async with listening([web.get("/mcp", upgrade)]) as port:
        async with connect(f"ws://127.0.0.1:{port}/mcp") as client:
            waiting = asyncio.create_task(client.call("wait"))
            await tools.begun.wait()
            assert requests[0].transport is not None
            requests[0].transport.abort()
            with pytest.raises(ConnectionClosed, match="lost without a close frame"):
                await waiting
        await until(lambda: tools.cancelled == 1)


async def test_addresses() -> None:
    with pytest.raises(UsageError):
        connect("ws://")
    with pytest.raises(TransportError, match="cannot connect"):
        await connect("ws://127.0.0.1:1/mcp")


# -- the library `websockets` ------------------------------------------------------------------------------------------


def request(number: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


SHAKE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "foreign", "version": "1"}}


@pytest.mark.req("A-266", "A-268")
@pytest.mark.parametrize("compression", [None, "deflate"])
@pytest.mark.parametrize("offered", [None, ["mcp"], ["foo"]])
async def test_a_foreign_client(offered: list[Subprotocol] | None, compression: str | None) -> None:
    tools = Tools()
    watched = Watched(tools.app.server, limit=2**20)
    async with watched.listening() as port:
        url = f"ws://127.0.0.1:{port}/mcp"
        async with foreign_connect(url, subprotocols=offered, compression=compression, max_size=None) as socket:
            assert socket.subprotocol == ("mcp" if offered == ["mcp"] else None)
            await socket.send(request(1, "initialize", **SHAKE))
            answer = json.loads(await socket.recv())
            assert answer["result"]["protocolVersion"] == "2025-06-18"
            await socket.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')
            await socket.send(request(2, "tools/call", name="blob", arguments={"size": 3_000_000}))
            text = await socket.recv()
            assert isinstance(text, str)
            assert len(json.loads(text)["result"]["content"][0]["text"]) == 3_000_000
            await socket.send(["[", '"fragments"', "]"])
            assert json.loads(await socket.recv())["error"]["code"] == -32600
            pong = await socket.ping()
            assert await asyncio.wait_for(pong, PATIENCE) >= 0
            await socket.send("x" * (2**20 + 1))
            with pytest.raises(ForeignClosed) as caught:
                await socket.recv()
            assert caught.value.rcvd is not None
            assert caught.value.rcvd.code == 1009


async def test_a_foreign_client_at_the_shutdown() -> None:
    tools = Tools()
    loop = asyncio.get_running_loop()
    async with Watched(tools.app.server).listening() as port:
        socket = await foreign_connect(f"ws://127.0.0.1:{port}/mcp")
        await socket.send(request(1, "initialize", **SHAKE))
        await socket.recv()
        began = loop.time()
    with pytest.raises(ForeignClosed) as caught:
        await socket.recv()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1001
    assert loop.time() - began < 2
    await socket.close()


@pytest.mark.req("A-277", "A-280")
@pytest.mark.parametrize("subprotocols", [None, [Subprotocol("mcp")]])
async def test_a_foreign_server(subprotocols: list[Subprotocol] | None) -> None:
    seen: list[str] = []

    async def handle(socket: ServerConnection) -> None:
        assert socket.subprotocol == ("mcp" if subprotocols else None)
        async for text in socket:
            assert isinstance(text, str)
            message = json.loads(text)
            seen.append(message["method"])
            if message["method"] == "initialize":
                result: Any = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "foreign", "version": "1"},
                }
            elif message["method"] == "tools/call":
                result = {"content": [{"type": "text", "text": "x" * 2**22}]}
            else:
                continue
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}))

    async with foreign_serve(handle, "127.0.0.1", 0, subprotocols=subprotocols, max_size=2**20) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}/mcp", version="2025-06-18") as client:
            assert client.server_info is not None
            assert client.server_info.name == "foreign"
            assert await client.call("any") == "x" * 2**22
            with pytest.raises(ConnectionClosed, match="1009"):
                await client.call("any", {"text": "x" * 2**21})
    assert seen == ["initialize", "notifications/initialized", "tools/call"]
