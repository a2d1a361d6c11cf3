"""``typedmcp run``: serve an App on stdio, HTTP or WebSocket."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from typedmcp.cli.output import Misuse

if TYPE_CHECKING:
    from typedmcp.core.transport import MCPServerInterface


_OPTION = {"origins": "origin", "hosts": "allow-host"}


@click.command(
    "run",
    short_help="Serve an App on stdio, HTTP or WebSocket.",
    epilog="""\b
Examples:
  typedmcp run server.py               the App in a file: `app`, or the only one
  typedmcp run server.py:admin         the App called `admin`
  typedmcp run server.py:make_app      what a function returns
  typedmcp run package.module          a module, from here or installed
  typedmcp run server.py --http        at http://127.0.0.1:8000/mcp
  typedmcp run server.py --ws --port 9000 --path /tools

\b
In the settings of an MCP client:
  {"command": "typedmcp", "args": ["run", "/full/path/server.py"]}
  {"url": "http://127.0.0.1:8000/mcp"}
""",
)
@click.argument("spec", metavar="MODULE_OR_FILE[:NAME]")
@click.option("--http", "transport", flag_value="http", help="Serve Streamable HTTP.")
@click.option("--ws", "transport", flag_value="ws", help="Serve WebSocket.")
@click.option("--host", help="The address to bind.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="The port; 0 takes a free one.  [default: 8000]")
@click.option("--path", help="The path of the endpoint.  [default: /mcp]")
@click.option("--origin", "origins", multiple=True, metavar="URL", help="Web pages that may call; may be repeated.")
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="Public names of this server; may be repeated."
)
def command(spec: str, transport: str | None, **given: Any) -> None:
    """Serve the App (or MCPServer) of a Python file or module, on standard input and output unless told otherwise.

    Serving ends at Ctrl-C, at SIGTERM and, on standard input, when the client closes it.  There, standard output
    carries messages only; whatever the module prints goes to standard error.
    """
    from typedmcp.cli.loading import load_server, read_spec

    options = {name: value for name, value in given.items() if value not in (None, ())}
    if transport is None and options:
        raise Misuse(f"--{_OPTION.get(min(options), min(options))} needs --http or --ws; stdio has no address.")
    path = options.get("path", "/")
    if not path.startswith("/"):
        raise Misuse(f"--path begins with a slash: --path /{path}")
    found = read_spec(spec)
    if found is None:
        raise Misuse(_no_spec(spec))
    _serve(load_server(found), transport or "stdio", options)


def _no_spec(spec: str) -> str:
    if "://" in spec:
        return f"{spec} is an address; `run` serves a Python file or module of yours."
    if " " in spec:
        return f"{spec!r} is a command; `run` serves a Python file or module. To use a command: typedmcp list {spec!r}"
    return f"{spec!r} names neither a Python file (server.py) nor a module (package.module)."


def _serve(server: MCPServerInterface, transport: str, options: dict[str, Any]) -> None:
    import signal

    from typedmcp.cli.program import INTERRUPTED
    from typedmcp.cli.targets import failure_of
    from typedmcp.core.errors import TypedMCPError
    from typedmcp.serving import run

    serve: Callable[..., Any] = run
    try:
        ended_by = serve(server, transport, **options)
    except TypedMCPError as error:
        raise failure_of(error) from error
    # SIGTERM is how supervisors and clients end a server: that is a success.
    if ended_by == signal.SIGINT:
        raise click.exceptions.Exit(INTERRUPTED)
