"""How a union is judged: its member is picked when that can be told, so that violations point inside it.

The verdict is ``anyOf``'s in every case.  A pick by kind or by a required constant leaves no other member a chance; a
pick by ``x-when`` does not, so there the other members are tried before the picked one's violations count.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from typedmcp_codegen.guards_leaves import alternatives, plainly, tuple_of, typed, types_of
from typedmcp_codegen.guards_plan import WHEN, alias, is_schema
from typedmcp_codegen.guards_shapes import Leaf, Pick, UnionFunction
from typedmcp_codegen.render import literal
from typedmcp_codegen.source import Schema

if TYPE_CHECKING:
    from typedmcp_codegen.guards_code import Module

# A union of many is named by its first members only: a violation is a line, not a page.
_NAMED = 4
_OBJECT = frozenset({"object"})
_ARRAY = frozenset({"array"})


class Unions:
    """The unions of one module."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def function(self, name: str, members: list[Any], hint: str) -> UnionFunction:
        """The function `name` for ``anyOf: members``."""
        members = self._flattened(members)
        groups = self._groups(members)
        if groups is None:
            trial = Pick("trial", self._functions(members, hint), expected=self._names(members))
            return UnionFunction(name, None, None, None, trial, "")
        objects, arrays, scalars = groups
        kinds = [kind for member in members for kind in self._ordered_kinds(member)]
        expected = alternatives(kinds)
        scalar: Leaf | None = None
        if scalars:
            scalar = replace(typed(types_of(scalars[0]), expected), test=plainly(types_of(scalars[0])))
        return UnionFunction(
            name,
            self._pick(objects, f"{hint}_object", "plain"),
            self._pick(arrays, f"{hint}_array", "items"),
            scalar,
            None,
            expected,
        )

    def _flattened(self, members: list[Any]) -> list[Any]:
        """Members that are unions told apart by ``x-when`` make room for their own members."""
        out: list[Any] = []
        for member in members:
            schema = member
            while (name := alias(schema)) is not None and WHEN not in schema:
                schema = self._module.definition(name)
            inner: list[Any] = schema["anyOf"] if is_schema(schema) and set(schema) == {"anyOf"} else []
            if any(WHEN in child for child in filter(is_schema, inner)):
                out.extend(self._flattened(inner))
            elif is_schema(schema) and WHEN in schema:
                out.append({**member, WHEN: schema[WHEN]})
            else:
                out.append(member)
        return out

    def _groups(self, members: list[Any]) -> tuple[list[Any], list[Any], list[Any]] | None:
        """Object, array and other members; None when a value's kind does not tell which are meant."""
        objects, arrays, scalars = list[Any](), list[Any](), list[Any]()
        for member in members:
            kinds = self._module.kinds(member)
            if kinds == _OBJECT:
                objects.append(member)
            elif kinds == _ARRAY:
                arrays.append(member)
            elif kinds is None or kinds & (_OBJECT | _ARRAY):
                return None
            else:
                scalars.append(member)
        if len(scalars) > 1 or (scalars and set(scalars[0]) - {"type", WHEN}):
            return None
        return objects, arrays, scalars

    def _ordered_kinds(self, member: Any) -> list[str]:
        return list(types_of(member)) or sorted(self._module.kinds(member) or ())

    def _pick(self, members: list[Any], hint: str, variable: str) -> Pick | None:
        if not members:
            return None
        functions = self._functions(members, hint)
        if len(members) == 1:
            return Pick("one", functions)
        tag = self._tag(members)
        if tag is not None:
            name, constants = tag
            tests = tuple(map(literal, constants))
            expected = alternatives(tests)
            return Pick("tag", functions, tests, tag=name, expected=expected)
        if any(WHEN in member for member in members):
            return self._pick_when(members, functions, variable)
        return Pick("trial", functions, expected=self._names(members))

    def _pick_when(self, members: list[Any], functions: tuple[str, ...], variable: str) -> Pick:
        told = [
            (_test(member[WHEN], variable), name)
            for member, name in zip(members, functions, strict=True)
            if WHEN in member
        ]
        rest = [name for member, name in zip(members, functions, strict=True) if WHEN not in member]
        ordered = (*(name for _, name in told), *rest)
        default = rest[-1] if rest else ""
        return Pick("when", ordered, tuple(test for test, _ in told), default, expected=self._names(members))

    def _functions(self, members: list[Any], hint: str) -> tuple[str, ...]:
        return tuple(self._module.helper(_without_when(member), hint) for member in members)

    def _names(self, members: list[Any]) -> str:
        names = [alias(member) or alternatives(self._ordered_kinds(member) or ["value"]) for member in members]
        if len(names) > _NAMED + 1:
            names[_NAMED:] = [f"{len(names) - _NAMED} more"]
        return alternatives(names)

    def _tag(self, members: list[Any]) -> tuple[str, list[str]] | None:
        """A property that is a required, different, constant string in every member, and the constants."""
        schemas = [self._object(member) for member in members]
        for name in schemas[0].get("properties", {}):
            constants = [_constant(schema, name) for schema in schemas]
            found = [constant for constant in constants if constant is not None]
            if len(found) == len(set(found)) == len(members):
                return name, found
        return None

    def _object(self, member: Any) -> Schema:
        """The object schema behind a member, empty when it is none."""
        schema = member
        while (name := alias(schema)) is not None:
            schema = self._module.definition(name)
        return schema if is_schema(schema) and types_of(schema) == ("object",) else {}


def _without_when(member: Any) -> Any:
    return {key: value for key, value in member.items() if key != WHEN} if is_schema(member) else member


def _constant(schema: Schema, name: str) -> str | None:
    child = schema.get("properties", {}).get(name, {})
    constant = child.get("const") if is_schema(child) else None
    return constant if isinstance(constant, str) and name in schema.get("required", []) else None


def _test(when: Schema, variable: str) -> str:
    """``x-when`` as an expression over an object, or over the items of a list."""
    ((path, wanted),) = when.items()
    if variable == "items" or "." in path:
        return f"has({variable}, {', '.join(map(literal, path.split('.')))})"
    if wanted is True:
        return f"{literal(path)} in {variable}"
    if isinstance(wanted, str):
        return f"{variable}.get({literal(path)}) == {literal(wanted)}"
    return f"{variable}.get({literal(path)}) in {tuple_of(wanted)}"
