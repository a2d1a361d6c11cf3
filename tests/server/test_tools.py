"""The plain tool registry and the builders of tool results."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from typing import Any

import pytest
from tests.server.client import text_of

from typedmcp import MCPServer, Tool, ToolError, ToolManager, types
from typedmcp.core.errors import UsageError
from typedmcp.core.jsonrpc import encode_message
from typedmcp.server import ToolCall, ToolResult, build_tool_descriptors, build_tool_result


def wire(value: Any) -> Any:
    return json.loads(encode_message(value))


def tool(name: str = "t", value: Any = None, **options: Any) -> Tool:
    return Tool(name=name, execute=lambda arguments: value, **options)


async def names(manager: ToolManager) -> list[str]:
    reply = await MCPServer(name="s", version="1", tools=manager).handle(
        '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    )
    assert reply is not None
    return [entry["name"] for entry in json.loads(reply)["result"]["tools"]]


@pytest.mark.req("A-116")
async def test_a_new_registry_is_empty_and_may_be_filled_at_once() -> None:
    assert ToolManager().definitions() == []
    assert await names(ToolManager()) == []
    assert await names(ToolManager([tool("a"), tool("b")])) == ["a", "b"]


@pytest.mark.req("A-117", "A-041", "A-042", "A-043", "A-082", "A-094")
def test_descriptors() -> None:
    manager = ToolManager()
    schema = {"type": "object", "properties": {"x": {"type": "number"}}}
    added = manager.add(tool("full", id="f", description="Does it", parameters=schema))
    manager.add(tool("bare"))
    assert manager.definitions()[0] is added
    expected = [
        {"name": "full", "description": "Does it", "inputSchema": schema},
        {"name": "bare", "inputSchema": {"type": "object"}},
    ]
    assert wire(build_tool_descriptors(manager)) == expected
    assert wire(build_tool_descriptors(manager.definitions())) == expected
    assert all(isinstance(entry, types.Tool) for entry in build_tool_descriptors(manager))


@pytest.mark.req("A-117")
@pytest.mark.parametrize("wrong", [tool(""), Tool(name="x", execute=5)])  # type: ignore[arg-type]
def test_what_cannot_be_called_is_not_added(wrong: Tool) -> None:
    with pytest.raises(UsageError):
        ToolManager().add(wrong)


async def coroutine(arguments: dict[str, Any]) -> Any:
    await asyncio.sleep(0)
    return arguments


class Callable:
    async def __call__(self, arguments: dict[str, Any]) -> Any:
        return arguments


def awaitable(arguments: dict[str, Any]) -> Any:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.set_result(arguments)
    return future


@pytest.mark.req("A-118", "A-120")
@pytest.mark.parametrize("execute", [lambda arguments: arguments, coroutine, Callable(), awaitable])
async def test_functions_of_every_kind(execute: Any) -> None:
    manager = ToolManager([Tool(name="t", execute=execute)])
    result = await manager.execute(ToolCall(id=7, name="t", arguments={"a": 1}))
    assert result == ToolResult(id=7, value={"a": 1})


@pytest.mark.req("A-119", "A-120", "A-034")
async def test_failures_and_unknown_names_are_isolated(caplog: pytest.LogCaptureFixture) -> None:
    def fails(arguments: Any) -> Any:
        raise ValueError("bad luck")

    async def fails_later(arguments: Any) -> Any:
        raise ToolError("on purpose")

    manager = ToolManager([Tool(name="now", execute=fails), Tool(name="later", execute=fails_later)])
    assert await manager.execute(ToolCall(id=1, name="now")) == ToolResult(id=1, error="bad luck")
    assert "bad luck" in caplog.text
    assert caplog.records[0].exc_info
    caplog.clear()
    assert await manager.execute(ToolCall(id="2", name="later")) == ToolResult(id="2", error="on purpose")
    assert caplog.records == []
    unknown = await manager.execute(ToolCall(id=0, name="nope"))
    assert unknown.id == 0
    assert "nope" in str(unknown.error)


@pytest.mark.req("A-119", "M-140")
async def test_cancellation_passes_through() -> None:
    entered = asyncio.Event()

    async def waits(arguments: Any) -> Any:
        entered.set()
        await asyncio.Event().wait()

    manager = ToolManager([Tool(name="t", execute=waits)])
    task = asyncio.ensure_future(manager.execute(ToolCall(name="t")))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.req("A-119")
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
async def test_the_end_of_the_process_passes_through(kind: type[BaseException]) -> None:
    def stop(arguments: Any) -> Any:
        raise kind

    with pytest.raises(kind):
        await ToolManager([Tool(name="t", execute=stop)]).execute(ToolCall(name="t"))


@pytest.mark.req("A-121", "A-122", "A-002", "M-193")
async def test_the_registry_is_live_and_keeps_its_order() -> None:
    manager = ToolManager()
    server = MCPServer(name="s", version="1", tools=manager)
    listing = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    assert '"tools":[]' in str(await server.handle(listing))
    for name in ("z", "a", "m"):
        manager.add(tool(name))
    assert await names(manager) == ["z", "a", "m"]
    assert '"z"' in str(await server.handle(listing))
    manager.remove("a")
    manager.remove("never there")
    assert await names(manager) == ["z", "m"]


@pytest.mark.req("A-123")
async def test_a_name_added_again_keeps_its_place() -> None:
    manager = ToolManager([tool("a", 1), tool("b"), tool("c")])
    manager.add(tool("a", 2))
    assert await names(manager) == ["a", "b", "c"]
    assert (await manager.execute(ToolCall(name="a"))).value == 2


@pytest.mark.req("A-124", "A-321")
async def test_arguments_arrive_as_sent() -> None:
    schema = {
        "type": "object",
        "required": ["x"],
        "properties": {"x": {"type": "integer"}},
        "additionalProperties": False,
    }
    manager = ToolManager([Tool(name="t", parameters=schema, execute=lambda arguments: arguments)])
    server = MCPServer(name="s", version="1", tools=manager)
    for arguments in ({}, {"x": "text"}, {"y": 1.0}, {"x": [None, {"a": "1"}]}):
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": arguments}}
        reply = json.loads(str(await server.handle(json.dumps(message))))
        assert json.loads(text_of(reply["result"])) == arguments


# -- build_tool_result -----------------------------------------------------------------------------------------------


@pytest.mark.req("A-083", "A-085", "A-048", "A-049")
def test_results() -> None:
    assert wire(build_tool_result(ToolResult(value=7))) == {"content": [{"type": "text", "text": "7"}]}
    assert wire(build_tool_result(ToolResult())) == {"content": [{"type": "text", "text": "null"}]}
    failed = {"content": [{"type": "text", "text": "no"}], "isError": True}
    assert wire(build_tool_result(ToolResult(error="no"))) == failed
    empty = {"content": [{"type": "text", "text": ""}], "isError": True}
    assert wire(build_tool_result(ToolResult(error=""))) == empty


@pytest.mark.req("A-034", "A-050", "M-201")
@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"a/b": [1, math.nan]}, "/a~1b/1"),
        ({"mean": math.inf}, "/mean"),
        ("\ud800", ""),
        ({"a": "\ud800"}, ""),
        (object(), ""),
        (10**5000, ""),
    ],
    ids=["NaN", "inf", "half a pair", "half a pair inside", "object", "5000 digits"],
)
def test_a_value_without_json_form_is_a_failed_tool(value: Any, named: str) -> None:  # F027, F088, F089
    result = wire(build_tool_result(ToolResult(value=value)))
    assert result["isError"] is True
    assert named in text_of(result)


def test_a_value_that_contains_itself_is_a_failed_tool() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    assert build_tool_result(ToolResult(value=cycle)).is_error


def test_an_error_text_with_half_a_surrogate_pair_can_be_sent() -> None:
    result = wire(build_tool_result(ToolResult(error="bad \ud800 luck")))
    assert text_of(result).startswith("bad ")


def test_bytes_become_base64() -> None:  # F090
    assert wire(build_tool_result(ToolResult(value=b"\xff\x00"))) == {"content": [{"type": "text", "text": '"/wA="'}]}


def test_logging_is_quiet_by_default() -> None:
    assert not logging.getLogger("typedmcp").handlers
