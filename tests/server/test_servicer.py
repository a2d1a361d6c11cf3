"""A servicer of one's own behind the engine: what is overridden is served and declared, failures are told apart."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.wired import note
from tests.server.client import ALL, HANDSHAKE, LATEST, Client, client
from tests.server.features import Everything

from typedmcp import Context, MCPError, MCPServer, ToolError, ToolManager, types
from typedmcp.core.errors import UsageError
from typedmcp_wire.methods import METHODS
from typedmcp_wire.servicer import MethodNotImplemented, Servicer

SERVED = {
    "list_tools": ("tools/list", {}),
    "call_tool": ("tools/call", {"name": "t"}),
    "list_resources": ("resources/list", {}),
    "list_resource_templates": ("resources/templates/list", {}),
    "read_resource": ("resources/read", {"uri": "docs://a"}),
    "subscribe_resource": ("resources/subscribe", {"uri": "docs://a"}),
    "unsubscribe_resource": ("resources/unsubscribe", {"uri": "docs://a"}),
    "list_prompts": ("prompts/list", {}),
    "get_prompt": ("prompts/get", {"name": "p"}),
    "complete": (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}},
    ),
    "set_logging_level": ("logging/setLevel", {"level": "info"}),
}


def server(servicer: Servicer[Context], **options: Any) -> MCPServer:
    return MCPServer(name="s", version="1", servicer=servicer, **options)


def only(*attributes: str) -> Servicer[Context]:
    """A servicer that overrides nothing else."""
    methods = {attribute: getattr(Everything, attribute) for attribute in attributes}
    made: Servicer[Context] = type("Only", (Servicer,), methods)()
    made.result = types.CallToolResult(content=[])  # type: ignore[attr-defined]
    return made


@pytest.mark.req("M-064", "M-191", "M-209", "M-215", "M-219", "A-004")
@pytest.mark.parametrize(
    ("attributes", "declared"),
    [
        ([], {}),
        (["list_tools"], {"tools": {}}),
        (["list_tools", "call_tool"], {"tools": {}}),
        (["list_resources", "read_resource"], {"resources": {}}),
        (["list_resources", "subscribe_resource", "unsubscribe_resource"], {"resources": {"subscribe": True}}),
        (["list_prompts", "get_prompt"], {"prompts": {}}),
        (["complete"], {"completions": {}}),
        (["set_logging_level"], {"logging": {}}),
    ],
)
async def test_capabilities_follow_what_is_overridden(attributes: list[str], declared: Any) -> None:
    result = await Client(server(only(*attributes)), "2025-11-25").open()
    assert result["capabilities"] == declared


async def test_a_servicer_may_say_its_capabilities_itself() -> None:
    class Says(Everything):
        def capabilities(self) -> types.ServerCapabilities:
            return types.ServerCapabilities(tools=types.ToolsCapability(list_changed=True))

    result = await Client(server(Says()), "2025-11-25").open()
    assert result["capabilities"] == {"tools": {"listChanged": True}}


@pytest.mark.req("A-032", "M-025", "M-064", "M-221")
@pytest.mark.parametrize("revision", ALL)
async def test_what_is_not_overridden_is_not_found_whatever_its_parameters(revision: str) -> None:
    peer = await client(server(only()), revision)
    for method, params in SERVED.values():
        for sent in (params, {}, {"name": 5, "uri": 5}):
            error = await peer.error(method, sent)
            assert error == {"code": -32601, "message": f"Method not found: {method}"}
    peer = await client(server(only("list_tools")), revision)
    assert (await peer.error("tools/call", {"name": "t"}))["code"] == -32601
    assert "tools" in await peer.result("tools/list")


@pytest.mark.req("A-010", "M-003")
@pytest.mark.parametrize("revision", ALL)
async def test_what_is_overridden_is_served_where_the_revision_has_it(revision: str) -> None:
    peer = await client(server(only(*SERVED)), revision)
    for attribute, (name, params) in SERVED.items():
        method = METHODS[name]
        assert method.attribute == attribute
        answer = await peer.ask(name, params)
        if revision in method.client:
            assert "result" in answer, answer
        else:
            assert answer["error"]["code"] == -32601


@pytest.mark.req("M-025", "M-029", "M-034", "M-201")
@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        (MCPError(-32602, "Unknown tool"), -32602, "Unknown tool"),
        (MCPError(-1, "", {"a": [None]}), -1, ""),
        (ToolError("told on purpose"), -32603, "told on purpose"),
        (MethodNotImplemented("tools/call"), -32601, "Method not found: tools/list"),
        (ValueError("secret"), -32603, "Internal error"),
        (KeyError("secret"), -32603, "Internal error"),
        (RecursionError("secret"), -32603, "Internal error"),
        (TimeoutError("secret"), -32603, "Internal error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
@pytest.mark.parametrize("revision", ["2024-11-05", LATEST])
async def test_what_a_handler_raises(
    revision: str, fault: Exception, code: int, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Fails(Everything):
        async def list_tools(self, params: Any, context: Context) -> types.ListToolsResult:
            raise fault

    peer = await client(server(Fails()), revision)
    error = await peer.error("tools/list")
    assert (error["code"], error["message"]) == (code, message)
    assert ("data" in error) is (isinstance(fault, MCPError) and fault.code == -1)
    assert b"secret" not in b"".join(peer.wired.frames)
    assert ("secret" in caplog.text) is (message == "Internal error")
    if message == "Internal error":
        assert caplog.records[0].exc_info


@pytest.mark.req("M-008", "M-201")
@pytest.mark.parametrize("result", [None, 5, "x", [], object()], ids=["null", "number", "text", "array", "object"])
@pytest.mark.parametrize("revision", ["2025-11-25", LATEST])
async def test_a_result_that_is_no_object_is_an_internal_error(revision: str, result: Any) -> None:
    peer = await client(server(Everything(result)), revision)
    answer = await peer.ask("tools/call", {"name": "t"})
    assert answer["error"]["code"] == -32603


@pytest.mark.req("M-010", "M-144")
async def test_notifications_reach_their_hooks_and_never_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Any] = []

    class Hears(Everything):
        async def initialized(self, params: Any, context: Context) -> None:
            heard.append(("initialized", context.revision, context.method))

        async def roots_list_changed(self, params: Any, context: Context) -> None:
            heard.append("roots")
            raise ValueError("secret")

        async def progress(self, params: Any, context: Context) -> None:
            heard.append(params.progress)

    peer = await client(server(Hears()), "2025-06-18")
    await peer.wired.idle()
    assert heard == [("initialized", "2025-06-18", "notifications/initialized")]
    before = len(peer.wired.frames)
    peer.wired.receive(
        note("notifications/progress", progressToken=1, progress=0.5),
        note("notifications/progress", progressToken=1),
        note("notifications/roots/list_changed"),
        note("notifications/unknown"),
        note("notifications/message", level="info", data=1),
        note("tools/call", name="t"),
    )
    await peer.wired.idle()
    assert heard[1:] == [0.5, "roots"]
    assert len(peer.wired.frames) == before
    assert "secret" in caplog.text


@pytest.mark.req("A-015")
async def test_the_servicer_serves_by_text_too() -> None:
    reply = await server(Everything(types.CallToolResult(content=[]))).handle(
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}'
    )
    assert json.loads(str(reply)) == {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}


def test_tools_and_a_servicer_exclude_each_other() -> None:
    with pytest.raises(UsageError):
        server(Everything(), tools=ToolManager())


@pytest.mark.req("H-018", "M-062")
@pytest.mark.parametrize("revision", ALL)
async def test_ping_and_discover_are_the_engines_own(revision: str) -> None:
    wired = Client(server(only()), revision)
    await wired.open()
    ping = await wired.ask("ping")
    discover = await wired.ask("server/discover")
    assert ("result" in ping, "result" in discover) == (revision in HANDSHAKE, revision == LATEST)
