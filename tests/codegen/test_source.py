"""A fault in the schema is told with its file and JSON Pointer, before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.codegen import schemas

from typedmcp_codegen.build import build
from typedmcp_codegen.source import SourceError, load, pointer

Edit = Callable[[Any], object]


def defs(name: str, **members: Any) -> Edit:
    """Put members into a definition."""
    return lambda document: document["$defs"][name].update(members)


def prop(owner: str, name: str, **members: Any) -> Edit:
    """Put members into a property."""
    return lambda document: document["$defs"][owner]["properties"].setdefault(name, {}).update(members)


def method(target: str, **members: Any) -> Edit:
    return lambda document: document["methods"][target].update(members)


def without(name: str, key: str) -> Edit:
    return lambda document: document["methods"][name].pop(key)


def revisions(change: Edit) -> Edit:
    return lambda document: change(document["revisions"])


TOOL = "/$defs/Tool"
NOON = "/methods/tools~1list"
# (file, what is done to it, what the error begins with, what it says)
FAULTS: dict[str, tuple[str, Edit, str, str]] = {
    "bad annotation": (
        "tools.json",
        defs("Tool", **{"x-sinec": "2025-03-26"}),
        f"tools.json#{TOOL}/x-sinec",
        "annotation",
    ),
    "bad annotation of a property": (
        "tools.json",
        prop("Tool", "title", **{"x-required": True}),
        f"tools.json#{TOOL}/properties/title/x-required",
        "annotation",
    ),
    "unknown keyword": ("tools.json", defs("Tool", oneOf=[]), f"tools.json#{TOOL}/oneOf", "keyword"),
    "dangling ref": (
        "tools.json",
        prop("Tool", "title", **{"$ref": "base.json#/$defs/Nowhere"}),
        f"tools.json#{TOOL}/properties/title/$ref",
        "leads nowhere",
    ),
    "ref to a missing file": (
        "tools.json",
        prop("Tool", "title", **{"$ref": "nowhere.json#/$defs/Tool"}),
        f"tools.json#{TOOL}/properties/title/$ref",
        "leads nowhere",
    ),
    "ref of another form": (
        "tools.json",
        prop("Tool", "title", **{"$ref": "https://example.com/x"}),
        f"tools.json#{TOOL}/properties/title/$ref",
        "not of the form",
    ),
    "unknown revision": (
        "tools.json",
        prop("Tool", "title", **{"x-since": "2025-06-19"}),
        f"tools.json#{TOOL}/properties/title/x-since",
        "unknown revision '2025-06-19'; known: 2024-11-05",
    ),
    "unknown revision, required": (
        "tools.json",
        prop("Tool", "title", **{"x-required-since": 2025}),
        f"tools.json#{TOOL}/properties/title/x-required-since",
        "unknown revision",
    ),
    "since after until": (
        "tools.json",
        defs("Tool", **{"x-since": "2025-06-18", "x-until": "2025-03-26"}),
        f"tools.json#{TOOL}/x-until",
        "before x-since",
    ),
    "required names no property": (
        "tools.json",
        defs("Tool", required=["nmae"]),
        f"tools.json#{TOOL}/required",
        "'nmae'",
    ),
    "x-revisions without a range": (
        "tools.json",
        prop("Tool", "title", **{"x-revisions": [{"schema": {}}]}),
        f"tools.json#{TOOL}/properties/title/x-revisions/0",
        "`until` or `since`",
    ),
    "x-revisions with an unknown member": (
        "tools.json",
        prop("Tool", "title", **{"x-revisions": [{"schema": {}, "since": "2025-06-18", "untill": "2025-11-25"}]}),
        f"tools.json#{TOOL}/properties/title/x-revisions/0/untill",
        "no member",
    ),
    "x-revisions since after until": (
        "tools.json",
        prop("Tool", "title", **{"x-revisions": [{"schema": {}, "since": "2025-06-18", "until": "2024-11-05"}]}),
        f"tools.json#{TOOL}/properties/title/x-revisions/0",
        "before since",
    ),
    "x-revisions of an unknown revision": (
        "tools.json",
        prop("Tool", "title", **{"x-revisions": [{"schema": {}, "until": "2025-11-26"}]}),
        f"tools.json#{TOOL}/properties/title/x-revisions/0/until",
        "unknown revision",
    ),
    "fault inside x-revisions": (
        "tools.json",
        prop("Tool", "title", **{"x-revisions": [{"schema": {"not": {}}, "until": "2025-11-25"}]}),
        f"tools.json#{TOOL}/properties/title/x-revisions/0/schema/not",
        "keyword",
    ),
    "x-when of two": (
        "messages.json",
        lambda document: document["$defs"]["ClientRequest"]["anyOf"][0].update({"x-when": {"a": 1, "b": 2}}),
        "messages.json#/$defs/ClientRequest/anyOf/0/x-when",
        "one member",
    ),
    "definition is no object": ("tools.json", lambda d: d["$defs"].update(Odd=True), "tools.json#/$defs/Odd", "object"),
    "property is no object": (
        "tools.json",
        lambda d: d["$defs"]["Tool"]["properties"].update(odd=True),
        f"tools.json#{TOOL}/properties/odd",
        "object",
    ),
    "closed object": (
        "tools.json",
        defs("Tool", additionalProperties=False),
        f"tools.json#{TOOL}/additionalProperties",
        "true or a schema",
    ),
    "unknown type": (
        "tools.json",
        prop("Tool", "title", type="text"),
        f"tools.json#{TOOL}/properties/title/type",
        "'text'",
    ),
    "list of types with an array": (
        "tools.json",
        prop("Tool", "title", type=["array", "null"]),
        f"tools.json#{TOOL}/properties/title/type",
        "use anyOf",
    ),
    "definition twice": (
        "tools.json",
        lambda d: d["$defs"].update(Role={"type": "string"}),
        "tools.json#/$defs/Role",
        "base.json",
    ),
    "definition is no identifier": (
        "tools.json",
        lambda d: d["$defs"].update({"my-tool": {"type": "string"}}),
        "tools.json#/$defs/my-tool",
        "identifier",
    ),
    "definition is a keyword": (
        "tools.json",
        lambda d: d["$defs"].update({"None": {"type": "string"}}),
        "tools.json#/$defs/None",
        "identifier",
    ),
    "wrong $id": ("tools.json", lambda d: d.update({"$id": "tool.json"}), "tools.json#/$id", "'tools.json'"),
    "no definitions": ("messages.json", lambda d: d.update({"$defs": {}}), "messages.json#/$defs", "at least one"),
    "method without result": (
        "methods.json",
        without("tools/list", "result"),
        f"methods.json#{NOON}",
        "needs 'result'",
    ),
    "method without params": (
        "methods.json",
        without("tools/list", "params"),
        f"methods.json#{NOON}",
        "needs 'params'",
    ),
    "method without senders": (
        "methods.json",
        without("tools/list", "senders"),
        f"methods.json#{NOON}",
        "needs 'senders'",
    ),
    "method without message": (
        "methods.json",
        without("tools/list", "request"),
        f"methods.json#{NOON}",
        "needs 'request'",
    ),
    "method with no sender": (
        "methods.json",
        method("tools/list", senders=[]),
        f"methods.json#{NOON}/senders",
        "one sender",
    ),
    "method of an unknown kind": (
        "methods.json",
        method("tools/list", kind="call"),
        f"methods.json#{NOON}/kind",
        "request or",
    ),
    "sender of no side": (
        "methods.json",
        method("tools/list", senders=[{"side": "proxy", "carrier": "message"}]),
        f"methods.json#{NOON}/senders/0",
        "client or server",
    ),
    "sender since an unknown revision": (
        "methods.json",
        method("tools/list", senders=[{"side": "client", "carrier": "message", "x-since": "x"}]),
        f"methods.json#{NOON}/senders/0/x-since",
        "unknown revision 'x'",
    ),
    "wrong method constant": (
        "methods.json",
        method("tools/list", request="calls.json#/$defs/CallToolRequest"),
        f"methods.json#{NOON}",
        "does not fix `method` to 'tools/list'",
    ),
    "params that lead nowhere": (
        "methods.json",
        method("tools/list", params="tools.json#/$defs/Nothing"),
        f"methods.json#{NOON}/params",
        "leads nowhere",
    ),
    "attribute used twice": ("methods.json", method("tools/list", name="ping"), f"methods.json#{NOON}/name", "'ping'"),
    "attribute is a keyword": (
        "methods.json",
        method("tools/list", name="class"),
        f"methods.json#{NOON}/name",
        "'class'",
    ),
    "attribute the stub has": (
        "methods.json",
        method("tools/list", name="request"),
        f"methods.json#{NOON}/name",
        "'request'",
    ),
    "no methods": ("methods.json", lambda d: d.pop("methods"), "methods.json#/methods", "object"),
    "method is no object": (
        "methods.json",
        lambda d: d["methods"].update(odd=5),
        "methods.json#/methods/odd",
        "object",
    ),
    "no revisions": ("revisions.json", lambda d: d.update(revisions=[]), "revisions.json#/revisions", "at least one"),
    "revision without a name": (
        "revisions.json",
        revisions(lambda entries: entries[0].pop("name")),
        "revisions.json#/revisions/0",
        "'name'",
    ),
    "revision is no object": (
        "revisions.json",
        revisions(lambda entries: entries.insert(0, "2024-01-01")),
        "revisions.json#/revisions/0",
        "object",
    ),
    "revision of no era": (
        "revisions.json",
        revisions(lambda entries: entries[0].update(era="stone")),
        "revisions.json#/revisions/0/era",
        "handshake or modern",
    ),
    "revision that tells not all": (
        "revisions.json",
        revisions(lambda entries: entries[0].pop("batches")),
        "revisions.json#/revisions/0",
        "'batches'",
    ),
    "revisions out of order": ("revisions.json", revisions(list.reverse), "revisions.json#/revisions", "oldest first"),
    "revision twice": (
        "revisions.json",
        revisions(lambda entries: entries.append(entries[-1])),
        "revisions.json#/revisions",
        "each once",
    ),
    "error without a code": (
        "revisions.json",
        lambda d: d["errors"]["PARSE_ERROR"].update(code="x"),
        "revisions.json#/errors/PARSE_ERROR/code",
        "integer",
    ),
    "error without a description": (
        "revisions.json",
        lambda d: d["errors"]["PARSE_ERROR"].pop("description"),
        "revisions.json#/errors/PARSE_ERROR",
        "'description'",
    ),
    "no headers": ("revisions.json", lambda d: d.pop("headers"), "revisions.json#/headers", "object"),
    "assumed revision is none": (
        "revisions.json",
        lambda d: d.update(assumedRevision="2024-11-06"),
        "revisions.json#/assumedRevision",
        "listed",
    ),
}


@pytest.mark.parametrize(("file", "change", "place", "text"), FAULTS.values(), ids=list(FAULTS))
def test_a_fault_is_told_with_its_place(tmp_path: Path, file: str, change: Edit, place: str, text: str) -> None:
    folder = schemas.copy(tmp_path)
    schemas.edit(folder, file, change)
    with pytest.raises(SourceError) as caught:
        load(folder)
    assert str(caught.value).startswith(f"{place}: "), str(caught.value)
    assert text in caught.value.problem


@pytest.mark.parametrize(
    ("file", "content", "place", "text"),
    [
        ("tools.json", b'{"$id": ', "tools.json#", "is not JSON"),
        ("tools.json", b"", "tools.json#", "is not JSON"),
        ("tools.json", b"\xff\xfe\x00", "tools.json#", "is not JSON"),
        ("tools.json", b"[" * 100_000, "tools.json#", "is not JSON"),
        ("tools.json", b"[]", "tools.json#", "must hold a JSON object"),
        ("tools.json", b'{"$id": "tools.json", "$defs": {"A": {}, "A": {}}}', "tools.json#", "'A' twice"),
        ("methods.json", None, "methods.json#", "is missing"),
        ("revisions.json", None, "revisions.json#", "is missing"),
        (
            "my-tools.json",
            b'{"$id": "my-tools.json", "$defs": {"A": {"type": "string"}}}',
            "my-tools.json#",
            "identifier",
        ),
        ("import.json", b'{"$id": "import.json", "$defs": {"A": {"type": "string"}}}', "import.json#", "identifier"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, file: str, content: bytes | None, place: str, text: str) -> None:
    folder = schemas.copy(tmp_path)
    (folder / file).unlink(missing_ok=True)
    if content is not None:
        (folder / file).write_bytes(content)
    with pytest.raises(SourceError) as caught:
        load(folder)
    assert str(caught.value).startswith(f"{place}: "), str(caught.value)
    assert text in caught.value.problem


def test_a_missing_folder_says_which_option_names_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"none#: is not a folder; name the schema folder with --schema"):
        load(tmp_path / "none")


# Faults that show only when a revision is put together: nothing is generated either.
LATER: dict[str, tuple[str, Edit, str, str]] = {
    "refers to what the revision lacks": (
        "tools.json",
        defs("ToolAnnotations", **{"x-since": "2026-07-28"}),
        "tools.json#/$defs/Tool",
        "2025-03-26 has no ToolAnnotations",
    ),
    "method whose result the revision lacks": (
        "tools.json",
        defs("ListToolsResult", **{"x-since": "2025-03-26"}),
        "methods.json#/methods/tools~1list/result",
        "2024-11-05 has no ListToolsResult",
    ),
    "empty union": (
        "content.json",
        lambda document: [
            member.update({"x-since": "2025-03-26"}) for member in document["$defs"]["ContentBlock"]["anyOf"]
        ],
        "2024-11-05.schema.json#",
        "is no JSON Schema",
    ),
}


@pytest.mark.parametrize(("file", "change", "place", "text"), LATER.values(), ids=list(LATER))
def test_a_fault_of_one_revision_is_told_with_its_place(
    tmp_path: Path, file: str, change: Edit, place: str, text: str
) -> None:
    folder = schemas.copy(tmp_path)
    schemas.edit(folder, file, change)
    if "ListToolsResult" in text:
        schemas.edit(folder, "messages.json", _forget("ListToolsResult"))
    with pytest.raises(SourceError) as caught:
        build(load(folder))
    assert str(caught.value).startswith(place), str(caught.value)
    assert text in caught.value.problem


def _forget(name: str) -> Edit:
    def change(document: Any) -> None:
        for schema in document["$defs"].values():
            if "anyOf" in schema:
                kept = [member for member in schema["anyOf"] if not member.get("$ref", "").endswith(f"/{name}")]
                schema["anyOf"] = kept

    return change


def test_pointers_are_escaped() -> None:
    assert pointer("methods", "a/b~c", 0) == "/methods/a~1b~0c/0"


def test_line_ends_do_not_change_the_digest(tmp_path: Path) -> None:
    """A checkout on Windows is the same schema."""
    folder = schemas.copy(tmp_path)
    for path in folder.glob("*.json"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert load(folder).digest == load(schemas.SCHEMA).digest


def test_the_digest_is_over_names_and_bytes(tmp_path: Path) -> None:
    folder = schemas.copy(tmp_path)
    schemas.edit(folder, "tools.json", defs("Tool", description="Another one."))
    assert load(folder).digest != load(schemas.SCHEMA).digest
