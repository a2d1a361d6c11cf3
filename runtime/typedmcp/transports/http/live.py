"""A session as the exchange uses it: the log and streams of :class:`MCPSession`, and what is running."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from msgspec import UNSET

from typedmcp.core.connection import Handshake
from typedmcp.core.in_flight import Key, key_of, read_cancelled
from typedmcp.core.jsonrpc import JSONRPCRequest, encode_message
from typedmcp.transports.http.outgoing import OutgoingStream
from typedmcp.transports.http.peer import Calls, RequestPeer, Send
from typedmcp.transports.http.replies import Headers
from typedmcp.transports.http.sessions import STANDALONE, MCPSession
from typedmcp.transports.sse import encode_event
from typedmcp_wire.revisions import SESSION_ID_HEADER

logger = logging.getLogger("typedmcp")
PRIMED_REVISION = "2025-11-25"
"""Streams of this revision begin with an event that has an id and no data."""


class LiveSession:
    """What one session of the handshake era has under way.

    Args:
        state: Its handshake, log and streams.
        resumable: Whether what goes out on a POST's stream is kept, so that a client that lost it can resume.
        retry_ms: The milliseconds a client should wait before it reconnects; None says nothing.

    Attributes:
        refused: Whether its `initialize` was answered with an error.
    """

    # Most sessions are idle: what is empty is not there.
    __slots__ = (
        "__weakref__",
        "_calls",
        "_gets",
        "_posts",
        "_requests",
        "_retry_ms",
        "_streams",
        "closed",
        "refused",
        "resumable",
        "state",
    )

    def __init__(self, state: MCPSession, *, resumable: bool = False, retry_ms: int | None = None) -> None:
        self.state = state
        state.live = self
        self.resumable = resumable
        self.refused = False
        self.closed = False
        self._retry_ms = retry_ms
        self._calls: Calls | None = None
        self._requests: dict[Key, tuple[asyncio.Task[Any], RequestPeer]] | None = None
        self._gets: dict[OutgoingStream, None] | None = None
        self._posts: dict[str, OutgoingStream | None] | None = None
        self._streams = 0

    @property
    def headers(self) -> Headers:
        """What every answer of the session bears: its id, unless there is to be no session."""
        return () if self.refused else ((SESSION_ID_HEADER, self.state.id),)

    @property
    def handshake(self) -> Handshake | None:
        """What the client agreed to at `initialize`."""
        return self.state.handshake

    @handshake.setter
    def handshake(self, value: Handshake | None) -> None:
        self.state.handshake = value

    @property
    def revision(self) -> str | None:
        """The revision agreed on; None before `initialize` has been answered."""
        return None if self.state.handshake is None else self.state.handshake.revision

    @property
    def calls(self) -> Calls:
        """Requests of the server the client has still to answer."""
        if self._calls is None:
            self._calls = Calls()
        return self._calls

    @property
    def busy(self) -> bool:
        """Whether a request runs or a stream is open."""
        return bool(self._requests or self._gets)

    def notify(self, method: str, params: object = UNSET) -> None:
        """Send a notification that belongs to no request: it is kept, and goes to a stream the client got by GET."""
        if not self.closed:
            self.state.push(encode_message(JSONRPCRequest(method=method, params=params)))

    # -- requests --------------------------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """How many requests run."""
        return len(self._requests or ())

    def runs(self, request_id: int | str) -> bool:
        """Whether a request of that id is in flight."""
        return self._requests is not None and key_of(request_id) in self._requests

    def began(self, key: Key, task: asyncio.Task[Any], peer: RequestPeer) -> None:
        """A request is under way."""
        self._requests = self._requests or {}
        self._requests[key] = (task, peer)

    def ended(self, key: Key) -> None:
        """A request is answered or withdrawn."""
        if self._requests is not None:
            self._requests.pop(key, None)

    def cancel(self, notification: JSONRPCRequest) -> None:
        """Cancel a request in flight; an unknown or malformed one is ignored."""
        params = read_cancelled(notification)
        if params is None:
            return
        request_id = params.request_id
        run = (self._requests or {}).get(key_of(request_id)) if request_id is not None else None
        if run is not None:
            logger.info("request %r cancelled by the client: %s", request_id, params.reason or "no reason given")
            task, peer = run
            peer.withdrawn = True
            task.cancel()

    def close(self) -> None:
        """The session has ended: nothing of it goes on."""
        if self.closed:
            return
        self.closed = True
        for task, peer in list((self._requests or {}).values()):
            peer.withdrawn = True
            task.cancel()
        if self._calls is not None:
            self._calls.fail()
        self.end_listening()
        for name in list(self._posts or ()):
            self.end_stream(name)

    # -- streams ---------------------------------------------------------------------------------------------------

    def open_stream(self, stream: OutgoingStream) -> str:
        """A name for the stream of a POST that begins, which no other of the session ever had."""
        self._streams += 1
        name = str(self._streams)
        self._posts = self._posts or {}
        self._posts[name] = stream
        self.state.attach(stream, name)
        self.prime(stream, name)
        return name

    def prime(self, stream: OutgoingStream, name: str) -> None:
        """Begin a stream so that it can be resumed from there; older clients choke on an event of no data."""
        if self._primes:
            stream.send(encode_event("", id=self.state.mark(name), retry=self._retry_ms))

    @property
    def _primes(self) -> bool:
        revision = self.revision
        return self.resumable and revision is not None and revision >= PRIMED_REVISION

    def sender(self, name: str) -> Send:
        """How messages of a stream are sent: kept for replay, then written to whoever listens."""
        state = self.state

        def send(message: bytes) -> None:
            state.push(message, name)

        return send

    def attach(self, stream: OutgoingStream, name: str = STANDALONE) -> None:
        """Send on a stream what is pushed under its name; it ends at once when nothing more can come."""
        if self.closed or (name != STANDALONE and name not in (self._posts or {})):
            stream.end()
            return
        if name == STANDALONE:
            self._gets = self._gets or {}
            self._gets[stream] = None
        elif self._posts is not None:
            # A client that resumes has lost the stream it had, whether that shows already or not.
            old, self._posts[name] = self._posts[name], stream
            if old is not None:
                self.state.detach(old, name)
                old.end()
        self.state.attach(stream, name)

    def detach(self, stream: OutgoingStream, name: str = STANDALONE) -> None:
        """Send nothing more on a stream; the request of a POST's stream goes on."""
        self.state.detach(stream, name)
        if self._gets is not None:
            self._gets.pop(stream, None)
        if self._posts is not None and self._posts.get(name) is stream:
            self._posts[name] = None

    def close_stream(self, name: str, retry_ms: int | None = None) -> bool:
        """End the connection a request's messages are written to; the request goes on, and what comes is kept.

        The last event says how long to wait and after which id to resume: a client that polls again and again so
        sees that it is wanted back.

        Returns:
            Whether there was one: only clients whose streams were begun with an id come back.
        """
        stream = None if self._posts is None else self._posts.get(name)
        if stream is None or not self._primes:
            return False
        retry = self._retry_ms if retry_ms is None else retry_ms
        stream.send(encode_event("", id=self.state.mark(name), retry=retry))
        self.detach(stream, name)
        stream.end()
        return True

    def end_stream(self, name: str) -> None:
        """A request's stream is complete, whoever reads it."""
        stream = self._posts.pop(name, None) if self._posts is not None else None
        if stream is not None:
            self.state.detach(stream, name)
            stream.end()

    def end_listening(self) -> None:
        """End the streams the client got by GET."""
        for stream in list(self._gets or ()):
            self.detach(stream)
            stream.end()
