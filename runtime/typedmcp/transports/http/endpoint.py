"""The protocol's endpoint with safe defaults, without IO: what every web framework's shell calls.

Rules:
- Who may call is judged first (:mod:`~typedmcp.transports.http.guard`), then which kind of request it is.
- Sessions of the handshake era: opened by `initialize`; afterwards a missing id is 400, an unknown or ended one 404; a
  message goes to one stream; a session belongs to the principal who opened it.
- Requests of the modern era know no sessions: ``Mcp-Session-Id`` and ``Last-Event-ID`` are ignored, none is minted.
- GET and DELETE are 405 where no handshake revision is served.
- On shutdown streams got by GET end at once, and what is asked from then on is refused; requests that run have the
  time their web server gives them, and are cancelled then.
"""

from __future__ import annotations

from typing import Final

from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.http import negotiation
from typedmcp.transports.http.exchange import Exchange
from typedmcp.transports.http.guard import OriginGuard
from typedmcp.transports.http.incoming import Incoming
from typedmcp.transports.http.limits import DEFAULT_MAX_DEPTH, DEFAULT_MAX_REQUESTS
from typedmcp.transports.http.listening import stream_session
from typedmcp.transports.http.live import LiveSession
from typedmcp.transports.http.mirror import Get
from typedmcp.transports.http.outgoing import DEFAULT_KEEP_ALIVE, Responder
from typedmcp.transports.http.rate import RateLimiter
from typedmcp.transports.http.replies import Headers, Reply, refuse
from typedmcp.transports.http.store import SessionStore
from typedmcp_wire.revisions import (
    HANDSHAKE_REVISIONS,
    LAST_EVENT_ID_HEADER,
    PROTOCOL_VERSION_HEADER,
    SESSION_ID_HEADER,
)

_RETRY_MS: Final = 1000


class Endpoint:
    """One path of the protocol, all HTTP methods.

    Args:
        server: Who serves the messages.
        store: The sessions.
        guard: Who may call.
        streaming: Whether clients of the handshake era that take event streams get one.
        keep_alive: Seconds of silence on a stream before a comment is sent.
        max_depth: How deeply a body may nest.
        max_requests: How many requests may be open at once, streams included.
        rate: How often each caller may call; None: as often as it likes.

    Attributes:
        sessions: The sessions; its length is how many there are.
        open: How many requests are open.
    """

    def __init__(
        self,
        server: MCPServerInterface,
        store: SessionStore,
        guard: OriginGuard,
        *,
        streaming: bool = True,
        keep_alive: float | None = DEFAULT_KEEP_ALIVE,
        max_depth: int = DEFAULT_MAX_DEPTH,
        max_requests: int = DEFAULT_MAX_REQUESTS,
        rate: RateLimiter | None = None,
    ) -> None:
        self._exchange = Exchange(server, streaming=streaming, strict=True, keep_alive=keep_alive, max_depth=max_depth)
        self._guard = guard
        self._keep_alive = keep_alive
        self._max_requests = max_requests
        self._stopping = False
        self._rate = rate
        self.sessions = store
        self.open = 0

    def admit(self, get: Get) -> Reply | None:
        """The refusal of a request whose body need not be read; None when it may pass."""
        refusal = self._guard.check(get)
        if refusal is not None:
            return refusal
        if self._stopping:
            return refuse(503, "The server is stopping").extended(self._guard.cors(get))
        if self.open >= self._max_requests:
            return refuse(503, "Too many requests; try again later").extended(self._guard.cors(get))
        return None

    def cors(self, get: Get) -> Headers:
        """What a page of an allowed origin needs to read an answer given elsewhere."""
        return self._guard.cors(get)

    async def serve(
        self,
        method: str,
        get: Get,
        body: bytes,
        responder: Responder,
        principal: object = None,
        address: str | None = None,
    ) -> Reply | None:
        """Answer a request that :meth:`admit` let pass; None when the answer was streamed.

        Args:
            method: The HTTP method.
            get: The request's headers.
            body: Its body.
            responder: Used when the answer is a stream.
            principal: Who the caller is.
            address: Where the request comes from, for the rate of callers that are not known.

        Raises:
            ConnectionClosed: the client has gone.
        """
        cors = self._guard.cors(get)
        if method == "OPTIONS" and cors:
            return Reply(204, headers=(*cors, *self._guard.preflight(get)))
        self.open += 1
        try:
            outer = Extended(responder, cors) if cors else responder
            if method == "POST":
                reply = await self._post(get, body, outer, principal, address)
            else:
                reply = await self._bodiless(method, get, outer, principal)
        finally:
            self.open -= 1
        return reply if reply is None else reply.extended(cors)

    def stop(self) -> None:
        """Take nothing more, and end the streams that would never end by themselves."""
        self._stopping = True
        self._exchange.end_listening()
        for session in self.sessions:
            if isinstance(session.live, LiveSession):
                session.live.end_listening()

    async def close(self) -> None:
        """End all sessions, and cancel what still runs."""
        self._stopping = True
        for session in self.sessions:
            self.sessions.end(session)
        await self._exchange.shut_down()

    async def _bodiless(self, method: str, get: Get, responder: Responder, principal: object) -> Reply | None:
        if method in ("GET", "DELETE") and self._exchange.dual:
            return await self._session_request(method, get, responder, principal)
        return _not_allowed("GET, POST, DELETE" if self._exchange.dual else "POST")

    async def _post(
        self, get: Get, body: bytes, responder: Responder, principal: object, address: str | None
    ) -> Reply | None:
        incoming = self._exchange.read(get, body)
        if isinstance(incoming, Reply):
            return incoming
        if self._rate is not None:
            refusal = self._rate.check(incoming, principal, address)
            if refusal is not None:
                return refusal
        if incoming.stateless:
            # What cannot be read is told so whatever the session; what is modern has none.
            return await self._exchange.serve(get, incoming, responder, principal=principal)
        if incoming.opens_session and get(SESSION_ID_HEADER) is None:
            return await self._initialize(get, incoming, responder, principal)
        session = self._find(get, principal)
        if isinstance(session, Reply):
            return session
        try:
            reply = await self._exchange.serve(get, incoming, responder, session=session, principal=principal)
        finally:
            self.sessions.touch(session.state)
        return reply if reply is None else reply.extended(session.headers)

    async def _initialize(self, get: Get, incoming: Incoming, responder: Responder, principal: object) -> Reply | None:
        if self.sessions.full:
            return refuse(503, "Too many sessions; try again later")
        state = self.sessions.create(principal)
        session = LiveSession(state, resumable=True, retry_ms=_RETRY_MS)
        # Known before the answer leaves, since the client may use it as soon as it has read it.
        self.sessions.keep(state)
        session.refused = True  # until the server has agreed
        try:
            reply = await self._exchange.serve(get, incoming, responder, session=session, principal=principal)
        finally:
            if session.refused:
                self.sessions.end(state)
        return reply if reply is None else reply.extended(session.headers)

    async def _session_request(self, method: str, get: Get, responder: Responder, principal: object) -> Reply | None:
        version = get(PROTOCOL_VERSION_HEADER)
        if version is not None and version not in self._exchange.revisions:
            return refuse(400, f"Unsupported protocol version: {version[:100]}")
        if version is not None and version not in HANDSHAKE_REVISIONS:
            return _not_allowed("POST")
        if method == "GET":
            if not negotiation.accepts(get("Accept"), negotiation.EVENT_STREAM):
                return refuse(406, "Not Acceptable: a GET must take text/event-stream")
            if get(SESSION_ID_HEADER) is None:
                # Clients probe for a stream before they have a session, and know only 405 as "none here".
                return _not_allowed("POST")
        session = self._find(get, principal)
        if isinstance(session, Reply):
            return session
        if method == "DELETE":
            self.sessions.end(session.state)
            return Reply(204)
        try:
            await stream_session(
                session.state, get(LAST_EVENT_ID_HEADER), responder, session.headers, keep_alive=self._keep_alive
            )
        finally:
            self.sessions.touch(session.state)
        return None

    def _find(self, get: Get, principal: object) -> LiveSession | Reply:
        given = get(SESSION_ID_HEADER)
        if given is None:
            return refuse(400, f"Bad Request: the header {SESSION_ID_HEADER} is missing")
        session = self.sessions.find(given, principal)
        if session is None or not isinstance(session.live, LiveSession):
            return refuse(404, "Session not found")
        return session.live


def _not_allowed(allow: str) -> Reply:
    return Reply(405, headers=(("Allow", allow),))


class Extended:
    """A responder that adds headers."""

    def __init__(self, inner: Responder, headers: Headers) -> None:
        self._inner = inner
        self._headers = headers

    async def begin(self, headers: Headers) -> None:
        """Begin with the headers given and those added."""
        await self._inner.begin((*headers, *self._headers))

    async def write(self, data: bytes) -> None:
        """Write to the responder inside."""
        await self._inner.write(data)

    def cancel(self) -> None:
        """Cancel what the responder inside cancels."""
        self._inner.cancel()
