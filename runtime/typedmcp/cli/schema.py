"""``typedmcp schema``: the protocol as JSON Schema, as packaged."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

import click

from typedmcp.cli.output import Misuse, show_json
from typedmcp.cli.shapes import is_array, is_object


@click.command(
    "schema",
    short_help="Print the protocol as JSON Schema.",
    epilog="""\b
Examples:
  typedmcp schema                            the newest revision
  typedmcp schema 2025-06-18                 an older one
  typedmcp schema --definition Tool          one definition and what it refers to
  typedmcp schema --methods                  every method: sender, params, result
  typedmcp schema --list                     the revisions, oldest first
""",
)
@click.argument("revision", required=False)
@click.option("--definition", metavar="NAME", help="Print this definition alone, with all it refers to.")
@click.option("--methods", is_flag=True, help="Print the method table: kind, senders, params and result of each.")
@click.option("--list", "revisions", is_flag=True, help="List the revisions, oldest first.")
def command(revision: str | None, definition: str | None, methods: bool, revisions: bool) -> None:
    """Print the JSON Schema (2020-12) of a revision of the protocol; by default of the newest."""
    from typedmcp.cli.targets import check_protocol
    from typedmcp_wire.revisions import LATEST_PROTOCOL_VERSION, REVISIONS

    if (definition is not None) + methods + revisions > 1:
        raise click.UsageError("--definition, --methods and --list print different things; use one of them")
    if revisions:
        click.echo("\n".join(REVISIONS))
        return
    chosen = LATEST_PROTOCOL_VERSION if revision in (None, "latest") else str(revision)
    check_protocol(chosen)
    if methods:
        show_json(_packaged("methods.json")[chosen])
        return
    document = _packaged(f"{chosen}.schema.json")
    show_json(document if definition is None else _extract(document, definition, chosen))


def _packaged(name: str) -> Any:
    from importlib.resources import files

    import msgspec

    return msgspec.json.decode((files("typedmcp_wire.schemas") / name).read_bytes())


def _extract(document: dict[str, Any], name: str, revision: str) -> dict[str, Any]:
    """A schema of one definition: a reference to it, and every definition it leads to."""
    known: dict[str, Any] = document["$defs"]
    if name not in known:
        raise Misuse(_unknown(name, known, revision))
    reached = {name}
    waiting = [name]
    while waiting:
        new = set(_references(known[waiting.pop()])) - reached
        reached |= new
        waiting += sorted(new)
    kept = {entry: schema for entry, schema in known.items() if entry in reached}
    return {"$schema": document["$schema"], "title": f"{name} {revision}", "$ref": f"#/$defs/{name}", "$defs": kept}


def _references(schema: Any) -> Iterator[str]:
    if is_object(schema):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value.removeprefix("#/$defs/")
            else:
                yield from _references(value)
    elif is_array(schema):
        for entry in schema:
            yield from _references(entry)


def _unknown(name: str, known: dict[str, Any], revision: str) -> str:
    folded = {entry.casefold(): entry for entry in known}
    close = [folded[entry] for entry in difflib.get_close_matches(name.casefold(), folded, 3)]
    advice = f"did you mean {' or '.join(close)}?" if close else "`typedmcp schema` prints them all."
    return f"{revision} has no definition {name!r}; {advice}"
