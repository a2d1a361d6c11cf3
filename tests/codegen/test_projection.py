"""One revision's plain schema out of the annotated source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.codegen import schemas

from typedmcp_codegen.projection import at, dangling, exists, project, required_in
from typedmcp_codegen.source import Source

ONE, TWO, THREE = "2001-01-01", "2002-02-02", "2003-03-03"
ALL = (ONE, TWO, THREE)


def seen(schema: Any) -> list[Any]:
    """A schema as each revision has it."""
    return [at(schema, revision) for revision in ALL]


@pytest.mark.parametrize(
    ("node", "revisions"),
    [
        ({}, ALL),
        ({"x-since": TWO}, (TWO, THREE)),
        ({"x-until": TWO}, (ONE, TWO)),
        ({"x-since": TWO, "x-until": TWO}, (TWO,)),
    ],
)
def test_both_ends_of_a_span_are_part_of_it(node: dict[str, str], revisions: tuple[str, ...]) -> None:
    assert tuple(name for name in ALL if exists(node, name)) == revisions


def test_definitions(tmp_path: Path) -> None:
    text = {"type": "string"}
    source = schemas.tiny(tmp_path, {"B": {**text, "x-since": TWO}, "A": text, "C": {**text, "x-until": ONE}})
    assert [list(project(source, name)["$defs"]) for name in ALL] == [["A", "C"], ["A", "B"], ["A", "B"]]


def test_properties_and_their_requirement() -> None:
    schema = {
        "type": "object",
        "properties": {
            "always": {"type": "string"},
            "late": {"type": "string", "x-since": TWO},
            "early": {"type": "string", "x-until": ONE},
            "free": {"type": "string"},
        },
        "required": ["late", "always", "early"],
    }
    assert [list(found["properties"]) for found in seen(schema)] == [
        ["always", "early", "free"],
        ["always", "late", "free"],
        ["always", "late", "free"],
    ]
    assert [found["required"] for found in seen(schema)] == [
        ["always", "early"],
        ["always", "late"],
        ["always", "late"],
    ]
    assert "x-" not in json.dumps(seen(schema))


@pytest.mark.parametrize(
    ("annotations", "required"),
    [
        ({}, (False, False, False)),
        ({"x-required-since": TWO}, (False, True, True)),
        ({"x-required-until": TWO}, (True, True, False)),
        ({"x-required-since": TWO, "x-required-until": TWO}, (False, True, False)),
        ({"x-required-until": ONE, "x-required-since": THREE}, (True, False, True)),
        ({"x-required-until": ONE, "x-required-since": TWO}, (True, True, True)),
        ({"x-required-since": TWO, "x-since": TWO}, (False, True, True)),
        ({"x-required-until": TWO, "x-since": TWO}, (False, True, False)),
    ],
)
def test_required_in_some_revisions(annotations: dict[str, str], required: tuple[bool, ...]) -> None:
    """The gap among them: until before since means all but what lies between."""
    child = {"type": "string", **annotations}
    parent = {"type": "object", "properties": {"a": child}}
    assert tuple("a" in found.get("required", []) for found in seen(parent)) == required
    assert tuple(exists(child, name) and required_in("a", child, parent, name) for name in ALL) == required


def test_members_of_a_union_and_what_is_left_of_it() -> None:
    text, whole, null = {"type": "string"}, {"type": "integer"}, {"type": "null"}
    schema = {
        "description": "d",
        "anyOf": [text, {**whole, "x-since": TWO}, {**null, "x-since": THREE, "x-until": THREE}],
    }
    assert seen(schema) == [
        {"description": "d", "type": "string"},
        {"description": "d", "anyOf": [text, whole]},
        {"description": "d", "anyOf": [text, whole, null]},
    ]


def test_a_lone_member_keeps_its_own_description() -> None:
    schema = {"description": "union", "anyOf": [{"description": "mine", "type": "string"}]}
    assert at(schema, ONE) == {"description": "mine", "type": "string"}


def test_x_when_is_not_part_of_the_plain_schema() -> None:
    schema = {"anyOf": [{"$ref": "a.json#/$defs/A", "x-when": {"a": True}}, {"$ref": "#/$defs/B"}]}
    assert at(schema, ONE) == {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}


def test_another_shape_in_some_revisions() -> None:
    schema = {
        "description": "d",
        "type": "string",
        "x-since": ONE,
        "x-revisions": [
            {"until": ONE, "schema": {"type": "integer"}},
            {"since": THREE, "schema": {"description": "e", "type": "array", "items": {"$ref": "x.json#/$defs/X"}}},
        ],
    }
    assert seen(schema) == [
        {"description": "d", "type": "integer"},
        {"description": "d", "type": "string"},
        {"description": "e", "type": "array", "items": {"$ref": "#/$defs/X"}},
    ]


def test_annotations_inside_another_shape_count() -> None:
    inner = {"type": "object", "properties": {"a": {"x-since": TWO}, "b": {}}, "required": ["a", "b"]}
    schema = {"type": "string", "x-revisions": [{"until": TWO, "schema": inner}]}
    assert [found.get("required") for found in seen(schema)] == [["b"], ["a", "b"], None]


def test_nested_schemas_are_projected() -> None:
    field = {"type": "object", "properties": {"a": {"type": "string", "x-since": TWO}}}
    for around in ({"type": "array", "items": field}, {"type": "object", "additionalProperties": field}):
        assert [json.dumps(found).count('"a"') for found in seen(around)] == [0, 1, 1]


def test_a_property_named_like_a_keyword_is_a_property() -> None:
    schema = {"type": "object", "properties": {"required": {"type": "string"}, "x-y": {"type": "string"}, "$ref": {}}}
    assert list(at(schema, ONE)["properties"]) == ["required", "x-y", "$ref"]


def test_references_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    definitions = {"A": {"type": "array", "items": {"$ref": "#/$defs/B"}}, "B": {"type": "string", "x-since": TWO}}
    source = schemas.tiny(tmp_path, definitions)
    assert [dangling(project(source, name)) for name in ALL] == [[("A", "B")], [], []]


# --- the project's own schema


def test_the_known_gap_is_there(source: Source) -> None:
    """wire-notes: `requestId` of a cancellation is required but for 2025-11-25."""
    required = {
        name: "requestId" in project(source, name)["$defs"]["CancelledNotificationParams"].get("required", [])
        for name in source.revision_names
    }
    assert [name for name, told in required.items() if not told] == ["2025-11-25"]


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [found for child in node.values() for found in references(child)]
    return [found for child in node for found in references(child)] if isinstance(node, list) else []


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
def test_every_projection_is_a_schema_whose_references_resolve(source: Source, revision: str) -> None:
    document = project(source, revision)
    Draft202012Validator.check_schema(document)
    found = references(document)
    assert len(found) > 100
    assert {reference for reference in found if reference.removeprefix("#/$defs/") not in document["$defs"]} == set()
    assert '"x-' not in json.dumps(document)
    committed = json.loads((schemas.GENERATED / f"schemas/{revision}.schema.json").read_text("utf-8"))
    assert document == committed
    assert list(document["$defs"]) == list(committed["$defs"])
