"""The servicer of an app: its registries as the protocol's methods."""

from __future__ import annotations

from typing import Any

from typedmcp.core.errors import MCPError, UsageError
from typedmcp.core.param_headers import Mark, marks_of_tool
from typedmcp.core.uri_templates import normal_form
from typedmcp.server.app_prompts import FunctionPrompt
from typedmcp.server.app_resources import FunctionResource, FunctionTemplate
from typedmcp.server.app_tools import FunctionTool
from typedmcp.server.context import Context
from typedmcp.server.library import Library, not_found
from typedmcp.server.peers import MAX_SUBSCRIPTIONS, Peers
from typedmcp.server.registry import DEFAULT_PAGE_SIZE, Registry
from typedmcp.server.subscribers import Subscribers
from typedmcp_wire.revisions import INVALID_PARAMS
from typedmcp_wire.servicer import MethodNotImplemented, Servicer
from typedmcp_wire.types.base import PromptsCapability, ResourcesCapability, ServerCapabilities, ToolsCapability
from typedmcp_wire.types.calls import CallToolRequestParams
from typedmcp_wire.types.completion import CompleteRequestParams, CompleteResult, PromptReference
from typedmcp_wire.types.input import InputRequiredResult
from typedmcp_wire.types.jsonrpc import EmptyResult, NotificationParams, PaginatedRequestParams
from typedmcp_wire.types.logging import SetLevelRequestParams
from typedmcp_wire.types.prompts import GetPromptRequestParams, GetPromptResult, ListPromptsResult
from typedmcp_wire.types.resources import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceRequestParams,
    ReadResourceResult,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)
from typedmcp_wire.types.subscriptions import (
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)
from typedmcp_wire.types.tools import ListToolsResult

TOOLS_CHANGED = "notifications/tools/list_changed"
RESOURCES_CHANGED = "notifications/resources/list_changed"
PROMPTS_CHANGED = "notifications/prompts/list_changed"


class AppServicer(Servicer[Context]):
    """Serves what is registered with an app; a feature nobody ever registered for is not there.

    What changes is told to the clients of :attr:`peers` and to those of :attr:`subscribers`.

    Args:
        page_size: How many entries a page of a list has.
    """

    def __init__(self, page_size: int = DEFAULT_PAGE_SIZE) -> None:
        self.peers = Peers()
        self.subscribers = Subscribers()
        self._tools = Registry[FunctionTool]("tools", page_size)
        self._prompts = Registry[FunctionPrompt]("prompts", page_size)
        self._library = Library(page_size)
        self._marks: dict[str, tuple[Mark, ...]] = {}

    # -- what is offered -------------------------------------------------------------------------------------------

    def add_tool(self, tool: FunctionTool) -> None:
        """Offer a tool.

        Raises:
            UsageError: there is one of this name.
        """
        if self._tools.get(tool.name) is not None:
            raise UsageError(f"there is a tool named {tool.name!r} already; give one of them another name=")
        marks = marks_of_tool(tool.name, tool.descriptor.input_schema)
        self._tools.add(tool.name, tool)
        if marks:
            self._marks[tool.name] = marks
        self.list_changed(TOOLS_CHANGED)

    def add_prompt(self, prompt: FunctionPrompt) -> None:
        """Offer a prompt.

        Raises:
            UsageError: there is one of this name.
        """
        if self._prompts.get(prompt.name) is not None:
            raise UsageError(f"there is a prompt named {prompt.name!r} already; give one of them another name=")
        self._prompts.add(prompt.name, prompt)
        self.list_changed(PROMPTS_CHANGED)

    def add_resource(self, resource: FunctionResource | FunctionTemplate) -> None:
        """Offer a resource or a template.

        Raises:
            UsageError: an address of it has another owner.
        """
        if isinstance(resource, FunctionResource):
            self._library.add_resource(resource)
        else:
            self._library.add_template(resource)
        self.list_changed(RESOURCES_CHANGED)

    def remove_tool(self, name: str) -> bool:
        """Take a tool out; False when there is none of this name."""
        self._marks.pop(name, None)
        return self._removed(self._tools.remove(name), TOOLS_CHANGED)

    def remove_prompt(self, name: str) -> bool:
        """Take a prompt out; False when there is none of this name."""
        return self._removed(self._prompts.remove(name), PROMPTS_CHANGED)

    def remove_resource(self, uri: str) -> bool:
        """Take a resource or template out; False when there is none of this address."""
        return self._removed(self._library.remove(uri), RESOURCES_CHANGED)

    def list_changed(self, method: str) -> None:
        """Tell the clients of both eras that a list has changed."""
        self.peers.list_changed(method)
        self.subscribers.list_changed(method)

    def updated(self, uri: str) -> None:
        """Tell the clients of both eras that a resource has changed."""
        key = normal_form(uri)
        self.peers.updated(key)
        self.subscribers.updated(key)

    def param_marks(self, name: str) -> tuple[Mark, ...]:
        """The parameters of a tool that travel in headers, too."""
        return self._marks.get(name, ())

    def end_listening(self) -> None:
        """End the subscriptions of clients of 2026-07-28 in good order."""
        self.subscribers.end()

    def _removed(self, gone: bool, method: str) -> bool:
        if gone:
            self.list_changed(method)
        return gone

    def capabilities(self) -> ServerCapabilities:
        """What is served now."""
        return ServerCapabilities(
            tools=ToolsCapability(list_changed=True) if self._tools.served else None,
            resources=ResourcesCapability(list_changed=True, subscribe=True) if self._library.served else None,
            prompts=PromptsCapability(list_changed=True) if self._prompts.served else None,
            completions={} if self._completes() else None,
            logging={} if self._logs() else None,
        )

    def _logs(self) -> bool:
        """Whether any function gets a context, and with it the means to send log messages."""
        entries = (*self._tools, *self._prompts, *self._library.resources, *self._library.templates)
        return any(entry.takes_context for entry in entries)

    def _completes(self) -> bool:
        return any(entry.completers for entry in (*self._prompts, *self._library.templates))

    # -- the connection --------------------------------------------------------------------------------------------

    async def initialized(self, params: NotificationParams, context: Context) -> None:
        """Remember a client of the handshake era, to tell it what changes."""
        served = {
            TOOLS_CHANGED: self._tools.served,
            RESOURCES_CHANGED: self._library.served,
            PROMPTS_CHANGED: self._prompts.served,
        }
        self.peers.opened(context.peer, frozenset(method for method, there in served.items() if there))

    async def set_logging_level(self, params: SetLevelRequestParams, context: Context) -> EmptyResult:
        """Keep which log messages the client wants."""
        if not self._logs():
            raise MethodNotImplemented("logging/setLevel")
        context.choose_log_level(params.level)
        return {}

    async def listen(self, params: SubscriptionsListenRequestParams, context: Context) -> SubscriptionsListenResult:
        """Tell a client of 2026-07-28 what changes, of what it asks for and there is, until one of the two ends it."""
        wanted = params.notifications
        uris = wanted.resource_subscriptions or []
        if len(uris) > MAX_SUBSCRIPTIONS:
            raise MCPError(INVALID_PARAMS, "Too many resources in one subscription.", {"limit": MAX_SUBSCRIPTIONS})
        served = {uri: normal_form(uri) for uri in uris if self._library.served and self._library.knows(uri)}
        granted = SubscriptionFilter(
            tools_list_changed=True if wanted.tools_list_changed and self._tools.served else None,
            resources_list_changed=True if wanted.resources_list_changed and self._library.served else None,
            prompts_list_changed=True if wanted.prompts_list_changed and self._prompts.served else None,
            resource_subscriptions=list(served) or None,
        )
        kinds = {
            TOOLS_CHANGED: granted.tools_list_changed,
            RESOURCES_CHANGED: granted.resources_list_changed,
            PROMPTS_CHANGED: granted.prompts_list_changed,
        }
        chosen = frozenset(method for method, wish in kinds.items() if wish)
        return await self.subscribers.serve(context, granted, chosen, {key: uri for uri, key in served.items()})

    # -- tools -----------------------------------------------------------------------------------------------------

    async def list_tools(self, params: PaginatedRequestParams, context: Context) -> ListToolsResult:
        """A page of the tools, in the order of registration."""
        _need("tools/list", self._tools.served)
        page, following = self._tools.page(params.cursor)
        return ListToolsResult(tools=[tool.descriptor for tool in page], next_cursor=following)

    async def call_tool(self, params: CallToolRequestParams, context: Context) -> Any:
        """Check the arguments and run the tool."""
        tool = self._tools.get(params.name)
        if tool is None:
            _need("tools/call", self._tools.served)
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")
        return await tool.call(params.arguments, context)

    # -- resources -------------------------------------------------------------------------------------------------

    async def list_resources(self, params: PaginatedRequestParams, context: Context) -> ListResourcesResult:
        """A page of the resources with a fixed address, in the order of registration."""
        _need("resources/list", self._library.served)
        page, following = self._library.resources.page(params.cursor)
        return ListResourcesResult(resources=[resource.descriptor for resource in page], next_cursor=following)

    async def list_resource_templates(
        self, params: PaginatedRequestParams, context: Context
    ) -> ListResourceTemplatesResult:
        """A page of the templates, in the order of registration."""
        _need("resources/templates/list", self._library.served)
        page, following = self._library.templates.page(params.cursor)
        templates = [template.descriptor for template in page]
        return ListResourceTemplatesResult(resource_templates=templates, next_cursor=following)

    async def read_resource(
        self, params: ReadResourceRequestParams, context: Context
    ) -> ReadResourceResult | InputRequiredResult:
        """The contents of a resource."""
        _need("resources/read", self._library.served)
        return await self._library.read(params.uri, context)

    async def subscribe_resource(self, params: SubscribeRequestParams, context: Context) -> EmptyResult:
        """Tell the client from now on when a resource changes."""
        _need("resources/subscribe", self._library.served)
        if not self._library.knows(params.uri):
            raise not_found(params.uri, context)
        self.peers.watch(context.peer, normal_form(params.uri), params.uri)
        return {}

    async def unsubscribe_resource(self, params: UnsubscribeRequestParams, context: Context) -> EmptyResult:
        """Tell the client no more of a resource; one it does not watch is no error."""
        _need("resources/unsubscribe", self._library.served)
        self.peers.unwatch(context.peer, normal_form(params.uri))
        return {}

    # -- prompts and completion ------------------------------------------------------------------------------------

    async def list_prompts(self, params: PaginatedRequestParams, context: Context) -> ListPromptsResult:
        """A page of the prompts, in the order of registration."""
        _need("prompts/list", self._prompts.served)
        page, following = self._prompts.page(params.cursor)
        return ListPromptsResult(prompts=[prompt.descriptor for prompt in page], next_cursor=following)

    async def get_prompt(
        self, params: GetPromptRequestParams, context: Context
    ) -> GetPromptResult | InputRequiredResult:
        """The messages of a prompt."""
        prompt = self._prompts.get(params.name)
        if prompt is None:
            _need("prompts/get", self._prompts.served)
            raise MCPError(INVALID_PARAMS, f"Unknown prompt: {params.name}")
        return await prompt.get(params.arguments, context)

    async def complete(self, params: CompleteRequestParams, context: Context) -> CompleteResult:
        """Suggestions for an argument of a prompt or a variable of a template."""
        _need("completion/complete", self._completes())
        ref = params.ref
        if isinstance(ref, PromptReference):
            owner: FunctionPrompt | FunctionTemplate | None = self._prompts.get(ref.name)
        else:
            owner = self._library.template(ref.uri)
        if owner is None:
            raise MCPError(INVALID_PARAMS, "There is no such prompt or resource template.")
        return await owner.completers.complete(params, context)


def _need(method: str, served: bool) -> None:
    if not served:
        raise MethodNotImplemented(method)
