"""Whole HTTP answers."""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

from typedmcp.core.errors import MCPError
from typedmcp.core.jsonrpc import JSONRPCErrorData, JSONRPCRequest, JSONRPCResponse, encode_response
from typedmcp.transports.http.negotiation import JSON
from typedmcp_wire.revisions import INVALID_REQUEST

Headers: TypeAlias = tuple[tuple[str, str], ...]

JSON_HEADERS: Final[Headers] = (("Content-Type", JSON),)


class Reply(Struct, frozen=True):
    """A whole HTTP answer."""

    status: int
    body: bytes = b""
    headers: Headers = ()

    def extended(self, headers: Headers) -> Reply:
        """The same answer with more headers."""
        return Reply(self.status, self.body, (*self.headers, *headers)) if headers else self


def refuse(status: int, text: str, *, code: int = INVALID_REQUEST, null_id: bool = False) -> Reply:
    """An error without a request to belong to."""
    data = JSONRPCErrorData(code=code, message=text)
    response = JSONRPCResponse(id=None, error=data) if null_id else JSONRPCResponse(error=data)
    return Reply(status, encode_response(response), JSON_HEADERS)


def failed(request: JSONRPCRequest, code: int, text: str) -> JSONRPCResponse:
    """A response with an error."""
    return JSONRPCResponse(id=request.id, error=JSONRPCErrorData(code=code, message=text))


def refuse_request(request: JSONRPCRequest, error: MCPError, status: int) -> Reply:
    """An error as the whole answer to a request."""
    data = JSONRPCErrorData(code=error.code, message=error.message, data=error.data)
    return Reply(status, encode_response(JSONRPCResponse(id=request.id, error=data)), JSON_HEADERS)


def too_slow(seconds: float) -> Reply:
    """The refusal of a body that does not arrive."""
    return refuse(408, f"Request Timeout: a body arrives within {seconds:g} seconds")


def too_large(limit: int) -> Reply:
    """The refusal of a body."""
    return refuse(413, f"Payload Too Large: a body has at most {limit} bytes")
