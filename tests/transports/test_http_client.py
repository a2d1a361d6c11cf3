"""The client's side of HTTP: what it sends, and what it makes of every kind of reply."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from http_client_peer import (
    INITIALIZED,
    OPEN,
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

from typedmcp import MCPClient, connect
from typedmcp.core.errors import (
    ConnectionClosed,
    InvalidResult,
    MCPError,
    MessageError,
    NotConnected,
    RequestLost,
    RequestTimeout,
    SessionLost,
    UsageError,
)
from typedmcp.core.jsonrpc import JSONRPCMessage, JSONRPCRequest, JSONRPCResponse
from typedmcp.core.transport import ClientTransportInterface
from typedmcp.transports.http.client import HTTPClientTransport, create_http_client_transport
from typedmcp_wire.types.lifecycle import CancelledNotificationParams

DISCOVERED: dict[str, Any] = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
}


async def echo(seen: Seen) -> web.StreamResponse:
    return answer(seen.id, **seen.message.get("params", {}))


# -- the transport as such ---------------------------------------------------------------------------------------------


@pytest.mark.req(
    "A-155",
    "A-157",
    "A-239",
    "A-244",
    "A-245",
    "A-246",
    "A-247",
    "A-253",
    "A-255",
    "A-257",
    "A-259",
    "A-160",
    "M-092",
    "M-093",
)
async def test_driven_by_hand() -> None:
    async with peer(echo) as there:
        transport = create_http_client_transport(url=there.url, headers={"X-Mine": "yes"})
        inbox = Inbox(transport)
        await transport.start()
        assert there.seen == []
        await transport.send(call(1, text="zwölf 🙂\u2028\n"))
        assert told(await inbox.message()) == {"text": "zwölf 🙂\u2028\n"}
        sent = there.last
        assert sent.verb == "POST"
        assert sent.headers.getall("Content-Type") == ["application/json"]
        assert sent.headers.getall("Accept") == ["application/json, text/event-stream"]
        assert sent.headers["X-Mine"] == "yes"
        assert sent.message == {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "echo",
            "params": {"text": "zwölf 🙂\u2028\n"},
        }
        assert not {"Mcp-Session-Id", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"} & set(sent.headers)
        assert transport.session is None
        await transport.close()
        await inbox.close()
        await transport.close()
        assert inbox.queue.empty()
        assert len(there.seen) == 1, "without a session there is nothing to delete"


@pytest.mark.req("A-159", "A-311")
async def test_nothing_is_public_beyond_the_interface() -> None:
    transport: ClientTransportInterface = HTTPClientTransport("http://127.0.0.1/mcp")
    assert {name for name in dir(transport) if not name.startswith("_")} == {
        "close", "emitter", "send", "session", "start",
    }  # fmt: skip


async def test_before_start_and_after_close() -> None:
    transport = HTTPClientTransport("http://127.0.0.1:1/mcp")
    await transport.close()
    with pytest.raises(NotConnected):
        await transport.send(call(1))
    await transport.start()
    await transport.start()
    await transport.close()
    with pytest.raises(ConnectionClosed):
        await transport.send(call(1))


async def test_started_again_it_knows_nothing_of_before() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return initialized(seen)

    async with peer(post) as there, running(there.url) as (transport, inbox):
        for _ in range(2):
            await transport.send(OPEN)
            await inbox.message()
            assert transport.session == "s-1"
            await transport.close()
            await inbox.close()
            assert transport.session is None
            await transport.start()
        assert [seen.headers.get("Mcp-Session-Id") for seen in there.of("POST")] == [None, None]


@pytest.mark.parametrize("url", ["", "mcp", "ws://host/mcp", "file:///mcp", "http://", "http:///mcp", "http://h:x/", 5])
def test_what_is_no_address_is_told_at_once(url: Any) -> None:
    with pytest.raises(UsageError, match="address"):
        HTTPClientTransport(url)


@pytest.mark.req("A-246")
async def test_the_callers_headers_win_but_for_the_media_types() -> None:
    async with peer(echo) as there:
        headers = {"ACCEPT": "text/html", "content-type": "text/plain", "mcp-protocol-version": "mine", "mcp-name": "n"}
        async with running(there.url, headers=headers) as (transport, inbox):
            await transport.send(modern(1, "tools/call", name="add"))
            await inbox.message()
        sent = there.last.headers
        assert sent.getall("Accept") == ["application/json, text/event-stream"]
        assert sent.getall("Content-Type") == ["application/json"]
        assert sent.getall("MCP-Protocol-Version") == ["mine"]
        assert sent.getall("Mcp-Name") == ["n"]


@pytest.mark.req("A-253")
async def test_an_injected_session_is_used_and_stays_open() -> None:
    async with peer(echo) as there:
        limits = aiohttp.ClientTimeout(total=0.2)
        async with aiohttp.ClientSession(headers={"X-Theirs": "1"}, timeout=limits, raise_for_status=True) as session:
            async with running(there.url, session=session) as (transport, inbox):
                await transport.send(call(1))
                await inbox.message()
            assert there.last.headers["X-Theirs"] == "1"
            assert not session.closed
        async with running(there.url, session=session) as (transport, inbox):
            await transport.send(call(2))
            error = await inbox.error()
            assert (type(error), error.request_id) == (RequestLost, 2)


# -- headers of the modern era -----------------------------------------------------------------------------------------


@pytest.mark.req("M-103", "M-106", "M-111", "M-118")
@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "add", "arguments": {"name": "other"}}, "add"),
        ("tools/call", {"name": "天気"}, "=?base64?5aSp5rCX?="),
        ("tools/call", {"name": " a"}, "=?base64?IGE=?="),
        ("tools/call", {"name": "=?base64?YQ==?="}, "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ("tools/call", {"name": "a\r\nX-Evil: 1"}, "=?base64?YQ0KWC1FdmlsOiAx?="),
        ("prompts/get", {"name": "greet me"}, "greet me"),
        ("resources/read", {"uri": "file:///ä", "name": "x"}, "=?base64?ZmlsZTovLy/DpA==?="),
        ("tools/list", {"name": "x"}, None),
        ("tools/call", {"name": 5}, None),
    ],
)
async def test_a_modern_request_says_in_headers_what_it_is(method: str, params: dict[str, Any], name: str) -> None:
    async with peer(echo) as there, running(there.url) as (transport, inbox):
        await transport.send(modern(1, method, **params))
        await inbox.message()
        sent = there.last.headers
        assert sent["MCP-Protocol-Version"] == "2026-07-28"
        assert sent["Mcp-Method"] == method
        assert sent.get("Mcp-Name") == name
        assert "Mcp-Session-Id" not in sent
        assert "X-Evil" not in sent


async def test_the_modern_era_has_no_session() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        response = answer(seen.id)
        response.headers["Mcp-Session-Id"] = "no"
        return response

    async with peer(post) as there, running(there.url) as (transport, inbox):
        for number in range(2):
            await transport.send(modern(number))
            await inbox.message()
        assert transport.session is None
        assert "Mcp-Session-Id" not in there.last.headers


# -- replies -----------------------------------------------------------------------------------------------------------


@pytest.mark.req("A-248", "A-234", "M-097", "M-136")
async def test_an_event_stream_byte_by_byte() -> None:
    text = json.encode({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "ü\u2028🙂"}})

    async def post(seen: Seen) -> web.StreamResponse:
        response = await seen.stream()
        stream = b": ping\r\n\r\nid: 1\r\ndata:\r\n\r\nevent: ping\ndata: x\n\n" + event(text).replace(b"\n", b"\r\n")
        for byte in stream + event(result(seen.id), event="message"):
            await response.write(bytes([byte]))
            await asyncio.sleep(0)
        return response

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1))
        note = await inbox.message()
        assert json.decode(note.params) == {"data": "ü\u2028🙂"}
        assert (await inbox.message()).id == 1
        assert inbox.queue.empty()


@pytest.mark.req("A-249")
@pytest.mark.parametrize(
    "options",
    [
        {"status": 202},
        {"status": 202, "text": "Accepted"},
        {"status": 204},
        {"status": 200},
        {"status": 200, "body": b"{}", "content_type": "application/json"},
        {"status": 200, "body": result(9), "content_type": "application/json"},
        {"status": 200, "text": "data: x\n\n", "content_type": "text/event-stream"},
    ],
)
async def test_any_success_is_a_fine_answer_to_a_notification(options: dict[str, Any]) -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return web.Response(**options)

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(JSONRPCRequest(method="notifications/initialized"))
        await transport.send(JSONRPCResponse(id=5, result={}))
        assert len(there.seen) == 2
        assert inbox.queue.empty()


@pytest.mark.req("A-258", "A-251")
@pytest.mark.parametrize("status", [400, 404, 500])
async def test_a_message_in_an_error_status_is_a_message(status: int) -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        body = json.encode({"jsonrpc": "2.0", "id": seen.id, "error": {"code": -32601, "message": "no"}})
        return web.Response(status=status, body=body, content_type="text/plain")

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1))
        assert (await inbox.message()).error.code == -32601
        await transport.send(call(2))
        assert (await inbox.message()).id == 2


LOST: list[tuple[str, dict[str, Any], int | None, str]] = [
    ("html", {"status": 200, "text": "<html>\n hello", "content_type": "text/html"}, 200, "200 OK: <html> hello"),
    ("empty", {"status": 200, "body": b"", "content_type": "application/json"}, 200, "200 OK$"),
    ("no content", {"status": 204}, 204, "204 No Content$"),
    ("accepted", {"status": 202}, 202, "202 Accepted$"),
    ("refused", {"status": 401, "text": "who are you?"}, 401, "401 Unauthorized: who are you"),
    ("long", {"status": 503, "text": "x" * 100_000}, 503, "503 Service Unavailable: x{200}…$"),
    ("broken", {"status": 200, "body": b"{", "content_type": "application/json"}, 200, "200 OK: {"),
    ("array", {"status": 200, "body": b"[%s]", "content_type": "application/json"}, 200, "200 OK"),
    ("another id", {"status": 200, "body": result("1"), "content_type": "application/json"}, 200, "200 OK"),
    ("moved", {"status": 307, "headers": {"Location": "/other"}}, 307, "points to /other; redirects are not followed"),
    ("no UTF-8", {"status": 500, "body": b"\xff\xfe"}, 500, "500 Internal Server Error: \ufffd"),
]


@pytest.mark.req("A-250", "A-251", "A-260", "M-006")
@pytest.mark.parametrize(("options", "status", "text"), [pytest.param(*case[1:], id=case[0]) for case in LOST])
async def test_a_reply_without_the_answer_loses_the_request(options: dict[str, Any], status: int, text: str) -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return web.Response(**options)

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1))
        seen = await inbox.next()
        if seen[0] == "message":
            seen = await inbox.next()
        error = seen[1]
        assert type(error) is RequestLost
        assert (error.request_id, error.status, error.url) == (1, status, there.url)
        with pytest.raises(RequestLost, match=text):
            raise error
        assert len(there.seen) == 1
        with pytest.raises(RequestLost) if status >= 300 else contextlib.nullcontext():
            await transport.send(JSONRPCRequest(method="notifications/x"))


async def test_an_error_without_the_requests_id_is_the_cause() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        error = {"code": -32600, "message": "Missing session ID", "data": 7}
        return web.Response(status=400, body=json.encode({"jsonrpc": "2.0", "id": "server-error", "error": error}))

    async with peer(post) as there:
        async with running(there.url) as (transport, inbox):
            await transport.send(call(1))
            assert (await inbox.message()).id == "server-error"
            cause = (await inbox.error()).__cause__
            assert isinstance(cause, MCPError)
            assert (cause.code, cause.data) == (-32600, 7)
        with pytest.raises(MCPError, match="Missing session ID"):
            await connect(HTTPClientTransport(there.url), version="2025-06-18")


@pytest.mark.parametrize("size", [1_000_000, 5_000_000])
async def test_a_large_request_goes_out_as_it_is(size: int) -> None:
    async with peer(echo) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1, text="é" * (size // 2)))
        assert told(await inbox.message()) == {"text": "é" * (size // 2)}
        assert there.last.headers["Content-Length"] == str(len(there.last.body))


async def test_a_reply_longer_than_the_limit() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        if seen.id == 1:
            return answer(1, text="x" * 100_000)
        return await seen.stream(event(result(2, text="x" * 100_000)), event(result(3)))

    async with peer(post) as there, running(there.url, max_event_bytes=1000) as (transport, inbox):
        await transport.send(call(1))
        with pytest.raises(RequestLost, match="longer than 1000 bytes"):
            raise await inbox.error()
        await transport.send(call(2))
        assert isinstance(await inbox.error(), MessageError)
        assert (await inbox.message()).id == 3
        error = await inbox.error()
        assert error.request_id == 2


async def test_an_error_page_without_an_end_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typedmcp.transports.http.client_exchange._AFTER_ANSWER", 0.05)

    async def post(seen: Seen) -> web.StreamResponse:
        response = web.StreamResponse(status=500)
        await response.prepare(seen.request)
        await response.write(b"and so on")
        await asyncio.sleep(30)
        return response

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1))
        assert (await inbox.error()).status == 500


@pytest.mark.req("A-250")
async def test_what_is_no_message_on_a_stream_is_told_and_the_rest_read() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return await seen.stream(event(b"{}"), event(b"[1]"), event(b"nonsense"), event(result(seen.id)))

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1))
        assert [type(await inbox.error()) for _ in range(3)] == [MessageError] * 3
        assert (await inbox.message()).id == 1
        assert inbox.queue.empty()


# -- failures ----------------------------------------------------------------------------------------------------------


@pytest.mark.req("A-251", "A-156")
async def test_a_server_that_is_not_there() -> None:
    async with peer(echo) as there:
        url = there.url
    async with running(url) as (transport, inbox):
        await transport.send(call("a"))
        error = await inbox.error()
        assert (type(error), error.request_id, error.status, error.url) == (RequestLost, "a", None, url)
        assert isinstance(error.__cause__, aiohttp.ClientConnectorError)
        with pytest.raises(RequestLost, match="POST http"):
            await transport.send(JSONRPCRequest(method="notifications/x"))
        assert (await inbox.error()).request_id is None
    with pytest.raises(RequestLost) as raised:
        await connect(url)
    assert raised.value.url == url


@pytest.mark.req("A-251", "A-252")
async def test_swallow_leaves_the_request_to_its_deadline() -> None:
    async with peer(echo) as there:
        url = there.url
    async with running(url, swallow=True) as (transport, inbox):
        await transport.send(call(1))
        await transport.send(JSONRPCRequest(method="notifications/x"))
        for _ in range(2):
            error = await inbox.error()
            assert (type(error), error.request_id) == (RequestLost, None)
    errors: list[BaseException] = []
    client = MCPClient(transport=HTTPClientTransport(url, swallow=True), timeout=0.1, probe_timeout=0.1)
    client.on("error", errors.append)
    with pytest.raises(RequestTimeout):
        await client.connect()
    assert [type(error) for error in errors] == [RequestLost, RequestLost]


@pytest.mark.req("A-254")
async def test_the_timeout_is_for_the_reply_to_begin() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        if seen.id == 1:
            await asyncio.sleep(30)
        if seen.id == 2:
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(seen.request)
            await asyncio.sleep(30)
        response = await seen.stream(b": here\n\n")
        await asyncio.sleep(0.4)
        await response.write(event(result(seen.id)))
        return response

    async with peer(post) as there, running(there.url, timeout=0.2) as (transport, inbox):
        for number in (1, 2):
            await transport.send(call(number))
            with pytest.raises(RequestLost, match=r"no reply within 0.2 s; pass a larger timeout="):
                raise await inbox.error()
        await transport.send(call(3))
        assert (await inbox.message()).id == 3, "a stream has no limit"


async def test_cut_in_the_middle_of_a_json_reply() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "1000"})
        await response.prepare(seen.request)
        await response.write(b'{"jsonrpc"')
        seen.cut()
        return response

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1))
        error = await inbox.error()
        assert (type(error), error.request_id) == (RequestLost, 1)


async def test_closing_gives_up_what_is_under_way() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return await asyncio.sleep(30, web.Response())

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(call(1))
        note = asyncio.ensure_future(transport.send(JSONRPCRequest(method="notifications/x")))
        await until(lambda: len(there.seen) == 2)
        await transport.close()
        with pytest.raises(ConnectionClosed):
            await note
        await inbox.close()
        assert inbox.queue.empty()


async def test_giving_up_on_a_notification_ends_its_post() -> None:
    gone = asyncio.Event()

    async def post(seen: Seen) -> web.StreamResponse:
        try:
            return await asyncio.sleep(30, web.Response())
        finally:
            gone.set()

    async with peer(post) as there, running(there.url) as (transport, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await transport.send(JSONRPCRequest(method="notifications/x"))
        async with asyncio.timeout(5):
            await gone.wait()


# -- many at once ------------------------------------------------------------------------------------------------------


@pytest.mark.req("H-034", "A-248")
async def test_fifty_calls_at_once_and_their_answers_in_any_order() -> None:
    open_calls = 0
    everyone = asyncio.Event()

    async def post(seen: Seen) -> web.StreamResponse:
        nonlocal open_calls
        open_calls += 1
        if open_calls == 120:
            everyone.set()
        await everyone.wait()
        await asyncio.sleep((120 - seen.id) / 2000)
        if seen.id % 2:
            return answer(seen.id, n=seen.id)
        return await seen.stream(event(result(seen.id, n=seen.id)))

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await asyncio.gather(*(transport.send(call(number)) for number in range(120)))
        messages: list[JSONRPCMessage] = [await inbox.message() for _ in range(120)]
        answers = [message for message in messages if isinstance(message, JSONRPCResponse)]
        assert sorted(told(each)["n"] for each in answers) == list(range(120))
        assert all(told(each)["n"] == each.id for each in answers)


@pytest.mark.req("H-035")
@pytest.mark.parametrize("streamed", [True, False])
async def test_what_the_server_asks_during_a_call_can_be_answered(streamed: bool) -> None:
    answered = asyncio.Event()

    async def post(seen: Seen) -> web.StreamResponse:
        message = seen.message
        if "method" not in message:
            assert message == {"jsonrpc": "2.0", "id": "ask", "result": {"ok": True}}
            answered.set()
            return web.Response(status=202)
        if message["method"] in ("initialize", "notifications/initialized"):
            return initialized(seen)
        question = json.encode({"jsonrpc": "2.0", "id": "ask", "method": "sampling/createMessage"})
        if streamed:
            response = await seen.stream(event(question))
            await answered.wait()
            await response.write(event(result(1)))
            return response
        await until(lambda: streams)
        await streams[0].write(event(question))
        await answered.wait()
        return answer(1)

    streams: list[web.StreamResponse] = []

    async def get(seen: Seen) -> web.StreamResponse:
        streams.append(await seen.stream(b": here\n\n"))
        return await asyncio.sleep(30, streams[0])

    async with peer(post, get) as there, running(there.url) as (transport, inbox):
        await transport.send(OPEN)
        await inbox.message()
        await transport.send(INITIALIZED)
        await transport.send(call(1))
        question = await inbox.message()
        await transport.send(JSONRPCResponse(id=question.id, result={"ok": True}))
        assert (await inbox.message()).id == 1


# -- several messages --------------------------------------------------------------------------------------------------


@pytest.mark.req("A-245", "H-014", "H-016", "H-017")
async def test_several_messages_are_an_array_where_the_revision_has_that() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        message = seen.message
        if isinstance(message, dict):
            return initialized(seen, revision="2025-03-26")
        first, *others = (result(each["id"]) for each in message if "id" in each)
        return await seen.stream(event(b"[" + b",".join(others) + b"]"), event(first))

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(OPEN)
        await inbox.message()
        await transport.send([call(1), JSONRPCRequest(method="notifications/x"), call(2), call("2")])
        assert [(await inbox.message()).id for _ in range(3)] == [2, "2", 1]
        assert len(there.seen) == 2
        assert there.last.headers["MCP-Protocol-Version"] == "2025-03-26"


@pytest.mark.req("A-245", "M-092", "M-094")
async def test_several_messages_are_several_posts_where_it_has_not() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return initialized(seen) if seen.message["method"] == "initialize" else answer(seen.id)

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send([call(1)])
        assert there.seen == [] or there.last.body.startswith(b"{")
        await inbox.message()
        await transport.send(OPEN)
        await inbox.message()
        await transport.send([call(2), call(3)])
        assert {(await inbox.message()).id for _ in range(2)} == {2, 3}
        assert [seen.id for seen in there.seen] == [1, 0, 2, 3]


async def test_a_lost_array_loses_each_request_in_it() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return web.Response(body=result(2), content_type="application/json")

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send([call(1), call(2), call(3)])
        assert (await inbox.message()).id == 2
        assert {(await inbox.error()).request_id for _ in range(2)} == {1, 3}


# -- cancelling --------------------------------------------------------------------------------------------------------


def cancel(request_id: int) -> JSONRPCRequest:
    params = CancelledNotificationParams(request_id=request_id)
    return JSONRPCRequest(method="notifications/cancelled", params=params)


@pytest.mark.req("M-102", "M-143", "M-144")
@pytest.mark.parametrize("streamed", [True, False])
async def test_cancelling_a_modern_request_closes_its_connection(streamed: bool) -> None:
    gone = asyncio.Event()

    async def post(seen: Seen) -> web.StreamResponse:
        try:
            if streamed:
                await seen.stream(b": here\n\n")
            return await asyncio.sleep(30, web.Response())
        finally:
            gone.set()

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(modern(1))
        await until(lambda: there.seen)
        await transport.send(cancel(2))
        assert not gone.is_set()
        await transport.send(cancel(1))
        async with asyncio.timeout(5):
            await gone.wait()
        await transport.send(cancel(1))
        assert len(there.seen) == 1, "nothing is posted"
        assert inbox.queue.empty(), "nobody waits, so nothing is lost"


@pytest.mark.req("H-030", "M-143")
async def test_cancelling_in_the_handshake_era_is_a_message() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        if seen.message["method"] == "echo":
            await asyncio.sleep(30)
        return initialized(seen)

    async with peer(post) as there, running(there.url) as (transport, inbox):
        await transport.send(OPEN)
        await inbox.message()
        await transport.send(call(1))
        await until(lambda: len(there.seen) == 2)
        await transport.send(cancel(1))
        assert there.last.message == {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": 1},
        }
        await asyncio.sleep(0.05)
        assert inbox.queue.empty()


# -- the client over it ------------------------------------------------------------------------------------------------


@pytest.mark.req("M-058", "M-049")
async def test_a_modern_error_in_status_400_keeps_the_client_modern() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        if len(there.seen) == 1:
            data = {"supported": ["2026-07-28"], "requested": "x"}
            error = {"code": -32022, "message": "no", "data": data}
            return web.Response(status=400, body=json.encode({"jsonrpc": "2.0", "id": seen.id, "error": error}))
        return answer(seen.id, **DISCOVERED)

    async with peer(post) as there:
        with pytest.raises(MCPError, match="-32022"):
            await connect(there.url)
        assert [seen.message["method"] for seen in there.seen] == ["server/discover"]


@pytest.mark.req("M-058", "M-059")
@pytest.mark.parametrize(
    "options",
    [
        {"status": 204},
        {"status": 200, "body": b"", "content_type": "application/json"},
        {"status": 200, "text": "<html>", "content_type": "text/html"},
        {"status": 200, "body": b"nonsense", "content_type": "application/json"},
        {"status": 400, "text": "Bad Request: no session"},
        {"status": 404},
        {"status": 405},
        {"status": 500},
    ],
)
async def test_a_server_that_does_not_know_the_probe_is_an_older_one(options: dict[str, Any]) -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        if seen.message["method"] == "server/discover":
            return web.Response(**options)
        return initialized(seen)

    async with peer(post) as there, connect(there.url) as client:
        assert client.protocol_version == "2025-11-25"
        assert client.transport.session == "s-1"
        sent = there.of("POST")
        assert [seen.message["method"] for seen in sent] == [
            "server/discover", "initialize", "notifications/initialized",
        ]  # fmt: skip
        assert "MCP-Protocol-Version" not in sent[1].headers
        assert sent[2].headers["MCP-Protocol-Version"] == "2025-11-25"


@pytest.mark.parametrize("status", [302, 401, 403, 429, 503])
async def test_a_status_that_tells_nothing_of_the_era_is_raised(status: int) -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        return web.Response(status=status, text="because")

    async with peer(post) as there:
        with pytest.raises(RequestLost) as raised:
            await connect(there.url)
        assert (raised.value.status, raised.value.url) == (status, there.url)
        assert len(there.seen) == 1


async def test_an_answer_the_client_cannot_read_fails_its_call_at_once() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        if seen.message["method"] != "tools/list":
            return initialized(seen)
        body = b'{"jsonrpc":"2.0","id":%d,"result":{"tools":NaN}}' % seen.id
        return web.Response(body=body, content_type="application/json")

    async with peer(post) as there, connect(there.url, version="2025-11-25") as client:
        errors: list[BaseException] = []
        client.on("error", errors.append)
        with pytest.raises(InvalidResult, match="cannot be read"):
            await client.list_tools()
        assert errors == []


@pytest.mark.req("A-253", "M-146")
async def test_a_call_that_times_out_is_withdrawn() -> None:
    gone = asyncio.Event()

    async def post(seen: Seen) -> web.StreamResponse:
        if seen.message["method"] == "server/discover":
            return answer(seen.id, **DISCOVERED)
        try:
            return await asyncio.sleep(30, web.Response())
        finally:
            gone.set()

    async with peer(post) as there, connect(there.url) as client:
        with pytest.raises(RequestTimeout):
            await client.call_tool("slow", {}, timeout=0.1)
        async with asyncio.timeout(5):
            await gone.wait()
        assert len(there.seen) == 2


async def test_a_lost_session_is_told_by_type() -> None:
    async def post(seen: Seen) -> web.StreamResponse:
        if seen.message["method"] == "tools/list":
            return web.Response(status=404)
        return initialized(seen)

    async with peer(post) as there, connect(there.url, version="2025-11-25") as client:
        with pytest.raises(SessionLost) as raised:
            await client.list_tools()
        assert raised.value.status == 404


async def test_cost_of_a_call() -> None:
    """Sequential calls reuse the connection."""
    async with peer(echo) as there, running(there.url) as (transport, inbox):
        began = time.perf_counter()
        for number in range(200):
            await transport.send(modern(number))
            await inbox.message()
        assert time.perf_counter() - began < 5
        assert len({seen.request.transport for seen in there.seen}) == 1
