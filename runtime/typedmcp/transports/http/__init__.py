"""HTTP: Streamable HTTP for aiohttp applications and as a client.  Names are loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typedmcp.transports.http.app import create_app as create_app
    from typedmcp.transports.http.limits import DEFAULT_MCP_PATH as DEFAULT_MCP_PATH
    from typedmcp.transports.http.routes import MCP_SESSION as MCP_SESSION
    from typedmcp.transports.http.routes import create_mcp_routes as create_mcp_routes
    from typedmcp.transports.http.routes import create_mcp_session as create_mcp_session
    from typedmcp.transports.http.routes import reject_unknown_session as reject_unknown_session
    from typedmcp.transports.http.sessions import DEFAULT_MCP_SESSION_CAPACITY as DEFAULT_MCP_SESSION_CAPACITY
    from typedmcp.transports.http.sessions import DEFAULT_MCP_SESSION_TTL as DEFAULT_MCP_SESSION_TTL
    from typedmcp.transports.http.sessions import EventStoreEntry as EventStoreEntry
    from typedmcp.transports.http.sessions import MCPSession as MCPSession
    from typedmcp.transports.http.sessions import MCPSessionEntry as MCPSessionEntry
    from typedmcp.transports.http.shell import read_last_event_id as read_last_event_id
    from typedmcp.transports.http.shell import read_session_header as read_session_header

_HOMES = {
    "DEFAULT_MCP_PATH": "limits",
    "DEFAULT_MCP_SESSION_CAPACITY": "sessions",
    "DEFAULT_MCP_SESSION_TTL": "sessions",
    "EventStoreEntry": "sessions",
    "MCPSession": "sessions",
    "MCPSessionEntry": "sessions",
    "MCP_SESSION": "routes",
    "create_app": "app",
    "create_mcp_routes": "routes",
    "create_mcp_session": "routes",
    "read_last_event_id": "shell",
    "read_session_header": "shell",
    "reject_unknown_session": "routes",
}

__all__ = [
    "DEFAULT_MCP_PATH",
    "DEFAULT_MCP_SESSION_CAPACITY",
    "DEFAULT_MCP_SESSION_TTL",
    "MCP_SESSION",
    "EventStoreEntry",
    "MCPSession",
    "MCPSessionEntry",
    "create_app",
    "create_mcp_routes",
    "create_mcp_session",
    "read_last_event_id",
    "read_session_header",
    "reject_unknown_session",
]


def __getattr__(name: str) -> object:
    import importlib

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
