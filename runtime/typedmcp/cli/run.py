"""``typedmcp run``: serve an App on stdio."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from typedmcp.cli.output import Misuse

if TYPE_CHECKING:
    from typedmcp.core.transport import MCPServerInterface


@click.command(
    "run",
    short_help="Serve an App on standard input and output.",
    epilog="""\b
Examples:
  typedmcp run server.py               the App in a file: `app`, or the only one
  typedmcp run server.py:admin         the App called `admin`
  typedmcp run server.py:make_app      what a function returns
  typedmcp run package.module          a module, from here or installed

\b
In the settings of an MCP client:
  {"command": "typedmcp", "args": ["run", "/full/path/server.py"]}

Only stdio is supported so far.
""",
)
@click.argument("spec", metavar="MODULE_OR_FILE[:NAME]")
def command(spec: str) -> None:
    """Serve the App (or MCPServer) of a Python file or module on standard input and output.

    Serving ends when the client closes the input, at Ctrl-C, and at SIGTERM.  Standard output carries messages
    only; whatever the module prints goes to standard error.
    """
    from typedmcp.cli.loading import load_server, read_spec

    found = read_spec(spec)
    if found is None:
        raise Misuse(_no_spec(spec))
    _serve(load_server(found))


def _no_spec(spec: str) -> str:
    if "://" in spec:
        return f"{spec} is an address; `run` serves a Python file or module of yours."
    if " " in spec:
        return f"{spec!r} is a command; `run` serves a Python file or module. To use a command: typedmcp list {spec!r}"
    return f"{spec!r} names neither a Python file (server.py) nor a module (package.module)."


def _serve(server: MCPServerInterface) -> None:
    import signal

    from typedmcp.cli.program import INTERRUPTED
    from typedmcp.cli.targets import failure_of
    from typedmcp.core.errors import TypedMCPError
    from typedmcp.serving import run

    serve: Callable[..., Any] = run
    try:
        ended_by = serve(server)
    except TypedMCPError as error:
        raise failure_of(error) from error
    # SIGTERM is how supervisors and clients end a server: that is a success.
    if ended_by == signal.SIGINT:
        raise click.exceptions.Exit(INTERRUPTED)
