"""The bare HTTP mechanism of seed A for aiohttp: one stateless POST route, and sessions as a middleware in front.

Neither checks ``Origin``, authenticates, limits or logs: compose that in front, or use ``create_app``, which has safe
defaults.  The protocol wants an Origin check before any of this.

Rules:
- The route answers 200 with whatever the server says, 400 to a body that is no request, 202 to a notification.
- aiohttp's own limit on bodies (``client_max_size``, 1 MiB by default) answers 413 before the route sees them; nothing
  else bounds them here.
- The middleware mints a session when `initialize` succeeds, knows it by its header afterwards, serves GET (a resumable
  event stream) and DELETE, and answers 404 to an unknown or missing id.  Requests of the modern era pass untouched.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from typedmcp.core.errors import MessageError
from typedmcp.core.jsonrpc import (
    JSONRPCErrorData,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    decode_message,
    encode_response,
    params_text,
)
from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.http.exchange import Exchange
from typedmcp.transports.http.live import LiveSession
from typedmcp.transports.http.outgoing import DEFAULT_KEEP_ALIVE
from typedmcp.transports.http.sessions import DEFAULT_MCP_SESSION_CAPACITY, MCPSession, SessionStore
from typedmcp.transports.http.shell import read_session_header, serve_post, serve_stream
from typedmcp_wire.revisions import (
    HANDSHAKE_REVISIONS,
    INVALID_REQUEST,
    PROTOCOL_VERSION_HEADER,
    PROTOCOL_VERSION_KEY,
    SESSION_ID_HEADER,
)

DEFAULT_MCP_PATH: Final = "/mcp"
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

    async def post(request: web.Request) -> web.StreamResponse:
        session = request.get(MCP_SESSION)
        live = session.live if session is not None else None
        headers = {SESSION_ID_HEADER: session.id} if session is not None else None
        return await serve_post(exchange, request, session=live, headers=headers)

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
        fan_out: Whether a pushed message goes to every attached stream or to the first.
    """
    store = SessionStore(ttl=ttl, capacity=capacity, clock=clock, fan_out=fan_out)

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path != path or request.method not in ("POST", "GET", "DELETE"):
            return await handler(request)
        if request.method == "POST":
            return await _post(store, request, handler)
        session = store.find(read_session_header(request))
        if session is None:
            return reject_unknown_session()
        if request.method == "DELETE":
            end_session(store, session)
            return web.Response(status=204)
        return await serve_stream(request, session, keep_alive=keep_alive, headers={SESSION_ID_HEADER: session.id})

    return middleware


async def _post(
    store: SessionStore, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Give a POST its session; one that opens a session keeps it only when it succeeds."""
    message = parse_body(await request.read())
    if is_modern(request, message):
        return await handler(request)
    session = store.find(read_session_header(request))
    if session is not None:
        request[MCP_SESSION] = session
        try:
            return await handler(request)
        finally:
            store.touch(session)
    if not opens_session(message):
        return reject_unknown_session()
    session = store.create()
    LiveSession(session)
    request[MCP_SESSION] = session
    # Known before the answer leaves, since the client may use it as soon as it has read it.
    store.keep(session)
    response = await handler(request)
    if response.status != 200 or (session.handshake is None and b'"error":' in (getattr(response, "body", b"") or b"")):
        end_session(store, session)
    return response


def end_session(store: SessionStore, session: MCPSession) -> None:
    """Take a session out of the store and end what it runs."""
    store.remove(session.id)
    if isinstance(session.live, LiveSession):
        session.live.close()


def parse_body(body: bytes) -> JSONRPCMessage | None:
    """The message in a body; None when it holds none."""
    try:
        return decode_message(body)
    except MessageError:
        return None


def opens_session(message: JSONRPCMessage | None) -> bool:
    """Whether a message is an `initialize` that wants an answer."""
    return isinstance(message, JSONRPCRequest) and message.method == "initialize" and not message.is_notification


class _Meta(msgspec.Struct):
    meta: Any = msgspec.field(name="_meta", default=None)


def is_modern(request: web.Request, message: JSONRPCMessage | None) -> bool:
    """Whether a POST belongs to the modern era, by its header or its body."""
    version = request.headers.get(PROTOCOL_VERSION_HEADER)
    if version is not None and version not in HANDSHAKE_REVISIONS:
        return True
    if not isinstance(message, JSONRPCRequest):
        return False
    try:
        meta = msgspec.json.decode(params_text(message.params), type=_Meta).meta
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return isinstance(meta, dict) and PROTOCOL_VERSION_KEY in meta


def reject_unknown_session() -> web.Response:
    """The answer to a session id that is missing, unknown or ended."""
    return session_error(404, "Session not found", null_id=True)


def session_error(status: int, text: str, *, null_id: bool = False) -> web.Response:
    """An error that concerns a session, not a request."""
    data = JSONRPCErrorData(code=INVALID_REQUEST, message=text)
    response = JSONRPCResponse(id=None, error=data) if null_id else JSONRPCResponse(error=data)
    return web.Response(status=status, body=encode_response(response), content_type="application/json")
