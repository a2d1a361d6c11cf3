"""Every violation is reported, each with the exact pointer and a short account of what was there."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from tests.codegen.guard_values import LATEST, REVISIONS, near_miss, quiet, seeds, valid_value, validator

from typedmcp_wire import guards
from typedmcp_wire.guards import Violation


def resolve(value: Any, pointer: str) -> Any:
    """What a JSON Pointer leads to; raises when it leads nowhere."""
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def escaped(path: list[Any]) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def jsonschema_pointers(value: Any, definition: str, revision: str) -> set[str] | None:
    """Where jsonschema finds fault, missing members named; None when it met a union, which it does not look into."""
    found: set[str] = set()
    for error in validator(revision, definition).iter_errors(value):
        path = list(error.absolute_path)
        if error.validator == "anyOf":
            return None
        if error.validator == "required":
            found |= {escaped([*path, name]) for name in error.validator_value if name not in error.instance}
        else:
            found.add(escaped(path))
    return found


@pytest.mark.parametrize("revision", REVISIONS)
@settings(quiet, max_examples=150)
@given(seed=seeds)
def test_pointers_are_jsonschemas(revision: str, seed: int) -> None:
    rng = random.Random(seed)
    definition = rng.choice(guards.definitions(revision))
    value = valid_value(revision, definition, rng)
    for _ in range(3):
        value = near_miss(value, rng)
        found = guards.explain(value, definition, revision)
        for violation in found:
            if violation.found == "nothing":
                parent, _, last = violation.pointer.rpartition("/")
                assert last.replace("~1", "/").replace("~0", "~") not in resolve(value, parent)
            else:
                resolve(value, violation.pointer)
        wanted = jsonschema_pointers(value, definition, revision)
        if wanted is not None:
            assert {violation.pointer for violation in found} == wanted
            assert len(found) == len(wanted)


def tools_result() -> dict[str, Any]:
    tools = [
        {"name": f"t{n}", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}} for n in range(5)
    ]
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "public", "tools": tools}


def test_every_violation_is_reported() -> None:
    value = tools_result()
    value["tools"][3]["inputSchema"]["type"] = "array"
    value["tools"][0]["annotations"]["readOnlyHint"] = "yes"
    del value["tools"][1]["name"]
    assert guards.explain(value, "ListToolsResult", LATEST) == (
        Violation("/tools/0/annotations/readOnlyHint", "boolean", 'string "yes"'),
        Violation("/tools/1/name", "string", "nothing"),
        Violation("/tools/3/inputSchema/type", '"object"', 'string "array"'),
    )


def test_messages_are_one_sentence() -> None:
    (inside,) = guards.explain({"name": 1, "version": "1"}, "Implementation", LATEST)
    assert inside.message == "expected string at /name, found integer 1"
    (root,) = guards.explain([1, 2], "Implementation", LATEST)
    assert root.message == "expected object, found array with 2 items"


def test_keys_are_escaped() -> None:
    value = {"type": "object", "properties": {"a/b~c": {"type": "string"}, "": {"type": 5}, "{x}": 1, "\ud800": 1}}
    found = guards.explain(value, "ElicitRequestedSchema", LATEST)
    assert [entry.pointer for entry in found] == ["/properties//type", "/properties/{x}", "/properties/\ud800"]
    assert [entry.pointer for entry in guards.explain({"a/b~c": 1}, "InputResponses", LATEST)] == ["/a~1b~0c"]
    (meta,) = guards.explain({"io.modelcontextprotocol/serverInfo": 1}, "ResultMetaObject", LATEST)
    assert meta.pointer == "/io.modelcontextprotocol~1serverInfo"


def test_a_union_reports_its_tagged_member() -> None:
    blocks = [{"type": "text", "text": 5}, {"type": "bogus"}, {"text": "x"}, 7]
    found = guards.explain({"content": blocks, "resultType": "complete"}, "CallToolResult", LATEST)
    kinds = '"text", "image", "audio", "resource_link" or "resource"'
    assert found == (
        Violation("/content/0/text", "string", "integer 5"),
        Violation("/content/1/type", kinds, 'string "bogus"'),
        Violation("/content/2/type", kinds, "nothing"),
        Violation("/content/3", "object", "integer 7"),
    )


@pytest.mark.parametrize(
    ("definition", "value", "pointers"),
    [
        ("ElicitRequestParams", {"mode": "url", "message": "m", "elicitationId": "e"}, ["/url"]),
        ("AnyResourceContents", {"uri": "x", "blob": 1}, ["/blob"]),
        ("AnyResourceContents", {"uri": 5, "text": "x"}, ["/uri"]),
        ("JSONRPCMessage", {"jsonrpc": "2.0", "id": 1, "method": 5}, ["/method"]),
        ("InputResponse", {"action": "agree"}, ["/action"]),
        ("PrimitiveSchemaDefinition", {"type": "array", "items": {"anyOf": 1}}, ["/items/anyOf"]),
        ("PrimitiveSchemaDefinition", {"type": "integer", "minimum": "x"}, ["/minimum"]),
        ("PrimitiveSchemaDefinition", {"type": "string", "minLength": "x"}, ["/minLength"]),
        ("ElicitedValue", [1, "x", 2], ["/0", "/2"]),
        ("ElicitedValue", {}, [""]),
        ("SamplingMessage", {"role": "user", "content": [{"type": "text"}]}, ["/content/0/text"]),
        ("ServerResult", {}, [""]),
        ("JSONValue", {"a": [1, {"b/": object()}]}, ["/a/1/b~1"]),
    ],
)
def test_a_union_reports_its_picked_member(definition: str, value: Any, pointers: list[str]) -> None:
    assert [entry.pointer for entry in guards.explain(value, definition, LATEST)] == pointers


def test_a_batch_is_told_by_its_items() -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "x"}
    assert guards.is_valid([request], "JSONRPCMessage", "2025-03-26")
    (found,) = guards.explain([request, {**request, "method": 5}], "JSONRPCMessage", "2025-03-26")
    assert found.pointer == "/1/method"
    assert not guards.is_valid([request], "JSONRPCMessage", "2025-06-18")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "null"),
        (True, "true"),
        (1.0, "integer 1.0"),
        (1.5, "number 1.5"),
        (float("nan"), "number nan"),
        ("a\n", 'string "a\\n"'),
        ("\ud800", "string '\\ud800'"),
        ([], "empty array"),
        ([1], "array with 1 item"),
        (10**5000, "integer of 16610 bits"),
        (b"x", "Python object of type bytes"),
    ],
    ids=range(11),
)
def test_what_was_found_is_described_shortly(value: object, found: str) -> None:
    assert guards.explain(value, "Implementation", LATEST) == (Violation("", "object", found),)


def test_long_values_are_cut() -> None:
    (violation,) = guards.explain("x" * 10**6, "Implementation", LATEST)
    assert violation.found.startswith("string of 1000000 characters, ")
    assert len(violation.found) < 120
