"""Which requirements do tests name?  ``python tests/requirements.py [--section M1 ...] [--missing]``.

``requirements.toml`` lists the requirements, section by section.  A test names those it covers with
``@pytest.mark.req("A-023", "M-139")``; the marks are read from the source, so nothing is imported or run.
Exit code 1: a mark names an id that is not in the list, or names it by something other than a string.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Section:
    """Requirements that belong together."""

    key: str
    title: str
    rows: dict[str, str]


@dataclass(frozen=True)
class Named:
    """One argument of one mark: a requirement's id, or None where it is no string."""

    id: str | None
    place: str


def load(path: Path) -> list[Section]:
    """The sections of a list, in its order."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return [Section(key, table["title"], table["rows"]) for key, table in tables.items()]


def marks(folder: Path) -> Iterator[Named]:
    """What the marks in every Python file below `folder` name."""
    for path in sorted(folder.rglob("*.py")):
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue  # environments of peers, which are none of our tests
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"pytest.mark.req", "mark.req"}:
                for argument in node.args:
                    value = argument.value if isinstance(argument, ast.Constant) else None
                    place = f"{path.relative_to(folder.parent).as_posix()}:{argument.lineno}"
                    yield Named(value if isinstance(value, str) else None, place)


def faults(sections: list[Section], named: list[Named]) -> list[str]:
    """One line for every mark that names no requirement of the list."""
    known = {row for section in sections for row in section.rows}
    return [
        f"{name.place}: " + (f"no requirement {name.id}" if name.id else "not a plain string")
        for name in named
        if name.id not in known
    ]


def report(sections: list[Section], tested: set[str], only_missing: bool) -> Iterator[str]:
    """The rows without a test; unless `only_missing`, under their section's title and counts, and a total."""
    for section in sections:
        missing = {row: text for row, text in section.rows.items() if row not in tested}
        if not only_missing:
            yield f"{section.key} {section.title}: {len(section.rows) - len(missing)} of {len(section.rows)} tested"
        for row, text in missing.items():
            yield f"{row} {text}" if only_missing else f"    {row} {text}"
    if not only_missing:
        by_letter: dict[str, list[bool]] = defaultdict(list)
        for section in sections:
            by_letter[section.key[0]] += [row in tested for row in section.rows]
        counts = ", ".join(f"{letter} {sum(found)} of {len(found)}" for letter, found in by_letter.items())
        yield f"Requirements named by a test: {counts}."


def chosen(sections: list[Section], wanted: list[str]) -> list[Section]:
    """The sections asked for by key (``A1``) or letter (``A``); all when none is.

    Raises:
        LookupError: no section has such a key or letter.
    """
    for key in wanted:
        if not any(key in (section.key, section.key[0]) for section in sections):
            raise LookupError(f"no section {key}; there are {', '.join(section.key for section in sections)}")
    return [section for section in sections if not wanted or {section.key, section.key[0]} & set(wanted)]


def main(argv: list[str] | None = None) -> int:
    """Print the report; the exit code."""
    parser = argparse.ArgumentParser(description="Which requirements do tests name?")
    parser.add_argument("--section", action="append", default=[], help="a section (A1) or a letter (A); repeatable")
    parser.add_argument("--missing", action="store_true", help="only the rows without a test, without counts")
    options = parser.parse_args(argv)
    sections, named = load(TESTS / "requirements.toml"), list(marks(TESTS))
    try:
        wanted = chosen(sections, options.section)
    except LookupError as error:
        parser.error(str(error.args[0]))
    for line in report(wanted, {name.id for name in named if name.id}, options.missing):
        print(line)
    wrong = faults(sections, named)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
