"""The program itself: its list of commands, and how it ends.

Exit codes: 0 done; 1 the tool failed, or something judged is not valid; 2 the command line is wrong; 3 the server
cannot be started or reached; 130 Ctrl-C; 141 the reader of the output went away.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from typedmcp import __version__

COMMANDS = ("run", "list", "call", "validate", "schema")
"""Each is a module of this package whose `command` is the click command."""

INTERRUPTED = 130
"""128 + SIGINT, as shells have it."""
READER_GONE = 141
"""128 + SIGPIPE, likewise."""


class Program(click.Group):
    """A group whose commands are modules, loaded by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"typedmcp.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"There is no command {name!r}. {_advice(name)}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _forget_output()
            ctx.exit(READER_GONE)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """As click's own, but Ctrl-C ends with the exit code shells expect, and without a word."""
        run = partial(super().main, args, prog_name or "typedmcp", complete_var, False, **extra)
        if not standalone_mode:
            return run()
        try:
            code: Any = run()
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            sys.exit(INTERRUPTED)
        sys.exit(code if isinstance(code, int) else 0)


def _advice(name: str) -> str:
    close = difflib.get_close_matches(name, COMMANDS, 2, 0.5)
    if close:
        return f"Did you mean {' or '.join(close)}?"
    if name.endswith(".py") or os.path.exists(name):
        return f"To serve a file: typedmcp run {name}"
    return f"The commands are {', '.join(COMMANDS)}."


def _forget_output() -> None:
    """Let what is still buffered go nowhere: the interpreter flushes at exit and would complain."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  typedmcp run server.py                      serve the App in a file, on stdio
  typedmcp list server.py                     what it offers
  typedmcp call server.py add a=1 b=2         run one of its tools
  typedmcp call "npx -y some-server" search query=tea
  typedmcp validate conversation.jsonl        judge messages by the protocol
  typedmcp schema --definition Tool           the protocol as JSON Schema

\b
Exit codes: 0 done, 1 the tool failed or a message is not valid, 2 the command
line is wrong, 3 the server cannot be started or reached, 130 Ctrl-C.
""",
)
@click.version_option(__version__, "--version", "-V", prog_name="typedmcp", message="%(prog)s %(version)s")
def program() -> None:
    """Serve, call and check Model Context Protocol servers.

    A server is named by a Python file or module with an App in it, or by the command that starts it, in one
    pair of quotes.  `typedmcp COMMAND --help` tells more, with examples.
    """
