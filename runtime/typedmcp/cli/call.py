"""``typedmcp call``: run one tool of a server."""

from __future__ import annotations

import difflib
import sys
from typing import TYPE_CHECKING, Any

import click

from typedmcp.cli.arguments import Words, arguments_for, read_object, read_words
from typedmcp.cli.output import WRONG, Misuse, printable, show_json, show_text
from typedmcp.cli.targets import TARGET_HELP, Connection, connection_options, converse, read_target

if TYPE_CHECKING:
    from typedmcp.client.client import MCPClient
    from typedmcp_wire.types.calls import CallToolResult


@click.command(
    "call",
    short_help="Run a server's tool and print its value.",
    epilog=f"""{TARGET_HELP}
\b
The arguments of the tool:
  key=value     JSON if the tool's schema has room for it, otherwise text:
                id=12345 stays text for a text parameter
  key:=json     JSON in any case: tags:='["a", "b"]'
  '{{"a": 1}}'    all of them as one JSON object
  -             that object from standard input

\b
Examples:
  typedmcp call server.py add a=1 b=2
  typedmcp call "npx -y some-server" search query=tea limit=3
  typedmcp call server.py plan '{{"steps": ["one", "two"]}}'
  jq .request job.json | typedmcp call --json server.py plan -

The value goes to standard output, text as it is and anything else as JSON; a failed tool's text goes to
standard error, and the exit code is 1.
""",
)
@click.argument("target")
@click.argument("name")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE ... | JSON | -]")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result (CallToolResult) as JSON.")
@click.option("--progress/--no-progress", default=None, help="Show progress; by default only on a terminal.")
@connection_options
def command(
    target: str,
    name: str,
    arguments: tuple[str, ...],
    as_json: bool,
    progress: bool | None,
    protocol: str | None,
    timeout: float,
) -> None:
    """Run a tool of a server and print its value.

    The time allowed starts anew whenever the tool reports progress.
    """
    whom = read_target([target])
    words = _words(arguments)
    from typedmcp.cli.progress import ProgressView

    view = ProgressView(enabled=sys.stderr.isatty() if progress is None else progress)

    async def work(client: MCPClient) -> CallToolResult:
        given = arguments_for(words, await _input_schema(client, name))
        with view:
            return await client.call_tool(name, given, on_progress=view.report, reset_on_progress=True)

    result = converse(whom, Connection(protocol, timeout), work)
    if as_json:
        show_json(result)
    if result.is_error is True:
        text = "\n".join(_lines(result)) or "The tool failed without saying why."
        show_text(text, err=True)
        raise click.exceptions.Exit(WRONG)
    if not as_json:
        _show_value(result)


def _words(arguments: tuple[str, ...]) -> Words:
    if arguments == ("-",):
        return Words(read_object(_standard_input(), "standard input"), {})
    return read_words(arguments)


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Misuse(f"Standard input is not UTF-8: {error}.") from None


async def _input_schema(client: MCPClient, name: str) -> dict[str, Any]:
    """The input schema of the tool, which tells text from numbers.

    Raises:
        Misuse: the server has no such tool.
    """
    tools = {tool.name: tool for tool in await client.tools()}
    if name in tools:
        return tools[name].parameters
    close = difflib.get_close_matches(name, tools, 3, 0.5)
    if close:
        advice = f"did you mean {' or '.join(map(printable, close))}?"
    else:
        advice = f"it has {', '.join(map(printable, list(tools)[:20]))}." if tools else "it has none at all."
    raise Misuse(f"The server has no tool {name!r}; {advice}")


def _show_value(result: CallToolResult) -> None:
    """Text as it is, anything else as JSON; content of other kinds in a few words."""
    from msgspec import UNSET

    from typedmcp.client.values import value_of

    value = "\n".join(_lines(result)) if result.structured_content is UNSET else value_of(result)
    if isinstance(value, str):
        show_text(value)
    else:
        show_json(value)


def _lines(result: CallToolResult) -> list[str]:
    from typedmcp_wire.codec import to_builtins

    return [_block(to_builtins(block)) for block in result.content]


def _block(block: dict[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block["text"])
    if kind == "resource_link":
        return f"[link to {block['uri']}]"
    if kind == "resource":
        held: dict[str, Any] = block["resource"]
        return str(held["text"]) if "text" in held else f"[contents of {held.get('uri')}; see --json]"
    size = len(block.get("data", "")) * 3 // 4
    return f"[{kind}, {block.get('mimeType')}, about {size} bytes; see --json]"
