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

_SCALARS: frozenset[type] = frozenset({str, int, float, bool, type(None), dict, msgspec.UnsetType})


def exists_in(definition: str, revision: str) -> bool:
    """Whether a definition is part of `revision`."""
    first, last = DEFINITIONS.get(definition, (revision, revision))
    return first <= revision <= last


class _Plan(Struct, frozen=True, gc=False):
    """What a struct type loses in one revision, and where further structs may hang."""

    lacking: tuple[tuple[str, Any], ...]
    """Names and defaults."""
    nested: tuple[str, ...]


class _Plans:
    """What is known about one revision so far."""

    __slots__ = ("by_type", "whole")

    def __init__(self) -> None:
        self.by_type: dict[type[Struct], _Plan] = {}
        self.whole: set[type] = set(_SCALARS)
        """Types that lose nothing, at any depth."""


_plans: dict[str, _Plans] = {}


def _make_plan(kind: type[Struct], revision: str) -> _Plan:
    lacking = _lacking(kind, revision)
    gone = {info.name for info in lacking}
    kept = [info for info in fields(kind) if info.name not in gone]
    plan = _Plan(
        tuple((info.name, info.default) for info in lacking),
        tuple(info.name for info in kept if _may_lack(info.type, revision, {kind})),
    )
    plans = _plans[revision]
    plans.by_type[kind] = plan
    if not plan.lacking and not plan.nested:
        plans.whole.add(kind)
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
    plans = _plans.get(revision) or _plans.setdefault(revision, _Plans())
    whole = plans.whole
    kind = cast("Any", type(value))
    if kind in whole:
        return value
    if kind is list:
        fitted = [entry if type(entry) in whole else fit(entry, revision) for entry in value]
        return value if all(map(is_, fitted, value)) else fitted
    if not isinstance(value, Struct):
        return value
    plan = plans.by_type.get(kind) or _make_plan(kind, revision)
    changes: dict[str, Any] | None = None
    for name, default in plan.lacking:
        if getattr(value, name) is not default:
            changes = changes or {}
            changes[name] = default
    for name in plan.nested:
        old = getattr(value, name)
        if type(old) in whole:
            continue
        new = fit(old, revision)
        if new is not old:
            changes = changes or {}
            changes[name] = new
    return value if changes is None else msgspec.structs.replace(value, **changes)
