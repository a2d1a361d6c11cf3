"""The generated structs: every decoder builds, absence and constants are as designed, type checkers narrow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Struct
from tests.codegen import schemas

import typedmcp_wire
from typedmcp_codegen.model import Absence, Kind, Model
from typedmcp_wire import convert, decode, encode, history, methods, types
from typedmcp_wire.codec import decoder
from typedmcp_wire.revisions import REVISIONS

# An alias of a struct has the struct's own name.
STRUCTS = [
    name
    for name in types.__all__
    if isinstance(getattr(types, name), type)
    and issubclass(getattr(types, name), Struct)
    and getattr(types, name).__name__ == name
]
PICKED = [name for name in types.__all__ if hasattr(getattr(types, name), "pick")]


# --- every type


@pytest.mark.parametrize("name", types.__all__)
def test_a_decoder_builds(name: str) -> None:
    """wire-notes: importing proves nothing, types resolve at the first decode."""
    assert isinstance(decoder(getattr(types, name)), msgspec.json.Decoder)


def test_every_definition_is_exported(model: Model) -> None:
    assert sorted(types.__all__) == sorted(model.names())


def test_structs_are_what_the_model_says(model: Model) -> None:
    for name in model.names():
        definition = model.definition(name)
        assert (name in STRUCTS) == (definition.kind is Kind.STRUCT), name
        assert (name in PICKED) == definition.picked, name
        if definition.kind is not Kind.STRUCT:
            continue
        kind = getattr(types, name)
        tag = definition.tag
        wanted = {entry.name: entry for entry in definition.fields if tag is None or entry.wire != tag[0]}
        found = {entry.name: entry for entry in msgspec.structs.fields(kind)}
        assert list(found) == list(wanted), name
        for attribute, entry in wanted.items():
            assert found[attribute].encode_name == entry.wire
            assert found[attribute].required == (entry.absence is Absence.REQUIRED), (name, attribute)
        if tag is not None:
            assert (kind.__struct_config__.tag_field, kind.__struct_config__.tag) == tag
            assert getattr(kind, next(entry.name for entry in definition.fields if entry.wire == tag[0])) == tag[1]


def test_structs_are_frozen_and_carry_no_constraints() -> None:
    for name in STRUCTS:
        kind = getattr(types, name)
        assert kind.__struct_config__.frozen, name
        with pytest.raises(TypeError, match="positional"):
            kind("not by position")
        assert "Meta(" not in repr([entry.type for entry in msgspec.structs.fields(kind)]), name


def test_every_definition_and_field_says_what_it_is() -> None:
    for name in (*STRUCTS, *PICKED):
        assert getattr(types, name).__doc__, name
    for path in (schemas.GENERATED / "types").glob("*.py"):
        text = path.read_text("utf-8")
        assert '""""""' not in text
        assert "Since " not in text or path.stem != "_struct"


# --- absence

TASK = {
    "taskId": "1",
    "status": "working",
    "createdAt": "2026-01-01T00:00:00Z",
    "lastUpdatedAt": "2026-01-01T00:00:00Z",
    "ttl": None,
}
# (definition, JSON, attribute, value): encoded again it is the same.
ROUNDS: list[tuple[str, Any, str, Any]] = [
    ("Tool", {"name": "a", "inputSchema": {"type": "object"}}, "description", None),
    ("Tool", {"name": "a", "inputSchema": {"type": "object"}}, "output_schema", None),
    ("Tool", {"name": "a", "description": "", "inputSchema": {}}, "description", ""),
    ("CallToolResult", {"content": []}, "structured_content", UNSET),
    ("CallToolResult", {"content": [], "structuredContent": None}, "structured_content", None),
    ("CallToolResult", {"content": [], "structuredContent": [1, {"a": None}]}, "structured_content", [1, {"a": None}]),
    ("CallToolResult", {"content": [], "isError": False}, "is_error", False),
    ("CallToolResult", {"content": []}, "is_error", None),
    ("Task", TASK, "ttl", None),
    ("Task", {**TASK, "ttl": 5}, "ttl", 5),
    ("Error", {"code": 1, "message": "m"}, "data", UNSET),
    ("Error", {"code": 1, "message": "m", "data": None}, "data", None),
    ("ToolAnnotations", {}, "title", None),
    ("ToolAnnotations", {"readOnlyHint": False}, "read_only_hint", False),
    ("JSONRPCNotification", {"jsonrpc": "2.0", "method": "x"}, "jsonrpc", "2.0"),
    ("JSONRPCRequest", {"jsonrpc": "2.0", "id": 0, "method": "x"}, "id", 0),
    ("ListToolsResult", {"tools": [], "nextCursor": ""}, "next_cursor", ""),
    ("ListToolsResult", {"tools": [], "ttlMs": 0, "cacheScope": "private"}, "ttl_ms", 0),
]


@pytest.mark.req("A-041", "A-043")
@pytest.mark.parametrize(("definition", "value", "attribute", "wanted"), ROUNDS)
def test_absent_null_and_default_survive(definition: str, value: Any, attribute: str, wanted: object) -> None:
    """F087: an absent member is never written as null, a null never lost."""
    struct = decode(json.dumps(value), definition)
    found = getattr(struct, attribute)
    assert found is wanted or found == wanted
    assert json.loads(encode(struct)) == value


def test_a_required_member_that_may_be_null_is_always_written() -> None:
    task = types.Task(task_id="1", status="working", created_at="x", last_updated_at="x", ttl=None)
    assert b'"ttl":null' in encode(task)


def test_constants_are_written_and_are_attributes() -> None:
    block = types.TextContent(text="a")
    assert block.type == "text"
    assert types.TextContent.type == "text"
    assert encode(block) == b'{"type":"text","text":"a"}'
    request = types.PingRequest(id=1)
    assert (request.method, request.jsonrpc) == ("ping", "2.0")
    assert json.loads(encode(request)) == {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with pytest.raises((TypeError, AttributeError)):
        block.type = "image"  # type: ignore[misc, assignment]


def test_a_wrong_constant_is_refused() -> None:
    for text in (
        '{"type":"image","text":"a"}',
        '{"jsonrpc":"1.0","id":1,"method":"ping"}',
        '{"jsonrpc":"2.0","id":1,"method":"x"}',
    ):
        with pytest.raises(msgspec.ValidationError):
            decode(text, "TextContent" if "type" in text else "PingRequest")


# --- what must survive

OPEN: list[tuple[str, Any]] = [
    ("Tool", {"name": "a", "inputSchema": {"type": "object", "x-mine": [1], "$defs": {"A": {}}, "oneOf": []}}),
    ("Tool", {"name": "a", "inputSchema": {}, "outputSchema": {"x": {"y": None}}, "_meta": {"a/b": {"c": 1}}}),
    (
        "CallToolRequestParams",
        {"name": "a", "arguments": {"x": None, "y": [{"z": 1.5}]}, "_meta": {"progressToken": 0}},
    ),
    ("EmptyResult", {"anything": {"at": ["all"]}, "_meta": {}}),
    ("ClientCapabilities", {"experimental": {"mine": {"a": 1}}}),
    ("ServerCapabilities", {"logging": {"x": 1}, "experimental": {}}),
]


@pytest.mark.parametrize(("definition", "value"), OPEN)
def test_unknown_keys_survive_in_open_objects(definition: str, value: Any) -> None:
    """wire-notes: with empty structs only 94 of 129 examples survive."""
    assert json.loads(encode(decode(json.dumps(value), definition))) == value
    assert json.loads(encode(convert(value, definition))) == value


def test_unknown_keys_elsewhere_are_dropped() -> None:
    assert encode(decode('{"name":"a","inputSchema":{},"new":1}', "Tool")) == b'{"name":"a","inputSchema":{}}'


@pytest.mark.parametrize("number", [1, 1.5, 10**15, -0.5])
def test_numbers_keep_their_kind(number: float) -> None:
    """F025, A-030: 1 does not become 1.0."""
    text = json.dumps({"progressToken": "t", "progress": number})
    struct = decode(text, "ProgressNotificationParams")
    assert type(struct.progress) is type(number)
    assert json.loads(encode(struct)) == json.loads(text)


@pytest.mark.req("M-004", "M-006")
@pytest.mark.parametrize("request_id", [0, 1, "", "1", "007", 2**53 + 1])
def test_ids_keep_value_and_type(request_id: object) -> None:
    """F019, F020, F021, F025."""
    struct = decode(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "ping"}), "PingRequest")
    assert struct.id == request_id
    assert type(struct.id) is type(request_id)


# --- unions without a tag

FORM = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
URL = {"mode": "url", "message": "?", "url": "https://a", "elicitationId": "1"}
COMPLETE = {"content": []}
ASKS = {"resultType": "input_required", "requestState": "s"}
CHOICES: list[tuple[str, Any, str]] = [
    ("AnyResourceContents", {"uri": "a:b", "text": ""}, "TextResourceContents"),
    ("AnyResourceContents", {"uri": "a:b", "blob": ""}, "BlobResourceContents"),
    ("ElicitRequestParams", FORM, "ElicitRequestFormParams"),
    ("ElicitRequestParams", {**FORM, "mode": "form"}, "ElicitRequestFormParams"),
    ("ElicitRequestParams", URL, "ElicitRequestURLParams"),
    ("InputResponse", {"action": "cancel"}, "ElicitResult"),
    ("InputResponse", {"roots": []}, "ListRootsResult"),
    ("InputResponse", {"role": "user", "content": {"type": "text", "text": ""}, "model": "m"}, "CreateMessageResult"),
    ("CallToolOutcome", COMPLETE, "CallToolResult"),
    ("CallToolOutcome", {**COMPLETE, "resultType": "complete"}, "CallToolResult"),
    ("CallToolOutcome", {**COMPLETE, "resultType": "odd"}, "CallToolResult"),
    ("CallToolOutcome", ASKS, "InputRequiredResult"),
    ("CallToolOutcome", {"task": TASK}, "CreateTaskResult"),
    ("ReadResourceOutcome", {"contents": []}, "ReadResourceResult"),
    ("GetPromptOutcome", ASKS, "InputRequiredResult"),
    ("JSONRPCResponse", {"jsonrpc": "2.0", "id": 1, "result": {}}, "JSONRPCResultResponse"),
    ("JSONRPCResponse", {"jsonrpc": "2.0", "error": {"code": 1, "message": ""}}, "JSONRPCErrorResponse"),
    ("JSONRPCMessage", {"jsonrpc": "2.0", "id": 1, "method": "x"}, "JSONRPCRequest"),
    ("JSONRPCMessage", {"jsonrpc": "2.0", "method": "x"}, "JSONRPCNotification"),
    ("JSONRPCMessage", {"jsonrpc": "2.0", "id": 1, "result": {}}, "JSONRPCResultResponse"),
    ("PrimitiveSchemaDefinition", {"type": "boolean"}, "BooleanSchema"),
    ("PrimitiveSchemaDefinition", {"type": "integer"}, "NumberSchema"),
    ("PrimitiveSchemaDefinition", {"type": "string"}, "StringSchema"),
    ("PrimitiveSchemaDefinition", {"type": "string", "enum": ["a"]}, "UntitledSingleSelectEnumSchema"),
    ("PrimitiveSchemaDefinition", {"type": "string", "enum": ["a"], "enumNames": ["A"]}, "LegacyTitledEnumSchema"),
    (
        "PrimitiveSchemaDefinition",
        {"type": "string", "oneOf": [{"const": "a", "title": "A"}]},
        "TitledSingleSelectEnumSchema",
    ),
    (
        "PrimitiveSchemaDefinition",
        {"type": "array", "items": {"type": "string", "enum": ["a"]}},
        "UntitledMultiSelectEnumSchema",
    ),
    (
        "PrimitiveSchemaDefinition",
        {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
        "TitledMultiSelectEnumSchema",
    ),
]


@pytest.mark.req("M-014")
@pytest.mark.parametrize(("union", "value", "member"), CHOICES)
def test_a_union_picks_its_member(union: str, value: Any, member: str) -> None:
    """F086: unions without a tag decode to the struct that fits, and are what isinstance says."""
    struct = decode(json.dumps(value), union)
    assert type(struct).__name__ == member
    assert isinstance(struct, getattr(types, union))
    assert json.loads(encode(struct)) == value
    assert type(convert(value, union)) is type(struct)


@pytest.mark.parametrize("name", PICKED)
@pytest.mark.parametrize("value", [None, 5, "text", True, [], [[]], {}, {"type": []}, {"items": 5}])
def test_a_value_that_fits_no_member_is_refused(name: str, value: Any) -> None:
    """Nothing but ValidationError, whatever comes."""
    try:
        struct = decode(json.dumps(value), name)
    except msgspec.ValidationError:
        return
    assert isinstance(struct, getattr(types, name)), "some unions admit it: then it is a member"


@pytest.mark.parametrize("name", PICKED)
def test_isinstance_on_a_picked_union(name: str) -> None:
    union = getattr(types, name)
    for value in (None, 5, "x", {}, object(), types.Root(uri="file:///")):
        assert not isinstance(value, union)


def test_unions_by_tag_are_plain() -> None:
    result = decode(
        '{"content":[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"a/b"},{"type":"resource_link","name":"n","uri":"a:b"}]}',
        types.CallToolResult,
    )
    assert [block.type for block in result.content] == ["text", "image", "resource_link"]
    with pytest.raises(msgspec.ValidationError):
        decode('{"content":[{"type":"video"}]}', types.CallToolResult)


# --- the codec


@pytest.mark.parametrize("name", ["Nothing", "annotations", "UNSET", "__all__", "WireStruct", ""])
def test_a_name_that_is_no_definition_is_refused(name: str) -> None:
    with pytest.raises(LookupError, match="no definition is named"):
        decode(b"{}", name)


def test_what_is_not_json_is_told_from_what_is_another_shape() -> None:
    with pytest.raises(msgspec.DecodeError) as caught:
        decode(b"{", "Tool")
    assert not isinstance(caught.value, msgspec.ValidationError)
    with pytest.raises(msgspec.ValidationError):
        decode(b"{}", "Tool")


# --- table and history


def test_the_table_names_what_exists(model: Model) -> None:
    for method in methods.METHODS.values():
        assert getattr(methods, method.attribute.upper()) is method
        assert method.params is getattr(types, method.params_definition)
        assert method.message_definition in types.__all__
        assert (method.kind == "request") == (method.result_definition is not None)
        assert method.client | method.server | method.carried <= set(REVISIONS)


def test_spans_of_the_history_name_fields_that_exist() -> None:
    assert set(history.FIELDS) <= set(STRUCTS)
    for name, spans in history.FIELDS.items():
        assert set(spans) <= {*getattr(types, name).__struct_fields__, "type", "method", "mode"}, name
    assert set(history.DEFINITIONS) <= set(types.__all__)


# --- type checkers

NARROWING = """
from typing import assert_type
from typedmcp_wire import decode
from typedmcp_wire.client_stub import ClientStub
from typedmcp_wire.types import (
    BlobResourceContents, CallToolOutcome, CallToolResult, ContentBlock, CreateTaskResult, EmbeddedResource,
    InputRequiredResult, TextContent, TextResourceContents, Tool,
)

def text(block: ContentBlock) -> str:
    if block.type == "text":
        assert_type(block, TextContent)
        return block.text
    if block.type == "resource":
        assert_type(block, EmbeddedResource)
        assert_type(block.resource, BlobResourceContents | TextResourceContents)
        return block.resource.uri
    return block.type

def value(outcome: CallToolOutcome) -> bool | None:
    if isinstance(outcome, InputRequiredResult):
        return None
    if isinstance(outcome, CreateTaskResult):
        return None
    assert_type(outcome, CallToolResult)
    return outcome.is_error

async def stub(client: ClientStub) -> None:
    assert_type(await client.call_tool("a", {}), CallToolResult)
    assert_type((await client.list_tools(timeout=None)).tools, list[Tool])

assert_type(decode(b"{}", Tool), Tool)
assert_type(Tool(name="a", input_schema={}).description, str | None)
"""
WRONG = """
from typedmcp_wire.types import ContentBlock, Tool

def text(block: ContentBlock) -> str:
    return block.text  # 1: not every block has one

Tool(name="a")  # 2: a member is missing
Tool(name="a", input_schema={}).name = "b"  # 3: frozen
"""


def test_mypy_narrows_and_refuses(tmp_path: Path) -> None:
    """`block.type == "text"` narrows; what would fail at run time is an error before."""
    (tmp_path / "narrowing.py").write_text(NARROWING)
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--config-file=",
        "narrowing.py",
        "wrong.py",
    ]
    environment = schemas.environment(
        MYPYPATH=str(Path(typedmcp_wire.__file__).parents[1]), MYPY_CACHE_DIR=str(tmp_path / ".c")
    )
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    found = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line for line in found if not line.startswith("wrong.py:")] == [], done.stdout + done.stderr
    assert {line.split(":")[1] for line in found} == {"5", "7", "8"}, done.stdout + done.stderr
