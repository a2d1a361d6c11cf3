"""The transport under a server on stdio: a stream in, a stream out, messages in between.

Rules:
- One message is one line of UTF-8, whatever the locale, ended by exactly one LF.
- Unless told otherwise the messages go over the process's own input and output, which are set aside for them.
- A line that is no message is reported as ``error``, with its number and its first bytes, and the stream goes on.
- What is written in one turn of the event loop leaves together.  While the peer leaves more than 1 MiB unread, ``send``
  waits and nothing more is read.
- End of input, or a broken output, closes it; what is written already is flushed for at most a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from typedmcp.core.emitter import Emitter
from typedmcp.core.errors import ConnectionClosed, MessageError, NotConnected, TransportError, UsageError
from typedmcp.core.jsonrpc import JSONRPCMessage, decode_message
from typedmcp.transports.lines import DEFAULT_MAX_LINE_BYTES, BadLine, Line, LineFramer, encode_lines
from typedmcp.transports.stdio.outbox import Outbox, Output, open_outbox
from typedmcp.transports.stdio.source import Input, Source, open_source
from typedmcp.transports.stdio.standard import Aside, set_input_aside, set_output_aside

_FAREWELL = 1.0
"""How long the end waits, in seconds, for a peer to take what is written already."""


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
        asyncio.get_running_loop().call_soon(self._end_of_input)

    def _end_of_input(self) -> None:
        self._end()

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


def _failure(doing: str, error: Exception) -> TransportError:
    failure = TransportError(f"{doing} failed: {error}")
    failure.__cause__ = error
    return failure
