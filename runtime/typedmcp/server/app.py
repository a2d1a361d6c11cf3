"""The application: functions become tools and resources by decoration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

from typedmcp.core.errors import UsageError
from typedmcp.server.app_resources import FunctionResource
from typedmcp.server.app_servicer import AppServicer
from typedmcp.server.app_tools import FunctionTool
from typedmcp.server.server import MCPServer
from typedmcp.server.threads import DEFAULT_WORKERS, WorkerThreads
from typedmcp_wire.types.tools import ToolAnnotations

F = TypeVar("F", bound=Callable[..., Any])


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
    ) -> None:
        if max_workers < 1:
            raise UsageError("max_workers must be at least 1")
        self._threads = WorkerThreads(max_workers)
        self._servicer = AppServicer()
        self._server = MCPServer(
            name=name,
            version=version,
            title=title,
            description=description,
            instructions=instructions,
            protocol_versions=protocol_versions,
            servicer=self._servicer,
            strict=True,
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

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(
        self,
        function: F,
        /,
        *,
        name: str | None = ...,
        title: str | None = ...,
        description: str | None = ...,
        annotations: ToolAnnotations | None = ...,
        meta: dict[str, Any] | None = ...,
    ) -> F: ...
    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = ...,
        title: str | None = ...,
        description: str | None = ...,
        annotations: ToolAnnotations | None = ...,
        meta: dict[str, Any] | None = ...,
    ) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """Offer a function as a tool; the function itself is returned unchanged.

        The input schema comes from the parameters, the output schema from the return type, descriptions from the
        docstring and from ``Annotated``.  A parameter annotated with :class:`Context` receives the request's context.
        Plain functions run in worker threads.

        Args:
            function: The function; left out when the decorator is called with options first.
            name: The tool's name; the function's by default.
            title: A name for people.
            description: What the tool does; the docstring's by default.
            annotations: Hints about the tool's behaviour.
            meta: The tool's ``_meta``.

        Raises:
            UsageError: the name is taken or not allowed, or the signature cannot be a tool.
        """
        if function is None:

            def register(later: F) -> F:
                return self.tool(later, **options)

            return register
        self._servicer.add_tool(FunctionTool(function, self._threads, **options))
        return function

    def resource(
        self,
        uri: str,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
    ) -> Callable[[F], F]:
        """Offer what a function returns (text or bytes) as the resource at `uri`.

        Args:
            uri: The address clients read it by.
            name: The resource's name; the function's by default.
            title: A name for people.
            description: What it holds; the docstring's by default.
            mime_type: The type of the contents.

        Raises:
            UsageError: the address is taken or is none, or the function takes arguments.
        """

        def register(function: F) -> F:
            resource = FunctionResource(
                function,
                self._threads,
                uri=uri,
                name=name,
                title=title,
                description=description,
                mime_type=mime_type,
            )
            self._servicer.add_resource(resource)
            return function

        return register

    def run(self, transport: Literal["stdio", "http"] = "stdio", **options: Any) -> None:
        """Serve until the client goes away; Ctrl-C and SIGTERM end it cleanly.

        Args:
            transport: ``"stdio"``: messages on standard input and output; stray prints go to standard error.
                ``"http"``: Streamable HTTP on ``host=`` (loopback by default), ``port=`` (8000) and ``path=``.
            options: What else :func:`typedmcp.transports.http.create_app` takes.

        Raises:
            UsageError: there is no such transport or option, or the address cannot be bound.
        """
        from typedmcp.serving import run

        run(self._server, transport, **options)
