"""Servicers the library brings, and what a servicer's methods say about a server's capabilities."""

from __future__ import annotations

import msgspec

from typedmcp.core.errors import MCPError
from typedmcp.core.param_headers import Mark, marks_of
from typedmcp.server.context import Context
from typedmcp.server.tools import ToolCall, ToolManager, build_tool_descriptors, build_tool_result
from typedmcp_wire.methods import METHODS
from typedmcp_wire.revisions import INVALID_PARAMS
from typedmcp_wire.servicer import Servicer
from typedmcp_wire.types.base import (
    PromptsCapability,
    ResourcesCapability,
    ServerCapabilities,
    ToolsCapability,
)
from typedmcp_wire.types.calls import CallToolRequestParams, CallToolResult
from typedmcp_wire.types.jsonrpc import PaginatedRequestParams
from typedmcp_wire.types.tools import ListToolsResult


class ToolServicer(Servicer[Context]):
    """A plain registry as a server: its tools listed and called as they are (seed A).

    Args:
        tools: The registry; it stays live.
        strict: Answer an unknown tool with -32602, as the specification has it, instead of an error result.
    """

    def __init__(self, tools: ToolManager, *, strict: bool = False) -> None:
        self._tools = tools
        self._strict = strict
        self._marks = marks_of(tools)

    def param_marks(self, name: str) -> tuple[Mark, ...]:
        """The parameters of a tool that travel in headers, too."""
        return () if self._marks is None else self._marks(name)

    async def list_tools(self, params: PaginatedRequestParams, context: Context) -> ListToolsResult:
        """Every tool on one page, in the order of adding."""
        if params.cursor is not None:
            raise MCPError(INVALID_PARAMS, "There is no such page; this list has one.")
        return ListToolsResult(tools=build_tool_descriptors(self._tools))

    async def call_tool(self, params: CallToolRequestParams, context: Context) -> CallToolResult:
        """Run a tool with the arguments as sent."""
        if self._strict and all(tool.name != params.name for tool in self._tools.definitions()):
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")
        call = ToolCall(id=context.request_id, name=params.name, arguments=params.arguments or {})
        return build_tool_result(await self._tools.execute(call))


def served_capabilities(servicer: Servicer[Context]) -> ServerCapabilities:
    """What a server can do: what its servicer says, or else the capabilities of the methods it overrides."""
    told = getattr(servicer, "capabilities", None)
    if told is not None:
        capabilities: ServerCapabilities = told()
        return capabilities
    served = {
        method.capability
        for method in METHODS.values()
        if method.kind == "request" and method.client and method.capability and overrides(servicer, method.attribute)
    }
    return ServerCapabilities(
        tools=ToolsCapability() if "tools" in served else None,
        resources=ResourcesCapability(subscribe=True if "resources.subscribe" in served else None)
        if "resources" in served
        else None,
        prompts=PromptsCapability() if "prompts" in served else None,
        completions={} if "completions" in served else None,
        logging={} if "logging" in served else None,
    )


def modern_capabilities(servicer: Servicer[Context]) -> ServerCapabilities:
    """What a server can do from 2026-07-28 on, where changes are told to those who listen, or to nobody."""
    served = served_capabilities(servicer)
    if overrides(servicer, "listen"):
        return served
    return msgspec.structs.replace(
        served,
        tools=served.tools and ToolsCapability(),
        resources=served.resources and ResourcesCapability(),
        prompts=served.prompts and PromptsCapability(),
    )


def overrides(servicer: Servicer[Context], attribute: str) -> bool:
    """Whether a servicer serves a method by itself."""
    return getattr(type(servicer), attribute) is not getattr(Servicer, attribute)
