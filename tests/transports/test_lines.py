"""Framing by lines: any chunking, long lines, byte order marks, and the seed's helpers."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from typedmcp.core.emitter import Emitter
from typedmcp.core.errors import MessageError
from typedmcp.core.jsonrpc import JSONRPCRequest
from typedmcp.transports.lines import (
    DEFAULT_MAX_LINE_BYTES,
    BadLine,
    LineFramer,
    LineTooLong,
    dispatch_lines,
    encode_lines,
    extract_lines,
)

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def feed_all(framer: LineFramer, chunks: list[bytes]) -> list[object]:
    return [line for chunk in chunks for line in framer.feed(chunk)] + framer.eof()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@pytest.mark.req("A-301", "A-305", "M-073")
@given(
    st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]))),
    st.sampled_from(["\n", "\r\n"]),
    st.lists(st.integers(min_value=0), max_size=20),
)
def test_any_chunking_gives_the_same_lines(texts: list[str], end: str, places: list[int]) -> None:
    """F025-like inputs: chunks may break inside a character, a line end or a byte order mark."""
    data = "".join(text + end for text in texts).encode()
    expected = [text.encode() for text in texts]
    if expected:
        expected[0] = expected[0].removeprefix(b"\xef\xbb\xbf")
    assert feed_all(LineFramer(), cut(data, places)) == [line for line in expected if line and not line.isspace()]


@pytest.mark.req("A-305")
@pytest.mark.parametrize("size", [1, 2, 3, 5, 64])
def test_characters_may_be_split(size: int) -> None:
    data = "\ufeff".encode() + "ä€🙂\u2028\u0085\r\n\n  \t\r\n中文\n".encode()
    chunks = [data[n : n + size] for n in range(0, len(data), size)]
    assert feed_all(LineFramer(), chunks) == ["ä€🙂\u2028\u0085".encode(), "中文".encode()]


def test_one_carriage_return_is_dropped_and_one_mark_at_the_start() -> None:
    """F008: a reader accepts an optional CR before the LF."""
    framer = LineFramer()
    assert framer.feed(b"\xef\xbb\xbfa\r\r\n\xef\xbb\xbfb\n") == [b"a\r", b"\xef\xbb\xbfb"]
    assert framer.feed(b"c\r") == []
    assert framer.feed(b"\n") == [b"c"]


def test_the_last_line_needs_no_line_end() -> None:
    framer = LineFramer()
    assert framer.feed(b"a\nb\r") == [b"a"]
    assert framer.eof() == [b"b"]
    assert framer.eof() == []


def test_lines_are_numbered_as_a_reader_counts_them() -> None:
    framer = LineFramer(limit=4)
    assert framer.feed(b"\n\na\n \nb\n") == [b"a", b"b"]
    assert [framer.line_number(0), framer.line_number(1)] == [3, 5]
    assert framer.feed(b"c") == []
    lines = framer.feed(b"\n\n12345\nd\n6789")
    assert [str(line) if isinstance(line, LineTooLong) else line for line in lines] == [
        b"c",
        "The line is longer than 4 bytes. It begins with '12345'",
        b"d",
    ]
    assert [framer.line_number(n) for n in range(3)] == [6, 8, 9]
    (long,) = framer.feed(b"0")
    assert isinstance(long, LineTooLong)
    assert framer.line_number(0) == 10
    assert framer.feed(b"more\n") == []
    assert framer.feed(b"e\n") == [b"e"]
    assert framer.line_number(0) == 11


@given(st.binary(max_size=60), st.lists(st.integers(min_value=0), max_size=8), st.integers(1, 12))
def test_a_limit_holds_whatever_the_chunks(data: bytes, places: list[int], limit: int) -> None:
    expected: list[object] = []
    for n, line in enumerate(data.split(b"\n")):
        if len(line) > limit:
            expected.append(LineTooLong)
        else:
            clean = line.removesuffix(b"\r")
            clean = clean.removeprefix(b"\xef\xbb\xbf") if n == 0 else clean
            if clean and not clean.isspace():
                expected.append(clean)
    found = feed_all(LineFramer(limit), cut(data, places))
    assert [LineTooLong if isinstance(line, LineTooLong) else line for line in found] == expected


@pytest.mark.req("A-308")
@pytest.mark.parametrize("size", [70_000, 1_048_576, 50 * 1_048_576])
def test_large_lines(size: int) -> None:
    """F011: lines far above asyncio's 64 KiB."""
    line = b'"' + b"x" * size + b'"'
    data = line + b"\n" + PING + b"\n"
    assert feed_all(LineFramer(), [data[n : n + 65536] for n in range(0, len(data), 65536)]) == [line, PING]


def test_a_flood_without_a_line_end_costs_the_limit_and_linear_time() -> None:
    """F012: 200 MiB without a newline in 4 KiB pieces."""
    framer = LineFramer()
    piece = b"x" * 4096
    found: list[object] = []
    began = time.process_time()
    for _ in range(200 * 256):
        found += framer.feed(piece)
    spent = time.process_time() - began
    assert [str(each) for each in found] == [
        f"The line is longer than {DEFAULT_MAX_LINE_BYTES} bytes. It begins with '{'x' * 120}'"
    ]
    assert framer.feed(b"\n" + PING + b"\n") == [PING]
    # Half a second here; quadratic work would take hours.
    assert spent < 20


def test_a_long_line_in_small_pieces_is_linear() -> None:
    framer = LineFramer()
    began = time.process_time()
    for _ in range(200_000):
        framer.feed(b"x")
    assert framer.feed(b"\n") == [b"x" * 200_000]
    assert time.process_time() - began < 20


@pytest.mark.req("A-301", "A-302", "A-306")
def test_extract_lines_golden() -> None:
    lines, remainder = extract_lines("", '{"jsonrpc":"2.0","method":"ping"}\n{"jsonrpc"')
    assert lines == ['{"jsonrpc":"2.0","method":"ping"}']
    assert remainder == '{"jsonrpc"'
    again = extract_lines(remainder, ':"2.0"}\r\n\n')
    assert again.lines == ['{"jsonrpc":"2.0"}']
    assert again.remainder == ""
    assert extract_lines(b"a", b"b\nc") == ([b"ab"], b"c")
    assert extract_lines("", "\u2028") == ([], "\u2028")


@pytest.mark.req("A-303", "A-156")
def test_dispatch_lines_emits_messages_and_errors_in_order() -> None:
    seen: list[object] = []
    emitter = Emitter({"message": seen.append, "error": seen.append})
    framer = LineFramer(limit=100)
    lines = framer.feed(b"x" * 200 + b"\n" + PING + b"\nnonsense\n[]\n")
    dispatch_lines(emitter, lines)
    dispatch_lines(emitter, [PING.decode()])
    expected = [LineTooLong, JSONRPCRequest, MessageError, MessageError, JSONRPCRequest]
    assert all(isinstance(each, kind) for each, kind in zip(seen, expected, strict=True))
    assert isinstance(seen[2], MessageError)
    assert (seen[2].code, seen[2].frame) == (-32700, b"nonsense")


@pytest.mark.req("A-303", "A-301")
def test_the_seed_example() -> None:
    seen: list[JSONRPCRequest] = []
    emitter = Emitter({"message": seen.append})
    lines, _ = extract_lines("", '{"jsonrpc":"2.0","method":"ping"}\n{"jsonrpc"')
    dispatch_lines(emitter, lines)
    assert [message.method for message in seen] == ["ping"]


def test_a_bad_line_tells_its_number_and_beginning() -> None:
    """F009: stray text glued in front of a line."""
    error = BadLine(MessageError(-32700, "The message is not JSON.", frame=b'loading...{"jsonrpc"'), 3)
    assert str(error) == "Line 3: The message is not JSON. Got 20 bytes: 'loading...{\"jsonrpc\"'"
    assert (error.code, error.message, error.frame[:10]) == (-32700, "The message is not JSON.", b"loading...")


@pytest.mark.req("A-304", "M-073")
def test_an_encoded_line_has_no_line_break() -> None:
    message = JSONRPCRequest(id=1, method="echo", params={"text": "a\nb\r\u2028\u2029\u0085\n"})
    (line,) = encode_lines(message)
    assert len(line.decode().splitlines()) == 1
    assert len(encode_lines([message, message])) == 2
