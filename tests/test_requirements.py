"""The marks of the tests and the list of requirements fit together."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def requirements() -> ModuleType:
    spec = importlib.util.spec_from_file_location("typedmcp_requirements", HERE / "requirements.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "requirements.toml").write_text(
        '[A1]\ntitle = "One"\n[A1.rows]\nA-001 = "first"\nA-002 = "second"\n'
        '[M1]\ntitle = "Two"\n[M1.rows]\nM-001 = "x"\n'
    )
    return tests


def test_every_mark_names_a_listed_requirement(requirements: ModuleType) -> None:
    sections = requirements.load(HERE / "requirements.toml")
    assert requirements.faults(sections, list(requirements.marks(HERE))) == []


def test_ids_are_listed_once_and_texts_are_short(requirements: ModuleType) -> None:
    rows = [row for section in requirements.load(HERE / "requirements.toml") for row in section.rows.items()]
    assert len(dict(rows)) == len(rows)
    assert [row for row, text in rows if not (text.isascii() and 0 < len(text) <= 100)] == []


def test_marks_are_found_wherever_they_stand(requirements: ModuleType, folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "test_a.py").write_text(
        "import pytest\n"
        "pytestmark = pytest.mark.req('A-001')\n"
        "@pytest.mark.req('A-002', 'M-001')\n"
        "class TestA: ...\n"
        "CASES = [pytest.param(1, marks=[pytest.mark.req(f'A-{1}')])]\n"
    )
    named = list(requirements.marks(folder))
    assert sorted((name.id or "", name.place) for name in named) == [
        ("", "tests/deep/test_a.py:5"),
        ("A-001", "tests/deep/test_a.py:2"),
        ("A-002", "tests/deep/test_a.py:3"),
        ("M-001", "tests/deep/test_a.py:3"),
    ]
    assert requirements.faults(requirements.load(folder / "requirements.toml"), named) == [
        "tests/deep/test_a.py:5: not a plain string"
    ]


def test_report_counts_by_section(requirements: ModuleType, folder: Path) -> None:
    sections = requirements.load(folder / "requirements.toml")
    assert list(requirements.report(sections, {"A-001"}, only_missing=False)) == [
        "A1 One: 1 of 2 tested",
        "    A-002 second",
        "M1 Two: 0 of 1 tested",
        "    M-001 x",
        "Requirements named by a test: A 1 of 2, M 0 of 1.",
    ]
    assert list(requirements.report(sections, {"A-001"}, only_missing=True)) == ["A-002 second", "M-001 x"]


def test_sections_are_chosen_by_key_or_letter(requirements: ModuleType, folder: Path) -> None:
    sections = requirements.load(folder / "requirements.toml")
    assert [section.key for section in requirements.chosen(sections, ["A"])] == ["A1"]
    assert [section.key for section in requirements.chosen(sections, ["M1", "A1"])] == ["A1", "M1"]
    with pytest.raises(LookupError, match=r"no section Z9; there are A1, M1"):
        requirements.chosen(sections, ["Z9"])


def test_an_unknown_id_fails_the_command(
    requirements: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(requirements, "TESTS", folder)
    (folder / "test_a.py").write_text("import pytest\n@pytest.mark.req('A-999')\ndef test_a(): ...\n")
    assert requirements.main(["--section", "M1", "--missing"]) == 1
    printed = capsys.readouterr()
    assert printed.out == "M-001 x\n"
    assert printed.err == "tests/test_a.py:2: no requirement A-999\n"
