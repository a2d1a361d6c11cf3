"""What a docstring says about a function and its parameters (Google, NumPy and reST layouts)."""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(
    r"^(args|arguments|parameters|params|returns?|raises|yields?|examples?|notes?|see also|warnings?|attributes)\s*:?$",
    re.IGNORECASE,
)
_PARAMETERS = re.compile(r"^(args|arguments|parameters|params)\s*:?$", re.IGNORECASE)
_GOOGLE = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY = re.compile(r"^\*{0,2}(\w+)\s*(?::\s.*)?$")
_REST = re.compile(r"^:param\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)$")


def parse_docstring(function: object) -> tuple[str | None, dict[str, str]]:
    """The description of a function (None without a docstring), and of each parameter that is described."""
    text = inspect.getdoc(function)
    if not text:
        return None, {}
    description: list[str] = []
    parameters: dict[str, str] = {}
    lines = text.splitlines()
    index = 0
    while index < len(lines):
        line = lines[index]
        rest = _REST.match(line.strip())
        if rest or line.strip().startswith((":return", ":rtype", ":raises", ":type")):
            index = _field(lines, index, rest, parameters)
        elif _SECTION.match(line.strip()) and not line.startswith(" "):
            index = _section(lines, index, parameters)
        else:
            description.append(line)
            index += 1
    body = "\n".join(description).strip()
    return body or None, parameters


def _field(lines: list[str], index: int, match: re.Match[str] | None, parameters: dict[str, str]) -> int:
    """One reST field and its continuation lines; the index after it."""
    words = [match[2]] if match else []
    index += 1
    while index < len(lines) and lines[index].startswith(" "):
        words.append(lines[index].strip())
        index += 1
    if match:
        parameters[match[1]] = " ".join(filter(None, words))
    return index


def _section(lines: list[str], index: int, parameters: dict[str, str]) -> int:
    """One titled section; the index after it.  Only parameter sections are read."""
    wanted = _PARAMETERS.match(lines[index].strip()) is not None
    index += 1
    numpy = index < len(lines) and set(lines[index].strip()) == {"-"}
    index += numpy
    name = None
    while index < len(lines):
        line = lines[index]
        stripped = line.strip()
        following = lines[index + 1].strip() if index + 1 < len(lines) else ""
        if stripped and not line.startswith(" ") and (not numpy or (following and set(following) == {"-"})):
            return index
        entry = _entry(line, numpy)
        if entry is not None:
            name, text = entry
            if wanted:
                parameters[name] = text
        elif wanted and name is not None and stripped:
            parameters[name] = f"{parameters[name]} {stripped}".strip()
        index += 1
    return index


def _entry(line: str, numpy: bool) -> tuple[str, str] | None:
    """The name and first words of a parameter that begins on this line."""
    if numpy:
        match = None if line.startswith(" ") else _NUMPY.match(line.strip())
        return (match[1], "") if match else None
    indent = len(line) - len(line.lstrip())
    match = _GOOGLE.match(line.strip()) if 0 < indent <= 4 else None
    return (match[1], match[2]) if match else None
