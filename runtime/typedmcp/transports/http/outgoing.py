"""An event stream on its way to one client: a bounded queue between whoever sends and the connection.

Rules:
- Sending never waits and never fails: a stream whose reader is gone or too slow is closed, not waited for.  What a
  session keeps can be replayed later.
- While nothing is sent, a comment line now and then keeps proxies from closing the connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final, Protocol

from typedmcp.core.errors import ConnectionClosed
from typedmcp.transports.http.replies import Headers
from typedmcp.transports.sse import encode_comment, encode_event

logger = logging.getLogger("typedmcp")

DEFAULT_KEEP_ALIVE: Final = 15.0
"""Seconds between comment lines on an idle stream."""
DEFAULT_MAX_PENDING_BYTES: Final = 4 * 1024 * 1024
"""How much may wait for a slow reader before its stream is closed: 4 MiB, or one message of any size."""

STREAM_HEADERS: Final[Headers] = (
    ("Content-Type", "text/event-stream"),
    ("Cache-Control", "no-cache, no-transform"),
    ("X-Accel-Buffering", "no"),
)
KEEP_ALIVE: Final = encode_comment("keep-alive")


class Responder(Protocol):
    """What a web framework's shell offers: begin a streamed answer, write to it."""

    async def begin(self, headers: Headers) -> None:
        """Send status 200 and these headers; raises ConnectionClosed when the client is gone."""
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes; raises ConnectionClosed when the client is gone."""
        ...

    def cancel(self) -> None:
        """Cancel whoever runs this exchange: its client is gone."""
        ...


class OutgoingStream:
    """Events for one client.

    Args:
        keep_alive: Seconds of silence before a comment is sent; None: never.
        max_pending: Bytes that may wait.
    """

    def __init__(
        self, *, keep_alive: float | None = DEFAULT_KEEP_ALIVE, max_pending: int = DEFAULT_MAX_PENDING_BYTES
    ) -> None:
        self._keep_alive = keep_alive
        self._max_pending = max_pending
        self._chunks: deque[bytes] = deque()
        self._pending = 0
        self._ended = False
        self._wake: asyncio.Future[None] | None = None
        self._writing: asyncio.Timeout | None = None
        self.overflowed = False

    def send_event(self, event_id: str, message: bytes) -> None:
        """Queue one event with an id."""
        self.send(encode_event(message, id=event_id))

    def send(self, chunk: bytes) -> None:
        """Queue bytes; a stream that is too far behind is closed instead."""
        if self._ended:
            return
        if self._pending and self._pending + len(chunk) > self._max_pending:
            self._overflow()
            return
        self._pending += len(chunk)
        self._chunks.append(chunk)
        self._rouse()

    def end(self) -> None:
        """Nothing more comes; the stream ends when what is queued has been written."""
        self._ended = True
        self._rouse()

    def take(self) -> bytes | None:
        """All of a stream that has ended before anybody has begun to write it; None for any other."""
        if not self._ended or self.overflowed:
            return None
        data = b"".join(self._chunks)
        self._chunks.clear()
        return data

    def abandon(self) -> None:
        """Nobody writes any longer: forget what is queued."""
        self._ended = True
        self._chunks.clear()

    async def pump(self, responder: Responder) -> None:
        """Write what is queued, as it comes, until :meth:`end`.

        Raises:
            ConnectionClosed: the client is gone, or reads too slowly.
        """
        try:
            while True:
                while self._chunks:
                    data = b"".join(self._chunks)
                    self._chunks.clear()
                    await self._write(responder, data)
                    self._pending -= len(data)
                if self.overflowed:
                    raise ConnectionClosed("the client reads too slowly")
                if self._ended:
                    return
                await self._next(responder)
        finally:
            self.abandon()

    async def _write(self, responder: Responder, data: bytes) -> None:
        try:
            async with asyncio.timeout(None) as self._writing:
                await responder.write(data)
        except TimeoutError:
            raise ConnectionClosed("the client reads too slowly") from None
        finally:
            self._writing = None

    def _overflow(self) -> None:
        logger.warning("closed a stream whose reader is more than %d bytes behind", self._max_pending)
        self.overflowed = True
        self.abandon()
        self._rouse()
        if self._writing is not None:
            self._writing.reschedule(asyncio.get_running_loop().time())

    async def _next(self, responder: Responder) -> None:
        """Wait for something to write; write a comment when that takes long."""
        self._wake = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._keep_alive):
                await self._wake
        except TimeoutError:
            await self._write(responder, KEEP_ALIVE)
        finally:
            self._wake = None

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
