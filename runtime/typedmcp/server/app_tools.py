"""A function as a tool of an app: arguments checked on the way in, results on the way out."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict

from typedmcp.core.errors import MCPError, ToolError, UsageError
from typedmcp.core.jsonrpc import NonFiniteNumber
from typedmcp.server.arguments import argument_violations
from typedmcp.server.context import Context
from typedmcp.server.results import result_builder
from typedmcp.server.signature import convert_arguments, read_signature
from typedmcp.server.threads import WorkerThreads
from typedmcp.server.tools import sendable
from typedmcp_wire.revisions import INVALID_PARAMS
from typedmcp_wire.types.calls import CallToolResult
from typedmcp_wire.types.content import TextContent
from typedmcp_wire.types.tools import Tool as ToolDescriptor
from typedmcp_wire.types.tools import ToolAnnotations

logger = logging.getLogger("typedmcp")

MAX_NAME = 128
_NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
FAILED = "Tool failed"


class FunctionTool:
    """One function, compiled once, called many times.

    Raises:
        UsageError: the name is not one the specification allows, or the signature cannot be a tool.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        threads: WorkerThreads,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        self.name: str = name or str(getattr(function, "__name__", ""))
        if not 0 < len(self.name) <= MAX_NAME or not _NAME_CHARACTERS.issuperset(self.name):
            raise UsageError(f"a tool's name is 1 to {MAX_NAME} letters, digits, '_', '-' or '.'; got {self.name!r}")
        signature = read_signature(function)
        self._function = function
        self._threads = threads
        self._is_async = _is_async(function)
        self._arguments = signature.arguments
        self._context_name = signature.context_name
        self.takes_context = signature.context_name is not None
        output_schema, self._build = result_builder(signature.returns, self.name)
        self.descriptor = ToolDescriptor(
            name=self.name,
            title=title,
            description=description if description is not None else signature.description,
            input_schema=signature.input_schema,
            output_schema=output_schema,
            annotations=annotations,
            meta=meta,
        )

    async def call(self, arguments: dict[str, Any] | None, context: Context) -> Any:
        """Run the function and return the result to send.

        Raises:
            MCPError: the arguments do not fit, towards revisions that class this as a protocol error; or the function
                raised it.
        """
        given = arguments or {}
        try:
            struct = convert_arguments(given, self._arguments)
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
        except NonFiniteNumber as error:
            logger.exception("tool %r returned what JSON cannot hold", self.name)
            return failure(f"{FAILED}: {error}")
        except Exception:
            logger.exception("tool %r failed", self.name)
            return failure(FAILED)

    async def _run(self, values: dict[str, Any], context: Context) -> Any:
        context.enter_thread(asyncio.get_running_loop())
        value = await self._threads.run(self._function, values)
        return await value if inspect.isawaitable(value) else value

    def _refuse(self, given: dict[str, Any], error: Exception, context: Context) -> CallToolResult:
        """The answer to arguments that do not fit: from 2025-11-25 on one the model can read and act on."""
        violations = argument_violations(given, self.descriptor.input_schema, str(error))
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


def _is_async(function: Callable[..., Any]) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004 - to look at it, not to test for it
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
