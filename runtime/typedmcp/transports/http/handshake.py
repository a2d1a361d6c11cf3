"""POSTs of the handshake era: requests, notifications and responses of a client with or without a session.

Rules:
- Every answer of the server is 200.  It comes as an event stream to clients that ask for one, where `streaming` is on.
- A client that goes away does not cancel: its request runs on in a task of its own, and where the session is resumable
  what it says is kept.  ``notifications/cancelled`` and the end of the session cancel; then nothing more is sent, the
  stream ends, and who waits for JSON gets 202.
- `initialize` runs to its end before anything is sent, since only its outcome tells whether there is a session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import UNSET, UnsetType

from typedmcp.core.connection import DEFAULT_MAX_IN_FLIGHT
from typedmcp.core.errors import MCPError
from typedmcp.core.in_flight import key_of
from typedmcp.core.jsonrpc import JSONRPCRequest, JSONRPCResponse, encode_response
from typedmcp.core.running import start_task
from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.http import negotiation
from typedmcp.transports.http.dispatching import ask, tell
from typedmcp.transports.http.live import LiveSession
from typedmcp.transports.http.mirror import Get
from typedmcp.transports.http.outgoing import STREAM_HEADERS, OutgoingStream, Responder
from typedmcp.transports.http.peer import Nobody, RequestPeer, Send, Stateless
from typedmcp.transports.http.replies import JSON_HEADERS, Headers, Reply, failed, refuse, refuse_request
from typedmcp.transports.sse import encode_event
from typedmcp_wire.revisions import ASSUMED_PROTOCOL_VERSION, HANDSHAKE_REVISIONS, INTERNAL_ERROR, INVALID_REQUEST

logger = logging.getLogger("typedmcp")

_LAST_MOMENT: Final = 1.0

Deliver = Callable[[JSONRPCResponse | None], None]
"""Takes the answer of a request, or None when it was withdrawn."""


class HandshakePosts:
    """Serves the messages of the handshake era.

    Args:
        server: Who serves them.
        revisions: The revisions served.
        streaming: Whether clients that take event streams get one.
        strict: Whether this is the safe profile.
        keep_alive: Seconds of silence on a stream before a comment is sent.
    """

    def __init__(
        self,
        server: MCPServerInterface,
        revisions: Sequence[str],
        *,
        streaming: bool,
        strict: bool,
        keep_alive: float | None,
    ) -> None:
        self._server = server
        self._revisions = revisions
        self._streaming = streaming
        self._strict = strict
        self._keep_alive = keep_alive
        newest = next((r for r in revisions if r in HANDSHAKE_REVISIONS), ASSUMED_PROTOCOL_VERSION)
        self._assumed = ASSUMED_PROTOCOL_VERSION if strict else newest
        self._running: set[asyncio.Task[Any]] = set()

    async def shut_down(self) -> None:
        """Cancel what runs, whoever waits for it, and give it a moment to end."""
        running = list(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=_LAST_MOMENT)

    # -- one message -----------------------------------------------------------------------------------------------

    def answered(self, response: JSONRPCResponse, revision: str | None, session: LiveSession | None) -> Reply:
        """Take the client's answer to a request of the server."""
        refusal = self._version(revision)
        if refusal is not None:
            return refusal
        if session is None:
            return refuse(400, "A server takes requests, not responses.", null_id=not self._strict)
        if not session.calls.settle(response):
            logger.info("dropped a response nobody waits for: id %r", response.id)
        return Reply(202)

    async def notified(
        self, notification: JSONRPCRequest, revision: str | None, session: LiveSession | None, principal: object
    ) -> Reply:
        """Take a notification."""
        refusal = self._version(revision)
        if refusal is not None:
            return refusal
        if session is not None and notification.method == "notifications/cancelled":
            session.cancel(notification)
        await tell(self._server, notification, self.peer(None, revision, session, principal))
        return Reply(202)

    async def serve(
        self,
        get: Get,
        request: JSONRPCRequest,
        revision: str | None,
        responder: Responder,
        session: LiveSession | None,
        principal: object,
    ) -> Reply | None:
        """Serve one request; None when the answer was streamed."""
        if request.method == "initialize":
            return await self._initialize(get, request, responder, session, principal)
        if revision is not None and revision not in self._revisions:
            return refuse_request(request, _unsupported(revision), 400)
        refusal = self.not_now(request, session)
        if refusal is not None:
            return Reply(400 if self._duplicate(request, session) else 429, encode_response(refusal), JSON_HEADERS)
        if not self.streams(get):
            return await self._whole(request, revision, session, principal)
        stream, send, name = self.open(session)

        def deliver(response: JSONRPCResponse | None) -> None:
            if response is not None:
                send(encode_response(response))
            self.close(stream, name, session)

        try:
            await self.begin(request, self.peer(send, revision, session, principal, name), session, deliver)
            quick = stream.take()
            if quick is not None:
                # The whole stream is there: one write instead of three.
                return Reply(200, quick, STREAM_HEADERS)
            await self.write(stream, responder, session)
        finally:
            self.leave(stream, name, session)
        return None

    async def _whole(
        self, request: JSONRPCRequest, revision: str | None, session: LiveSession | None, principal: object
    ) -> Reply:
        answers: list[JSONRPCResponse | None] = []
        waiter: asyncio.Future[None] | None = None

        def deliver(response: JSONRPCResponse | None) -> None:
            answers.append(response)
            if waiter is not None and not waiter.done():  # it is done when the client has gone
                waiter.set_result(None)

        await self.begin(request, self.peer(None, revision, session, principal), session, deliver)
        if not answers:
            waiter = asyncio.get_running_loop().create_future()
            await waiter
        response = answers[0]
        # Withdrawn: there is no answer to send, yet HTTP wants one.
        return Reply(202) if response is None else Reply(200, encode_response(response), JSON_HEADERS)

    async def _initialize(
        self,
        get: Get,
        request: JSONRPCRequest,
        responder: Responder,
        session: LiveSession | None,
        principal: object,
    ) -> Reply | None:
        peer = RequestPeer(None, session or Nobody(), principal=principal, standalone=session)
        fresh = session is not None and session.handshake is None
        response = await ask(self._server, request, peer)
        if session is not None and fresh:
            session.refused = response.error is not UNSET
        answer = encode_response(response)
        if not self.streams(get):
            return Reply(200, answer, JSON_HEADERS)
        await responder.begin(stream_headers(session))
        await responder.write(encode_event(answer))
        return None

    # -- what single messages and batches share --------------------------------------------------------------------

    def peer(
        self,
        send: Send | None,
        revision: str | None,
        session: LiveSession | None,
        principal: object,
        stream: str = "",
    ) -> RequestPeer:
        """The client behind a message."""
        if session is None:
            return RequestPeer(send, Stateless(revision or self._assumed), principal=principal)
        return RequestPeer(send, session, calls=session.calls, principal=principal, standalone=session, stream=stream)

    def streams(self, get: Get) -> bool:
        """Whether the client gets an event stream."""
        return self._streaming and negotiation.names(get("Accept"), negotiation.EVENT_STREAM)

    def not_now(self, request: JSONRPCRequest, session: LiveSession | None) -> JSONRPCResponse | None:
        """The refusal of a request while others of the session are in flight."""
        if self._duplicate(request, session):
            return failed(request, INVALID_REQUEST, "A request with this id is still in flight.")
        if session is not None and session.in_flight >= DEFAULT_MAX_IN_FLIGHT:
            return failed(request, INTERNAL_ERROR, "Too many requests in flight.")
        return None

    def _duplicate(self, request: JSONRPCRequest, session: LiveSession | None) -> bool:
        return session is not None and not isinstance(request.id, UnsetType) and session.runs(request.id)

    async def begin(
        self, request: JSONRPCRequest, peer: RequestPeer, session: LiveSession | None, deliver: Deliver
    ) -> None:
        """Run a request to its end, whoever still listens, and deliver its answer: at once when it is quick."""
        assert not isinstance(request.id, UnsetType)
        key = key_of(request.id)
        task = start_task(ask(self._server, request, peer), asyncio.get_running_loop())
        self._running.add(task)
        if session is not None:
            session.began(key, task, peer)

        def done(ended: asyncio.Task[JSONRPCResponse]) -> None:
            self._running.discard(ended)
            if session is not None:
                session.ended(key)
            deliver(None if ended.cancelled() or peer.withdrawn else ended.result())

        try:
            if not task.done():
                await asyncio.sleep(0)
        finally:
            if task.done():
                done(task)
            else:
                task.add_done_callback(done)

    def open(self, session: LiveSession | None) -> tuple[OutgoingStream, Send, str]:
        """A stream that begins, how messages are sent on it, and its name in the session."""
        stream = OutgoingStream(keep_alive=self._keep_alive)
        if session is not None and session.resumable:
            name = session.open_stream(stream)
            return stream, session.sender(name), name
        return stream, lambda message: stream.send(encode_event(message)), ""

    def close(self, stream: OutgoingStream, name: str, session: LiveSession | None) -> None:
        """Nothing more comes on a stream, nor on the one that has resumed it."""
        if session is not None and session.resumable:
            session.end_stream(name)
        stream.end()

    async def write(self, stream: OutgoingStream, responder: Responder, session: LiveSession | None) -> None:
        """Write a stream until it is complete or its client is gone."""
        await responder.begin(stream_headers(session))
        await stream.pump(responder)

    def leave(self, stream: OutgoingStream, name: str, session: LiveSession | None) -> None:
        """Nobody reads a stream any longer: what comes is kept for replay alone."""
        stream.abandon()
        if session is not None and session.resumable:
            session.detach(stream, name)

    def _version(self, revision: str | None) -> Reply | None:
        if revision is None or revision in self._revisions:
            return None
        return refuse(400, _unsupported(revision).message, null_id=not self._strict)


def stream_headers(session: LiveSession | None) -> Headers:
    """The headers of an event stream of a session."""
    return STREAM_HEADERS if session is None else (*STREAM_HEADERS, *session.headers)


def _unsupported(revision: str) -> MCPError:
    return MCPError(INVALID_REQUEST, f"Unsupported protocol version: {revision[:100]}")
