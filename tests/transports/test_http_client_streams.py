"""The client's side of HTTP where streams break, resume and are listened to, and where sessions begin and end."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from http_client_peer import (
    INITIALIZED,
    OPEN,
    QUICK,
    Peer,
    Seen,
    answer,
    event,
    initialized,
    modern,
    peer,
    result,
    running,
    told,
    until,
)
from msgspec import json
from transport_fakes import Inbox, call

from typedmcp import connect
from typedmcp.core.errors import MessageError, RequestLost, SessionLost
from typedmcp.core.jsonrpc import JSONRPCRequest
from typedmcp.transports.http.client import HTTPClientTransport, Reconnect

NOTE = json.encode({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": 1}})
PRIMED = b"id: 0\nretry: 10\ndata:\n\n"


async def opened(transport: HTTPClientTransport, inbox: Inbox) -> None:
    await transport.send(OPEN)
    assert (await inbox.message()).id == 0
    await transport.send(INITIALIZED)


def gets(*answers: Callable[[Seen], Awaitable[web.StreamResponse]]) -> Callable[[Seen], Awaitable[web.StreamResponse]]:
    """Answers GETs in turn, the last one again and again."""
    waiting = list(answers)

    async def get(seen: Seen) -> web.StreamResponse:
        return await (waiting.pop(0) if len(waiting) > 1 else waiting[0])(seen)

    return get


async def refused(seen: Seen) -> web.StreamResponse:
    return web.Response(status=405)


def streaming(*parts: bytes, hold: bool = False) -> Callable[[Seen], Awaitable[web.StreamResponse]]:
    async def get(seen: Seen) -> web.StreamResponse:
        response = await seen.stream(*parts)
        if hold:
            await asyncio.sleep(30)
        return response

    return get


# -- a stream that ends without the answer -----------------------------------------------------------------------------


@pytest.mark.req("H-046", "H-047", "H-026")
async def test_a_stream_that_ends_is_resumed_after_the_wait_asked_for() -> None:
    when: list[float] = []

    async def post(seen: Seen) -> web.StreamResponse:
        if seen.message["method"] != "echo":
            return initialized(seen, revision="2025-06-18")
        response = await seen.stream(b"id: a\nretry: 300\ndata:\n\n", event(NOTE, id="b"))
        when.append(time.monotonic())
        return response

    async def get(seen: Seen) -> web.StreamResponse:
        when.append(time.monotonic())
        return await seen.stream(event(result(1, ok=True), id="c"))

    async with peer(post, get) as there, running(there.url, listen=False) as (transport, inbox):
        await opened(transport, inbox)
        await transport.send(call(1))
        assert (await inbox.message()).method == "notifications/message"
        assert told(await inbox.message()) == {"ok": True}
        [resumed] = there.of("GET")
        assert resumed.headers["Last-Event-ID"] == "b"
        assert resumed.headers["Mcp-Session-Id"] == "s-1"
        assert resumed.headers["MCP-Protocol-Version"] == "2025-06-18"
        assert resumed.headers["Accept"] == "text/event-stream"
        assert "Content-Type" not in resumed.headers
        assert 0.3 <= when[1] - when[0] < 2
        assert inbox.queue.empty()


@pytest.mark.req("H-047", "M-136")
@pytest.mark.parametrize("half", [b"", b"data: {", b'id: x\ndata: {"jsonrpc":"2.0","id":1,"result":{"bad":true}}\n'])
async def test_a_connection_cut_in_the_middle_of_an_event(half: bytes) -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        response = await seen.stream(event(NOTE, id="b"), half)
        await asyncio.sleep(0.05)
        seen.cut()
        return response

    get = gets(streaming(event(NOTE, id="c")), streaming(event(result(1, ok=True))))
    async with peer(post, get) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1))
        assert [(await inbox.message()).method for _ in range(2)] == ["notifications/message"] * 2
        assert told(await inbox.message()) == {"ok": True}
        assert [seen.headers["Last-Event-ID"] for seen in there.of("GET")] == ["b", "c"]


async def test_an_answer_that_came_before_the_cut_counts() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        response = await seen.stream(event(result(seen.id)))
        await asyncio.sleep(0.02)
        seen.cut()
        return response

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(modern(1))
        assert (await inbox.message()).id == 1
        await asyncio.sleep(0.05)
        assert inbox.queue.empty()


@pytest.mark.req("M-133")
@pytest.mark.parametrize("abrupt", [True, False])
async def test_a_modern_stream_is_never_resumed(abrupt: bool) -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        response = await seen.stream(PRIMED, event(NOTE, id="b"))
        if abrupt:
            await asyncio.sleep(0.02)
            seen.cut()
        return response

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(modern(1))
        await inbox.message()
        error = await inbox.error()
        assert (type(error), error.request_id) == (RequestLost, 1)
        assert "broke off before the answer" in str(error) if abrupt else "ended before the answer" in str(error)
        assert (error.__cause__ is not None) is abrupt
        assert there.of("GET") == []


async def test_without_an_id_there_is_nothing_to_resume_after() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return await seen.stream(b": hello\n\n")

    async with peer(post) as there, running(there.url) as (transport, inbox):
        began = time.monotonic()
        await transport.send(call(1))
        assert (await inbox.error()).request_id == 1
        assert time.monotonic() - began < 2
        assert there.of("GET") == []


@pytest.mark.parametrize(
    ("get", "count", "text"),
    [
        (refused, 1, "GET .* 405"),
        (streaming(), 3, "the event stream ended before the answer came"),
        (streaming(b"id: 0\ndata:\n\n"), 3, "ended before the answer"),
    ],
    ids=["refused", "empty", "primed only"],
)
async def test_resuming_has_a_bound(get: Any, count: int, text: str) -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return await seen.stream(b"id: 0\ndata:\n\n")

    async with peer(post, get) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1))
        with pytest.raises(RequestLost, match=text) as raised:
            raise await inbox.error()
        assert raised.value.request_id == 1
        assert len(there.of("GET")) == count


async def test_a_server_that_falls_over_while_it_is_resumed_has_a_bound_too() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return await seen.stream(PRIMED)

    async def get(seen: Seen) -> web.StreamResponse:
        if len(there.of("GET")) % 2:
            return web.Response(status=503, text="down")
        seen.cut()
        return web.Response()

    async with peer(post, get) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1))
        error = await inbox.error()
        assert error.request_id == 1
        assert "down" in str(error) or "disconnected" in str(error).lower()
        assert len(there.of("GET")) >= 4


async def test_polling_at_the_servers_own_pace_goes_on() -> None:
    polls = 0

    async def post(seen: Seen) -> web.StreamResponse:
        return await seen.stream(PRIMED)

    async def get(seen: Seen) -> web.StreamResponse:
        nonlocal polls
        polls += 1
        if polls == 12:
            return await seen.stream(event(result(1)))
        return await seen.stream(b"id: %d\nretry: 10\ndata:\n\n" % polls)

    async with peer(post, get) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1))
        assert (await inbox.message()).id == 1
        assert there.of("GET")[-1].headers["Last-Event-ID"] == "11"


@pytest.mark.req("H-046")
async def test_a_wait_beyond_the_bound_is_not_waited() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return await seen.stream(b"id: 0\nretry: 3600000\ndata:\n\n")

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1))
        assert (await inbox.error()).request_id == 1
        assert there.of("GET") == []


async def test_answered_elsewhere_while_it_waits_to_resume() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        if seen.id == 1:
            return await seen.stream(b"id: 0\nretry: 200\ndata:\n\n")
        return await seen.stream(event(result(1)), event(result(2)))

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1))
        await until(lambda: there.seen)
        await transport.send(call(2))
        assert {(await inbox.message()).id for _ in range(2)} == {1, 2}
        await asyncio.sleep(0.4)
        assert there.of("GET") == []
        assert inbox.queue.empty()


@pytest.mark.parametrize("resumed", [True, False])
async def test_a_stream_that_stays_open_after_the_answer_is_left(
    resumed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typedmcp.transports.http.client_exchange._AFTER_ANSWER", 0.1)
    gone = asyncio.Event()

    async def hold(seen: Seen) -> web.StreamResponse:
        response = await seen.stream(event(result(1)), event(NOTE))
        try:
            return await asyncio.sleep(30, response)
        finally:
            gone.set()

    async def post(seen: Seen) -> web.StreamResponse:
        return await (seen.stream(PRIMED) if resumed else hold(seen))

    async with peer(post, hold) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1))
        assert (await inbox.message()).id == 1
        assert (await inbox.message()).method == "notifications/message", "what follows at once is still read"
        async with asyncio.timeout(5):
            await gone.wait()
        assert inbox.queue.empty()


async def test_a_bad_event_in_front_does_not_keep_a_stream_from_being_resumed() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return await seen.stream(PRIMED, event(b"nonsense", id=1), event(NOTE, id=2))

    async with peer(post, streaming(event(result(1)))) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1))
        assert isinstance(await inbox.error(), MessageError)
        await inbox.message()
        assert (await inbox.message()).id == 1


async def test_a_slow_stream_takes_its_time() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        response = await seen.stream()
        for _ in range(10):
            await asyncio.sleep(0.05)
            await response.write(event(NOTE))
        await response.write(event(result(1)))
        return response

    async with peer(post) as there, running(there.url, timeout=0.2, connect_timeout=0.2) as (transport, inbox):
        await transport.send(call(1))
        for _ in range(10):
            await inbox.message()
        assert (await inbox.message()).id == 1


# -- the stream that belongs to no call --------------------------------------------------------------------------------


@pytest.mark.req("H-025", "H-026", "H-037")
async def test_listening_begins_after_the_handshake() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return initialized(seen)

    async with peer(post, streaming(event(NOTE), hold=True)) as there:
        async with running(there.url, headers={"X-Mine": "1"}) as (transport, inbox):
            await transport.send(OPEN)
            await inbox.message()
            await asyncio.sleep(0.05)
            assert there.of("GET") == []
            await transport.send(INITIALIZED)
            assert (await inbox.message()).method == "notifications/message"
            [heard] = there.of("GET")
            assert heard.headers["Mcp-Session-Id"] == "s-1"
            assert heard.headers["MCP-Protocol-Version"] == "2025-11-25"
            assert heard.headers["X-Mine"] == "1"
            assert heard.headers["Accept"] == "text/event-stream"
            assert "Last-Event-ID" not in heard.headers
            began = time.monotonic()
        assert time.monotonic() - began < 1.5, "closing does not wait for the stream"


@pytest.mark.parametrize("options", [{"listen": False}, {}], ids=["not wanted", "no handshake"])
async def test_not_listening(options: dict[str, Any]) -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return initialized(seen)

    async with peer(post, streaming(hold=True)) as there, running(there.url, **options) as (transport, inbox):
        if options:
            await transport.send(OPEN)
            await inbox.message()
        await transport.send(INITIALIZED)
        await asyncio.sleep(0.05)
        assert there.of("GET") == []


@pytest.mark.parametrize(
    "response",
    [*({"status": status} for status in (405, 404, 400, 500, 204)), {"status": 200, "text": "hello"}],
)
async def test_a_server_without_such_a_stream_is_asked_once(response: dict[str, Any]) -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return initialized(seen)

    async def get(seen: Seen) -> web.StreamResponse:
        return web.Response(**response)

    async with peer(post, get) as there, running(there.url) as (transport, inbox):
        await opened(transport, inbox)
        await until(lambda: there.of("GET"))
        await asyncio.sleep(0.1)
        assert len(there.of("GET")) == 1
        assert inbox.queue.empty(), "that is no error"
        await transport.send(JSONRPCRequest(method="notifications/x"))


async def test_streams_that_end_in_order_at_once_are_given_up() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return initialized(seen)

    async with peer(post, streaming(b": hello\n\n")) as there, running(there.url) as (transport, inbox):
        await opened(transport, inbox)
        with pytest.raises(RequestLost, match="is given up") as raised:
            raise await inbox.error()
        assert raised.value.request_id is None
        assert len(there.of("GET")) == 4
        await transport.send(JSONRPCRequest(method="notifications/x"))


async def test_the_waits_grow_and_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float, *rest: Any) -> Any:
        waits.append(seconds)
        return await sleep(0, *rest)

    async def post(seen: Seen) -> web.StreamResponse:
        return initialized(seen)

    async with peer(post, streaming()) as there:
        monkeypatch.setattr("typedmcp.transports.http.client_streams.asyncio.sleep", noted)
        monkeypatch.setattr(random, "random", lambda: 0.4)
        async with running(there.url, reconnect=Reconnect(attempts=6, delay=1, longest=10)) as (transport, inbox):
            await opened(transport, inbox)
            await inbox.error()
        assert [round(wait / 1.1, 6) for wait in waits if wait >= 1] == [1, 2, 4, 8, 10, 10]


async def test_a_stream_of_use_is_opened_again_and_nothing_is_missed() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return initialized(seen)

    get = gets(*[streaming(event(NOTE, id=number)) for number in range(6)], streaming(event(NOTE, id=9), hold=True))
    async with peer(post, get) as there, running(there.url) as (transport, inbox):
        await opened(transport, inbox)
        for _ in range(7):
            await inbox.message()
        asked = [seen.headers.get("Last-Event-ID") for seen in there.of("GET")]
        assert asked == [None, "0", "1", "2", "3", "4", "5"]


async def test_an_answer_on_that_stream_counts() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        if seen.message["method"] != "echo":
            return initialized(seen)
        await streams[0].write(event(result(1)))
        return await seen.stream()

    streams: list[web.StreamResponse] = []

    async def get(seen: Seen) -> web.StreamResponse:
        streams.append(await seen.stream(b": here\n\n"))
        return await asyncio.sleep(30, streams[0])

    async with peer(post, get) as there, running(there.url) as (transport, inbox):
        await opened(transport, inbox)
        await until(lambda: streams)
        await transport.send(call(1))
        seen = [await inbox.next()]
        if seen[0][0] == "error":  # the POST's end was quicker than the other stream
            seen = [await inbox.next()]
        assert seen[0][1].id == 1


# -- sessions ----------------------------------------------------------------------------------------------------------


@pytest.mark.req("A-256", "A-257", "A-158", "H-037", "H-026", "H-041")
async def test_the_session_goes_along_with_everything_after_initialize() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return initialized(seen, session="abc~!1", revision="2025-03-26")

    async def delete(seen: Seen) -> web.StreamResponse:
        return web.Response(status=204)

    async with peer(post, delete=delete) as there, running(there.url) as (transport, inbox):
        assert transport.session is None
        await opened(transport, inbox)
        assert transport.session == "abc~!1"
        await until(lambda: there.of("GET"))
        await transport.close()
        first, *others = there.seen
        assert "Mcp-Session-Id" not in first.headers
        assert "MCP-Protocol-Version" not in first.headers
        assert [seen.verb for seen in others] == ["POST", "GET", "DELETE"]
        assert all(seen.headers.getall("Mcp-Session-Id") == ["abc~!1"] for seen in others)
        assert all(seen.headers["MCP-Protocol-Version"] == "2025-03-26" for seen in others)


@pytest.mark.req("H-041")
@pytest.mark.parametrize("how", ["refused", "silent", "cut"])
async def test_a_session_that_cannot_be_ended(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typedmcp.transports.http.client._FAREWELL", 0.2)

    async def post(seen: Seen) -> web.StreamResponse:
        return initialized(seen)

    async def delete(seen: Seen) -> web.StreamResponse:
        if how == "silent":
            await asyncio.sleep(30)
        if how == "cut":
            seen.cut()
        return web.Response(status=405)

    async with peer(post, delete=delete) as there, running(there.url) as (transport, inbox):
        await opened(transport, inbox)
        began = time.monotonic()
        await transport.close()
        assert time.monotonic() - began < 2
        await inbox.close()
        assert inbox.queue.empty()
        assert len(there.of("DELETE")) >= 1


@pytest.mark.req("A-256")
@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (["abc"], "abc"),
        (["abc", "abc"], "abc"),
        (["abc, abc"], "abc"),
        (["a,b"], "a,b"),
        (["abc", "xyz"], None),
        (["abc, xyz"], None),
        (["a b"], None),
        (["ä"], None),
        ([""], None),
        (["a\tb"], None),
    ],
)
async def test_which_session_ids_are_taken(given: list[str], taken: str | None) -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        response = initialized(seen, session=None)
        for value in given:
            response.headers.add("Mcp-Session-Id", value)
        return response

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(OPEN)
        kind, value = await inbox.next()
        assert transport.session == taken
        if taken is None:
            assert kind == "error"
            assert (type(value), value.request_id) == (RequestLost, 0)
        else:
            assert kind == "message"


async def test_a_later_reply_does_not_change_the_session() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        if seen.message["method"] == "initialize":
            return initialized(seen)
        response = answer(seen.id)
        response.headers["Mcp-Session-Id"] = "old"
        return response

    async with peer(post) as there, running(there.url, listen=False) as (transport, inbox):
        await transport.send(OPEN)
        await inbox.message()
        await transport.send(call(1))
        await inbox.message()
        assert transport.session == "s-1"


@pytest.mark.req("H-040", "A-258")
@pytest.mark.parametrize("body", [b"", b"<html>", b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32600,"message":"m"}}'])
async def test_404_means_that_the_session_is_lost_whatever_the_body_says(body: bytes) -> None:
    sessions = iter(["one", "two"])

    async def post(seen: Seen) -> web.StreamResponse:
        if seen.message["method"] == "initialize":
            return initialized(seen, session=next(sessions))
        if seen.headers["Mcp-Session-Id"] == "one" and "id" in seen.message:
            return web.Response(status=404, body=body % seen.id if b"%" in body else body)
        return answer(seen.message.get("id", 0))

    async with peer(post) as there, running(there.url, listen=False) as (transport, inbox):
        await opened(transport, inbox)
        await transport.send(call(1))
        error = await inbox.error()
        assert (type(error), error.request_id, error.status) == (SessionLost, 1, 404)
        if b"{" in body:
            assert (await inbox.message()).error.code == -32600
        await transport.send(OPEN)
        await inbox.message()
        assert "Mcp-Session-Id" not in there.last.headers
        assert "MCP-Protocol-Version" not in there.last.headers
        assert transport.session == "two"
        await transport.send(call(2))
        assert (await inbox.message()).id == 2
        await transport.close()
        assert [seen.headers["Mcp-Session-Id"] for seen in there.of("DELETE")] == ["two"]


@pytest.mark.req("H-040")
async def test_a_lost_session_is_not_deleted() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        if seen.message["method"] == "echo":
            return web.Response(status=404)
        return initialized(seen)

    async with peer(post) as there, running(there.url, listen=False) as (transport, inbox):
        await opened(transport, inbox)
        for number in (1, 2):
            await transport.send(call(number))
            assert isinstance(await inbox.error(), SessionLost)
        with pytest.raises(SessionLost):
            await transport.send(JSONRPCRequest(method="echo"))
        await transport.close()
        assert there.of("DELETE") == []


async def test_404_without_a_session_is_an_ordinary_failure() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return web.Response(status=404)

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1))
        assert type(await inbox.error()) is RequestLost


@pytest.mark.req("H-040")
async def test_the_listened_stream_tells_of_a_lost_session_too() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return initialized(seen)

    async def forgotten(seen: Seen) -> web.StreamResponse:
        return web.Response(status=404)

    async with peer(post, gets(streaming(event(NOTE)), forgotten)) as there, running(there.url) as (transport, inbox):
        await opened(transport, inbox)
        await inbox.message()
        error = await inbox.error()
        assert (type(error), error.request_id) == (SessionLost, None)
        await transport.close()
        assert there.of("DELETE") == []


async def test_a_new_handshake_listens_anew() -> None:
    gone = asyncio.Event()
    sessions = iter(["one", "two"])

    async def post(seen: Seen) -> web.StreamResponse:
        return initialized(seen, session=next(sessions) if seen.message["method"] == "initialize" else None)

    async def get(seen: Seen) -> web.StreamResponse:
        try:
            return await asyncio.sleep(30, await seen.stream(b": here\n\n"))
        finally:
            gone.set()

    async with peer(post, get) as there, running(there.url) as (transport, inbox):
        await opened(transport, inbox)
        await until(lambda: len(there.of("GET")) == 1)
        await opened(transport, inbox)
        await until(lambda: len(there.of("GET")) == 2)
        async with asyncio.timeout(5):
            await gone.wait()
        assert [seen.headers["Mcp-Session-Id"] for seen in there.of("GET")] == ["one", "two"]


# -- the client over it ------------------------------------------------------------------------------------------------


async def calculator(seen: Seen, there: Peer) -> web.StreamResponse:
    message = seen.message
    if message["method"] in ("initialize", "notifications/initialized"):
        return initialized(seen)
    number = message["params"]["arguments"]["n"]
    if number % 3 == 0:
        return answer(seen.id, content=[{"type": "text", "text": str(number)}])
    stream = await seen.stream(b"id: %d\nretry: 20\ndata:\n\n" % seen.id)
    if number % 3 == 1:
        await asyncio.sleep(0.01)
        await stream.write(event(result(seen.id, content=[{"type": "text", "text": str(number)}])))
    return stream


@pytest.mark.req("H-034", "H-047")
async def test_fifty_calls_through_the_client_a_third_of_them_resumed() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return await calculator(seen, there)

    async def get(seen: Seen) -> web.StreamResponse:
        number = int(seen.headers["Last-Event-ID"])
        [asked] = [each for each in there.of("POST") if each.message.get("id") == number]
        text = str(asked.message["params"]["arguments"]["n"])
        return await seen.stream(event(result(number, content=[{"type": "text", "text": text}])))

    async with peer(post, get) as there:
        transport = HTTPClientTransport(there.url, listen=False, reconnect=QUICK)
        async with connect(transport, version="2025-11-25") as client:
            values = await asyncio.gather(*(client.call("echo", {"n": number}) for number in range(50)))
            assert values == list(range(50))


async def test_a_stream_that_loses_a_call_leaves_the_client_as_it_was() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        if seen.message["method"] == "tools/list":
            return await seen.stream(b": nothing\n\n")
        return initialized(seen) if seen.message["method"] != "ping" else answer(seen.id)

    async with peer(post) as there, connect(there.url, version="2025-11-25", timeout=20) as client:
        began = time.monotonic()
        with pytest.raises(RequestLost, match="ended before the answer"):
            await client.list_tools()
        assert time.monotonic() - began < 5
        await client.ping()
        assert client.connected
