"""A tool's arguments as words."""

from __future__ import annotations

from typing import Any

import pytest

from typedmcp.cli.arguments import allows, arguments_for, read_words
from typedmcp.cli.output import Misuse


def value_for(schema: Any, text: str) -> Any:
    """What ``x=text`` means to a tool whose parameter x has this schema."""
    return arguments_for(read_words([f"x={text}"]), {"type": "object", "properties": {"x": schema}})["x"]


TEXT = {"type": "string"}
MAYBE = {"anyOf": [{"type": "string"}, {"type": "null"}]}


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (TEXT, "12345", "12345"),
        (TEXT, '{"a":1}', '{"a":1}'),
        (TEXT, "null", "null"),
        (TEXT, '"quoted"', '"quoted"'),
        (TEXT, "", ""),
        (TEXT, "a=b", "a=b"),
        ({"type": "integer"}, "12345", 12345),
        ({"type": "integer"}, "1.0", 1.0),
        ({"type": "integer"}, "1.5", "1.5"),
        ({"type": "integer"}, "true", "true"),
        ({"type": "integer"}, "abc", "abc"),
        ({"type": "number"}, "5", 5),
        ({"type": "number"}, "NaN", "NaN"),
        ({"type": "number"}, "1e999", "1e999"),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "1", "1"),
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({"type": "object"}, '{"a": [1]}', {"a": [1]}),
        ({"type": ["integer", "string"]}, "5", 5),
        (MAYBE, "null", None),
        (MAYBE, "5", "5"),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"enum": [1, 2]}, "1", 1),
        ({"enum": [1]}, "true", "true"),
        ({"const": 3}, "3", 3),
        ({"allOf": [{"type": "number"}, TEXT]}, "3", "3"),
        ({}, "3", 3),
        (True, "[", "["),
        ({"$ref": "#/nowhere"}, "3", 3),
        ({"$ref": "other.json"}, "3", 3),
    ],
)
def test_a_value_is_json_only_where_the_schema_has_room_for_it(schema: Any, text: str, value: Any) -> None:
    found = value_for(schema, text)
    assert (found, type(found)) == (value, type(value))


def test_references_are_followed_without_end() -> None:
    root = {"properties": {"x": {"$ref": "#/$defs/a~1b"}}, "$defs": {"a/b": TEXT, "loop": {"$ref": "#/$defs/loop"}}}
    assert arguments_for(read_words(["x=5"]), root) == {"x": "5"}
    assert allows({"$ref": "#/$defs/loop"}, 5, root)


def test_additional_properties_have_a_schema_too() -> None:
    schema = {"properties": {}, "additionalProperties": TEXT}
    assert arguments_for(read_words(["x=5", "y:=5"]), schema) == {"x": "5", "y": 5}


def test_json_on_demand_ignores_the_schema() -> None:
    assert arguments_for(read_words(["x:=5", 'y:="a"']), {"properties": {"x": TEXT}}) == {"x": 5, "y": "a"}


@pytest.mark.parametrize(
    "schema", [{}, {"properties": 5}, {"properties": {"x": 7}}, {"properties": {"x": {"enum": 1}}}]
)
def test_an_odd_schema_is_no_trouble(schema: dict[str, Any]) -> None:
    assert arguments_for(read_words(["x=5"]), schema) == {"x": 5}


def test_one_object_is_all() -> None:
    assert arguments_for(read_words([' {"a": "1"}']), {}) == {"a": "1"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a"], "'a' is no argument; write key=value"),
        (["=a"], "'=a' is no argument"),
        ([":=a"], "':=a' is no argument"),
        (["a=1", "a=2"], "'a' is given twice"),
        (["a:=x"], "a:=x is no JSON"),
        (["a:=NaN"], "NaN is no JSON number"),
        (['{"a"'], "The arguments cannot be read as JSON"),
        (["{}", "a=1"], "'{}' is no argument"),
        (["a:=" + "[" * 100_000], "nests too deeply"),
    ],
)
def test_mistakes_get_advice(words: list[str], message: str) -> None:
    with pytest.raises(Misuse) as caught:
        read_words(words)
    assert message in caught.value.message
    assert caught.value.exit_code == 2
