"""What both sides of a WebSocket share: names, limits, and words for how a connection ended.

Rules:
- A WebSocket is a custom transport; the MCP specification does not define it.  See the package for connection,
  framing and cancellation.
- A message may have 64 MiB, as on stdio, unless told otherwise; fragments count together.
- A peer that sends nothing for 30 seconds is asked by a ping, and is gone when it has not answered 15 seconds later.
- Messages are not compressed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from aiohttp import WebSocketError, WSCloseCode, WSMsgType

from typedmcp.transports.lines import DEFAULT_MAX_LINE_BYTES

MCP_WEBSOCKET_SUBPROTOCOL: Final = "mcp"
"""The subprotocol both sides agree on."""

DEFAULT_MCP_PATH: Final = "/mcp"
"""Where a server is found, unless told otherwise."""

DEFAULT_MAX_MESSAGE_BYTES: Final = DEFAULT_MAX_LINE_BYTES
"""The longest message taken, in bytes: 64 MiB."""

DEFAULT_HEARTBEAT: Final = 30.0
"""Seconds of silence after which the peer is asked for a sign of life."""

NO_CODE: Final = 1005
"""RFC 6455's number for a close frame without a code."""

ORDINARY_CODES: Final = frozenset({WSCloseCode.OK, WSCloseCode.GOING_AWAY, NO_CODE})
"""The codes with which a peer leaves when nothing is wrong."""

FAIR_SHARE: Final = 64
"""How many messages in a row one connection is read without a turn of the event loop for the others."""


class Ending(NamedTuple):
    """Why a connection ended: the close code, and a sentence that has it."""

    code: int
    text: str


def ending(kind: WSMsgType, data: object, extra: object, *, peer: str, limit: int | None = None) -> Ending:
    """What the last thing that a WebSocket's ``receive`` gave says.

    Args:
        kind: Its type: anything but text and binary.
        data: Its data: a close code, or an exception.
        extra: The reason that came with a close code.
        peer: What to call the other side.
        limit: The longest message taken here.
    """
    if kind is WSMsgType.CLOSE:
        code = data if isinstance(data, int) and data else NO_CODE
        return Ending(code, f"the {peer} closed the WebSocket with code {code}" + (f": {extra}" if extra else ""))
    if isinstance(data, WebSocketError):
        return Ending(data.code, f"{_fault(data, peer, limit)} (closed with code {data.code})")
    code = WSCloseCode.ABNORMAL_CLOSURE
    if isinstance(data, TimeoutError):
        return Ending(code, f"the {peer} no longer answers pings (code {code:d})")
    detail = f": {data}" if isinstance(data, Exception) and str(data) else ""
    return Ending(code, f"the connection to the {peer} was lost without a close frame (code {code:d}){detail}")


def binary_ending(peer: str) -> Ending:
    """The end of a connection on which a binary frame came."""
    code = WSCloseCode.UNSUPPORTED_DATA
    return Ending(code, f"the {peer} sent a binary frame, and messages are text frames (closed with code {code:d})")


def _fault(error: WebSocketError, peer: str, limit: int | None) -> str:
    if error.code == WSCloseCode.MESSAGE_TOO_BIG and limit is not None:
        return f"the {peer} sent a message longer than the limit of {limit} bytes; a larger limit= takes it"
    return f"the {peer} broke the WebSocket protocol: {error}"
