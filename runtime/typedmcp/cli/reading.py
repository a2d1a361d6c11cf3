"""Values out of files of JSON or JSON Lines, each with the line it begins on.

Rules:
- A file whose first line is a whole JSON value, and which goes on after it, is JSON Lines: it is read line by line, so
  that its size does not matter.  A name that ends in ``.jsonl`` or ``.ndjson`` says so, too.
- Any other file is one JSON document: an array stands for its items, an object ``{"messages": [...]}`` for the items of
  that member, anything else for itself.
- What is no JSON is a value too, one with an error; in JSON Lines the next line is read as if nothing had been.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple, TypeAlias, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

Advance: TypeAlias = Callable[[int], None]

_BOM = b"\xef\xbb\xbf"
_LINES = (".jsonl", ".ndjson")
_TRUNCATED = "Input data was truncated"
_AT_BYTE = re.compile(r" \(byte (\d+)\)$")


class Entry(NamedTuple):
    """One value of a file."""

    line: int
    """Where it begins, counted from 1."""
    pointer: str
    """Where it is in its document; empty in JSON Lines, where each line is a document."""
    value: Any
    error: str | None
    """Why it is no JSON; None when it is."""


class _Holder(Struct):
    """A document that may hold messages, rather than be one."""

    messages: list[Raw] | UnsetType = UNSET
    jsonrpc: Raw | UnsetType = UNSET


def read_entries(stream: BinaryIO, name: str, advance: Advance) -> Iterator[Entry]:
    """Every value of a file.

    Args:
        stream: The file, opened for bytes.
        name: Its name, whose ending may say that it is JSON Lines.
        advance: Called with the number of bytes read since the last call.

    Raises:
        OSError: it cannot be read.
    """
    numbered = enumerate(_lines(stream, advance), 1)
    head: list[tuple[int, bytes]] = []
    for number, line in numbered:
        head.append((number, line))
        if sum(1 for _, seen in head if seen.strip()) == 2:
            break
    full = [line for _, line in head if line.strip()]
    if not full:
        return
    if name.endswith(_LINES) or _is_lines(full):
        yield from _entries_of_lines(itertools.chain(head, numbered))
    else:
        yield from _entries_of_document(b"".join(line for _, line in itertools.chain(head, numbered)))


def _lines(stream: BinaryIO, advance: Advance) -> Iterator[bytes]:
    first = True
    for line in stream:
        advance(len(line))
        yield line.removeprefix(_BOM) if first else line
        first = False


def _is_lines(full: list[bytes]) -> bool:
    """Whether the first two lines that are not blank are the beginning of JSON Lines."""
    _, error = _parse(full[0])
    if error is None:
        return len(full) > 1
    if error != _TRUNCATED:
        return len(full) > 1 or not full[0].lstrip().startswith((b"{", b"["))
    # The first message may be cut off, too; then the second line is one of its own.
    return full[0].lstrip().startswith(b"{") and len(full) > 1 and isinstance(_parse(full[1])[0], dict)


def _entries_of_lines(numbered: Iterable[tuple[int, bytes]]) -> Iterator[Entry]:
    for number, line in numbered:
        if line.strip():
            value, error = _parse(line)
            yield Entry(number, "", value, None if error is None else _explained(line, error))


def _entries_of_document(data: bytes) -> Iterator[Entry]:
    value, error = _parse(data)
    if error is not None:
        yield Entry(_line_of_error(data, error), "", None, _explained(data, _AT_BYTE.sub("", error)))
        return
    items, prefix = _items(data, value)
    if items is None:
        yield Entry(_line_at(data, len(data) - len(data.lstrip())), "", value, None)
        return
    values = cast("list[Any]", value if isinstance(value, list) else value["messages"])
    line, place = 1, 0
    for index, (item, raw) in enumerate(zip(values, items, strict=True)):
        # Nothing but white space and a comma lies between two items, so the next match is the item itself.
        begin = data.index(bytes(raw), place)
        line += data.count(b"\n", place, begin)
        place = begin
        yield Entry(line, f"{prefix}/{index}", item, None)
        line += data.count(b"\n", place, begin + len(bytes(raw)))
        place = begin + len(bytes(raw))


def _items(data: bytes, value: Any) -> tuple[list[Raw] | None, str]:
    """The items a document stands for, undecoded, and the pointer to them; None when it stands for itself."""
    if isinstance(value, list):
        return msgspec.json.decode(data, type=list[Raw]), ""
    try:
        holder = msgspec.json.decode(data, type=_Holder)
    except msgspec.ValidationError:
        return None, ""
    if holder.messages is UNSET or holder.jsonrpc is not UNSET:
        return None, ""
    return holder.messages, "/messages"


def _parse(data: bytes) -> tuple[Any, str | None]:
    try:
        return msgspec.json.decode(data), None
    except RecursionError:
        return None, "JSON that nests too deeply"
    except (msgspec.DecodeError, ValueError) as error:
        return None, str(error)


def _explained(data: bytes, error: str) -> str:
    """The error in words for people; half a surrogate pair goes by the name of its symptom."""
    if error != _TRUNCATED:
        return error
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return "JSON that ends too early"
    return "half a surrogate pair in a string"


def _line_of_error(data: bytes, error: str) -> int:
    place = _AT_BYTE.search(error)
    return _line_at(data, int(place[1]) if place else len(data.rstrip()))


def _line_at(data: bytes, place: int) -> int:
    return data.count(b"\n", 0, place) + 1
