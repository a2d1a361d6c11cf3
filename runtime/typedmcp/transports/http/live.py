"""A session as the exchange uses it: the log and streams of :class:`MCPSession`, and what is running."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from typedmcp.core.connection import Key, key_of
from typedmcp.core.jsonrpc import JSONRPCRequest, params_text
from typedmcp.transports.http.outgoing import OutgoingStream
from typedmcp.transports.http.peer import Calls
from typedmcp.transports.http.sessions import MCPSession
from typedmcp.transports.sse import encode_event
from typedmcp_wire.codec import decoder
from typedmcp_wire.types.lifecycle import CancelledNotificationParams

logger = logging.getLogger("typedmcp")
PRIMED_REVISION = "2025-11-25"
"""Streams of this revision begin with an event that has an id and no data."""


class LiveSession:
    """What one session of the handshake era has under way.

    Attributes:
        state: Its handshake, log and streams.
        calls: Requests of the server the client has still to answer.
    """

    def __init__(self, state: MCPSession, *, retry_ms: int | None = None) -> None:
        self.state = state
        state.live = self
        self.calls = Calls()
        self._retry_ms = retry_ms
        self._running: dict[Key, asyncio.Task[Any]] = {}

    @property
    def revision(self) -> str | None:
        """The revision agreed on; None before `initialize` has been answered."""
        return None if self.state.handshake is None else self.state.handshake.revision

    def runs(self, request_id: int | str) -> bool:
        """Whether a request of that id is in flight."""
        return key_of(request_id) in self._running

    def began(self, request_id: int | str, task: asyncio.Task[Any]) -> None:
        """A request is under way."""
        if not task.done():
            self._running[key_of(request_id)] = task

    def ended(self, key: Key) -> None:
        """A request is answered or withdrawn; its stream carries nothing more."""
        self._running.pop(key, None)

    def streams(self, name: str) -> bool:
        """Whether the request a stream belongs to still runs."""
        return any(stream_name(key[1]) == name for key in self._running)

    def cancel(self, notification: JSONRPCRequest) -> None:
        """Cancel a request in flight; an unknown or malformed one is ignored."""
        try:
            params = decoder(CancelledNotificationParams).decode(params_text(notification.params))
        except (msgspec.DecodeError, ValueError, RecursionError):
            logger.warning("ignored a malformed notifications/cancelled")
            return
        task = self._running.get(key_of(params.request_id)) if params.request_id is not None else None
        if task is not None:
            logger.info("request %r cancelled by the client: %s", params.request_id, params.reason or "no reason given")
            task.cancel()

    def close(self) -> None:
        """The session has ended: nothing of it goes on."""
        for task in self._running.values():
            task.cancel()
        self.calls.fail()

    # -- streams ---------------------------------------------------------------------------------------------------

    def sender(self, request_id: int | str, stream: OutgoingStream) -> Callable[[bytes], None]:
        """How messages of a request are sent: kept for replay, then written to whoever listens to its stream."""
        name = stream_name(request_id)
        self.state.attach(stream, name)

        def send(message: bytes) -> None:
            self.state.push(message, name)

        return send

    def prime(self, request_id: int | str, stream: OutgoingStream) -> None:
        """Begin a stream with an id to resume by, for clients that know of it."""
        if self.revision is not None and self.revision >= PRIMED_REVISION:
            event_id = self.state.mark(stream_name(request_id))
            stream.send(encode_event("", id=event_id, retry=self._retry_ms))


def stream_name(request_id: int | str) -> str:
    """The name of the stream of a request's POST."""
    return f"{type(request_id).__name__}:{request_id}"
