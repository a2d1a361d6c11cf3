"""Sessions of the handshake era over HTTP: what was agreed, what runs, and what can be sent again.

Rules:
- An id is a random UUID, minted when `initialize` has succeeded, gone after DELETE or when idle for too long.  It is
  never taken as proof of who the caller is: a session opened by one principal is unknown to another.
- Idle sessions are evicted lazily, when the store is next used; there is no timer.
- Every message that a stream may lose is kept under an id that grows with each message of the session (base 36).  The
  log is bounded in number and in age.  Ids are compared by position, never as text.
- A message that belongs to a request is kept for that request's stream only, so a resumed stream replays its own.
"""

from __future__ import annotations

import time
import uuid
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


class MCPSession:
    """One session: attached streams and a bounded replay log.

    Args:
        id: The session's id.
        capacity: How many messages are kept.
        event_ttl: How long, in seconds.
        clock: The time in seconds.
        principal: Who opened it.
    """

    def __init__(
        self,
        id: str,  # noqa: A002 - the seed's name
        *,
        capacity: int = DEFAULT_MCP_SESSION_CAPACITY,
        event_ttl: float = DEFAULT_MCP_SESSION_TTL,
        clock: Callable[[], float] = time.time,
        principal: object = None,
        fan_out: bool = True,
    ) -> None:
        self.id = id
        self.handshake: Handshake | None = None
        self.principal = principal
        self._capacity = capacity
        self._event_ttl = event_ttl
        self._clock = clock
        self._fan_out = fan_out
        self.live: Any = None
        self._log: dict[str, EventStoreEntry] | None = None
        self._streams: dict[EventStream, str] | None = None
        self._count = 0

    def push(self, message: Any, stream: str = STANDALONE) -> str:
        """Keep a message under a fresh id, send it to the attached streams, and return the id.

        Args:
            message: A message, or its text.
            stream: Which stream it belongs to; by default those opened by GET.
        """
        text = message if isinstance(message, bytes) else encode_message(message)
        event_id = self._keep(text, stream)
        for attached, name in list((self._streams or {}).items()):
            if name == stream:
                attached.send_event(event_id, text)
                if not self._fan_out:
                    break
        return event_id

    def mark(self, stream: str) -> str:
        """An id from which a stream can be resumed before anything has been sent on it."""
        return self._keep(b"", stream)

    def _keep(self, text: bytes, stream: str) -> str:
        self._count += 1
        event_id = base36(self._count)
        log = self._evicted()
        log[event_id] = EventStoreEntry(event_id, text, self._clock(), stream)
        while len(log) > self._capacity:
            del log[next(iter(log))]
        return event_id

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
        """Send what is pushed from now on to an open stream too."""
        self._streams = self._streams or {}
        self._streams[stream] = name

    def detach(self, stream: EventStream) -> None:
        """Send nothing more to a stream."""
        if self._streams is not None:
            self._streams.pop(stream, None)

    def _evicted(self) -> dict[str, EventStoreEntry]:
        """The log without what is too old."""
        log = self._log
        if log is None:
            log = self._log = {}
        oldest = self._clock() - self._event_ttl
        while log:
            first = next(iter(log.values()))
            if first.timestamp > oldest:
                break
            del log[first.id]
        return log


class MCPSessionEntry(Struct):
    """A session and when it was last used, in seconds."""

    session: MCPSession
    touched: float


class SessionStore:
    """The sessions of one endpoint, in memory.

    Args:
        ttl: Seconds without use after which a session ends; None: never.
        capacity: How many messages each session keeps for replay.
        limit: How many sessions there may be; None: any number.
        clock: The time in seconds.
    """

    def __init__(
        self,
        *,
        ttl: float | None = None,
        capacity: int = DEFAULT_MCP_SESSION_CAPACITY,
        limit: int | None = None,
        fan_out: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ttl = ttl
        self._capacity = capacity
        self._limit = limit
        self._fan_out = fan_out
        self._clock = clock
        self._entries: dict[str, MCPSessionEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def create(self, principal: object = None) -> MCPSession:
        """A new session, not yet in the store: :meth:`keep` puts it there once `initialize` has succeeded."""
        return MCPSession(
            str(uuid.uuid4()), capacity=self._capacity, clock=self._clock, principal=principal, fan_out=self._fan_out
        )

    @property
    def full(self) -> bool:
        """Whether one more session would be too many."""
        self._sweep()
        return self._limit is not None and len(self._entries) >= self._limit

    def keep(self, session: MCPSession) -> None:
        """Put a session into the store."""
        self._entries[session.id] = MCPSessionEntry(session, self._clock())

    def find(self, session_id: str | None, principal: object = None) -> MCPSession | None:
        """The session of that id, touched; None when there is none, or it is another principal's."""
        self._sweep()
        entry = self._entries.get(session_id) if session_id else None
        if entry is None or entry.session.principal != principal:
            return None
        self._touch(entry)
        return entry.session

    def touch(self, session: MCPSession) -> None:
        """A long request of the session has ended: it was in use all the while."""
        entry = self._entries.get(session.id)
        if entry is not None:
            self._touch(entry)

    def remove(self, session_id: str) -> MCPSession | None:
        """End a session."""
        entry = self._entries.pop(session_id, None)
        return None if entry is None else entry.session

    def _touch(self, entry: MCPSessionEntry) -> None:
        entry.touched = self._clock()
        # The order of the dictionary is that of use, so that sweeping ends at the first fresh one.
        del self._entries[entry.session.id]
        self._entries[entry.session.id] = entry

    def _sweep(self) -> None:
        if self._ttl is None:
            return
        oldest = self._clock() - self._ttl
        while self._entries:
            first = next(iter(self._entries.values()))
            if first.touched > oldest:
                return
            del self._entries[first.session.id]


def base36(number: int) -> str:
    """A whole number in base 36: 1 is "1", 36 is "10"."""
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text or "0"
