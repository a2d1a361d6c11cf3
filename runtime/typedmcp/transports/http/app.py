"""A whole aiohttp application for one server, with safe defaults.

Rules:
- ``Origin`` is checked on every bind: absent passes; loopback and the configured origins pass; any other is 403.
  ``Host`` is checked too where the server is bound to loopback.
- Sessions of the handshake era: a missing id is 400, an unknown or ended one 404; a message goes to one stream.
- Bodies, sessions and idle time are bounded.  ``/healthz`` and ``/readyz`` answer for supervisors.
- On shutdown open streams end, and handlers are cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.http.endpoint import Endpoint
from typedmcp.transports.http.guard import OriginGuard
from typedmcp.transports.http.limits import (
    DEFAULT_IDLE_SECONDS,
    DEFAULT_MAX_BODY,
    DEFAULT_MAX_SESSIONS,
    DEFAULT_MCP_PATH,
)
from typedmcp.transports.http.outgoing import DEFAULT_KEEP_ALIVE
from typedmcp.transports.http.sessions import DEFAULT_MCP_SESSION_CAPACITY, SessionStore
from typedmcp.transports.http.shell import respond

Identify = Callable[[web.Request], object]


def create_app(
    mcp: Any,
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
        mcp: An :class:`~typedmcp.App`, or a server.
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
    server: MCPServerInterface = getattr(mcp, "server", mcp)
    endpoint = Endpoint(
        server,
        SessionStore(ttl=session_idle, capacity=capacity, limit=max_sessions, fan_out=False),
        OriginGuard(host, origins, hosts),
        streaming=streaming,
        keep_alive=keep_alive,
    )

    async def serve(request: web.Request) -> web.StreamResponse:
        principal = identify(request) if identify is not None else None
        get, body = request.headers.get, await request.read()
        return await respond(request, lambda responder: endpoint.serve(request.method, get, body, responder, principal))

    async def shut_down(_: web.Application) -> None:
        endpoint.shut_down()

    app = web.Application(client_max_size=max_body)
    for place in {path, path.rstrip("/") or "/", path.rstrip("/") + "/"}:
        app.router.add_route("*", place, serve)
    for place in ("/healthz", "/readyz"):
        app.router.add_get(place, _healthy)
    app.on_shutdown.append(shut_down)
    return app


async def _healthy(request: web.Request) -> web.Response:
    return web.Response(text="ok\n")
