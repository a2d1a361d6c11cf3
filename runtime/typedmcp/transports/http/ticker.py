"""One timer for many: a timer of its own for every request would cost more than most requests do."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Ticking(Protocol):
    """What is looked at from time to time."""

    def tick(self) -> None:
        """Some time has passed; what is not needed any more takes itself off."""
        ...


class Ticker:
    """Calls everything that is on it every `interval` seconds; the timer runs only while there is something.

    Args:
        interval: Seconds; the first call comes within that time.
    """

    __slots__ = ("_interval", "_items", "_loop")

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._items: dict[Ticking, None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: Ticking) -> None:
        """Begin to call it."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # The first, or the first in a new loop: nothing of an old one will ever be called.
            self._loop = loop
            self._items.clear()
            loop.call_later(self._interval, self._tick, loop)
        self._items[item] = None

    def remove(self, item: Ticking) -> None:
        """Do not call it any more."""
        self._items.pop(item, None)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop is not self._loop:
            return
        for item in list(self._items):
            item.tick()
        if self._items:
            loop.call_later(self._interval, self._tick, loop)
        else:
            self._loop = None
