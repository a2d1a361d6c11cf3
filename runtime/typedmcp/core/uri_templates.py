"""URI templates (RFC 6570) as MCP servers use them: parse, expand, match, and compare two of them.

Rules:
- ``{name}`` stands for one segment: one or more characters, none of them ``/``, ``?`` or ``#``.
- ``{name*}`` stands for one or more segments: characters other than ``?`` and ``#``.
- ``{+name}`` stands for anything that is not empty.
- Other operators, prefixes and several names in one expression are refused, and so are two expressions side by side,
  since no URI says where one ends.  The scheme is always literal.
- Literal text is literal.  Addresses are compared in one normal form: characters outside ASCII, and those no URI has,
  in percent-encoded UTF-8; percent codes of unreserved characters decoded, others in upper case.
- Of several ways to match, an earlier expression takes as much as it can.
- Values come out decoded.  A value that leads upwards (a segment ``..``), holds a NUL or is no UTF-8 matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from typedmcp.core.errors import UsageError

MAX_URI: Final = 8192
"""Longer addresses match no template."""

_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_RESERVED: Final = frozenset(":/?#[]@!$&'()*+,;=")
_KEPT: Final = _UNRESERVED | _RESERVED | {"%"}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_EXPRESSION = re.compile(r"(\+?)([A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*)(\*?)")
_CODE = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_TOKEN = re.compile(r"%[0-9A-Fa-f]{2}|[^%]")
_PIECE = re.compile(r"%[0-9A-Fa-f]{2}|.", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]*")

_STOPS: Final = {"": frozenset("/?#"), "*": frozenset("?#"), "+": frozenset[str]()}
"""What an expression of each kind does not hold."""


class Variable(Struct, frozen=True):
    """An expression: its name, and its kind: ``""`` one segment, ``"*"`` segments, ``"+"`` anything."""

    name: str
    kind: str


Part: TypeAlias = tuple[str, ...] | Variable
"""Literal tokens, or an expression.  A token is one character or one percent code."""


class URITemplate:
    """A parsed template.

    Args:
        text: The template, such as ``"docs://{section}/{+path}"``.

    Raises:
        UsageError: it is none, or not one of the forms above; the text says why.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts = _parse(text)
        self.names: tuple[str, ...] = tuple(part.name for part in self.parts if isinstance(part, Variable))
        first, last = self.parts[0], self.parts[-1]
        self._start = "" if isinstance(first, Variable) else "".join(first)
        self._end = "" if isinstance(last, Variable) else "".join(last)
        if len(set(self.names)) < len(self.names):
            raise UsageError(f"template {text!r} has a variable twice")

    def __repr__(self) -> str:
        return f"URITemplate({self.text!r})"

    def expand(self, values: Mapping[str, str]) -> str:
        """The address that the template makes of `values`.

        Raises:
            UsageError: a value is missing, or empty.
        """
        pieces: list[str] = []
        for part in self.parts:
            if not isinstance(part, Variable):
                pieces += part
            elif not values.get(part.name):
                raise UsageError(f"template {self.text!r} needs a value for {part.name!r}")
            else:
                pieces.append(_encode(values[part.name], part.kind))
        return "".join(pieces)

    def match(self, uri: str) -> dict[str, str] | None:
        """The decoded values that make the template `uri`; None when none do.

        The time it takes grows with the length of the address, not with the number of ways to read it.
        """
        text = normal_form(uri) if len(uri) <= MAX_URI else ""
        if not text.startswith(self._start) or not text.endswith(self._end):
            return None
        tokens = _tokens(text)
        fits = self._fits(tokens) if tokens else None
        return None if tokens is None or fits is None or not fits[0][0] else self._values(tokens, fits)

    def _values(self, tokens: Sequence[str], fits: Sequence[bytearray]) -> dict[str, str] | None:
        values: dict[str, str] = {}
        start = 0
        for index, part in enumerate(self.parts):
            if not isinstance(part, Variable):
                start += len(part)
                continue
            end, best, stops = start, start, _STOPS[part.kind]
            while end < len(tokens) and tokens[end] not in stops:
                end += 1
                if fits[index + 1][end]:
                    best = end
            value = _safe(decode("".join(tokens[start:best])))
            if value is None:
                return None
            values[part.name] = value
            start = best
        return values

    def _fits(self, tokens: Sequence[str]) -> list[bytearray]:
        """For every part and position, whether the parts from there on make up the tokens from there on."""
        end = len(tokens)
        after = bytearray(end + 1)
        after[end] = 1
        fits = [after]
        for part in reversed(self.parts):
            here = bytearray(end + 1)
            if isinstance(part, Variable):
                stops = _STOPS[part.kind]
                for position in range(end - 1, -1, -1):
                    if tokens[position] not in stops:
                        here[position] = after[position + 1] or here[position + 1]
            else:
                size = len(part)
                for position in range(end - size + 1):
                    if after[position + size] and tuple(tokens[position : position + size]) == part:
                        here[position] = 1
            fits.append(here)
            after = here
        fits.reverse()
        return fits


def overlap(one: URITemplate, other: URITemplate) -> bool:
    """Whether some address is made by both templates.

    Exact but for values that lead upwards, which it takes for possible: two templates without a common address may be
    taken to have one then, never the other way round.
    """
    left, right = _steps(one), _steps(other)
    known = {step for step in (*left, *right) if isinstance(step, str)}
    alphabet = known | {"/", "?", "#", "\0"}  # the last stands for every other character
    todo, seen = [(0, 0)], {(0, 0)}
    while todo:
        pair = todo.pop()
        if len(left) in _closure(left, pair[0]) and len(right) in _closure(right, pair[1]):
            return True
        for token in alphabet:
            for new in ((i, j) for i in _next(left, pair[0], token) for j in _next(right, pair[1], token)):
                if new not in seen:
                    seen.add(new)
                    todo.append(new)
    return False


_Step: TypeAlias = str | tuple[frozenset[str], bool]
"""A literal token; or what a token must not be, and whether the step may be left out and repeated."""


def _steps(template: URITemplate) -> list[_Step]:
    steps: list[_Step] = []
    for part in template.parts:
        if isinstance(part, Variable):
            steps += [(_STOPS[part.kind], False), (_STOPS[part.kind], True)]
        else:
            steps += part
    return steps


def _closure(steps: Sequence[_Step], at: int) -> range:
    """The places reached from `at` without a token."""
    end = at
    while end < len(steps) and not isinstance(steps[end], str) and steps[end][1]:
        end += 1
    return range(at, end + 1)


def _next(steps: Sequence[_Step], at: int, token: str) -> set[int]:
    """The places reached from `at` by one token."""
    reached: set[int] = set()
    for place in _closure(steps, at):
        step = steps[place] if place < len(steps) else ""
        if isinstance(step, str):
            if step == token:
                reached.add(place + 1)
        elif token not in step[0]:
            reached.add(place if step[1] else place + 1)
    return reached


# -- normal form -----------------------------------------------------------------------------------------------------


def normal_form(uri: str) -> str:
    """`uri` as it is compared; two addresses that differ only in how characters are written have one."""
    return uri if _PLAIN.fullmatch(uri) else "".join(map(_normal, _PIECE.findall(uri)))


def _tokens(text: str) -> list[str] | None:
    """The characters and percent codes of a normal form; None when a percent sign begins no code."""
    tokens = _TOKEN.findall(text) if "%" in text else list(text)
    return tokens if sum(map(len, tokens)) == len(text) else None


def decode(text: str) -> str | None:
    """`text` with its percent codes decoded; None when they are no UTF-8."""
    if "%" not in text:
        return text
    try:
        return _CODE.sub(lambda codes: bytes.fromhex(codes[0].replace("%", "")).decode(), text)
    except UnicodeDecodeError:
        return None


def _normal(piece: str) -> str:
    """One character or percent code as the normal form has it."""
    if len(piece) == 3:
        character = chr(int(piece[1:], 16))
        return character if character in _UNRESERVED else piece.upper()
    return piece if piece in _KEPT else _quote(piece)


def _quote(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def _encode(value: str, kind: str) -> str:
    kept = _UNRESERVED | _RESERVED if kind == "+" else _UNRESERVED | {"/"} if kind == "*" else _UNRESERVED
    return "".join(character if character in kept else _quote(character) for character in value)


def _safe(value: str | None) -> str | None:
    if value is None or "\0" in value or ".." in value.replace("\\", "/").split("/"):
        return None
    return value


# -- parsing ---------------------------------------------------------------------------------------------------------


def _parse(text: str) -> tuple[Part, ...]:
    if not _SCHEME.match(text):
        raise UsageError(f"a template begins with a literal scheme, such as 'docs://{{path}}'; got {text!r}")
    parts: list[Part] = []
    for index, piece in enumerate(re.split(r"\{([^{}]*)\}", text)):
        if index % 2:
            if parts and isinstance(parts[-1], Variable):
                raise UsageError(f"template {text!r}: nothing says where {{{parts[-1].name}}} ends")
            parts.append(_expression(piece, text))
        elif "{" in piece or "}" in piece:
            raise UsageError(f"template {text!r} has a brace without its partner")
        elif piece:
            parts.append(_literal(piece, text))
    return tuple(parts)


def _expression(piece: str, text: str) -> Variable:
    found = _EXPRESSION.fullmatch(piece)
    if found is None or (found[1] and found[3]):
        raise UsageError(f"template {text!r}: {{{piece}}} is none of {{name}}, {{name*}} and {{+name}}")
    return Variable(found[2], found[1] or found[3])


def _literal(piece: str, text: str) -> tuple[str, ...]:
    if any(character.isspace() or not character.isprintable() for character in piece):
        raise UsageError(f"template {text!r} has white space or control characters")
    tokens = _tokens(normal_form(piece))
    if tokens is None:
        raise UsageError(f"template {text!r} has a percent sign that begins no code")
    return tuple(tokens)
