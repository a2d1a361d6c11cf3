"""What a new generation changes, told by type, field and method, with the revisions concerned."""

from __future__ import annotations

import json
from typing import Any

from typedmcp_codegen.source import Schema, is_array, is_object

_NOISE = ("description", "title", "$comment")


def describe(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """One line a change: ``+`` added, ``-`` removed, ``~`` changed; equal changes of several revisions are one line.

    A revision added to those there were is told by what it changes in its predecessor; of one removed only the name.
    """
    there, here = _revisions(before), _revisions(after)
    found: dict[str, list[str]] = {}
    for revision in sorted(here):
        older = max((name for name in here if name < revision), default=None)
        is_new = bool(there) and revision not in there and older is not None
        lines = (
            _revision(after, older, after, revision)
            if is_new and older
            else _revision(before, revision, after, revision)
        )
        for line in lines:
            found.setdefault(line, []).append(revision)
    revisions = [f"{'+' if name in here else '-'} revision {name}" for name in sorted(there ^ here) if there]
    changes = sorted(found.items(), key=lambda item: item[0][2:])
    return revisions + [f"{line}  ({', '.join(names)})" for line, names in changes]


def _revisions(files: dict[str, bytes]) -> set[str]:
    ending = ".schema.json"
    return {name.removeprefix("schemas/").removesuffix(ending) for name in files if name.endswith(ending)}


def _revision(before: dict[str, bytes], then: str, after: dict[str, bytes], now: str) -> list[str]:
    """What differs between revision `then` of one output and revision `now` of another."""
    old = _load(before, f"schemas/{then}.schema.json").get("$defs", {})
    new = _load(after, f"schemas/{now}.schema.json").get("$defs", {})
    lines = [_line(name, old, new, "type") for name in _changed(old, new)]
    for name in _changed(old, new):
        if name in old and name in new:
            lines += _fields(name, old[name], new[name])
    old = _load(before, "schemas/methods.json").get(then, {})
    new = _load(after, "schemas/methods.json").get(now, {})
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
    if is_object(value):
        return {key: _plain(child) for key, child in value.items() if key not in _NOISE or not isinstance(child, str)}
    if is_array(value):
        return [_plain(child) for child in value]
    return value


def _load(files: dict[str, bytes], name: str) -> Schema:
    try:
        value = json.loads(files.get(name, b"{}"))
    except ValueError:
        return {}  # a damaged old file: everything in it counts as new
    return value if is_object(value) else {}
