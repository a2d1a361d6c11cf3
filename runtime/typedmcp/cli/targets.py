"""From the TARGET of a command line to a conversation with the server it names."""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from typedmcp.cli.loading import Spec, load_server, quiet_output, read_spec
from typedmcp.cli.output import Failure, Misuse, Unreachable, printable, show_json, show_text

if TYPE_CHECKING:
    from typedmcp.client.client import MCPClient
    from typedmcp.core.errors import TypedMCPError

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_TIMEOUT = 30.0
_PROBE = 5.0

TARGET_HELP = """\b
TARGET is one argument:
  server.py, server.py:NAME     a file with an App or MCPServer in it
  package.module[:NAME]         a module with one
  "python server.py --flag"     a command that serves on stdio, in quotes;
                                "env KEY=value ..." sets variables for it
  http://127.0.0.1:8000/mcp     an address: http, https, ws or wss
"""
_SCHEMES = ("http", "https", "ws", "wss")


class Target(NamedTuple):
    """Whom to talk to: a server loaded into this process, a command, or an address."""

    spec: Spec | None
    command: tuple[str, ...]
    address: str | None = None


class Connection(NamedTuple):
    """How to talk: the revision, if one is pinned, and the seconds each request may take."""

    protocol: str | None
    timeout: float


def connection_options(command: Command) -> Command:
    """The options of every command that talks to a server."""
    protocol = click.option("--protocol", metavar="VERSION", help="Speak this revision of the protocol and no other.")
    timeout = click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=DEFAULT_TIMEOUT,
        show_default=True,
        metavar="SECONDS",
        help="How long each request may take.",
    )
    return protocol(timeout(command))


def read_target(words: Sequence[str]) -> Target:
    """The target that one argument, or the words of a command, stands for.

    Raises:
        Misuse: it is neither a file, nor a module, nor a command, nor an address.
    """
    if len(words) > 1:
        return Target(None, tuple(words))
    text = words[0]
    scheme, is_address, _ = text.partition(" ")[0].partition("://")
    if is_address:
        if scheme.lower() not in _SCHEMES:
            raise Misuse(f"{text} is no address to connect to; {', '.join(_SCHEMES)} are known.")
        return Target(None, (), text)
    spec = read_spec(text)
    if spec is not None and (spec.is_file or spec.name or _is_module(spec.place)):
        return Target(spec, ())
    try:
        command = shlex.split(text, posix=os.name != "nt")
    except ValueError as error:
        raise Misuse(f"{text!r} cannot be split into words: {error}.") from None
    if not command:
        raise Misuse("TARGET is empty; name a file, a module, or a command in quotes.")
    if len(command) == 1 and shutil.which(command[0]) is None:
        folder = os.path.isdir(command[0])
        kinds = "a folder, not a file with a server" if folder else "no Python file, no module and no program"
        raise Misuse(f"{text!r} is {kinds}; name server.py, package.module, or a command in quotes.")
    return Target(None, tuple(command))


def _is_module(name: str) -> bool:
    """Whether the current folder or ``sys.path`` has a module; nothing of it runs."""
    import importlib.machinery
    import sys

    top = name.partition(".")[0]
    return importlib.machinery.PathFinder.find_spec(top, [os.getcwd(), *sys.path]) is not None


def check_protocol(version: str | None) -> None:
    """Refuse a revision that does not exist before anything is started."""
    from typedmcp_wire.revisions import REVISIONS

    if version is not None and version not in REVISIONS:
        close = difflib.get_close_matches(version, REVISIONS, 1)
        advice = f"did you mean {close[0]}? Known are" if close else "known are"
        raise Misuse(f"{version!r} is no revision of the protocol; {advice} {', '.join(REVISIONS)}.")


def converse(target: Target, connection: Connection, work: Callable[[MCPClient], Awaitable[T]]) -> T:
    """Connect, do the work, disconnect; what a server in this process prints goes to standard error meanwhile.

    Raises:
        Failure: any of that went wrong.
    """
    import asyncio

    from typedmcp.core.errors import TypedMCPError

    check_protocol(connection.protocol)
    server = load_server(target.spec) if target.spec is not None else target.address or list(target.command)
    try:
        with nullcontext() if target.spec is None else quiet_output():
            return asyncio.run(_interruptible(_converse(server, connection, work)))
    except TypedMCPError as error:
        raise failure_of(error) from error


async def _interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Do the work until Ctrl-C.

    asyncio.run alone can miss it: a signal that another thread receives, or that comes just before the loop waits,
    does not wake the loop.  A handler that belongs to the loop does.

    Raises:
        click.Abort: Ctrl-C was pressed.
    """
    import asyncio
    import signal

    task = asyncio.current_task()
    assert task is not None
    presses = 0

    def interrupt() -> None:
        nonlocal presses
        presses += 1
        task.cancel()

    # Ignored is how a shell starts what runs in the background: then it stays so.  Windows has no such handlers.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
    try:
        return await work
    except asyncio.CancelledError:
        if presses:
            raise click.Abort from None
        raise


async def _converse(server: Any, connection: Connection, work: Callable[[MCPClient], Awaitable[T]]) -> T:
    from typedmcp.core.errors import PeerError
    from typedmcp.targets import connect

    timeout = connection.timeout
    connecting = connect(
        server,
        version=connection.protocol,
        timeout=timeout,
        probe_timeout=min(timeout, _PROBE),
        on={"error": _warn},
    )
    try:
        client = await connecting
    except PeerError as error:
        raise Unreachable(f"The server refused to connect: {error}.") from error
    try:
        return await work(client)
    finally:
        await client.disconnect()


def _warn(error: BaseException) -> None:
    """Say what the server does wrong beside its answers, such as printing to standard output."""
    from typedmcp.core.errors import PeerError

    # Whatever else goes wrong ends the command, and is told then.
    if isinstance(error, PeerError):
        show_text(f"Warning: {printable(str(error))}", err=True)


def failure_of(error: TypedMCPError) -> Failure:
    """How a command ends because of an error of the library."""
    from typedmcp.core.errors import InvalidResult, MCPError, RequestTimeout, TransportError, UsageError

    text = _sentence(str(error))
    if isinstance(error, UsageError):
        return Misuse(text)
    if isinstance(error, MCPError):
        show_json_data(error)
        return Failure(f"The server refused: {text}")
    if isinstance(error, RequestTimeout):
        return Unreachable(f"No answer: {error.method} took longer than {error.seconds:g} s; see --timeout.")
    if isinstance(error, TransportError):
        return Unreachable(f"{text}\nIs the server running?  Run its command by itself to see what it says.")
    if isinstance(error, InvalidResult):
        each = "".join(f"\n  {entry.message}" for entry in error.violations)
        return Unreachable(f"The server broke the protocol: {text}{each}")
    return Unreachable(text)


def show_json_data(error: Any) -> None:
    """Show what a JSON-RPC error says beyond its sentence, on standard error."""
    from msgspec import UNSET

    if error.data is not UNSET and error.data is not None:
        show_json(error.data, err=True)


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?", "!")) else f"{text}."
