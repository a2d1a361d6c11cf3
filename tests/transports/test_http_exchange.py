"""One POST without IO: reading it, the order of checks, both eras, and streams to a client that is a fake."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from typing import Any

import pytest
from http_tools import (
    BOTH,
    LATEST,
    PREFIX,
    FakeResponder,
    Tools,
    cancel,
    getter,
    initialize,
    make,
    modern,
    modern_headers,
    notification,
    request,
    tool,
    until,
)
from hypothesis import given
from hypothesis import strategies as st
from transport_fakes import FakeServer

from typedmcp.core.errors import ConnectionClosed
from typedmcp.transports.http import negotiation
from typedmcp.transports.http.exchange import Exchange
from typedmcp.transports.http.incoming import nests_deeper
from typedmcp.transports.http.live import LiveSession
from typedmcp.transports.http.outgoing import OutgoingStream
from typedmcp.transports.http.replies import Reply
from typedmcp.transports.http.sessions import MCPSession
from typedmcp.transports.http.ticker import Ticker
from typedmcp_wire.methods import METHODS
from typedmcp_wire.revisions import HTTP_STATUS

JSON = {"Content-Type": "application/json", "Accept": BOTH}


async def post(
    exchange: Exchange,
    message: object,
    headers: Mapping[str, str | None] = JSON,
    *,
    raw: bytes | None = None,
    session: LiveSession | None = None,
    responder: FakeResponder | None = None,
    principal: object = None,
) -> Reply | FakeResponder:
    """What one POST is answered with: a whole reply, or what was streamed."""
    get = getter({**JSON, **headers})
    incoming = exchange.read(get, raw if raw is not None else json.dumps(message).encode())
    if isinstance(incoming, Reply):
        return incoming
    responder = responder or FakeResponder()
    reply = await exchange.serve(get, incoming, responder, session=session, principal=principal)
    return responder if reply is None else reply


async def whole(exchange: Exchange, message: object, headers: Mapping[str, str | None] = JSON, **more: Any) -> Reply:
    reply = await post(exchange, message, headers, **more)
    assert isinstance(reply, Reply)
    return reply


def safe(tools: Tools | None = None, **options: Any) -> Exchange:
    return Exchange(make(tools, **options), strict=True)


def read(reply: Reply) -> Any:
    return json.loads(reply.body)


def code(reply: Reply) -> int:
    value: int = read(reply)["error"]["code"]
    return value


# -- media types -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "json_taken", "stream_taken"),
    [
        (None, True, True),
        ("*/*", True, True),
        ("application/*, text/event-stream", True, True),
        ("Application/JSON", True, False),
        ("application/json;q=0, text/event-stream", False, True),
        ("*/*, application/json;q=0", False, True),
        ("*/*;q=0, application/json", True, False),
        ("text/*;q=0.3", False, True),
        ("application/json; q=0.000", False, False),
        ("application/json;q=nonsense", False, False),
        ("application/json;profile=x;q=1", True, False),
        ("text/html", False, False),
        ("", False, False),
        (",,;,", False, False),
    ],
)
def test_accept_follows_http(header: str | None, json_taken: bool, stream_taken: bool) -> None:
    assert negotiation.accepts(header, negotiation.JSON) is json_taken
    assert negotiation.accepts(header, negotiation.EVENT_STREAM) is stream_taken


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        ("application/json", True),
        ("application/json; charset=utf-8", True),
        ('APPLICATION/JSON;Charset="UTF-8"', True),
        ("application/json; charset = utf8", True),
        ("application/json;odata=verbose", True),
        ("application/json; charsetting=x", True),
        ("application/json; charset=latin-1", False),
        ("application/vnd.api+json", False),
        ("text/plain", False),
        ("application/jsonx", False),
        ("", False),
        (None, False),
    ],
)
async def test_content_type_compares_by_essence(header: str | None, taken: bool) -> None:
    assert negotiation.is_json(header) is taken
    reply = await whole(safe(), modern(request()), {**modern_headers(request()), "Content-Type": header})
    assert reply.status == (200 if taken else 415)


async def test_a_client_must_take_one_of_the_two() -> None:
    for accept, status in (("text/html", 406), ("*/*", 200), (None, 200)):
        reply = await whole(safe(), modern(request()), {**modern_headers(request()), "Accept": accept})
        assert reply.status == status
        assert "id" not in read(reply) or status == 200
    bare = Exchange(make())
    reply = await whole(bare, modern(request()), {**modern_headers(request()), "Accept": "text/html"})
    assert reply.status == 200


async def test_who_takes_only_event_streams_gets_one() -> None:
    message = modern(tool("add"))
    for accept in ("text/event-stream", "application/json;q=0, text/event-stream"):
        answer = await post(safe(), message, {**modern_headers(message), "Accept": accept})
        assert isinstance(answer, FakeResponder)
        assert answer.messages[0]["result"]["content"][0]["text"] == "3"
        # Yet a refusal has its status.
        wrong = modern(request("no/such"))
        reply = await whole(safe(), wrong, {**modern_headers(wrong), "Accept": accept})
        assert reply.status == 404


# -- the order of checks -----------------------------------------------------------------------------------------------


@pytest.mark.req("M-040", "M-048", "M-098", "M-104", "M-105", "M-107", "M-026", "B-143")
async def test_the_order_of_checks() -> None:
    """Each fault is told although all the later ones are there, too; mended, the next one is."""
    message = request("no/such", 1)
    message["params"]["_meta"] = {}
    headers: dict[str, str | None] = {"Accept": "text/html", "Content-Type": "text/plain", "Mcp-Method": "x"}
    headers["MCP-Protocol-Version"] = "2027-01-01"
    exchange = safe()

    async def now(raw: bytes | None = None) -> tuple[int, int]:
        reply = await whole(exchange, message, headers, raw=raw)
        return reply.status, code(reply)

    assert await now(b"{") == (406, -32600)
    headers["Accept"] = BOTH
    assert await now(b"{") == (415, -32600)
    headers["Content-Type"] = "application/json"
    assert await now(b"{") == (400, -32700)
    assert await now(b"[]") == (400, -32600)
    assert await now(b'{"jsonrpc":"2.0","id":1}') == (400, -32600)
    assert await now() == (400, -32602)  # _meta lacks its members
    message["params"]["_meta"][PREFIX + "protocolVersion"] = "2030-01-01"
    assert await now() == (400, -32602)
    message["params"]["_meta"][PREFIX + "clientCapabilities"] = {}
    assert await now() == (400, -32020)  # version header and body differ
    headers["MCP-Protocol-Version"] = "2030-01-01"
    assert await now() == (400, -32020)  # method header and body differ
    headers["Mcp-Method"] = "no/such"
    assert await now() == (400, -32022)  # version not served
    headers["MCP-Protocol-Version"] = message["params"]["_meta"][PREFIX + "protocolVersion"] = LATEST
    assert await now() == (404, -32601)
    message["method"] = headers["Mcp-Method"] = "tools/call"
    message["params"]["name"] = 7
    headers["Mcp-Name"] = "7"
    assert await now() == (400, -32020)
    message["params"]["name"], headers["Mcp-Name"] = "add", "add"
    message["params"]["arguments"] = 7
    assert await now() == (400, -32602)
    message["params"]["arguments"] = {}
    assert (await whole(exchange, message, headers)).status == 200


@pytest.mark.req("M-040", "M-053")
@pytest.mark.parametrize("drop", ["protocolVersion", "clientCapabilities"])
@pytest.mark.parametrize("versions", [None, (LATEST,)])
async def test_a_member_of_the_envelope_missing_is_32602(drop: str, versions: tuple[str, ...] | None) -> None:
    exchange = safe(protocol_versions=versions)
    message = modern(request(), LATEST, drop)
    reply = await whole(exchange, message, modern_headers(message))
    assert (reply.status, code(reply)) == (400, -32602)
    for params in ({}, {"_meta": None}, {"_meta": 7}, {"_meta": {}}, None, [1], "x"):
        broken = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
        reply = await whole(exchange, broken, modern_headers(request()))
        assert reply.status == 400
        assert code(reply) in (-32602, -32600)


@pytest.mark.req("M-048", "M-035")
async def test_a_version_that_is_not_served_is_named_beside_those_that_are() -> None:
    exchange = safe(protocol_versions=("2025-06-18", LATEST))
    for version in ("2025-11-25", "2025-06-18", "2031-01-01", ""):
        message = modern(request(), version)
        reply = await whole(exchange, message, modern_headers(message, **{"MCP-Protocol-Version": version}))
        assert (reply.status, code(reply)) == (400, -32022)
        data = read(reply)["error"]["data"]
        assert data == {"supported": [LATEST, "2025-06-18"], "requested": version}
    old_only = safe(protocol_versions=("2025-06-18",))
    reply = await whole(old_only, modern(request()), modern_headers(request()))
    assert (reply.status, code(reply)) == (400, -32022)


@pytest.mark.req("M-050", "M-105", "M-104")
async def test_the_era_is_that_of_the_body_or_the_header() -> None:
    """A modern body without its header, or with one of the other era, is a mismatch and no request of that era."""
    for header in (None, "2025-06-18", "2025-11-25", "banana"):
        headers = modern_headers(request(), **{"MCP-Protocol-Version": header})
        reply = await whole(safe(), modern(request()), headers)
        assert (reply.status, code(reply)) == (400, -32020)
        assert all(name != "Mcp-Session-Id" for name, _ in reply.headers)
    # A header of no handshake revision makes a request modern whatever the body.
    for message in (request(), initialize()):
        reply = await whole(safe(), message, {"MCP-Protocol-Version": LATEST})
        assert (reply.status, code(reply)) == (400, -32602)


@pytest.mark.req("M-098")
@pytest.mark.parametrize(
    "method",
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list", "x"],
)
async def test_removed_and_unknown_methods_are_404(method: str) -> None:
    for versions in (None, (LATEST,)):
        message = modern(request(method))
        reply = await whole(safe(protocol_versions=versions), message, modern_headers(message))
        assert (reply.status, code(reply)) == (404, -32601)


@pytest.mark.req("M-053", "M-050")
async def test_a_server_without_handshake_refuses_initialize_with_its_versions() -> None:
    for headers in ({}, {"MCP-Protocol-Version": "2025-06-18"}):
        reply = await whole(safe(protocol_versions=(LATEST,)), initialize(), headers)
        assert (reply.status, code(reply)) == (400, -32022)
        assert read(reply)["error"]["data"]["supported"] == [LATEST]


@pytest.mark.req("M-007", "H-013", "M-026")
@pytest.mark.parametrize(
    ("version", "null"),
    [(None, True), ("2025-03-26", True), ("2025-06-18", True), ("2025-11-25", False), (LATEST, False)],
)
async def test_an_unreadable_id_is_null_or_left_out_by_revision(version: str | None, null: bool) -> None:
    for raw in (b"{", b"17", b'{"jsonrpc":"2.0","id":{},"method":"x"}', b"[1]" if version != "2025-03-26" else b"1"):
        reply = await whole(safe(), None, {"MCP-Protocol-Version": version}, raw=raw)
        assert reply.status == 400
        assert ("id" in read(reply)) is null
        assert read(reply).get("id") is None
    reply = await whole(safe(protocol_versions=(LATEST,)), None, {}, raw=b"{")
    assert "id" not in read(reply)
    reply = await whole(safe(), None, {}, raw=b'{"jsonrpc":"2.0","id":"known","method":5}')
    assert read(reply)["id"] == "known"


@pytest.mark.req("M-095", "M-102", "M-010")
async def test_a_notification_of_2026_07_28_is_taken_and_does_nothing() -> None:
    tools = Tools()
    exchange = safe(tools)
    message = modern(tool("wait", 1))
    running = asyncio.create_task(whole(exchange, message, modern_headers(message)))
    await tools.begun.wait()
    for headers in (modern_headers(cancel(1)), {"MCP-Protocol-Version": LATEST}, {}):
        reply = await whole(exchange, modern(cancel(1)), headers)
        assert (reply.status, reply.body) == (202, b"")
    for version in ("2027-01-01", "banana"):
        reply = await whole(exchange, notification(), {"MCP-Protocol-Version": version})
        assert reply.status == 400
        assert "id" not in read(reply)
    assert not tools.stopped
    assert not tools.heard
    tools.go.set()
    assert (await running).status == 200


@pytest.mark.req("M-016", "M-094")
async def test_a_response_is_no_message_for_a_server_of_2026_07_28() -> None:
    response = {"jsonrpc": "2.0", "id": "server-1", "result": {}}
    reply = await whole(safe(), response, {"MCP-Protocol-Version": LATEST})
    assert (reply.status, code(reply)) == (400, -32600)
    assert (await whole(safe(protocol_versions=(LATEST,)), response)).status == 400


@pytest.mark.req("M-018")
async def test_a_batch_is_no_message_of_2026_07_28() -> None:
    for exchange in (safe(), safe(protocol_versions=(LATEST,))):
        reply = await whole(exchange, [modern(request())], {"MCP-Protocol-Version": LATEST})
        assert (reply.status, code(reply)) == (400, -32600)


# -- whatever comes ----------------------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
ENVELOPES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | VALUES,
        "id": st.integers() | st.text() | VALUES,
        "method": st.sampled_from(["initialize", "tools/call", "tools/list", "notifications/cancelled", "ping"])
        | VALUES,
        "params": st.fixed_dictionaries(
            {},
            optional={
                "_meta": st.fixed_dictionaries(
                    {},
                    optional={
                        PREFIX + "protocolVersion": st.sampled_from([LATEST, "2025-06-18"]) | VALUES,
                        PREFIX + "clientCapabilities": st.just({}) | VALUES,
                        "progressToken": VALUES,
                    },
                )
                | VALUES,
                "name": st.just("add") | VALUES,
                "arguments": VALUES,
            },
        )
        | VALUES,
        "result": VALUES,
        "error": VALUES,
    },
)
BODIES = st.binary() | st.one_of(ENVELOPES, st.lists(ENVELOPES, max_size=3), VALUES).map(
    lambda value: json.dumps(value).encode()
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "MCP-Protocol-Version": st.sampled_from([LATEST, "2025-03-26", "2025-11-25"]) | st.text(),
        "Mcp-Method": st.sampled_from(["tools/call", "tools/list"]) | st.text(),
        "Mcp-Name": st.just("add") | st.text(),
        "Accept": st.sampled_from([BOTH, "application/json", "text/event-stream"]) | st.text(),
        "Content-Type": st.just("application/json") | st.text(),
    },
)


@pytest.mark.req("M-026", "M-010")
@given(BODIES, HEADERS, st.booleans(), st.booleans())
def test_whatever_comes_is_answered(body: bytes, headers: dict[str, str], strict: bool, in_session: bool) -> None:
    """By something of the protocol, and never with an internal error."""

    async def run() -> Reply | FakeResponder:
        exchange = Exchange(make(strict=strict), strict=strict)
        session = live(resumable=strict) if in_session else None
        if session is not None:
            await post(exchange, initialize("2025-03-26"), session=session)
        return await post(exchange, None, headers, raw=body, session=session)

    answer = asyncio.run(run())
    if isinstance(answer, Reply):
        assert answer.status in (200, 202, 400, 404, 406, 415), answer
        found = read(answer) if answer.body.startswith((b"{", b"[")) else []
        assert (answer.status == 202) == (not answer.body)
    else:
        found = answer.messages
    for message in found if isinstance(found, list) else [found]:
        assert message.get("error", {}).get("code") not in (-32603, 0)


# -- depth -------------------------------------------------------------------------------------------------------------


def test_nesting_is_measured_outside_of_texts() -> None:
    for depth in (1, 50, 100, 101, 500):
        for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
            text = opening * depth + b"1" + closing * depth
            assert nests_deeper(text, 100) is (depth > 100)
            assert nests_deeper(json.dumps({"x": text.decode()}).encode(), 100) is False
    assert nests_deeper(b"[" + b"[]," * 1000 + b"[]]", 100) is False
    assert nests_deeper(json.dumps(['"\\', "\\" * 7 + "[" * 300, "\"{'" * 200]).encode(), 100) is False
    assert nests_deeper(b"]" * 500 + b"[" * 500, 100) is False


async def test_a_body_that_nests_too_deeply_is_unreadable() -> None:
    value: Any = []
    for _ in range(120):
        value = [value]
    message = modern(tool("deep", value=value))
    reply = await whole(safe(), message, modern_headers(message))
    assert (reply.status, code(reply)) == (400, -32700)
    bare = Exchange(make())
    assert (await whole(bare, message, modern_headers(message))).status == 200
    message = modern(
        tool("deep", value=value[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0])
    )
    assert (await whole(safe(), message, modern_headers(message))).status == 200


async def test_measuring_the_worst_body_does_not_take_long() -> None:
    body = b"[" * 99 + b",".join([b"[]"] * 1_000_000) + b"]" * 99
    begun = time.perf_counter()
    assert nests_deeper(body, 100) is False
    assert time.perf_counter() - begun < 5


# -- streams of 2026-07-28 ---------------------------------------------------------------------------------------------


@pytest.mark.req("M-096", "M-131", "M-132", "M-134", "B-141", "M-043")
async def test_a_reply_is_a_stream_only_when_something_comes_before_it() -> None:
    message = modern(tool("quick", 1, token="t", reports=2))
    answer = await post(safe(), message, modern_headers(message))
    assert isinstance(answer, FakeResponder)
    assert answer.headers is not None
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert [event.id for event in answer.events] == [None, None, None]
    first, second, last = answer.messages
    assert [m["params"]["progressToken"] for m in (first, second)] == ["t", "t"]
    assert last["id"] == 1
    assert last["result"]["resultType"] == "complete"
    for quiet in (modern(tool("quick")), modern(tool("add"))):  # no token, no progress
        assert (await whole(safe(), quiet, modern_headers(quiet))).status == 200
    reply = await whole(safe(), message, {**modern_headers(message), "Accept": "application/json"})
    assert read(reply)["id"] == 1


@pytest.mark.req("M-131")
@pytest.mark.parametrize("token", [0, "", 7, "seven", -1])
async def test_a_progress_token_keeps_its_type(token: int | str) -> None:
    message = modern(tool("quick", token=token))
    answer = await post(safe(), message, modern_headers(message))
    assert isinstance(answer, FakeResponder)
    told = [m["params"]["progressToken"] for m in answer.messages[:-1]]
    assert told == [token, token]
    assert all(type(value) is type(token) for value in told)


@pytest.mark.req("M-019", "M-131")
async def test_the_log_level_is_that_of_one_request() -> None:
    exchange = safe()
    wanting = modern(tool("log", 1), logLevel="debug")
    asked = post(exchange, wanting, modern_headers(wanting))
    silent = modern(tool("log", 2))
    not_asked = post(exchange, silent, modern_headers(silent))
    loud, quiet = await asyncio.gather(asked, not_asked)
    assert isinstance(loud, FakeResponder)
    assert loud.messages[0]["method"] == "notifications/message"
    assert isinstance(quiet, Reply)


@pytest.mark.req("M-135")
async def test_a_long_silence_is_broken_by_a_comment() -> None:
    tools = Tools()
    exchange = Exchange(make(tools), strict=True, keep_alive=0.03)
    responder = FakeResponder()
    message = modern(tool("wait"))
    running = asyncio.create_task(post(exchange, message, modern_headers(message), responder=responder))
    await until(lambda: responder.written.count(b": keep-alive") >= 2)
    tools.go.set()
    await running
    assert responder.messages[-1]["result"]["content"][0]["text"] == "went on"
    only_json = {**modern_headers(message), "Accept": "application/json"}
    tools.go.clear()
    quiet = asyncio.create_task(whole(exchange, message, only_json))
    await asyncio.sleep(0.1)
    assert not quiet.done()
    tools.go.set()
    assert (await quiet).status == 200


@pytest.mark.req("M-137", "M-139", "M-140")
@pytest.mark.parametrize("accept", [BOTH, "application/json"])
@pytest.mark.parametrize("name", ["wait", "deaf", "steps"])
async def test_who_cancels_the_exchange_cancels_the_handler(name: str, accept: str) -> None:
    tools, responder = Tools(), FakeResponder()
    message = modern(tool(name, 3, token=1))
    running = asyncio.create_task(
        post(safe(tools), message, {**modern_headers(message), "Accept": accept}, responder=responder)
    )
    await tools.begun.wait()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    written = responder.written
    running.cancel()
    result = await asyncio.gather(running, return_exceptions=True)
    assert tools.stopped == [3]
    if name != "deaf":
        assert isinstance(result[0], asyncio.CancelledError)
        assert responder.written == written


@pytest.mark.req("M-137", "M-139")
async def test_a_stream_that_breaks_cancels_its_handler() -> None:
    """Also where nothing else watches the connection."""
    tools, responder = Tools(), FakeResponder()
    responder.gone = True
    message = modern(tool("steps", token=1))
    with pytest.raises(ConnectionClosed):
        await post(safe(tools), message, modern_headers(message), responder=responder)
    assert tools.stopped == [1]
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@pytest.mark.req("M-099", "M-045")
async def test_the_status_follows_the_error_while_there_is_a_choice() -> None:
    from typedmcp.core.errors import MCPError

    class Failing(Tools):
        async def _fail(self, context: Any, error: int, report: bool = False) -> str:
            if report:
                await context.report_progress(1)
            raise MCPError(error, "on purpose")

    for number, status in HTTP_STATUS.items():
        message = modern(tool("fail", error=number))
        reply = await whole(safe(Failing()), message, modern_headers(message))
        assert (reply.status, code(reply)) == (status, number)
    message = modern(tool("fail", token=1, error=-32021, report=True))
    answer = await post(safe(Failing()), message, modern_headers(message))
    assert isinstance(answer, FakeResponder)
    assert answer.messages[-1]["error"]["code"] == -32021


@pytest.mark.req("M-005", "M-019")
async def test_two_requests_with_one_id_are_two_requests() -> None:
    tools = Tools()
    exchange = safe(tools)
    waiting = modern(tool("wait", 1))
    running = asyncio.create_task(whole(exchange, waiting, modern_headers(waiting)))
    await tools.begun.wait()
    message = modern(tool("add", 1))
    assert read(await whole(exchange, message, modern_headers(message)))["result"]["content"][0]["text"] == "3"
    tools.go.set()
    assert read(await running)["result"]["content"][0]["text"] == "went on"


async def test_a_server_of_anyones_is_served_in_both_eras(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "typedmcp")
    exchange = Exchange(FakeServer(), strict=True)
    for name, status in (("echo", 200), ("fault", 500)):
        message = modern(request(name))
        assert (await whole(exchange, message, modern_headers(message))).status == status

    class Mute(FakeServer):
        async def dispatch(self, request: Any, context: Any = None) -> None:
            if request.is_notification:
                raise RuntimeError("deaf, too")

    mute = Exchange(Mute())
    reply = await whole(mute, request(), {"Accept": "application/json"})
    assert (reply.status, code(reply)) == (200, -32603)
    assert (await whole(mute, notification())).status == 202


@pytest.mark.req("M-091", "M-129")
async def test_the_principal_reaches_the_handler() -> None:
    message = modern(tool("whoami"))
    reply = await whole(safe(), message, modern_headers(message), principal="ann")
    assert read(reply)["result"]["content"][0]["text"] == f"ann {LATEST}"


async def test_nothing_is_left_of_ten_thousand_requests() -> None:
    exchange = Exchange(make(), strict=False)
    before = len(asyncio.all_tasks())
    for number in range(2000):
        message = modern(tool("quick", number, token=number, reports=1))
        await post(exchange, message, modern_headers(message))
        await post(exchange, tool("add", number))
        await post(exchange, tool("add", number), {"Accept": "application/json"})
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == before
    assert not exchange._handshake._running


# -- the handshake era -------------------------------------------------------------------------------------------------


@pytest.mark.req("H-028")
async def test_without_header_and_session_the_oldest_revision_with_http_is_assumed() -> None:
    for exchange, expected in ((safe(), "2025-03-26"), (Exchange(make()), "2025-11-25")):
        reply = await whole(exchange, tool("whoami"), {"Accept": "application/json"})
        assert read(reply)["result"]["content"][0]["text"] == f"None {expected}"


def live(**options: Any) -> LiveSession:
    return LiveSession(MCPSession("s", fan_out=False), **options)


@pytest.mark.req("H-049", "H-050", "H-051", "M-144", "M-145")
@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("name", ["wait", "deaf"])
async def test_a_cancelled_request_has_no_answer(name: str, streamed: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "typedmcp")
    tools = Tools()
    exchange, session = safe(tools), live(resumable=True)
    accept = {"Accept": BOTH if streamed else "application/json"}
    await post(exchange, initialize(), session=session)
    responder = FakeResponder()
    running = asyncio.create_task(post(exchange, tool(name, 7, token=1), accept, session=session, responder=responder))
    await tools.begun.wait()
    for useless in (cancel(8), cancel("7"), notification("notifications/cancelled", requestId=[])):
        assert (await whole(exchange, useless, session=session)).status == 202
    assert not running.done()
    assert (await whole(exchange, cancel(7), session=session)).status == 202
    answer = await running
    assert tools.stopped == [7]
    if streamed:
        assert responder.messages == []
    else:
        assert isinstance(answer, Reply)
        assert (answer.status, answer.body) == (202, b"")
    assert "tests" in caplog.text
    assert (await whole(exchange, cancel(7), session=session)).status == 202  # too late to matter
    assert not session.busy


@pytest.mark.req("H-049", "M-143")
async def test_a_request_cancelled_before_it_has_begun_leaves_nothing_behind() -> None:
    tools = Tools()
    exchange, session = safe(tools), live(resumable=True)
    await post(exchange, initialize(), session=session)
    responder = FakeResponder()
    running = asyncio.create_task(post(exchange, tool("wait", 7), session=session, responder=responder))
    await asyncio.sleep(0)
    assert session.runs(7)
    await whole(exchange, cancel(7), session=session)
    await running
    assert not session.busy
    assert responder.messages == []


@pytest.mark.req("H-029")
@pytest.mark.parametrize("streamed", [True, False])
async def test_a_client_that_leaves_does_not_cancel(streamed: bool) -> None:
    tools = Tools()
    exchange, session = safe(tools), live(resumable=True)
    await post(exchange, initialize(), session=session)
    accept = {"Accept": BOTH if streamed else "application/json"}
    running = asyncio.create_task(post(exchange, tool("steps", 7, token=1, after=1), accept, session=session))
    await tools.begun.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert session.runs(7)
    assert (session._posts == {"1": None}) is streamed
    tools.go.set()
    await until(lambda: tools.ended == [7])
    await until(lambda: not session.busy)
    assert not session._posts
    kept = session.state.replay("1")
    assert len(kept) == (3 if streamed else 0)


async def test_the_end_of_a_session_ends_what_it_runs() -> None:
    tools = Tools()
    exchange, session = safe(tools), live(resumable=True)
    await post(exchange, initialize(), session=session)
    running = asyncio.create_task(post(exchange, tool("wait", 7), session=session))
    await tools.begun.wait()
    session.close()
    session.close()
    await running
    assert tools.stopped == [7]
    session.notify("notifications/tools/list_changed")
    assert session.state.replay("1") == []


async def test_questions_fail_with_their_session() -> None:
    session = live()
    sent: list[bytes] = []
    asking = asyncio.create_task(session.calls.make(sent.append, METHODS["roots/list"], {}, None))
    await until(lambda: sent)
    session.close()
    with pytest.raises(ConnectionClosed):
        await asking
    with pytest.raises(ConnectionClosed):
        await session.calls.make(sent.append, METHODS["roots/list"], {}, None)


async def test_questions_are_withdrawn_with_whoever_asked() -> None:
    session = live()
    sent: list[bytes] = []
    asking = asyncio.create_task(session.calls.make(sent.append, METHODS["roots/list"], {}, None))
    await until(lambda: sent)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert json.loads(sent[1])["params"]["requestId"] == json.loads(sent[0])["id"]


def test_one_timer_serves_many_and_outlives_its_loop() -> None:
    class Item:
        def __init__(self) -> None:
            self.ticks = 0

        def tick(self) -> None:
            self.ticks += 1

    ticker, left = Ticker(0.01), Item()

    async def leave() -> None:
        ticker.add(left)

    async def use() -> None:
        first, second = Item(), Item()
        ticker.add(first)
        ticker.add(second)
        await until(lambda: first.ticks > 1 and second.ticks > 1)
        ticker.remove(first)
        ticker.remove(first)
        seen = first.ticks
        await until(lambda: second.ticks > 4)
        assert first.ticks == seen
        ticker.remove(second)
        await asyncio.sleep(0.03)

    asyncio.run(leave())  # its loop ends before its time has come
    asyncio.run(use())
    asyncio.run(use())
    assert left.ticks == 0
    assert len(ticker) == 0


async def test_shutting_down_cancels_what_nobody_waits_for() -> None:
    tools = Tools()
    exchange = Exchange(make(tools))
    running = asyncio.create_task(post(exchange, tool("wait")))
    await tools.begun.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await exchange.shut_down()
    assert tools.stopped == [1]


# -- a stream by itself ------------------------------------------------------------------------------------------------


async def test_a_stream_writes_what_it_has_at_once() -> None:
    stream, responder = OutgoingStream(keep_alive=None), FakeResponder()
    for number in range(3):
        stream.send(b"%d" % number)
    stream.end()
    stream.send(b"late")
    await stream.pump(responder)
    assert responder.written == b"012"


async def test_a_reader_that_keeps_up_may_be_sent_any_amount() -> None:
    stream, responder = OutgoingStream(keep_alive=None, max_pending=100), FakeResponder()
    pumping = asyncio.create_task(stream.pump(responder))
    for _ in range(50):
        stream.send(b"x" * 60)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    stream.end()
    await pumping
    assert len(responder.written) == 3000


@pytest.mark.parametrize("stuck", [True, False])
async def test_a_reader_too_slow_loses_its_stream(stuck: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "typedmcp")
    stream, responder = OutgoingStream(keep_alive=None, max_pending=100), FakeResponder()
    responder.slow = asyncio.Event()
    stream.send(b"x" * 500)  # one message of any size may wait
    pumping = asyncio.create_task(stream.pump(responder))
    if stuck:
        await asyncio.sleep(0.01)
    assert not stream.overflowed
    stream.send(b"y")
    assert stream.overflowed
    with pytest.raises(ConnectionClosed, match="slow"):
        await pumping
    assert responder.written == b""
    assert "100 bytes behind" in caplog.text


@pytest.mark.req("M-135")
async def test_a_comment_never_swallows_an_event() -> None:
    stream, responder = OutgoingStream(keep_alive=0.001), FakeResponder()
    pumping = asyncio.create_task(stream.pump(responder))
    for number in range(300):
        await asyncio.sleep(0.001 if number % 3 else 0.0021)
        stream.send(b"data: %d\n\n" % number)
    stream.end()
    await pumping
    assert [int(event.data) for event in responder.events] == list(range(300))
    assert b": keep-alive" in responder.written
