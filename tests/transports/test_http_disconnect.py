"""Clients that go away: in the modern era that cancels, in the handshake era it does not, whoever the web server is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from http_tools import (
    BOTH,
    Site,
    Tools,
    cancel,
    make,
    modern,
    modern_headers,
    serving,
    serving_asgi,
    tool,
    until,
)

from typedmcp.transports.asgi import create_asgi_app
from typedmcp.transports.http import create_app, create_mcp_routes
from typedmcp.transports.http.app import ENDPOINT

JSON_ONLY = "application/json"
KINDS = pytest.mark.parametrize("kind", ["aiohttp", "watched", "bare", "httptools", "h11"])
SESSIONS = pytest.mark.parametrize("kind", ["aiohttp", "watched", "httptools", "h11"])
ACCEPT = pytest.mark.parametrize("accept", [BOTH, JSON_ONLY])


@asynccontextmanager
async def served(kind: str, tools: Tools) -> AsyncIterator[Site]:
    server = make(tools)
    if kind in ("httptools", "h11"):
        asgi = create_asgi_app(server)
        async with serving_asgi(asgi, kind) as site:
            site.endpoint = asgi.endpoint
            yield site
        return
    if kind == "bare":
        app = web.Application()
        app.add_routes(create_mcp_routes(server))
    else:
        app = create_app(server)
    # "watched": an application served without aiohttp's own option, which few people set.
    async with serving(app, handler_cancellation=kind == "aiohttp") as site:
        site.endpoint = app.get(ENDPOINT)
        yield site


@KINDS
@ACCEPT
@pytest.mark.req("M-137", "M-139", "M-140")
@pytest.mark.parametrize("name", ["wait", "steps", "deaf"])
async def test_a_modern_request_ends_with_its_client(
    kind: str, accept: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    tools = Tools()
    async with served(kind, tools) as site:
        message = modern(tool(name, 3, token=1))
        wire = await site.connect()
        wire.send(message, modern_headers(message, Accept=accept))
        await tools.begun.wait()
        if name == "steps" and accept == BOTH:
            await wire.head()
            assert (await wire.message())["params"]["progress"] == 1
        await asyncio.sleep(0.1)
        assert tools.stopped == []
        wire.drop()
        await until(lambda: tools.stopped == [3], 3)
        if site.endpoint is not None:
            await until(lambda: site.endpoint.open == 0)
        assert (await site.ask_modern(tool("add"))).status == 200
    assert caplog.text == ""


@KINDS
@pytest.mark.req("M-137")
async def test_a_modern_client_that_only_closes_its_half_is_gone_too(kind: str) -> None:
    tools = Tools()
    async with served(kind, tools) as site:
        message = modern(tool("wait", 3))
        wire = await site.connect()
        wire.send(message, modern_headers(message))
        await tools.begun.wait()
        wire.writer.close()
        await until(lambda: tools.stopped == [3], 3)


@SESSIONS
@ACCEPT
@pytest.mark.req("H-029", "H-030", "H-047")
async def test_a_request_of_a_session_outlives_its_client(
    kind: str, accept: str, caplog: pytest.LogCaptureFixture
) -> None:
    tools = Tools()
    async with served(kind, tools) as site:
        session = await site.handshake("2025-11-25")
        wire = await site.connect()
        wire.send(tool("steps", 3, token=1, after=1), {**session, "Accept": accept})
        cursor = ""
        if accept == BOTH:
            await wire.head()
            prime = await wire.event()
            assert prime is not None
            cursor = prime.id or ""
        await tools.begun.wait()
        wire.drop()
        await asyncio.sleep(0.5)
        assert tools.stopped == []
        tools.go.set()
        await until(lambda: tools.ended == [3])
        if accept == BOTH:
            resumed = await site.listen(session, **{"Last-Event-ID": cursor})
            messages = [await resumed.message() for _ in range(4)]
            assert [m["params"]["progress"] for m in messages[:3]] == [1, 2, 3]
            assert messages[3]["id"] == 3
            assert await resumed.event() is None
        await until(lambda: site.endpoint.open == 0)
    assert caplog.text == ""


@SESSIONS
@ACCEPT
@pytest.mark.req("H-030", "H-050", "H-051", "M-144")
async def test_only_the_client_s_word_or_the_end_of_the_session_cancels(kind: str, accept: str) -> None:
    tools = Tools()
    async with served(kind, tools) as site:
        session = await site.handshake()
        for number, name in ((3, "wait"), (4, "deaf")):
            tools.begun.clear()
            wire = await site.connect()
            wire.send(tool(name, number, token=1), {**session, "Accept": accept})
            await tools.begun.wait()
            assert (await site.ask(cancel(number), session)).status == 202
            answer = await wire.answer()
            assert (answer.status, answer.body) == ((200, b"") if accept == BOTH else (202, b""))
            assert tools.stopped == [number]
            tools.stopped.clear()
        tools.begun.clear()
        wire = await site.connect()
        wire.send(tool("wait", 5), {**session, "Accept": accept})
        await tools.begun.wait()
        wire.drop()
        await asyncio.sleep(0.3)
        assert tools.stopped == []
        assert (await site.ask(None, session, method="DELETE")).status == 204
        await until(lambda: tools.stopped == [5])


@SESSIONS
@pytest.mark.req("A-216", "H-029")
async def test_a_listener_that_leaves_is_forgotten(kind: str) -> None:
    async with served(kind, Tools()) as site:
        session = await site.handshake()
        wires = [await site.listen(session) for _ in range(3)]
        live = site.endpoint.sessions.find(session["Mcp-Session-Id"]).live
        assert live.busy
        for wire in wires:
            wire.drop()
        await until(lambda: not live.busy)
        assert site.endpoint.open == 0


@KINDS
@pytest.mark.req("M-143", "M-137")
async def test_clients_that_leave_at_any_moment_do_no_harm(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    tools = Tools()
    tools.go.set()
    tasks = len(asyncio.all_tasks())
    async with served(kind, tools) as site:
        for number in range(60):
            message = modern(tool("quick" if number % 2 else "add", number, token=1))
            wire = await site.connect()
            wire.send(message, modern_headers(message))
            for _ in range(number % 12):
                await asyncio.sleep(0)
            wire.drop()
        assert (await site.ask_modern(tool("add"))).status == 200
    await until(lambda: len(asyncio.all_tasks()) <= tasks)
    assert caplog.text == ""
