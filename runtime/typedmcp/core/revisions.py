"""Cutting a value down to what a revision knows.

The spans come from the generated :mod:`typedmcp_wire.history`, so a field that the schema adds with ``x-since`` is left
out towards older peers without a line written here.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo, fields
from typedmcp_wire.history import DEFINITIONS, FIELDS

_SCALARS = frozenset({str, int, float, bool, type(None), dict, msgspec.UnsetType})


def exists_in(definition: str, revision: str) -> bool:
    """Whether a definition is part of `revision`."""
    first, last = DEFINITIONS.get(definition, (revision, revision))
    return first <= revision <= last


@cache
def _plan(kind: type[Struct], revision: str) -> tuple[tuple[FieldInfo, ...], tuple[str, ...]]:
    """Fields of a struct that `revision` lacks, and fields that may hold further structs."""
    spans = FIELDS.get(kind.__name__, {})
    lacking, nested = [], []
    for info in fields(kind):
        first, last = spans.get(info.name, (revision, revision))
        if not first <= revision <= last:
            lacking.append(info)
        else:
            nested.append(info.name)
    return tuple(lacking), tuple(nested)


def fit(value: Any, revision: str) -> Any:
    """`value` without the fields `revision` lacks, at any depth; the value itself when nothing has to go."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is list:
        fitted = [fit(entry, revision) for entry in value]
        return value if all(new is old for new, old in zip(fitted, value, strict=True)) else fitted
    if not isinstance(value, Struct):
        return value
    lacking, nested = _plan(kind, revision)
    changes: dict[str, Any] = {}
    for info in lacking:
        # A required field has no default: every revision that has the struct has it.
        if getattr(value, info.name) is not info.default and info.default is not msgspec.NODEFAULT:
            changes[info.name] = info.default
    for name in nested:
        old = getattr(value, name)
        new = fit(old, revision)
        if new is not old:
            changes[name] = new
    return msgspec.structs.replace(value, **changes) if changes else value
