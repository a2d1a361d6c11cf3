"""The source seen as Python: kinds of definitions, absence, tags, choices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.codegen import schemas

from typedmcp_codegen.model import Absence, Kind, Model, snake
from typedmcp_codegen.source import SourceError
from typedmcp_codegen.types import import_order
from typedmcp_codegen.unions import layout

ONE, TWO, THREE = "2001-01-01", "2002-02-02", "2003-03-03"
TEXT = {"type": "string"}


def thing(**properties: Any) -> dict[str, Any]:
    """An object that requires all its properties."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def ref(name: str, **members: Any) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}", **members}


def made(folder: Path, **definitions: Any) -> Model:
    return Model(schemas.tiny(folder, definitions))


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        ("inputSchema", "input_schema"),
        ("_meta", "meta"),
        ("$schema", "schema_"),
        ("ttlMs", "ttl_ms"),
        ("name", "name"),
        ("websiteUrl", "website_url"),
        ("HTTPServer", "http_server"),
        ("aBC", "a_bc"),
        ("v2Beta", "v2_beta"),
        ("already_snake", "already_snake"),
        ("from", "from_"),
        ("class", "class_"),
        ("my-key", "my_key"),
    ],
)
def test_snake(wire: str, name: str) -> None:
    assert snake(wire) == name


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (thing(a=TEXT), Kind.STRUCT),
        ({"type": "object", "properties": {"a": TEXT}, "additionalProperties": True}, Kind.OPEN),
        ({"type": "object"}, Kind.OPEN),
        ({"type": "object", "description": "d", "x-since": TWO}, Kind.OPEN),
        ({"type": "object", "additionalProperties": TEXT}, Kind.ALIAS),
        ({"type": "array", "items": TEXT}, Kind.ALIAS),
        (TEXT, Kind.ALIAS),
        ({"enum": ["a", "b"], "type": "string"}, Kind.ALIAS),
        (ref("Struct"), Kind.ALIAS),
        (ref("Open"), Kind.OPEN),
        ({"anyOf": [TEXT, {"type": "integer"}]}, Kind.UNION),
        ({"anyOf": [ref("Struct"), TEXT]}, Kind.UNION),
        ({"anyOf": [ref("Open"), TEXT]}, Kind.OPEN),
    ],
)
def test_kinds(tmp_path: Path, schema: dict[str, Any], kind: Kind) -> None:
    model = made(tmp_path, It=schema, Struct=thing(a=TEXT), Open={"type": "object", "additionalProperties": True})
    assert model.definition("It").kind is kind


@pytest.mark.parametrize(
    ("child", "required", "absence"),
    [
        (TEXT, True, Absence.REQUIRED),
        (TEXT, False, Absence.NONE),
        ({**TEXT, "x-since": TWO}, True, Absence.NONE),
        ({**TEXT, "x-until": TWO}, True, Absence.NONE),
        ({**TEXT, "x-required-since": TWO}, False, Absence.NONE),
        ({**TEXT, "x-required-since": ONE}, False, Absence.REQUIRED),
        ({"type": ["string", "null"]}, True, Absence.REQUIRED),
        ({"type": ["string", "null"]}, False, Absence.UNSET),
        ({"type": "null"}, False, Absence.UNSET),
        ({}, False, Absence.UNSET),
        ({"anyOf": [TEXT, {"type": "null"}]}, False, Absence.UNSET),
        (ref("Maybe"), False, Absence.UNSET),
        (ref("Text"), False, Absence.NONE),
        ({"const": "2.0", "type": "string"}, True, Absence.CONSTANT),
        ({"const": "2.0"}, False, Absence.NONE),
        ({"enum": ["a"]}, False, Absence.NONE),
    ],
)
def test_absence(tmp_path: Path, child: dict[str, Any], required: bool, absence: Absence) -> None:
    owner = {"type": "object", "properties": {"a": child}, "required": ["a"] if required else []}
    model = made(tmp_path, It=owner, Maybe={"type": ["integer", "null"]}, Text=TEXT)
    (field,) = model.definition("It").fields
    assert field.absence is absence


def test_required_counts_only_while_the_definition_exists(tmp_path: Path) -> None:
    owner = {**thing(a={**TEXT, "x-since": TWO}), "x-since": TWO}
    (field,) = made(tmp_path, It=owner).definition("It").fields
    assert field.absence is Absence.REQUIRED


@pytest.mark.parametrize(
    ("names", "place", "text"),
    [
        (("fooBar", "foo_bar"), "foo_bar", "is foo_bar in Python, as 'fooBar' is"),
        (("meta", "_meta"), "_meta", "is meta in Python"),
        (("2nd",), "2nd", "'2nd' is no Python identifier"),
        (("",), "", "'' is no Python identifier"),
    ],
)
def test_properties_python_cannot_tell_apart_or_name(
    tmp_path: Path, names: tuple[str, ...], place: str, text: str
) -> None:
    model = made(tmp_path, It=thing(**dict.fromkeys(names, TEXT)))
    with pytest.raises(SourceError) as caught:
        model.definition("It")
    assert str(caught.value).startswith(f"thing.json#/$defs/It/properties/{place}: ")
    assert text in caught.value.problem


@pytest.mark.parametrize(
    ("schema", "tag"),
    [
        (thing(type={"const": "text", "type": "string"}, a=TEXT), ("type", "text")),
        (thing(method={"const": "a/b"}), ("method", "a/b")),
        (thing(type={"const": "text"}, method={"const": "a/b"}), ("type", "text")),
        (thing(jsonrpc={"const": "2.0"}), None),
        (thing(type={"const": 5}), None),
        (thing(type=TEXT), None),
        ({"type": "object", "properties": {"type": {"const": "text"}}}, None),
    ],
)
def test_tags(tmp_path: Path, schema: dict[str, Any], tag: tuple[str, str] | None) -> None:
    assert made(tmp_path, It=schema).definition("It").tag == tag


def tagged(value: str) -> dict[str, Any]:
    return thing(type={"const": value, "type": "string"})


UNIONS: list[tuple[str, list[Any], bool]] = [
    ("tagged", [ref("A"), ref("B")], False),
    ("tagged and text", [ref("A"), ref("B"), TEXT], False),
    ("one struct", [ref("Plain"), TEXT], False),
    ("same tag", [ref("A", **{"x-when": {"extra": True}}), ref("A2")], True),
    ("untagged", [ref("Plain", **{"x-when": {"a": True}}), ref("Other")], True),
    ("half tagged", [ref("A", **{"x-when": {"type": "a"}}), ref("Plain")], True),
]


@pytest.mark.parametrize(("members", "picked"), [case[1:] for case in UNIONS], ids=[case[0] for case in UNIONS])
def test_unions_are_picked_only_when_nothing_else_tells(tmp_path: Path, members: list[Any], picked: bool) -> None:
    model = made(
        tmp_path,
        It={"anyOf": members},
        A=tagged("a"),
        A2=tagged("a"),
        B=tagged("b"),
        Plain=thing(a=TEXT),
        Other=thing(b=TEXT),
    )
    assert model.definition("It").picked is picked


@pytest.mark.parametrize("members", [["Plain", "Other"], ["A", "A2"], ["A", "Plain"]])
def test_a_union_nobody_can_decide_is_refused(tmp_path: Path, members: list[str]) -> None:
    model = made(
        tmp_path,
        It={"anyOf": [ref(name) for name in members]},
        A=tagged("a"),
        A2=tagged("a"),
        Plain=thing(a=TEXT),
        Other=thing(b=TEXT),
    )
    with pytest.raises(SourceError, match=r"thing.json#/\$defs/It/anyOf: .* tell them apart with x-when"):
        model.definition("It")


def test_a_union_inside_a_union_gives_its_choices(tmp_path: Path) -> None:
    model = made(
        tmp_path,
        It={"anyOf": [ref("Inner"), ref("B"), ref("Again")]},
        Inner={"anyOf": [ref("A"), ref("B")]},
        Again=ref("Inner"),
        A=tagged("a"),
        B=tagged("b"),
    )
    assert [member.definition for member in model.definition("It").members] == ["A", "B"]


@pytest.mark.parametrize(
    ("when", "test"),
    [
        ({"blob": True}, 'type(value) is dict and "blob" in value'),
        ({"mode": "url"}, 'type(value) is dict and value.get("mode") == "url"'),
        ({"mode": ["a", "b"]}, 'type(value) is dict and value.get("mode") in ("a", "b")'),
        (
            {"items.anyOf": True},
            'type(value) is dict and type(value.get("items")) is dict and "anyOf" in value["items"]',
        ),
    ],
)
def test_picks(tmp_path: Path, when: dict[str, Any], test: str) -> None:
    model = made(
        tmp_path,
        It={"anyOf": [ref("Plain", **{"x-when": when}), ref("Other")]},
        Plain=thing(a=TEXT),
        Other=thing(b=TEXT),
    )
    assert layout(model, model.definition("It"))["steps"] == [
        {"test": test, "choice": "Plain"},
        {"test": "", "choice": "Other"},
    ]


def test_domains_that_import_each_other_are_refused(tmp_path: Path) -> None:
    folder = schemas.copy(tmp_path)
    schemas.edit(
        folder,
        "base.json",
        lambda d: d["$defs"]["Implementation"]["properties"].update(tool={"$ref": "tools.json#/$defs/Tool"}),
    )
    from typedmcp_codegen.source import load

    with pytest.raises(SourceError, match="imports in a circle with"):
        import_order(Model(load(folder)))


# --- the project's own schema


def test_the_own_wire_is_classified(model: Model) -> None:
    kinds = {name: model.definition(name).kind for name in model.names()}
    assert kinds["Tool"] is Kind.STRUCT
    assert kinds["ToolInputSchema"] is Kind.OPEN
    assert kinds["ContentBlock"] is Kind.UNION
    assert kinds["JSONRPCMessage"] is Kind.UNION
    assert kinds["RequestId"] is Kind.ALIAS
    assert kinds["ClientResult"] is Kind.OPEN
    assert kinds["LoggingLevel"] is Kind.ALIAS
    picked = {name for name in model.names() if model.definition(name).picked}
    assert {"CallToolOutcome", "ElicitRequestParams", "InputResponse", "JSONRPCResponse", "EnumSchema"} <= picked
    assert not {"ContentBlock", "InputRequest", "ClientRequest", "CompletionReference", "RequestId"} & picked


def test_every_domain_stands_after_what_it_needs(model: Model) -> None:
    order = import_order(model)
    assert order.index("base") < order.index("tools") < order.index("calls") < order.index("messages")
