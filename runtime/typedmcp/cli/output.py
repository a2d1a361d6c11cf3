"""What commands print, and how they fail."""

from __future__ import annotations

import sys
from typing import Any

import click

WRONG = 1
"""The exit code when a tool failed, or what was judged is not valid."""
USAGE = 2
"""The exit code when the command line cannot be carried out as it stands."""


class Failure(click.ClickException):
    """The end of a command, with a message for the user: the server answered that it will not."""


class Misuse(Failure):
    """The command line cannot be carried out as it stands."""

    exit_code = USAGE


class Unreachable(Failure):
    """The server cannot be started, reached or understood."""

    exit_code = 3


def show_json(value: Any, *, err: bool = False) -> None:
    """Print a value as JSON, always in UTF-8 whatever the terminal speaks."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2), err=err)


def show_text(text: str, *, err: bool = False) -> None:
    """Print text as it is; what the terminal's encoding lacks is escaped."""
    stream = sys.stderr if err else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    click.echo(text, err=err)


def first_line(text: str | None) -> str:
    """The first line that says something, without control characters: a terminal must not obey a server."""
    for line in (text or "").splitlines():
        if line.strip():
            return printable(line.strip())
    return ""


def printable(text: str) -> str:
    """`text` with every control character shown as a question mark."""
    return "".join(character if character.isprintable() else "?" for character in text)
