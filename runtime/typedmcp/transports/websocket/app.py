"""A whole aiohttp application that serves a WebSocket, with safe defaults.

Rules:
- ``Origin`` and ``Host`` are checked as in ``create_app`` of :mod:`typedmcp.transports.http`: an absent origin,
  loopback and the configured ones pass, any other is 403; the host counts where the server is bound to loopback.
- Messages, requests in flight and connections are bounded; one connection more is 503.
- ``/healthz`` and ``/readyz`` answer for supervisors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from aiohttp import web
from aiohttp.typedefs import Handler

from typedmcp.core.connection import DEFAULT_MAX_IN_FLIGHT
from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.http.guard import OriginGuard
from typedmcp.transports.http.shell import add_health, plain
from typedmcp.transports.websocket.frames import (
    DEFAULT_HEARTBEAT,
    DEFAULT_MAX_MESSAGE_BYTES,
    DEFAULT_MCP_PATH,
    MCP_WEBSOCKET_SUBPROTOCOL,
)
from typedmcp.transports.websocket.server import create_websocket_server

DEFAULT_MAX_CONNECTIONS: Final = 10_000
"""How many clients may be connected at once."""


def create_websocket_app(
    mcp: Any,
    *,
    path: str = DEFAULT_MCP_PATH,
    subprotocol: str = MCP_WEBSOCKET_SUBPROTOCOL,
    host: str = "127.0.0.1",
    origins: Sequence[str] = (),
    hosts: Sequence[str] = (),
    limit: int = DEFAULT_MAX_MESSAGE_BYTES,
    heartbeat: float | None = DEFAULT_HEARTBEAT,
    max_in_flight: int = DEFAULT_MAX_IN_FLIGHT,
    max_connections: int = DEFAULT_MAX_CONNECTIONS,
    principal: Callable[[web.Request], object] | None = None,
) -> web.Application:
    """An application whose `path` is a WebSocket that serves `mcp`.

    Args:
        mcp: An :class:`~typedmcp.App`, or a server.
        path: Where.
        subprotocol: Chosen when the client offers it.
        host: The address it will be bound to: on loopback the ``Host`` header is checked.
        origins: Origins of web pages that may connect, such as ``"https://app.example"``.
        hosts: Public names the server is reached by, for the ``Host`` check, such as ``"mcp.example:8443"``.
        limit: The longest message taken, in bytes.
        heartbeat: Seconds of silence after which the client is asked for a sign of life; None: never.
        max_in_flight: How many requests of one connection may run at once; one more is refused with -32603.
        max_connections: How many clients may be connected at once; one more is 503.
        principal: Says who the client is, from the upgrade request; raises one of aiohttp's HTTP exceptions to refuse.
    """
    server: MCPServerInterface = getattr(mcp, "server", mcp)
    guard = OriginGuard(host, origins, hosts)
    websocket = create_websocket_server(
        server,
        path=path,
        subprotocol=subprotocol,
        limit=limit,
        heartbeat=heartbeat,
        max_in_flight=max_in_flight,
        principal=principal,
    )

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = guard.check(request.headers.get)
        if refusal is not None:
            return plain(refusal)
        if request.path == path and websocket.connections >= max_connections:
            return web.Response(status=503, text="Too many connections; try again later.\n")
        return await handler(request)

    app = web.Application(middlewares=[guarded])
    app.add_routes(websocket.routes())
    add_health(app)
    app.on_shutdown.append(websocket.shutdown)
    return app
