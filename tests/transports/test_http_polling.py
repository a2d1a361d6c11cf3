"""Streams the server closes while the request goes on: clients of 2025-11-25 come back for the rest."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, TypedDict

import pytest
from http_tools import HANDSHAKE, PATIENCE, cancel, modern, modern_headers, serving, tool

from typedmcp import App, Context, connect
from typedmcp.core.errors import UsageError
from typedmcp.transports.http import HTTPClientTransport, create_app, create_mcp_routes, create_mcp_session
from typedmcp.transports.http.client import Reconnect


class Doors(TypedDict):
    """What a test opens when it wants a tool to go on."""

    closed: asyncio.Event
    go: asyncio.Event


def polled() -> tuple[App, Doors]:
    app = App("polled", "1")
    doors = Doors(closed=asyncio.Event(), go=asyncio.Event())

    @app.tool
    async def long(context: Context, retry: float = 0.25) -> str:
        """Report, close, report."""
        context.report_progress(1)
        await context.close_stream(retry)
        context.report_progress(2)
        doors["closed"].set()
        await doors["go"].wait()
        context.report_progress(3)
        return "done"

    @app.tool
    async def often(context: Context, times: int) -> str:
        """Close whatever connection there is, again and again, with nothing to tell."""
        for _ in range(times):
            context.close_stream(0)
            await asyncio.sleep(0.05)
        return "done"

    @app.tool
    def threaded(context: Context) -> str:
        """Close from a worker thread."""
        context.report_progress(1)
        context.close_stream()
        context.report_progress(2)
        return "done"

    @app.tool
    async def ask(context: Context) -> str:
        """Ask while nobody listens."""
        context.close_stream(0)
        return ", ".join(root.uri for root in await context.list_roots())

    return app, doors


@pytest.mark.req("H-044", "H-045", "H-047", "H-048")
async def test_the_client_gets_the_rest_when_it_comes_back() -> None:
    app, doors = polled()
    async with serving(create_app(app)) as site:
        session = await site.handshake("2025-11-25")
        prime, first, last = (await site.ask(tool("long", 7, token="t"), session)).events
        assert (prime.data, prime.retry) == ("", 1000)
        assert '"progress":1' in first.data
        assert (last.data, last.retry) == ("", 250)
        assert last.id not in (None, prime.id, first.id)
        await doors["closed"].wait()

        back = await site.listen(session, **{"Last-Event-ID": last.id or ""})
        assert (await back.message())["params"]["progress"] == 2
        doors["go"].set()
        assert (await back.message())["params"]["progress"] == 3
        assert (await back.message())["result"]["content"][0]["text"] == "done"
        assert await back.event() is None  # the answer is there, so that stream ends
        # An older place gives more, and all of it: the answer is kept.
        again = await site.listen(session, **{"Last-Event-ID": prime.id or ""})
        steps = [await again.message() for _ in range(4)]
        assert [step.get("params", {}).get("progress") for step in steps] == [1, 2, 3, None]


@pytest.mark.req("H-045")
async def test_a_tool_of_a_thread_closes_its_stream_in_order() -> None:
    app, _ = polled()
    async with serving(create_app(app)) as site:
        session = await site.handshake("2025-11-25")
        events = (await site.ask(tool("threaded", 7, token="t"), session)).events
        assert [event.retry for event in events] == [1000, None, 1000]
        back = await site.listen(session, **{"Last-Event-ID": events[-1].id or ""})
        assert (await back.message())["params"]["progress"] == 2
        assert (await back.message())["result"]["content"][0]["text"] == "done"


@pytest.mark.req("H-046", "H-047")
async def test_our_client_follows_however_often_the_stream_is_closed() -> None:
    app, _ = polled()
    async with serving(create_app(app)) as site:
        transport = HTTPClientTransport(
            f"http://127.0.0.1:{site.port}/mcp", reconnect=Reconnect(attempts=1, delay=0.01)
        )
        async with asyncio.timeout(PATIENCE), connect(transport, version="2025-11-25") as client:
            assert await client.call("often", {"times": 12}) == "done"
            assert await client.call("threaded", {}) == "done"


@pytest.mark.req("H-045", "H-047")
async def test_a_question_waits_for_the_client_to_come_back() -> None:
    app, _ = polled()
    async with serving(create_app(app)) as site:
        url = f"http://127.0.0.1:{site.port}/mcp"
        async with connect(url, version="2025-11-25", roots=["file:///a", "file:///b"]) as client:
            assert await client.call("ask", {}) == "file:///a, file:///b"


@pytest.mark.req("H-045")
async def test_a_request_withdrawn_while_its_client_is_away_ends_its_stream() -> None:
    app, doors = polled()
    async with serving(create_app(app)) as site:
        session = await site.handshake("2025-11-25")
        last = (await site.ask(tool("long", 7, token="t"), session)).events[-1]
        await doors["closed"].wait()
        assert (await site.ask(cancel(7), session)).status == 202
        back = await site.listen(session, **{"Last-Event-ID": last.id or ""})
        assert (await back.message())["params"]["progress"] == 2  # said before it was withdrawn
        assert await back.event() is None
        # Its place in the session is free again.
        assert (await site.ask(tool("threaded", 7), session)).status == 200


def kinds() -> dict[str, Any]:
    """Situations in which a client could not come back."""
    session = {"Accept": "application/json"}
    return {"json": ("2025-11-25", session), **{old: (old, {}) for old in HANDSHAKE if old < "2025-11-25"}}


@pytest.mark.req("H-044", "H-045")
@pytest.mark.parametrize("kind", kinds())
async def test_elsewhere_the_stream_stays_open(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    app, doors = polled()
    doors["go"].set()
    version, headers = kinds()[kind]
    with caplog.at_level(logging.DEBUG, "typedmcp"):
        async with serving(create_app(app)) as site:
            session = await site.handshake(version)
            answer = await site.ask(tool("long", 7, token="t"), {**session, **headers})
            assert answer.text == "done"
            assert len(answer.messages) == (1 if kind == "json" else 4)
    assert "the stream of tools/call stays open" in caplog.text


@pytest.mark.req("H-045")
async def test_a_modern_request_a_bare_route_and_memory_know_no_such_thing() -> None:
    app, doors = polled()
    doors["go"].set()
    async with serving(create_app(app)) as site:
        message = modern(tool("long", 7, token="t"))
        answer = await site.ask(message, modern_headers(message))
        assert [len(answer.messages), answer.text] == [4, "done"]
    async with connect(app) as client:
        assert await client.call("long", {}) == "done"
    from aiohttp import web

    bare = web.Application(middlewares=[create_mcp_session()])
    bare.router.add_routes(create_mcp_routes(app.server))
    async with serving(bare) as site:
        session = await site.handshake("2025-11-25")
        answer = await site.ask(tool("long", 7, token="t"), session)
        assert [len(answer.messages), answer.text] == [4, "done"]


@pytest.mark.parametrize("retry", [-1.0, float("nan"), float("inf"), 1e9])
async def test_a_wait_that_is_none_is_refused(retry: float) -> None:
    context = Context.for_notification("x", None, None)
    with pytest.raises(UsageError, match="retry is a number of seconds"):
        context.close_stream(retry)
    await context.close_stream()  # nobody there: nothing happens
