"""From the schemas of one revision to the functions its guard module holds."""

from __future__ import annotations

import re
from typing import Any

from typedmcp_codegen.guards_leaves import LEAF_KEYWORDS, NEVER, leaves, types_of
from typedmcp_codegen.guards_plan import Plan, alias, is_schema, target
from typedmcp_codegen.guards_shapes import (
    Array,
    Call,
    Check,
    ChecksFunction,
    Function,
    Leaf,
    Map,
    ObjectFunction,
    Property,
)
from typedmcp_codegen.guards_unions import Unions
from typedmcp_codegen.source import Schema

_OBJECT_KEYWORDS = ("properties", "required", "additionalProperties")
_ARRAY_KEYWORDS = ("items", "minItems", "maxItems")


def snake(name: str) -> str:
    """``JSONRPCErrorResponse`` as ``jsonrpc_error_response``."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", name)
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


class Module:
    """The functions of one revision's module, and what it needs of others."""

    def __init__(self, plan: Plan, revision: str) -> None:
        self.plan = plan
        self.revision = revision
        self.functions: list[Function] = []
        self.imports: dict[str, set[str]] = {}
        """Revision to the names taken from its module."""
        self._names: set[str] = set()
        self.unions = Unions(self)
        for name, schema in plan.written(revision):
            self._write(self._claim("check_" + snake(name)), schema, snake(name))
        self.table = {name: self.reference(name) for name in sorted(plan.definitions[revision])}

    def definition(self, name: str) -> Any:
        """The schema of a definition in this revision."""
        return self.plan.definitions[self.revision][name]

    def reference(self, name: str) -> str:
        """The function that judges definition `name`, imported when another module holds it."""
        name = self.plan.follow(self.revision, name)
        home = self.plan.homes[self.revision, name]
        function = "check_" + snake(name)
        if home != self.revision:
            self.imports.setdefault(home, set()).add(function)
        return function

    def helper(self, schema: Any, hint: str) -> str:
        """The function for a schema: the definition's when it is a reference, otherwise a new one."""
        referred = alias(schema)
        if referred is not None:
            return self.reference(referred)
        name = self._claim(f"_{hint}")
        self._write(name, schema, hint)
        return name

    def _claim(self, name: str) -> str:
        """`name`, made unique in this module."""
        unique, number = name, 1
        while unique in self._names:
            number += 1
            unique = f"{name}_{number}"
        self._names.add(unique)
        return unique

    def _write(self, name: str, schema: Any, hint: str) -> None:
        parts = split(schema)
        if len(parts) == 1 and is_schema(parts[0]):
            part = parts[0]
            if "anyOf" in part:
                self.functions.append(self.unions.function(name, part["anyOf"], hint))
                return
            if any(key in part for key in _OBJECT_KEYWORDS):
                self.functions.append(self._object(name, part, hint))
                return
        self.functions.append(ChecksFunction(name, tuple(self.checks(schema, hint))))

    def _object(self, name: str, schema: Schema, hint: str) -> ObjectFunction:
        required = schema.get("required", [])
        properties = schema.get("properties", {})
        named = {**dict.fromkeys(required, True), **properties}  # True is the schema that lets everything pass
        found = [
            Property(
                key, key in required, self.kinds(child) is not None, tuple(self.checks(child, f"{hint}_{snake(key)}"))
            )
            for key, child in named.items()
        ]
        others = self.checks(schema.get("additionalProperties", True), f"{hint}_member", nested=True)
        kept = tuple(entry for entry in found if entry.required or entry.checks)
        return ObjectFunction(name, "type" in schema, kept, tuple(others), tuple(sorted(properties)))

    def checks(self, schema: Any, hint: str, *, nested: bool = False) -> list[Check]:
        """All a value must pass, in place as far as it goes.

        Args:
            nested: the checks stand in a loop already, so a list needs a function of its own.
        """
        found: list[Check] = []
        for part in split(schema):
            if part is False:
                found.append(NEVER)
            elif "$ref" in part:
                found.extend(self._referred(target(part["$ref"])))
            elif not nested and set(part) == {"type", "additionalProperties"}:
                found.append(Map(tuple(self.checks(part["additionalProperties"], f"{hint}_member", nested=True))))
            elif "anyOf" in part or any(key in part for key in _OBJECT_KEYWORDS):
                found.append(Call(self.helper(part, hint)))
            elif any(key in part for key in _ARRAY_KEYWORDS):
                found.append(Call(self.helper(part, hint)) if nested else self._array(part, hint))
            else:
                found.extend(leaves(part))
        return found

    def _referred(self, name: str) -> list[Check]:
        """A reference: a definition judged by one leaf is judged in place, which saves a call."""
        followed = self.definition(self.plan.follow(self.revision, name))
        parts = split(followed)
        if not parts:
            return []
        if all(is_schema(part) and set(part) <= LEAF_KEYWORDS for part in parts):
            single: list[Leaf] = [leaf for part in parts for leaf in leaves(part)]
            if len(single) == 1:
                return list(single)
        return [Call(self.reference(name))]

    def _array(self, schema: Schema, hint: str) -> Array:
        bounds: list[str] = []
        words: list[str] = []
        if "minItems" in schema:
            bounds.append(f"len(items) < {schema['minItems']}")
            words.append(f"at least {schema['minItems']}")
        if "maxItems" in schema:
            bounds.append(f"len(items) > {schema['maxItems']}")
            words.append(f"at most {schema['maxItems']}")
        expected = f"array of {' and '.join(words)} items" if words else "array"
        items = self.checks(schema.get("items", True), f"{hint}_item", nested=True)
        return Array(tuple(items), " or ".join(bounds), expected, "type" in schema)

    def kinds(self, schema: Any, seen: frozenset[str] = frozenset()) -> frozenset[str] | None:
        """The JSON kinds a value can have at all, ``integer`` counted as ``number``; None when any."""
        known: frozenset[str] | None = None
        if not is_schema(schema):
            return None
        if types_of(schema):
            known = frozenset("number" if kind == "integer" else kind for kind in types_of(schema))
        referred = target(schema["$ref"]) if "$ref" in schema else None
        if referred is not None and referred not in seen:
            known = _both(known, self.kinds(self.definition(referred), seen | {referred}))
        if "anyOf" in schema:
            members = [self.kinds(member, seen) for member in schema["anyOf"]]
            union = frozenset[str]().union(*(kinds for kinds in members if kinds is not None))
            known = _both(known, None if None in members else union)
        return known


def _both(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    return other if one is None else one if other is None else one & other


def split(schema: Any) -> list[Any]:
    """The parts of a schema that are judged one after the other; none when anything passes.

    A part is False, a reference, a union, leaf keywords, or the keywords of objects or of arrays; the last two bear
    ``type`` when they judge it too, otherwise they let everything pass that is no object or no array.
    """
    if not is_schema(schema):
        return [False] if schema is False else []
    parts: list[Any] = [{key: schema[key]} for key in ("$ref", "anyOf") if key in schema]
    objects = {key: schema[key] for key in _OBJECT_KEYWORDS if not _void(key, schema.get(key, {}))}
    arrays = {key: schema[key] for key in _ARRAY_KEYWORDS if not _void(key, schema.get(key, {}))}
    leaf = {key: schema[key] for key in LEAF_KEYWORDS if key in schema}
    if objects and set(leaf) == {"type"} and types_of(leaf) == ("object",):
        return [*parts, {**objects, "type": "object"}]
    if arrays and set(leaf) == {"type"} and types_of(leaf) == ("array",):
        return [*parts, {**arrays, "type": "array"}]
    return [*parts, *(part for part in (leaf, objects, arrays) if part)]


def _void(key: str, value: Any) -> bool:
    """Whether a keyword says nothing."""
    return value == {} or value == [] or (key in ("additionalProperties", "items") and value is True)
