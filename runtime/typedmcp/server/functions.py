"""A user's function as the server calls it: in its task when it is async, in a worker thread when it is not."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from typedmcp.core.errors import MCPError, ToolError
from typedmcp.server.capabilities import MissingCapability
from typedmcp.server.context import Context
from typedmcp.server.threads import WorkerThreads
from typedmcp_wire.revisions import INTERNAL_ERROR

logger = logging.getLogger("typedmcp")


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling `function` gives a coroutine; objects with an async ``__call__`` count too."""
    call = getattr(function, "__call__", None)  # noqa: B004 - to look at it, not to test for it
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


class BoundFunction:
    """A function with what it needs to run.

    Args:
        function: What to call.
        threads: Where it runs when it is not async.
        context_name: The parameter that receives the request's context, if there is one.
    """

    def __init__(self, function: Callable[..., Any], threads: WorkerThreads, context_name: str | None = None) -> None:
        self._function = function
        self._threads = threads
        self._is_async = is_async(function)
        self._context_name = context_name
        self.takes_context = context_name is not None

    async def call(self, values: dict[str, Any], context: Context) -> Any:
        """Call it with `values` by name and return what it returns."""
        if self._context_name is not None:
            values = {**values, self._context_name: context}
        if self._is_async:
            return await self._function(**values)
        context.enter_thread(asyncio.get_running_loop())
        value = await self._threads.run(self._function, values)
        return await value if inspect.isawaitable(value) else value


async def guarded(work: Awaitable[Any], label: str, failure: str) -> Any:
    """The outcome of a user's function, its faults turned into what a client may know.

    Args:
        work: The call.
        label: Who failed, for the log.
        failure: What the client is told when the fault is not meant for it.

    Raises:
        MCPError: the function raised; only the text of errors meant to be read is told.
    """
    try:
        return await work
    except (ToolError, MissingCapability) as error:
        raise MCPError(INTERNAL_ERROR, str(error)) from error
    except MCPError:
        raise
    except Exception as error:
        logger.exception("%s failed", label)
        raise MCPError(INTERNAL_ERROR, failure) from error
