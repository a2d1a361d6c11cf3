"""Cutting a value down to what a revision knows.

The spans come from the generated :mod:`typedmcp_wire.history`, so a field that the schema adds with ``x-since`` is left
out towards older peers without a line written here.
"""

from __future__ import annotations

from operator import is_
from typing import Any, cast, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo, fields

from typedmcp_wire.history import DEFINITIONS, FIELDS

_NONE: dict[type[Struct], Any] = {}
_SCALARS = frozenset({str, int, float, bool, type(None), dict, msgspec.UnsetType})


def exists_in(definition: str, revision: str) -> bool:
    """Whether a definition is part of `revision`."""
    first, last = DEFINITIONS.get(definition, (revision, revision))
    return first <= revision <= last


class _Plan(Struct, frozen=True, gc=False):
    """What a struct type loses in one revision, and where further structs may hang."""

    lacking: tuple[FieldInfo, ...]
    nested: tuple[str, ...]


_plans: dict[str, dict[type[Struct], _Plan]] = {}


def _make_plan(kind: type[Struct], revision: str) -> _Plan:
    lacking = _lacking(kind, revision)
    gone = {info.name for info in lacking}
    kept = [info for info in fields(kind) if info.name not in gone]
    plan = _Plan(lacking, tuple(info.name for info in kept if _may_lack(info.type, revision, {kind})))
    _plans.setdefault(revision, {})[kind] = plan
    return plan


def _lacking(kind: type[Struct], revision: str) -> tuple[FieldInfo, ...]:
    """The fields of a struct that a revision does not have."""
    # Structs of users may bear the names of the wire's, inside structured content.
    spans = FIELDS.get(kind.__name__, {}) if kind.__module__.startswith("typedmcp_wire.") else {}
    known = {info.name: spans.get(info.name, (revision, revision)) for info in fields(kind)}
    # A required field has no default: every revision that has the struct has it.
    return tuple(
        info
        for info in fields(kind)
        if not known[info.name][0] <= revision <= known[info.name][1] and info.default is not msgspec.NODEFAULT
    )


def _may_lack(hint: Any, revision: str, seen: set[Any]) -> bool:
    """Whether a value of that type can hold a struct with a field that a revision does not have."""
    if isinstance(hint, type) and issubclass(cast("type[Any]", hint), Struct):
        if hint in seen:
            return False
        below = {*seen, hint}
        return bool(_lacking(hint, revision)) or any(_may_lack(info.type, revision, below) for info in fields(hint))
    return any(_may_lack(inner, revision, seen) for inner in getattr(hint, "members", None) or get_args(hint))


def fit(value: Any, revision: str) -> Any:
    """`value` without the fields `revision` lacks, at any depth; the value itself when nothing has to go."""
    kind = cast("Any", type(value))
    if kind is list:
        fitted = [entry if type(entry) in _SCALARS else fit(entry, revision) for entry in value]
        return value if all(map(is_, fitted, value)) else fitted
    if kind in _SCALARS or not isinstance(value, Struct):
        return value
    plan = _plans.get(revision, _NONE).get(kind) or _make_plan(kind, revision)
    changes: dict[str, Any] | None = None
    for info in plan.lacking:
        if getattr(value, info.name) is not info.default:
            changes = changes or {}
            changes[info.name] = info.default
    for name in plan.nested:
        old = getattr(value, name)
        if type(old) in _SCALARS:
            continue
        new = fit(old, revision)
        if new is not old:
            changes = changes or {}
            changes[name] = new
    return value if changes is None else msgspec.structs.replace(value, **changes)
