"""A whole aiohttp application for one server, with safe defaults.

Rules:
- ``Origin`` is checked on every bind: absent passes; loopback and the configured origins pass; any other is 403.
  ``Host`` is checked too where the server is bound to loopback.
- Sessions of the handshake era: a missing id is 400, an unknown or ended one 404; a message goes to one stream.
- Bodies, sessions and idle time are bounded.  ``/healthz`` and ``/readyz`` answer for supervisors.
- On shutdown open streams end, and handlers are cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from aiohttp import hdrs, web

from typedmcp.core.jsonrpc import is_array
from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.http.exchange import Exchange
from typedmcp.transports.http.guard import OriginGuard
from typedmcp.transports.http.live import LiveSession
from typedmcp.transports.http.outgoing import DEFAULT_KEEP_ALIVE
from typedmcp.transports.http.routes import (
    DEFAULT_MCP_PATH,
    end_session,
    is_modern,
    opens_session,
    parse_body,
    session_error,
)
from typedmcp.transports.http.sessions import DEFAULT_MCP_SESSION_CAPACITY, MCPSession, SessionStore
from typedmcp.transports.http.shell import read_session_header, serve_post, serve_stream
from typedmcp_wire.revisions import HANDSHAKE_REVISIONS, PROTOCOL_VERSION_HEADER, REVISIONS, SESSION_ID_HEADER

DEFAULT_MAX_BODY: Final = 16 * 1024 * 1024
"""The largest body taken, in bytes: 16 MiB."""
DEFAULT_MAX_SESSIONS: Final = 10_000
DEFAULT_IDLE_SECONDS: Final = 30 * 60.0
_RETRY_MS: Final = 1000

Identify = Callable[[web.Request], object]


def create_app(
    mcp: MCPServerInterface,
    *,
    path: str = DEFAULT_MCP_PATH,
    streaming: bool = True,
    host: str = "127.0.0.1",
    origins: Sequence[str] = (),
    hosts: Sequence[str] = (),
    max_body: int = DEFAULT_MAX_BODY,
    max_sessions: int = DEFAULT_MAX_SESSIONS,
    session_idle: float = DEFAULT_IDLE_SECONDS,
    capacity: int = DEFAULT_MCP_SESSION_CAPACITY,
    keep_alive: float | None = DEFAULT_KEEP_ALIVE,
    identify: Identify | None = None,
) -> web.Application:
    """An application that serves `mcp` at `path`, with and without a slash at its end.

    Args:
        mcp: An App's server, or any other.
        path: Where.
        streaming: Whether clients of the handshake era that take event streams get one.
        host: The address it will be bound to: on loopback the ``Host`` header is checked.
        origins: Origins of web pages that may call, such as ``"https://app.example"``; they get CORS headers.
        hosts: Public names the server is reached by, for the ``Host`` check, such as ``"mcp.example:8443"``.
        max_body: The largest body, in bytes; a larger one is 413.
        max_sessions: How many sessions there may be; one more is 503.
        session_idle: Seconds without use after which a session ends.
        capacity: How many messages a session keeps for replay.
        keep_alive: Seconds of silence on a stream before a comment is sent.
        identify: Tells who a request's caller is; a session belongs to the one who opened it.
    """
    endpoint = _Endpoint(
        Exchange(mcp, streaming=streaming, strict=True, keep_alive=keep_alive),
        SessionStore(ttl=session_idle, capacity=capacity, limit=max_sessions, fan_out=False),
        handshake=any(r in HANDSHAKE_REVISIONS for r in getattr(mcp, "protocol_versions", REVISIONS)),
        keep_alive=keep_alive,
        identify=identify or (lambda request: None),
    )
    app = web.Application(client_max_size=max_body, middlewares=[OriginGuard(host, origins, hosts).middleware()])
    for place in {path, path.rstrip("/") or "/", path.rstrip("/") + "/"}:
        app.router.add_route("*", place, endpoint.serve)
    for place in ("/healthz", "/readyz"):
        app.router.add_get(place, _healthy)
    app.on_shutdown.append(endpoint.shut_down)
    return app


async def _healthy(request: web.Request) -> web.Response:
    return web.Response(text="ok\n")


class _Endpoint:
    """The one path of the protocol, all methods."""

    def __init__(
        self,
        exchange: Exchange,
        store: SessionStore,
        *,
        handshake: bool,
        keep_alive: float | None,
        identify: Identify,
    ) -> None:
        self._exchange = exchange
        self._store = store
        self._handshake = handshake
        self._keep_alive = keep_alive
        self._identify = identify
        self._open: set[asyncio.Task[object]] = set()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer one HTTP request."""
        task = asyncio.current_task()
        if task is not None:
            self._open.add(task)
        try:
            if request.method == hdrs.METH_POST:
                return await self._post(request)
            if request.method in (hdrs.METH_GET, hdrs.METH_DELETE) and self._handshake:
                return await self._session_request(request)
            allowed = "GET, POST, DELETE" if self._handshake else "POST"
            return web.Response(status=405, headers={"Allow": allowed})
        finally:
            if task is not None:
                self._open.discard(task)

    async def shut_down(self, app: web.Application) -> None:
        """End what is open."""
        for task in list(self._open):
            task.cancel()

    async def _post(self, request: web.Request) -> web.StreamResponse:
        principal = self._identify(request)
        given = read_session_header(request)
        if given is None and request.headers.get(PROTOCOL_VERSION_HEADER) not in (None, *HANDSHAKE_REVISIONS):
            return await serve_post(self._exchange, request, principal=principal)
        message = parse_body(await request.read())
        body = await request.read()
        if message is None and not is_array(body):
            # Unreadable whatever the session: the exchange says what is wrong.
            return await serve_post(self._exchange, request, principal=principal)
        if is_modern(request, message) or not self._handshake:
            return await serve_post(self._exchange, request, principal=principal)
        if opens_session(message):
            return await self._initialize(request, principal)
        if given is None:
            return session_error(400, f"Bad Request: the header {SESSION_ID_HEADER} is missing")
        session = self._store.find(given, principal)
        if session is None:
            return session_error(404, "Session not found")
        try:
            return await serve_post(
                self._exchange, request, session=session.live, principal=principal, headers={SESSION_ID_HEADER: given}
            )
        finally:
            self._store.touch(session)

    async def _initialize(self, request: web.Request, principal: object) -> web.StreamResponse:
        if self._store.full:
            return session_error(503, "Too many sessions; try again later")
        session = self._store.create(principal)
        live = LiveSession(session, retry_ms=_RETRY_MS)
        headers = {SESSION_ID_HEADER: session.id}
        # Known before the answer leaves, since the client may use it as soon as it has read it.
        self._store.keep(session)
        try:
            response = await serve_post(self._exchange, request, session=live, principal=principal, headers=headers)
        finally:
            if session.handshake is None:
                end_session(self._store, session)
        if session.handshake is None and not response.prepared:
            response.headers.pop(SESSION_ID_HEADER, None)
        return response

    async def _session_request(self, request: web.Request) -> web.StreamResponse:
        given = read_session_header(request)
        if given is None:
            if request.method == hdrs.METH_GET:
                return web.Response(status=405, headers={"Allow": "POST"})
            return session_error(400, f"Bad Request: the header {SESSION_ID_HEADER} is missing")
        session = self._store.find(given, self._identify(request))
        if session is None:
            return session_error(404, "Session not found")
        if request.method == hdrs.METH_DELETE:
            end_session(self._store, session)
            return web.Response(status=204)
        return await self._listen(request, session)

    async def _listen(self, request: web.Request, session: MCPSession) -> web.StreamResponse:
        if "text/event-stream" not in request.headers.get(hdrs.ACCEPT, "").lower():
            return session_error(406, "Not Acceptable: a GET must take text/event-stream")
        headers = {SESSION_ID_HEADER: session.id}
        return await serve_stream(request, session, keep_alive=self._keep_alive, headers=headers)
