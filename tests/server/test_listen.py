"""subscriptions/listen (2026-07-28): on a message stream in memory, then over HTTP and stdio."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from typedmcp import App, validate_message
from typedmcp.core.connection import Connection
from typedmcp.core.ending import end_listening
from typedmcp.core.jsonrpc import decode_message
from typedmcp.server import subscribers
from typedmcp.transports.asgi import create_asgi_app
from typedmcp.transports.http import create_app

LATEST = "2026-07-28"
ID = "io.modelcontextprotocol/subscriptionId"
META = {
    "io.modelcontextprotocol/protocolVersion": LATEST,
    "io.modelcontextprotocol/clientCapabilities": {},
    "progressToken": "p",
    "io.modelcontextprotocol/logLevel": "debug",
}
EVERYTHING = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["memo://a", "memo://items/7", "memo://none"],
}
Frame = dict[str, Any]


def make() -> App:
    app = App("changing", "1")

    @app.tool
    async def first() -> int:
        return 1

    @app.resource("memo://a")
    async def memo() -> str:
        return "a"

    @app.resource("memo://items/{item}")
    async def item(item: str) -> str:
        return item

    return app


def listen(request_id: int | str = 1, **wanted: Any) -> Frame:
    params = {"notifications": wanted, "_meta": META}
    return {"jsonrpc": "2.0", "id": request_id, "method": "subscriptions/listen", "params": params}


class Client:
    """A client on a message stream, whose every message is checked."""

    def __init__(self, app: App) -> None:
        self.frames: asyncio.Queue[Frame] = asyncio.Queue()
        self.connection = Connection(app.server, self._got)

    def _got(self, data: bytes) -> None:
        frame = json.loads(data)
        method = "subscriptions/listen" if "result" in frame else None
        assert not validate_message(frame, LATEST, "server", method), frame
        self.frames.put_nowait(frame)

    def send(self, frame: Frame) -> None:
        self.connection.receive(decode_message(json.dumps(frame).encode()))

    async def next(self) -> Frame:
        return await asyncio.wait_for(self.frames.get(), 10)

    async def silence(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)
        assert self.frames.empty(), self.frames.get_nowait()


def acknowledged(request_id: int | str = 1, **granted: Any) -> Frame:
    method = "notifications/subscriptions/acknowledged"
    return {"jsonrpc": "2.0", "method": method, "params": {"notifications": granted, "_meta": {ID: request_id}}}


def changed(kind: str, request_id: int | str = 1, **more: Any) -> Frame:
    params = {**more, "_meta": {ID: request_id}}
    return {"jsonrpc": "2.0", "method": f"notifications/{kind}", "params": params}


@pytest.mark.req("M-169", "M-170", "M-172")
async def test_the_acknowledgement_names_what_there_is() -> None:
    client = Client(make())
    client.send(listen("s", **EVERYTHING))
    granted = {
        "toolsListChanged": True,
        "resourcesListChanged": True,
        "resourceSubscriptions": ["memo://a", "memo://items/7"],
    }
    assert await client.next() == acknowledged("s", **granted)
    client.send(listen(2, promptsListChanged=True))
    assert await client.next() == acknowledged(2)


@pytest.mark.req("M-170", "M-171", "M-173", "M-174", "M-178")
async def test_each_subscription_gets_what_it_asked_for() -> None:
    app = make()
    client = Client(app)
    client.send(listen(1, toolsListChanged=True))
    client.send(listen("1", resourcesListChanged=True, resourceSubscriptions=["memo://a"]))
    assert (await client.next())["params"]["_meta"] == {ID: 1}
    assert (await client.next())["params"]["_meta"] == {ID: "1"}
    app.tool(lambda: 2, name="second")
    assert await client.next() == changed("tools/list_changed")
    app.notify_resource_updated("memo://items/7")
    app.notify_resource_updated("memo://a")
    assert await client.next() == changed("resources/updated", "1", uri="memo://a")
    app.remove_resource("memo://a")
    assert await client.next() == changed("resources/list_changed", "1")
    await client.silence()


async def test_what_changes_often_in_one_turn_is_told_once() -> None:
    app = make()
    client = Client(app)
    client.send(listen(toolsListChanged=True, resourceSubscriptions=["memo://a"]))
    await client.next()
    for _ in range(1000):
        app.notify_tools_changed()
        app.notify_resource_updated("memo://a")
    assert [(await client.next())["method"] for _ in range(2)] == [
        "notifications/tools/list_changed",
        "notifications/resources/updated",
    ]
    await client.silence()


async def test_changes_told_by_threads_arrive() -> None:
    app = make()
    client = Client(app)
    client.send(listen(toolsListChanged=True))
    await client.next()
    await asyncio.to_thread(app.notify_tools_changed)
    assert await client.next() == changed("tools/list_changed")


@pytest.mark.req("M-143")
async def test_a_cancelled_subscription_leaves_nothing_behind() -> None:
    app = make()
    client = Client(app)
    client.send(listen(7, toolsListChanged=True))
    await client.next()
    assert len(app._servicer.subscribers) == 1
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
    await client.silence()
    assert len(app._servicer.subscribers) == 0
    app.notify_tools_changed()
    await client.silence()


@pytest.mark.req("M-175", "M-176")
async def test_the_servers_end_is_told() -> None:
    app = make()
    client = Client(app)
    client.send(listen("s", toolsListChanged=True))
    await client.next()
    app.notify_tools_changed()
    await end_listening(app.server)
    assert await client.next() == changed("tools/list_changed", "s")
    withdrawn = await client.next()
    assert (withdrawn["method"], withdrawn["params"]["requestId"]) == ("notifications/cancelled", "s")
    result = await client.next()
    assert (result["id"], result["result"]["resultType"], result["result"]["_meta"][ID]) == ("s", "complete", "s")


async def test_there_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribers, "MAX_LISTENING", 1)
    client = Client(make())
    client.send(listen(1))
    await client.next()
    client.send(listen(2))
    assert (await client.next())["error"]["data"] == {"limit": 1}
    client.send(listen(3, resourceSubscriptions=[f"memo://items/{n}" for n in range(1025)]))
    assert (await client.next())["error"]["code"] == -32602


async def test_without_a_connection_there_is_nothing_to_listen_on() -> None:
    answer = json.loads(await make().server.handle(json.dumps(listen()).encode()) or b"")
    assert answer["error"]["code"] == -32600


async def test_the_capabilities_say_that_changes_are_told() -> None:
    discover = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": META}}
    answer = json.loads(await make().server.handle(json.dumps(discover).encode()) or b"")
    assert answer["result"]["capabilities"]["tools"] == {"listChanged": True}
    assert answer["result"]["capabilities"]["resources"] == {"listChanged": True, "subscribe": True}


# -- HTTP --------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def aiohttp_site(app: App) -> AsyncIterator[str]:
    runner = web.AppRunner(create_app(app, keep_alive=0.6), handler_cancellation=True, shutdown_timeout=5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def uvicorn_site(app: App) -> AsyncIterator[str]:
    import uvicorn

    options: Any = {"lifespan": "on", "log_level": "warning", "timeout_graceful_shutdown": 5}
    server = uvicorn.Server(uvicorn.Config(create_asgi_app(app, keep_alive=0.6), port=0, loop="none", **options))
    task = asyncio.create_task(server._serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await task


SITES = {"aiohttp": aiohttp_site, "uvicorn": uvicorn_site}
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": LATEST,
    "Mcp-Method": "subscriptions/listen",
}


async def message(response: aiohttp.ClientResponse) -> Frame | None:
    """The next message of an event stream; None at its end."""
    async with asyncio.timeout(10):
        async for line in response.content:
            if line.startswith(b"data:"):
                return json.loads(line[5:])
    return None


@pytest.mark.req("M-169", "M-170", "M-174")
@pytest.mark.parametrize("kind", SITES)
async def test_over_http_a_stream_begins_at_once_and_ends_with_the_client(kind: str) -> None:
    app = make()
    async with SITES[kind](app) as url, aiohttp.ClientSession() as http:
        async with http.post(url, json=listen("x", toolsListChanged=True), headers=HEADERS) as response:
            assert response.status == 200
            assert response.headers["Content-Type"].startswith("text/event-stream")
            assert response.headers["X-Accel-Buffering"] == "no"
            assert await message(response) == acknowledged("x", toolsListChanged=True)
            async with asyncio.timeout(10):
                assert (await response.content.readline(), await response.content.readline()) == (
                    b"\n",
                    b": keep-alive\n",
                )
            app.tool(lambda: 2, name="second")
            assert await message(response) == changed("tools/list_changed", "x")
        async with asyncio.timeout(10):
            while len(app._servicer.subscribers):  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0.01)


@pytest.mark.req("M-175")
async def test_over_http_the_servers_end_is_a_result() -> None:
    app = make()
    async with aiohttp.ClientSession() as http:
        async with aiohttp_site(app) as url:
            response = await http.post(url, json=listen("x", toolsListChanged=True), headers=HEADERS)
            assert await message(response) == acknowledged("x", toolsListChanged=True)
        last = await message(response)
        assert last is not None
        assert (last["id"], last["result"]["resultType"], last["result"]["_meta"][ID]) == ("x", "complete", "x")
        assert await message(response) is None


async def test_over_http_a_client_must_take_a_stream() -> None:
    async with aiohttp_site(make()) as url, aiohttp.ClientSession() as http:
        headers = {**HEADERS, "Accept": "application/json"}
        async with http.post(url, json=listen(), headers=headers) as response:
            assert response.status == 406
            assert "text/event-stream" in await response.text()


# -- stdio -------------------------------------------------------------------------------------------------------------

SCRIPT = """
from typedmcp import App
app = App("changing", "1")

@app.tool
async def change() -> int:
    app.notify_tools_changed()
    return 1

app.run()
"""


@pytest.mark.req("M-176")
async def test_over_stdio_a_signal_ends_subscriptions_in_good_order() -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SCRIPT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        async with asyncio.timeout(30):
            child.stdin.write(json.dumps(listen("s", toolsListChanged=True)).encode() + b"\n")
            assert json.loads(await child.stdout.readline()) == acknowledged("s", toolsListChanged=True)
            params = {"name": "change", "arguments": {}, "_meta": {**META}}
            call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
            child.stdin.write(json.dumps(call).encode() + b"\n")
            both = [json.loads(await child.stdout.readline()) for _ in range(2)]
            assert sorted(frame.get("id", 0) for frame in both) == [0, 2]
            child.send_signal(signal.SIGTERM)
            rest = [json.loads(line) for line in (await child.stdout.read()).splitlines()]
        assert [frame.get("method", frame.get("id")) for frame in rest] == ["notifications/cancelled", "s"]
        assert await child.wait() == 0
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
