"""Worker threads for plain functions, so that a slow one never stops the event loop.

``concurrent.futures`` is not used: its threads are joined when the interpreter exits, so one tool that never returns
would keep a server from ending.  These threads are daemons and hold nothing the library needs.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

DEFAULT_WORKERS = 64
_IDLE_SECONDS = 30.0

_Job: TypeAlias = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class WorkerThreads:
    """At most `limit` threads, made when needed, ended when idle.

    Args:
        limit: How many plain functions may run at once; further calls wait their turn.
    """

    def __init__(self, limit: int = DEFAULT_WORKERS) -> None:
        self._limit = limit
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0

    async def run(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Call `function` in a worker thread, with the caller's context variables, and return what it returns.

        When the awaiting task is cancelled the thread goes on, and what it returns is dropped.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        context = contextvars.copy_context()
        self._submit((loop, future, lambda: context.run(function, **arguments)))
        return await future

    def _submit(self, job: _Job) -> None:
        self._jobs.put(job)
        with self._lock:
            if self._idle >= self._jobs.qsize() or self._threads >= self._limit:
                return
            self._threads += 1
        threading.Thread(target=self._work, name="typedmcp-worker", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            try:
                loop, future, call = self._jobs.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    self._idle -= 1
                    # A job may have come between the wait and the lock; then this thread must stay for it.
                    if self._jobs.empty():
                        self._threads -= 1
                        return
                continue
            with self._lock:
                self._idle -= 1
            if not future.cancelled():
                _execute(loop, future, call)
            del loop, future, call


def _execute(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], call: Callable[[], Any]) -> None:
    try:
        value = call()
    except BaseException as error:  # noqa: BLE001 - whatever it is, the waiting task must hear of it
        _settle(loop, future, None, _as_exception(error))
    else:
        _settle(loop, future, value, None)


def _as_exception(error: BaseException) -> Exception:
    """A future refuses StopIteration, and SystemExit of a worker is not the process's own."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError(f"the function raised {type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped


def _settle(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    def tell() -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    try:
        loop.call_soon_threadsafe(tell)
    except RuntimeError:
        pass  # the loop has ended: nobody waits for the value
