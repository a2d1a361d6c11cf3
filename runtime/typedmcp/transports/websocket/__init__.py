"""WebSocket: a server behind an aiohttp route or upgrade handler, a client on a URL.

The MCP specification does not define this transport; it is a custom one, and this is all of it:

- Connection: one WebSocket is one client, from its first message to its last.  A new connection knows nothing of an
  earlier one.  Subprotocol ``mcp`` is offered by the client, and chosen by the server when it was offered.
- Framing: one text frame is one JSON-RPC message.  Binary frames are refused with close code 1003, text that is not
  UTF-8 with 1007, messages beyond the limit with 1009.
- Cancellation: by ``notifications/cancelled``; the end of the connection cancels all that runs on it.

The two sides load on first use, and aiohttp with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typedmcp.transports.websocket.app import DEFAULT_MAX_CONNECTIONS, create_websocket_app
    from typedmcp.transports.websocket.client import (
        WebSocketClientTransport,
        WebSocketHandshakeError,
        create_websocket_client_transport,
    )
    from typedmcp.transports.websocket.frames import (
        DEFAULT_HEARTBEAT,
        DEFAULT_MAX_MESSAGE_BYTES,
        DEFAULT_MCP_PATH,
        MCP_WEBSOCKET_SUBPROTOCOL,
    )
    from typedmcp.transports.websocket.server import (
        WebSocketServer,
        create_websocket_routes,
        create_websocket_server,
    )
    from typedmcp.transports.websocket.transport import WebSocketServerTransport

__all__ = [
    "DEFAULT_HEARTBEAT",
    "DEFAULT_MAX_CONNECTIONS",
    "DEFAULT_MAX_MESSAGE_BYTES",
    "DEFAULT_MCP_PATH",
    "MCP_WEBSOCKET_SUBPROTOCOL",
    "WebSocketClientTransport",
    "WebSocketHandshakeError",
    "WebSocketServer",
    "WebSocketServerTransport",
    "create_websocket_app",
    "create_websocket_client_transport",
    "create_websocket_routes",
    "create_websocket_server",
]

_HOMES = {
    "DEFAULT_HEARTBEAT": "frames",
    "DEFAULT_MAX_CONNECTIONS": "app",
    "DEFAULT_MAX_MESSAGE_BYTES": "frames",
    "DEFAULT_MCP_PATH": "frames",
    "MCP_WEBSOCKET_SUBPROTOCOL": "frames",
    "WebSocketClientTransport": "client",
    "WebSocketHandshakeError": "client",
    "WebSocketServer": "server",
    "WebSocketServerTransport": "transport",
    "create_websocket_app": "app",
    "create_websocket_client_transport": "client",
    "create_websocket_routes": "server",
    "create_websocket_server": "server",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
