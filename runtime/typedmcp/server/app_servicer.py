"""The servicer of an app: its registries as the protocol's methods."""

from __future__ import annotations

from typing import Any

from typedmcp.core.errors import MCPError, UsageError
from typedmcp.server.app_resources import FunctionResource
from typedmcp.server.app_tools import FunctionTool
from typedmcp.server.context import Context
from typedmcp_wire.revisions import INVALID_PARAMS, RESOURCE_NOT_FOUND
from typedmcp_wire.servicer import MethodNotImplemented, Servicer
from typedmcp_wire.types.base import ResourcesCapability, ServerCapabilities, ToolsCapability
from typedmcp_wire.types.calls import CallToolRequestParams
from typedmcp_wire.types.jsonrpc import EmptyResult, PaginatedRequestParams
from typedmcp_wire.types.logging import SetLevelRequestParams
from typedmcp_wire.types.resources import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceRequestParams,
    ReadResourceResult,
)
from typedmcp_wire.types.tools import ListToolsResult


class AppServicer(Servicer[Context]):
    """Serves the tools and resources registered with an app; a feature nobody registered for is not there."""

    def __init__(self) -> None:
        self._tools: dict[str, FunctionTool] = {}
        self._resources: dict[str, FunctionResource] = {}

    def add_tool(self, tool: FunctionTool) -> None:
        """Offer a tool.

        Raises:
            UsageError: there is one of this name.
        """
        if tool.name in self._tools:
            raise UsageError(f"there is a tool named {tool.name!r} already; give one of them another name=")
        self._tools[tool.name] = tool

    def add_resource(self, resource: FunctionResource) -> None:
        """Offer a resource.

        Raises:
            UsageError: there is one at this address.
        """
        if resource.uri in self._resources:
            raise UsageError(f"there is a resource at {resource.uri!r} already")
        self._resources[resource.uri] = resource

    def capabilities(self) -> ServerCapabilities:
        """What is served now."""
        return ServerCapabilities(
            tools=ToolsCapability() if self._tools else None,
            resources=ResourcesCapability() if self._resources else None,
            logging={} if self._logs() else None,
        )

    def _logs(self) -> bool:
        """Whether any function gets a context, and with it the means to send log messages."""
        return any(tool.takes_context for tool in self._tools.values()) or any(
            resource.takes_context for resource in self._resources.values()
        )

    async def set_logging_level(self, params: SetLevelRequestParams, context: Context) -> EmptyResult:
        """Keep which log messages the client wants."""
        if not self._logs():
            raise MethodNotImplemented("logging/setLevel")
        context.choose_log_level(params.level)
        return {}

    async def list_tools(self, params: PaginatedRequestParams, context: Context) -> ListToolsResult:
        """Every tool, in the order of registration."""
        self._need("tools/list", self._tools)
        _first_page(params)
        return ListToolsResult(tools=[tool.descriptor for tool in self._tools.values()])

    async def call_tool(self, params: CallToolRequestParams, context: Context) -> Any:
        """Check the arguments and run the tool."""
        tool = self._tools.get(params.name)
        if tool is None:
            self._need("tools/call", self._tools)
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")
        return await tool.call(params.arguments, context)

    async def list_resources(self, params: PaginatedRequestParams, context: Context) -> ListResourcesResult:
        """Every resource, in the order of registration."""
        self._need("resources/list", self._resources)
        _first_page(params)
        return ListResourcesResult(resources=[resource.descriptor for resource in self._resources.values()])

    async def list_resource_templates(
        self, params: PaginatedRequestParams, context: Context
    ) -> ListResourceTemplatesResult:
        """No template is served; the list is empty."""
        self._need("resources/templates/list", self._resources)
        _first_page(params)
        return ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(self, params: ReadResourceRequestParams, context: Context) -> ReadResourceResult:
        """The contents of a resource."""
        self._need("resources/read", self._resources)
        resource = self._resources.get(params.uri)
        if resource is None:
            code = INVALID_PARAMS if context.is_modern else RESOURCE_NOT_FOUND
            raise MCPError(code, "Resource not found", {"uri": params.uri})
        return await resource.read(context)

    def _need(self, method: str, registry: dict[str, Any]) -> None:
        if not registry:
            raise MethodNotImplemented(method)


def _first_page(params: PaginatedRequestParams) -> None:
    """Lists have one page; a cursor cannot have come from here."""
    if params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "There is no such page: the cursor is not one of this server's.")
