"""Two ends in one process: a client and a server, or any two peers, without a wire between them.

Rules:
- Messages cross as bytes: what is sent is encoded, and decoded again for the receiver.  What works here works on the
  wire.
- They arrive in order, in a later turn of the event loop; never inside :meth:`MemoryTransport.send`.
- What is sent to an end that has not started waits for it.
- A queue holds `limit` messages (1024 unless told otherwise); with more, ``send`` waits.  A server's answers do not
  wait: they are bounded by the requests in flight.
- Closing either end closes the other, after it has received what was sent before.
- Both ends belong to the event loop on which they are started.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

from typedmcp.core.connection import DEFAULT_MAX_IN_FLIGHT, Connection
from typedmcp.core.emitter import Emitter
from typedmcp.core.errors import ConnectionClosed, MessageError, NotConnected
from typedmcp.core.jsonrpc import JSONRPCMessage, decode_message
from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.lines import encode_lines

DEFAULT_QUEUE_LIMIT: Final = 1024
_FAREWELL = 1.0
"""How long the end of a connection waits, in seconds, for cancelled handlers."""


class MemoryTransport:
    """One end of a pair; :func:`create_memory_pair` makes both.

    Events of `emitter`: ``message``, ``close`` and ``error``.

    Args:
        limit: How many messages may wait for this end before the other's ``send`` waits.
        peer: The other end, when it has been made.
    """

    def __init__(self, limit: int = DEFAULT_QUEUE_LIMIT, peer: MemoryTransport | None = None) -> None:
        self.emitter = Emitter()
        self._peer = self
        if peer is not None:
            self._peer, peer._peer = peer, self
        self._limit = limit
        self._inbox: deque[bytes | None] = deque()
        self._room: list[asyncio.Future[None]] = []
        self._scheduled = False
        self._started = False
        self._closed = False

    @property
    def session(self) -> str | None:
        """None: a pair has no session ids."""
        return None

    async def start(self) -> None:
        """Begin to receive."""
        if self._closed:
            raise NotConnected("this end is closed; make a new pair")
        self._started = True
        self._schedule()

    async def send(self, message: JSONRPCMessage | Sequence[JSONRPCMessage]) -> None:
        """Queue one message, or several, for the other end.

        Raises:
            NotConnected: this end has not been started.
            ConnectionClosed: either end is closed.
        """
        if not self._started:
            raise NotConnected("call start() before send()")
        peer = self._peer
        for line in encode_lines(message):
            while len(peer._inbox) >= peer._limit and not peer._closed and not self._closed:
                room = asyncio.get_running_loop().create_future()
                peer._room.append(room)
                await room
            if self._closed or peer._closed:
                raise ConnectionClosed("the other end is closed")
            peer._put(line)

    async def close(self) -> None:
        """Close both ends."""
        if not self._closed:
            self._end()
            self._peer._put(None)
        await self._peer._settled()

    # -- receiving -------------------------------------------------------------------------------------------------

    def _put(self, line: bytes | None) -> None:
        """Queue a line; None says that no more will come."""
        if not self._closed:
            self._inbox.append(line)
            self._schedule()

    def _schedule(self) -> None:
        if self._started and self._inbox and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._drain)

    def _drain(self) -> None:
        """Deliver what was queued when the turn began; what comes meanwhile has its own turn."""
        self._scheduled = False
        for _ in range(len(self._inbox)):
            if self._closed:
                return
            line = self._inbox.popleft()
            if line is None:
                self._end()
                return
            try:
                self._received(decode_message(line))
            except MessageError as error:
                self._rejected(error)
        self._make_room()
        self._schedule()

    def _make_room(self) -> None:
        waiting, self._room = self._room, []
        for room in waiting:
            if not room.done():
                room.set_result(None)

    def _end(self) -> None:
        if not self._closed:
            self._closed = True
            self._inbox.clear()
            self._make_room()
            self._peer._make_room()
            self._ended()
            self.emitter.emit("close")

    # -- what an end does with what it receives ----------------------------------------------------------------------

    def _received(self, message: JSONRPCMessage) -> None:
        self.emitter.emit("message", message)

    def _rejected(self, error: MessageError) -> None:
        self.emitter.emit("error", error)

    def _ended(self) -> None:
        """The pair is closed; nothing more is received or sent."""

    async def _settled(self) -> None:
        """Return when this end has done what closing it calls for."""


def create_memory_pair(*, limit: int = DEFAULT_QUEUE_LIMIT) -> tuple[MemoryTransport, MemoryTransport]:
    """Two transports, each the way to the other.

    Args:
        limit: How many messages wait in each direction before ``send`` waits.
    """
    one = MemoryTransport(limit)
    return one, MemoryTransport(limit, one)


class _ServerEnd(MemoryTransport):
    """The end behind which a server answers."""

    def __init__(self, server: MCPServerInterface, limit: int, max_in_flight: int) -> None:
        super().__init__(limit)
        self._server = server
        self._max_in_flight = max_in_flight
        self._connection: Connection | None = None
        # Open from the start: the client's start() is all that a user calls.
        self._started = True
        self._over = asyncio.Event()

    async def close(self) -> None:
        await super().close()
        await self._settled()

    def _served(self) -> Connection:
        if self._connection is None:
            # Made at the first message, since it belongs to the loop that runs then.
            self._connection = Connection(
                self._server,
                self._answer,
                max_in_flight=self._max_in_flight,
                on_fault=lambda error: self.emitter.emit("error", error),
            )
        return self._connection

    def _answer(self, line: bytes) -> None:
        self._peer._put(line)

    def _received(self, message: JSONRPCMessage) -> None:
        self.emitter.emit("message", message)
        self._served().receive(message)

    def _rejected(self, error: MessageError) -> None:
        self.emitter.emit("error", error)
        self._served().receive_malformed(error)

    def _ended(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._over.set()

    async def _settled(self) -> None:
        await self._over.wait()
        if self._connection is not None:
            await self._connection.wait_closed(_FAREWELL)


class MemoryServer:
    """A server and the one client that :attr:`client` connects to it.

    Attributes:
        client: The client's transport.  Its ``start`` and ``close`` are all there is to call.
        transport: The server's end; its emitter has what the server received, and ``error`` for what it could not read.
    """

    def __init__(
        self,
        server: MCPServerInterface,
        *,
        limit: int = DEFAULT_QUEUE_LIMIT,
        max_in_flight: int = DEFAULT_MAX_IN_FLIGHT,
    ) -> None:
        self._end = _ServerEnd(server, limit, max_in_flight)
        self.client = MemoryTransport(limit, self._end)

    @property
    def transport(self) -> MemoryTransport:
        return self._end

    async def stop(self) -> None:
        """Cancel what runs, wait for it, and close the client's end."""
        await self._end.close()


def serve_memory(
    server: MCPServerInterface, *, limit: int = DEFAULT_QUEUE_LIMIT, max_in_flight: int = DEFAULT_MAX_IN_FLIGHT
) -> MemoryServer:
    """Serve one client inside this process: ``MCPClient(serve_memory(server).client)``."""
    return MemoryServer(server, limit=limit, max_in_flight=max_in_flight)
