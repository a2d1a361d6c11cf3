"""The bare mechanism: one stateless POST route, and sessions as a middleware in front (seed A)."""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from http_tools import (
    BOTH,
    HANDSHAKE,
    Site,
    Tools,
    cancel,
    initialize,
    make,
    modern,
    modern_headers,
    notification,
    request,
    serving,
    tool,
    until,
)
from transport_fakes import FakeServer

from typedmcp.server.server import MCPServer
from typedmcp.server.tools import ToolManager
from typedmcp.transports import http
from typedmcp.transports.http import MCP_SESSION, create_mcp_routes, create_mcp_session
from typedmcp.transports.http.store import SessionStore
from typedmcp.transports.websocket import create_websocket_routes

JSON_ONLY = {"Accept": "application/json"}
UNKNOWN = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Session not found"}}


class Clock:
    """A time that goes on when told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def bare(
    server: Any = None, *, sessions: bool | dict[str, Any] = False, extra: Any = (), **options: Any
) -> AsyncIterator[Site]:
    middlewares = [*extra]
    if sessions is not False:
        middlewares.append(create_mcp_session(**(sessions if isinstance(sessions, dict) else {})))
    app = web.Application(middlewares=middlewares)
    app.router.add_routes(create_mcp_routes(server or make(strict=False), **options))
    async with serving(app) as site:
        yield site


# -- the route ---------------------------------------------------------------------------------------------------------


@pytest.mark.req("A-161", "A-162", "A-172", "A-178", "A-238")
async def test_there_is_one_route_and_it_is_a_post() -> None:
    (route,) = create_mcp_routes(FakeServer())
    assert (route.method, route.path) == ("POST", "/mcp")
    assert create_mcp_routes(FakeServer(), path="/other")[0].path == "/other"
    async with bare(path="/x") as site:
        for method in ("GET", "DELETE", "PUT"):
            answer = await site.ask(None, method=method, path="/x")
            assert (answer.status, answer.headers["allow"]) == (405, "POST")
        assert (await site.ask(request(), path="/mcp")).status == 404
        assert (await site.ask(request(), path="/x")).status == 200


@pytest.mark.req("A-163", "A-166", "A-169", "A-174")
async def test_what_the_server_says_is_200() -> None:
    """Also from a server that is none of the library's: the route needs nothing but `dispatch`."""
    fake = FakeServer()
    async with bare(fake, streaming=False) as site:
        answer = await site.ask(request("echo", 7, a=1))
        assert (answer.status, answer.json) == (200, {"jsonrpc": "2.0", "id": 7, "result": {"a": 1}})
        fault = await site.ask(request("fault", 8))
        assert (fault.status, fault.error) == (200, -32603)
        assert b"of the server" not in fault.body
    async with bare() as site:
        answer = await site.ask(request("no/such", 9), JSON_ONLY)
        assert (answer.status, answer.error) == (200, -32601)
        answer = await site.ask(request("tools/call", 9, name=1), JSON_ONLY)
        assert (answer.status, answer.error) == (200, -32602)


@pytest.mark.req("A-164", "A-165", "A-170")
@pytest.mark.parametrize("accept", [BOTH, "application/json"])
@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b"nope", -32700),
        (b"1", -32600),
        (b"null", -32600),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
    ],
)
async def test_a_body_that_is_no_request_is_400(raw: bytes, code: int, accept: str) -> None:
    async with bare() as site:
        answer = await site.ask(raw=raw, headers={"Accept": accept})
        assert (answer.status, answer.kind) == (400, "application/json")
        assert answer.error == code
        assert answer.json["id"] in (None, 1)  # the id of a message that has a readable one is told
        assert "id" in answer.json


@pytest.mark.req("A-167", "A-170", "H-024", "M-095")
async def test_a_notification_is_202_without_a_body() -> None:
    fake = FakeServer()
    async with bare(fake) as site:
        answer = await site.ask(notification("notifications/initialized"))
        assert (answer.status, answer.body, answer.headers["content-length"]) == (202, b"", "0")
        assert fake.notes == ["notifications/initialized"]
        assert "content-type" not in answer.headers


@pytest.mark.req("A-168", "A-169", "A-171", "A-177", "M-096")
async def test_a_client_that_takes_event_streams_gets_one() -> None:
    async with bare() as site:
        plain = await site.ask(request(), JSON_ONLY)
        streamed = await site.ask(request())
        assert streamed.headers["content-type"] == "text/event-stream"
        assert streamed.body == b"data: " + plain.body + b"\n\n"
    async with bare(streaming=False) as site:
        assert (await site.ask(request())).body == plain.body


@pytest.mark.req("A-229")
@pytest.mark.parametrize(
    ("accept", "streamed"),
    [
        ("text/event-stream", True),
        ("TEXT/Event-Stream", True),
        ("application/json;q=0.1, text/event-stream ; q=0.5", True),
        ("*/*", False),
        ("text/*", False),
        ("text/event-stream;q=0", False),
        ("application/json", False),
        ("text/event-streams", False),
        ("x-text/event-stream", False),
        (None, False),
    ],
)
async def test_only_asking_for_an_event_stream_by_name_gets_one(accept: str | None, streamed: bool) -> None:
    async with bare() as site:
        answer = await site.ask(request(), {"Accept": accept})
        assert (answer.kind == "text/event-stream") is streamed


@pytest.mark.req("A-173", "A-175", "A-011", "M-101")
async def test_the_route_knows_no_sessions_and_no_policy() -> None:
    async with bare() as site:
        for message in (initialize(), request()):
            answer = await site.ask(message, {"Mcp-Session-Id": "made-up", "Origin": "https://evil.example"})
            assert answer.status == 200
            assert "mcp-session-id" not in answer.headers
            assert "access-control-allow-origin" not in answer.headers
            assert "result" in answer.messages[0]


@pytest.mark.req("A-161", "A-036")
@pytest.mark.parametrize("version", ["2024-11-05", *HANDSHAKE])
async def test_a_stateless_client_may_shake_hands_as_often_as_it_likes(version: str) -> None:
    async with bare() as site:
        for _ in range(2):
            answer = await site.ask(initialize(version), JSON_ONLY)
            assert answer.json["result"]["protocolVersion"] == version


@pytest.mark.req("A-176", "A-317")
async def test_bodies_are_bounded_by_the_application_only() -> None:
    message = tool("blob", size=3)
    message["params"]["arguments"]["filler"] = "x" * (1 << 20)
    async with bare() as site:
        assert (await site.ask(message, JSON_ONLY)).status == 413
    app = web.Application(client_max_size=4 << 20)
    app.add_routes(create_mcp_routes(FakeServer(), streaming=False))
    async with serving(app) as site:
        assert (await site.ask(request("echo", filler="x" * (3 << 20)))).status == 200


@pytest.mark.req("A-225", "H-027")
async def test_the_version_header_is_looked_at_only_when_it_is_there() -> None:
    async with bare() as site:
        assert (await site.ask(request(), {"MCP-Protocol-Version": "2025-06-18"})).status == 200
        for header in ("2019-01-01", "banana"):
            assert (await site.ask(request(), {"MCP-Protocol-Version": header})).status == 400
    old = make(strict=False, protocol_versions=("2025-06-18", "2025-03-26"))
    async with bare(old) as site:
        assert (await site.ask(request(), {"MCP-Protocol-Version": "2025-11-25"})).status == 400
        assert (await site.ask(notification(), {"MCP-Protocol-Version": "2025-11-25"})).status == 400
        # The body of `initialize` says what is asked for, whatever the header.
        answer = await site.ask(initialize("2025-11-25"), {"MCP-Protocol-Version": "2025-11-25"})
        assert answer.messages[0]["result"]["protocolVersion"] == "2025-06-18"


@pytest.mark.req("H-014", "A-165")
async def test_a_batch_needs_the_header_of_its_revision() -> None:
    batch = [request("tools/list", 1), notification(), request("ping", "2")]
    async with bare() as site:
        answer = await site.ask(batch, {"MCP-Protocol-Version": "2025-03-26", **JSON_ONLY})
        assert answer.status == 200
        assert {member["id"] for member in answer.json} == {1, "2"}
        with_handshake = await site.ask([initialize(request_id=3)], {"MCP-Protocol-Version": "2025-03-26", **JSON_ONLY})
        assert with_handshake.json[0]["error"]["code"] == -32600
        for header in (None, "2025-06-18", "2025-11-25", "2026-07-28"):
            assert (await site.ask(batch, {"MCP-Protocol-Version": header})).status == 400


@pytest.mark.req("B-142", "M-096", "A-161")
async def test_requests_of_2026_07_28_are_served_too() -> None:
    async with bare() as site:
        answer = await site.ask_modern(tool("add", a=2, b=3))
        assert (answer.status, answer.text) == (200, "5")
        answer = await site.ask_modern(request("no/such"))
        assert (answer.status, answer.error) == (404, -32601)


# -- the middleware ----------------------------------------------------------------------------------------------------


@pytest.mark.req("A-179", "A-180", "A-181", "A-187", "A-188", "A-192", "A-201", "H-036")
@pytest.mark.parametrize("accept", [BOTH, "application/json"])
async def test_initialize_mints_a_session(accept: str) -> None:
    async with bare(sessions=True) as site:
        answer = await site.ask(initialize(), {"Accept": accept})
        assert uuid.UUID(answer.session).version == 4
        assert all(0x21 <= ord(character) <= 0x7E for character in answer.session)
        again = await site.ask(initialize(), {"Accept": accept})
        assert again.session != answer.session
        for message in (request(), notification(), request("no/such")):
            later = await site.ask(message, {"Accept": accept, "Mcp-Session-Id": answer.session})
            assert later.session == answer.session
        unknown = await site.ask(initialize(), {"Mcp-Session-Id": "unknown"})
        assert unknown.status == 200
        assert unknown.session != "unknown"


@pytest.mark.req("A-189", "A-190", "A-197", "A-232")
@pytest.mark.parametrize("session", [None, "", "unknown"])
async def test_everything_else_without_a_session_is_404(session: str | None) -> None:
    headers = {"Mcp-Session-Id": session}
    async with bare(sessions=True) as site:
        for message in (request(), notification(), notification("initialize"), None):
            answer = await site.ask(message, headers)
            assert (answer.status, answer.json) == (404, UNKNOWN)
        assert (await site.ask(raw=b"{nonsense", headers=headers)).status == 404
        for method in ("GET", "DELETE"):
            answer = await site.ask(None, headers, method=method)
            assert (answer.status, answer.json) == (404, UNKNOWN)


@pytest.mark.req("A-076", "A-188")
async def test_a_refused_initialize_mints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """C-07: only one that has an id and succeeds."""
    stores: list[SessionStore] = []

    def remembered(**options: Any) -> SessionStore:
        stores.append(SessionStore(**options))
        return stores[-1]

    monkeypatch.setattr("typedmcp.transports.http.routes.SessionStore", remembered)
    strict = make(strict=True)
    bad = request("initialize", 0, protocolVersion=1)
    for accept in (BOTH, "application/json"):
        async with bare(strict, sessions=True) as site:
            answer = await site.ask(bad, {"Accept": accept})
            assert "error" in answer.messages[0]
            assert "mcp-session-id" not in answer.headers
            assert len(stores[-1]) == 0


async def test_a_text_that_looks_like_an_error_does_not_prevent_a_session() -> None:
    async with bare(MCPServer(name='"error":', version="1", tools=ToolManager()), sessions=True) as site:
        answer = await site.ask(initialize(), JSON_ONLY)
        assert (await site.ask(request(), {"Mcp-Session-Id": answer.session})).status == 200


@pytest.mark.req("A-202")
async def test_a_valid_session_wins_over_a_fresh_initialize() -> None:
    async with bare(sessions=True) as site:
        session = (await site.ask(initialize())).session
        answer = await site.ask(initialize("2025-03-26"), {"Mcp-Session-Id": session, **JSON_ONLY})
        assert (answer.session, answer.error) == (session, -32600)
        kept = await site.ask(tool("whoami"), {"Mcp-Session-Id": session, **JSON_ONLY})
        assert kept.text.endswith("2025-06-18")


@pytest.mark.req("A-182", "A-183")
async def test_without_the_middleware_and_on_other_paths_nothing_changes() -> None:
    async def other(_: web.Request) -> web.Response:
        return web.Response(text="other")

    app = web.Application(middlewares=[create_mcp_session(path="/elsewhere")])
    app.add_routes(create_mcp_routes(make(strict=False)))
    app.router.add_route("*", "/other", other)
    async with bare() as stateless, serving(app) as site:
        for message in (initialize(), request(), notification()):
            with_it, without = await site.ask(message), await stateless.ask(message)
            assert with_it.body == without.body
            assert "mcp-session-id" not in with_it.headers
        assert (await site.ask(None, method="GET", path="/other")).body == b"other"
        assert (await site.ask(None, method="GET")).status == 405
    async with bare(sessions=True) as site:
        for method in ("PUT", "PATCH"):
            assert (await site.ask(None, method=method)).status == 405


@pytest.mark.req("A-186", "A-191")
async def test_the_body_can_be_read_again_behind_it() -> None:
    seen: list[bytes] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(await request.read())
        return web.json_response({"jsonrpc": "2.0", "id": 0, "result": {}})

    app = web.Application(middlewares=[create_mcp_session()])
    app.router.add_post("/mcp", handler)
    async with serving(app) as site:
        answer = await site.ask(initialize())
        assert (answer.status, len(seen)) == (200, 1)
        assert seen[0].startswith(b'{"jsonrpc"')
        # A handler of anyone's is in a session, too.
        assert (await site.ask(request(), {"Mcp-Session-Id": answer.session})).session == answer.session


@pytest.mark.req("A-188", "A-192")
async def test_a_handler_that_fails_leaves_no_session() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=500)

    app = web.Application(middlewares=[create_mcp_session()])
    app.router.add_post("/mcp", handler)
    async with serving(app) as site:
        answer = await site.ask(initialize())
        assert (answer.status, "mcp-session-id" in answer.headers) == (500, False)


@pytest.mark.req("A-184", "A-198", "A-240", "A-318")
async def test_idle_sessions_end_when_the_store_is_next_used() -> None:
    clock = Clock()
    async with bare(sessions={"ttl": 10.0, "clock": clock}) as site:
        first, second = [(await site.ask(initialize())).session for _ in range(2)]
        clock.now += 9.9
        assert (await site.ask(request(), {"Mcp-Session-Id": first})).status == 200
        clock.now += 0.1  # C-09: at the very end of its time a session is gone
        assert (await site.ask(request(), {"Mcp-Session-Id": second})).status == 404
        assert (await site.ask(request(), {"Mcp-Session-Id": first})).status == 200
        clock.now += 10
        assert (await site.ask(None, {"Mcp-Session-Id": first}, method="DELETE")).status == 404


@pytest.mark.req("A-185", "A-195")
async def test_without_a_ttl_sessions_live_until_delete() -> None:
    clock = Clock()
    async with bare(sessions={"clock": clock}) as site:
        session = {"Mcp-Session-Id": (await site.ask(initialize())).session}
        clock.now += 1e9
        assert (await site.ask(request(), session)).status == 200
        answer = await site.ask(None, session, method="DELETE")
        assert (answer.status, answer.body) == (204, b"")
        for method in ("POST", "GET", "DELETE"):
            assert (await site.ask(request() if method == "POST" else None, session, method=method)).status == 404


@pytest.mark.req("A-184", "H-039")
async def test_a_delete_during_a_request_is_not_undone() -> None:
    tools = Tools()
    async with bare(make(tools, strict=False), sessions={"ttl": 10.0}) as site:
        session = {"Mcp-Session-Id": (await site.ask(initialize())).session}
        wire = await site.connect()
        wire.send(tool("wait"), {**session, **JSON_ONLY})
        await tools.begun.wait()
        assert (await site.ask(None, session, method="DELETE")).status == 204
        assert (await wire.answer()).status == 202
        assert tools.stopped == [1]
        assert (await site.ask(request(), session)).status == 404


@pytest.mark.req("A-184")
async def test_a_long_request_counts_as_use_until_it_ends() -> None:
    tools, clock = Tools(), Clock()
    async with bare(make(tools, strict=False), sessions={"ttl": 10.0, "clock": clock}) as site:
        session = {"Mcp-Session-Id": (await site.ask(initialize())).session}
        wire = await site.connect()
        wire.send(tool("wait"), {**session, **JSON_ONLY})
        await tools.begun.wait()
        clock.now += 8
        tools.go.set()
        assert (await wire.answer()).status == 200
        clock.now += 8
        assert (await site.ask(request(), session)).status == 200


def pushing(push: Callable[[Any], object]) -> Any:
    @web.middleware
    async def middleware(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if request.method == "POST" and MCP_SESSION in request:
            push(request[MCP_SESSION])
        return await handler(request)

    return middleware


@asynccontextmanager
async def sessions_in_reach(**options: Any) -> AsyncIterator[tuple[Site, list[Any]]]:
    """A server whose sessions are handed out, as handlers behind the middleware see them."""
    reached: list[Any] = []
    app = web.Application(middlewares=[create_mcp_session(**options), pushing(reached.append)])
    app.add_routes(create_mcp_routes(make(strict=False)))
    async with serving(app) as site:
        yield site, reached


@pytest.mark.req("A-187", "A-194", "A-199", "A-200", "A-203", "A-204", "A-217", "A-221", "A-241", "A-242", "A-223")
async def test_what_is_pushed_reaches_every_stream_of_the_session() -> None:
    async with sessions_in_reach() as (site, reached):
        session = {"Mcp-Session-Id": (await site.ask(initialize())).session}
        first, second = await site.listen(session), await site.listen(session)
        assert first.headers["mcp-session-id"] == session["Mcp-Session-Id"]
        assert first.headers["cache-control"] == "no-cache, no-transform"
        (own,) = set(reached)
        note = notification("notifications/tools/list_changed")
        assert own.id == session["Mcp-Session-Id"]
        assert own.push(note) == "1"
        for wire in (first, second):
            event = await wire.event()
            assert event is not None
            assert (event.id, event.event) == ("1", "")
            assert event.data == '{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}'
        assert [entry.id for entry in own.replay("0")] == []
        third = await site.listen(session, **{"Last-Event-ID": "1"})
        assert own.push(note) == "2"
        for wire in (first, second, third):
            event = await wire.event()
            assert event is not None
            assert event.id == "2"


@pytest.mark.req("A-207", "A-211", "A-215", "A-218", "A-221", "A-230", "A-231", "H-047")
async def test_what_was_missed_is_replayed_before_what_comes() -> None:
    async with sessions_in_reach() as (site, reached):
        session = {"Mcp-Session-Id": (await site.ask(initialize())).session}
        for number in range(40):
            reached[0].push(notification("n", number=number))
        wire = await site.listen(session, **{"Last-Event-ID": "10"})  # the thirty-sixth, in base 36
        fresh = await site.listen(session)
        reached[0].push(notification("n", number="live"))
        events = [await wire.event() for _ in range(5)]
        assert [event and event.id for event in events] == ["11", "12", "13", "14", "15"]
        event = await fresh.event()
        assert event is not None
        assert event.id == "15"


@pytest.mark.req("A-212")
@pytest.mark.parametrize("cursor", ["unknown", "0", "zz", "1 ", "€"])
async def test_an_unknown_cursor_replays_nothing(cursor: str) -> None:
    async with sessions_in_reach() as (site, reached):
        session = {"Mcp-Session-Id": (await site.ask(initialize())).session}
        reached[0].push(notification("missed"))
        wire = await site.listen(session, **{"Last-Event-ID": cursor})
        reached[0].push(notification("live"))
        assert (await wire.message())["method"] == "live"


@pytest.mark.req("A-216", "A-222")
async def test_a_stream_that_has_gone_is_let_go() -> None:
    async with sessions_in_reach() as (site, reached):
        session = {"Mcp-Session-Id": (await site.ask(initialize())).session}
        wire = await site.listen(session)
        wire.drop()
        for _ in range(3):
            reached[0].push(notification("into the void"))
        await until(lambda: not reached[0]._streams)
        assert not reached[0].live.busy


@pytest.mark.req("A-177", "A-205")
async def test_answers_take_no_ids_from_what_is_pushed() -> None:
    async with sessions_in_reach() as (site, reached):
        session = {"Mcp-Session-Id": (await site.ask(initialize("2025-11-25"))).session}
        answer = await site.ask(tool("quick", token=1), session)
        assert [event.id for event in answer.events] == [None, None, None]
        assert reached[0].push(notification("first")) == "1"


@pytest.mark.req("A-193", "A-194", "H-025")
async def test_a_get_must_take_an_event_stream() -> None:
    """C-21: 406, and the session is not touched by it."""
    clock = Clock()
    async with bare(sessions={"ttl": 10.0, "clock": clock}) as site:
        session = {"Mcp-Session-Id": (await site.ask(initialize())).session}
        clock.now += 9
        answer = await site.ask(None, {**session, "Accept": "application/json"}, method="GET")
        assert answer.status == 406
        clock.now += 1
        assert (await site.ask(request(), session)).status == 404
        session = {"Mcp-Session-Id": (await site.ask(initialize())).session}
        for accept in ("*/*", "text/*", None):
            wire = await site.open(None, {**session, "Accept": accept}, method="GET")
            assert wire.status == 200


@pytest.mark.req("H-029")
async def test_a_session_without_resumption_still_runs_on_and_can_be_cancelled() -> None:
    tools = Tools()
    async with bare(make(tools, strict=False), sessions=True) as site:
        session = {"Mcp-Session-Id": (await site.ask(initialize())).session}
        wire = await site.open(tool("steps", 5, token=1, after=1), session)
        await tools.begun.wait()
        wire.drop()
        await asyncio.sleep(0.4)
        assert tools.stopped == []
        tools.go.set()
        await until(lambda: tools.ended == [5])
        tools.begun.clear()
        tools.go.clear()
        wire = await site.open(tool("wait", 6), session)
        await tools.begun.wait()
        assert (await site.ask(cancel(6), session)).status == 202
        assert await wire.event() is None
        assert tools.stopped == [6]


@pytest.mark.req("A-179")
async def test_requests_of_2026_07_28_pass_untouched() -> None:
    async with bare(sessions=True) as site:
        message = modern(tool("add"))
        for extra in ({}, {"Mcp-Session-Id": "unknown"}):
            answer = await site.ask(message, {**modern_headers(message), **extra})
            assert (answer.status, "mcp-session-id" in answer.headers) == (200, False)


@pytest.mark.req("A-196")
async def test_a_websocket_at_the_same_path_is_a_session_by_itself() -> None:
    server = make(strict=False)
    app = web.Application(middlewares=[create_mcp_session()])
    app.add_routes([*create_mcp_routes(server), *create_websocket_routes(server)])
    async with serving(app) as site:
        headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
        wire = await site.open(None, {**headers, "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}, method="GET")
        assert (wire.status, "mcp-session-id" in wire.headers) == (101, False)
        assert (await site.ask(None, method="GET")).status == 404


async def test_keep_alive_comments_come_while_nothing_else_does() -> None:
    async with sessions_in_reach(keep_alive=0.05) as (site, _):
        session = {"Mcp-Session-Id": (await site.ask(initialize())).session}
        wire = await site.listen(session)
        assert await wire.raw_chunk() == b": keep-alive\n\n"
        assert await wire.raw_chunk() == b": keep-alive\n\n"


@pytest.mark.req("A-238", "A-240")
def test_the_options_types_are_the_keyword_arguments() -> None:
    for function, options in (
        (create_mcp_routes, http.HTTPTransportOptions),
        (create_mcp_session, http.MCPSessionOptions),
    ):
        keywords = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
        assert list(options.__annotations__) == keywords
