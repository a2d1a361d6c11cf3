"""A function as a tool of an app: arguments checked on the way in, results on the way out."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any, TypedDict

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict

from typedmcp.core.errors import MCPError, ToolError, UsageError
from typedmcp.core.jsonrpc import NonFiniteNumber
from typedmcp.server.arguments import argument_violations
from typedmcp.server.capabilities import MissingCapability
from typedmcp.server.context import Context
from typedmcp.server.functions import is_async
from typedmcp.server.results import result_builder
from typedmcp.server.signature import Arguments, convert_arguments, read_signature
from typedmcp.server.threads import WorkerThreads
from typedmcp.server.tools import sendable
from typedmcp_wire.revisions import INVALID_PARAMS
from typedmcp_wire.types.base import Icon
from typedmcp_wire.types.calls import CallToolResult
from typedmcp_wire.types.content import TextContent
from typedmcp_wire.types.tools import Tool as ToolDescriptor
from typedmcp_wire.types.tools import ToolAnnotations

logger = logging.getLogger("typedmcp")

MAX_NAME = 128
_NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
FAILED = "Tool failed"


class ToolOptions(TypedDict, total=False):
    """What can be said about a tool.

    Attributes:
        name: Its name; the function's by default.
        title: A name for people.
        description: What it does; the docstring's by default.
        annotations: Hints about its behaviour.
        icons: Icons a user interface may show.
        meta: Its ``_meta``.
    """

    name: str | None
    title: str | None
    description: str | None
    annotations: ToolAnnotations | None
    icons: list[Icon] | None
    meta: dict[str, Any] | None


class FunctionTool:
    """One function, compiled once, called many times.

    Raises:
        UsageError: the name is not one the specification allows, or the signature cannot be a tool.
    """

    def __init__(self, function: Callable[..., Any], threads: WorkerThreads, options: ToolOptions) -> None:
        self.name: str = options.get("name") or str(getattr(function, "__name__", ""))
        if not 0 < len(self.name) <= MAX_NAME or not _NAME_CHARACTERS.issuperset(self.name):
            raise UsageError(f"a tool's name is 1 to {MAX_NAME} letters, digits, '_', '-' or '.'; got {self.name!r}")
        signature = read_signature(function)
        self._function = function
        self._threads = threads
        self._is_async = is_async(function)
        self._arguments = signature.arguments
        self._convert: Callable[[dict[str, Any], type[Arguments]], Arguments] = convert_arguments
        self._context_name = signature.context_name
        self.takes_context = signature.context_name is not None
        output_schema, self._build = result_builder(signature.returns, self.name)
        described = options.get("description")
        self.descriptor = ToolDescriptor(
            name=self.name,
            title=options.get("title"),
            description=signature.description if described is None else described,
            input_schema=signature.input_schema,
            output_schema=output_schema,
            annotations=options.get("annotations"),
            icons=options.get("icons"),
            meta=options.get("meta"),
        )

    async def call(self, arguments: dict[str, Any] | None, context: Context) -> Any:
        """Run the function and return the result to send.

        Raises:
            MCPError: the arguments do not fit, towards revisions that class this as a protocol error; or the function
                raised it.
        """
        given = arguments or {}
        try:
            struct = self._convert(given, self._arguments)
        except (msgspec.ValidationError, RecursionError) as error:
            return self._refuse(given, error, context)
        values = asdict(struct)
        if self._context_name is not None:
            values[self._context_name] = context
        try:
            value = await (self._function(**values) if self._is_async else self._run(values, context))
            return self._build(value)
        except ToolError as error:
            return _error_result(error)
        except MCPError:
            raise
        except MissingCapability as error:
            return failure(str(error))
        except NonFiniteNumber as error:
            logger.exception("tool %r returned what JSON cannot hold", self.name)
            return failure(f"{FAILED}: {error}")
        except Exception:
            logger.exception("tool %r failed", self.name)
            return failure(FAILED)

    def _violations(self, given: dict[str, Any], error: Exception) -> list[tuple[str, str]]:
        return argument_violations(given, self.descriptor.input_schema, str(error))

    async def _run(self, values: dict[str, Any], context: Context) -> Any:
        context.enter_thread(asyncio.get_running_loop())
        value = await self._threads.run(self._function, values)
        return await value if inspect.isawaitable(value) else value

    def _refuse(self, given: dict[str, Any], error: Exception, context: Context) -> CallToolResult:
        """The answer to arguments that do not fit: from 2025-11-25 on one the model can read and act on."""
        violations = self._violations(given, error)
        if context.revision < "2025-11-25":
            data = {"violations": [{"pointer": where, "message": what} for where, what in violations]}
            raise MCPError(INVALID_PARAMS, f"Invalid arguments for tool {self.name}.", data)
        lines = [f"- {where or 'arguments'}: {what}" for where, what in violations]
        return failure("\n".join([f"Invalid arguments for tool {self.name}:", *lines]))


def failure(text: str) -> CallToolResult:
    """The result of a tool that failed."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def _error_result(error: ToolError) -> CallToolResult:
    return CallToolResult(
        content=list(error.content) or [TextContent(text=sendable(str(error)))],
        structured_content=UNSET if error.structured_content is UNSET else error.structured_content,
        is_error=True,
        meta=error.meta,
    )
