"""The server's side of stdio.

Rules:
- One message is one line of UTF-8, whatever the locale, ended by exactly one LF.
- Unless told otherwise the messages go over the process's own input and output, which are set aside for them.
- A line that is no message is answered where an answer is due, reported as ``error``, and the stream goes on.
- Answers are written once per turn of the event loop.  While the peer leaves more than 1 MiB of them unread, no more
  requests are read.
- End of input, or a broken output, ends the connection: handlers are cancelled, what is written already is flushed
  for at most a second, and :meth:`StdioServer.serve` returns.
- Signals are the caller's business: cancel ``serve``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from typedmcp.core.connection import DEFAULT_MAX_IN_FLIGHT, Connection
from typedmcp.core.emitter import Emitter
from typedmcp.core.errors import ConnectionClosed, MessageError, NotConnected, TransportError, UsageError
from typedmcp.core.jsonrpc import JSONRPCMessage, decode_message
from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.lines import DEFAULT_MAX_LINE_BYTES, BadLine, Line, LineFramer, encode_lines
from typedmcp.transports.stdio.outbox import Outbox, Output, open_outbox
from typedmcp.transports.stdio.source import Input, Source, open_source
from typedmcp.transports.stdio.standard import Aside, set_input_aside, set_output_aside

_FAREWELL = 1.0
"""How long an end waits, in seconds: for a peer to take the last answers, and for cancelled handlers."""


class StdioServerTransport:
    """A byte stream pair as a transport; a server's own, unless others are given.

    Events of `emitter`: ``message``, ``close`` (input ended, or closed here) and ``error``.

    Args:
        input: A descriptor, a binary file object from which nothing has been read, or an asyncio reader.
        output: A descriptor, a binary file object, or an asyncio writer.
        limit: The longest line taken, in bytes.
    """

    def __init__(
        self,
        input: Input | None = None,  # noqa: A002 - the seed's name
        output: Output | None = None,
        *,
        limit: int = DEFAULT_MAX_LINE_BYTES,
    ) -> None:
        self.emitter = Emitter()
        self._input = input
        self._output = output
        self._limit = limit
        self._framer = LineFramer(limit)
        self._aside: list[Aside] = []
        self._source: Source | None = None
        self._outbox: Outbox | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def session(self) -> str | None:
        """None: a pipe has no session ids."""
        return None

    async def start(self) -> None:
        """Begin to read.

        Raises:
            UsageError: it has been started, or the standard streams are in use.
            TransportError: a stream cannot be opened.
        """
        if self._source is not None:
            raise UsageError("this transport has been started; make a new one for another stream")
        try:
            source, self._outbox = self._open()
        except BaseException as error:
            self._give_back()
            if isinstance(error, OSError):
                raise TransportError(f"cannot use this input and output: {error}") from error
            raise
        self._source = source
        self._opened(self._outbox)
        source.resume()

    async def send(self, message: JSONRPCMessage | Sequence[JSONRPCMessage]) -> None:
        """Write one message, or several, each as a line; wait while the peer leaves too much unread.

        Raises:
            NotConnected: the transport has not been started.
            ConnectionClosed: it is closed, or the peer is gone.
        """
        outbox = self._outbox
        if outbox is None:
            raise NotConnected("call start() before send()")
        lines = encode_lines(message)
        if outbox.closed or self._closing is not None:
            raise ConnectionClosed("the stream is closed")
        for line in lines:
            outbox.write(line)
        await outbox.drain()
        if outbox.closed:
            raise ConnectionClosed("the peer went away while the message was written")

    async def close(self) -> None:
        """Write what is waiting, give the streams back and emit ``close``; a second call waits for the first."""
        if self._source is not None:
            self._end()
            assert self._closing is not None
            await asyncio.shield(self._closing)

    # -- opening and closing ---------------------------------------------------------------------------------------

    def _open(self) -> tuple[Source, Outbox]:
        given_input, given_output = self._input, self._output
        if given_input is None:
            self._aside.append(set_input_aside())
            given_input = self._aside[-1].fd
        if given_output is None:
            self._aside.append(set_output_aside())
            given_output = self._aside[-1].fd
        source = open_source(given_input, self._data, self._input_ended)
        try:
            return source, open_outbox(given_output, self._pressure, self._output_lost)
        except BaseException:
            source.close()
            raise

    def _end(self) -> None:
        """Begin to close."""
        if self._closing is None:
            self._ended()
            self._closing = asyncio.get_running_loop().create_task(self._close())

    async def _close(self) -> None:
        assert self._source is not None
        assert self._outbox is not None
        self._source.pause()
        try:
            await self._outbox.flushed(_FAREWELL)
        finally:
            self._outbox.close()
            self._source.close()
            self._give_back()
            self.emitter.emit("close")

    def _give_back(self) -> None:
        while self._aside:
            self._aside.pop().give_back()

    # -- what happens on the streams -------------------------------------------------------------------------------

    def _data(self, chunk: bytes) -> None:
        if self._closing is None:
            self._lines(self._framer.feed(chunk))

    def _lines(self, lines: list[Line]) -> None:
        assert self._outbox is not None
        # Answers given at once leave together, without another turn of the loop.
        self._outbox.hold()
        for index, line in enumerate(lines):
            try:
                if isinstance(line, MessageError):
                    raise line
                self._received(decode_message(line))
            except MessageError as error:
                self._rejected(BadLine(error, self._framer.line_number(index)))
            except Exception as error:  # noqa: BLE001 - one message must not take the rest with it
                self.emitter.emit("error", error)
        self._outbox.flush()

    def _input_ended(self, error: Exception | None) -> None:
        if error is not None:
            self.emitter.emit("error", _failure("reading", error))
        self._lines(self._framer.eof())
        # Not at once: what came just before the end has had its first step by then, and may have answered.
        asyncio.get_running_loop().call_soon(self._end)

    def _output_lost(self, error: Exception) -> None:
        if not isinstance(error, (BrokenPipeError, ConnectionResetError)):
            self.emitter.emit("error", _failure("writing", error))
        self._end()

    def _pressure(self, high: bool) -> None:
        assert self._source is not None
        if high:
            self._source.pause()
        elif self._closing is None:
            self._source.resume()

    # -- what is done with it; a server does more --------------------------------------------------------------------

    def _opened(self, outbox: Outbox) -> None:
        """The streams are open; nothing has been read yet."""

    def _received(self, message: JSONRPCMessage) -> None:
        self.emitter.emit("message", message)

    def _rejected(self, error: BadLine) -> None:
        self.emitter.emit("error", error)

    def _ended(self) -> None:
        """Nothing more is read; what has been written is still flushed."""


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
        self.connection.receive(message)
        self.emitter.emit("message", message)

    def _rejected(self, error: BadLine) -> None:
        assert self.connection is not None
        self.connection.receive_malformed(error)
        self.emitter.emit("error", error)

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


def _failure(doing: str, error: Exception) -> TransportError:
    failure = TransportError(f"{doing} failed: {error}")
    failure.__cause__ = error
    return failure
