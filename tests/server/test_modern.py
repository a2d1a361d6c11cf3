"""The modern era: every request carries its own context, every result says what it is."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.core.wired import Wired, call
from tests.server.client import (
    CAPABILITIES_KEY,
    HANDSHAKE,
    INFO_KEY,
    LATEST,
    LEVEL_KEY,
    SERVER_KEY,
    VERSION_KEY,
    Client,
    client,
    modern_meta,
    text_of,
)
from tests.server.features import Everything

from typedmcp import App, Context, MCPServer, Tool, ToolManager, types
from typedmcp.core.jsonrpc import JSONRPCResponse

REVISIONS = [LATEST, *reversed(HANDSHAKE)]


def server(**options: Any) -> MCPServer:
    return MCPServer(name="s", version="1", tools=ToolManager([Tool(name="t", execute=lambda given: given)]), **options)


def modern_only() -> MCPServer:
    return server(protocol_versions=(LATEST,))


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in modern_meta().items() if name != key}


async def error(target: MCPServer, method: str, meta: Any, **params: Any) -> Any:
    answer = await Wired(target).ask(call(1, method, _meta=meta, **params))
    assert "error" in answer, answer
    return answer["error"]


# -- which era -------------------------------------------------------------------------------------------------------


@pytest.mark.req("M-019", "M-040", "M-050", "M-051")
@pytest.mark.parametrize("version", [None, 5, True, [], {}, ""])
async def test_the_key_alone_makes_a_request_modern(version: Any) -> None:
    """A bad value is an error of the modern era, on a connection with a handshake too."""
    peer = await client(server(), "2025-06-18")
    meta = {VERSION_KEY: version, CAPABILITIES_KEY: {}}
    found = (await peer.wired.ask(call("m", "tools/list", _meta=meta)))["error"]
    assert found["code"] == (-32022 if isinstance(version, str) else -32602)


@pytest.mark.req("M-050")
@pytest.mark.parametrize(
    "meta", [{}, {CAPABILITIES_KEY: {}}, {INFO_KEY: {"name": "n", "version": "1"}}, {"progressToken": 1}]
)
async def test_without_the_key_a_request_is_of_the_handshake_era(meta: Any) -> None:
    assert "resultType" not in (await Wired(server()).ask(call(1, "tools/list", _meta=meta)))["result"]


@pytest.mark.req("M-040")
@pytest.mark.parametrize("params", [{}, {"_meta": {}}, {"_meta": {"progressToken": 1}}])
@pytest.mark.parametrize("method", ["tools/list", "server/discover", "tools/call", "resources/read"])
async def test_a_server_without_handshake_revisions_takes_everything_as_modern(method: str, params: Any) -> None:
    answer = await Wired(modern_only()).ask(call(1, method, **params))
    assert answer["error"]["code"] == -32602
    assert VERSION_KEY in answer["error"]["message"]


@pytest.mark.req("M-053", "M-035", "M-048")
@pytest.mark.parametrize("requested", ["2025-11-25", "2025-06-18", LATEST])
async def test_initialize_is_refused_with_the_versions_served(requested: str) -> None:
    found = await Wired(modern_only()).ask(call(1, "initialize", protocolVersion=requested, capabilities={}))
    assert found["error"]["code"] == -32022
    assert found["error"]["data"] == {"supported": [LATEST], "requested": requested}


@pytest.mark.req("M-019", "M-020", "M-022")
async def test_nothing_is_taken_from_an_earlier_request_or_the_handshake() -> None:
    seen: list[Context] = []

    class Spy(Everything):
        async def list_tools(self, params: Any, context: Context) -> types.ListToolsResult:
            seen.append(context)
            return types.ListToolsResult(tools=[])

    peer = Client(MCPServer(name="s", version="1", servicer=Spy()), "2025-06-18", principal="me")
    await peer.open(capabilities={"roots": {}})
    first = modern_meta(**{CAPABILITIES_KEY: {"sampling": {}}, LEVEL_KEY: "info", "progressToken": "p"})
    await peer.wired.ask(call("a", "tools/list", _meta=first))
    await peer.wired.ask(call("b", "tools/list", _meta=without(INFO_KEY)))
    one, two = seen
    assert (one.revision, one.is_modern, one.log_level, one.progress_token) == (LATEST, True, "info", "p")
    assert one.client_capabilities.sampling is not None
    assert one.client_capabilities.roots is None
    assert one.client_info == types.Implementation(name="tester", version="1")
    assert (two.client_info, two.log_level, two.progress_token) == (None, None, None)
    assert two.client_capabilities == types.ClientCapabilities()
    assert (one.principal, two.principal) == ("me", "me")


# -- the envelope ----------------------------------------------------------------------------------------------------


@pytest.mark.req("M-040", "M-042", "M-039")
@pytest.mark.parametrize("make", [server, modern_only])
async def test_client_info_may_be_absent(make: Any) -> None:
    answer = await Wired(make()).ask(call(1, "tools/list", _meta=without(INFO_KEY)))
    assert answer["result"]["resultType"] == "complete"


@pytest.mark.req("M-040", "M-025")
async def test_without_capabilities_a_request_is_refused() -> None:
    found = await error(server(), "tools/list", without(CAPABILITIES_KEY))
    assert found["code"] == -32602
    assert CAPABILITIES_KEY in found["message"]
    assert [entry["pointer"] for entry in found["data"]["violations"]] == [
        "/params/_meta/io.modelcontextprotocol~1clientCapabilities"
    ]


@pytest.mark.req("M-040", "M-228", "M-148", "M-025")
@pytest.mark.parametrize(
    ("key", "value", "below"),
    [
        (VERSION_KEY, 5, ""),
        (VERSION_KEY, None, ""),
        (CAPABILITIES_KEY, None, ""),
        (CAPABILITIES_KEY, [], ""),
        (CAPABILITIES_KEY, "x", ""),
        (CAPABILITIES_KEY, {"sampling": 5}, "/sampling"),
        (CAPABILITIES_KEY, {"elicitation": []}, "/elicitation"),
        (INFO_KEY, "x", ""),
        (INFO_KEY, {"name": "n"}, "/version"),
        (INFO_KEY, {"name": 5, "version": "1"}, "/name"),
        (LEVEL_KEY, "loud", ""),
        (LEVEL_KEY, 5, ""),
        ("progressToken", 1.5, ""),
        ("progressToken", True, ""),
        ("progressToken", {}, ""),
    ],
)
async def test_each_malformed_part_is_named(key: str, value: Any, below: str) -> None:  # F071
    found = await error(server(), "tools/list", modern_meta(**{key: value}))
    assert found["code"] == -32602
    pointer = "/params/_meta/" + key.replace("~", "~0").replace("/", "~1") + below
    assert pointer in [entry["pointer"] for entry in found["data"]["violations"]]
    assert len(found["message"]) < 120


@pytest.mark.req("M-040")
@pytest.mark.parametrize("meta", [5, "x", [], True])
@pytest.mark.parametrize("make", [server, modern_only])
async def test_a_meta_that_is_no_object_is_invalid(make: Any, meta: Any) -> None:
    assert (await error(make(), "tools/list", meta))["code"] == -32602


@pytest.mark.req("M-035", "M-048", "M-029", "M-034")
@pytest.mark.parametrize("version", [*HANDSHAKE, "2999-01-01", "", "x"])
async def test_a_version_that_is_not_served_statelessly(version: str) -> None:
    found = await error(server(), "tools/list", modern_meta(**{VERSION_KEY: version}))
    assert found["code"] == -32022
    assert found["data"] == {"supported": REVISIONS, "requested": version}


@pytest.mark.req("M-048")
async def test_a_version_that_is_switched_off() -> None:
    found = await error(server(protocol_versions=("2025-06-18",)), "tools/list", modern_meta())
    assert found == {**found, "code": -32022, "data": {"supported": ["2025-06-18"], "requested": LATEST}}


# -- methods ---------------------------------------------------------------------------------------------------------


@pytest.mark.req("M-050", "M-025", "A-032")
@pytest.mark.parametrize(
    "target",
    [server, modern_only, lambda: App("s").server, lambda: MCPServer(name="s", version="1", servicer=Everything())],
)
@pytest.mark.parametrize(
    "method",
    [
        "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/get",
        "tasks/list", "tasks/cancel", "tasks/result", "sampling/createMessage", "roots/list", "elicitation/create",
        "no/such", "",
    ],
)  # fmt: skip
async def test_removed_and_unknown_methods_are_not_found(target: Any, method: str) -> None:
    found = await error(target(), method, modern_meta())
    assert found == {"code": -32601, "message": f"Method not found: {method}"}


@pytest.mark.req("M-040", "M-048", "M-025")
@pytest.mark.parametrize("method", ["no/such", "ping", "tools/call", "prompts/get"])
async def test_the_order_of_checks(method: str) -> None:
    """Shape, presence, version, method, then parameters: each fault shows only when those before it are mended."""
    target = server()

    async def code(meta: Any, **params: Any) -> int:
        return int((await error(target, method, meta, **params))["code"])

    array = await Wired(target).ask({"jsonrpc": "2.0", "id": 1, "method": method, "params": []})
    assert array["error"]["code"] == -32600
    bad_version = {VERSION_KEY: "2999-01-01"}
    assert await code({**bad_version}, name=5) == -32602, "presence goes before version"
    assert await code({**bad_version, CAPABILITIES_KEY: {}}, name=5) == -32022, "version goes before method"
    known = method == "tools/call"
    assert await code(modern_meta(), name=5) == (-32602 if known else -32601), "method goes before parameters"


@pytest.mark.req("M-025", "M-200", "A-045")
async def test_parameters_of_the_wrong_shape_are_named() -> None:
    found = await error(server(), "tools/call", modern_meta(), name=5, arguments=[])
    assert found["code"] == -32602
    assert sorted(entry["pointer"] for entry in found["data"]["violations"]) == ["/params/arguments", "/params/name"]


@pytest.mark.req("M-026", "M-002")
@pytest.mark.parametrize("inner", [b'"\xff"', b'"\\ud800"', b"1e400", b"[" * 100_000 + b"]" * 100_000])
async def test_parameters_that_cannot_be_read_are_answered(inner: bytes) -> None:  # F026
    wired = Wired(server())
    wired.receive(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":' + inner + b"}}}"
    )
    (answer,) = await wired.until(1)
    assert answer["error"]["code"] in (-32602, -32700)
    assert "result" in await wired.ask(call(2, "tools/list")), "the connection goes on"


# -- discovery -------------------------------------------------------------------------------------------------------


@pytest.mark.req("M-062", "M-063", "M-043", "M-179", "M-180")
async def test_discover() -> None:
    peer = Client(server(instructions="Do", title="T", description="D"))
    assert await peer.result("server/discover") == {
        "supportedVersions": REVISIONS,
        "capabilities": {"tools": {}},
        "instructions": "Do",
        "ttlMs": 0,
        "cacheScope": "private",
        "resultType": "complete",
        "_meta": {SERVER_KEY: {"name": "s", "title": "T", "version": "1", "description": "D"}},
    }


@pytest.mark.req("M-062", "M-065")
async def test_discover_on_a_modern_only_server() -> None:
    assert (await Client(modern_only()).result("server/discover"))["supportedVersions"] == [LATEST]


@pytest.mark.req("M-064", "M-191")
async def test_capabilities_equal_what_is_served() -> None:
    empty = App("s")
    peer = Client(empty)
    assert (await peer.result("server/discover"))["capabilities"] == {}
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        assert (await peer.error(method))["code"] == -32601
    for method, params in (("tools/call", {}), ("resources/read", {}), ("prompts/get", {})):
        assert (await peer.error(method, params))["code"] == -32601

    @empty.resource("docs://a")
    def a() -> str:
        return "a"

    assert (await peer.result("server/discover"))["capabilities"] == {
        "resources": {"listChanged": True, "subscribe": True}
    }

    @empty.tool
    def b() -> None: ...

    assert set((await peer.result("server/discover"))["capabilities"]) == {"resources", "tools"}
    assert len((await peer.result("tools/list"))["tools"]) == 1
    assert (await peer.result("resources/templates/list"))["resourceTemplates"] == []


# -- stamping --------------------------------------------------------------------------------------------------------


@pytest.mark.req("M-011", "M-043", "M-179", "M-180")
@pytest.mark.parametrize(
    ("method", "params", "cacheable"),
    [
        ("tools/list", {}, True),
        ("prompts/list", {}, True),
        ("resources/list", {}, True),
        ("resources/templates/list", {}, True),
        ("resources/read", {"uri": "docs://a"}, True),
        ("server/discover", {}, True),
        ("prompts/get", {"name": "p"}, False),
        ("tools/call", {"name": "everything"}, False),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}},
            False,
        ),
    ],
)
async def test_every_result_says_what_it_is(method: str, params: Any, cacheable: bool) -> None:  # F072
    target = MCPServer(name="s", version="1", servicer=Everything(types.CallToolResult(content=[])))
    result = await Client(target).result(method, params)
    assert result["resultType"] == "complete"
    assert result["_meta"] == {SERVER_KEY: {"name": "s", "version": "1"}}
    assert ("ttlMs" in result, "cacheScope" in result) == (cacheable, cacheable)
    if cacheable:
        assert type(result["ttlMs"]) is int
        assert result["ttlMs"] >= 0
        assert result["cacheScope"] in ("public", "private")


@pytest.mark.req("M-011", "M-043", "M-179")
async def test_what_a_handler_says_stays_and_its_object_is_never_changed() -> None:
    mine = types.ListToolsResult(
        tools=[],
        ttl_ms=5000,
        cache_scope="public",
        meta={"com.example/a": 1, SERVER_KEY: {"name": "x", "version": "2"}},
    )
    plain = types.ListPromptsResult(prompts=[])
    extension: dict[str, Any] = {"x": 1}

    class Mine(Everything):
        async def list_tools(self, params: Any, context: Context) -> types.ListToolsResult:
            return mine

        async def list_prompts(self, params: Any, context: Context) -> types.ListPromptsResult:
            return plain

        async def complete(self, params: Any, context: Context) -> Any:
            return {"completion": {"values": []}}

        async def call_tool(self, params: Any, context: Context) -> Any:
            return {"content": [], **extension}

    before = msgspec.to_builtins([mine, plain]), dict(extension)
    peer = Client(MCPServer(name="s", version="1", servicer=Mine()))
    result = await peer.result("tools/list")
    assert (result["ttlMs"], result["cacheScope"]) == (5000, "public")
    assert result["_meta"] == {"com.example/a": 1, SERVER_KEY: {"name": "x", "version": "2"}}
    await peer.result("prompts/list")
    for method, params in (
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}),
        ("tools/call", {"name": "t"}),
    ):
        answered = await peer.result(method, params)
        assert answered["resultType"] == "complete"
        assert answered["_meta"][SERVER_KEY]["name"] == "s"
    assert (msgspec.to_builtins([mine, plain]), extension) == before


@pytest.mark.req("M-179", "M-012")
async def test_an_input_required_result_is_not_cacheable() -> None:
    asked = types.InputRequiredResult(request_state="own state", result_type="input_required")

    class Asks(Everything):
        async def read_resource(self, params: Any, context: Context) -> Any:
            return asked

    peer = Client(MCPServer(name="s", version="1", servicer=Asks()))
    result = await peer.result("resources/read", {"uri": "docs://a"})
    assert result["resultType"] == "input_required"
    assert "own state" not in result["requestState"], "what a handler gives is sealed before it leaves"
    assert not {"ttlMs", "cacheScope"} & set(result)


@pytest.mark.req("M-011", "A-016")
async def test_results_are_stamped_without_a_connection_too() -> None:
    response = await server().dispatch(call(1, "tools/list", _meta=modern_meta()))
    assert isinstance(response, JSONRPCResponse)
    assert response.result.result_type == "complete"


# -- log messages and progress ---------------------------------------------------------------------------------------


def chatty() -> App:
    made = App("s", "1")

    @made.tool
    async def talk(context: Context, gate: bool = False) -> str:
        for level in ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"):
            await context.log(level, {"said": level}, "tests")  # type: ignore[arg-type]
            await asyncio.sleep(0)
        return "done"

    return made


@pytest.mark.req("M-226", "M-227")
@pytest.mark.parametrize(("level", "count"), [(None, 0), ("debug", 8), ("notice", 6), ("error", 4), ("emergency", 1)])
async def test_log_messages_only_when_asked_and_at_or_above_the_level(level: str | None, count: int) -> None:  # F071
    peer = Client(chatty())
    await peer.call("talk", {}, {} if level is None else {LEVEL_KEY: level})
    sent = peer.notifications("notifications/message")
    assert len(sent) == count
    assert all(entry["params"]["logger"] == "tests" for entry in sent)
    assert [entry["params"]["level"] for entry in sent][:1] == ([level] if level else [])
    assert "result" in peer.wired.sent[-1], "log messages come before the response"


@pytest.mark.req("M-226", "M-227")
async def test_the_level_belongs_to_the_request() -> None:  # F070
    peer = Client(chatty())
    one = peer.message("tools/call", {"name": "talk", "arguments": {}}, {LEVEL_KEY: "debug"})
    two = peer.message("tools/call", {"name": "talk", "arguments": {}})
    peer.wired.receive(one, two)
    await peer.wired.idle()
    assert len(peer.notifications("notifications/message")) == 8


@pytest.mark.req("M-150", "M-148")
async def test_progress_of_two_requests_at_once_keeps_its_tokens() -> None:
    made = App("s", "1")

    @made.tool
    async def work(context: Context, steps: int) -> None:
        for step in range(steps):
            await context.report_progress(step)
            await asyncio.sleep(0)

    peer = Client(made)
    peer.wired.receive(
        peer.message("tools/call", {"name": "work", "arguments": {"steps": 2}}, {"progressToken": 0}),
        peer.message("tools/call", {"name": "work", "arguments": {"steps": 3}}, {"progressToken": "0"}),
        peer.message("tools/call", {"name": "work", "arguments": {"steps": 4}}),
    )
    await peer.wired.idle()
    tokens = [entry["params"]["progressToken"] for entry in peer.notifications("notifications/progress")]
    assert sorted(map(repr, tokens)) == ["'0'"] * 3 + ["0"] * 2


@pytest.mark.req("M-019")
async def test_a_call_of_the_plain_registry() -> None:
    assert text_of(await Client(server()).call("t", {"a": [1.5, None]})) == '{"a":[1.5,null]}'


@pytest.mark.req("M-021", "M-023", "M-192", "M-193")
async def test_lists_vary_neither_by_connection_nor_by_what_came_before() -> None:
    target = MCPServer(name="s", version="1", servicer=Everything(types.CallToolResult(content=[])))
    first, second = Client(target), Client(target)
    before = [await first.result(method) for method in ("tools/list", "prompts/list", "resources/list")]
    await first.result("tools/call", {"name": "everything"})
    await second.ask("no/such")
    for peer in (first, second, Client(target, principal="someone")):
        assert [await peer.result(method) for method in ("tools/list", "prompts/list", "resources/list")] == before


@pytest.mark.req("M-038", "M-044", "M-047")
@pytest.mark.parametrize(
    "more",
    [
        {"io.modelcontextprotocol/unknown": 5},
        {"modelcontextprotocol.io/thing": [None]},
        {"com.example/x": {"deep": [1]}, "plain": True},
        {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "baggage": "a=1"},
        {INFO_KEY: {"name": "admin", "version": "999", "title": "root"}},
        {INFO_KEY: {"name": "", "version": ""}},
    ],
    ids=", ".join,
)
async def test_what_else_stands_in_meta_decides_nothing(more: dict[str, Any]) -> None:
    usual = await Client(server()).call("t", {"a": 1})
    assert await Client(server()).call("t", {"a": 1}, more) == usual


@pytest.mark.req("H-055", "M-064")
@pytest.mark.parametrize("revision", [*HANDSHAKE, LATEST])
async def test_changes_are_declared_as_they_are_announced(revision: str) -> None:
    peer = Client(chatty(), revision)
    opened = await peer.open()
    declared = (opened or await peer.result("server/discover"))["capabilities"]
    assert declared == {"tools": {"listChanged": True}, "logging": {}}
