"""One POST without IO: headers and body in; a reply, or a stream written through a responder, out.

Rules (order as the specification's pages and the official suite need it):
- media types, message shape, notification, then what the era demands.
- A POST is modern when its body says so, or when its version header names no handshake revision, or when the server
  serves none.  A modern body whose header is missing or names another revision is 400 with -32020.
"""

from __future__ import annotations

from msgspec import UNSET

from typedmcp.core.ending import begin_ending
from typedmcp.core.errors import MessageError
from typedmcp.core.jsonrpc import JSONRPCErrorData, JSONRPCResponse, encode_response
from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.http import negotiation
from typedmcp.transports.http.batches import serve_batch
from typedmcp.transports.http.handshake import HandshakePosts
from typedmcp.transports.http.incoming import Incoming, read_post
from typedmcp.transports.http.limits import DEFAULT_MAX_DEPTH
from typedmcp.transports.http.live import LiveSession
from typedmcp.transports.http.mirror import Get
from typedmcp.transports.http.modern import ModernPosts
from typedmcp.transports.http.outgoing import Responder
from typedmcp.transports.http.replies import JSON_HEADERS, Reply, refuse
from typedmcp_wire.revisions import (
    ASSUMED_PROTOCOL_VERSION,
    BATCH_REVISIONS,
    HANDSHAKE_REVISIONS,
    NULL_ID_REVISIONS,
    REVISIONS,
)


class Exchange:
    """Serves POSTs for one server.

    Args:
        server: Who serves the messages.
        streaming: Whether clients of the handshake era that take event streams get one.
        strict: Check media types and nesting, refuse what the bare profile lets pass.
        keep_alive: Seconds of silence on a stream before a comment is sent.
        max_depth: How deeply a body may nest, when strict.

    Attributes:
        dual: Whether a handshake revision is served.
        revisions: The revisions served.
    """

    def __init__(
        self,
        server: MCPServerInterface,
        *,
        streaming: bool = True,
        strict: bool = False,
        keep_alive: float | None = None,
        max_depth: int = DEFAULT_MAX_DEPTH,
    ) -> None:
        self.revisions: tuple[str, ...] = getattr(server, "protocol_versions", REVISIONS)
        self.dual = not set(HANDSHAKE_REVISIONS).isdisjoint(self.revisions)
        self._server = server
        self._strict = strict
        self._streaming = streaming
        self._max_depth = max_depth if strict else None
        self._modern = ModernPosts(server, dual=self.dual, keep_alive=keep_alive)
        self._handshake = HandshakePosts(
            server, self.revisions, streaming=streaming, strict=strict, keep_alive=keep_alive
        )

    def read(self, get: Get, body: bytes) -> Incoming | Reply:
        """What a POST carries, or why it is not looked at."""
        refusal = self._media(get) if self._strict else None
        if refusal is not None:
            return refusal
        incoming = read_post(get, body, self._max_depth)
        if not self.dual:
            incoming.modern = True
        elif self._strict and not incoming.modern and not self._streaming and not _takes_json(get):
            return refuse(406, "Not Acceptable: this server answers with application/json")
        return incoming

    async def serve(
        self,
        get: Get,
        incoming: Incoming,
        responder: Responder,
        *,
        session: LiveSession | None = None,
        principal: object = None,
    ) -> Reply | None:
        """Serve one POST.

        Args:
            get: The request's headers.
            incoming: What :meth:`read` found in it.
            responder: Used when the answer is a stream.
            session: The session it belongs to, when there are sessions.
            principal: Who the caller is.

        Returns:
            The reply; None when the answer was streamed.

        Raises:
            ConnectionClosed: the client is gone.
        """
        message, revision = incoming.message, incoming.revision
        if isinstance(message, MessageError):
            frame = incoming.batch
            spoken = session.revision if session is not None and session.revision else revision
            if frame is not None and spoken in BATCH_REVISIONS and spoken in self.revisions:
                return await serve_batch(self._handshake, get, frame, spoken, responder, session, principal)
            return self._unreadable(message, spoken)
        if isinstance(message, JSONRPCResponse):
            return self._handshake.answered(message, revision, session)
        if message.id is not UNSET:
            if incoming.modern:
                return await self._modern.serve(get, message, incoming, responder, principal)
            return await self._handshake.serve(get, message, revision, responder, session, principal)
        if not incoming.modern:
            return await self._handshake.notified(message, revision, session, principal)
        # No notification from client to server is defined there: nothing but a served revision is asked of it.
        known = revision is None or revision in self.revisions
        return Reply(202) if known else refuse(400, "Unsupported protocol version")

    def end_listening(self) -> None:
        """End the subscriptions of the modern era, which would never end by themselves."""
        begin_ending(self._server)

    async def shut_down(self) -> None:
        """Cancel the requests of the handshake era, which do not end with whoever waits for them."""
        await self._handshake.shut_down()

    def _media(self, get: Get) -> Reply | None:
        if not (_takes_json(get) or negotiation.accepts(get("Accept"), negotiation.EVENT_STREAM)):
            return refuse(406, "Not Acceptable: the client must take application/json or text/event-stream")
        if not negotiation.is_json(get("Content-Type")):
            return refuse(415, "Unsupported Media Type: Content-Type must be application/json")
        return None

    def _unreadable(self, error: MessageError, revision: str | None) -> Reply:
        """The answer to a body that is no message, or a batch where there are none."""
        old = (revision or ASSUMED_PROTOCOL_VERSION) in NULL_ID_REVISIONS and self.dual
        no_id = None if old or not self._strict else UNSET
        data = JSONRPCErrorData(code=error.code, message=error.message)
        response = JSONRPCResponse(id=no_id if error.id is None else error.id, error=data)
        return Reply(400, encode_response(response), JSON_HEADERS)


def _takes_json(get: Get) -> bool:
    return negotiation.accepts(get("Accept"), negotiation.JSON)
