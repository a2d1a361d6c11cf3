"""Where bytes come in: descriptors, file objects and asyncio streams behind one small interface.

Rules:
- A source reads only what it is asked to: it begins paused, and :meth:`Source.pause` stops it after the chunk in hand.
- It gives chunks to `on_data` and, once, the end to `on_end`, both in the event loop and never after `close`.
- Pipes, sockets and terminals are watched by the loop.  What cannot be watched (regular files, the null device,
  anything on Windows) is read by a thread, one chunk ahead at most.
- A descriptor is duplicated; the copy is not inherited by child processes, and its blocking mode is given back.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO, Final, Protocol, TypeAlias

CHUNK: Final = 65536
"""How much is read at a time: what a pipe holds; more would be allocated in vain for every read."""

OnData: TypeAlias = Callable[[bytes], None]
OnEnd: TypeAlias = Callable[[Exception | None], None]
Input: TypeAlias = int | BinaryIO | asyncio.StreamReader


class Source(Protocol):
    """A way in."""

    def resume(self) -> None:
        """Read on; the first call begins."""

    def pause(self) -> None:
        """Read no more until :meth:`resume`."""

    def close(self) -> None:
        """Stop for good and release what is held."""


class WatchedSource:
    """A descriptor that the loop watches.  It is closed with the source."""

    def __init__(self, fd: int, on_data: OnData, on_end: OnEnd) -> None:
        self._fd = fd
        self._on_data = on_data
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._done = False
        self._blocking = unblock(fd)

    def resume(self) -> None:
        if not self._done:
            self._loop.add_reader(self._fd, self._readable)

    def pause(self) -> None:
        if not self._done:
            self._loop.remove_reader(self._fd)

    def close(self) -> None:
        if self._fd < 0:
            return
        self.pause()
        self._done = True
        release(self._fd, self._blocking)
        self._fd = -1

    def _readable(self) -> None:
        try:
            chunk = os.read(self._fd, CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(error)
            return
        if chunk:
            self._on_data(chunk)
        else:
            self._end(None)

    def _end(self, error: Exception | None) -> None:
        self.pause()
        self._done = True
        self._on_end(error)


class ThreadSource:
    """Something that can only be read by waiting for it."""

    def __init__(
        self, read: Callable[[int], bytes], on_data: OnData, on_end: OnEnd, release: Callable[[], None] | None = None
    ) -> None:
        self._read = read
        self._on_data = on_data
        self._on_end = on_end
        self._release = release
        self._loop = asyncio.get_running_loop()
        self._thread: threading.Thread | None = None
        # One permit goes back and forth: the thread reads the next chunk when the last one has been taken.
        self._permit = threading.Semaphore(0)
        self._owed = True
        self._paused = True
        self._closed = False

    def resume(self) -> None:
        self._paused = False
        if self._thread is None and not self._closed:
            # A daemon: nothing can wake a thread that waits for a terminal, and the process must be able to end.
            self._thread = threading.Thread(target=self._run, name="typedmcp-reader", daemon=True)
            self._thread.start()
        if self._owed:
            self._owed = False
            self._permit.release()

    def pause(self) -> None:
        self._paused = True

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            if self._thread is None and self._release is not None:
                self._release()
            self._permit.release()

    def _run(self) -> None:
        try:
            while self._permit.acquire() and not self._closed:
                try:
                    chunk, error = self._read(CHUNK), None
                except (OSError, ValueError) as failure:
                    chunk, error = b"", failure
                self._loop.call_soon_threadsafe(self._taken, chunk, error)
                if not chunk:
                    break
        except RuntimeError:
            pass  # the loop is closed: nobody is left to read for
        finally:
            if self._release is not None:
                self._release()

    def _taken(self, chunk: bytes, error: Exception | None) -> None:
        if self._closed:
            return
        if not chunk:
            self._on_end(error)
            return
        self._on_data(chunk)
        if self._paused:
            self._owed = True
        else:
            self._permit.release()


class StreamSource:
    """An asyncio stream."""

    def __init__(self, reader: asyncio.StreamReader, on_data: OnData, on_end: OnEnd) -> None:
        self._reader = reader
        self._on_data = on_data
        self._on_end = on_end
        self._go = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def resume(self) -> None:
        self._go.set()
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def pause(self) -> None:
        self._go.clear()

    def close(self) -> None:
        self._closed = True
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    async def _run(self) -> None:
        failure: Exception | None = None
        while not self._closed:
            await self._go.wait()
            try:
                chunk = await self._reader.read(CHUNK)
            except Exception as error:  # noqa: BLE001 - whatever the stream's other end set on it
                chunk, failure = b"", error
            if self._closed:
                return
            if not chunk:
                self._on_end(failure)
                return
            self._on_data(chunk)


def open_source(given: Input, on_data: OnData, on_end: OnEnd) -> Source:
    """The source that suits what is given.  Nothing may have been read from a file object before."""
    if isinstance(given, asyncio.StreamReader):
        return StreamSource(given, on_data, on_end)
    fd = descriptor(given)
    if fd is None:
        assert not isinstance(given, int)
        return ThreadSource(getattr(given, "read1", given.read), on_data, on_end)
    fd = private_copy(fd)
    if watchable(fd):
        return WatchedSource(fd, on_data, on_end)
    return ThreadSource(lambda size: os.read(fd, size), on_data, on_end, lambda: os.close(fd))


def descriptor(given: int | BinaryIO) -> int | None:
    """The file descriptor of a file object, None when it has none."""
    if isinstance(given, int):
        return given
    try:
        return given.fileno()
    except (AttributeError, OSError):  # io.UnsupportedOperation is an OSError
        return None


def watchable(fd: int) -> bool:
    """Whether the event loop can watch a descriptor."""
    if sys.platform == "win32":
        return False
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)


def unblock(fd: int) -> bool:
    """Make a descriptor non-blocking; whether it was blocking before."""
    if sys.platform == "win32":
        return False
    blocking = os.get_blocking(fd)
    os.set_blocking(fd, False)
    return blocking


def release(fd: int, blocking: bool) -> None:
    """Close a descriptor.  Its mode is shared with its copies, in other processes too: `blocking` puts it back."""
    if sys.platform != "win32" and blocking:
        with contextlib.suppress(OSError):
            os.set_blocking(fd, True)
    os.close(fd)


def private_copy(fd: int) -> int:
    """A copy of a descriptor that child processes do not inherit."""
    if sys.platform != "win32" and os.isatty(fd):
        # Input, output, error and the shell share one open terminal, and so its blocking mode: open it anew.
        with contextlib.suppress(OSError):
            return os.open(os.ttyname(fd), os.O_RDWR | os.O_NOCTTY)
    return os.dup(fd)
