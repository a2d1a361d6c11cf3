"""Sessions of the handshake era over HTTP: what was agreed, what runs, and what can be sent again.

Rules:
- Every message that a stream may lose is kept under an id that grows with each message of the session (base 36).  The
  log is bounded in number and in age.  Ids are compared by position, never as text.
- A message that belongs to a request is kept for that request's stream only, so a resumed stream replays its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from msgspec import Struct

from typedmcp.core.connection import Handshake
from typedmcp.core.jsonrpc import encode_message

DEFAULT_MCP_SESSION_CAPACITY = 1024
"""How many messages a session keeps for replay."""
DEFAULT_MCP_SESSION_TTL = 300.0
"""How long a session keeps a message for replay, in seconds."""

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
STANDALONE = ""
"""The name of the stream a GET opens, which belongs to no request."""


class EventStoreEntry(Struct, frozen=True, gc=False):
    """A message kept for replay: its id, its text, when it was sent, and the stream it went to."""

    id: str
    message: bytes
    timestamp: float
    stream: str = STANDALONE


class EventStream(Protocol):
    """An open stream of a client, as a session sees it."""

    def send_event(self, event_id: str, message: bytes) -> None:
        """Queue one event; must not raise when the client has just gone."""
        ...


class MCPSessionInterface(Protocol):
    """A session as handlers see it: something to push to."""

    @property
    def id(self) -> str:
        """The session's id."""
        ...

    def attach(self, stream: EventStream) -> None:
        """Send what is pushed from now on to an open stream, too."""
        ...

    def detach(self, stream: EventStream) -> None:
        """Send nothing more to a stream."""
        ...

    def push(self, message: Any) -> str:
        """Keep a message under a fresh id, send it to the attached streams, and return the id."""
        ...

    def replay(self, after_id: str) -> list[EventStoreEntry]:
        """The kept messages after an event, in order."""
        ...


class LivePart(Protocol):
    """What a transport has under way for a session."""

    @property
    def busy(self) -> bool:
        """Whether a request runs or a stream is open."""
        ...

    def close(self) -> None:
        """The session has ended."""
        ...


class MCPSession:
    """One session: attached streams and a bounded replay log.

    Args:
        id: The session's id.
        capacity: How many messages are kept.
        event_ttl: How long, in seconds.
        clock: The time in seconds.
        principal: Who opened it.
        fan_out: Whether a pushed message goes to every attached stream, or to the one attached last.
        max_bytes: How much text is kept; None: any amount.  The newest message is kept whatever its size.

    Attributes:
        handshake: What `initialize` agreed on.
        live: What the transport has under way for it.
    """

    __slots__ = (
        "_bytes",
        "_capacity",
        "_clock",
        "_count",
        "_event_ttl",
        "_fan_out",
        "_log",
        "_max_bytes",
        "_streams",
        "handshake",
        "id",
        "live",
        "principal",
    )

    def __init__(
        self,
        id: str,  # noqa: A002 - the seed's name
        *,
        capacity: int = DEFAULT_MCP_SESSION_CAPACITY,
        event_ttl: float = DEFAULT_MCP_SESSION_TTL,
        clock: Callable[[], float] = time.time,
        principal: object = None,
        fan_out: bool = True,
        max_bytes: int | None = None,
    ) -> None:
        self.id = id
        self.handshake: Handshake | None = None
        self.principal = principal
        self.live: LivePart | None = None
        self._capacity = capacity
        self._event_ttl = event_ttl
        self._clock = clock
        self._fan_out = fan_out
        self._max_bytes = max_bytes
        # Most sessions never need these.
        self._log: dict[str, EventStoreEntry] | None = None
        self._streams: dict[str, dict[EventStream, None]] | None = None
        self._count = 0
        self._bytes = 0

    def push(self, message: Any, stream: str = STANDALONE) -> str:
        """Keep a message under a fresh id, send it to the attached streams, and return the id.

        Args:
            message: A message, or its text.
            stream: Which stream it belongs to; by default those opened by GET.
        """
        text = message if isinstance(message, bytes) else encode_message(message)
        event_id = self._keep(text, stream)
        attached = self._streams.get(stream) if self._streams is not None else None
        if attached:
            for one in list(attached) if self._fan_out else [next(reversed(attached))]:
                one.send_event(event_id, text)
        return event_id

    def mark(self, stream: str) -> str:
        """An id from which a stream can be resumed before anything has been sent on it."""
        return self._keep(b"", stream)

    def replay(self, after_id: str) -> list[EventStoreEntry]:
        """The kept messages after `after_id`, of the same stream, in order; nothing for an id that is not kept."""
        log = self._evicted()
        entry = log.get(after_id)
        if entry is None:
            return []
        entries: Iterator[EventStoreEntry] = iter(log.values())
        for passed in entries:
            if passed.id == after_id:
                break
        return [later for later in entries if later.stream == entry.stream and later.message]

    def stream_of(self, event_id: str) -> str | None:
        """The stream a kept event went to; None when it is not kept."""
        entry = self._evicted().get(event_id)
        return None if entry is None else entry.stream

    def attach(self, stream: EventStream, name: str = STANDALONE) -> None:
        """Send what is pushed from now on to an open stream, too."""
        if self._streams is None:
            self._streams = {}
        self._streams.setdefault(name, {})[stream] = None

    def detach(self, stream: EventStream, name: str = STANDALONE) -> None:
        """Send nothing more to a stream."""
        attached = self._streams.get(name) if self._streams is not None else None
        if attached is not None and self._streams is not None:
            attached.pop(stream, None)
            if not attached:
                del self._streams[name]

    def close(self) -> None:
        """The session has ended: so does what it runs."""
        if self.live is not None:
            self.live.close()

    def _keep(self, text: bytes, stream: str) -> str:
        self._count += 1
        event_id = base36(self._count)
        log = self._evicted()
        if self._log is None:
            log = self._log = {}
        log[event_id] = EventStoreEntry(event_id, text, self._clock(), stream)
        self._bytes += len(text)
        while len(log) > self._capacity or (
            self._max_bytes is not None and self._bytes > self._max_bytes and len(log) > 1
        ):
            self._forget(log)
        return event_id

    def _evicted(self) -> dict[str, EventStoreEntry]:
        """The log without what is too old."""
        log = self._log
        if log is None:
            return {}
        oldest = self._clock() - self._event_ttl
        while log and next(iter(log.values())).timestamp <= oldest:
            self._forget(log)
        return log

    def _forget(self, log: dict[str, EventStoreEntry]) -> None:
        self._bytes -= len(log.pop(next(iter(log))).message)


def base36(number: int) -> str:
    """A whole number in base 36: 1 is "1", 36 is "10"."""
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text or "0"
