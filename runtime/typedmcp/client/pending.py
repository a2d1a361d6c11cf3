"""Requests a client waits for, and the progress reports that belong to them."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from typedmcp.core.errors import MCPError
from typedmcp.core.jsonrpc import JSONRPCErrorData, JSONRPCResponse

logger = logging.getLogger("typedmcp")

OnProgress: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None] | None]


class Pending:
    """One request in flight.

    Attributes:
        id: Its id, which is its progress token too.
        future: Settled with the undecoded result, or with the error.
    """

    __slots__ = ("_scope", "_seconds", "future", "id", "method", "on_progress")

    def __init__(self, number: int, method: str, on_progress: OnProgress | None) -> None:
        self.id = number
        self.method = method
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.on_progress = on_progress
        self._scope: asyncio.Timeout | None = None
        self._seconds = 0.0

    def extend_by_progress(self, scope: asyncio.Timeout, seconds: float) -> None:
        """Begin `scope` anew, `seconds` long, at every progress report."""
        self._scope = scope
        self._seconds = seconds

    def progressed(self, progress: float, total: float | None, message: str | None) -> Awaitable[None] | None:
        """Take a progress report; what the callback returns is to be awaited by the caller."""
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time() + self._seconds)
        return self.on_progress(progress, total, message) if self.on_progress is not None else None


class PendingTable:
    """Every request in flight by its id.  Ids of other types never match: 1 and "1" differ."""

    def __init__(self) -> None:
        self._entries: dict[int, Pending] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, entry: Pending) -> None:
        self._entries[entry.id] = entry

    def remove(self, entry: Pending) -> None:
        self._entries.pop(entry.id, None)
        # It may have failed while its message was still on the way out: then nobody awaits the future.
        if not entry.future.cancel() and not entry.future.cancelled():
            entry.future.exception()

    def find(self, request_id: object) -> Pending | None:
        """The request of that id; None when nobody waits for it."""
        return self._entries.get(request_id) if type(request_id) is int else None

    def settle(self, response: JSONRPCResponse) -> bool:
        """Hand a response to whoever waits for it; False when nobody does."""
        entry = self.find(response.id)
        if entry is None or entry.future.done():
            return False
        error = response.error
        if isinstance(error, JSONRPCErrorData):
            entry.future.set_exception(MCPError(error.code, error.message, error.data))
        else:
            entry.future.set_result(response.result)
        return True

    def fail(self, request_id: object, error: Exception) -> bool:
        """Let one request fail; False when nobody waits for it."""
        entry = self.find(request_id)
        if entry is None or entry.future.done():
            return False
        entry.future.set_exception(error)
        return True

    def fail_all(self, make: Callable[[Pending], Exception]) -> None:
        """Let every request fail."""
        for entry in list(self._entries.values()):
            if not entry.future.done():
                entry.future.set_exception(make(entry))

    def progress(self, token: object, progress: float, total: float | None, message: str | None) -> None:
        """Pass a progress report on; the callback begins at once, and what it raises is logged."""
        entry = self.find(token)
        if entry is None or entry.future.done():
            return
        try:
            outcome = entry.progressed(progress, total, message)
        except Exception:
            logger.exception("the progress callback of %s failed", entry.method)
            return
        if outcome is not None and inspect.isawaitable(outcome):
            task = asyncio.ensure_future(_watch(outcome, entry.method))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


async def _watch(outcome: Awaitable[None], method: str) -> None:
    try:
        await outcome
    except Exception:
        logger.exception("the progress callback of %s failed", method)
