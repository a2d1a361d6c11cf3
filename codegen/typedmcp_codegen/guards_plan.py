"""Which guards are equal, and which module each is written in.

Two revisions share a definition's guard when its schema is the same in both and so is everything it refers to.
A shared guard lives in the module of the oldest revision that has it, and imports only ever lead from a newer module
to an older one: what a new revision brings leaves the modules of the others as they are.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

from typedmcp_codegen.projection import project
from typedmcp_codegen.source import Schema, Source, SourceError, walk

WHEN = "when"
"""The key under which a projected union member keeps its ``x-when``."""
# Keywords that never change a verdict.
_SILENT = frozenset({"description", "format"})


@dataclass(frozen=True)
class Plan:
    """The definitions of all revisions, and where the guard of each is written."""

    definitions: dict[str, dict[str, Any]]
    """Revision to its definitions, without the keywords that have no say."""
    homes: dict[tuple[str, str], str]
    """Revision and definition to the revision whose module holds the guard."""

    def follow(self, revision: str, name: str) -> str:
        """`name`, or what it stands for when it is only another name for something.

        Raises:
            SourceError: the names lead round in a circle.
        """
        seen = {name}
        while (referred := alias(self.definitions[revision][name])) is not None:
            if referred in seen:
                raise SourceError("", f"/$defs/{name}", f"refers to nothing but itself in {revision}")
            seen.add(referred)
            name = referred
        return name

    def written(self, revision: str) -> Iterator[tuple[str, Any]]:
        """The definitions whose guards belong into the module of `revision`, names of others left out."""
        for name, schema in self.definitions[revision].items():
            if self.homes[revision, name] == revision and alias(schema) is None:
                yield name, schema


def plan(source: Source) -> Plan:
    """Project every revision and find the equal guards."""
    kept = _keep_when(source)
    definitions = {
        revision: {name: stripped(schema) for name, schema in project(kept, revision)["$defs"].items()}
        for revision in source.revision_names
    }
    classes = _classes(definitions)
    oldest: dict[int, str] = {}
    for (revision, _), number in classes.items():
        oldest[number] = min(revision, oldest.get(number, revision))
    return Plan(definitions, {key: oldest[number] for key, number in classes.items()})


def is_schema(value: Any) -> TypeGuard[Schema]:
    """Whether a schema is an object, neither true nor false."""
    return isinstance(value, dict)


def alias(schema: Any) -> str | None:
    """The definition that `schema` is merely another name for."""
    if is_schema(schema) and "$ref" in schema and set(schema) <= {"$ref", WHEN}:
        return target(schema["$ref"])
    return None


def target(reference: str) -> str:
    """The definition a reference of a projection names."""
    return reference.rpartition("/")[2]


def stripped(schema: Any) -> Any:
    """`schema` without the keywords that have no say in a verdict."""
    if not is_schema(schema):
        return schema
    out: Schema = {}
    for key, value in schema.items():
        if key in _SILENT:
            continue
        if key == "properties":
            out[key] = {name: stripped(child) for name, child in value.items()}
        elif key == "anyOf":
            out[key] = [stripped(member) for member in value]
        elif key in ("items", "additionalProperties"):
            out[key] = stripped(value)
        else:
            out[key] = value
    return out


def _keep_when(source: Source) -> Source:
    """A copy of `source` whose ``x-when`` the projection does not drop."""
    documents = copy.deepcopy(source.documents)
    for document in documents.values():
        for schema in document["$defs"].values():
            for _, node in walk(schema, ()):
                if "x-when" in node:
                    node[WHEN] = node.pop("x-when")
    return dataclasses.replace(source, documents=documents)


def _classes(definitions: dict[str, dict[str, Any]]) -> dict[tuple[str, str], int]:
    """A number for every revision and definition; equal guards have equal numbers.

    References may form cycles, so equality is found from the coarse side: all that look alike start in one class,
    and a class splits as long as its members refer to different classes.
    """
    looks = {
        (revision, name): json.dumps([name, schema])
        for revision, schemas in definitions.items()
        for name, schema in schemas.items()
    }
    references = {
        (revision, name): [(revision, found) for found in _references(schema)]
        for revision, schemas in definitions.items()
        for name, schema in schemas.items()
    }
    numbers: dict[Any, int] = {}
    classes = {key: numbers.setdefault(look, len(numbers)) for key, look in looks.items()}
    while True:
        split: dict[Any, int] = {}
        finer = {
            key: split.setdefault((number, *(classes[found] for found in references[key])), len(split))
            for key, number in classes.items()
        }
        if len(split) == len(set(classes.values())):
            return finer
        classes = finer


def _references(schema: Any) -> Iterator[str]:
    for _, node in walk(schema, ()):
        if "$ref" in node:
            yield target(node["$ref"])
