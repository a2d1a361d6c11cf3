"""Tools that bring a JSON Schema of their own."""

from __future__ import annotations

import copy
import socket
from typing import Any

import pytest
from tests.server.client import ALL, Client, client, text_of

from typedmcp import App, Context
from typedmcp.core.errors import UsageError

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


async def echo(arguments: dict[str, Any]) -> Any:
    """Gives its arguments back."""
    return arguments


def app(schema: dict[str, Any], function: Any = echo, **options: Any) -> App:
    made = App("a")
    made.tool(function, input_schema=schema, **options)
    return made


@pytest.mark.req("M-066", "M-194")
@pytest.mark.parametrize("revision", ALL)
async def test_a_schema_is_listed_untouched(revision: str) -> None:
    before = copy.deepcopy(SCHEMA)
    peer = await client(app(SCHEMA, name="json_schema_2020_12_tool"), revision)
    (tool,) = (await peer.result("tools/list"))["tools"]
    assert tool["inputSchema"] == before
    assert (tool["name"], tool["description"]) == ("json_schema_2020_12_tool", "Gives its arguments back.")
    assert before == SCHEMA


@pytest.mark.req("M-067", "M-206")
@pytest.mark.parametrize("arguments", [{"email": "e"}, {"contactMethod": "phone", "phone": "1"}])
async def test_what_fits_reaches_the_function_as_it_is(arguments: Any) -> None:
    for revision in ALL:
        result = await (await client(app(SCHEMA), revision)).call("echo", arguments)
        assert "isError" not in result


@pytest.mark.req("M-067", "M-200", "H-057", "M-206")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize(
    ("arguments", "pointer"),
    [
        (None, ""),
        ({}, ""),
        ({"email": 5}, "/email"),
        ({"contactMethod": "phone", "email": "e"}, ""),
        ({"email": "e", "address": {"city": 5}}, "/address/city"),
        ({"email": "e", "more": 1}, ""),
    ],
)
async def test_what_does_not_fit_is_refused(revision: str, arguments: Any, pointer: str) -> None:
    peer = await client(app(SCHEMA), revision)
    params = {"name": "echo"} if arguments is None else {"name": "echo", "arguments": arguments}
    answer = await peer.ask("tools/call", params)
    if revision < "2025-11-25":
        assert answer["error"]["code"] == -32602
        assert pointer in {violation["pointer"] for violation in answer["error"]["data"]["violations"]}
    else:
        assert answer["result"]["isError"] is True
        assert f"- {pointer or 'arguments'}: " in text_of(answer["result"])


async def test_the_function_may_take_a_context_and_run_in_a_thread() -> None:
    def plain(context: Context, arguments: dict[str, Any]) -> str:
        return f"{context.method} {arguments}"

    made = app({"type": "object"}, plain)

    @made.tool(input_schema={"type": "object"}, title="T")
    def decorated(arguments: dict[str, int]) -> int:
        return sum(arguments.values())

    peer = Client(made)
    assert text_of(await peer.call("plain", {"a": 1})) == "tools/call {'a': 1}"
    assert text_of(await peer.call("decorated", {"a": 1, "b": 2})) == "3"
    assert (await peer.call("decorated", {"a": "x"}))["isError"] is True


@pytest.mark.req("M-068", "M-069", "M-067")
@pytest.mark.parametrize(
    ("dialect", "known"),
    [
        (None, True),
        ("https://json-schema.org/draft/2020-12/schema", True),
        ("https://json-schema.org/draft/2020-12/schema#", True),
        ("https://json-schema.org/draft/2019-09/schema", True),
        ("http://json-schema.org/draft-07/schema#", True),
        ("http://json-schema.org/draft-06/schema#", True),
        ("http://json-schema.org/draft-04/schema#", True),
        ("https://example.com/mine", False),
        ("https://json-schema.org/draft/2099-01/schema", False),
        ("", False),
        (5, False),
    ],
)
async def test_dialects(dialect: Any, known: bool) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    if dialect is not None:
        schema["$schema"] = dialect
    if known:
        peer = Client(app(schema))
        assert "isError" not in await peer.call("echo", {"a": "x"})
        assert (await peer.call("echo", {"a": 1}))["isError"] is True
    else:
        with pytest.raises(UsageError) as refused:
            app(schema)
        assert repr(dialect) in str(refused.value)
        assert "2020-12" in str(refused.value)


async def test_a_dialect_decides_what_a_keyword_means() -> None:
    tuples = {"type": "array", "items": [{"type": "string"}]}
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"a": tuples}}
    assert (await Client(app(old)).call("echo", {"a": [1]}))["isError"] is True
    with pytest.raises(UsageError, match="not valid"):
        app({"type": "object", "properties": {"a": tuples}})


@pytest.mark.req("M-070", "M-071")
@pytest.mark.parametrize(
    "reference",
    [
        "https://example.com/schema.json",
        "http://127.0.0.1:9/schema.json#/$defs/a",
        "file:///etc/passwd",
        "other.json",
        "#/$defs/nope",
        "#nope",
    ],
)
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
@pytest.mark.parametrize("deep", [False, True])
def test_a_reference_that_leads_elsewhere_is_refused(
    reference: str, keyword: str, deep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("something was fetched")

    monkeypatch.setattr(socket, "socket", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    inner: dict[str, Any] = {keyword: reference}
    if deep:
        inner = {"anyOf": [{"items": {"properties": {"b": inner}}}]}
    with pytest.raises(UsageError) as refused:
        app({"type": "object", "properties": {"a": inner}})
    assert "nothing is fetched" in str(refused.value)


async def test_references_within_the_document_are_fine() -> None:
    schema: dict[str, Any] = {
        "$id": "https://example.com/root",
        "type": "object",
        "$defs": {
            "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "v": {"type": "integer"}}},
            "inner": {"$id": "inner", "$anchor": "here", "type": "string"},
        },
        "properties": {
            "a": {"$ref": "#/$defs/node"},
            "b": {"$ref": "inner"},
            "c": {"$ref": "https://example.com/inner#here"},
            "d": {"const": {"$ref": "https://example.com/data-not-a-reference"}},
        },
    }
    peer = Client(app(schema))
    assert "isError" not in await peer.call("echo", {"a": {"next": {"next": {"v": 1}}}, "b": "x", "c": "y"})
    for wrong in ({"a": {"next": {"v": "x"}}}, {"b": 1}, {"c": 1}):
        assert (await peer.call("echo", wrong))["isError"] is True


@pytest.mark.req("M-072")
async def test_nesting_that_has_no_end_is_refused() -> None:
    peer = Client(app({"type": "object", "allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#/$defs/a"}}}))
    result = await peer.call("echo", {"a": 1})
    assert result["isError"] is True
    assert "too deeply" in text_of(result)


@pytest.mark.req("M-194", "M-067")
@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "array"},
        {"type": ["object"]},
        {"properties": {}},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": {"type": "strnig"}}},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
    ],
)
def test_what_is_no_input_schema(schema: Any) -> None:
    with pytest.raises(UsageError):
        app(schema)


def nothing() -> None: ...


def other(value: dict[str, Any]) -> None: ...


def more(arguments: dict[str, Any], value: int = 1) -> None: ...


@pytest.mark.parametrize("function", [nothing, other, more])
def test_the_function_takes_the_arguments_object(function: Any) -> None:
    with pytest.raises(UsageError, match="named arguments"):
        app({"type": "object"}, function)
