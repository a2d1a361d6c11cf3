"""Where bytes go out: lines collected and written once per turn of the loop (or every 64 KiB), whatever they go to.

Rules:
- :meth:`Outbox.write` never blocks and never fails; a line is its text and exactly one LF.
- What the peer does not take is kept.  Above :data:`HIGH_WATER` bytes the outbox says so to its owner, who reads no
  more requests, and ``drain`` waits; below :data:`LOW_WATER` it says so again.  What is already on its way comes on
  top: the bound is the high-water mark and the answers of the requests in flight.
- When the way out breaks, ``on_lost`` is called once and further lines are dropped.
- Pipes, sockets and terminals are written without blocking; other descriptors by a thread; file objects without a
  descriptor directly, as such objects are memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import BinaryIO, Final, TypeAlias

from typedmcp.transports.stdio.source import CHUNK, descriptor, private_copy, release, unblock, watchable

HIGH_WATER: Final = 1024 * 1024
LOW_WATER: Final = 256 * 1024

OnPressure: TypeAlias = Callable[[bool], None]
OnLost: TypeAlias = Callable[[Exception], None]
Output: TypeAlias = int | BinaryIO | asyncio.StreamWriter


class Outbox:
    """Lines to be written.  A subclass hands over bytes in :meth:`_put` and reports them by :meth:`_sent`.

    Args:
        on_pressure: Called with True when too much is waiting, with False when that is over.
        on_lost: Called with the reason when the way out breaks.
    """

    def __init__(self, on_pressure: OnPressure, on_lost: OnLost) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_pressure = on_pressure
        self._on_lost = on_lost
        self._lines: list[bytes] = []
        self._collected = 0
        self._scheduled = False
        self._waiting = 0
        self._pressed = False
        self._waiters: list[tuple[asyncio.Future[None], int]] = []
        self.closed = False

    def write(self, line: bytes) -> None:
        """Add a line."""
        self._lines.append(line)
        self._collected += len(line)
        if self._collected > CHUNK:
            # Or one who sends in a loop, and so never lets the loop turn, would collect without bound.
            self.flush()
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.flush)

    def hold(self) -> None:
        """Keep the lines of this turn until :meth:`flush` is called, which spares a turn."""
        self._scheduled = True

    def flush(self) -> None:
        """Hand over what has been collected."""
        self._scheduled = False
        if not self._lines:
            return
        self._lines.append(b"")
        data = b"\n".join(self._lines)
        self._lines.clear()
        self._collected = 0
        if self.closed:
            return
        self._waiting += len(data)
        self._put(data)
        if self._waiting > HIGH_WATER and not self._pressed and not self.closed:
            self._pressed = True
            self._on_pressure(True)

    async def drain(self) -> None:
        """Return at once, or after the peer has taken enough of what was too much."""
        if self._pressed:
            await self._until(LOW_WATER)

    async def flushed(self, timeout: float) -> None:
        """Return when everything is written, or it cannot be, or after `timeout` seconds."""
        self.flush()
        if self._waiting and not self.closed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._until(0)

    def close(self) -> None:
        """Release the way out; what is not written yet is dropped."""
        if not self.closed:
            self.closed = True
            self._release()
            self._wake()

    async def _until(self, size: int) -> None:
        entry: tuple[asyncio.Future[None], int] = (self._loop.create_future(), size)
        self._waiters.append(entry)
        try:
            await entry[0]
        finally:
            self._waiters.remove(entry)

    def _sent(self, size: int) -> None:
        """So many more bytes are out."""
        self._waiting -= size
        if self._pressed and self._waiting <= LOW_WATER:
            self._pressed = False
            self._on_pressure(False)
        if self._waiters:
            self._wake()

    def _wake(self) -> None:
        for waiter, size in self._waiters:
            if not waiter.done() and (self.closed or self._waiting <= size):
                waiter.set_result(None)

    def _lost(self, error: Exception) -> None:
        if not self.closed:
            self.close()
            self._on_lost(error)

    def _put(self, data: bytes) -> None:
        raise NotImplementedError

    def _release(self) -> None:
        """Let go of what is held."""


class WatchedOutbox(Outbox):
    """A descriptor written without blocking.  It is closed with the outbox."""

    def __init__(self, fd: int, on_pressure: OnPressure, on_lost: OnLost) -> None:
        super().__init__(on_pressure, on_lost)
        self._fd = fd
        self._left: deque[memoryview] = deque()
        self._blocking = unblock(fd)

    def _put(self, data: bytes) -> None:
        if self._left:
            self._left.append(memoryview(data))
            return
        size = self._write(data)
        if self.closed or size == len(data):
            return
        self._left.append(memoryview(data)[size:])
        self._loop.add_writer(self._fd, self._writable)

    def _write(self, data: bytes | memoryview) -> int:
        try:
            size = os.write(self._fd, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self._lost(error)
            return 0
        self._sent(size)
        return size

    def _writable(self) -> None:
        head = self._left[0]
        size = self._write(head)
        if self.closed:
            return
        if size < len(head):
            self._left[0] = head[size:]
            return
        self._left.popleft()
        if not self._left:
            self._loop.remove_writer(self._fd)

    def _release(self) -> None:
        self._loop.remove_writer(self._fd)
        self._left.clear()
        release(self._fd, self._blocking)


class ThreadOutbox(Outbox):
    """A descriptor that the loop cannot watch, written by a thread.  It is closed when the thread has ended."""

    def __init__(self, fd: int, on_pressure: OnPressure, on_lost: OnLost) -> None:
        super().__init__(on_pressure, on_lost)
        self._fd = fd
        self._jobs: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="typedmcp-writer", daemon=True)
        self._thread.start()

    def _put(self, data: bytes) -> None:
        self._jobs.put(data)

    def _run(self) -> None:
        try:
            while (data := self._jobs.get()) is not None and not self.closed:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._fd, view) :]
                self._loop.call_soon_threadsafe(self._sent, len(data))
        except OSError as error:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._lost, error)
        except RuntimeError:
            pass  # the loop is closed
        finally:
            os.close(self._fd)

    def _release(self) -> None:
        self._jobs.put(None)


class StreamOutbox(Outbox):
    """An asyncio stream.  Closing the outbox leaves the stream to its owner."""

    def __init__(self, writer: asyncio.StreamWriter, on_pressure: OnPressure, on_lost: OnLost) -> None:
        super().__init__(on_pressure, on_lost)
        self._writer = writer
        self._task: asyncio.Task[None] | None = None

    def _put(self, data: bytes) -> None:
        self._writer.write(data)
        if self._task is None:
            self._task = self._loop.create_task(self._watch())

    async def _watch(self) -> None:
        try:
            while self._waiting:
                size = self._waiting
                await self._writer.drain()
                self._sent(size)
        except OSError as error:
            self._lost(error)
        finally:
            self._task = None

    def _release(self) -> None:
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()


class FileOutbox(Outbox):
    """A file object without a descriptor."""

    def __init__(self, file: BinaryIO, on_pressure: OnPressure, on_lost: OnLost) -> None:
        super().__init__(on_pressure, on_lost)
        self._file = file

    def _put(self, data: bytes) -> None:
        try:
            self._file.write(data)
            self._file.flush()
        except (OSError, ValueError) as error:
            self._lost(error)
        else:
            self._sent(len(data))


def open_outbox(given: Output, on_pressure: OnPressure, on_lost: OnLost) -> Outbox:
    """The outbox that suits what is given."""
    if isinstance(given, asyncio.StreamWriter):
        return StreamOutbox(given, on_pressure, on_lost)
    fd = descriptor(given)
    if fd is None:
        assert not isinstance(given, int)
        return FileOutbox(given, on_pressure, on_lost)
    if not isinstance(given, int):
        given.flush()
    fd = private_copy(fd)
    return (WatchedOutbox if watchable(fd) else ThreadOutbox)(fd, on_pressure, on_lost)
