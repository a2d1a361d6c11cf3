"""The application: functions become tools, resources and prompts by decoration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar, Unpack, cast, overload

from typedmcp.core.errors import UsageError
from typedmcp.server.app_prompts import FunctionPrompt, PromptOptions
from typedmcp.server.app_resources import FunctionResource, FunctionTemplate, ResourceOptions
from typedmcp.server.app_servicer import PROMPTS_CHANGED, RESOURCES_CHANGED, TOOLS_CHANGED, AppServicer
from typedmcp.server.app_tools import FunctionTool, ToolOptions
from typedmcp.server.completion import Completer
from typedmcp.server.library import is_template
from typedmcp.server.registry import DEFAULT_PAGE_SIZE
from typedmcp.server.server import MCPServer
from typedmcp.server.threads import DEFAULT_WORKERS, WorkerThreads

F = TypeVar("F", bound=Callable[..., Any])
Schema: TypeAlias = dict[str, Any]


class App:
    """An MCP server made of functions.

    Args:
        name: The server's name, as clients see it.
        version: The server's version.
        title: A name for people.
        description: What the server is for.
        instructions: How to use the server, for the model.
        protocol_versions: The revisions to serve; by default every one.
        max_workers: How many plain (not async) functions may run at once, each in a thread of its own.
        page_size: How many entries a page of a list has.  The default is large, since many clients read one page only.
        state_keys: Fernet keys that seal the state of questions to clients of 2026-07-28, the newest first; processes
            that serve the same clients share them.  By default a random one, good for this process.
        state_lifetime: Seconds a client has to answer such a question.

    Example:
        ::

            app = App("calculator", "1.0.0")

            @app.tool
            async def add(a: int, b: int) -> int:
                \"\"\"Add two numbers.\"\"\"
                return a + b

            app.run()
    """

    def __init__(
        self,
        name: str,
        version: str = "0.0.0",
        *,
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        protocol_versions: Sequence[str] | None = None,
        max_workers: int = DEFAULT_WORKERS,
        page_size: int = DEFAULT_PAGE_SIZE,
        state_keys: Sequence[str | bytes] | None = None,
        state_lifetime: float = 600.0,
    ) -> None:
        if max_workers < 1 or page_size < 1:
            raise UsageError("max_workers and page_size must be at least 1")
        self._threads = WorkerThreads(max_workers)
        self._servicer = AppServicer(page_size)
        self._server = MCPServer(
            name=name,
            version=version,
            title=title,
            description=description,
            instructions=instructions,
            protocol_versions=protocol_versions,
            servicer=self._servicer,
            strict=True,
            state_keys=state_keys,
            state_lifetime=state_lifetime,
        )

    @property
    def name(self) -> str:
        """The server's name."""
        return self._server.name

    @property
    def version(self) -> str:
        """The server's version."""
        return self._server.version

    @property
    def server(self) -> MCPServer:
        """The engine the app compiles to; it stays live."""
        return self._server

    # -- tools -----------------------------------------------------------------------------------------------------

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, function: F, /, *, input_schema: Schema | None = ..., **options: Unpack[ToolOptions]) -> F: ...
    @overload
    def tool(self, /, *, input_schema: Schema | None = ..., **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, /, *, input_schema: Schema | None = None, **options: Any) -> Any:
        """Offer a function as a tool; the function itself is returned unchanged.

        The input schema comes from the parameters, the output schema from the return type, descriptions from the
        docstring and from ``Annotated``.  A parameter annotated with :class:`Context` receives the request's context.
        Plain functions run in worker threads.

        Args:
            function: The function; left out when the decorator is called with options first.
            input_schema: A JSON Schema to list as it is and check every call against; the function then takes the
                arguments object as one parameter named ``arguments``.
            options: See :class:`~typedmcp.server.app_tools.ToolOptions`: `name`, `title`, `description`,
                `annotations`, `icons`, `meta`.

        Raises:
            UsageError: the name is taken or not allowed, the signature cannot be a tool, or the schema cannot be used.
        """
        if function is None:
            return partial(self.tool, input_schema=input_schema, **options)
        known = cast("ToolOptions", _known(options, ToolOptions, "tool"))
        if input_schema is None:
            self._servicer.add_tool(FunctionTool(function, self._threads, known))
        else:
            from typedmcp.server.raw_tools import RawTool

            self._servicer.add_tool(RawTool(function, self._threads, known, input_schema))
        return function

    def remove_tool(self, name: str) -> bool:
        """Offer a tool no longer; False when there is none of this name."""
        return self._servicer.remove_tool(name)

    # -- resources -------------------------------------------------------------------------------------------------

    def resource(
        self, uri: str, /, *, complete: Mapping[str, Completer] | None = None, **options: Unpack[ResourceOptions]
    ) -> Callable[[F], F]:
        """Offer what a function returns as the resource at `uri`: text, bytes, resource contents, or a list of them.

        An address with variables is a template: ``{name}`` stands for one segment, ``{name*}`` for several,
        ``{+name}`` for anything, and the function takes the variables as parameters, decoded and converted to their
        annotations.  Two resources or templates that could answer for the same address are refused.

        Args:
            uri: The address clients read it by, or the template of addresses.
            complete: Variable name to a function that suggests values for it, see
                :mod:`typedmcp.server.completion`.
            options: See :class:`~typedmcp.server.app_resources.ResourceOptions`: `name`, `title`, `description`,
                `mime_type`, `annotations`, `icons`, `meta`.

        Raises:
            UsageError: the address is taken or is none, or the function's parameters are not the variables.
        """
        known = cast("ResourceOptions", _known({**options}, ResourceOptions, "resource"))
        template = is_template(uri)
        if complete and not template:
            raise UsageError(f"the resource at {uri!r} has no variables to complete")

        def register(function: F) -> F:
            if template:
                added = FunctionTemplate(function, self._threads, template=uri, options=known, complete=complete)
                self._servicer.add_resource(added)
            else:
                self._servicer.add_resource(FunctionResource(function, self._threads, uri=uri, options=known))
            return function

        return register

    def remove_resource(self, uri: str) -> bool:
        """Offer a resource or template no longer; False when there is none of this address."""
        return self._servicer.remove_resource(uri)

    # -- prompts ---------------------------------------------------------------------------------------------------

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(self, function: F, /, **options: Unpack[PromptOptions]) -> F: ...
    @overload
    def prompt(self, /, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...
    def prompt(self, function: Any = None, /, **options: Any) -> Any:
        """Offer a function as a prompt; the function itself is returned unchanged.

        Its parameters are the arguments: text, converted to their annotations; those with a default are optional.
        It returns messages, content or text (which are the user's), a list of them, or a whole ``GetPromptResult``.

        Args:
            function: The function; left out when the decorator is called with options first.
            options: See :class:`~typedmcp.server.app_prompts.PromptOptions`: `name`, `title`, `description`,
                `icons`, `meta`, `complete`.

        Raises:
            UsageError: the name is taken, or a parameter cannot be made from text.
        """
        if function is None:
            return partial(self.prompt, **options)
        known = cast("PromptOptions", _known(options, PromptOptions, "prompt"))
        self._servicer.add_prompt(FunctionPrompt(function, self._threads, known))
        return function

    def remove_prompt(self, name: str) -> bool:
        """Offer a prompt no longer; False when there is none of this name."""
        return self._servicer.remove_prompt(name)

    # -- changes ---------------------------------------------------------------------------------------------------

    def notify_resource_updated(self, uri: str) -> None:
        """Tell the clients that subscribed to a resource that its contents have changed.  Works from any thread."""
        self._servicer.updated(uri)

    def notify_tools_changed(self) -> None:
        """Tell clients that the list of tools has changed.  Adding and removing tools does so by itself."""
        self._servicer.list_changed(TOOLS_CHANGED)

    def notify_resources_changed(self) -> None:
        """Tell clients that the list of resources or templates has changed; as with tools."""
        self._servicer.list_changed(RESOURCES_CHANGED)

    def notify_prompts_changed(self) -> None:
        """Tell clients that the list of prompts has changed; as with tools."""
        self._servicer.list_changed(PROMPTS_CHANGED)

    # -- serving ---------------------------------------------------------------------------------------------------

    def run(self, transport: Literal["stdio", "http", "ws"] = "stdio", **options: Any) -> None:
        """Serve until the client goes away; Ctrl-C and SIGTERM end it cleanly.

        Args:
            transport: ``"stdio"``: messages on standard input and output; stray prints go to standard error.
                ``"http"``: Streamable HTTP on ``host=`` (loopback by default), ``port=`` (8000) and ``path=``.
                ``"ws"``: WebSocket, with the same three.
            options: What else :func:`typedmcp.transports.http.create_app` or
                :func:`typedmcp.transports.websocket.create_websocket_app` takes.

        Raises:
            UsageError: there is no such transport or option, or the address cannot be bound.
        """
        from typedmcp.serving import run

        run(self._server, transport, **options)


def _known(options: dict[str, Any], kind: Any, what: str) -> dict[str, Any]:
    """`options`, which type checkers have looked at and others have not.

    Raises:
        TypeError: there is no such option.
    """
    unknown = options.keys() - kind.__annotations__.keys()
    if unknown:
        raise TypeError(
            f"{what}() got an unexpected option {min(unknown)!r}; there are {', '.join(kind.__annotations__)}"
        )
    return options
