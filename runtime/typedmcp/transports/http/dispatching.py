"""Handing a request to a server, whatever the server does."""

from __future__ import annotations

import logging

from typedmcp.core.jsonrpc import JSONRPCRequest, JSONRPCResponse
from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.http.peer import RequestPeer
from typedmcp.transports.http.replies import failed
from typedmcp_wire.revisions import INTERNAL_ERROR

logger = logging.getLogger("typedmcp")


async def ask(server: MCPServerInterface, request: JSONRPCRequest, peer: RequestPeer) -> JSONRPCResponse:
    """The server's answer to a request; an internal error when it has none."""
    try:
        response = await server.dispatch(request, peer)
    except Exception:
        # MCPServer answers its own faults; other servers may not.
        logger.exception("the server failed without an answer")
        return failed(request, INTERNAL_ERROR, "Internal error")
    return failed(request, INTERNAL_ERROR, "Internal error") if response is None else response


async def tell(server: MCPServerInterface, notification: JSONRPCRequest, peer: RequestPeer) -> None:
    """Hand a notification to the server; nothing it does can lead to an answer."""
    try:
        await server.dispatch(notification, peer)
    except Exception:
        logger.exception("the server failed on %s", notification.method)
