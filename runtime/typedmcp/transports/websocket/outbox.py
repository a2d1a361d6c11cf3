"""Where a server's frames go out: handed to aiohttp one after the other, never by two writers at once.

Rules:
- :meth:`FrameOutbox.write` never blocks and never fails.
- A frame goes out at once while the peer takes what it is sent.  What it does not take is kept; above
  :data:`HIGH_WATER` bytes ``drain`` waits, and the owner reads no more requests, until :data:`LOW_WATER`.
  What is already on its way comes on top: the bound is the high-water mark and the answers of the requests in flight.
- When the way out breaks, further frames are dropped; whoever reads the connection learns of its end there.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from typedmcp.core.running import start_task

HIGH_WATER: Final = 1024 * 1024
LOW_WATER: Final = 256 * 1024


class FrameOutbox:
    """Frames to be written.

    Args:
        send: Writes one frame, and returns when the connection takes more.

    Attributes:
        closed: Whether frames are dropped.
    """

    def __init__(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._frames: deque[bytes] = deque()
        self._waiting = 0
        self._task: asyncio.Task[None] | None = None
        self._busy = False
        self._room = asyncio.Event()
        self._room.set()
        self._empty = asyncio.Event()
        self._empty.set()
        self.closed = False

    @property
    def full(self) -> bool:
        """Whether ``drain`` would wait."""
        return not self._room.is_set()

    def write(self, frame: bytes) -> None:
        """Add a frame."""
        if self.closed:
            return
        self._frames.append(frame)
        self._waiting += len(frame)
        if not self._busy:
            self._busy = True
            self._empty.clear()
            self._task = start_task(self._run(), self._loop)
        if self._waiting > HIGH_WATER and not self.closed:
            self._room.clear()

    async def drain(self) -> None:
        """Return at once, or after the peer has taken enough of what was too much."""
        await self._room.wait()

    async def flushed(self, timeout: float) -> None:
        """Return when everything is handed over, or cannot be, or after `timeout` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._empty.wait()

    def close(self) -> None:
        """Drop what is not handed over yet, and what comes later."""
        self.closed = True
        self._frames.clear()
        self._waiting = 0
        if self._task is not None:
            self._task.cancel()
        self._room.set()
        self._empty.set()

    async def _run(self) -> None:
        try:
            while self._frames:
                frame = self._frames.popleft()
                await self._send(frame)
                self._waiting -= len(frame)
                if self._waiting <= LOW_WATER:
                    self._room.set()
        except (OSError, RuntimeError):  # aiohttp's and asyncio's words for a connection that takes no more
            self._task = None
            self.close()
        finally:
            self._busy = False
            self._task = None
            self._empty.set()
