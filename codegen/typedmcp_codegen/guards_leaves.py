"""Leaf checks: types, constants, bounds.

Each is two expressions.  The first is cheap and settles what parsed JSON usually is; when it is in doubt the second
calls a helper that judges as JSON Schema does (1.0 is an integer, a subclass of ``str`` is a string).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from typedmcp_codegen.guards_shapes import PLACE, VALUE, Leaf
from typedmcp_codegen.render import literal
from typedmcp_codegen.source import Schema

LEAF_KEYWORDS = frozenset(
    {"type", "const", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern"},
)
KINDS = ("object", "array", "string", "number", "integer", "boolean", "null")
_STRANGE = {
    "string": f"type({VALUE}) is not str",
    "integer": f"type({VALUE}) is not int",
    "number": f"type({VALUE}) is not int and type({VALUE}) is not float",
    "boolean": f"type({VALUE}) is not bool",
    "null": f"{VALUE} is not None",
    "object": f"type({VALUE}) is not Object",
    "array": f"type({VALUE}) is not Array",
}
_BOUNDS = {
    "minimum": f"{VALUE} < {{}}",
    "maximum": f"{VALUE} > {{}}",
    "minLength": f"len({VALUE}) < {{}}",
    "maxLength": f"len({VALUE}) > {{}}",
}
_ARGUMENTS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "minLength": "min_length",
    "maxLength": "max_length",
    "pattern": "pattern",
}

NEVER = Leaf("", f'wrong(found, {PLACE}, "nothing", {VALUE})')


def types_of(schema: Schema) -> tuple[str, ...]:
    """The ``type`` keyword as a tuple, empty when absent."""
    kinds = schema.get("type", [])
    return (kinds,) if isinstance(kinds, str) else tuple(kinds)


def alternatives(words: Iterable[str]) -> str:
    """The words as ``a, b or c``, each once."""
    *head, last = dict.fromkeys(words)
    return f"{', '.join(head)} or {last}" if head else last


def leaves(schema: Schema) -> list[Leaf]:
    """The checks for the leaf keywords of `schema`."""
    found: list[Leaf] = []
    kinds = types_of(schema)
    choices = _choices(schema, kinds)
    if choices is not None:
        found.append(_chosen(choices))
    bounds = {key: schema[key] for key in _ARGUMENTS if key in schema}
    if bounds:
        found.append(_bounded(kinds if choices is None else (), bounds))
    elif kinds and choices is None:
        found.append(typed(kinds, alternatives(kinds)))
    return found


def typed(kinds: tuple[str, ...], expected: str) -> Leaf:
    """Whether a value is of one of the kinds."""
    return Leaf(_strange(kinds), f"typed(found, {PLACE}, {VALUE}, {tuple_of(kinds)}, {literal(expected)})")


def plainly(kinds: tuple[str, ...]) -> str:
    """An expression that is true when a value is plainly of one of the kinds."""
    return _strange(kinds).replace(" is not ", " is ").replace(" and ", " or ")


def _strange(kinds: tuple[str, ...]) -> str:
    """An expression that is true unless the value is plainly of one of the kinds."""
    return " and ".join(dict.fromkeys(part for kind in kinds for part in _STRANGE[kind].split(" and ")))


def _choices(schema: Schema, kinds: tuple[str, ...]) -> list[Any] | None:
    """The values ``const`` and ``enum`` leave, those of another type left out; None when neither is there."""
    if "const" not in schema and "enum" not in schema:
        return None
    values = [schema["const"]] if "const" in schema else list(schema["enum"])
    if "const" in schema and "enum" in schema:
        values = [value for value in values if any(_same(value, other) for other in schema["enum"])]
    return [value for value in values if not kinds or kinds_of_constant(value) & set(kinds)]


def kinds_of_constant(value: Any) -> set[str]:
    """The JSON Schema types a JSON value is of."""
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return {"number", "integer"}
    if isinstance(value, float):
        return {"number"}
    names = {str: "string", list: "array", dict: "object", type(None): "null"}
    return {names[type(value)]}


def _same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _chosen(choices: list[Any]) -> Leaf:
    if not choices:
        return NEVER
    test = ""
    for kind in (str, int):
        if all(type(choice) is kind for choice in choices):
            listed = ", ".join(map(literal, choices))
            other = f"!= {listed}" if len(choices) == 1 else f"not in {{{listed}}}"
            test = f"type({VALUE}) is not {kind.__name__} or {VALUE} {other}"
    expected = alternatives(json.dumps(choice, ensure_ascii=False) for choice in choices)
    return Leaf(test, f"chosen(found, {PLACE}, {VALUE}, {tuple_of(choices)}, {literal(expected)})")


def _bounded(kinds: tuple[str, ...], bounds: dict[str, Any]) -> Leaf:
    test = ""
    if len(kinds) == 1 and "pattern" not in bounds and _fitting(kinds[0], bounds):
        strange = f"({_STRANGE[kinds[0]]})" if " and " in _STRANGE[kinds[0]] else _STRANGE[kinds[0]]
        test = " or ".join([strange, *(_BOUNDS[key].format(limit) for key, limit in bounds.items())])
    expected = " ".join([alternatives(kinds) if kinds else "value", *_described(bounds)])
    arguments = "".join(f", {_ARGUMENTS[key]}={literal(limit)}" for key, limit in bounds.items())
    closer = f"bounded(found, {PLACE}, {VALUE}, {tuple_of(kinds)}, {literal(expected)}{arguments})"
    return Leaf(test, closer)


def _fitting(kind: str, bounds: dict[str, Any]) -> bool:
    """Whether all the bounds concern values of this kind."""
    wanted = {"minLength", "maxLength"} if kind == "string" else {"minimum", "maximum"}
    return kind in ("string", "number", "integer") and set(bounds) <= wanted


def _described(bounds: dict[str, Any]) -> list[str]:
    words: list[str] = []
    if "minimum" in bounds and "maximum" in bounds:
        words.append(f"from {bounds['minimum']} to {bounds['maximum']}")
    elif "minimum" in bounds:
        words.append(f"of at least {bounds['minimum']}")
    elif "maximum" in bounds:
        words.append(f"of at most {bounds['maximum']}")
    if "minLength" in bounds:
        words.append(f"of at least {bounds['minLength']} characters")
    if "maxLength" in bounds:
        words.append(f"of at most {bounds['maxLength']} characters")
    if "pattern" in bounds:
        words.append(f"matching {bounds['pattern']}")
    return words


def tuple_of(values: Iterable[Any]) -> str:
    """A tuple display."""
    listed = [literal(value) for value in values]
    return f"({listed[0]},)" if len(listed) == 1 else f"({', '.join(listed)})"
