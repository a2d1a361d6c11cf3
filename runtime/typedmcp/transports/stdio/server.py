"""A server on stdio.

Rules:
- The stream's own rules are those of :mod:`typedmcp.transports.stdio.transport`.
- A line that is no message is answered where an answer is due, and reported as ``error``.
- End of input ends the connection: handlers are cancelled, after a first step at least; what they have answered by then
  is written; :meth:`StdioServer.serve` returns, at most two seconds later.
- Signals are the caller's business: cancel ``serve``.
"""

from __future__ import annotations

import asyncio

from typedmcp.core.connection import DEFAULT_MAX_IN_FLIGHT, Connection
from typedmcp.core.jsonrpc import JSONRPCMessage
from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.lines import DEFAULT_MAX_LINE_BYTES, BadLine
from typedmcp.transports.stdio.outbox import Outbox, Output
from typedmcp.transports.stdio.source import Input
from typedmcp.transports.stdio.transport import StdioServerTransport

_FAREWELL = 1.0
"""How long the end waits, in seconds, for cancelled handlers."""


class _Serving(StdioServerTransport):
    """A transport whose messages go to a server."""

    connection: Connection | None = None

    def __init__(
        self, mcp: MCPServerInterface, given: tuple[Input | None, Output | None], limit: int, max_in_flight: int
    ) -> None:
        super().__init__(*given, limit=limit)
        self._mcp = mcp
        self._max_in_flight = max_in_flight
        self.over = asyncio.Event()
        self.emitter.on("close", self.over.set)

    def _opened(self, outbox: Outbox) -> None:
        self.connection = Connection(
            self._mcp,
            outbox.write,
            max_in_flight=self._max_in_flight,
            on_fault=lambda error: self.emitter.emit("error", error),
        )

    def _received(self, message: JSONRPCMessage) -> None:
        assert self.connection is not None
        self.emitter.emit("message", message)
        self.connection.receive(message)

    def _rejected(self, error: BadLine) -> None:
        assert self.connection is not None
        self.emitter.emit("error", error)
        self.connection.receive_malformed(error)

    def _end_of_input(self) -> None:
        if self.connection is not None and self.connection.waiting:
            asyncio.get_running_loop().call_soon(self._end_of_input)
        else:
            super()._end_of_input()

    def _ended(self) -> None:
        if self.connection is not None:
            self.connection.close()


class StdioServer:
    """A server on a stream pair.

    Attributes:
        transport: Its transport: ``transport.emitter`` has the ``error`` events.
        connection: The connection, once started.
    """

    def __init__(
        self,
        mcp: MCPServerInterface,
        input: Input | None = None,  # noqa: A002 - the seed's name
        output: Output | None = None,
        *,
        limit: int = DEFAULT_MAX_LINE_BYTES,
        max_in_flight: int = DEFAULT_MAX_IN_FLIGHT,
    ) -> None:
        self._serving = _Serving(mcp, (input, output), limit, max_in_flight)

    @property
    def transport(self) -> StdioServerTransport:
        return self._serving

    @property
    def connection(self) -> Connection | None:
        return self._serving.connection

    async def start(self) -> None:
        """Begin to serve; returns at once."""
        await self._serving.start()

    async def stop(self) -> None:
        """Cancel what runs, write what is written already, and give the streams back."""
        await self._serving.close()
        await self._settle()

    async def wait_closed(self) -> None:
        """Return when the connection has ended: end of input, a broken output, or :meth:`stop`."""
        await self._serving.over.wait()
        await self._settle()

    async def serve(self) -> None:
        """Start, serve until the connection ends, stop.  To stop earlier, cancel the task that runs this."""
        await self.start()
        try:
            await self.wait_closed()
        finally:
            await self.stop()

    async def _settle(self) -> None:
        if self.connection is not None:
            await self.connection.wait_closed(_FAREWELL)


def create_stdio_server(
    mcp: MCPServerInterface,
    *,
    input: Input | None = None,  # noqa: A002 - the seed's name
    output: Output | None = None,
    limit: int = DEFAULT_MAX_LINE_BYTES,
    max_in_flight: int = DEFAULT_MAX_IN_FLIGHT,
) -> StdioServer:
    """The handle of a server on newline-delimited JSON-RPC, whose ``serve`` does all that is needed.

    Args:
        mcp: The server.
        input: Where requests come from; the process's own input when left out.
        output: Where answers go; the process's own output when left out.
        limit: The longest line taken, in bytes.
        max_in_flight: How many requests may run at once; one more is refused with -32603.
    """
    return StdioServer(mcp, input, output, limit=limit, max_in_flight=max_in_flight)
