"""The client over any transport: handshake, correlation, deadlines, calls (requirements A10, A11)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.helpers import (
    CHANGED,
    SEED,
    Events,
    ScriptedServer,
    initialize_result,
    method_of,
    talking,
    text_result,
    tool,
    turns,
)

from typedmcp import App, MCPClient, MCPServer, Tool, ToolManager, connect, types
from typedmcp.client.client import (
    DEFAULT_MCP_CLIENT_NAME,
    DEFAULT_MCP_CLIENT_VERSION,
    DEFAULT_MCP_REQUEST_TIMEOUT,
)
from typedmcp.core.emitter import Emitter
from typedmcp.core.errors import (
    ConnectionClosed,
    InvalidResult,
    MCPError,
    NotConnected,
    RequestTimeout,
    ToolError,
    TransportError,
    TypedMCPError,
)
from typedmcp.core.jsonrpc import JSONRPCErrorData, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse
from typedmcp.transports.memory import create_memory_pair, serve_memory

# --- opening


@pytest.mark.req("A-065", "A-066", "A-126", "A-131", "H-001", "H-006")
async def test_the_handshake_is_byte_for_byte_seed_as() -> None:
    server = ScriptedServer()
    client = MCPClient(transport=server.client, protocol_version=SEED)
    opening = asyncio.create_task(client.connect())
    assert await server.line() == (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
        b'"clientInfo":{"name":"taverna","version":"1.0.0"}}}'
    )
    server.send({"jsonrpc": "2.0", "id": 1, "result": initialize_result()})
    assert await server.line() == b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    await opening
    await client.disconnect()


@pytest.mark.req("A-067", "A-131")
def test_defaults() -> None:
    assert (DEFAULT_MCP_CLIENT_NAME, DEFAULT_MCP_CLIENT_VERSION) == ("taverna", "1.0.0")
    assert DEFAULT_MCP_REQUEST_TIMEOUT == 30.0


@pytest.mark.req("A-102", "A-126")
async def test_name_and_version_are_the_callers() -> None:
    server = ScriptedServer()
    client = MCPClient(transport=server.client, protocol_version=SEED, name="", version="9")
    opening = asyncio.create_task(client.connect())
    assert (await server.shake_hands())["params"]["clientInfo"] == {"name": "", "version": "9"}
    await opening
    await client.disconnect()


@pytest.mark.req("A-125", "A-130", "A-151", "H-003", "H-004")
async def test_send_then_mark_then_fire() -> None:
    """Choice C-01: `initialized` is on its way before the client counts as connected, and then `connect` fires."""
    server = ScriptedServer()
    seen: list[tuple[str, bool, int]] = []
    client = MCPClient(
        transport=server.client,
        protocol_version=SEED,
        on={"connect": lambda: seen.append(("connect", client.connected, len(sent)))},
    )
    sent: list[bool] = []
    send = server.client.send

    async def watched(message: Any) -> None:
        if isinstance(message, JSONRPCRequest) and message.method == "notifications/initialized":
            sent.append(client.connected)
        await send(message)

    server.client.send = watched  # type: ignore[method-assign]
    opening = asyncio.create_task(client.connect())
    await server.frame("initialize")
    await server.silence()
    assert not client.connected
    server.send({"jsonrpc": "2.0", "id": 1, "result": initialize_result()})
    await opening
    assert sent == [False]
    assert seen == [("connect", True, 1)]
    assert client.connected
    await client.disconnect()


@pytest.mark.req("A-125")
async def test_a_failed_initialized_leaves_the_client_disconnected() -> None:
    server, events = ScriptedServer(), Events()
    client = MCPClient(transport=server.client, protocol_version=SEED, on=events.on)
    send = server.client.send

    async def broken(message: Any) -> None:
        if isinstance(message, JSONRPCRequest) and message.method == "notifications/initialized":
            raise TransportError("broken pipe")
        await send(message)

    server.client.send = broken  # type: ignore[method-assign]
    opening = asyncio.create_task(client.connect())
    await server.reply("initialize", initialize_result())
    with pytest.raises(TransportError, match="broken pipe"):
        await opening
    assert not client.connected
    assert events.names() == []
    await server.ended()


@pytest.mark.req("A-127")
async def test_connect_is_idempotent_and_shared() -> None:
    server, events = ScriptedServer(), Events()
    client = MCPClient(transport=server.client, protocol_version=SEED, on=events.on)
    both = asyncio.gather(client.connect(), client.connect())
    await server.shake_hands()
    await both
    await client.connect()
    await server.silence()
    assert events.names() == ["connect"]
    await client.disconnect()


async def test_what_the_server_told_is_known() -> None:
    server = ScriptedServer()
    client = MCPClient(transport=server.client, protocol_version=SEED)
    for name in ("protocol_version", "server_info", "server_capabilities", "instructions"):
        with pytest.raises(NotConnected, match=r"connect\(\) first"):
            getattr(client, name)
    opening = asyncio.create_task(client.connect())
    await server.shake_hands(instructions="be kind")
    await opening
    assert client.protocol_version == SEED
    assert client.server_info is not None
    assert client.server_info.name == "scripted"
    assert client.server_capabilities.tools is not None
    assert client.server_capabilities.prompts is None
    assert client.instructions == "be kind"
    await client.disconnect()


async def test_a_request_before_connect_says_what_to_do() -> None:
    client = MCPClient(transport=ScriptedServer().client)
    with pytest.raises(NotConnected, match=r"call connect\(\) first"):
        await client.call("add")


@pytest.mark.req("A-127")
async def test_one_of_two_connects_given_up_does_not_harm_the_other() -> None:
    server = ScriptedServer()
    client = MCPClient(transport=server.client, protocol_version=SEED)
    one, other = asyncio.create_task(client.connect()), asyncio.create_task(client.connect())
    frame = await server.frame("initialize")
    one.cancel()
    await turns()
    server.answer(frame, initialize_result())
    await other
    assert client.connected
    assert one.cancelled()
    await client.disconnect()


async def test_a_connect_given_up_closes_what_it_opened() -> None:
    """F045: without this a child process would outlive an `async with` that never began."""
    server, events = ScriptedServer(), Events()
    client = MCPClient(transport=server.client, protocol_version=SEED, on=events.on)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), client:
            pytest.fail("not reached")
    await server.frame("initialize")
    await server.ended()
    assert not client.connected
    assert events.names() == []


# --- closing


@pytest.mark.req("A-128", "A-129", "A-151")
async def test_disconnect_rejects_what_waits_closes_and_fires_once() -> None:
    events = Events()
    async with talking(on=events.on) as (client, server):
        calls = [asyncio.create_task(client.list_tools()), asyncio.create_task(client.ping())]
        await server.frame("tools/list")
        await server.frame("ping")
        await client.disconnect()
        for call, method in zip(calls, ("tools/list", "ping"), strict=True):
            with pytest.raises(ConnectionClosed, match=method):
                await call
        assert not client.connected
        await server.ended()
        await client.disconnect()
        assert events.names() == ["connect", "disconnect"]


@pytest.mark.req("A-128", "A-129")
async def test_disconnect_from_another_task_at_once_and_twice() -> None:
    """F045: connect in one task, close in others, at the same time."""
    events = Events()
    async with talking(on=events.on) as (client, _):
        await asyncio.gather(*(asyncio.create_task(client.disconnect()) for _ in range(3)))
        assert events.names() == ["connect", "disconnect"]


@pytest.mark.req("A-128")
async def test_disconnect_goes_on_when_its_caller_is_cancelled() -> None:
    """F045: an exit stack that is itself being cancelled still closes the connection."""
    async with talking() as (client, server):
        leaving = asyncio.create_task(client.disconnect())
        await asyncio.sleep(0)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        await server.ended()
        assert not client.connected


@pytest.mark.req("A-128")
async def test_disconnect_while_connecting() -> None:
    """The one who connects sees an ordinary error, not the cancellation of a task that was not its own."""
    server, events = ScriptedServer(), Events()
    client = MCPClient(transport=server.client, protocol_version=SEED, on=events.on)
    opening = asyncio.create_task(client.connect())
    await server.frame("initialize")
    await client.disconnect()
    with pytest.raises(ConnectionClosed, match="while connecting"):
        await opening
    await server.ended()
    assert events.names() == []


@pytest.mark.req("A-129")
async def test_disconnect_without_a_connection_is_silent() -> None:
    events = Events()
    client = MCPClient(transport=ScriptedServer().client, on=events.on)
    await client.disconnect()
    await client.disconnect()
    assert events.names() == []


async def test_disconnect_fires_even_when_closing_the_transport_fails() -> None:
    events = Events()
    async with talking(on=events.on) as (client, server):
        close = server.client.close

        async def broken() -> None:
            await close()
            raise TransportError("cannot close")

        server.client.close = broken  # type: ignore[method-assign]
        with pytest.raises(TransportError):
            await client.disconnect()
        assert events.names() == ["connect", "disconnect"]
        server.client.close = close  # type: ignore[method-assign]
        await client.connect() if client.connected else None
        client._closing = None


@pytest.mark.req("A-129")
async def test_the_end_by_the_server_is_one_disconnect() -> None:
    events = Events()
    async with talking(on=events.on) as (client, server):
        await server.close()
        await turns()
        assert not client.connected
        with pytest.raises(NotConnected):
            await client.ping()
        await client.disconnect()
        assert events.names() == ["connect", "disconnect"]


# --- correlation


@pytest.mark.req("A-141", "H-010", "M-005")
async def test_ids_count_up_from_one() -> None:
    async with talking() as (client, server):
        for number in (2, 3, 4):
            call = asyncio.create_task(client.ping())
            assert (await server.reply("ping", {}))["id"] == number
            await call


@pytest.mark.req("A-142", "A-144", "A-145", "M-006")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
async def test_answers_find_their_requests_in_any_order(order: tuple[int, ...]) -> None:
    async with talking() as (client, server):
        calls = [asyncio.create_task(client.call(name)) for name in "abc"]
        frames = [await server.frame("tools/call") for _ in calls]
        for index in order:
            server.answer(frames[index], text_result(json.dumps(frames[index]["params"]["name"])))
        assert await asyncio.gather(*calls) == ["a", "b", "c"]


@pytest.mark.req("A-142", "A-146", "M-006")
@pytest.mark.parametrize("wrong", ["2", "02", " 2 ", 3, "", 0, -2])
async def test_an_answer_with_another_id_answers_nothing(wrong: object) -> None:
    """F019, F020, F021: ids are never folded."""
    events = Events()
    async with talking(on=events.on) as (client, server):
        call = asyncio.create_task(client.ping())
        await server.frame("ping")
        server.send({"jsonrpc": "2.0", "id": wrong, "result": {}})
        await turns()
        assert not call.done()
        assert [message.id for message in events.of("notification")] == [wrong]
        server.send({"jsonrpc": "2.0", "id": 2, "result": {}})
        assert await call == {}


@pytest.mark.req("A-143", "M-025", "M-028")
@pytest.mark.parametrize("code", [-32601, 0, -1, -32000, 7])
async def test_an_error_answer_is_raised(code: int) -> None:
    async with talking() as (client, server):
        call = asyncio.create_task(client.ping())
        server.refuse(await server.frame("ping"), code, "not here", {"hint": [1]})
        with pytest.raises(MCPError) as caught:
            await call
        assert str(caught.value) == f"MCP error {code}: not here"
        assert (caught.value.code, caught.value.message, caught.value.data) == (code, "not here", {"hint": [1]})


@pytest.mark.req("A-146", "M-144")
async def test_what_answers_nothing_is_a_notification() -> None:
    """F076: notifications known and unknown, late and foreign answers, all surface."""
    events = Events()
    async with talking(on=events.on) as (client, server):
        call = asyncio.create_task(client.ping(timeout=0.01))
        frame = await server.frame("ping")
        with pytest.raises(RequestTimeout):
            await call
        server.answer(frame, {})
        server.send(CHANGED)
        server.notify("notifications/unheard_of", x=1)
        server.send({"jsonrpc": "2.0", "id": 77, "error": {"code": 1, "message": "m"}})
        server.send({"jsonrpc": "2.0", "error": {"code": -32700, "message": "m"}})
        await turns()
        notes = events.of("notification")
        assert [method_of(note) for note in notes] == [None, CHANGED["method"], "notifications/unheard_of", None, None]
        assert notes[0].id == frame["id"]
        assert events.of("error") == []


@pytest.mark.req("A-146", "H-018", "H-035")
@pytest.mark.parametrize("request_id", [0, "", "1", 1, 2, "two"])
async def test_ping_of_the_server_is_answered_with_its_own_id(request_id: object) -> None:
    """F021, F028: in both directions, whatever the id; it is no answer to a request of ours with that id."""
    events = Events()
    async with talking(on=events.on) as (client, server):
        call = asyncio.create_task(client.ping())
        mine = await server.frame("ping")
        server.send({"jsonrpc": "2.0", "id": request_id, "method": "ping"})
        assert await server.frame() == {"jsonrpc": "2.0", "id": request_id, "result": {}}
        assert not call.done()
        server.answer(mine, {})
        await call
        assert [method_of(note) for note in events.of("notification")] == ["ping"]


@pytest.mark.req("H-018")
async def test_ping_of_the_server_is_answered_before_the_handshake_ends() -> None:
    server = ScriptedServer()
    client = MCPClient(transport=server.client, protocol_version=SEED)
    opening = asyncio.create_task(client.connect())
    frame = await server.frame("initialize")
    server.send({"jsonrpc": "2.0", "id": 9, "method": "ping"})
    assert await server.frame() == {"jsonrpc": "2.0", "id": 9, "result": {}}
    server.answer(frame, initialize_result())
    await opening
    await client.disconnect()


@pytest.mark.req("A-146", "H-066")
@pytest.mark.parametrize("method", ["sampling/createMessage", "roots/list", "elicitation/create", "made/up"])
async def test_other_requests_of_the_server_are_refused_and_surface(method: str) -> None:
    events = Events()
    async with talking(on=events.on) as (_, server):
        server.send({"jsonrpc": "2.0", "id": "q", "method": method, "params": {}})
        error = {"code": -32601, "message": f"Method not found: {method}"}
        assert await server.frame() == {"jsonrpc": "2.0", "id": "q", "error": error}
        assert [method_of(note) for note in events.of("notification")] == [method]


# --- deadlines and failures of the transport


@pytest.mark.req("A-147", "A-148", "M-033", "M-146")
async def test_a_request_times_out() -> None:
    async with talking(timeout=0.02) as (client, server):
        with pytest.raises(RequestTimeout, match=r"tools/list timed out after 0\.02 s") as caught:
            await client.list_tools()
        assert isinstance(caught.value, TimeoutError)
        assert isinstance(caught.value, TypedMCPError)
        assert not isinstance(caught.value, (MCPError, TransportError))
        await server.frame("tools/list")


@pytest.mark.req("A-147", "M-146")
async def test_the_timeout_of_a_request_wins_over_the_clients() -> None:
    """F050: one place decides; a longer one is not capped, None has no limit."""
    async with talking(timeout=0.02) as (client, server):
        for timeout in (5.0, None):
            call = asyncio.create_task(client.ping(timeout=timeout))
            frame = await server.frame("ping")
            await asyncio.sleep(0.05)
            server.answer(frame, {})
            assert await call == {}


@pytest.mark.req("A-147")
async def test_the_timeout_counts_while_sending() -> None:
    """A transport that does not get rid of a message must not hold its caller for ever."""
    async with talking() as (client, server):
        send = server.client.send

        async def stuck(message: Any) -> None:
            await asyncio.sleep(60)

        server.client.send = stuck  # type: ignore[method-assign]
        call = asyncio.create_task(client.ping(timeout=0.02))
        await asyncio.sleep(0.03)
        server.client.send = send  # type: ignore[method-assign]
        with pytest.raises(RequestTimeout):
            await call


@pytest.mark.req("A-149")
async def test_a_timeout_leaves_no_timer() -> None:
    """The fixture of this folder finds leftover tasks; here: no call_later outlives an answered request."""
    async with talking() as (client, server):
        loop = asyncio.get_running_loop()
        before = len([handle for handle in loop._scheduled if not handle.cancelled()])  # type: ignore[attr-defined]
        for _ in range(5):
            call = asyncio.create_task(client.ping(timeout=100, max_timeout=200))
            await server.reply("ping", {})
            await call
        after = len([handle for handle in loop._scheduled if not handle.cancelled()])  # type: ignore[attr-defined]
        assert after <= before


@pytest.mark.req("A-150")
async def test_a_failed_send_fails_its_own_request_only() -> None:
    async with talking() as (client, server):
        other = asyncio.create_task(client.ping())
        frame = await server.frame("ping")
        send = server.client.send

        async def broken(message: Any) -> None:
            raise TransportError("cannot write")

        server.client.send = broken  # type: ignore[method-assign]
        with pytest.raises(TransportError, match="cannot write"):
            await client.list_tools()
        server.client.send = send  # type: ignore[method-assign]
        server.answer(frame, {})
        assert await other == {}
        await server.silence()


@pytest.mark.req("A-150")
async def test_a_time_out_of_the_operating_system_is_not_taken_for_the_requests() -> None:
    async with talking() as (client, server):
        send = server.client.send

        async def slow(message: Any) -> None:
            raise TimeoutError("connect timed out")

        server.client.send = slow  # type: ignore[method-assign]
        with pytest.raises(TimeoutError, match="connect timed out") as caught:
            await client.list_tools()
        assert not isinstance(caught.value, RequestTimeout)
        server.client.send = send  # type: ignore[method-assign]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
async def test_arguments_without_a_json_form_fail_before_they_leave(number: float) -> None:
    """F089: NaN would arrive as null."""
    async with talking() as (client, server):
        with pytest.raises(ValueError, match="/params/arguments/x"):
            await client.call("f", {"x": number})
        await server.silence()


# --- tools


@pytest.mark.req("A-132", "A-133", "A-134", "A-135")
async def test_remote_tools_are_local_objects() -> None:
    async with talking() as (client, server):
        listing = asyncio.create_task(client.tools())
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "x-mine": True}
        entry = tool("add", description="Adds.", inputSchema=schema, title="Add")
        await server.reply("tools/list", {"tools": [entry, tool("bare")]})
        add, bare = await listing
        assert (add.name, add.description, add.parameters) == ("add", "Adds.", schema)
        assert (bare.name, bare.description, bare.parameters) == ("bare", None, {"type": "object"})
        assert add.descriptor.title == "Add"
        call = asyncio.create_task(add.execute({"a": 1}))
        frame = await server.reply("tools/call", text_result("3"))
        assert frame["params"] == {"name": "add", "arguments": {"a": 1}}
        assert await call == 3


@pytest.mark.req("A-133")
@pytest.mark.parametrize("name", [5, None, ["add"]])
async def test_a_tool_without_a_name_fails_the_listing_cleanly(name: object) -> None:
    async with talking() as (client, server):
        listing = asyncio.create_task(client.tools())
        await server.reply("tools/list", {"tools": [tool("fine"), {**tool("x"), "name": name}]})
        with pytest.raises(InvalidResult) as caught:
            await listing
        assert [entry.pointer for entry in caught.value.violations] == ["/tools/1/name"]


async def test_all_pages_are_walked() -> None:
    """F114, F112: the empty cursor is one; only an absent or null one ends the list."""
    async with talking() as (client, server):
        listing = asyncio.create_task(client.tools())
        pages: list[tuple[object, dict[str, Any]]] = [
            (None, {"nextCursor": ""}),
            ("", {"nextCursor": "b"}),
            ("b", {"nextCursor": None}),
        ]
        for index, (cursor, more) in enumerate(pages):
            frame = await server.reply("tools/list", {"tools": [tool(f"t{index}")], **more})
            assert frame["params"] == ({} if cursor is None else {"cursor": cursor})
        assert [entry.name for entry in await listing] == ["t0", "t1", "t2"]


@pytest.mark.parametrize("cursors", [["x", "x"], ["", ""], ["x", "y", "x"]])
async def test_a_cursor_that_comes_again_ends_in_an_error(cursors: list[str]) -> None:
    """F113: never collect copies without end."""
    async with talking() as (client, server):
        listing = asyncio.create_task(client.tools())
        for cursor in cursors:
            await server.reply("tools/list", {"tools": [tool("t")], "nextCursor": cursor})
        with pytest.raises(InvalidResult, match="twice"):
            await listing
        await server.silence()


async def test_one_page_is_to_be_had_too() -> None:
    """F114: a page-wise call exists as well."""
    async with talking() as (client, server):
        call = asyncio.create_task(client.list_tools("c7"))
        frame = await server.reply("tools/list", {"tools": [], "nextCursor": "c8"})
        assert frame["params"] == {"cursor": "c7"}
        assert (await call).next_cursor == "c8"


# --- what call gives

Structured = {"content": [{"type": "text", "text": "?"}], "structuredContent": {"a": 1}}
VALUES: list[tuple[str, dict[str, Any], Any]] = [
    ("number", text_result("7"), 7),
    ("no separator", text_result("[1,", "2]"), [1, 2]),
    ("raw text", text_result("hello ", "world"), "hello world"),
    ("half json", text_result("{"), "{"),
    ("empty text", text_result(""), None),
    ("no content", {"content": []}, None),
    ("null", text_result("null"), None),
    (
        "images are handed over",
        {"content": [{"type": "image", "data": "AA==", "mimeType": "a/b"}]},
        [types.ImageContent(data="AA==", mime_type="a/b")],
    ),
    ("isError false", text_result("7", isError=False), 7),
    ("structured first", Structured, {"a": 1}),
    ("structured, no text", {"content": [], "structuredContent": {"result": 5}}, {"result": 5}),
    ("wrapped", text_result("5", structuredContent={"result": 5}), 5),
    ("wrapped string", text_result("5", structuredContent={"result": "5"}), "5"),
    ("wrapped list", text_result("[1, 2]", structuredContent={"result": [1, 2]}), [1, 2]),
    ("wrapped null", text_result("null", structuredContent={"result": None}), None),
    ("own key result", text_result("other", structuredContent={"result": 5}), {"result": 5}),
    ("an object with more", text_result("5", structuredContent={"result": 5, "x": 1}), {"result": 5, "x": 1}),
    ("deep text", text_result("[" * 100_000), "[" * 100_000),
]


@pytest.mark.req("A-136", "A-138", "A-139")
@pytest.mark.parametrize(("result", "value"), [case[1:] for case in VALUES], ids=[case[0] for case in VALUES])
async def test_call_gives_the_value(result: dict[str, Any], value: object) -> None:
    async with talking() as (client, server):
        call = asyncio.create_task(client.call("f", {"x": 1}))
        frame = await server.reply("tools/call", result)
        assert frame["params"] == {"name": "f", "arguments": {"x": 1}}
        assert await call == value


@pytest.mark.req("A-137", "A-140")
async def test_call_raises_what_the_tool_says() -> None:
    """F093, F092: the error carries everything; nothing about it is validated."""
    async with talking() as (client, server):
        call = asyncio.create_task(client.call("f"))
        result = text_result("no ", "way", isError=True, structuredContent={"code": "X"}, _meta={"m": 1})
        await server.reply("tools/call", result)
        with pytest.raises(ToolError) as caught:
            await call
        assert str(caught.value) == "no way"
        assert isinstance(caught.value, Exception)
        assert [block.text for block in caught.value.content] == ["no ", "way"]
        assert caught.value.structured_content == {"code": "X"}
        assert caught.value.meta == {"m": 1}


@pytest.mark.req("A-137")
async def test_a_failure_without_text_still_says_something() -> None:
    async with talking() as (client, server):
        call = asyncio.create_task(client.call("f"))
        await server.reply("tools/call", {"content": [], "isError": True})
        with pytest.raises(ToolError, match="without saying why"):
            await call


@pytest.mark.req("A-137")
@pytest.mark.parametrize("flag", [1, "true", "yes", [True]])
async def test_only_true_is_true(flag: object) -> None:
    async with talking() as (client, server):
        call = asyncio.create_task(client.call("f"))
        await server.reply("tools/call", text_result("7", isError=flag))
        with pytest.raises(InvalidResult) as caught:
            await call
        assert [entry.pointer for entry in caught.value.violations] == ["/isError"]


@pytest.mark.req("A-136")
async def test_call_tool_gives_the_whole_result() -> None:
    """The stub's method raises nothing for a failed tool (F091: everything received is there)."""
    async with talking() as (client, server):
        call = asyncio.create_task(client.call_tool("f"))
        frame = await server.reply("tools/call", text_result("no", isError=True, structuredContent=None))
        assert frame["params"] == {"name": "f"}
        result = await call
        assert result.is_error is True
        assert result.structured_content is None


# --- listeners


@pytest.mark.req("A-151", "A-152", "A-109")
async def test_listeners_are_isolated() -> None:
    failures: list[tuple[str, str]] = []

    def fail(*_: object) -> None:
        raise ValueError("mine")

    events = Events()
    async with talking(on={"connect": fail}, error=lambda error, event: failures.append((str(error), event))) as (
        client,
        server,
    ):
        for event in ("notification", "error", "disconnect"):
            client.on(event, fail)
            client.on(event, events.on[event])
        server.send(CHANGED)
        server.send(b"not json")
        await turns()
        call = asyncio.create_task(client.ping())
        await server.reply("ping", {})
        await call
    assert failures == [("mine", event) for event in ("connect", "notification", "error", "disconnect")]
    assert events.names() == ["notification", "error", "disconnect"]


@pytest.mark.req("A-103", "A-154")
async def test_members_are_read_only() -> None:
    server = ScriptedServer()
    client = MCPClient(transport=server.client)
    assert client.transport is server.client
    assert isinstance(client.emitter, Emitter)
    for name in ("transport", "connected", "emitter"):
        with pytest.raises(AttributeError):
            setattr(client, name, None)


# --- any transport


class DictTransport:
    """A transport by somebody else: in process, its messages plain values that were never bytes."""

    def __init__(self, answer: Callable[[JSONRPCRequest], object]) -> None:
        self.emitter = Emitter()
        self.session: str | None = "s1"
        self._answer = answer
        self.log: list[str] = []

    async def start(self) -> None:
        self.log.append("start")

    async def send(self, message: JSONRPCMessage | Any) -> None:
        assert isinstance(message, JSONRPCRequest)
        self.log.append(message.method)
        if isinstance(message.id, int):
            answer = self._answer(message)
            response = (
                JSONRPCResponse(id=message.id, error=answer)
                if isinstance(answer, JSONRPCErrorData)
                else JSONRPCResponse(id=message.id, result=answer)
            )
            self.emitter.emit("message", response)

    async def close(self) -> None:
        self.log.append("close")
        self.emitter.emit("close")


@pytest.mark.req("A-100", "A-153", "A-155", "A-156", "A-157")
async def test_a_transport_made_by_hand() -> None:
    """It may answer from inside send(), and its results may be plain values."""
    answers: dict[str, object] = {
        "initialize": initialize_result(),
        "tools/call": text_result("7"),
        "ping": JSONRPCErrorData(code=1, message="m"),
    }
    transport = DictTransport(lambda request: answers[request.method])
    async with MCPClient(transport=transport, protocol_version=SEED) as client:
        assert await client.call("f") == 7
        with pytest.raises(MCPError, match="MCP error 1: m"):
            await client.ping()
    assert transport.log == ["start", "initialize", "notifications/initialized", "tools/call", "ping", "close"]


@pytest.mark.req("A-125", "A-128", "A-151")
async def test_a_transport_that_can_start_again_can_be_used_again() -> None:
    """Ids go on counting, so that nothing of the first connection is taken for an answer in the second (H-010)."""
    events = Events()
    sent: list[object] = []

    def answer(request: JSONRPCRequest) -> object:
        sent.append(request.id)
        return initialize_result() if request.method == "initialize" else {}

    transport = DictTransport(answer)
    client = MCPClient(transport=transport, protocol_version=SEED, on=events.on)
    for _ in range(2):
        async with client:
            assert await client.ping() == {}
    assert sent == [1, 2, 3, 4]
    assert events.names() == ["connect", "disconnect"] * 2


@pytest.mark.req("A-125")
async def test_a_connect_that_failed_can_be_tried_again() -> None:
    answers: list[object] = [JSONRPCErrorData(code=1, message="not yet"), initialize_result()]
    transport = DictTransport(lambda request: answers.pop(0))
    client = MCPClient(transport=transport, protocol_version=SEED)
    with pytest.raises(MCPError, match="not yet"):
        await client.connect()
    assert transport.log == ["start", "initialize", "close"]
    await client.connect()
    assert client.connected
    await client.disconnect()


async def test_connect_waits_for_a_disconnect_under_way() -> None:
    events = Events()
    transport = DictTransport(lambda request: initialize_result())
    close = transport.close

    async def slow() -> None:
        await asyncio.sleep(0.02)
        transport.log.append("closing")
        await close()

    transport.close = slow  # type: ignore[method-assign]
    client = MCPClient(transport=transport, protocol_version=SEED, on=events.on)
    await client.connect()
    leaving = asyncio.create_task(client.disconnect())
    await turns()
    await client.connect()
    await leaving
    assert events.names() == ["connect", "disconnect", "connect"]
    opening = ["start", "initialize", "notifications/initialized"]
    assert transport.log == [*opening, "closing", "close", *opening]
    await client.disconnect()


@pytest.mark.req("A-155")
async def test_a_transport_that_cannot_be_opened() -> None:
    """F048: its own error comes out, and what it may hold is released."""
    events = Events()
    transport = DictTransport(lambda request: {})

    async def refused() -> None:
        raise TransportError("connection refused")

    transport.start = refused  # type: ignore[method-assign]
    client = MCPClient(transport=transport, on=events.on)
    with pytest.raises(TransportError, match="connection refused"):
        await client.connect()
    assert transport.log == ["close"]
    assert events.names() == []


def registry() -> ToolManager:
    manager = ToolManager()
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    manager.add(Tool(id="1", name="add", parameters=schema, execute=lambda arguments: arguments["a"] + arguments["b"]))
    return manager


def calculator() -> App:
    app = App("calculator", "1.0.0")

    @app.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return app


PEERS: list[tuple[str, Callable[[], Any]]] = [
    ("app", calculator),
    ("server", lambda: MCPServer(name="c", version="1", tools=registry())),
    ("transport", lambda: serve_memory(calculator().server).client),
]


@pytest.mark.req("A-003", "A-009", "A-153")
@pytest.mark.parametrize("version", [None, "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
@pytest.mark.parametrize("make", [peer[1] for peer in PEERS], ids=[peer[0] for peer in PEERS])
async def test_the_same_client_against_real_servers(make: Callable[[], Any], version: str | None) -> None:
    async with connect(make(), version=version) as client:
        assert client.protocol_version == (version or "2026-07-28")
        assert await client.call("add", {"a": 1, "b": 2}) == 3
        (only,) = await client.tools()
        assert (only.name, sorted(only.parameters["properties"])) == ("add", ["a", "b"])
        assert await only.execute({"a": 3, "b": 4}) == 7


@pytest.mark.req("A-140")
async def test_a_remote_failure_is_isolated_like_a_local_one() -> None:
    """A remote tool in a caller's own registry: its failure becomes that registry's error result."""
    manager = ToolManager()

    def explode(arguments: dict[str, Any]) -> None:
        raise RuntimeError("boom")

    manager.add(Tool(id="1", name="explode", execute=explode))
    async with connect(MCPServer(name="far", version="1", tools=manager)) as far:
        near = ToolManager()
        for remote in await far.tools():
            near.add(Tool(id=remote.name, name=remote.name, parameters=remote.parameters, execute=remote.execute))
        async with connect(MCPServer(name="near", version="1", tools=near)) as client:
            with pytest.raises(ToolError, match="boom"):
                await client.call("explode")


@pytest.mark.req("A-155", "A-156", "A-157", "A-158", "A-160")
async def test_a_transport_driven_by_hand() -> None:
    here, there = create_memory_pair()
    got: list[JSONRPCMessage] = []
    ends: list[str] = []
    there.emitter.on("message", got.append)
    here.emitter.on("close", lambda: ends.append("here"))
    there.emitter.on("close", lambda: ends.append("there"))
    await here.start()
    await there.start()
    assert here.session is None
    await here.send(JSONRPCRequest(id=1, method="ping"))
    await here.send([JSONRPCRequest(method="a"), JSONRPCRequest(method="b")])
    await turns()
    assert [method_of(message) for message in got] == ["ping", "a", "b"]
    await here.close()
    await here.close()
    await turns()
    assert sorted(ends) == ["here", "there"]
