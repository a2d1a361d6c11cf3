"""The protocol's endpoint with safe defaults, without IO: what every web framework's shell calls.

Rules:
- Who may call is judged first (:mod:`~typedmcp.transports.http.guard`), then which kind of request it is.
- Sessions of the handshake era: opened by `initialize`; afterwards a missing id is 400, an unknown or ended one 404; a
  message goes to one stream; a session belongs to the principal who opened it.
- Requests of the modern era know no sessions: ``Mcp-Session-Id`` and ``Last-Event-ID`` are ignored, none is minted.
- GET and DELETE are 405 where no handshake revision is served.
"""

from __future__ import annotations

import asyncio
from typing import Final

from typedmcp.core.errors import ConnectionClosed
from typedmcp.core.jsonrpc import is_array
from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.http import negotiation
from typedmcp.transports.http.exchange import Exchange, Reply, is_modern, opens_session, parse_body, refuse
from typedmcp.transports.http.guard import OriginGuard
from typedmcp.transports.http.live import LiveSession
from typedmcp.transports.http.mirror import Get
from typedmcp.transports.http.outgoing import STREAM_HEADERS, OutgoingStream, Responder
from typedmcp.transports.http.sessions import STANDALONE, MCPSession, SessionStore
from typedmcp.transports.sse import encode_event
from typedmcp_wire.revisions import (
    HANDSHAKE_REVISIONS,
    LAST_EVENT_ID_HEADER,
    PROTOCOL_VERSION_HEADER,
    REVISIONS,
    SESSION_ID_HEADER,
)

_RETRY_MS: Final = 1000
Headers = tuple[tuple[str, str], ...]


class Endpoint:
    """One path of the protocol, all HTTP methods.

    Args:
        server: Who serves the messages.
        store: The sessions.
        guard: Who may call.
        streaming: Whether clients of the handshake era that take event streams get one.
        keep_alive: Seconds of silence on a stream before a comment is sent.
    """

    def __init__(
        self,
        server: MCPServerInterface,
        store: SessionStore,
        guard: OriginGuard,
        *,
        streaming: bool,
        keep_alive: float | None,
    ) -> None:
        self._exchange = Exchange(server, streaming=streaming, strict=True, keep_alive=keep_alive)
        self._store = store
        self._guard = guard
        self._keep_alive = keep_alive
        self._handshake = any(r in HANDSHAKE_REVISIONS for r in getattr(server, "protocol_versions", REVISIONS))
        self._open: set[asyncio.Task[object]] = set()

    async def serve(
        self, method: str, get: Get, body: bytes, responder: Responder, principal: object = None
    ) -> Reply | None:
        """Answer one HTTP request; None when the answer was streamed.

        Raises:
            ConnectionClosed: the client has gone.
        """
        refusal = self._guard.check(get)
        if refusal is not None:
            return refusal
        cors = self._guard.cors(get)
        if method == "OPTIONS" and cors:
            return Reply(204, headers=(*cors, *self._guard.preflight()))
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            reply = await self._route(method, get, body, Extended(responder, cors) if cors else responder, principal)
        finally:
            self._open.discard(task)
        return reply if reply is None or not cors else Reply(reply.status, reply.body, (*reply.headers, *cors))

    def shut_down(self) -> None:
        """End what is open: streams, and whatever waits for an answer."""
        for task in list(self._open):
            task.cancel()

    async def _route(self, method: str, get: Get, body: bytes, responder: Responder, principal: object) -> Reply | None:
        if method == "POST":
            return await self._post(get, body, responder, principal)
        if method in ("GET", "DELETE") and self._handshake:
            return await self._session_request(method, get, responder, principal)
        return Reply(405, headers=(("Allow", "GET, POST, DELETE" if self._handshake else "POST"),))

    async def _post(self, get: Get, body: bytes, responder: Responder, principal: object) -> Reply | None:
        version = get(PROTOCOL_VERSION_HEADER)
        if not self._handshake or (version is not None and version not in HANDSHAKE_REVISIONS):
            return await self._exchange.post(get, body, responder, principal=principal)
        message = parse_body(body)
        # What cannot be read is told so whatever the session; what is modern has none.
        if (message is None and not is_array(body)) or is_modern(version, message):
            return await self._exchange.post(get, body, responder, principal=principal)
        if opens_session(message):
            return await self._initialize(get, body, responder, principal)
        session = self._find(get, principal)
        if isinstance(session, Reply):
            return session
        try:
            return await self._in_session(session, get, body, responder, principal)
        finally:
            self._store.touch(session)

    async def _initialize(self, get: Get, body: bytes, responder: Responder, principal: object) -> Reply | None:
        if self._store.full:
            return refuse(503, "Too many sessions; try again later")
        session = self._store.create(principal)
        LiveSession(session, retry_ms=_RETRY_MS)
        # Known before the answer leaves, since the client may use it as soon as it has read it.
        self._store.keep(session)
        try:
            reply = await self._in_session(session, get, body, responder, principal)
        finally:
            if session.handshake is None:
                self._end(session)
        if reply is not None and session.handshake is None:
            return Reply(reply.status, reply.body, tuple(h for h in reply.headers if h[0] != SESSION_ID_HEADER))
        return reply

    async def _in_session(
        self, session: MCPSession, get: Get, body: bytes, responder: Responder, principal: object
    ) -> Reply | None:
        extra = ((SESSION_ID_HEADER, session.id),)
        return await post_in_session(self._exchange, session, extra, get, body, responder, principal)

    async def _session_request(self, method: str, get: Get, responder: Responder, principal: object) -> Reply | None:
        if method == "GET" and get(SESSION_ID_HEADER) is None:
            # Clients probe for a stream before they have a session, and know only 405 as "none here".
            return Reply(405, headers=(("Allow", "POST"),))
        session = self._find(get, principal)
        if isinstance(session, Reply):
            return session
        if method == "DELETE":
            self._end(session)
            return Reply(204)
        if not negotiation.accepts(get("Accept"), negotiation.EVENT_STREAM):
            return refuse(406, "Not Acceptable: a GET must take text/event-stream")
        extended = Extended(responder, ((SESSION_ID_HEADER, session.id),))
        await stream_session(session, get(LAST_EVENT_ID_HEADER), extended, keep_alive=self._keep_alive)
        return None

    def _find(self, get: Get, principal: object) -> MCPSession | Reply:
        given = get(SESSION_ID_HEADER)
        if given is None:
            return refuse(400, f"Bad Request: the header {SESSION_ID_HEADER} is missing")
        return self._store.find(given, principal) or refuse(404, "Session not found")

    def _end(self, session: MCPSession) -> None:
        end_session(self._store, session)


async def post_in_session(
    exchange: Exchange,
    session: MCPSession,
    headers: Headers,
    get: Get,
    body: bytes,
    responder: Responder,
    principal: object = None,
) -> Reply | None:
    """Serve a POST of a session, with `headers` on whatever is answered."""
    extended = Extended(responder, headers)
    reply = await exchange.post(get, body, extended, session=session.live, principal=principal)
    return None if reply is None else Reply(reply.status, reply.body, (*reply.headers, *headers))


def end_session(store: SessionStore, session: MCPSession) -> None:
    """Take a session out of the store and end what it runs."""
    store.remove(session.id)
    if isinstance(session.live, LiveSession):
        session.live.close()


async def stream_session(
    session: MCPSession, cursor: str | None, responder: Responder, *, keep_alive: float | None
) -> None:
    """Write what a client missed after `cursor`, then what comes, until it goes away or its stream is complete."""
    stream = OutgoingStream(keep_alive=keep_alive)
    name = (session.stream_of(cursor) if cursor else None) or STANDALONE
    try:
        await responder.begin(STREAM_HEADERS)
        for entry in session.replay(cursor) if cursor else ():
            stream.send(encode_event(entry.message, id=entry.id))
        live = session.live
        if name == STANDALONE or (isinstance(live, LiveSession) and live.streams(name)):
            session.attach(stream, name)
        else:
            stream.end()  # the request is answered: what was missed is all there is
        await stream.pump(responder)
    except ConnectionClosed:
        pass
    finally:
        session.detach(stream)


class Extended:
    """A responder that adds headers."""

    def __init__(self, inner: Responder, headers: Headers) -> None:
        self._inner = inner
        self._headers = headers

    async def begin(self, headers: Headers) -> None:
        await self._inner.begin((*headers, *self._headers))

    async def write(self, data: bytes) -> None:
        await self._inner.write(data)
