"""The bare HTTP mechanism of seed A for aiohttp: one stateless POST route, and sessions as a middleware in front.

Neither checks ``Origin``, authenticates, limits or logs: compose that in front, or use ``create_app``, which has safe
defaults.  The protocol wants an Origin check before any of this.

Rules:
- The route answers 200 with whatever the server says, 400 to a body that is no request, 202 to a notification.
- aiohttp's own limit on bodies (``client_max_size``, 1 MiB by default) answers 413 before the route sees them; nothing
  else bounds them here.
- The middleware mints a session when `initialize` succeeds, knows it by its header afterwards, serves GET (a resumable
  event stream) and DELETE, and answers 404 to an unknown or missing id.  What is pushed to a session goes to all of its
  GET streams, and is kept for replay; the answer to a POST goes to that POST alone, without an id.
- Requests of the modern era pass the middleware untouched.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.http import negotiation
from typedmcp.transports.http.exchange import Exchange
from typedmcp.transports.http.incoming import Incoming, read_post
from typedmcp.transports.http.limits import DEFAULT_MCP_PATH
from typedmcp.transports.http.listening import stream_session
from typedmcp.transports.http.live import LiveSession
from typedmcp.transports.http.outgoing import DEFAULT_KEEP_ALIVE, Responder
from typedmcp.transports.http.replies import Reply, refuse
from typedmcp.transports.http.sessions import DEFAULT_MCP_SESSION_CAPACITY, MCPSession
from typedmcp.transports.http.shell import make_watch, plain, read_last_event_id, read_session_header, respond
from typedmcp.transports.http.store import SessionStore
from typedmcp_wire.revisions import SESSION_ID_HEADER

MCP_SESSION: Final = web.RequestKey("mcp_session", MCPSession)
"""Where a handler behind the middleware finds the session of a request."""


def create_mcp_routes(
    mcp: MCPServerInterface, *, path: str = DEFAULT_MCP_PATH, streaming: bool = True
) -> list[web.RouteDef]:
    """The route to register: POST at `path`.

    Args:
        mcp: Who serves the requests.
        path: Where.
        streaming: Whether clients that take event streams get one.

    Follows basic/transports of 2025-06-18 and basic/transports/streamable-http of 2026-07-28.
    """
    exchange = Exchange(mcp, streaming=streaming)
    watch = make_watch()

    async def post(request: web.Request) -> web.StreamResponse:
        get = request.headers.get
        incoming = exchange.read(get, await request.read())
        assert isinstance(incoming, Incoming), "only the strict profile refuses before reading"
        session = request.get(MCP_SESSION)
        live = session.live if session is not None and isinstance(session.live, LiveSession) else None
        return await respond(request, lambda responder: exchange.serve(get, incoming, responder, session=live), watch)

    return [web.post(path, post)]


def create_mcp_session(
    *,
    path: str = DEFAULT_MCP_PATH,
    ttl: float | None = None,
    capacity: int = DEFAULT_MCP_SESSION_CAPACITY,
    clock: Callable[[], float] = time.time,
    keep_alive: float | None = DEFAULT_KEEP_ALIVE,
    fan_out: bool = True,
) -> Middleware:
    """A middleware that makes the route at `path` stateful.

    Args:
        path: The route's path; others pass through.
        ttl: Seconds without use after which a session ends; None: only DELETE ends it.
        capacity: How many messages a session keeps for replay.
        clock: The time in seconds.
        keep_alive: Seconds of silence on a GET stream before a comment is sent; None: never.
        fan_out: Whether a pushed message goes to every attached stream or to the one attached last.
    """
    store = SessionStore(ttl=ttl, capacity=capacity, clock=clock, fan_out=fan_out)
    watch = make_watch()

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path != path or request.method not in ("POST", "GET", "DELETE"):
            return await handler(request)
        if request.method == "POST":
            return await _post(store, request, handler)
        if request.method == "GET" and request.headers.get("Upgrade", "").lower() == "websocket":
            return await handler(request)  # a WebSocket is a session by itself
        if request.method == "GET" and not negotiation.accepts(request.headers.get("Accept"), negotiation.EVENT_STREAM):
            return plain(refuse(406, "Not Acceptable: a GET must take text/event-stream", null_id=True))
        session = store.find(read_session_header(request))
        if session is None:
            return reject_unknown_session()
        if request.method == "DELETE":
            store.end(session)
            return web.Response(status=204)
        cursor = read_last_event_id(request)
        return await respond(request, lambda responder: _stream(session, cursor, responder, keep_alive), watch)

    return middleware


async def _stream(
    session: MCPSession, cursor: str | None, responder: Responder, keep_alive: float | None
) -> Reply | None:
    headers = ((SESSION_ID_HEADER, session.id),)
    await stream_session(session, cursor, responder, headers, keep_alive=keep_alive)
    return None


async def _post(store: SessionStore, request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give a POST its session; one that opens a session keeps it only when it succeeds."""
    incoming = read_post(request.headers.get, await request.read())
    if incoming.modern:
        return await handler(request)
    session = store.find(read_session_header(request))
    if session is None:
        if not incoming.opens_session:
            return reject_unknown_session()
        return await _open(store, request, handler)
    request[MCP_SESSION] = session
    try:
        return _stamped(await handler(request), session)
    finally:
        store.touch(session)


async def _open(store: SessionStore, request: web.Request, handler: Handler) -> web.StreamResponse:
    session = store.create()
    live = LiveSession(session)
    request[MCP_SESSION] = session
    # Known before the answer leaves, since the client may use it as soon as it has read it.
    store.keep(session)
    opened = False
    try:
        response = await handler(request)
        opened = response.status == 200 and not live.refused
    finally:
        if not opened:
            store.end(session)
    return _stamped(response, session) if opened else response


def _stamped(response: web.StreamResponse, session: MCPSession) -> web.StreamResponse:
    """The response with the session's id; a stream under way has it already."""
    if not response.prepared:
        response.headers[SESSION_ID_HEADER] = session.id
    return response


def reject_unknown_session() -> web.Response:
    """The answer to a session id that is missing, unknown or ended."""
    return plain(refuse(404, "Session not found", null_id=True))
