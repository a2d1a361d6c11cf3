"""The program: help, version, unknown commands, what loads, how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from click.testing import Result

from typedmcp import __version__
from typedmcp.cli.program import COMMANDS

Invoke = Callable[..., Result]


def test_help_shows_every_command_and_examples(invoke: Invoke) -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    assert all(f"  {name} " in result.stdout for name in COMMANDS)
    assert "typedmcp call server.py add a=1 b=2" in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_teaches_by_examples(invoke: Invoke, name: str) -> None:
    result = invoke(name, "-h")
    assert result.exit_code == 0
    assert "Examples:\n" in result.stdout
    assert f"  typedmcp {name}" in result.stdout


@pytest.mark.parametrize("name", ["list", "call"])
def test_help_says_what_a_target_is(invoke: Invoke, name: str) -> None:
    text = invoke(name, "--help").stdout
    assert '"python server.py --flag"' in text
    assert "http, https, ws or wss" in text


def test_version(invoke: Invoke) -> None:
    assert invoke("--version").stdout == f"typedmcp {__version__}\n"


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("lst", "Did you mean list?"),
        ("valid", "Did you mean validate?"),
        ("server.py", "To serve a file: typedmcp run server.py"),
        ("zzz", "The commands are run, list, call, validate, schema."),
    ],
)
def test_an_unknown_command_gets_advice(invoke: Invoke, word: str, advice: str) -> None:
    result = invoke(word)
    assert result.exit_code == 2
    assert f"There is no command '{word}'" in result.stderr
    assert advice in result.stderr


def test_an_unknown_option_is_a_usage_error(invoke: Invoke) -> None:
    result = invoke("schema", "--lst")
    assert result.exit_code == 2
    assert "--lst" in result.stderr


def test_a_reader_that_goes_away_is_no_error_to_talk_about() -> None:
    # More than a pipe holds, so that the writer is cut off for certain.
    line = f"{sys.executable} -m typedmcp schema | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    lines = done.stdout.splitlines()
    assert lines[0] == "{"
    assert lines[1] in ("0", "141")
    assert done.stderr == ""


def test_a_closed_pipe_leaves_no_traceback(start: Callable[..., subprocess.Popen[str]]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = start("schema", stdout=writer)
    os.close(writer)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (141, "")


# Run in a fresh interpreter: what is loaded in this one proves nothing.
LOADED = """
import sys
from typedmcp.cli import main
sys.argv = ["typedmcp", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def loaded_by(*words: str) -> set[str]:
    command = [sys.executable, "-c", LOADED, *words]
    done = subprocess.run(command, capture_output=True, text=True, input="", timeout=60, check=True)
    return set(done.stderr.splitlines()[-1].split())


def test_help_loads_little() -> None:
    assert not loaded_by("--help") & {"aiohttp", "asyncio", "jsonschema", "jinja2", "msgspec", "rich", "typedmcp_wire"}


def test_run_loads_no_library_it_does_not_need(servers: object) -> None:
    modules = loaded_by("run", f"{servers}/tools.py")
    assert "asyncio" in modules
    assert not modules & {"aiohttp", "jsonschema", "jinja2", "referencing", "rich", "typedmcp_codegen", "cryptography"}


def test_validate_loads_no_event_loop() -> None:
    assert not loaded_by("schema", "--list") & {"asyncio", "aiohttp", "jsonschema"}
