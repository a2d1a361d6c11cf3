"""HTTP: Streamable HTTP for aiohttp applications and as a client.  Names are loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typedmcp.transports.http.app import ENDPOINT as ENDPOINT
    from typedmcp.transports.http.app import create_app as create_app
    from typedmcp.transports.http.client import HTTPClientTransport as HTTPClientTransport
    from typedmcp.transports.http.client import HTTPClientTransportOptions as HTTPClientTransportOptions
    from typedmcp.transports.http.client import create_http_client_transport as create_http_client_transport
    from typedmcp.transports.http.limits import DEFAULT_MCP_PATH as DEFAULT_MCP_PATH
    from typedmcp.transports.http.options import HTTPTransportOptions as HTTPTransportOptions
    from typedmcp.transports.http.options import MCPSessionOptions as MCPSessionOptions
    from typedmcp.transports.http.routes import MCP_SESSION as MCP_SESSION
    from typedmcp.transports.http.routes import create_mcp_routes as create_mcp_routes
    from typedmcp.transports.http.routes import create_mcp_session as create_mcp_session
    from typedmcp.transports.http.routes import reject_unknown_session as reject_unknown_session
    from typedmcp.transports.http.sessions import DEFAULT_MCP_SESSION_CAPACITY as DEFAULT_MCP_SESSION_CAPACITY
    from typedmcp.transports.http.sessions import DEFAULT_MCP_SESSION_TTL as DEFAULT_MCP_SESSION_TTL
    from typedmcp.transports.http.sessions import EventStoreEntry as EventStoreEntry
    from typedmcp.transports.http.sessions import MCPSession as MCPSession
    from typedmcp.transports.http.sessions import MCPSessionInterface as MCPSessionInterface
    from typedmcp.transports.http.shell import MCP_PROTOCOL_VERSION_HEADER as MCP_PROTOCOL_VERSION_HEADER
    from typedmcp.transports.http.shell import MCP_SESSION_HEADER as MCP_SESSION_HEADER
    from typedmcp.transports.http.shell import accepts_event_stream as accepts_event_stream
    from typedmcp.transports.http.shell import read_last_event_id as read_last_event_id
    from typedmcp.transports.http.shell import read_session_header as read_session_header
    from typedmcp.transports.http.shell import upgrade_request_path as upgrade_request_path
    from typedmcp.transports.http.store import MCPSessionEntry as MCPSessionEntry
    from typedmcp.transports.sse import decode_event as decode_event
    from typedmcp.transports.sse import read_event_stream as read_event_stream

_HOMES = {
    "DEFAULT_MCP_PATH": "typedmcp.transports.http.limits",
    "DEFAULT_MCP_SESSION_CAPACITY": "typedmcp.transports.http.sessions",
    "DEFAULT_MCP_SESSION_TTL": "typedmcp.transports.http.sessions",
    "ENDPOINT": "typedmcp.transports.http.app",
    "MCP_PROTOCOL_VERSION_HEADER": "typedmcp.transports.http.shell",
    "MCP_SESSION": "typedmcp.transports.http.routes",
    "MCP_SESSION_HEADER": "typedmcp.transports.http.shell",
    "EventStoreEntry": "typedmcp.transports.http.sessions",
    "HTTPClientTransport": "typedmcp.transports.http.client",
    "HTTPClientTransportOptions": "typedmcp.transports.http.client",
    "HTTPTransportOptions": "typedmcp.transports.http.options",
    "MCPSession": "typedmcp.transports.http.sessions",
    "MCPSessionEntry": "typedmcp.transports.http.store",
    "MCPSessionInterface": "typedmcp.transports.http.sessions",
    "MCPSessionOptions": "typedmcp.transports.http.options",
    "accepts_event_stream": "typedmcp.transports.http.shell",
    "create_app": "typedmcp.transports.http.app",
    "create_http_client_transport": "typedmcp.transports.http.client",
    "create_mcp_routes": "typedmcp.transports.http.routes",
    "create_mcp_session": "typedmcp.transports.http.routes",
    "decode_event": "typedmcp.transports.sse",
    "read_event_stream": "typedmcp.transports.sse",
    "read_last_event_id": "typedmcp.transports.http.shell",
    "read_session_header": "typedmcp.transports.http.shell",
    "reject_unknown_session": "typedmcp.transports.http.routes",
    "upgrade_request_path": "typedmcp.transports.http.shell",
}

__all__ = [
    "DEFAULT_MCP_PATH",
    "DEFAULT_MCP_SESSION_CAPACITY",
    "DEFAULT_MCP_SESSION_TTL",
    "ENDPOINT",
    "MCP_PROTOCOL_VERSION_HEADER",
    "MCP_SESSION",
    "MCP_SESSION_HEADER",
    "EventStoreEntry",
    "HTTPClientTransport",
    "HTTPClientTransportOptions",
    "HTTPTransportOptions",
    "MCPSession",
    "MCPSessionEntry",
    "MCPSessionInterface",
    "MCPSessionOptions",
    "accepts_event_stream",
    "create_app",
    "create_http_client_transport",
    "create_mcp_routes",
    "create_mcp_session",
    "decode_event",
    "read_event_stream",
    "read_last_event_id",
    "read_session_header",
    "reject_unknown_session",
    "upgrade_request_path",
]


def __getattr__(name: str) -> object:
    import importlib

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value
