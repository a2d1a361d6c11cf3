"""A server's WebSocket whose end its peer gets to see.

Rules:
- aiohttp closes the connection right behind a close frame that tells of an error.  While the peer still sends, as one
  does whose message is too long, that resets the connection, and the peer may never read why.  So here the close frame
  goes out, then our half of the connection is closed, and what the peer still sends is taken and dropped until it
  leaves, for a second at most.
- Nothing outlives that second: a peer that reads nothing is cut off.
- The same serves at the shutdown of the server, when aiohttp no longer delivers the peer's answer to a close frame.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from aiohttp import WSCloseCode, WSMsgType, web

LINGER: Final = 1.0
"""How long the end waits, in seconds, for the peer to read the close frame and leave."""

_REASON_BYTES: Final = 123
"""The longest reason a close frame has room for."""


class ServerSocket(web.WebSocketResponse):
    """The response that answers 101.

    Args:
        request: The upgrade request.
        subprotocol: Chosen when the client offers it.
        limit: The longest message taken, in bytes.
        heartbeat: Seconds of silence before a ping; None: no pings.
    """

    def __init__(self, request: web.BaseRequest, subprotocol: str, limit: int, heartbeat: float | None) -> None:
        # aiohttp refuses what has as many bytes as its own limit.
        super().__init__(
            protocols=(subprotocol,), max_msg_size=limit + 1, heartbeat=heartbeat, timeout=LINGER, compress=False
        )
        self._upgrade = request
        self._limit = limit
        self._said = False

    @property
    def doomed(self) -> bool:
        """Whether aiohttp takes nothing more from this connection, which is so once the server shuts down."""
        return bool(getattr(self._upgrade.protocol, "_close", False))

    async def close(self, *, code: int = WSCloseCode.OK, message: bytes = b"", drain: bool = True) -> bool:
        """Send the close frame; with the code 1000 wait for the peer's, with others leave that to :meth:`release`."""
        if self._said or self.closed:
            return False
        if code == WSCloseCode.OK:
            return await super().close(code=code, message=message, drain=drain)
        self._said = True
        if code == WSCloseCode.MESSAGE_TOO_BIG and not message:
            message = f"a message may have {self._limit} bytes here".encode()
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            async with asyncio.timeout(LINGER):
                await self.send_frame(code.to_bytes(2, "big") + message[:_REASON_BYTES], WSMsgType.CLOSE)
        transport = self._upgrade.transport
        if transport is not None and transport.can_write_eof() and not transport.is_closing():
            transport.write_eof()
        return True

    async def release(self) -> None:
        """Let the peer leave, then let go of the connection."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                if not self._said:
                    await super().close()
                # aiohttp has no event for this, and it takes but a turn where nothing is wrong.
                while self._upgrade.transport is not None:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        if self._upgrade.transport is not None:
            self._upgrade.transport.abort()
        await super().close()
