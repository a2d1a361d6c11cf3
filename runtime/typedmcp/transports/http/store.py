"""The sessions of one endpoint, in memory.

Rules:
- An id is a random UUID, minted when `initialize` has succeeded, gone after DELETE or when idle for too long.  It is
  never taken as proof of who the caller is: a session opened by one principal is unknown to another.
- Idle sessions are evicted lazily, when the store is next used; there is no timer.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator

from msgspec import Struct

from typedmcp.transports.http.sessions import DEFAULT_MCP_SESSION_CAPACITY, MCPSession


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
        fan_out: Whether a pushed message goes to every stream of a session.
        clock: The time in seconds.
        max_bytes: How much text each session keeps for replay; None: any amount.
        spare_busy: Whether an open stream or a running request counts as use.
    """

    def __init__(
        self,
        *,
        ttl: float | None = None,
        capacity: int = DEFAULT_MCP_SESSION_CAPACITY,
        limit: int | None = None,
        fan_out: bool = True,
        clock: Callable[[], float] = time.time,
        max_bytes: int | None = None,
        spare_busy: bool = False,
    ) -> None:
        self._ttl = ttl
        self._capacity = capacity
        self._limit = limit
        self._fan_out = fan_out
        self._clock = clock
        self._max_bytes = max_bytes
        self._spare_busy = spare_busy
        # The order is that of use, so that sweeping ends at the first fresh one.
        self._entries: dict[str, MCPSessionEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[MCPSession]:
        return iter([entry.session for entry in self._entries.values()])

    @property
    def limit(self) -> int | None:
        """How many sessions there may be."""
        return self._limit

    @property
    def full(self) -> bool:
        """Whether one more session would be too many."""
        self._sweep()
        return self._limit is not None and len(self._entries) >= self._limit

    def create(self, principal: object = None) -> MCPSession:
        """A new session, not yet in the store: :meth:`keep` puts it there."""
        return MCPSession(
            str(uuid.uuid4()),
            capacity=self._capacity,
            clock=self._clock,
            principal=principal,
            fan_out=self._fan_out,
            max_bytes=self._max_bytes,
        )

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

    def end(self, session: MCPSession) -> None:
        """Take a session out and end what it runs."""
        self._entries.pop(session.id, None)
        session.close()

    def _touch(self, entry: MCPSessionEntry) -> None:
        entry.touched = self._clock()
        del self._entries[entry.session.id]
        self._entries[entry.session.id] = entry

    def _sweep(self) -> None:
        if self._ttl is None:
            return
        oldest = self._clock() - self._ttl
        while self._entries:
            entry = next(iter(self._entries.values()))
            if entry.touched > oldest:
                return
            live = entry.session.live
            if self._spare_busy and live is not None and live.busy:
                self._touch(entry)
            else:
                self.end(entry.session)
