"""Parameters of tools that travel in a header of their own as well: the marker ``x-mcp-header`` in an input schema.

Follows basic/transports/streamable-http of 2026-07-28.  Rules:
- A marker is an HTTP token, unique without case in its schema, on a string, an integer or a boolean that is reached
  through ``properties`` alone.
- A server's interface has no method for it: servers offer their markers here, and the HTTP transport finds them here.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from typedmcp.core.errors import UsageError
from typedmcp.core.narrow import is_array, is_object

MARKER: Final = "x-mcp-header"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TYPES: Final = ("string", "integer", "boolean")
# Under these keys are schemas by name, and data that is no schema.
_NAMED: Final = frozenset({"$defs", "definitions", "patternProperties", "dependentSchemas"})
_DATA: Final = frozenset({"const", "default", "enum", "examples"})


class Mark(NamedTuple):
    """One marked parameter."""

    header: str
    """What follows ``Mcp-Param-``."""
    path: tuple[str, ...]
    """The names of the properties that lead to it."""
    type: str


Lookup = Callable[[str], tuple[Mark, ...]]
"""Name of a tool to its marks; none for a tool that does not exist."""
_lookups: weakref.WeakKeyDictionary[object, Lookup] = weakref.WeakKeyDictionary()


def offer_marks(server: object, lookup: Lookup) -> None:
    """Say which parameters of a server's tools are marked; `lookup` must not refer to the server itself."""
    _lookups[server] = lookup


def marks_of(server: object) -> Lookup | None:
    """What a server has offered."""
    try:
        return _lookups.get(server)
    except TypeError:  # a server of another kind, to which no weak reference can be made
        return None


def marks_of_tool(name: str, schema: object) -> tuple[Mark, ...]:
    """The marked parameters of a tool's input schema.

    Raises:
        UsageError: a marker breaks a rule; the tool is named.
    """
    try:
        return read_marks(schema)
    except UsageError as error:
        raise UsageError(f"tool {name!r}: {error}") from None


def read_marks(schema: object) -> tuple[Mark, ...]:
    """The marked parameters of an input schema.

    Raises:
        UsageError: a marker breaks a rule.
    """
    try:
        found = list(_walk(schema, ()))
    except RecursionError:
        raise UsageError("the input schema nests too deeply") from None
    marks: dict[str, Mark] = {}
    for mark in found:
        other = marks.setdefault(mark.header.lower(), mark)
        if other is not mark:
            raise UsageError(f"{MARKER} {mark.header!r} stands at both {_told(other.path)} and {_told(mark.path)}")
    return tuple(marks.values())


def _walk(schema: object, path: tuple[str, ...] | None) -> Iterator[Mark]:
    if not is_object(schema):
        return
    if MARKER in schema:
        yield _mark(schema, path)
    for key, child in schema.items():
        if key == "properties" and is_object(child):
            for name, inner in child.items():
                yield from _walk(inner, None if path is None else (*path, name))
        elif key in _NAMED and is_object(child):
            for inner in child.values():
                yield from _walk(inner, None)
        elif key not in _DATA and is_object(child):
            yield from _walk(child, None)
        elif key not in _DATA and is_array(child):
            for inner in child:
                yield from _walk(inner, None)


def _mark(schema: dict[str, Any], path: tuple[str, ...] | None) -> Mark:
    header, kind = schema[MARKER], schema.get("type")
    if not path:
        raise UsageError(f"{MARKER} {header!r} stands where `properties` alone do not lead; mark a plain parameter")
    if not isinstance(header, str) or not _TOKEN.fullmatch(header):
        raise UsageError(f"{MARKER} of {_told(path)} must be a header name of letters, digits and '-', not {header!r}")
    if kind not in _TYPES:
        raise UsageError(f"{MARKER} of {_told(path)} needs the type {', '.join(_TYPES)}; it is {kind!r}")
    return Mark(header, path, kind)


def _told(path: tuple[str, ...]) -> str:
    return ".".join(path)
