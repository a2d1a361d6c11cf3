"""Our server, driven over stdio by the clients of other libraries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CALCULATOR = HERE.parent.parent / "docs" / "examples" / "calculator.py"
BIGGER = HERE / "peers" / "ours.py"
MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"

CLIENTS = {
    "mcp 2.3.0, automatic": ("python_2", "client_2.py", "auto"),
    "mcp 2.3.0, pinned": ("python_2", "client_2.py", MODERN),
    "mcp 2.3.0, handshake": ("python_2", "client_2.py", "legacy"),
    "mcp 1.30.0": ("python_1", "client_1.py", "legacy"),
}


@dataclass
class Talk:
    """A conversation that is over.

    Attributes:
        mode: What the peer was told to speak.
        saw: What the peer's script has printed.
        watch: What went over the pipes.
    """

    mode: str
    saw: dict[str, Any]
    watch: Any

    @property
    def modern(self) -> bool:
        return self.mode != "legacy"


@pytest.fixture(scope="module", params=list(CLIENTS))
def talk(request: Any, drive: Any, tmp_path_factory: Any, watch_at: Any) -> Talk:
    """One conversation for all tests below: the calculator with a few tools more."""
    python, script, mode = CLIENTS[request.param]
    watch = watch_at(tmp_path_factory.mktemp("talk") / "watched.jsonl")
    return Talk(mode, drive(request.getfixturevalue(python), script, mode, [BIGGER], watch), watch)


@pytest.mark.req("M-051", "M-083")
@pytest.mark.parametrize("start", [[CALCULATOR], ["-m", "typedmcp", "run", CALCULATOR]], ids=["python", "typedmcp run"])
@pytest.mark.parametrize("client", ["mcp 2.3.0, automatic", "mcp 1.30.0"])
def test_the_example_as_it_is(client: str, start: list[Any], request: Any, drive: Any, watch: Any) -> None:
    python, script, mode = CLIENTS[client]
    saw = drive(request.getfixturevalue(python), script, mode, start, watch)
    assert sorted(saw["tools"]) == ["add", "total"]
    assert saw["add"]["structuredContent"] == {"result": 5}
    assert saw["progress"] == [[1, 3, "added 1"], [2, 3, "added 2.5"], [3, 3, "added 4"]]
    assert watch.violations("server") == []
    watch.ended_by_itself()


@pytest.mark.req("M-050", "M-051", "M-062", "M-064")
def test_opening(talk: Talk) -> None:
    first = {"auto": "server/discover", MODERN: "tools/list", "legacy": "initialize"}[talk.mode]
    assert talk.watch.methods("client")[0] == first
    assert talk.saw["revision"] == (MODERN if talk.modern else HANDSHAKE)
    # A client that adopts a revision without asking knows nothing else of the server.
    if talk.mode != MODERN:
        assert talk.saw["server"] == {"name": "calculator", "version": "1.0.0"}
        assert talk.saw["capabilities"].keys() == {"tools", "resources", "logging"}
        assert talk.saw["instructions"] == "Does sums."


def test_tools_are_listed_with_their_schemas(talk: Talk) -> None:
    add = talk.saw["tools"]["add"]
    assert add["description"] == "Add two numbers."
    assert add["inputSchema"]["properties"] == {"a": {"type": "integer"}, "b": {"type": "integer"}}
    assert add["inputSchema"]["required"] == ["a", "b"]
    assert add["outputSchema"]["properties"] == {"result": {"type": "integer"}}


def test_a_call_gives_text_and_structured_content(talk: Talk) -> None:
    assert talk.saw["add"]["content"] == [{"type": "text", "text": "5"}]
    assert talk.saw["add"]["structuredContent"] == {"result": 5}
    assert not talk.saw["add"]["isError"]
    assert talk.saw["total"]["structuredContent"] == {"result": 7.5}


def test_bad_arguments_are_a_result_and_an_unknown_tool_an_error(talk: Talk) -> None:
    assert talk.saw["bad"]["isError"] is True
    assert "missing 'b'" in talk.saw["bad"]["content"][0]["text"]
    assert talk.saw["unknown"] == {"error": {"code": -32602, "message": "Unknown tool: subtract"}}


def test_failures_of_tools(talk: Talk) -> None:
    assert talk.saw["refuse"]["isError"] is True
    assert talk.saw["refuse"]["content"][0]["text"] == "not today"
    assert talk.saw["crash"]["isError"] is True
    assert "secret" not in talk.watch.path.read_text()


@pytest.mark.req("M-149", "H-052")
def test_progress(talk: Talk) -> None:
    assert talk.saw["progress"] == [[1, 3, "added 1"], [2, 3, "added 2.5"], [3, 3, "added 4"]]


def test_resources(talk: Talk) -> None:
    assert [each["uri"] for each in talk.saw["resources"]] == ["calculator://about"]
    (contents,) = talk.saw["read"]["contents"]
    assert contents == {"uri": "calculator://about", "mimeType": "text/plain", "text": "A calculator that adds."}
    assert talk.saw["missing"]["error"]["code"] == (-32602 if talk.modern else -32002)


def test_what_is_not_served_is_not_found(talk: Talk) -> None:
    assert talk.saw["prompts"]["error"]["code"] == -32601


def test_ping_belongs_to_the_handshake_era(talk: Talk) -> None:
    if talk.modern:
        assert talk.saw["ping"]["error"]["code"] == -32601
    else:
        assert talk.saw["ping"] == {}


def test_many_calls_at_once(talk: Talk) -> None:
    assert talk.saw["many"] == [{"result": 2 * number} for number in range(20)]


@pytest.mark.req("M-073", "M-074")
def test_prints_and_odd_characters_do_no_harm(talk: Talk) -> None:
    assert talk.saw["chatter"]["structuredContent"] == {"text": "\u2028\U0001f600 ünïcode\n"}
    assert talk.watch.end["unreadable"] == []


@pytest.mark.req("M-138", "M-139", "H-051")
def test_a_cancelled_call_ends_and_is_not_answered(talk: Talk) -> None:
    naps = [each for each in talk.watch.sent("client", "tools/call") if each["params"]["name"] == "nap"]
    cancelled = {each["params"]["requestId"] for each in talk.watch.sent("client", "notifications/cancelled")}
    assert [each["id"] in cancelled for each in naps] == [True, True]
    assert [talk.watch.answer(each) for each in naps] == [None, None]
    assert talk.saw["interruptions"]["structuredContent"] == {"result": 2}
    assert "error" in talk.saw["timeout"]


def test_a_tool_that_blocks_holds_nobody_up(talk: Talk) -> None:
    found = [each.get("structuredContent") for each in talk.saw["blocking"]]
    assert found == [{"result": "done"}, {"result": 2}], talk.saw["blocking"]
    calls = talk.watch.sent("client", "tools/call")
    at = next(place for place, each in enumerate(calls) if each["params"]["name"] == "block")
    answers = [message for _, message in talk.watch.messages if "method" not in message]
    assert answers.index(talk.watch.answer(calls[at + 1])) < answers.index(talk.watch.answer(calls[at]))


def test_every_other_request_is_answered_once(talk: Talk) -> None:
    asked = [each["id"] for who, each in talk.watch.messages if who == "client" and "method" in each and "id" in each]
    answered = [each["id"] for who, each in talk.watch.messages if who == "server" and "method" not in each]
    cancelled = [each["params"]["requestId"] for each in talk.watch.sent("client", "notifications/cancelled")]
    assert sorted(answered + cancelled) == sorted(asked)


def test_every_message_keeps_to_the_protocol(talk: Talk) -> None:
    assert talk.watch.violations("server") == []
    # The peer's script pings in either era, to see what comes of it.
    assert [each for each in talk.watch.violations("client") if "ping" not in each] == []


@pytest.mark.req("M-079")
def test_the_server_leaves_by_itself_at_the_end_of_input(talk: Talk) -> None:
    talk.watch.ended_by_itself()
