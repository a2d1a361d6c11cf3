"""Finding the server in a file or module."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from typedmcp.cli.loading import Spec, read_spec

Invoke = Callable[..., Result]
APP = "from typedmcp import App, MCPServer, ToolManager\n"


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("server.py", Spec("server.py", None, True)),
        ("a/server.py:app", Spec("a/server.py", "app", True)),
        ("server.py:a.b", Spec("server.py", "a.b", True)),
        ("C:\\x\\server.py", Spec("C:\\x\\server.py", None, True)),
        ("C:\\x\\server.py:app", Spec("C:\\x\\server.py", "app", True)),
        ("package.module", Spec("package.module", None, False)),
        ("module:app", Spec("module", "app", False)),
        ("some-server", None),
        ("python server.py", None),
        ("./server", None),
        ("a..b", None),
        ("", None),
        ("server.py:", None),
    ],
)
def test_what_a_spec_says(text: str, spec: Spec | None) -> None:
    assert read_spec(text) == spec


def test_a_file_whose_name_looks_like_a_spec(tmp_path: Path) -> None:
    odd = tmp_path / "my server.py"
    odd.write_text("")
    assert read_spec(str(odd)) == Spec(str(odd), None, True)


def served_name(result: Result) -> str:
    assert result.exit_code == 0, result.stderr
    return result.stdout.split()[0]


@pytest.mark.parametrize(
    ("text", "spec", "name"),
    [
        ("app = App('one')", "s.py", "one"),
        ("one = App('one')", "s.py", "one"),
        ("one = App('one'); app = App('two')", "s.py", "two"),
        ("one = App('one'); two = App('two')", "s.py:one", "one"),
        ("one = App('one'); alias = one; engine = one.server", "s.py", "one"),
        ("one = MCPServer(name='raw', version='1', tools=ToolManager())", "s.py", "raw"),
        ("def make():\n    print('made')\n    return App('made')", "s.py:make", "made"),
        ("class Box:\n    inner = App('boxed')", "s.py:Box.inner", "boxed"),
        ("app = App('one')", "s", "one"),
        ("app = App('one')", "s:app", "one"),
        ("import beside\napp = App(beside.NAME)", "s.py", "beside"),
        ("app = App(__name__.replace('.', '_'))", "json.py", "typedmcp_served_json"),
        ("app = App('odd')", "my-server.v1.py", "odd"),
    ],
)
def test_where_the_server_is_found(invoke: Invoke, tmp_path: Path, text: str, spec: str, name: str) -> None:
    (tmp_path / "beside.py").write_text("NAME = 'beside'")
    file = spec.partition(":")[0]
    (tmp_path / (file if file.endswith(".py") else f"{file}.py")).write_text(APP + text)
    assert served_name(invoke("list", spec)) == name


def test_a_file_in_a_package_is_imported_as_part_of_it(invoke: Invoke, servers: Path) -> None:
    assert served_name(invoke("list", str(servers / "pack" / "served.py"))) == "packed"


def test_what_a_module_prints_stays_off_the_output(
    typedmcp: Callable[..., object], tmp_path: Path, servers: Path
) -> None:
    text = "import os, subprocess\nprint('a'); os.write(1, b'b')\nsubprocess.run(['echo', 'c'])\napp = App('quiet')"
    (tmp_path / "s.py").write_text(APP + text)
    done = typedmcp("list", "s.py")
    assert done.stdout == "quiet 0.0.0 (protocol 2026-07-28)\n\nNo tools.\n"  # type: ignore[attr-defined]
    assert sorted(done.stderr.replace("\n", "")) == ["a", "b", "c"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "spec", "code", "parts"),
    [
        ("", "nofile.py", 2, ["There is no file 'nofile.py'; that folder has s.py."]),
        ("", "no/file.py", 2, ["There is no folder 'no'"]),
        ("", "nomodule:app", 2, ["There is no module 'nomodule'"]),
        ("", "s.py", 2, ["s.py has no App or MCPServer; add `app = App("]),
        ("def make_app(): ...", "s.py", 2, ["if make_app makes one, name it: s.py:make_app"]),
        ("app = 5", "s.py", 2, ["(its `app` is an int)"]),
        ("app = 5", "s.py:app", 2, ["s.py:app is no App or MCPServer but an int"]),
        ("x = App('x'); y = App('y')", "s.py", 2, ["has several servers; name one: s.py:x, s.py:y"]),
        ("first = App('x')", "s.py:frist", 2, ["s.py has no 'frist'; did you mean first?"]),
        ("def f():\n    1 / 0\nf()", "s.py", 3, ["line 3 of ", "in f\n", "ZeroDivisionError"]),
        ("def make():\n    1 / 0", "s.py:make", 3, ["Importing s.py:make failed, line 3 of ", "ZeroDivisionError"]),
        ("import nosuchthing", "s.py", 3, ["line 2 of ", "Install 'nosuchthing' in the environment of"]),
        ("import nosuchthing", "s", 3, ["line 2 of ", "Install 'nosuchthing' in the environment of"]),
        ("def f(:", "s.py", 3, ["line 2 of ", "SyntaxError"]),
        ("raise SystemExit(4)", "s.py", 3, ["ended the process while it was imported (exit code 4)", "__main__"]),
        ("app = App('x')\napp.run()", "s.py", 3, ["line 3 of ", "serves while it is imported", "__main__"]),
        (
            "app = App('x')\n@app.tool(name='no name')\ndef f() -> int: ...",
            "s.py",
            3,
            ["line 3 of ", "a tool's name is"],
        ),
    ],
)
def test_every_mistake_says_what_to_do(
    invoke: Invoke, tmp_path: Path, text: str, spec: str, code: int, parts: list[str]
) -> None:
    (tmp_path / "s.py").write_text(APP + text)
    for command in ("run", "list"):
        result = invoke(command, spec)
        assert result.exit_code == code, result.output
        assert result.stdout == ""
        assert all(part in result.stderr for part in parts), result.stderr
        # Of a traceback only what is the author's own.
        assert "typedmcp/" not in result.stderr
        assert "importlib" not in result.stderr


def test_a_failed_import_leaves_nothing_behind(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "halfway.py").write_text("1 / 0")
    invoke("list", "halfway.py")
    assert "halfway" not in sys.modules


def test_run_takes_no_command(invoke: Invoke) -> None:
    result = invoke("run", "python server.py")
    assert result.exit_code == 2
    assert "To use a command: typedmcp list 'python server.py'" in result.stderr
    assert "names neither a Python file" in invoke("run", "some-server").stderr


def test_an_address_is_not_for_serving(invoke: Invoke) -> None:
    result = invoke("run", "http://localhost/mcp")
    assert result.exit_code == 2
    assert "is an address; `run` serves a Python file or module" in result.stderr
