"""The protocol without IO: envelopes, events, connections, checks.  Imports nothing but msgspec and the wire.

Names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typedmcp.core.connection import Connection as Connection
    from typedmcp.core.constants import DEFAULT_MCP_CLIENT_NAME as DEFAULT_MCP_CLIENT_NAME
    from typedmcp.core.constants import DEFAULT_MCP_CLIENT_VERSION as DEFAULT_MCP_CLIENT_VERSION
    from typedmcp.core.constants import DEFAULT_MCP_REQUEST_TIMEOUT as DEFAULT_MCP_REQUEST_TIMEOUT
    from typedmcp.core.constants import JSONRPC_INVALID_PARAMS as JSONRPC_INVALID_PARAMS
    from typedmcp.core.constants import JSONRPC_INVALID_REQUEST as JSONRPC_INVALID_REQUEST
    from typedmcp.core.constants import JSONRPC_METHOD_NOT_FOUND as JSONRPC_METHOD_NOT_FOUND
    from typedmcp.core.constants import JSONRPC_PARSE_ERROR as JSONRPC_PARSE_ERROR
    from typedmcp.core.constants import JSONRPC_SERVER_ERROR as JSONRPC_SERVER_ERROR
    from typedmcp.core.constants import KNOWN_PROTOCOL_VERSIONS as KNOWN_PROTOCOL_VERSIONS
    from typedmcp.core.constants import LATEST_PROTOCOL_VERSION as LATEST_PROTOCOL_VERSION
    from typedmcp.core.constants import MCP_PROTOCOL_VERSION as MCP_PROTOCOL_VERSION
    from typedmcp.core.constants import SUPPORTED_PROTOCOL_VERSIONS as SUPPORTED_PROTOCOL_VERSIONS
    from typedmcp.core.emitter import Emitter as Emitter
    from typedmcp.core.errors import ConnectionClosed as ConnectionClosed
    from typedmcp.core.errors import InvalidResult as InvalidResult
    from typedmcp.core.errors import MCPError as MCPError
    from typedmcp.core.errors import MessageError as MessageError
    from typedmcp.core.errors import NotConnected as NotConnected
    from typedmcp.core.errors import PeerError as PeerError
    from typedmcp.core.errors import ProcessExited as ProcessExited
    from typedmcp.core.errors import RequestTimeout as RequestTimeout
    from typedmcp.core.errors import ToolError as ToolError
    from typedmcp.core.errors import TransportError as TransportError
    from typedmcp.core.errors import TypedMCPError as TypedMCPError
    from typedmcp.core.errors import UnsupportedMethod as UnsupportedMethod
    from typedmcp.core.errors import UsageError as UsageError
    from typedmcp.core.guards import is_initialize_request as is_initialize_request
    from typedmcp.core.guards import is_jsonrpc_message as is_jsonrpc_message
    from typedmcp.core.guards import is_jsonrpc_request as is_jsonrpc_request
    from typedmcp.core.guards import is_jsonrpc_response as is_jsonrpc_response
    from typedmcp.core.guards import is_request_id as is_request_id
    from typedmcp.core.guards import jsonrpc_error as jsonrpc_error
    from typedmcp.core.guards import jsonrpc_result as jsonrpc_result
    from typedmcp.core.guards import parse_jsonrpc_message as parse_jsonrpc_message
    from typedmcp.core.jsonrpc import JSONRPCErrorData as JSONRPCErrorData
    from typedmcp.core.jsonrpc import JSONRPCMessage as JSONRPCMessage
    from typedmcp.core.jsonrpc import JSONRPCRequest as JSONRPCRequest
    from typedmcp.core.jsonrpc import JSONRPCResponse as JSONRPCResponse
    from typedmcp.core.jsonrpc import decode_message as decode_message
    from typedmcp.core.jsonrpc import encode_message as encode_message
    from typedmcp.core.transport import ClientTransportInterface as ClientTransportInterface
    from typedmcp.core.transport import MCPServerInterface as MCPServerInterface
    from typedmcp.core.validation import validate as validate
    from typedmcp.core.validation import validate_message as validate_message

_HOMES = {
    "ClientTransportInterface": "typedmcp.core.transport",
    "Connection": "typedmcp.core.connection",
    "ConnectionClosed": "typedmcp.core.errors",
    "DEFAULT_MCP_CLIENT_NAME": "typedmcp.core.constants",
    "DEFAULT_MCP_CLIENT_VERSION": "typedmcp.core.constants",
    "DEFAULT_MCP_REQUEST_TIMEOUT": "typedmcp.core.constants",
    "Emitter": "typedmcp.core.emitter",
    "InvalidResult": "typedmcp.core.errors",
    "JSONRPCErrorData": "typedmcp.core.jsonrpc",
    "JSONRPCMessage": "typedmcp.core.jsonrpc",
    "JSONRPCRequest": "typedmcp.core.jsonrpc",
    "JSONRPCResponse": "typedmcp.core.jsonrpc",
    "JSONRPC_INVALID_PARAMS": "typedmcp.core.constants",
    "JSONRPC_INVALID_REQUEST": "typedmcp.core.constants",
    "JSONRPC_METHOD_NOT_FOUND": "typedmcp.core.constants",
    "JSONRPC_PARSE_ERROR": "typedmcp.core.constants",
    "JSONRPC_SERVER_ERROR": "typedmcp.core.constants",
    "KNOWN_PROTOCOL_VERSIONS": "typedmcp.core.constants",
    "LATEST_PROTOCOL_VERSION": "typedmcp.core.constants",
    "MCPError": "typedmcp.core.errors",
    "MCPServerInterface": "typedmcp.core.transport",
    "MCP_PROTOCOL_VERSION": "typedmcp.core.constants",
    "MessageError": "typedmcp.core.errors",
    "NotConnected": "typedmcp.core.errors",
    "PeerError": "typedmcp.core.errors",
    "ProcessExited": "typedmcp.core.errors",
    "RequestTimeout": "typedmcp.core.errors",
    "SUPPORTED_PROTOCOL_VERSIONS": "typedmcp.core.constants",
    "ToolError": "typedmcp.core.errors",
    "TransportError": "typedmcp.core.errors",
    "TypedMCPError": "typedmcp.core.errors",
    "UnsupportedMethod": "typedmcp.core.errors",
    "UsageError": "typedmcp.core.errors",
    "decode_message": "typedmcp.core.jsonrpc",
    "encode_message": "typedmcp.core.jsonrpc",
    "is_initialize_request": "typedmcp.core.guards",
    "is_jsonrpc_message": "typedmcp.core.guards",
    "is_jsonrpc_request": "typedmcp.core.guards",
    "is_jsonrpc_response": "typedmcp.core.guards",
    "is_request_id": "typedmcp.core.guards",
    "jsonrpc_error": "typedmcp.core.guards",
    "jsonrpc_result": "typedmcp.core.guards",
    "parse_jsonrpc_message": "typedmcp.core.guards",
    "validate": "typedmcp.core.validation",
    "validate_message": "typedmcp.core.validation",
}

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
    "ClientTransportInterface",
    "Connection",
    "ConnectionClosed",
    "Emitter",
    "InvalidResult",
    "JSONRPCErrorData",
    "JSONRPCMessage",
    "JSONRPCRequest",
    "JSONRPCResponse",
    "MCPError",
    "MCPServerInterface",
    "MessageError",
    "NotConnected",
    "PeerError",
    "ProcessExited",
    "RequestTimeout",
    "ToolError",
    "TransportError",
    "TypedMCPError",
    "UnsupportedMethod",
    "UsageError",
    "decode_message",
    "encode_message",
    "is_initialize_request",
    "is_jsonrpc_message",
    "is_jsonrpc_request",
    "is_jsonrpc_response",
    "is_request_id",
    "jsonrpc_error",
    "jsonrpc_result",
    "parse_jsonrpc_message",
    "validate",
    "validate_message",
]


def __getattr__(name: str) -> object:
    import importlib

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
