"""The source seen as Python: one superset of all revisions, each definition classified.

Rules:
- A definition is a *struct* (an object with named properties), *open* (an object whose unknown keys must survive: a
  ``dict``), a *union* (``anyOf``), or an *alias* (a scalar, an array, a map, another definition).
- A union is *tagged* when every member struct fixes the same property to a different constant, *picked* when it needs
  ``x-when`` to choose, *plain* when JSON kinds tell the members apart, and *open* when a member is open.
- A field is required only when every revision that has the definition has and requires the property.
- An optional field whose schema admits null is UNSET when absent; any other optional field is None.
"""

from __future__ import annotations

import functools
import keyword
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from typedmcp_codegen import projection
from typedmcp_codegen.source import Schema, Source, SourceError, pointer, resolve

# Constants that say what a struct is; any other constant is an ordinary field with a default.
TAG_FIELDS = ("type", "method", "mode", "action")
_NAMES = {"_meta": "meta", "$schema": "schema_"}


class Kind(StrEnum):
    """What a definition is in Python."""

    STRUCT = "struct"
    OPEN = "open"
    UNION = "union"
    ALIAS = "alias"


class Absence(StrEnum):
    """What stands in Python for a member that is not on the wire."""

    REQUIRED = "required"
    NONE = "none"
    UNSET = "unset"
    CONSTANT = "constant"


@dataclass(frozen=True)
class Field:
    """One property of a struct."""

    wire: str
    name: str
    schema: Schema
    absence: Absence
    description: str
    constant: str | int | None = None


@dataclass(frozen=True)
class Member:
    """One choice of a union, flattened: a definition, or an inline array or scalar schema."""

    schema: Schema
    definition: str | None
    when: Schema | None


@dataclass(frozen=True)
class Definition:
    """One definition, classified."""

    domain: str
    name: str
    kind: Kind
    schema: Schema
    description: str
    fields: tuple[Field, ...] = ()
    tag: tuple[str, str] | None = None
    """Property and constant, for a struct that one property identifies."""
    members: tuple[Member, ...] = field(default=())
    picked: bool = False


def snake(name: str) -> str:
    """The Python spelling of a wire name: ``inputSchema`` becomes ``input_schema``."""
    if name in _NAMES:
        return _NAMES[name]
    spaced = re.sub(r"(?<=[a-z0-9])([A-Z])|(?<=[A-Z])([A-Z])(?=[a-z])", r"_\1\2", re.sub(r"\W", "_", name))
    lowered = spaced.lower()
    return f"{lowered}_" if keyword.iskeyword(lowered) else lowered


class Model:
    """Every definition of a source, looked up by name and classified once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._places = {
            name: (domain, schema)
            for domain, document in source.documents.items()
            for name, schema in document["$defs"].items()
        }

    def names(self) -> list[str]:
        return list(self._places)

    def domain(self, name: str) -> str:
        return self._places[name][0]

    def reference(self, domain: str, schema: Schema) -> str:
        """The definition name a ``$ref`` inside `domain` means."""
        return resolve(self.source, f"{domain}.json", (), schema["$ref"])[1]

    @functools.cache  # noqa: B019 - one model lives as long as the generator runs
    def definition(self, name: str) -> Definition:
        domain, schema = self._places[name]
        kind = self._kind(domain, schema)
        description = schema.get("description", "")
        if kind is Kind.STRUCT:
            fields = tuple(self._field(domain, name, schema, wire) for wire in schema["properties"])
            self._refuse_doubles(domain, name, fields)
            tag = self._tag(schema)
            return Definition(domain, name, kind, schema, description, fields, tag)
        if kind is Kind.UNION:
            members = tuple(self._members(domain, schema))
            picked = any(member.when is not None for member in members) or self._untagged_structs(members)
            if picked and all(member.when is None for member in members):
                place = pointer("$defs", name, "anyOf")
                raise SourceError(f"{domain}.json", place, "members share no constant; tell them apart with x-when")
            return Definition(domain, name, kind, schema, description, members=members, picked=picked)
        return Definition(domain, name, kind, schema, description)

    def _refuse_doubles(self, domain: str, owner: str, fields: tuple[Field, ...]) -> None:
        owners: dict[str, str] = {}
        for entry in fields:
            place = pointer("$defs", owner, "properties", entry.wire)
            if not entry.name.isidentifier():
                raise SourceError(f"{domain}.json", place, f"{entry.name!r} is no Python identifier")
            if owners.setdefault(entry.name, entry.wire) != entry.wire:
                text = f"is {entry.name} in Python, as {owners[entry.name]!r} is"
                raise SourceError(f"{domain}.json", place, text)

    def _kind(self, domain: str, schema: Schema) -> Kind:
        if "anyOf" in schema:
            members = list(self._members(domain, schema))
            if any(member.definition and self.definition(member.definition).kind is Kind.OPEN for member in members):
                return Kind.OPEN
            return Kind.UNION
        if "$ref" in schema:
            target = self.definition(self.reference(domain, schema))
            return Kind.OPEN if target.kind is Kind.OPEN else Kind.ALIAS
        if schema.get("type") == "object":
            if schema.get("additionalProperties") is True or set(schema) <= {
                "type",
                "description",
                "x-since",
                "x-until",
            }:
                return Kind.OPEN
            return Kind.STRUCT if "properties" in schema else Kind.ALIAS
        return Kind.ALIAS

    def _members(self, domain: str, schema: Schema) -> list[Member]:
        """The choices of a union; a member that is itself a union gives its own choices in its place."""
        out: list[Member] = []
        for member in schema["anyOf"]:
            when = member.get("x-when")
            if "$ref" not in member:
                out.append(Member(member, None, when))
                continue
            name = self.reference(domain, member)
            inner = self._places[name]
            while set(inner[1]) - {"description", "x-since", "x-until"} == {"$ref"}:
                name = self.reference(inner[0], inner[1])
                inner = self._places[name]
            if "anyOf" in inner[1] and when is None:
                out.extend(self._members(*inner))
            else:
                out.append(Member(member, name, when))
        unique: dict[str, Member] = {}
        for index, choice in enumerate(out):
            unique.setdefault(choice.definition or f"#{index}", choice)
        return list(unique.values())

    def _untagged_structs(self, members: tuple[Member, ...]) -> bool:
        """Whether more than one member is a struct and one constant does not tell them apart."""
        structs = [
            self.definition(member.definition)
            for member in members
            if member.definition and self.definition(member.definition).kind is Kind.STRUCT
        ]
        if len(structs) < 2:
            return False
        tags = {struct.tag for struct in structs}
        return None in tags or len(tags) != len(structs) or len({tag[0] for tag in tags if tag}) != 1

    def _tag(self, schema: Schema) -> tuple[str, str] | None:
        for wire in TAG_FIELDS:
            child = schema["properties"].get(wire, {})
            if isinstance(child.get("const"), str) and wire in schema.get("required", []):
                return wire, child["const"]
        return None

    def _field(self, domain: str, owner: str, parent: Schema, wire: str) -> Field:
        schema = parent["properties"][wire]
        constant = schema.get("const")
        absence = Absence.REQUIRED
        if not self._always_required(parent, wire, schema):
            absence = Absence.UNSET if self._admits_null(domain, schema) else Absence.NONE
        elif constant is not None:
            absence = Absence.CONSTANT
        return Field(wire, snake(wire), schema, absence, schema.get("description", ""), constant)

    def _always_required(self, parent: Schema, wire: str, schema: Schema) -> bool:
        revisions = [name for name in self.source.revision_names if projection.exists(parent, name)]
        return all(
            projection.exists(schema, name) and projection.required_in(wire, schema, parent, name) for name in revisions
        )

    def _admits_null(self, domain: str, schema: Schema) -> bool:
        if "$ref" in schema:
            name = self.reference(domain, schema)
            return self._admits_null(*self._places[name])
        if "anyOf" in schema:
            return any(self._admits_null(domain, member) for member in schema["anyOf"])
        kinds: Any = schema.get("type")
        if kinds is None:
            return "const" not in schema and "enum" not in schema
        return "null" in kinds if isinstance(kinds, list) else kinds == "null"
