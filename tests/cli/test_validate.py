"""``typedmcp validate``."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Invoke = Callable[..., Result]

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
LISTED = {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}
BAD_LISTED = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": 5, "inputSchema": {"type": "object"}}]}}
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
OLD = ("--revision", "2025-06-18")


def welcome(revision: str) -> dict[str, Any]:
    result = {"protocolVersion": revision, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    return {"jsonrpc": "2.0", "id": 0, "result": result}


def lines(*messages: Any) -> str:
    return "".join((message if isinstance(message, str) else json.dumps(message)) + "\n" for message in messages)


@pytest.fixture
def judge(invoke: Invoke, tmp_path: Path) -> Callable[..., Result]:
    """Validate a file of this text."""

    def run(text: str | bytes, *options: str, name: str = "talk.jsonl") -> Result:
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return invoke("validate", name, *options)

    return run


# -- what is said, and how ---------------------------------------------------------------------------------------------


def test_a_valid_conversation(judge: Callable[..., Result]) -> None:
    result = judge(lines(LIST, LISTED), *OLD)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "2 values: all valid\n")


def test_a_violation_has_file_line_pointer_and_message(judge: Callable[..., Result]) -> None:
    result = judge(lines(LIST, "", BAD_LISTED), *OLD)
    assert result.exit_code == 1
    assert result.stdout == "talk.jsonl:3: /result/tools/0/name: expected string, found integer 5\n"
    assert result.stderr == "2 values: 1 violation\n"


def test_a_pointer_escapes_slash_and_tilde(judge: Callable[..., Result]) -> None:
    schema = {"type": "object", "properties": {"a/b~c": 5}}
    tools = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "t", "inputSchema": schema}]}}
    result = judge(lines(LIST, tools), *OLD)
    assert "talk.jsonl:2: /result/tools/0/inputSchema/properties/a~1b~0c: " in result.stdout


def test_each_conversation_says_its_revision_by_default(judge: Callable[..., Result]) -> None:
    assert judge(lines(HELLO)).exit_code == 0
    result = judge(lines(HELLO), "--revision", "latest")
    assert result.exit_code == 1
    assert "/method: expected a method that a client sends in 2026-07-28" in result.stdout


def test_broken_lines_do_not_stop_the_others(judge: Callable[..., Result]) -> None:
    text = lines(LIST, '{"jsonrpc": "2.0", ', "NaN", '"\\ud800"', '"text"', "[" * 100_000).encode() + b'"\xff"\n'
    result = judge(text + lines(BAD_LISTED).encode(), *OLD)
    assert result.exit_code == 1
    said = result.stdout.splitlines()
    assert [line.split(":")[1] for line in said] == ["2", "3", "4", "5", "6", "7", "8"]
    assert "JSON that ends too early" in said[0]
    assert "half a surrogate pair" in said[2]
    assert "nests too deeply" in said[4]
    assert "/result/tools/0/name" in said[6]


def test_json_for_machines(judge: Callable[..., Result]) -> None:
    printed = json.loads(judge(lines(LIST, BAD_LISTED, "x"), *OLD, "--format", "json").stdout)
    assert printed["valid"] is False
    assert printed["count"] == 3
    assert [(each["file"], each["line"], each["pointer"]) for each in printed["violations"]] == [
        ("talk.jsonl", 2, "/result/tools/0/name"),
        ("talk.jsonl", 3, ""),
    ]
    assert printed["violations"][0]["expected"] == "string"
    printed = json.loads(judge(lines(LIST), *OLD, "--format", "json").stdout)
    assert printed == {"violations": [], "count": 1, "valid": True}


def test_a_violation_is_one_line_whatever_it_quotes(judge: Callable[..., Result]) -> None:
    schema = {"type": "object", "properties": {"\n\x1b": 5}}
    listed = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "t", "inputSchema": schema}]}}
    result = judge(lines(LIST, listed, {"sender": "\x1b[2J\n", "message": {}}), *OLD)
    assert "/properties/\\n\\x1b: " in result.stdout
    assert all(line.startswith("talk.jsonl:") for line in result.stdout.splitlines())
    assert "\x1b" not in result.stdout


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (json.dumps([LIST, BAD_LISTED]), "1: /1/result/"),
        ("[\n" + json.dumps(LIST) + ",\n\n" + json.dumps(BAD_LISTED, indent=1) + "\n]\n", "4: /1/result/"),
        ('{"messages": [' + json.dumps(LIST) + ",\n" + json.dumps(BAD_LISTED) + "]}", "2: /messages/1/result/"),
        (json.dumps({"messages": [LIST, BAD_LISTED]}, indent=2), "8: /messages/1/result/"),
        ("\ufeff" + lines(LIST, BAD_LISTED), "2: /result/"),
        (lines(LIST, BAD_LISTED).replace("\n", "\r\n"), "2: /result/"),
        (lines(LIST, BAD_LISTED).rstrip(), "2: /result/"),
    ],
)
def test_forms_of_files(judge: Callable[..., Result], text: str, where: str) -> None:
    result = judge(text, *OLD, name="talk.json")
    assert result.stdout == f"talk.json:{where}tools/0/name: expected string, found integer 5\n"
    assert result.stderr == "2 values: 1 violation\n"


def test_a_single_message(judge: Callable[..., Result]) -> None:
    assert judge("\n" + json.dumps(LIST, indent=2), *OLD, name="one.json").exit_code == 0
    result = judge("\n" + json.dumps({**LIST, "jsonrpc": "1.0"}, indent=2), *OLD, name="one.json")
    assert 'one.json:2: /jsonrpc: expected "2.0"' in result.stdout


def test_a_broken_document_says_which_line(judge: Callable[..., Result]) -> None:
    result = judge('{\n "a": 1,\n}\n', name="one.json")
    assert result.exit_code == 1
    assert "one.json:3: (whole value): expected JSON, found JSON is malformed: trailing comma" in result.stdout


def test_a_first_line_that_is_cut_off_makes_no_document_of_json_lines(judge: Callable[..., Result]) -> None:
    result = judge(lines('{"jsonrpc": "2.0", "id"', LIST, BAD_LISTED), *OLD, name="talk.log")
    assert [line.split(":")[1] for line in result.stdout.splitlines()] == ["1", "3"]


def test_standard_input(invoke: Invoke) -> None:
    result = invoke("validate", "-", *OLD, input=lines(LIST, BAD_LISTED))
    assert result.stdout.startswith("<stdin>:2: /result/tools/0/name: ")


def test_several_files_are_several_conversations(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines(LIST))
    (tmp_path / "b.jsonl").write_text(lines(BAD_LISTED))
    # Without its request, a response is judged by its envelope alone.
    assert invoke("validate", "a.jsonl", "b.jsonl", *OLD).exit_code == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [("no.json", "No such file"), (".", "it is a folder"), ("empty.json", "it holds no"), ("[].json", "it holds no")],
)
def test_what_cannot_be_read_is_said_and_the_rest_judged(
    invoke: Invoke, tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "empty.json").write_text(" \n")
    (tmp_path / "[].json").write_text("[]")
    (tmp_path / "ok.jsonl").write_text(lines(BAD_LISTED | {"jsonrpc": "1"}))
    result = invoke("validate", name, "ok.jsonl", *OLD)
    assert result.exit_code == 2
    assert f"cannot read {name}: {message}" in result.stderr
    assert "ok.jsonl:1: /jsonrpc" in result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--revision", "2025-06"], "did you mean 2025-06-18?"),
        (["--definition", "Tol"], "did you mean Tool?"),
        (["--definition", "DiscoverResult", *OLD], "2025-06-18 has no DiscoverResult"),
        (["--definition", "Tool", "--revision", "auto"], "name a revision"),
        (["--sender", "nobody"], "'nobody' is not one of"),
    ],
)
def test_mistakes_get_advice(judge: Callable[..., Result], options: list[str], message: str) -> None:
    result = judge(lines(LIST), *options)
    assert result.exit_code == 2
    assert message in result.stderr


# -- who sent it, and in which revision --------------------------------------------------------------------------------


def test_a_response_is_judged_by_its_request_and_ids_of_both_sides_are_apart(judge: Callable[..., Result]) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}
    told = {"jsonrpc": "2.0", "id": 1, "result": {"roots": [{"uri": 5}]}}
    talk = lines(
        LIST, {"sender": "server", "message": asked}, {"direction": "client-to-server", "message": told}, BAD_LISTED
    )
    assert judge(talk, *OLD).stdout.splitlines() == [
        "talk.jsonl:3: /message/result/roots/0/uri: expected string, found integer 5",
        "talk.jsonl:4: /result/tools/0/name: expected string, found integer 5",
    ]


def test_numbers_and_texts_are_different_ids(judge: Callable[..., Result]) -> None:
    assert judge(lines(LIST, {**BAD_LISTED, "id": "1"}), *OLD).exit_code == 0
    assert judge(lines(LIST, {**BAD_LISTED, "id": 1.0}), *OLD).exit_code == 1


def test_what_either_side_may_send_is_valid_from_either(judge: Callable[..., Result]) -> None:
    ping = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
    assert judge(lines(ping, {"jsonrpc": "2.0", "id": 7, "result": {}}), *OLD).exit_code == 0


def test_a_stated_sender_counts(judge: Callable[..., Result]) -> None:
    result = judge(lines(LIST), *OLD, "--sender", "server")
    assert "/method: expected a method that a server sends in 2025-06-18" in result.stdout
    assert judge(lines({"sender": "server", "message": LIST}), *OLD, "--sender", "client").exit_code == 1


def test_a_record_names_a_known_sender(judge: Callable[..., Result]) -> None:
    result = judge(lines({"sender": "me", "message": LIST}, {"direction": 5, "message": LIST}), *OLD)
    assert [line.split(": ")[1] for line in result.stdout.splitlines()] == ["/sender", "/direction"]


def test_auto_follows_the_handshake(judge: Callable[..., Result]) -> None:
    batch = [LIST, {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    talk = lines(HELLO, welcome("2025-03-26"), batch, [LISTED])
    assert judge(talk, "--revision", "auto").exit_code == 0
    result = judge(lines(HELLO, welcome("2025-06-18"), batch), "--revision", "auto")
    assert "talk.jsonl:3: (whole value): expected one message: 2025-06-18 has no batches" in result.stdout


def test_auto_follows_each_request_of_the_modern_era(judge: Callable[..., Result]) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    }
    modern = {**LIST, "params": {"_meta": meta}}
    result = judge(lines(LIST, LISTED, modern, LISTED), "--revision", "auto")
    assert result.exit_code == 1
    assert all(line.startswith("talk.jsonl:") for line in result.stdout.splitlines())
    unknown = {**LIST, "params": {"_meta": {**meta, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}}}
    result = judge(lines(unknown), "--revision", "auto")
    assert "/params/_meta/io.modelcontextprotocol~1protocolVersion: expected one of" in result.stdout


def test_a_batch_is_judged_member_by_member(judge: Callable[..., Result]) -> None:
    talk = lines([LIST, HELLO, 5, {**LIST, "id": []}], [BAD_LISTED], [])
    said = judge(talk, "--revision", "2025-03-26").stdout.splitlines()
    assert [line.split(": ")[0] + " " + line.split(": ")[1] for line in said] == [
        "talk.jsonl:1 /1/method",
        "talk.jsonl:1 /2",
        "talk.jsonl:1 /3/id",
        "talk.jsonl:2 /0/result/tools/0/name",
        "talk.jsonl:3 (whole value)",
    ]


def test_extensions_are_nobodys_business(judge: Callable[..., Result]) -> None:
    talk = lines({"jsonrpc": "2.0", "id": 1, "method": "x/y", "params": {}}, {"jsonrpc": "2.0", "id": 1, "result": {}})
    assert judge(talk, *OLD).exit_code == 0


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        "",
        [],
        {},
        {"method": None},
        {"message": []},
        {"jsonrpc": "2.0", "method": []},
        {"id": {}, "result": 1},
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": []},
        {"jsonrpc": "2.0", "method": "ping", "params": {"_meta": 1}},
        {"result": {}, "error": {}, "jsonrpc": "2.0", "id": True},
    ],
)
def test_hostile_values_are_violations(judge: Callable[..., Result], value: Any) -> None:
    for revision in ("auto", "2025-03-26", "latest"):
        result = judge(f"{json.dumps(value)}\n" * 2, "--revision", revision)
        assert (result.exit_code, result.exception and type(result.exception)) == (1, SystemExit)


def test_one_definition_for_every_value(judge: Callable[..., Result]) -> None:
    tool = {"name": "a", "inputSchema": {"type": "object"}}
    assert judge(lines(tool, tool), "--definition", "Tool").exit_code == 0
    result = judge(json.dumps([tool, {}]), "--definition", "Tool", *OLD, name="tools.json")
    assert "tools.json:1: /1/name: expected string, found nothing" in result.stdout


# -- size --------------------------------------------------------------------------------------------------------------


def test_a_large_file_is_read_line_by_line() -> None:
    from typedmcp.cli.judging import Conversation
    from typedmcp.cli.reading import read_entries

    class Endless(io.RawIOBase):
        """20 MB of conversation that are nowhere in full."""

        def __init__(self) -> None:
            self.left = 20_000

        def __next__(self) -> bytes:
            self.left -= 1
            if self.left < 0:
                raise StopIteration
            message = {**LIST, "id": self.left // 2} if self.left % 2 else {**LISTED, "id": self.left // 2}
            return json.dumps({**message, "pad": "x" * 1000}).encode() + b"\n"

    conversation = Conversation("2025-06-18", None)
    read: list[int] = []
    tracemalloc.start()
    try:
        count = sum(not conversation.judge(entry.value) for entry in read_entries(Endless(), "x.jsonl", read.append))  # type: ignore[arg-type]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 20_000
    assert sum(read) > 20_000_000
    assert peak < 4_000_000


def test_requests_without_answers_are_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    from typedmcp.cli import judging

    monkeypatch.setattr(judging, "_MAX_WAITING", 10)
    conversation = judging.Conversation("2025-06-18", None)
    for number in range(100):
        conversation.judge({**LIST, "id": number})
    assert conversation.judge({**BAD_LISTED, "id": 5}) == ()
    assert conversation.judge({**BAD_LISTED, "id": 99}) != ()
