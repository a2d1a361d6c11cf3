"""Ways to run the command line: in a process of its own, and inside this one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

SERVERS = Path(__file__).parent / "servers"


def environment() -> dict[str, str]:
    """The environment for child processes; a relative PYTHONPATH holds wherever they start."""
    found = dict(os.environ)
    if found.get("PYTHONPATH"):
        found["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, found["PYTHONPATH"].split(os.pathsep)))
    return found


@pytest.fixture
def servers() -> Path:
    """The folder of the servers to try things on."""
    return SERVERS


@pytest.fixture
def child_environment() -> dict[str, str]:
    """The environment that child processes need."""
    return environment()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start ``typedmcp`` with these words and leave it running; what is left is killed."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str, **options: Any) -> subprocess.Popen[str]:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        options = {"text": True, "encoding": "utf-8", "cwd": tmp_path, "env": environment(), **pipes, **options}
        process = subprocess.Popen([sys.executable, "-m", "typedmcp", *words], **options)
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def typedmcp(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run ``typedmcp`` with these words to its end, in an empty folder."""

    def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        options = {"input": "", "encoding": "utf-8", "cwd": tmp_path, "env": environment(), **options}
        command = [sys.executable, "-m", "typedmcp", *words]
        return subprocess.run(command, capture_output=True, timeout=60, check=False, **options)

    return run


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Result]]:
    """Run a command inside this process, in an empty folder; modules it loads are forgotten afterwards."""
    from typedmcp.cli.program import program

    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)

    def run(*words: str, **options: Any) -> Result:
        return CliRunner().invoke(program, list(words), **options)

    yield run
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", None)).startswith((str(tmp_path), str(SERVERS))):
            del sys.modules[name]
