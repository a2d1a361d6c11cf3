"""One run of a server process: its pipes, its exit, and its end.

Rules:
- On POSIX the child leads a session, and so a process group, of its own: what it starts belongs to it and ends with it.
- The end is: close its input, wait, SIGTERM to the group, wait, SIGKILL to the group.  The child counts as gone when it
  has exited and nobody holds its output any more; a process that outlives it and holds the pipe is waited for likewise.
- Whatever of the group is left then is killed while the child is still unreaped where the system allows it (Linux), so
  that the number cannot belong to somebody else by then.  The child is reaped always.
- A child that has not been ended dies with its :class:`Child` object, at the latest when the interpreter ends.
- Windows has no groups of this kind: only the child itself is terminated there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Final, NamedTuple, TypeVar

from typedmcp.transports.stdio.outbox import OnPressure, Outbox, open_outbox
from typedmcp.transports.stdio.source import OnData, Source, open_source

_T = TypeVar("_T")
KILL: Final = 9
_REAPING: Final = 5.0
"""How long a killed process may take to go, in seconds."""

STDERR_TAIL: Final = 64 * 1024
"""How much of the end of a captured standard error is kept, in bytes."""


class Command(NamedTuple):
    """What to run and how."""

    command: Sequence[str]
    env: Mapping[str, str] | None
    cwd: str | os.PathLike[str] | None
    stderr: int | IO[bytes] | IO[str] | None
    """As in :class:`subprocess.Popen`; PIPE means captured."""


def spawn(command: Command) -> tuple[subprocess.Popen[bytes], int, int, int | None]:
    """The process and our ends of its input, output and, when captured, standard error.  Raises OSError, ValueError."""
    fds: list[int] = []
    try:
        fds += os.pipe()
        fds += os.pipe()
        if command.stderr == subprocess.PIPE:
            fds += os.pipe()
        process = _popen(command, fds)
    except BaseException:
        for fd in fds:
            os.close(fd)
        raise
    for theirs in (fds[0], fds[3], *fds[5:]):
        os.close(theirs)
    return process, fds[1], fds[2], fds[4] if len(fds) > 4 else None


def _popen(command: Command, fds: list[int]) -> subprocess.Popen[bytes]:
    stderr = fds[5] if len(fds) > 4 else command.stderr
    if sys.platform == "win32":
        return subprocess.Popen(
            command.command, stdin=fds[0], stdout=fds[3], stderr=stderr, env=command.env, cwd=command.cwd,
            creationflags=subprocess.CREATE_NEW_PROCESS_GROUP,
        )  # fmt: skip
    return subprocess.Popen(
        command.command, stdin=fds[0], stdout=fds[3], stderr=stderr, env=command.env, cwd=command.cwd,
        start_new_session=True,
    )  # fmt: skip


class Child:
    """A running server process.

    Args:
        command: What to run.
        on_data: Called with each chunk of its output.
        on_pressure: Called when its input takes no more for now, and when it does again.

    Attributes:
        outbox: The lines to its input.
        returncode: Its exit code once it has exited; negative: the signal that ended it.
        troubled: Set when its input, its output or itself has ended.
        released: Set when it has exited and its output has ended.
    """

    def __init__(self, command: Command, on_data: OnData, on_pressure: OnPressure) -> None:
        process, to_input, from_output, from_error = spawn(command)
        self._process = process
        self._last_resort = weakref.finalize(self, _kill, process)
        self._loop = asyncio.get_running_loop()
        self.returncode: int | None = None
        self.troubled = asyncio.Event()
        self.released = asyncio.Event()
        self._exited = False
        self._ended = False
        self._tail = bytearray()
        self.outbox: Outbox = _adopt(to_input, lambda fd: open_outbox(fd, on_pressure, self._input_lost))
        self._sources: list[Source] = [_adopt(from_output, lambda fd: open_source(fd, on_data, self._output_ended))]
        if from_error is not None:
            self._sources.append(_adopt(from_error, lambda fd: open_source(fd, self._stderr_data, lambda _: None)))
        for source in self._sources:
            source.resume()
        self._unwatch = watch_exit(process, self._has_exited)

    @property
    def stderr(self) -> str:
        """The end of its standard error, when that is captured."""
        return self._tail[-STDERR_TAIL:].decode("utf-8", "backslashreplace")

    async def wait_released(self, timeout: float) -> bool:
        """Whether it has exited and let go of its output within `timeout` seconds."""
        if not self.released.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self.released.wait()
        return self.released.is_set()

    async def end(self, patience: tuple[float, float]) -> None:
        """End it and all it has started: politely at first, for so many seconds each, then by force."""
        began = self._loop.time()
        await self.outbox.flushed(patience[0])
        self.outbox.close()
        if await self.wait_released(max(0.0, began + patience[0] - self._loop.time())):
            return
        self._terminate()
        if not await self.wait_released(patience[1]):
            _signal_group(self._process, KILL)
            await self.wait_released(_REAPING)

    def dispose(self) -> None:
        """Kill what is left, reap the child, close the pipes.  At once; after :meth:`end` nothing is waited for."""
        self.outbox.close()
        for source in self._sources:
            source.close()
        self._unwatch()
        self._last_resort()
        self.returncode = self._process.returncode if self.returncode is None else self.returncode

    def _terminate(self) -> None:
        if sys.platform == "win32":
            self._process.terminate()
        else:
            _signal_group(self._process, signal.SIGTERM)

    # -- what happens to it ----------------------------------------------------------------------------------------

    def _has_exited(self) -> None:
        self._exited = True
        self.returncode = _exit_code(self._process)
        self._changed()

    def _output_ended(self, error: Exception | None) -> None:
        self._ended = True
        self._changed()

    def _input_lost(self, error: Exception) -> None:
        self.troubled.set()

    def _changed(self) -> None:
        if self._exited and self._ended:
            self.released.set()
        self.troubled.set()

    def _stderr_data(self, chunk: bytes) -> None:
        self._tail += chunk
        if len(self._tail) > 2 * STDERR_TAIL:
            del self._tail[:-STDERR_TAIL]


def _adopt(fd: int, open_as: Callable[[int], _T]) -> _T:
    """What `open_as` makes of a copy of `fd`, which is closed."""
    try:
        return open_as(fd)
    finally:
        os.close(fd)


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    if sys.platform == "win32":
        process.kill()
    else:
        # macOS answers EPERM for a group of which only the dead are left.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The last step, and the last resort."""
    _signal_group(process, KILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_REAPING)


def watch_exit(process: subprocess.Popen[bytes], on_exit: Callable[[], None]) -> Callable[[], None]:
    """Have `on_exit` called in the running loop when `process` has exited; the function returned calls that off."""
    loop = asyncio.get_running_loop()
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return _watch_pidfd(loop, os.pidfd_open(process.pid), on_exit)

    def wait() -> None:
        with contextlib.suppress(ChildProcessError):
            if sys.platform == "linux":
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            else:
                process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(on_exit)

    threading.Thread(target=wait, name="typedmcp-child", daemon=True).start()
    return lambda: None


def _watch_pidfd(loop: asyncio.AbstractEventLoop, fd: int, on_exit: Callable[[], None]) -> Callable[[], None]:
    held = [fd]

    def release() -> None:
        while held:
            loop.remove_reader(held[-1])
            os.close(held.pop())

    def ready() -> None:
        release()
        on_exit()

    loop.add_reader(fd, ready)
    return release


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    """The exit code of a process that has exited, which is left unreaped where that can be."""
    if sys.platform == "linux":
        with contextlib.suppress(ChildProcessError):
            found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            if found is not None:
                return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
    return process.poll()
