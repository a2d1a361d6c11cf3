"""Keywords and mixtures the protocol does not use yet are judged as jsonschema does too."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry
from tests.codegen.guard_values import POOL, quiet

from typedmcp_codegen.guards import emit
from typedmcp_codegen.source import Source, SourceError, load

Schema = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
REVISION = "2026-07-28"
DEFINITIONS: dict[str, Any] = {
    "Anything": {},
    "Integer": {"type": "integer", "minimum": -2, "maximum": 3},
    "AtLeast": {"type": "number", "minimum": 0.5},
    "AtMost": {"maximum": 1},
    "Mixed": {"type": ["integer", "string", "null"], "minimum": 1, "minLength": 1},
    "Short": {"type": "string", "minLength": 1, "maxLength": 3},
    "Pattern": {"type": "string", "pattern": "^[a-z]+$"},
    "UntypedPattern": {"pattern": "^x"},
    "Constants": {"enum": [1, True, None, "x", 1.5, [1, {"a": 0}], {"a": [None]}]},
    "Numbers": {"enum": [1, 2]},
    "Words": {"type": ["string", "null"], "enum": ["x", "text", None, 5]},
    "Nothing": {"type": "string", "const": 5},
    "ConstantInEnum": {"const": "x", "enum": ["x", "y"]},
    "ConstantAndBound": {"enum": [1, 5, "xxxx"], "maximum": 2, "maxLength": 2},
    "Few": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
    "Matrix": {"type": "array", "items": {"type": "array", "items": {"$ref": "#/$defs/Integer"}, "minItems": 1}},
    "UntypedItems": {"items": {"type": "string"}, "minItems": 1},
    "Strict": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "{x}\"'\\": {}},
        "additionalProperties": False,
    },
    "Required": {"type": "object", "properties": {"a": {}, "b": {"type": "null"}}, "required": ["a", "b"]},
    "UntypedObject": {"properties": {"a": {"type": "string"}}, "required": ["a"]},
    "MaybeObject": {"type": ["object", "null"], "properties": {"a": {"const": 1}}, "required": ["a"]},
    "MapOfMaps": {
        "type": "object",
        "additionalProperties": {"type": "object", "additionalProperties": {"type": "array", "items": {"enum": [0]}}},
    },
    "Nested": {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/Nested"}}, "required": ["a"]}},
    },
    "Alias": {"$ref": "#/$defs/Strict"},
    "Both": {"$ref": "#/$defs/UntypedObject", "properties": {"b": {"type": "integer"}}, "required": ["b"]},
    "Overlapping": {"anyOf": [{"type": "integer"}, {"type": "number", "minimum": 2}, {"$ref": "#/$defs/Short"}]},
    "Kinds": {
        "anyOf": [
            {"$ref": "#/$defs/Few"},
            {"type": ["string", "null"]},
            {"type": "object", "properties": {"a": {}}, "required": ["a"]},
        ]
    },
    "WithRest": {"anyOf": [{"required": ["a"], "properties": {"a": {}}}, {"type": "array"}], "minItems": 1},
    "Tagged": {
        "anyOf": [
            {"type": "object", "properties": {"type": {"const": "text"}, "a": {"type": "null"}}, "required": ["type"]},
            {"type": "object", "properties": {"type": {"const": "x"}}, "required": ["type"]},
        ]
    },
    "OptionalTag": {
        "anyOf": [
            {"type": "object", "properties": {"type": {"const": "text"}, "a": {"type": "string"}}, "required": ["a"]},
            {"type": "object", "properties": {"type": {"const": "x"}}, "required": ["type"]},
        ]
    },
    "When": {
        "anyOf": [
            {"$ref": "#/$defs/Required", "x-when": {"b": True}},
            {"$ref": "#/$defs/UntypedObject", "x-when": {"type": ["text", "x"]}},
            {"$ref": "#/$defs/Strict"},
        ]
    },
    "WhenOnly": {
        "anyOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "x-when": {"a": True}},
            {"type": "object", "properties": {"b": {"type": "string"}}, "x-when": {"b.c": True}},
        ]
    },
}  # fmt: skip
MEMBERS = [
    {},
    {"a": 1},
    {"a": "x"},
    {"b": None},
    {"a": {}, "b": None},
    {"a": "x", "b": 1},
    {"{x}\"'\\": 1},
    {"b": {"c": 1}},
]
LISTS = [
    [1],
    [1, 2.0],
    [1, 2, 3],
    [[]],
    [[1, 9]],
    [[0], [1]],
    ["x", 1],
    [1, {"a": 0.0}],
    {"a": [None]},
    {"a": {"b": [0]}},
]
VALUES = [
    *POOL,
    *MEMBERS,
    *LISTS,
    *({"type": tag, "a": "x"} for tag in ("text", "x", "y", 1)),
    2,
    2.5,
    "abc",
    "xxxx",
    "X",
]

SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 4) | st.sampled_from([1.0, 0.5, 2.5, "", "x", "ab", "text", "long"])
)
KEYS = st.sampled_from(["a", "b", "c", "type", "{x}\"'\\"])
JSON = st.recursive(SCALARS, lambda child: st.lists(child, max_size=3) | st.dictionaries(KEYS, child, max_size=3))


def source_of(definitions: Schema) -> Source:
    return Source(
        documents={"base": {"$id": "base.json", "$defs": definitions}},
        methods={},
        revisions={"revisions": [{"name": REVISION, "era": "modern"}]},
        digest="0",
    )


def compiled(definitions: Schema) -> Schema:
    """The table of guards generated from the definitions alone."""
    namespace: Schema = {"__name__": "generated"}
    exec(emit(source_of(definitions))["guards/r2026_07_28.py"], namespace)
    return namespace["GUARDS"]


GUARDS = compiled(DEFINITIONS)


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": DEFINITIONS}, registry=Registry())


@pytest.mark.parametrize("name", DEFINITIONS)
def test_fixed_values(name: str) -> None:
    judge = validator(name)
    for value in VALUES:
        assert (GUARDS[name](value) is None) == judge.is_valid(value), value


@pytest.mark.parametrize("name", DEFINITIONS)
@settings(quiet, max_examples=60)
@given(value=JSON)
def test_generated_values(name: str, value: Any) -> None:
    assert (GUARDS[name](value) is None) == validator(name).is_valid(value)


def test_pointers_inside_maps_and_lists() -> None:
    def pointers(name: str, value: object) -> list[str]:
        return [entry.pointer for entry in GUARDS[name](value) or ()]

    assert pointers("Matrix", [[1], [], [0, 9]]) == ["/1", "/2/1"]
    assert pointers("MapOfMaps", {"a/b": {"~": [0, 1]}, "c": 1}) == ["/a~1b/~0/1", "/c"]
    assert pointers("Strict", {"a": 1, "{b}": 2}) == ["/a", "/{b}"]
    assert pointers("Required", {}) == ["/a", "/b"]
    assert pointers("Nested", {"a": {"a": {"a": {}}}}) == ["/a/a/a/a"]


def test_output_is_the_same_every_time_and_descriptions_have_no_say() -> None:
    source = load(ROOT / "schema")
    bare = dataclasses.replace(source, documents=_undescribed(source.documents))
    assert emit(source) == emit(source) == emit(bare)


def _undescribed(node: Any) -> Any:
    if isinstance(node, dict):
        return {k: _undescribed(v) for k, v in node.items() if not (k == "description" and isinstance(v, str))}
    return [_undescribed(child) for child in node] if isinstance(node, list) else node


def test_a_change_deep_down_splits_all_that_refer_to_it() -> None:
    definitions = {
        "Top": {"type": "object", "properties": {"middle": {"$ref": "#/$defs/Middle"}}},
        "Middle": {"type": "array", "items": {"$ref": "#/$defs/Bottom"}},
        "Bottom": {"type": "object", "properties": {"new": {"type": "string", "x-since": REVISION}}},
        "Loop": {"type": "object", "properties": {"loop": {"$ref": "#/$defs/Loop"}}},
    }
    source = dataclasses.replace(
        source_of(definitions),
        revisions={"revisions": [{"name": "2025-01-01", "era": "handshake"}, {"name": REVISION, "era": "modern"}]},
    )
    older, newer = (emit(source)[f"guards/{name}.py"] for name in ("r2025_01_01", "r2026_07_28"))
    for name in ("top", "middle", "bottom"):
        assert f"def check_{name}(" in older
        assert f"def check_{name}(" in newer
    assert "def check_loop(" not in newer
    assert "from typedmcp_wire.guards.r2025_01_01 import check_loop" in newer


def test_names_that_lead_in_a_circle_are_refused() -> None:
    with pytest.raises(SourceError, match="refers to nothing but itself"):
        emit(source_of({"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}))
