"""An event stream on its way to one client: a bounded queue between whoever sends and the connection.

Rules:
- Sending never waits and never fails: a stream whose reader is gone or too slow is closed, not waited for.  What a
  session keeps can be replayed later.
- While nothing is sent, a comment line now and then keeps proxies from closing the connection.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Protocol

from typedmcp.transports.sse import encode_comment, encode_event

DEFAULT_KEEP_ALIVE: Final = 15.0
"""Seconds between comment lines on an idle stream."""
DEFAULT_MAX_PENDING_BYTES: Final = 4 * 1024 * 1024
"""How much may wait for a slow reader before its stream is closed: 4 MiB."""

STREAM_HEADERS: Final = (
    ("Content-Type", "text/event-stream"),
    ("Cache-Control", "no-cache, no-transform"),
    ("X-Accel-Buffering", "no"),
)
_KEEP_ALIVE = encode_comment("keep-alive")


class Responder(Protocol):
    """What a web framework's shell offers: begin a streamed answer, write to it."""

    async def begin(self, headers: tuple[tuple[str, str], ...]) -> None:
        """Send status 200 and these headers."""
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes; raises when the client is gone."""
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
        self.overflowed = False

    def send_event(self, event_id: str, message: bytes) -> None:
        """Queue one event with an id."""
        self.send(encode_event(message, id=event_id))

    def send(self, chunk: bytes) -> None:
        """Queue bytes; a stream that is too far behind is ended instead."""
        if self._ended:
            return
        self._pending += len(chunk)
        if self._pending > self._max_pending and self._chunks:
            self.overflowed = True
            self.end()
            return
        self._chunks.append(chunk)
        self._rouse()

    def end(self) -> None:
        """Nothing more comes; the stream ends when what is queued has been written."""
        self._ended = True
        self._rouse()

    async def pump(self, responder: Responder) -> None:
        """Write what is queued, as it comes, until :meth:`end`."""
        while True:
            while self._chunks and not self.overflowed:
                data = b"".join(self._chunks)
                self._chunks.clear()
                await responder.write(data)
                self._pending -= len(data)
            if self._ended:
                return
            await self._next(responder)

    async def _next(self, responder: Responder) -> None:
        """Wait for something to write; write a comment when that takes long."""
        self._wake = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._keep_alive):
                await self._wake
        except TimeoutError:
            await responder.write(_KEEP_ALIVE)
        finally:
            self._wake = None

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
