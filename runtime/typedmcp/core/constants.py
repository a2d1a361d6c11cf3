"""Names that users rely on for revisions, error codes and defaults (seed A); times are in seconds."""

from __future__ import annotations

from typing import Final

from typedmcp_wire.revisions import (
    HANDSHAKE_REVISIONS,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LATEST_PROTOCOL_VERSION,
    MCP_PROTOCOL_VERSION,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REVISIONS,
)

__all__ = [
    "DEFAULT_MCP_CLIENT_NAME",
    "DEFAULT_MCP_CLIENT_VERSION",
    "DEFAULT_MCP_REQUEST_TIMEOUT",
    "JSONRPC_INVALID_PARAMS",
    "JSONRPC_INVALID_REQUEST",
    "JSONRPC_METHOD_NOT_FOUND",
    "JSONRPC_PARSE_ERROR",
    "JSONRPC_SERVER_ERROR",
    "KNOWN_PROTOCOL_VERSIONS",
    "LATEST_PROTOCOL_VERSION",
    "MCP_PROTOCOL_VERSION",
    "SUPPORTED_PROTOCOL_VERSIONS",
]

SUPPORTED_PROTOCOL_VERSIONS: Final[tuple[str, ...]] = tuple(reversed(HANDSHAKE_REVISIONS))
"""The revisions `initialize` can agree on, newest first."""

KNOWN_PROTOCOL_VERSIONS: Final[tuple[str, ...]] = tuple(reversed(REVISIONS))
"""Every revision, newest first."""

JSONRPC_PARSE_ERROR: Final = PARSE_ERROR
JSONRPC_INVALID_REQUEST: Final = INVALID_REQUEST
JSONRPC_METHOD_NOT_FOUND: Final = METHOD_NOT_FOUND
JSONRPC_INVALID_PARAMS: Final = INVALID_PARAMS
JSONRPC_SERVER_ERROR: Final = -32000
"""Free for implementations by JSON-RPC; nothing here sends it, and 2026-07-28 closes the range to new uses."""

DEFAULT_MCP_CLIENT_NAME: Final = "taverna"
DEFAULT_MCP_CLIENT_VERSION: Final = "1.0.0"
DEFAULT_MCP_REQUEST_TIMEOUT: Final = 30.0
"""Seconds a client waits for an answer."""
