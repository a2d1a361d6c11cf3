"""Messages as lines, without IO: what both sides of stdio, and any other byte stream, frame with.

Rules:
- LF ends a line; one CR before it is dropped.  Nothing else ends a line, U+2028 and its kin included.
- One byte order mark is dropped, at the start of the stream only.  Lines without text are skipped.
- Chunks may break anywhere, inside a character too: lines are bytes until they are complete.
- Every byte is looked at once, however small the chunks are.
- A line longer than the limit is reported once, as :class:`LineTooLong`, and skipped up to its LF; the stream goes on.
  So a peer that never ends its line costs at most the limit (64 MiB unless told otherwise) of memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, AnyStr, Final, Generic, NamedTuple, TypeAlias, overload

from typedmcp.core.emitter import Emitter
from typedmcp.core.errors import MessageError
from typedmcp.core.jsonrpc import JSONRPCMessage, JSONRPCRequest, JSONRPCResponse, decode_message, encode_message
from typedmcp_wire.revisions import INVALID_REQUEST

DEFAULT_MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""The longest line taken, in bytes, without its line end: 64 MiB."""

_BOM = b"\xef\xbb\xbf"
_EXCERPT = 120


class LineTooLong(MessageError):
    """A line beyond the limit, skipped; `frame` holds only its beginning."""

    def __init__(self, limit: int, beginning: bytes) -> None:
        super().__init__(INVALID_REQUEST, f"The line is longer than {limit} bytes.", frame=beginning)

    def __str__(self) -> str:
        return f"{self.message} It begins with {self.frame.decode('utf-8', 'backslashreplace')!r}"


class BadLine(MessageError):
    """What is wrong with a line, and which line it is; the same error otherwise.

    Attributes:
        number: The line's number in the stream, from 1.
    """

    def __init__(self, error: MessageError, number: int) -> None:
        super().__init__(error.code, error.message, id=error.id, answer=error.answer, frame=error.frame)
        self.number = number
        self._text = str(error)

    def __str__(self) -> str:
        return f"Line {self.number}: {self._text}"


Line: TypeAlias = bytes | MessageError
"""A line, or why there is none."""


class LineFramer:
    """Cuts a stream of chunks into lines.

    Args:
        limit: The longest line taken, in bytes.
    """

    __slots__ = ("_count", "_fresh", "_held", "_limit", "_numbers", "_skipping")

    def __init__(self, limit: int = DEFAULT_MAX_LINE_BYTES) -> None:
        self._limit = limit
        # A bytearray and not a list of pieces: a peer that sends single bytes must not cost an object for each.
        self._held = bytearray()
        self._skipping = False
        self._fresh = True
        self._count = 0
        self._numbers: list[int] | range = range(0)

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that `chunk` completes."""
        pieces = chunk.split(b"\n")
        rest = pieces.pop()
        held = self._held
        if self._skipping or len(held) + len(chunk) > self._limit:
            return self._feed_long(pieces, rest)
        carriage = b"\r" in chunk
        if held and pieces:
            held += pieces[0]
            pieces[0] = bytes(held)
            carriage = carriage or pieces[0].endswith(b"\r")
            self._held = held = bytearray()
        if rest:
            held += rest
        return self._numbered(pieces, carriage) if pieces else []

    def eof(self) -> list[Line]:
        """The last line, when the stream has ended without an LF after it."""
        last = bytes(self._held)
        self._held = bytearray()
        return self._numbered([last], carriage=True) if last else []

    def line_number(self, index: int) -> int:
        """The number in the stream, from 1, of a line that the latest call of :meth:`feed` or :meth:`eof` gave."""
        return self._numbers[index]

    def _numbered(self, pieces: list[bytes], carriage: bool) -> list[Line]:
        """`pieces` cleaned, those without text left out."""
        first = self._count + 1
        self._count += len(pieces)
        if carriage:
            pieces = [piece.removesuffix(b"\r") for piece in pieces]
        if self._fresh:
            self._fresh = False
            pieces[0] = pieces[0].removeprefix(_BOM)
        lines: list[Line] = [piece for piece in pieces if piece and not piece.isspace()]
        if len(lines) == len(pieces):
            self._numbers = range(first, first + len(pieces))
        else:
            self._numbers = [first + n for n, piece in enumerate(pieces) if piece and not piece.isspace()]
        return lines

    def _feed_long(self, pieces: list[bytes], rest: bytes) -> list[Line]:
        """Like :meth:`feed`, where a line may be beyond the limit."""
        lines: list[Line] = []
        numbers: list[int] = []
        for piece in pieces:
            found = self._extend(piece)
            if self._skipping:
                self._count += 1
            else:
                found = self._numbered([bytes(self._held)], carriage=True)
            lines += found
            numbers += [self._count] * len(found)
            self._held = bytearray()
            self._skipping = False
        found = self._extend(rest)
        self._numbers = numbers + [self._count + 1] * len(found)
        return lines + found

    def _extend(self, piece: bytes) -> list[Line]:
        """Add `piece` to the line under way; the report when that goes beyond the limit just now."""
        if self._skipping:
            return []
        if len(self._held) + len(piece) <= self._limit:
            self._held += piece
            return []
        beginning = bytes(self._held[:_EXCERPT] + piece[:_EXCERPT])[:_EXCERPT]
        self._held = bytearray()
        self._skipping = True
        self._fresh = False
        return [LineTooLong(self._limit, beginning)]


class LineExtraction(NamedTuple, Generic[AnyStr]):
    """The complete lines of a buffer, and what follows the last of them."""

    lines: list[AnyStr]
    remainder: AnyStr


@overload
def extract_lines(buffer: str, chunk: str) -> LineExtraction[str]: ...
@overload
def extract_lines(buffer: bytes, chunk: bytes) -> LineExtraction[bytes]: ...
def extract_lines(buffer: Any, chunk: Any) -> LineExtraction[Any]:
    """Add `chunk` to `buffer` and take the complete lines off.

    For a few lines at a time; :class:`LineFramer` is made for streams.
    """
    line_feed, carriage = ("\n", "\r") if isinstance(chunk, str) else (b"\n", b"\r")
    *lines, remainder = (buffer + chunk).split(line_feed)
    return LineExtraction([line.removesuffix(carriage) for line in lines if line.strip()], remainder)


def encode_lines(message: JSONRPCMessage | Sequence[JSONRPCMessage]) -> list[bytes]:
    """The text of one message, or of each of several."""
    if isinstance(message, (JSONRPCRequest, JSONRPCResponse)):
        return [encode_message(message)]
    return [encode_message(each) for each in message]


def dispatch_lines(emitter: Emitter, lines: Iterable[str | Line]) -> None:
    """Decode each line and emit it as ``message``, or as ``error`` what is wrong with it."""
    for line in lines:
        try:
            if isinstance(line, MessageError):
                raise line
            message = decode_message(line)
        except MessageError as error:
            emitter.emit("error", error)
        else:
            emitter.emit("message", message)
