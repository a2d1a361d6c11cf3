"""Server-sent events without IO, both ways: what the HTTP transports frame with (WHATWG HTML, section 9.2).

Rules:
- LF, CR and CRLF each end a line, also when a CRLF is split over two chunks.  Nothing else does, U+2028 and its kin
  included.
- Chunks may break anywhere, inside a character too: lines are bytes until they are complete.  Bytes that are no UTF-8
  become U+FFFD.  One byte order mark is dropped, at the start of the stream only.
- Comments are ignored.  The data lines of an event are joined with LF.  One space after a field's colon is dropped.  An
  id with NUL and a retry that is not all digits are ignored; so is every field without a meaning.
- A block with an id or a retry but without data is an event with empty data: browsers hide it, a client that resumes
  needs it.  A block that the end of the stream cuts off is no event.
- Every byte is looked at once, however small the chunks are.
- An event longer than the limit is reported once, as :class:`EventTooLong`, and skipped up to its blank line; the
  stream goes on.  A peer that never ends its event costs at most the limit (64 MiB unless told otherwise) of memory.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from typedmcp.core.errors import MessageError, UsageError
from typedmcp.core.jsonrpc import JSONRPCMessage, decode_response
from typedmcp_wire.revisions import INVALID_REQUEST

DEFAULT_MAX_EVENT_BYTES: Final = 64 * 1024 * 1024
"""The longest event taken, in bytes: its lines with their ends, comments apart."""

MESSAGE_EVENTS: Final = ("", "message")
"""The names of events that carry messages; others are none of a client's business."""

_BOM = b"\xef\xbb\xbf"
_EXCERPT = 120
_LINE_END = re.compile(rb"\r\n|\n|\r")


class Event(NamedTuple):
    """One event of a stream."""

    data: str
    """Its data lines, joined with LF; empty when it had none."""
    event: str = ""
    """Its name; empty when it had none, which means "message"."""
    id: str | None = None
    """The id it set; None when it set none."""
    retry: int | None = None
    """The milliseconds it asks to wait before reconnecting; None when it did not."""


class EventTooLong(MessageError):
    """An event beyond the limit, skipped; `frame` holds only the beginning of its data."""

    def __init__(self, limit: int, beginning: bytes) -> None:
        super().__init__(INVALID_REQUEST, f"The event is longer than {limit} bytes.", frame=beginning)

    def __str__(self) -> str:
        return f"{self.message} It begins with {self.frame.decode('utf-8', 'backslashreplace')!r}"


Item: TypeAlias = Event | EventTooLong
"""An event, or why there is none."""


class EventParser:
    """Cuts a stream of chunks into events.

    Args:
        limit: The longest event taken, in bytes.
        last_event_id: The id this stream resumes after.

    Attributes:
        last_event_id: The id to resume after; empty when there is none.
        retry: The milliseconds to wait before reconnecting, as the stream said last; None when it did not.
    """

    def __init__(self, limit: int = DEFAULT_MAX_EVENT_BYTES, last_event_id: str = "") -> None:
        self.last_event_id = last_event_id
        self.retry: int | None = None
        self._limit = limit
        self._fresh = True
        self._carriage = False  # the last chunk ended with CR: an LF that follows belongs to it
        # Bytearrays and not lists of pieces: a peer that sends single bytes must not cost an object for each.
        self._held = bytearray()  # the line under way
        self._dropping = False  # the line under way is not kept: an endless comment, or part of an event too long
        self._data = bytearray()
        self._begin()

    def _begin(self) -> None:
        """Forget the event that has ended."""
        if self._data:
            self._data = bytearray()
        self._size = 0
        self._name = ""
        self._id: str | None = None
        self._retry: int | None = None
        self._has_data = False
        self._skipping = False

    def feed(self, chunk: bytes) -> list[Item]:
        """The events that `chunk` completes, and a report for one that goes beyond the limit in it."""
        if self._fresh:
            chunk = self._without_mark(chunk)
        if self._carriage and chunk:
            self._carriage = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._carriage = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        rest = lines.pop()
        items: list[Item] = []
        for line in lines:
            self._end_line(line, items)
        if rest and not self._dropping:
            self._held += rest
            if self._size + len(self._held) > self._limit:
                self._overflow(self._held, items)
                self._held = bytearray()
                self._dropping = True
        return items

    def _without_mark(self, chunk: bytes) -> bytes:
        """The start of the stream without its byte order mark; nothing while that may still be incomplete."""
        start = bytes(self._held) + chunk
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._held = bytearray(start)
            return b""
        self._fresh = False
        self._held.clear()
        return start.removeprefix(_BOM)

    def _end_line(self, line: bytes, items: list[Item]) -> None:
        if self._dropping:
            self._dropping = False
            return
        if self._held:
            self._held += line
            line = bytes(self._held)
            self._held = bytearray()
        if not line:
            self._end_event(items)
        elif not line.startswith(b":"):
            self._size += len(line) + 1
            if self._size > self._limit + 1:
                self._overflow(line, items)
            else:
                self._field(line)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            if self._skipping:
                return
            if self._has_data:
                self._data += b"\n"
            self._has_data = True
            self._data += value
        elif name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            # Python refuses to read numbers of many thousand digits; these are centuries either way.
            self.retry = self._retry = int(value.lstrip(b"0")[:18] or b"0")

    def _end_event(self, items: list[Item]) -> None:
        if self._id is not None:
            self.last_event_id = self._id
        known = self._has_data or self._id is not None or self._retry is not None
        if known and not self._skipping:
            items.append(Event(self._data.decode("utf-8", "replace"), self._name, self._id, self._retry))
        self._begin()

    def _overflow(self, line: bytes | bytearray, items: list[Item]) -> None:
        """The event has become too long with `line`: keep nothing of it but its id."""
        if line.startswith(b":"):
            return
        if not self._skipping:
            data = bytes(self._data[:_EXCERPT]) or bytes(line[:_EXCERPT]).removeprefix(b"data:").removeprefix(b" ")
            items.append(EventTooLong(self._limit, data))
        self._skipping = True
        self._size = 0
        self._data = bytearray()


def encode_event(
    data: bytes | str,
    *,
    id: str | None = None,  # noqa: A002 - the format's own name
    event: str | None = None,
    retry: int | None = None,
) -> bytes:
    """The text of one event; every line of `data` becomes a data line.

    Args:
        data: What it carries; empty for an event that only sets the id.
        id: What a client sends as ``Last-Event-ID`` to resume after it.
        event: Its name; None means "message".
        retry: The milliseconds a client waits before it reconnects.

    Raises:
        UsageError: the id or the name holds a line end or NUL, or `retry` is negative.
    """
    text = data.encode() if isinstance(data, str) else data
    lines = [text] if b"\n" not in text and b"\r" not in text else _LINE_END.split(text)
    parts: list[bytes] = []
    if event is not None:
        parts.append(b"event: " + _one_line("event", event))
    if id is not None:
        parts.append(b"id: " + _one_line("id", id))
    if retry is not None:
        if retry < 0:
            raise UsageError("retry is a number of milliseconds, 0 or more")
        parts.append(b"retry: %d" % retry)
    parts += [b"data: " + line for line in lines]
    return b"\n".join(parts) + b"\n\n"


def encode_comment(text: str = "") -> bytes:
    """A comment, which readers ignore: it keeps a connection from looking idle."""
    return b"".join(b": " + line + b"\n" for line in _LINE_END.split(text.encode())) + b"\n"


def _one_line(name: str, value: str) -> bytes:
    text = value.encode()
    if b"\n" in text or b"\r" in text or b"\0" in text:
        raise UsageError(f"{name} of an event is one line without NUL, not {value!r}")
    return text


def decode_event(data: Any) -> JSONRPCMessage | None:
    """The message in the data of an event; None when it is none.  Never raises."""
    try:
        return decode_response(data)
    except (MessageError, TypeError, AttributeError):
        return None


class _Content(Protocol):
    def iter_any(self) -> AsyncIterator[bytes]: ...


class EventStreamResponse(Protocol):
    """What :func:`read_event_stream` needs of a response; aiohttp's has it."""

    @property
    def content(self) -> _Content: ...


async def read_event_stream(response: EventStreamResponse) -> list[JSONRPCMessage]:
    """The messages a response with an event stream carries, when it has ended.

    Never raises: what is no message is left out, and of a connection that breaks the messages that came before count.
    """
    parser = EventParser()
    messages: list[JSONRPCMessage] = []
    try:
        async for chunk in response.content.iter_any():
            for item in parser.feed(chunk):
                if isinstance(item, Event) and item.event in MESSAGE_EVENTS:
                    message = decode_event(item.data)
                    if message is not None:
                        messages.append(message)
    except Exception:  # noqa: BLE001, S110 - total by contract, whatever a connection may raise
        pass
    return messages
