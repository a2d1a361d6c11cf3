"""What a new generation changes, told by type, field and method, with the revisions concerned."""

from __future__ import annotations

import json
from typing import Any

from typedmcp_codegen.source import Schema

_NOISE = ("description", "title", "$comment")


def describe(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """One line a change: ``+`` added, ``-`` removed, ``~`` changed; equal changes of several revisions are one line."""
    found: dict[str, list[str]] = {}
    for revision in sorted(_revisions(before) | _revisions(after)):
        for line in _revision(before, after, revision):
            found.setdefault(line, []).append(revision)
    return [f"{line}  ({', '.join(revisions)})" for line, revisions in sorted(found.items(), key=lambda i: i[0][2:])]


def _revisions(files: dict[str, bytes]) -> set[str]:
    ending = ".schema.json"
    return {name.removeprefix("schemas/").removesuffix(ending) for name in files if name.endswith(ending)}


def _revision(before: dict[str, bytes], after: dict[str, bytes], revision: str) -> list[str]:
    old, new = (_load(files, f"schemas/{revision}.schema.json").get("$defs", {}) for files in (before, after))
    lines = [_line(name, old, new, "type") for name in _changed(old, new)]
    for name in _changed(old, new):
        if name in old and name in new:
            lines += _fields(name, old[name], new[name])
    old, new = (_load(files, "schemas/methods.json").get(revision, {}) for files in (before, after))
    return lines + [_line(name, old, new, "method") for name in _changed(old, new)]


def _fields(owner: str, old: Schema, new: Schema) -> list[str]:
    had, has = (_with_requirement(schema) for schema in (old, new))
    return [_line(name, had, has, f"field {owner}.", "") for name in _changed(had, has)]


def _with_requirement(schema: Schema) -> Schema:
    required = schema.get("required", [])
    return {name: [child, name in required] for name, child in schema.get("properties", {}).items()}


def _changed(old: Schema, new: Schema) -> list[str]:
    names = [*old, *(name for name in new if name not in old)]
    return [name for name in names if _plain(old.get(name)) != _plain(new.get(name)) or (name in old) != (name in new)]


def _line(name: str, old: Schema, new: Schema, what: str, gap: str = " ") -> str:
    sign = "~" if name in old and name in new else "+" if name in new else "-"
    return f"{sign} {what}{gap}{name}"


def _plain(value: Any) -> Any:
    """`value` without what only people read."""
    if isinstance(value, dict):
        return {key: _plain(child) for key, child in value.items() if key not in _NOISE or not isinstance(child, str)}
    if isinstance(value, list):
        return [_plain(child) for child in value]
    return value


def _load(files: dict[str, bytes], name: str) -> Schema:
    try:
        value = json.loads(files.get(name, b"{}"))
    except ValueError:
        return {}  # a damaged old file: everything in it counts as new
    return value if isinstance(value, dict) else {}
