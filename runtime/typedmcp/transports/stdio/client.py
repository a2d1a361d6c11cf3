"""The client's side of stdio: a server as a child process.

Rules:
- One message is one line of UTF-8, ended by exactly one LF; a sequence is several lines.  Nothing else goes to the
  child.
- A line of the child that is no message is reported as ``error``, with its number and its first bytes; the next one is
  read as if nothing had been.
- The environment: inherited when `env` is left out; otherwise `env` is all of it (``env_mode="replace"``), or is put
  over the inherited one ("merge") or over the few variables a program needs ("minimal").
- Standard error is the parent's own, unless told otherwise; what comes on it is never a failure.
- ``close`` closes the child's input, waits, ends the child and all it has started by SIGTERM, waits, and by SIGKILL.
  It may be called from any task, more than once, and be cancelled: the end goes on in the background.
- A child that ends by itself gives ``error`` with :class:`~typedmcp.core.errors.ProcessExited`, then ``close``; what it
  wrote before is delivered first.  ``start`` may then be called again: that runs the command anew.
- A child never outlives its event loop: it is killed when the loop ends its tasks (as ``asyncio.run`` does), when the
  transport is forgotten, and when the interpreter ends.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO, Final, Literal, TypeAlias

from typedmcp.core.emitter import Emitter
from typedmcp.core.errors import (
    ConnectionClosed,
    MessageError,
    NotConnected,
    ProcessExited,
    TransportError,
    UsageError,
)
from typedmcp.core.jsonrpc import JSONRPCMessage, decode_response
from typedmcp.transports.lines import DEFAULT_MAX_LINE_BYTES, BadLine, Line, LineFramer, encode_lines
from typedmcp.transports.stdio.child import Child, Command

DEFAULT_SHUTDOWN_TIMEOUTS: Final = (2.0, 2.0)
"""Seconds from closing the child's input to SIGTERM, and from there to SIGKILL."""

_POSIX = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
_WINDOWS = ("APPDATA", "LOCALAPPDATA", "PATH", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERPROFILE")
MINIMAL_ENVIRONMENT: Final = _WINDOWS if os.name == "nt" else _POSIX
"""The variables that ``env_mode="minimal"`` hands down."""

_STDERR: Final[dict[str, int]] = {"capture": subprocess.PIPE, "null": subprocess.DEVNULL}

_LAST_WORDS = 0.5
"""How long the exit of a child and the end of its output may be apart, in seconds."""

EnvMode: TypeAlias = Literal["replace", "merge", "minimal"]
Stderr: TypeAlias = Literal["capture", "null"] | int | IO[bytes] | IO[str] | None


class StdioClientTransport:
    """A server process as a transport.

    Events of `emitter`: ``message``, ``error`` and ``close``.

    Args:
        command: The program, by path or by a name found on PATH.
        args: Its arguments.
        env: Its environment; see the module's rules.
        cwd: The folder it starts in.
        env_mode: What `env` does with the inherited environment.
        stderr: None leaves the child's standard error with ours; "capture" keeps its last 64 KiB for the error that
            tells of an early exit; "null" drops it; a file or a descriptor receives it.
        limit: The longest line taken, in bytes.
        shutdown_timeouts: Seconds to wait after closing its input, and after SIGTERM.
    """

    def __init__(
        self,
        command: str | os.PathLike[str],
        args: Sequence[str | os.PathLike[str]] = (),
        env: Mapping[str, str] | None = None,
        *,
        cwd: str | os.PathLike[str] | None = None,
        env_mode: EnvMode = "replace",
        stderr: Stderr = None,
        limit: int = DEFAULT_MAX_LINE_BYTES,
        shutdown_timeouts: tuple[float, float] = DEFAULT_SHUTDOWN_TIMEOUTS,
    ) -> None:
        _refuse_lists(command, args)
        self.emitter = Emitter()
        words = [os.fspath(command), *(os.fspath(word) for word in args)]
        self._command = Command(words, _environment(env, env_mode), cwd, _stderr(stderr))
        self._patience = shutdown_timeouts
        self._limit = limit
        self._framer = LineFramer(limit)
        self._child: Child | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._asked = False
        self._announced = True

    @property
    def session(self) -> str | None:
        """None: a pipe has no session ids."""
        return None

    async def start(self) -> None:
        """Run the command.

        Raises:
            UsageError: it runs already.
            TransportError: it cannot be run; the text says what to do about it.
        """
        if self._supervisor is not None and not self._supervisor.done():
            raise UsageError("the server process runs already; close() it first")
        self._framer = LineFramer(self._limit)
        try:
            child = Child(self._command, self._data, lambda _: None)
        except (OSError, ValueError) as error:
            raise TransportError(_advice(self._command, error)) from error
        self._child = child
        self._asked = self._announced = False
        self._supervisor = asyncio.get_running_loop().create_task(self._supervise(child))

    async def send(self, message: JSONRPCMessage | Sequence[JSONRPCMessage]) -> None:
        """Write one message, or several, each as a line; wait while the child leaves more than 1 MiB unread.

        Raises:
            NotConnected: the transport has not been started.
            ConnectionClosed: the child is gone.
        """
        child = self._child
        if child is None:
            raise NotConnected("call start() before send()")
        lines = encode_lines(message)
        if self._asked or self._announced or child.outbox.closed:
            raise ConnectionClosed("the server process is gone; start() runs it anew")
        for line in lines:
            child.outbox.write(line)
        await child.outbox.drain()
        if child.outbox.closed:
            raise ConnectionClosed("the server process went away while the message was written")

    async def close(self) -> None:
        """End the child and what it has started, and emit ``close``; a second call waits for the first."""
        if self._supervisor is None or self._child is None:
            return
        self._asked = True
        self._child.troubled.set()
        await asyncio.shield(self._supervisor)

    # -- the child's life ------------------------------------------------------------------------------------------

    async def _supervise(self, child: Child) -> None:
        """From the start of a child to its end, whoever brings that about."""
        try:
            await child.troubled.wait()
            if not self._asked:
                await child.wait_released(_LAST_WORDS)
            if not self._asked:
                self._announce(_exited(child))
            await child.end(self._patience)
        finally:
            # Cancelled means that the loop is ending: then there is no time for courtesy.
            child.dispose()
            self._announce()

    def _announce(self, error: Exception | None = None) -> None:
        """Emit ``close``, once, after an error if there is one."""
        if not self._announced:
            self._lines(self._framer.eof())
            self._announced = True
            if error is not None:
                self.emitter.emit("error", error)
            self.emitter.emit("close")

    def _data(self, chunk: bytes) -> None:
        self._lines(self._framer.feed(chunk))

    def _lines(self, lines: list[Line]) -> None:
        if self._announced:
            return
        for index, line in enumerate(lines):
            try:
                if isinstance(line, MessageError):
                    raise line
                message = decode_response(line)
            except MessageError as error:
                self.emitter.emit("error", BadLine(error, self._framer.line_number(index)))
            else:
                self.emitter.emit("message", message)


def create_stdio_client_transport(
    command: str | os.PathLike[str],
    args: Sequence[str | os.PathLike[str]] = (),
    env: Mapping[str, str] | None = None,
    *,
    cwd: str | os.PathLike[str] | None = None,
    env_mode: EnvMode = "replace",
    stderr: Stderr = None,
    limit: int = DEFAULT_MAX_LINE_BYTES,
    shutdown_timeouts: tuple[float, float] = DEFAULT_SHUTDOWN_TIMEOUTS,
) -> StdioClientTransport:
    """A :class:`StdioClientTransport`, whose arguments these are."""
    return StdioClientTransport(
        command, args, env, cwd=cwd, env_mode=env_mode, stderr=stderr, limit=limit, shutdown_timeouts=shutdown_timeouts
    )


def _refuse_lists(command: object, args: object) -> None:
    """The mistakes that untyped callers make most: a whole command line, and one argument without its list."""
    if not isinstance(command, (str, os.PathLike)) or isinstance(args, (str, bytes)):
        raise UsageError("command is one program and args a list: StdioClientTransport('python', ['server.py'])")


def _stderr(given: Stderr) -> int | IO[bytes] | IO[str] | None:
    if not isinstance(given, str):
        return given
    if given not in _STDERR:
        raise UsageError(f"stderr is None, 'capture', 'null', a file or a descriptor, not {given!r}")
    return _STDERR[given]


def _environment(env: Mapping[str, str] | None, mode: str) -> dict[str, str] | None:
    """The whole environment of a child; None to inherit at the time it starts."""
    if mode == "replace":
        return None if env is None else dict(env)
    if mode == "merge":
        return {**os.environ, **(env or {})}
    if mode == "minimal":
        return {**{name: os.environ[name] for name in MINIMAL_ENVIRONMENT if name in os.environ}, **(env or {})}
    raise UsageError(f"env_mode is 'replace', 'merge' or 'minimal', not {mode!r}")


def _exited(child: Child) -> TransportError:
    if child.returncode is None:
        return ProcessExited("the server process closed its end of the pipes and is being ended", None, child.stderr)
    how = f"was ended by signal {-child.returncode}" if child.returncode < 0 else f"exited with code {child.returncode}"
    said = child.stderr.rstrip().rpartition("\n")[2]
    text = f"the server process {how}" + (f"; it last said: {said}" if said else "")
    return ProcessExited(text, child.returncode, child.stderr)


def _advice(command: Command, error: OSError | ValueError) -> str:
    """Why a command cannot be run and what to do about it."""
    program = command.command[0]
    if isinstance(error, FileNotFoundError) and command.cwd is not None and not os.path.isdir(command.cwd):
        return f"cannot run {program!r}: there is no folder {os.fspath(command.cwd)!r}; correct cwd="
    if isinstance(error, FileNotFoundError):
        path = "" if command.env is None or "PATH" in command.env else "; env= replaces PATH, env_mode='merge' keeps it"
        return f"cannot run {program!r}: there is no such program; give its full path or install it{path}"
    if isinstance(error, PermissionError):
        return f"cannot run {program!r}: it is not executable; run it by its interpreter, or chmod +x it"
    return f"cannot run {program!r}: {error}"
