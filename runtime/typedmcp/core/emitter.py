"""A small synchronous event emitter that keeps one faulty listener from harming the others.

Rules:
- ``emit`` calls the listeners of an event in the order they came, at once, and never raises.
- A listener added or removed while an event is emitted counts from the next emit on.
- What a listener raises goes to the emitter's ``error`` handler as (exception, event name); a handler that raises is
  ignored.  This handler is not the ``error`` *event* that clients and transports emit.
- A listener may be a coroutine function: it is scheduled as a task of the running loop, and what it raises goes the
  same way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import asyncio

Listener: TypeAlias = Callable[..., object]
ErrorHandler: TypeAlias = Callable[[BaseException, str], object]


class Emitter:
    """Named events and their listeners.

    Args:
        on: Listeners to begin with, by event name.
        error: Called with (exception, event name) for every listener that fails.
    """

    __slots__ = ("_destroyed", "_error", "_listeners", "_tasks")

    def __init__(self, on: Mapping[str, Listener] | None = None, error: ErrorHandler | None = None) -> None:
        # Tuples, replaced on change: emitting needs no copy, and a change during an emit does not show in it.
        self._listeners: dict[str, tuple[Listener, ...]] = {}
        self._error = error
        self._destroyed = False
        self._tasks: set[asyncio.Task[None]] = set()
        for event, listener in (on or {}).items():
            self.on(event, listener)

    def on(self, event: str, listener: Listener) -> None:
        """Call `listener` whenever `event` is emitted."""
        if not self._destroyed:
            self._listeners[event] = (*self._listeners.get(event, ()), listener)

    def once(self, event: str, listener: Listener) -> None:
        """Call `listener` the next time `event` is emitted, and not again."""
        if not self._destroyed:
            self.on(event, _Once(self, event, listener))

    def off(self, event: str, listener: Listener) -> None:
        """Stop calling `listener`; one that is not there is no error."""
        kept = list(self._listeners.get(event, ()))
        for index, entry in enumerate(kept):
            if entry == listener or (isinstance(entry, _Once) and entry.listener == listener):
                del kept[index]
                break
        self._listeners[event] = tuple(kept)

    def emit(self, event: str, *values: object) -> None:
        """Tell every listener of `event`."""
        listeners = self._listeners.get(event)
        if not listeners:
            return
        for listener in listeners:
            try:
                outcome = listener(*values)
                if outcome is not None and inspect.iscoroutine(outcome):
                    self._schedule(event, outcome)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 - isolating listeners is the purpose, CancelledError included
                self._report(error, event)

    def destroy(self) -> None:
        """Forget all listeners for good; further calls do nothing."""
        self._destroyed = True
        self._listeners.clear()

    def _schedule(self, event: str, outcome: Coroutine[Any, Any, object]) -> None:
        import asyncio

        async def run() -> None:
            try:
                await outcome
            except Exception as error:  # noqa: BLE001
                self._report(error, event)

        try:
            task = asyncio.get_running_loop().create_task(run())
        except RuntimeError:
            outcome.close()
            raise
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _report(self, error: BaseException, event: str) -> None:
        if self._error is None:
            return
        try:
            self._error(error, event)
        except Exception:  # noqa: BLE001, S110 - nobody is left to tell
            pass


class _Once:
    """A listener that takes itself off before it is called."""

    __slots__ = ("_called", "_emitter", "_event", "listener")

    def __init__(self, emitter: Emitter, event: str, listener: Listener) -> None:
        self._emitter = emitter
        self._event = event
        self._called = False
        self.listener = listener

    def __call__(self, *values: object) -> object:
        if self._called:  # by an emit inside the emit that is calling now
            return None
        self._called = True
        self._emitter.off(self._event, self)
        return self.listener(*values)
