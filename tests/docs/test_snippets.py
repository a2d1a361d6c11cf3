"""Every snippet of README and docs runs, and so does every example."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Valid in every revision: what newer ones demand is beside what older ones know.
RECORDED = """\
{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {\
"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}
{"jsonrpc": "2.0", "id": 1, "result": {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}}
"""


def blocks(language: str) -> list[tuple[str, str]]:
    """(where, text) of every fenced block of a language."""
    return [
        (f"{page.name}-{number}", match[2])
        for page in PAGES
        for number, match in enumerate(_BLOCK.finditer(page.read_text("utf-8")), start=1)
        if match[1] == language
    ]


def commands() -> list[tuple[str, str]]:
    """(where, command) of every `typedmcp` line; comments behind them left out."""
    lines = [(where, line) for where, text in blocks("sh") for line in text.splitlines()]
    return [(where, line.partition("  #")[0].strip()) for where, line in lines if line.startswith("typedmcp ")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with the files the snippets speak of."""
    (tmp_path / "calculator.py").write_text(next(text for _, text in blocks("python") if "# calculator.py" in text))
    (tmp_path / "recorded.jsonl").write_text(RECORDED)
    return tmp_path


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.req("A-313")
@pytest.mark.parametrize(("where", "text"), blocks("python"), ids=[where for where, _ in blocks("python")])
def test_python_snippet_runs(where: str, text: str, folder: Path) -> None:
    script = folder / "snippet.py"
    script.write_text(text)
    done = run([sys.executable, "snippet.py"], folder)
    assert done.returncode == 0, f"{where}: {done.stderr}"


@pytest.mark.parametrize(("where", "command"), commands(), ids=[f"{w}-{c[:40]}" for w, c in commands()])
def test_command_runs(where: str, command: str, folder: Path) -> None:
    if "--http" in command or "--ws" in command:
        _serves(command, folder)
        return
    done = run(["sh", "-c", command], folder)
    assert done.returncode == 0, f"{where}: {done.stdout}{done.stderr}"


def _serves(command: str, folder: Path) -> None:
    """It says where it serves, and ends when it is told to; on a free port, as others may have the usual one."""
    words = [sys.executable, "-m", *command.split(), "--port", "0"]
    with subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert process.stderr.readline().startswith("Serving calculator at http://127.0.0.1:")
        finally:
            process.terminate()
        assert process.wait(timeout=30) == 0


def test_client_snippet_prints_what_it_says(folder: Path) -> None:
    text = next(text for _, text in blocks("python") if "structured_content)  #" in text)
    (folder / "snippet.py").write_text(text)
    done = run([sys.executable, "snippet.py"], folder)
    said = re.findall(r"print\(.*\)  # (.*)$", text, re.MULTILINE)
    assert done.stdout.splitlines() == said


def test_make_targets_exist() -> None:
    """README and docs name only targets the Makefile has."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        word
        for page in PAGES
        for line in re.findall(r"^make ([a-z -]+)", page.read_text("utf-8"), re.MULTILINE)
        for word in line.split("  ")[0].split()
    }
    assert named <= targets


@pytest.mark.parametrize("example", ["client.py", "calculator.py"])
def test_example_runs(example: str, folder: Path) -> None:
    done = run([sys.executable, str(ROOT / "docs" / "examples" / example)], folder)
    assert done.returncode == 0, done.stderr


def test_example_client_gets_the_sum(folder: Path) -> None:
    done = run([sys.executable, str(ROOT / "docs" / "examples" / "client.py")], folder)
    assert done.stdout.splitlines()[-1] == "3"


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
