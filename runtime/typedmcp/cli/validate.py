"""``typedmcp validate``: do messages keep to the protocol?"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import click

from typedmcp.cli.output import USAGE, WRONG, Misuse, show_text
from typedmcp.cli.targets import check_protocol

if TYPE_CHECKING:
    from typedmcp.cli.reading import Entry
    from typedmcp_wire.guards import Violation
    from typedmcp_wire.methods import Side

Judge: TypeAlias = "Callable[[Any], tuple[Violation, ...]]"


@click.command(
    "validate",
    short_help="Judge messages by the protocol.",
    epilog="""\b
A FILE is one of these; - is standard input:
  JSON Lines    one message a line (a line that is an array is a batch)
  JSON          one message, an array of messages, or {"messages": [...]};
                an item that is an array is a batch
A message may be wrapped in a record that names its sender:
  {"sender": "client", "message": {...}}
  {"direction": "server-to-client", "message": {...}}

\b
Each violation is a line:
  FILE:LINE: POINTER: what was expected, what was found
LINE is where the message begins; POINTER (a JSON Pointer) leads into the
line's value in JSON Lines, and into the whole document otherwise.

\b
Examples:
  typedmcp validate conversation.jsonl
  typedmcp validate --format json recorded/*.jsonl
  typedmcp validate --sender server --revision 2025-06-18 answer.json
  typedmcp validate --definition Tool tools.json
  some-server < requests.jsonl | typedmcp validate --sender server -

\b
Exit codes: 0 valid, 1 there are violations, 2 a FILE cannot be read.
""",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--revision",
    metavar="VERSION",
    help="The revision whose rules count, `latest`, or `auto`: as each conversation says.  Default: auto; latest along "
    "with --definition.",
)
@click.option(
    "--sender",
    type=click.Choice(["client", "server", "auto"]),
    default="auto",
    show_default=True,
    help="Who sent the messages; auto: known by the method, and by the request for a response.",
)
@click.option("--definition", metavar="NAME", help="Judge each value by this definition, instead of as a message.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(files: tuple[str, ...], revision: str | None, sender: str, definition: str | None, form: str) -> None:
    """Judge messages by the protocol: every violation with its file, line and place.

    Broken JSON is a violation of its line, and the next line is judged.  Files of JSON Lines may be of any size.
    """
    start = _judge_maker(revision, sender, definition)
    report = _JSONReport() if form == "json" else _TextReport()
    unreadable = False
    for name in files:
        try:
            _judge_file(name, start(), report)
        except (OSError, _Empty) as error:
            if isinstance(error, BrokenPipeError):
                raise
            unreadable = True
            click.echo(f"Error: cannot read {name}: {getattr(error, 'strerror', None) or error}", err=True)
    report.end()
    if unreadable or report.violations:
        raise click.exceptions.Exit(USAGE if unreadable else WRONG)


class _Empty(Exception):
    """A file without a value: more likely a mistake than a valid conversation."""


def _judge_maker(revision: str | None, sender: str, definition: str | None) -> Callable[[], Judge]:
    """A maker of judges, one for each file.

    Raises:
        Misuse: there is no such revision or definition.
    """
    from typedmcp.core.errors import UsageError
    from typedmcp.core.validation import validate
    from typedmcp_wire.revisions import LATEST_PROTOCOL_VERSION

    if definition is not None and revision is None:
        revision = "latest"
    chosen = None if revision in (None, "auto") else LATEST_PROTOCOL_VERSION if revision == "latest" else revision
    check_protocol(chosen)
    if definition is None:
        from typedmcp.cli.judging import Conversation

        side: Side | None = "client" if sender == "client" else "server" if sender == "server" else None
        return lambda: Conversation(chosen, side).judge
    if chosen is None:
        raise click.UsageError("--revision auto reads conversations; name a revision along with --definition")
    try:
        validate(None, definition, chosen)
    except UsageError as error:
        raise Misuse(str(error).replace("definitions(revision)", "`typedmcp schema`")) from None
    return lambda: lambda value: validate(value, definition, chosen)


def _judge_file(name: str, judge: Judge, report: _TextReport | _JSONReport) -> None:
    from typedmcp.cli.progress import reading
    from typedmcp.cli.reading import read_entries
    from typedmcp_wire.guards import Violation

    count = 0
    shown = "<stdin>" if name == "-" else name
    with _opened(name) as stream, reading(stream, shown) as view:
        for entry in read_entries(stream, name, view.advance):
            count += 1
            broken = entry.error is not None
            found = (Violation("", "JSON", str(entry.error)),) if broken else judge(entry.value)
            if found:
                view.make_room()
            for violation in found:
                report.add(shown, entry, violation)
    if not count:
        raise _Empty("it holds no message")
    report.count += count


@contextmanager
def _opened(name: str) -> Generator[BinaryIO]:
    if name == "-":
        yield sys.stdin.buffer
        return
    if os.path.isdir(name):
        raise IsADirectoryError(0, "it is a folder; name the files in it")
    with open(name, "rb") as stream:
        yield stream


class _TextReport:
    """One line per violation on standard output, and a summary on standard error."""

    def __init__(self) -> None:
        self.count = 0
        self.violations = 0

    def add(self, name: str, entry: Entry, violation: Violation) -> None:
        self.violations += 1
        pointer = entry.pointer + violation.pointer or "(whole value)"
        show_text(f"{name}:{entry.line}: {_one_line(pointer)}: {_one_line(_said(violation))}")

    def end(self) -> None:
        wrong = f"{_number(self.violations, 'violation')}" if self.violations else "all valid"
        click.echo(f"{_number(self.count, 'value')}: {wrong}", err=True)


class _JSONReport:
    """One JSON object, written as it grows: ``{"violations": [...], "count": n, "valid": true}``."""

    def __init__(self) -> None:
        self.count = 0
        self.violations = 0

    def add(self, name: str, entry: Entry, violation: Violation) -> None:
        import msgspec

        record = {
            "file": name,
            "line": entry.line,
            "pointer": entry.pointer + violation.pointer,
            "expected": violation.expected,
            "found": violation.found,
            "message": _said(violation),
        }
        sys.stdout.write(f",\n  {msgspec.json.encode(record).decode()}" if self.violations else "")
        if not self.violations:
            sys.stdout.write('{"violations": [\n  ' + msgspec.json.encode(record).decode())
        self.violations += 1

    def end(self) -> None:
        head = "\n]" if self.violations else '{"violations": []'
        click.echo(f'{head}, "count": {self.count}, "valid": {"false" if self.violations else "true"}}}')


def _said(violation: Violation) -> str:
    return f"expected {violation.expected}, found {violation.found}"


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
