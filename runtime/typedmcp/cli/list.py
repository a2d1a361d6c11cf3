"""``typedmcp list``: what a server offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from typedmcp.cli.output import first_line, printable, show_json, show_text
from typedmcp.cli.shapes import is_array, is_object
from typedmcp.cli.targets import TARGET_HELP, Connection, connection_options, converse, read_target

if TYPE_CHECKING:
    from typedmcp.client.client import MCPClient

_SECTIONS = {
    "tools": "Tools",
    "resources": "Resources",
    "resourceTemplates": "Resource templates",
    "prompts": "Prompts",
}
_MAX_PAGES = 10_000


@click.command(
    "list",
    short_help="List what a server offers.",
    epilog=f"""{TARGET_HELP}
A command may be given word by word, too, after two dashes.

\b
Examples:
  typedmcp list server.py
  typedmcp list "npx -y @modelcontextprotocol/server-everything"
  typedmcp list --json -- python server.py --verbose
  typedmcp list --protocol 2025-06-18 package.module:app
""",
)
@click.argument("target", nargs=-1, required=True, metavar="TARGET...")
@click.option("--json", "as_json", is_flag=True, help="Print the lists as the server gives them, in one JSON object.")
@connection_options
def command(target: tuple[str, ...], as_json: bool, protocol: str | None, timeout: float) -> None:
    """List a server's tools with their arguments, and its resources and prompts."""
    offer = converse(read_target(target), Connection(protocol, timeout), _offer)
    if as_json:
        show_json(offer)
    else:
        show_text("\n".join(_described(offer)))


# -- asking ------------------------------------------------------------------------------------------------------------


async def _offer(client: MCPClient) -> dict[str, Any]:
    """Everything the server lists, page by page; a list it does not serve is left out."""
    capabilities = client.server_capabilities
    found: dict[str, Any] = {"protocolVersion": client.protocol_version}
    if client.server_info is not None:
        found["serverInfo"] = client.server_info
    if client.instructions:
        found["instructions"] = client.instructions
    # Some servers have tools and do not say so.
    found["tools"] = await _walk(client.list_tools, "tools") or []
    if capabilities.resources is not None:
        found["resources"] = await _walk(client.list_resources, "resources")
        found["resourceTemplates"] = await _walk(client.list_resource_templates, "resource_templates")
    if capabilities.prompts is not None:
        found["prompts"] = await _walk(client.list_prompts, "prompts")
    return {key: value for key, value in found.items() if value is not None}


async def _walk(fetch: Callable[[str | None], Awaitable[Any]], member: str) -> list[Any] | None:
    """All pages of a list; None when the server has no such method."""
    from typedmcp.core.errors import InvalidResult, MCPError
    from typedmcp_wire.codec import to_builtins
    from typedmcp_wire.revisions import METHOD_NOT_FOUND

    entries: list[Any] = []
    cursor: str | None = None
    seen: set[str | None] = {None}
    while True:
        try:
            page = await fetch(cursor)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND:
                return None
            raise
        entries += to_builtins(getattr(page, member))
        cursor = page.next_cursor
        if cursor is None:
            return entries
        if cursor in seen or len(seen) > _MAX_PAGES:
            raise InvalidResult(f"the list of {member} has no end: the server gave the cursor {cursor!r} again")
        seen.add(cursor)


# -- showing -----------------------------------------------------------------------------------------------------------


def _described(offer: dict[str, Any]) -> Iterable[str]:
    yield _heading(offer)
    for key, title in _SECTIONS.items():
        entries: list[dict[str, Any]] = offer.get(key, [])
        if entries:
            yield from ("", f"{title} ({len(entries)}):")
        elif key == "tools":
            yield from ("", "No tools.")
        for entry in entries:
            yield from _tool(entry) if key == "tools" else _entry(entry)


def _heading(offer: dict[str, Any]) -> str:
    info = offer.get("serverInfo")
    name = printable(f"{info.name} {info.version}") if info is not None else "A server without a name"
    return f"{name} (protocol {offer['protocolVersion']})"


def _tool(tool: dict[str, Any]) -> Iterable[str]:
    yield f"  {printable(tool['name'])}"
    line = first_line(tool.get("description") or tool.get("title"))
    if line:
        yield f"      {line}"
    schema: dict[str, Any] = tool.get("inputSchema", {})
    properties = _object(schema.get("properties"))
    required = _array(schema.get("required"))
    for name, rules in properties.items():
        yield f"      - {printable(name)}: {_argument(_object(rules), name in required)}"


def _object(value: Any) -> dict[str, Any]:
    return value if is_object(value) else {}


def _array(value: Any) -> list[Any]:
    return value if is_array(value) else []


def _argument(rules: dict[str, Any], is_required: bool) -> str:
    """A parameter in a few words: its type, whether it may be left out, what it is for."""
    text = _type(rules)
    if is_required:
        text += ", required"
    elif "default" in rules:
        text += f", default {_short(rules['default'])}"
    told = rules.get("description")
    line = first_line(told) if isinstance(told, str) else ""
    return f"{text}. {line}" if line else text


def _type(rules: dict[str, Any]) -> str:
    if isinstance(rules.get("enum"), list):
        return " | ".join(_short(value) for value in rules["enum"])
    if "const" in rules:
        return _short(rules["const"])
    named = rules.get("type")
    if named == "array" and isinstance(rules.get("items"), dict):
        return f"array of {_type(rules['items'])}"
    if isinstance(named, str):
        return printable(named)
    if is_array(named):
        return " | ".join(printable(str(name)) for name in named)
    if isinstance(rules.get("$ref"), str):
        return printable(rules["$ref"].rpartition("/")[2])
    either = _array(rules.get("anyOf") or rules.get("oneOf"))
    return " | ".join(dict.fromkeys(_type(_object(part)) for part in either)) or "any"


def _short(value: Any) -> str:
    import json

    text = printable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else f"{text[:57]}..."


def _entry(entry: dict[str, Any]) -> Iterable[str]:
    """A resource, a template or a prompt."""
    name = entry.get("uri") or entry.get("uriTemplate") or entry["name"]
    arguments = _names(entry.get("arguments"))
    yield f"  {printable(name)}" + (f" ({arguments})" if arguments else "")
    line = first_line(entry.get("description") or entry.get("title"))
    kind = entry.get("mimeType")
    words = [word for word in (f"[{printable(kind)}]" if isinstance(kind, str) else "", line) if word]
    if words:
        yield f"      {' '.join(words)}"


def _names(arguments: Sequence[dict[str, Any]] | None) -> str:
    marks = ((each["name"], "" if each.get("required") else "?") for each in arguments or ())
    return ", ".join(printable(name) + mark for name, mark in marks)
