"""Sessions of the handshake era: ids, logs and stores by themselves, then over HTTP in the safe profile."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import tracemalloc
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from http_tools import (
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

from typedmcp import App
from typedmcp.core.connection import Handshake
from typedmcp.core.errors import ConnectionClosed, InvalidResult, MCPError, RequestTimeout
from typedmcp.transports import http
from typedmcp.transports.http import create_app
from typedmcp.transports.http.app import ENDPOINT
from typedmcp.transports.http.live import LiveSession
from typedmcp.transports.http.sessions import MCPSession, base36
from typedmcp.transports.http.store import MCPSessionEntry, SessionStore
from typedmcp_wire.types.base import ClientCapabilities, Implementation

JSON_ONLY = {"Accept": "application/json"}


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Stream:
    """An attached stream that remembers."""

    def __init__(self) -> None:
        self.got: list[tuple[str, bytes]] = []

    def send_event(self, event_id: str, message: bytes) -> None:
        self.got.append((event_id, message))


# -- a session by itself -----------------------------------------------------------------------------------------------


@pytest.mark.req("A-205", "A-213")
def test_ids_are_base_36_and_compare_by_position() -> None:
    assert [base36(number) for number in (0, 1, 9, 10, 35, 36, 1295, 1296)] == [
        "0", "1", "9", "a", "z", "10", "zz", "100"
    ]  # fmt: skip
    session = MCPSession("s")
    ids = [session.push(notification("n")) for _ in range(50)]
    assert ids == [base36(number) for number in range(1, 51)]
    assert sorted(ids) != ids
    for position, cursor in enumerate(ids):
        assert [entry.id for entry in session.replay(cursor)] == ids[position + 1 :]


@pytest.mark.req("A-203", "A-204", "A-206", "A-207", "A-214", "A-219", "A-220", "A-221")
def test_a_push_is_kept_and_fanned_out() -> None:
    clock = Clock()
    session, first, second = MCPSession("s", clock=clock), Stream(), Stream()
    note = {"jsonrpc": "2.0", "method": "ünïcode", "params": {"\u2028": 1}}
    text = '{"jsonrpc":"2.0","method":"ünïcode","params":{"\\u2028":1}}'.encode()
    assert session.push(note) == "1"
    session.attach(first)
    session.attach(first)
    session.attach(second)
    assert session.push(note) == "2"
    session.detach(second)
    session.detach(second)
    assert session.push(note) == "3"
    assert (first.got, second.got) == ([("2", text), ("3", text)], [("2", text)])
    entry = session.replay("1")[0]
    assert (entry.id, entry.message, entry.timestamp) == ("2", text, 100.0)


@pytest.mark.req("A-208", "A-227", "A-212")
def test_the_log_is_bounded_in_number() -> None:
    assert http.DEFAULT_MCP_SESSION_CAPACITY == 1024
    session = MCPSession("s", capacity=3)
    for _ in range(5):
        session.push(notification("n"))
    assert [entry.id for entry in session.replay("3")] == ["4", "5"]
    assert session.replay("2") == []
    assert session.replay("nonsense") == []


@pytest.mark.req("A-209", "A-210", "A-228")
def test_the_log_is_bounded_in_age() -> None:
    """By a time of its own, which has nothing to do with the session's."""
    assert http.DEFAULT_MCP_SESSION_TTL == 300.0
    clock = Clock()
    (session := MCPSession("s", clock=clock)).push(notification("n"))
    clock.now += 299.9
    session.push(notification("n"))
    assert len(session.replay("1")) == 1
    clock.now += 0.1
    assert session.replay("1") == []
    assert session.stream_of("1") is None
    assert session.push(notification("n")) == "3"
    assert len(session.replay("2")) == 1
    own = MCPSession("t", clock=clock, event_ttl=1.0)
    own.push(notification("n"))
    clock.now += 1
    assert own.stream_of("1") is None
    stored = SessionStore(ttl=1.0, clock=clock).create()
    assert stored._event_ttl == 300.0


def test_the_log_is_bounded_in_bytes_and_keeps_the_newest() -> None:
    session = MCPSession("s", max_bytes=100)
    for _ in range(10):
        session.push(b"x" * 40)
    assert [entry.id for entry in session.replay("9")] == ["a"]
    assert session.stream_of("8") is None
    session.push(b"y" * 1000)
    assert session.stream_of("a") is None
    assert session.stream_of("b") == ""
    session.push(b"z")
    assert session.stream_of("b") is None
    assert session._bytes == 1


@pytest.mark.req("H-033", "A-204")
def test_without_fan_out_the_stream_attached_last_gets_a_message() -> None:
    """C-05.  An older one may be dead without anybody having noticed."""
    session, old, new = MCPSession("s", fan_out=False), Stream(), Stream()
    session.attach(old)
    session.attach(new)
    session.push(notification("n"))
    assert (len(old.got), len(new.got)) == (0, 1)
    session.detach(new)
    session.push(notification("n"))
    assert (len(old.got), len(new.got)) == (1, 1)


@pytest.mark.req("H-043", "H-048")
def test_a_replay_holds_the_messages_of_one_stream() -> None:
    session = MCPSession("s")
    ids = [session.push(notification(str(n)), stream) for n, stream in enumerate(["", "1", "", "2", "1", ""])]
    assert len(set(ids)) == 6
    assert [entry.id for entry in session.replay("1")] == ["3", "6"]
    assert [entry.id for entry in session.replay("2")] == ["5"]
    assert session.replay("4") == []
    mark = session.mark("3")
    assert session.replay(mark) == []
    session.push(notification("x"), "3")
    assert [entry.id for entry in session.replay(mark)] == ["8"]


# -- a store -----------------------------------------------------------------------------------------------------------


@pytest.mark.req("A-181", "A-201", "A-243", "H-036", "A-319")
def test_a_store_holds_entries_under_random_ids() -> None:
    clock = Clock()
    store = SessionStore(clock=clock)
    sessions = [store.create() for _ in range(100)]
    assert len({session.id for session in sessions}) == 100
    assert {uuid.UUID(session.id).version for session in sessions} == {4}
    assert len(store) == 0
    assert store.find(sessions[0].id) is None
    store.keep(sessions[0])
    assert store.find(sessions[0].id) is sessions[0]
    assert store._entries[sessions[0].id] == MCPSessionEntry(sessions[0], 100.0)


@pytest.mark.req("H-042")
def test_a_session_is_unknown_to_other_principals() -> None:
    store = SessionStore()
    store.keep(session := store.create("ann"))
    assert store.find(session.id, "ann") is session
    assert store.find(session.id, "bob") is None
    assert store.find(session.id) is None


async def test_eviction_ends_what_a_session_runs() -> None:
    clock = Clock()
    store = SessionStore(ttl=10.0, clock=clock)
    store.keep(session := store.create())
    live = LiveSession(session)
    clock.now += 10
    assert len(store) == 1
    assert not store.full
    assert len(store) == 0
    assert live.closed


async def test_an_idle_session_takes_less_than_four_kilobytes() -> None:
    store = SessionStore(ttl=10.0, limit=100_000, fan_out=False)

    def open_one(number: int) -> None:
        store.keep(session := store.create())
        live = LiveSession(session, resumable=True, retry_ms=1000)
        info = Implementation(name=f"client {number}", version="1")
        live.handshake = Handshake(revision="2025-06-18", client_info=info, capabilities=ClientCapabilities())
        live.runs(1)
        session.replay("1")

    open_one(0)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1000):
            open_one(number)
        gc.collect()
        assert (tracemalloc.get_traced_memory()[0] - before) / 1000 < 2048
    finally:
        tracemalloc.stop()


# -- over HTTP, safe profile -------------------------------------------------------------------------------------------


@asynccontextmanager
async def safe(tools: Tools | None = None, **options: Any) -> AsyncIterator[Site]:
    server = make(tools, **{k: options.pop(k) for k in ("protocol_versions",) if k in options})
    app = create_app(server, **options)
    async with serving(app, handler_cancellation=True) as site:
        site.endpoint = app[ENDPOINT]
        yield site


@pytest.mark.req("H-023", "H-038", "H-039", "A-195", "M-088")
async def test_missing_is_400_and_unknown_or_ended_is_404() -> None:
    async with safe() as site:
        session = await site.handshake()
        for message in (request(), notification(), {"jsonrpc": "2.0", "id": 1, "result": {}}):
            assert (await site.ask(message)).status == 400
            assert (await site.ask(message, {"Mcp-Session-Id": "unknown"})).status == 404
            assert (await site.ask(message, session)).status in (200, 202)
        # A client that knows its session has ended starts anew without its id.
        assert (await site.ask(initialize(), {"Mcp-Session-Id": "unknown"})).status == 404
        assert (await site.ask(None, method="DELETE")).status == 400
        assert (await site.ask(None, {"Mcp-Session-Id": "unknown"}, method="DELETE")).status == 404
        assert (await site.ask(None, {"Mcp-Session-Id": "unknown"}, method="GET")).status == 404
        assert (await site.ask(None, session, method="DELETE")).status == 204
        for method in ("POST", "GET", "DELETE"):
            answer = await site.ask(request() if method == "POST" else None, session, method=method)
            assert (answer.status, answer.error) == (404, -32600)


@pytest.mark.req("H-023")
async def test_a_get_without_a_session_is_405() -> None:
    """Clients look for a stream before they have a session, and take only this for "none here"."""
    async with safe() as site:
        answer = await site.ask(None, method="GET")
        assert (answer.status, answer.headers["allow"]) == (405, "POST")


@pytest.mark.req("H-036", "H-007")
@pytest.mark.parametrize("version", ["2024-11-05", *HANDSHAKE])
async def test_a_session_speaks_the_revision_agreed_on(version: str) -> None:
    async with safe() as site:
        session = await site.handshake(version)
        assert (await site.ask(tool("whoami"), session)).text == f"None {version}"
        # F: a client may leave the header out; the session knows.
        without = {**session, "MCP-Protocol-Version": None}
        assert (await site.ask(tool("whoami"), without)).text == f"None {version}"


@pytest.mark.req("H-027", "H-026")
@pytest.mark.parametrize("version", ["2019-01-01", "banana", "", "2025-06-18, 2025-06-18"])
async def test_an_unsupported_version_header_is_400_on_every_method(version: str) -> None:
    async with safe() as site:
        session = {**await site.handshake(), "MCP-Protocol-Version": version}
        for message in (request(), notification(), {"jsonrpc": "2.0", "id": 1, "result": {}}):
            assert (await site.ask(message, session)).status == 400
        for method in ("GET", "DELETE"):
            assert (await site.ask(None, session, method=method)).status == 400
    async with safe(protocol_versions=("2025-06-18",)) as site:
        session = {**await site.handshake(), "MCP-Protocol-Version": "2025-11-25"}
        for message in (request(), notification(), {"jsonrpc": "2.0", "id": 1, "result": {}}):
            assert (await site.ask(message, session)).status == 400
        assert (await site.ask(None, session, method="GET")).status == 400


async def test_get_and_delete_do_not_exist_at_2026_07_28() -> None:
    async with safe() as site:
        session = {**await site.handshake(), "MCP-Protocol-Version": "2026-07-28"}
        for method in ("GET", "DELETE"):
            answer = await site.ask(None, session, method=method)
            assert (answer.status, answer.headers["allow"]) == (405, "POST")


async def test_the_body_of_initialize_decides_about_the_version() -> None:
    async with safe() as site:
        answer = await site.ask(initialize("2025-11-25"), {"MCP-Protocol-Version": "2025-03-26"})
        assert answer.messages[0]["result"]["protocolVersion"] == "2025-11-25"
        answer = await site.ask(tool("whoami"), {"Mcp-Session-Id": answer.session})
        assert answer.text == "None 2025-11-25"


@pytest.mark.req("H-036", "A-188")
@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "application/json"])
async def test_a_refused_initialize_opens_no_session(accept: str) -> None:
    async with safe() as site:
        answer = await site.ask(request("initialize", 0, protocolVersion=1), {"Accept": accept})
        assert (answer.status, answer.messages[0]["error"]["code"]) == (200, -32602)
        assert "mcp-session-id" not in answer.headers
        assert len(site.endpoint.sessions) == 0
        assert (await site.ask(notification("initialize"))).status == 400


@pytest.mark.req("H-036")
async def test_a_second_initialize_in_a_session_is_refused_and_changes_nothing() -> None:
    async with safe() as site:
        session = await site.handshake("2025-06-18")
        answer = await site.ask(initialize("2025-03-26"), {**session, **JSON_ONLY})
        assert (answer.status, answer.error) == (200, -32600)
        assert (await site.ask(tool("whoami"), session)).text == "None 2025-06-18"


@pytest.mark.req("H-042")
async def test_a_session_belongs_to_whoever_opened_it() -> None:
    """Its id is no proof of anything."""
    tools = Tools()
    async with safe(tools, identify=lambda request: request.headers.get("Authorization")) as site:
        ann = await site.handshake(Authorization="ann")
        bob = {**ann, "Authorization": "bob"}
        assert (await site.ask(tool("whoami"), ann)).text == "ann 2025-06-18"
        wire = await site.connect()
        wire.send(tool("wait", 5), {**ann, **JSON_ONLY})
        await tools.begun.wait()
        for other in (bob, {**ann, "Authorization": None}):
            for message in (request(), cancel(5), notification()):
                assert (await site.ask(message, other)).status == 404
            for method in ("GET", "DELETE"):
                assert (await site.ask(None, other, method=method)).status == 404
        assert tools.stopped == []
        tools.go.set()
        assert (await wire.answer()).status == 200


@pytest.mark.req("H-041", "H-039")
async def test_delete_ends_streams_and_requests() -> None:
    tools = Tools()
    async with safe(tools) as site:
        session = await site.handshake()
        listening = await site.listen(session)
        streamed = await site.open(tool("steps", 1, token=1), session)
        await streamed.message()
        plain = await site.connect()
        plain.send(tool("wait", 2), {**session, **JSON_ONLY})
        await until(lambda: len(tools.contexts) == 2)
        assert (await site.ask(None, session, method="DELETE")).status == 204
        assert await listening.event() is None
        await streamed.message()
        assert await streamed.event() is None
        assert (await plain.answer()).status == 202
        await until(lambda: sorted(map(str, tools.stopped)) == ["1", "2"])
        assert len(site.endpoint.sessions) == 0
    async with safe() as site:
        for _ in range(100):
            session = {"Mcp-Session-Id": (await site.ask(initialize())).session}
            assert (await site.ask(None, session, method="DELETE")).status == 204
        assert len(site.endpoint.sessions) == 0


async def test_one_session_too_many_is_503_until_one_has_ended() -> None:
    async with safe(max_sessions=2) as site:
        first = await site.handshake()
        await site.handshake()
        refused = await site.ask(initialize())
        assert (refused.status, refused.kind) == (503, "application/json")
        assert "mcp-session-id" not in refused.headers
        assert (await site.ask(request(), first)).status == 200
        await site.ask(None, first, method="DELETE")
        await site.handshake()
        # Nothing of the sort is in the way of those who need no session.
        assert (await site.ask_modern(tool("add"))).status == 200


async def test_idle_sessions_end_but_an_open_stream_is_use() -> None:
    tools = Tools()
    async with safe(tools, session_idle=0.3) as site:
        idle, listening, running = [await site.handshake() for _ in range(3)]
        wire = await site.listen(listening)
        busy = await site.open(tool("wait", 1), running)
        await asyncio.sleep(0.5)
        assert (await site.ask(request(), idle)).status == 404
        assert (await site.ask(request(), listening)).status == 200
        assert (await site.ask(request(request_id=2), running)).status == 200
        wire.drop()
        tools.go.set()
        assert (await busy.message())["id"] == 1
        await asyncio.sleep(0.5)
        for session in (listening, running):
            assert (await site.ask(request(), session)).status == 404


# -- streams -----------------------------------------------------------------------------------------------------------


@pytest.mark.req("H-044", "H-045")
@pytest.mark.parametrize("version", ["2024-11-05", *HANDSHAKE])
async def test_streams_begin_with_an_id_for_clients_that_know_of_it(version: str) -> None:
    async with safe() as site:
        session = await site.handshake(version)
        events = (await site.ask(tool("add", 1), session)).events
        if version == "2025-11-25":
            first = events.pop(0)
            assert (first.data, first.retry) == ("", 1000)
            assert first.id is not None
        (answer,) = events
        assert json.loads(answer.data)["id"] == 1
        assert answer.id is not None


@pytest.mark.req("H-044", "H-045", "H-047")
async def test_a_stream_got_by_get_can_be_resumed_from_its_beginning() -> None:
    async with safe() as site:
        session = await site.handshake("2025-11-25")
        first = await (await site.listen(session)).event()
        assert first is not None
        assert (first.data, first.retry) == ("", 1000)
        state = site.endpoint.sessions.find(session["Mcp-Session-Id"])
        state.push(notification("missed"))
        wire = await site.listen(session, **{"Last-Event-ID": first.id or ""})
        event = await wire.event()
        assert event is not None
        assert "missed" in event.data
        old = await site.handshake("2025-06-18")
        wire = await site.listen(old)
        site.endpoint.sessions.find(old["Mcp-Session-Id"]).push(notification("n"))
        event = await wire.event()
        assert event is not None
        assert "n" in event.data


@pytest.mark.req("H-032", "H-033")
async def test_what_an_app_announces_reaches_the_sessions_that_listen() -> None:
    app = App("announcer", "1")

    @app.tool
    def one() -> str:
        return "1"

    @app.resource("a://b")
    def resource() -> str:
        return "text"

    async with serving(create_app(app)) as site:
        session = await site.handshake()
        watching = await site.ask(request("resources/subscribe", 1, uri="a://b"), {**session, **JSON_ONLY})
        assert watching.json["result"] == {}
        wire = await site.listen(session)
        app.notify_resource_updated("a://b")
        told = await wire.message()
        assert (told["method"], told["params"]["uri"]) == ("notifications/resources/updated", "a://b")
        app.remove_tool("one")
        assert (await wire.message())["method"] == "notifications/tools/list_changed"
        await site.ask(None, session, method="DELETE")
        app.notify_resource_updated("a://b")
        assert await wire.event() is None


@pytest.mark.req("H-031", "H-043")
async def test_ids_are_unique_over_the_session_and_the_answer_ends_the_stream() -> None:
    async with safe() as site:
        session = await site.handshake("2025-11-25")
        answers = await asyncio.gather(*(site.ask(tool("quick", n, token=n), session) for n in range(1, 6)))
        ids = [event.id for answer in answers for event in answer.events]
        assert len(ids) == len(set(ids)) == 5 * 4
        for number, answer in enumerate(answers, 1):
            *progress, last = answer.messages
            assert [message["params"]["progressToken"] for message in progress] == [number, number]
            assert last["id"] == number


@pytest.mark.req("H-047", "H-048", "H-032", "H-029")
async def test_a_post_that_broke_is_resumed_by_a_get() -> None:
    tools = Tools()
    async with safe(tools) as site:
        session = await site.handshake("2025-11-25")
        other = await site.listen(session)
        wire = await site.open(tool("steps", 1, token=1, after=1), session)
        prime, first, second = [await wire.event() for _ in range(3)]
        assert prime is not None
        assert first is not None
        assert second is not None
        wire.drop()
        await asyncio.sleep(0.1)
        site.endpoint.sessions.find(session["Mcp-Session-Id"]).push(notification("n"))
        resumed = await site.listen(session, **{"Last-Event-ID": first.id or ""})
        again = await resumed.event()
        assert again == second
        tools.go.set()
        assert (await resumed.message())["params"]["progress"] == 3
        assert (await resumed.message())["id"] == 1
        assert await resumed.event() is None
        # All of it is still there, and nothing but it.
        late = await site.listen(session, **{"Last-Event-ID": prime.id or ""})
        assert [m["params"]["progress"] for m in [await late.message() for _ in range(3)]] == [1, 2, 3]
        assert (await late.message())["id"] == 1
        assert await late.event() is None
        assert (await other.message())["method"] == "n"
        other.drop()


@pytest.mark.req("H-033", "H-047")
async def test_who_resumes_takes_the_stream_over() -> None:
    """The old connection may be dead without the server having noticed."""
    tools = Tools()
    async with safe(tools) as site:
        session = await site.handshake("2025-11-25")
        old = await site.open(tool("steps", 1, token=1, before=1), session)
        prime = await old.event()
        assert prime is not None
        assert await old.event() is not None
        new = await site.listen(session, **{"Last-Event-ID": prime.id or ""})
        assert (await new.message())["params"]["progress"] == 1
        assert await old.event() is None
        tools.go.set()
        assert (await new.message())["id"] == 1
        assert await new.event() is None


@pytest.mark.req("H-048")
async def test_a_reused_id_does_not_mix_streams() -> None:
    """A widely used client sends id 1 for everything."""
    async with safe() as site:
        session = await site.handshake("2025-11-25")
        first = (await site.ask(tool("add", 1, a=1, b=1), session)).events
        await site.ask(tool("add", 1, a=2, b=2), session)
        resumed = await site.listen(session, **{"Last-Event-ID": first[0].id or ""})
        assert await resumed.event() == first[1]
        assert await resumed.event() is None


@pytest.mark.req("H-032", "H-031", "M-131")
async def test_nothing_of_a_request_comes_on_a_get_stream() -> None:
    async with safe() as site:
        session = await site.handshake()
        wire = await site.listen(session)
        assert len((await site.ask(tool("quick", 1, token=1), session)).messages) == 3
        await site.ask(tool("quick", 2, token=1), {**session, **JSON_ONLY})
        site.endpoint.sessions.find(session["Mcp-Session-Id"]).live.notify("notifications/tools/list_changed")
        assert await wire.message() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        wire.drop()


@pytest.mark.req("H-033", "H-034")
async def test_a_message_goes_out_on_one_stream() -> None:
    async with safe() as site:
        session = await site.handshake()
        first, second = await site.listen(session), await site.listen(session)
        state = site.endpoint.sessions.find(session["Mcp-Session-Id"])
        state.push(notification("one"))
        assert (await second.message())["method"] == "one"
        second.drop()
        await until(lambda: len(state._streams[""]) == 1)
        state.push(notification("two"))
        assert (await first.message())["method"] == "two"


async def test_streaming_can_be_switched_off() -> None:
    async with safe(streaming=False) as site:
        answer = await site.ask(initialize())
        assert answer.kind == "application/json"
        session = {"Mcp-Session-Id": answer.session}
        assert (await site.ask(tool("quick", token=1), session)).kind == "application/json"
        # Who takes nothing else cannot be served.
        refused = await site.ask(tool("add"), {**session, "Accept": "text/event-stream"})
        assert (refused.status, refused.error) == (406, -32600)


# -- requests of the server --------------------------------------------------------------------------------------------


@pytest.mark.req("H-035", "H-024", "H-031")
async def test_the_client_answers_a_question_in_a_post_of_its_own() -> None:
    tools = Tools()
    async with safe(tools) as site:
        session = await site.handshake()
        wire = await site.open(tool("ask", 1), session)
        question = await wire.message()
        assert question["method"] == "roots/list"
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///r"}]}}
        other = await site.handshake()
        assert (await site.ask(answer, other)).status == 202  # another session's answer is none
        taken = await site.ask(answer, session)
        assert (taken.status, taken.body) == (202, b"")
        assert (await wire.message())["id"] == 1
        assert tools.answers[0].roots[0].uri == "file:///r"
        assert (await site.ask(answer, session)).status == 202


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"error": {"code": -1, "message": "no", "data": 7}}, MCPError),
        ({"result": {"roots": 7}}, InvalidResult),
        (None, RequestTimeout),
    ],
)
async def test_a_question_can_fail(answer: dict[str, Any] | None, expected: type[Exception]) -> None:
    tools = Tools()
    async with safe(tools) as site:
        session = await site.handshake()
        wire = await site.open(tool("ask", 1, timeout=20 if answer else 0.05), session)
        question = await wire.message()
        if answer:
            await site.ask({"jsonrpc": "2.0", "id": question["id"], **answer}, session)
        else:
            told = await wire.message()
            assert told["method"] == "notifications/cancelled"
            assert told["params"]["requestId"] == question["id"]
        assert (await wire.message())["id"] == 1
        assert isinstance(tools.answers[0], expected)


async def test_a_question_ends_with_its_session() -> None:
    tools = Tools()
    async with safe(tools) as site:
        session = await site.handshake()
        wire = await site.open(tool("ask", 1), session)
        await wire.message()
        await site.ask(None, session, method="DELETE")
        await until(lambda: tools.answers or tools.stopped)
        assert tools.stopped or isinstance(tools.answers[0], ConnectionClosed)


async def test_a_client_without_a_stream_cannot_be_asked(caplog: pytest.LogCaptureFixture) -> None:
    tools = Tools()
    caplog.set_level(logging.CRITICAL, "typedmcp")
    async with safe(tools) as site:
        session = await site.handshake()
        answer = await site.ask(tool("ask", 1), {**session, **JSON_ONLY})
        assert answer.error == -32603
        answer = await site.ask_modern(tool("ask", 1))
        assert (answer.status, answer.error) == (500, -32603)
        assert [type(error).__name__ for error in tools.answers] == ["UsageError", "UsageError"]


# -- ids in flight and batches -----------------------------------------------------------------------------------------


@pytest.mark.req("H-010")
@pytest.mark.parametrize("accept", ["application/json", "application/json, text/event-stream"])
async def test_an_id_in_flight_is_refused_and_the_first_goes_on(accept: str) -> None:
    tools = Tools()
    async with safe(tools) as site:
        session = await site.handshake()
        wire = await site.connect()
        wire.send(tool("wait", 1), {**session, "Accept": accept})
        await tools.begun.wait()
        for message in (tool("add", 1), [tool("add", 1)]):
            second = await site.ask(message, session)
            assert second.status == 400
            assert second.error == -32600
        assert (await site.ask(tool("add", "1"), session)).status == 200  # 1 and "1" are two ids
        # Another session's requests have nothing to do with it.
        assert (await site.ask(tool("add", 1), await site.handshake())).status == 200
        tools.go.set()
        assert (await wire.answer()).text == "went on"
        assert (await site.ask(tool("add", 1), session)).status == 200


async def test_requests_in_flight_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typedmcp.transports.http.handshake.DEFAULT_MAX_IN_FLIGHT", 2)
    tools = Tools()
    async with safe(tools) as site:
        session = await site.handshake()
        wires = [await site.open(tool("wait", number), session) for number in (1, 2)]
        answer = await site.ask(tool("add", 3), session)
        assert (answer.status, answer.error) == (429, -32603)
        tools.go.set()
        for wire in wires:
            await wire.message()
        assert (await site.ask(tool("add", 3), session)).status == 200


@pytest.mark.req("H-014", "H-015", "H-016", "H-017")
async def test_batches_of_2025_03_26() -> None:
    tools = Tools()
    tools.go.set()
    async with safe(tools) as site:
        session = await site.handshake("2025-03-26")
        batch = [
            tool("steps", 1, token="t"),
            request("ping", "2"),
            notification(),
            initialize(request_id=3),
            {"jsonrpc": "2.0", "id": 4},
            17,
            request("no/such", 5),
            {"jsonrpc": "2.0", "id": "server-1", "result": {}},
        ]
        plain = await site.ask(batch, {**session, **JSON_ONLY})
        assert (plain.status, plain.session) == (200, session["Mcp-Session-Id"])
        codes = {m["id"]: m.get("error", {}).get("code") for m in plain.json}
        assert codes == {1: None, "2": None, 3: -32600, 4: -32600, None: -32600, 5: -32601}
        assert len(plain.json) == 6
        streamed = await site.ask(batch, session)
        assert streamed.kind == "text/event-stream"
        messages = streamed.messages
        assert sum("method" in message for message in messages) == 2
        assert {m["id"] for m in messages if "id" in m} == set(codes)
        only_notes = await site.ask([notification(), notification()], session)
        assert (only_notes.status, only_notes.body) == (202, b"")
        for bad in ([], "[{}", "[1,"):
            answer = await site.ask(raw=bad.encode() if isinstance(bad, str) else b"[]", headers=session)
            assert answer.status == 400


@pytest.mark.req("M-018", "H-014")
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
async def test_a_batch_is_no_message_of_other_revisions(version: str) -> None:
    async with safe() as site:
        session = await site.handshake(version)
        answer = await site.ask([request()], session)
        assert (answer.status, answer.error) == (400, -32600)
        assert (await site.ask([modern(request())], modern_headers(request()))).status == 400


@pytest.mark.req("H-014", "H-029", "H-030")
async def test_members_of_a_batch_run_on_and_can_be_cancelled() -> None:
    tools = Tools()
    async with safe(tools) as site:
        session = await site.handshake("2025-03-26")
        for accept in ("application/json", "application/json, text/event-stream"):
            tools.begun.clear()
            wire = await site.connect()
            wire.send([tool("wait", 1), tool("wait", 2)], {**session, "Accept": accept})
            await tools.begun.wait()
            await site.ask(cancel(1), session)
            await until(lambda: tools.stopped == [1])
            wire.drop()
            await asyncio.sleep(0.4)
            assert tools.stopped == [1]
            tools.go.set()
            await until(lambda: tools.ended == [2])
            tools.go.clear()
            tools.stopped.clear()
            tools.ended.clear()
