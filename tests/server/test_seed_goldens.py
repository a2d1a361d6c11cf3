"""The reference document's server: a bare MCPServer over a ToolManager, byte for byte where it gives bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

import typedmcp.core as core
from typedmcp import MCPServer, Tool, ToolManager
from typedmcp.client.client import DEFAULT_MCP_CLIENT_NAME, DEFAULT_MCP_CLIENT_VERSION, DEFAULT_MCP_REQUEST_TIMEOUT
from typedmcp.core.errors import UsageError
from typedmcp.core.guards import is_jsonrpc_response
from typedmcp.core.jsonrpc import JSONRPCRequest, JSONRPCResponse, decode_message
from typedmcp.server import ToolCall, ToolResult, initialize_result

SEED = ("2025-06-18", "2025-03-26")


def add(arguments: dict[str, Any]) -> Any:
    return arguments["x"] + arguments["y"]


def calculator(**options: Any) -> MCPServer:
    tools = ToolManager()
    tools.add(Tool(id="add", name="add", execute=add))
    return MCPServer(**{"name": "calculator", "version": "1.0.0", "tools": tools, "protocol_versions": SEED, **options})


def text(method: str, params: Any = None, id: Any = 1) -> str:  # noqa: A002
    message = {"jsonrpc": "2.0", "id": id, "method": method}
    return json.dumps(message if params is None else {**message, "params": params})


async def ask(server: MCPServer, method: str, params: Any = None) -> Any:
    reply = await server.handle(text(method, params))
    assert reply is not None
    return json.loads(reply)


# -- bytes -----------------------------------------------------------------------------------------------------------


@pytest.mark.req("A-002", "A-017", "A-028", "A-029", "A-040", "A-041", "A-042", "A-043", "A-052", "A-054")
async def test_the_documented_list() -> None:
    reply = await calculator().handle('{"jsonrpc":"2.0","method":"tools/list","id":1}')
    assert reply == '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"add","inputSchema":{"type":"object"}}]}}'


@pytest.mark.req("A-017", "A-028", "A-030", "A-044", "A-049", "A-085")
async def test_the_documented_call() -> None:
    reply = await calculator().handle(
        '{"jsonrpc":"2.0","method":"tools/call","id":2,"params":{"name":"add","arguments":{"x":2,"y":5}}}'
    )
    assert reply == '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"7"}]}}'


@pytest.mark.req("A-035", "A-036", "A-095")
async def test_the_handshake() -> None:
    reply = await calculator().handle(
        '{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},'
        '"clientInfo":{"name":"taverna","version":"1.0.0"}}}'
    )
    assert reply == (
        '{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},'
        '"serverInfo":{"name":"calculator","version":"1.0.0"}}}'
    )


@pytest.mark.req("A-039", "A-026")
@pytest.mark.parametrize(("id_", "written"), [(1, "1"), (0, "0"), ("1", '"1"'), ("", '""'), ("ü", '"ü"')])
async def test_ping_and_the_id_as_it_came(id_: Any, written: str) -> None:
    assert await calculator().handle(text("ping", id=id_)) == f'{{"jsonrpc":"2.0","id":{written},"result":{{}}}}'


@pytest.mark.req("A-018", "A-019", "A-020", "A-021", "A-027", "A-060", "A-061")
@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("{", -32700),
        ("", -32700),
        ("[" * 100_000, -32700),
        ("[]", -32600),
        ("1", -32600),
        ("null", -32600),
        ("{}", -32600),
        ('{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
        ('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}', -32600),
        ('{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        ('{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        ('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
    ],
)
async def test_boundary_failures_carry_a_null_id(message: str, code: int) -> None:
    reply = await calculator().handle(message)
    assert reply is not None
    assert reply.startswith(f'{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":"')
    assert await calculator().handle(message.encode()) == reply.encode()


@pytest.mark.req("A-019", "A-020", "A-071")
@pytest.mark.parametrize("method", ["ping", "tools/list", "tools/call", "initialize", "no/such"])
@pytest.mark.parametrize("params", ["[]", "[1]", "null", "5", '"x"', "true"])
async def test_params_that_are_no_object_make_no_request(method: str, params: str) -> None:
    reply = await calculator().handle(f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}')
    assert reply is not None
    assert json.loads(reply)["error"]["code"] == -32600


@pytest.mark.req("A-028")
async def test_text_other_than_ascii_is_left_unescaped() -> None:
    tools = ToolManager([Tool(name="echo", execute=lambda arguments: arguments["t"])])
    reply = await calculator(tools=tools).handle(text("tools/call", {"name": "echo", "arguments": {"t": "é中🙂"}}))
    assert reply == '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\\"é中🙂\\""}]}}'


# -- dispatch and handle ---------------------------------------------------------------------------------------------


@pytest.mark.req("A-008", "A-016", "A-031", "A-026")
async def test_dispatch_takes_what_is_parsed_already() -> None:
    server = calculator()
    for request in (
        JSONRPCRequest(id=7, method="ping"),
        {"jsonrpc": "2.0", "id": 7, "method": "ping"},
        decode_message(text("ping", id=7)),
    ):
        response = await server.dispatch(request)  # type: ignore[arg-type]
        assert isinstance(response, JSONRPCResponse)
        assert is_jsonrpc_response(response)
        assert (response.jsonrpc, response.id) == ("2.0", 7)
    params = {"name": "add", "arguments": {"x": 2, "y": 5}}
    called = await server.dispatch({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    assert called is not None
    assert called.result.content[0].text == "7"


@pytest.mark.req("A-016", "A-021")
@pytest.mark.parametrize(
    "value", [{}, {"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": None, "method": "x"}]
)
async def test_dispatch_of_something_else_is_the_callers_mistake(value: Any) -> None:
    with pytest.raises(UsageError, match="handle"):
        await calculator().dispatch(value)


@pytest.mark.req("A-022", "A-023", "A-024", "M-010")
@pytest.mark.parametrize(
    "method",
    ["ping", "initialize", "tools/list", "tools/call", "notifications/initialized", "notifications/foo", "foo"],
)
@pytest.mark.parametrize("params", [None, {"name": "spy", "arguments": {}}, {"_meta": 5}])
async def test_a_notification_is_seen_and_runs_nothing(method: str, params: Any) -> None:
    ran: list[Any] = []
    seen: list[Any] = []
    tools = ToolManager([Tool(name="spy", execute=ran.append)])
    server = calculator(tools=tools, on={"request": lambda *values: seen.append(values)})
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    message |= {} if params is None else {"params": params}
    assert await server.dispatch(message) is None
    assert await server.handle(json.dumps(message)) is None
    assert await server.handle(json.dumps(message).encode()) is None
    assert seen == [(method, None)] * 3
    assert ran == []


@pytest.mark.req("A-012", "A-025", "A-057", "A-096", "A-104")
async def test_the_request_event_comes_before_the_method_runs() -> None:
    order: list[Any] = []
    tools = ToolManager([Tool(name="spy", execute=lambda arguments: order.append("ran"))])
    server = calculator(tools=tools, on={"request": lambda method, id_: order.append((method, id_))})
    server.emitter.on("request", lambda method, id_: order.append("second listener"))
    await server.handle(text("tools/call", {"name": "spy"}, id="a"))
    assert order == [("tools/call", "a"), "second listener", "ran"]
    order.clear()
    await server.handle(text("no/such", id=0))
    assert order == [("no/such", 0), "second listener"]


@pytest.mark.req("A-057", "A-105", "A-106", "A-107")
async def test_a_faulty_listener_harms_no_dispatch() -> None:
    failures: list[Any] = []

    def listener(*_: object) -> None:
        raise ValueError("observer")

    server = calculator(on={"request": listener}, error=lambda error, event: failures.append((str(error), event)))
    assert await server.handle(text("ping")) == '{"jsonrpc":"2.0","id":1,"result":{}}'
    assert failures == [("observer", "request")]


@pytest.mark.req("A-004", "A-032", "A-062", "A-322")
@pytest.mark.parametrize("params", [None, {}, {"_meta": {}}, {"name": 5, "uri": 5, "ref": 5}])
@pytest.mark.parametrize(
    "method",
    [
        "resources/list", "resources/read", "resources/templates/list", "resources/subscribe", "prompts/list",
        "prompts/get", "completion/complete", "logging/setLevel", "sampling/createMessage", "roots/list",
        "elicitation/create", "tasks/get", "tasks/list", "server/discover", "subscriptions/listen",
        "notifications/initialized", "foo", "", "Ping", "tools/call ",
    ],
)  # fmt: skip
async def test_any_other_method_is_not_found_and_named(method: str, params: Any) -> None:
    error = (await ask(calculator(), method, params))["error"]
    assert error == {"code": -32601, "message": f"Method not found: {method}"}


@pytest.mark.req("A-033")
def test_emitter_name_and_version_are_read_only() -> None:
    server = calculator()
    assert (server.name, server.version) == ("calculator", "1.0.0")
    for name in ("emitter", "name", "version"):
        with pytest.raises(AttributeError):
            setattr(server, name, None)


# -- the four methods ------------------------------------------------------------------------------------------------


@pytest.mark.req("A-036", "A-037", "A-038", "H-007", "M-025")
@pytest.mark.parametrize(
    ("requested", "answered"),
    [
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        *[
            (odd, "2025-06-18")
            for odd in (
                "2024-11-05",
                "2025-11-25",
                "2026-07-28",
                "1999-01-01",
                "",
                "latest",
                "2025-06-18 ",
                5,
                None,
                True,
                [],
                {},
            )
        ],
    ],
)
async def test_a_supported_version_is_echoed_and_any_other_falls_back(requested: Any, answered: str) -> None:
    result = (await ask(calculator(), "initialize", {"protocolVersion": requested}))["result"]
    assert result["protocolVersion"] == answered


@pytest.mark.req("A-037", "A-038")
@pytest.mark.parametrize("params", [None, {}])
async def test_an_absent_version_falls_back(params: Any) -> None:
    assert (await ask(calculator(), "initialize", params))["result"]["protocolVersion"] == "2025-06-18"


@pytest.mark.req("A-045", "A-051", "A-063")
@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"arguments": {}},
        *[{"name": name} for name in (None, 5, True, [], {})],
        *[{"name": "add", "arguments": arguments} for arguments in ([], [1], "x", "{}", 5, 0, False, "")],
    ],
)
async def test_a_malformed_call_is_invalid_params(params: Any) -> None:
    assert (await ask(calculator(), "tools/call", params))["error"]["code"] == -32602


@pytest.mark.req("A-044")
async def test_absent_arguments_are_an_empty_object() -> None:
    seen: list[Any] = []
    tools = ToolManager([Tool(name="spy", execute=seen.append)])
    await ask(calculator(tools=tools), "tools/call", {"name": "spy"})
    assert seen == [{}]


@pytest.mark.req("A-046", "A-015")
async def test_a_call_runs_the_managers_execute() -> None:
    calls: list[ToolCall] = []

    class Spy(ToolManager):
        async def execute(self, call: ToolCall) -> ToolResult:
            calls.append(call)
            return await super().execute(call)

    tools = Spy([Tool(name="add", execute=add)])
    await calculator(tools=tools).handle(text("tools/call", {"name": "add", "arguments": {"x": 1, "y": 1}}, id="c"))
    assert calls == [ToolCall(id="c", name="add", arguments={"x": 1, "y": 1})]


@pytest.mark.req("A-034", "A-047", "A-048", "A-050", "M-201")
@pytest.mark.parametrize(("name", "shown"), [("nope", "nope"), ("fails", "bad luck"), ("silent", "KeyError"), ("", "")])
async def test_tool_errors_are_results(name: str, shown: str) -> None:
    def fails(arguments: Any) -> Any:
        raise ValueError("bad luck")

    def silent(arguments: Any) -> Any:
        raise KeyError

    tools = ToolManager([Tool(name="fails", execute=fails), Tool(name="silent", execute=silent)])
    reply = await ask(calculator(tools=tools), "tools/call", {"name": name})
    assert set(reply["result"]) == {"content", "isError"}
    assert reply["result"]["isError"] is True
    (block,) = reply["result"]["content"]
    assert block["type"] == "text"
    assert shown in block["text"]


@pytest.mark.req("A-049", "A-092", "A-093", "A-323")
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (7, "7"),
        ("hi", '"hi"'),
        (None, "null"),
        (True, "true"),
        ({"a": [1, 2]}, '{"a":[1,2]}'),
        ([], "[]"),
        (2**64, "18446744073709551616"),
    ],
)
async def test_a_value_is_one_text_block_of_its_json(value: Any, shown: str) -> None:
    tools = ToolManager([Tool(name="t", execute=lambda arguments: value)])
    reply = await ask(calculator(tools=tools), "tools/call", {"name": "t"})
    assert reply["result"] == {"content": [{"type": "text", "text": shown}]}


@pytest.mark.req("A-056", "A-097")
@pytest.mark.parametrize(("revision", "sent"), [("2025-06-18", False), ("2025-11-25", True)])
async def test_the_description_is_kept_and_sent_where_the_revision_has_it(revision: str, sent: bool) -> None:
    server = calculator(description="adds", protocol_versions=None)
    assert server.description == "adds"
    info = (await ask(server, "initialize", {"protocolVersion": revision}))["result"]["serverInfo"]
    assert info == {"name": "calculator", "version": "1.0.0"} | ({"description": "adds"} if sent else {})


@pytest.mark.req("A-052", "A-097", "A-314")
def test_options_are_keyword_arguments() -> None:
    server = MCPServer(name="n", version="v", tools=ToolManager(), description=None, on={}, error=None)
    assert (server.name, server.version, server.description) == ("n", "v", None)
    with pytest.raises(TypeError):
        MCPServer("n", "v")  # type: ignore[misc]
    with pytest.raises(UsageError, match="2023-01-01"):
        MCPServer(name="n", version="v", protocol_versions=["2023-01-01"])
    with pytest.raises(UsageError):
        MCPServer(name="n", version="v", protocol_versions=[])


@pytest.mark.req("A-325")
async def test_the_server_asks_the_client_nothing() -> None:
    sent: list[Any] = []

    class Peer:
        principal = None
        handshake = None

        def notify(self, *values: Any) -> None:
            sent.append(values)

    server = calculator()
    for message in (text("initialize", {"protocolVersion": "2025-06-18"}), text("tools/list"), text("ping")):
        await server.handle(message, Peer())
    assert sent == []


@pytest.mark.req("A-320")
async def test_no_state_is_kept_between_texts() -> None:
    server = calculator()
    for _ in range(2):
        reply = await ask(server, "initialize", {"protocolVersion": "2025-03-26"})
        assert reply["result"]["protocolVersion"] == "2025-03-26"


# -- constants and builders ------------------------------------------------------------------------------------------


@pytest.mark.req("A-058", "A-059")
def test_revisions() -> None:
    """The newest handshake revision of the schema, by choice; the pair of the seed stays negotiable."""
    assert core.MCP_PROTOCOL_VERSION == "2025-11-25"
    assert core.SUPPORTED_PROTOCOL_VERSIONS == ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
    assert isinstance(core.SUPPORTED_PROTOCOL_VERSIONS, tuple)
    assert core.LATEST_PROTOCOL_VERSION == "2026-07-28"
    assert ("2026-07-28", *core.SUPPORTED_PROTOCOL_VERSIONS) == core.KNOWN_PROTOCOL_VERSIONS


@pytest.mark.req("A-060", "A-061", "A-062", "A-063", "A-064", "A-065", "A-066", "A-067")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JSONRPC_PARSE_ERROR", -32700),
        ("JSONRPC_INVALID_REQUEST", -32600),
        ("JSONRPC_METHOD_NOT_FOUND", -32601),
        ("JSONRPC_INVALID_PARAMS", -32602),
        ("JSONRPC_SERVER_ERROR", -32000),
        ("DEFAULT_MCP_CLIENT_NAME", "taverna"),
        ("DEFAULT_MCP_CLIENT_VERSION", "1.0.0"),
        ("DEFAULT_MCP_REQUEST_TIMEOUT", 30.0),
    ],
)
def test_constants(name: str, value: Any) -> None:
    found = getattr(core, name)
    assert (type(found), found) == (type(value), value)


@pytest.mark.req("A-065", "A-066", "A-067")
def test_the_client_uses_the_constants() -> None:
    assert core.DEFAULT_MCP_CLIENT_NAME == DEFAULT_MCP_CLIENT_NAME
    assert core.DEFAULT_MCP_CLIENT_VERSION == DEFAULT_MCP_CLIENT_VERSION
    assert core.DEFAULT_MCP_REQUEST_TIMEOUT == DEFAULT_MCP_REQUEST_TIMEOUT


@pytest.mark.req("A-084", "A-087")
@pytest.mark.parametrize("requested", [*core.SUPPORTED_PROTOCOL_VERSIONS, "2026-07-28", "", None, 5])
def test_initialize_result(requested: Any) -> None:
    built = initialize_result("n", "v", requested)
    supported = requested in core.SUPPORTED_PROTOCOL_VERSIONS
    assert built.protocol_version == (requested if supported else core.MCP_PROTOCOL_VERSION)
    assert (built.server_info.name, built.server_info.version) == ("n", "v")
    assert json.loads(core.encode_message(built))["capabilities"] == {"tools": {}}
