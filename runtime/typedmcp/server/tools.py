"""The plain tool registry: names, schemas and functions, with no opinion about arguments.

Rules (seed A):
- The registry is live: what is added later is in the next listing.  Listings keep the order of adding; a name added
  again takes the place of the first.
- A tool that raises, and a name nobody has added, give a result that carries the error; ``execute`` itself never
  raises for them.  Cancellation passes through.
- Arguments reach the function as they were sent.  Checking them is the business of :class:`typedmcp.App`.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from typedmcp.core.errors import ToolError, UsageError
from typedmcp.core.jsonrpc import refuse_non_finite
from typedmcp.core.param_headers import Mark, marks_of_tool, offer_marks
from typedmcp_wire.types.calls import CallToolResult
from typedmcp_wire.types.content import TextContent
from typedmcp_wire.types.tools import Tool as ToolDescriptor

logger = logging.getLogger("typedmcp")

_ANY_OBJECT: dict[str, Any] = {"type": "object"}


class Tool(Struct, kw_only=True, frozen=True):
    """A function under a name.

    Attributes:
        name: What clients call it by.
        execute: Called with the arguments object; may be a coroutine function.
        description: What it does, for the model.
        parameters: JSON Schema of the arguments object.
        id: A key of your own; the name when left out.
    """

    name: str
    execute: Callable[[dict[str, Any]], Any]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    id: str | None = None


class ToolCall(Struct, kw_only=True, frozen=True):
    """A wish to run a tool."""

    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    id: int | str | None = None


class ToolResult(Struct, kw_only=True, frozen=True):
    """What became of a call: `value`, or `error` with the text of the failure."""

    id: int | str | None = None
    value: Any = UNSET
    error: str | UnsetType = UNSET


class ToolManager:
    """A live registry of tools."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._marks = marks = dict[str, tuple[Mark, ...]]()
        offer_marks(self, lambda name: marks.get(name, ()))
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> Tool:
        """Register a tool; one of the same name is replaced in its place.

        Raises:
            UsageError: the name is empty, the function cannot be called, or a parameter is marked amiss
                (:mod:`typedmcp.core.param_headers`).
        """
        if not tool.name or not callable(tool.execute):
            raise UsageError("a tool needs a name and something to call")
        marks = marks_of_tool(tool.name, tool.parameters)
        self._tools[tool.name] = tool
        self._marks[tool.name] = marks
        return tool

    def remove(self, name: str) -> None:
        """Take a tool out; one that is not there is no error."""
        self._tools.pop(name, None)
        self._marks.pop(name, None)

    def definitions(self) -> list[Tool]:
        """The tools, in the order in which they were added."""
        return list(self._tools.values())

    async def execute(self, call: ToolCall) -> ToolResult:
        """Run a tool; its failure, or the lack of it, is in the result."""
        tool = self._tools.get(call.name)
        if tool is None:
            return ToolResult(id=call.id, error=f"Unknown tool: {call.name}")
        try:
            value = tool.execute(call.arguments)
            if inspect.isawaitable(value):
                value = await value
        except Exception as error:
            if not isinstance(error, ToolError):
                logger.exception("tool %r failed", call.name)
            return ToolResult(id=call.id, error=str(error) or type(error).__name__)
        return ToolResult(id=call.id, value=value)


def build_tool_descriptors(tools: ToolManager | Iterable[Tool]) -> list[ToolDescriptor]:
    """The entries of ``tools/list``: `parameters` under its wire name, an open object when there are none."""
    listed = tools.definitions() if isinstance(tools, ToolManager) else tools
    return [
        ToolDescriptor(name=tool.name, description=tool.description, input_schema=tool.parameters or _ANY_OBJECT)
        for tool in listed
    ]


def build_tool_result(result: ToolResult) -> CallToolResult:
    """The result of ``tools/call``: the error's text with `isError`, or the JSON text of the value."""
    if result.error is not UNSET:
        return CallToolResult(content=[TextContent(text=sendable(str(result.error)))], is_error=True)
    value = None if result.value is UNSET else result.value
    try:
        text = msgspec.json.encode(value)
        if b"null" in text:
            refuse_non_finite(value)
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"The tool's result has no JSON form: {error}"
        return CallToolResult(content=[TextContent(text=problem)], is_error=True)
    return CallToolResult(content=[TextContent(text=text.decode())])


def sendable(text: str) -> str:
    """`text` with halves of surrogate pairs, which UTF-8 lacks, written as escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
