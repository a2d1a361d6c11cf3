"""``typedmcp list`` and ``typedmcp call``, against servers in this process and behind commands."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Invoke = Callable[..., Result]
Start = Callable[..., subprocess.Popen[str]]
Done = subprocess.CompletedProcess[str]


@pytest.fixture
def tools(servers: Path) -> str:
    """The server in this process."""
    return str(servers / "tools.py")


@pytest.fixture
def command(servers: Path) -> str:
    """The same server as a command."""
    return shlex.join([sys.executable, str(servers / "tools.py")])


@pytest.fixture
def raw(servers: Path) -> str:
    """A server of the handshake era that shares no code with ours."""
    return shlex.join([sys.executable, str(servers / "raw.py")])


# -- list --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tools", "command"])
def test_a_list_for_people(typedmcp: Callable[..., Done], kind: str, request: pytest.FixtureRequest) -> None:
    done = typedmcp("list", request.getfixturevalue(kind))
    assert done.returncode == 0
    assert done.stdout.startswith(
        "calculator 1.2.3 (protocol 2026-07-28)\n\nTools (9):\n  add\n      Add two numbers.\n"
        "      - a: integer, required. The first number.\n      - b: integer, default 1. The second one.\n"
    )
    assert '      - mode: "1" | "on", default "on"\n' in done.stdout
    assert "      - tags: array of string, required\n" in done.stdout
    assert done.stdout.endswith("Resources (1):\n  demo://greeting\n      [text/plain] A greeting.\n")
    assert "printed while imported" in done.stderr


def test_a_terminal_does_not_obey_a_server(invoke: Invoke, tools: str, raw: str) -> None:
    assert "\x1b" not in invoke("list", tools).stdout
    assert "Looks ?[2J harmless." in invoke("list", tools).stdout
    assert invoke("list", raw).stdout.startswith("raw?[2J 0 (protocol 2025-06-18)")


def test_a_list_for_machines(invoke: Invoke, tools: str) -> None:
    printed = json.loads(invoke("list", "--json", tools).stdout)
    assert printed["protocolVersion"] == "2026-07-28"
    assert printed["serverInfo"] == {"name": "calculator", "version": "1.2.3"}
    assert printed["instructions"] == "Add things."
    assert printed["tools"][0]["inputSchema"]["required"] == ["a"]
    assert printed["resources"][0]["uri"] == "demo://greeting"


def test_all_pages_and_every_kind_of_list(invoke: Invoke, raw: str) -> None:
    printed = json.loads(invoke("list", "--json", raw).stdout)
    assert [tool["name"] for tool in printed["tools"]] == ["first", "media", "odd", "refuse", "malformed", "die"]
    assert [prompt["name"] for prompt in printed["prompts"]] == ["p"]
    # It has resources and, though that goes with them, no templates.
    assert "resourceTemplates" not in printed
    text = invoke("list", raw).stdout
    assert "      Mixed\n" in text
    assert '      - x: Y, required\n      - y: any\n      - z: string | null | integer, default "ddd' in text
    assert "Prompts (1):\n  p (a, b?)\n" in text
    assert "Resources (1):\n  demo://r\n      A title\n" in text


def test_pages_without_end_are_noticed(invoke: Invoke, raw: str) -> None:
    for words in (["list", f"{raw} --loop"], ["call", f"{raw} --loop", "first"]):
        result = invoke(*words)
        assert result.exit_code == 3
        assert "The server broke the protocol" in result.stderr
        assert "'again'" in result.stderr


def test_a_command_word_by_word(invoke: Invoke, servers: Path) -> None:
    result = invoke("list", "--json", "--", sys.executable, str(servers / "raw.py"))
    assert json.loads(result.stdout)["protocolVersion"] == "2025-06-18"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2026-07-28"])
def test_a_pinned_revision_is_spoken(invoke: Invoke, tools: str, version: str) -> None:
    assert f"(protocol {version})" in invoke("list", tools, "--protocol", version).stdout


# -- call --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tools", "command"])
@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["add", "a=1", "b=2"], "3\n"),
        (["add", '{"a": 5}'], "6\n"),
        (["echo", "text=12345"], "12345\n"),
        (["echo", 'text={"a":1}'], '{"a":1}\n'),
        (["echo", "text=ünï\n"], "ünï\n\n"),
        (["count", "steps=2"], "counted\n"),
    ],
)
def test_values(
    typedmcp: Callable[..., Done], kind: str, words: list[str], printed: str, request: pytest.FixtureRequest
) -> None:
    done = typedmcp("call", request.getfixturevalue(kind), *words)
    assert (done.returncode, done.stdout) == (0, printed)
    assert "progress" not in done.stderr


def test_arguments_follow_the_schema(invoke: Invoke, tools: str) -> None:
    result = invoke("call", tools, "pick", 'tags=["a"]', "exact=true", "ratio=2", "count=5")
    assert json.loads(result.stdout) == ["a", "True", "2.0", "5"]
    result = invoke("call", tools, "kind", "value:=[1]", "maybe=null", "mode=1")
    assert json.loads(result.stdout) == {"value": "list", "maybe": None, "mode": "1"}


def test_a_text_parameter_keeps_its_text_across_processes(invoke: Invoke, raw: str) -> None:
    assert invoke("call", raw, "first", "id=00123").stdout == '{"id": "00123"}\n'


def test_arguments_from_standard_input(invoke: Invoke, tools: str) -> None:
    assert invoke("call", tools, "add", "-", input='\ufeff{"a": 41}').stdout == "42\n"
    for text, message in (("[1]", "must be a JSON object"), ("{", "cannot be read as JSON"), (b"\xff", "is not UTF-8")):
        result = invoke("call", tools, "add", "-", input=text)
        assert result.exit_code == 2
        assert f"Standard input {message}" in result.stderr


def test_a_result_for_machines(invoke: Invoke, tools: str) -> None:
    printed = json.loads(invoke("call", "--json", tools, "add", "a=1").stdout)
    assert printed["content"] == [{"type": "text", "text": "2"}]
    assert printed["structuredContent"] == {"result": 2}


def test_other_content_is_told_in_a_few_words(invoke: Invoke, raw: str) -> None:
    assert invoke("call", raw, "media").stdout.splitlines() == [
        '{"a": 1}',
        "[image, image/png, about 3 bytes; see --json]",
        "[link to demo://link]",
        "held",
        "[contents of demo://b; see --json]",
    ]


def test_a_failed_tool(invoke: Invoke, tools: str) -> None:
    result = invoke("call", tools, "fail", "why=x")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith("failed: x\n")
    result = invoke("call", tools, "fail", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["isError"] is True
    assert "- /a: expected integer, got string" in invoke("call", tools, "add", "a=x").stderr


def test_progress_off_a_terminal_is_lines(invoke: Invoke, tools: str) -> None:
    result = invoke("call", "--progress", tools, "count", "steps=3")
    assert result.stdout == "counted\n"
    assert result.stderr.splitlines()[-3:] == [f"progress {step}/3 step {step}" for step in (1, 2, 3)]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_progress_on_a_terminal_is_a_bar(start: Start, tools: str) -> None:
    import os
    import pty

    ours, theirs = pty.openpty()
    process = start("call", tools, "count", "steps=3", stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 65536):
            seen += chunk
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(ours)
    out, _ = process.communicate(timeout=30)
    assert out == "counted\n"
    assert b"[####################################]  100%  step 3" in seen
    assert b"None" not in seen


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["call", "tools", "ad"], 2, "The server has no tool 'ad'; did you mean add?"),
        (["call", "tools", "zzz"], 2, "The server has no tool 'zzz'; it has add, echo"),
        (["call", "tools", "add", "a"], 2, "'a' is no argument; write key=value"),
        (["call", "tools"], 2, "Missing argument 'NAME'"),
        (["call", "raw", "refuse"], 1, "The server refused: MCP error -32099: Not today."),
        (["call", "raw", "malformed"], 3, "expected string at /content/0/text, found integer 5"),
        (["call", "raw", "die"], 3, "exited with code 7"),
        (["call", "tools", "sleep", "seconds=9", "--timeout", "0.2"], 3, "tools/call took longer than 0.2 s"),
        (["call", "command", "sleep", "seconds=9", "--timeout", "2"], 3, "tools/call took longer than 2 s"),
        (["list", "ftp://127.0.0.1/mcp"], 2, "is no address to connect to; http, https, ws, wss are known"),
        (["list", "http://127.0.0.1:1/mcp"], 3, "Is the server running?"),
        (["list", "no-such-program"], 2, "is no Python file, no module and no program"),
        (["list", "./"], 2, "is a folder"),
        (["list", ""], 2, "TARGET is empty"),
        (["list", "a 'b"], 2, "cannot be split into words"),
        (["list", "no-such-program --flag"], 3, "there is no such program"),
        (["list", "false"], 3, "exited with code 1"),
        (["list", "sleep 60", "--timeout", "0.2"], 3, "No answer: initialize took longer than 0.2 s"),
        (["list", "raw", "--protocol", "2026-07-28"], 3, ""),
        (["list", "raw", "--protocol", "2024-11-05"], 3, "pin that one or none"),
        (["list", "tools", "--protocol", "2025-06-19"], 2, "did you mean 2025-06-18?"),
        (["list", "tools", "--timeout", "0"], 2, "is not in the range x>0"),
        (["list"], 2, "Missing argument"),
    ],
)
def test_every_mistake_has_its_code_and_message(
    invoke: Invoke, request: pytest.FixtureRequest, words: list[str], code: int, message: str
) -> None:
    words = [request.getfixturevalue(word) if word in ("tools", "raw", "command") else word for word in words]
    result = invoke(*words)
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert message in result.stderr
    assert isinstance(result.exception, SystemExit)


def test_what_an_error_says_beyond_its_sentence_is_shown(invoke: Invoke, raw: str) -> None:
    assert '"why": "tired"' in invoke("call", raw, "refuse").stderr


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("kind", ["tools", "command"])
@pytest.mark.parametrize(("name", "sign"), [("sleep", "sleeping"), ("block", "blocking")])
def test_ctrl_c_ends_a_call(start: Start, kind: str, name: str, sign: str, request: pytest.FixtureRequest) -> None:
    process = start("call", request.getfixturevalue(kind), name, "seconds=600")
    assert process.stderr is not None
    for line in process.stderr:
        if sign in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert "Error" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_that_another_thread_receives_ends_a_call_too(start: Start, servers: Path) -> None:
    process = start("call", str(servers / "threads.py"), "catch", "seconds=600")
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
