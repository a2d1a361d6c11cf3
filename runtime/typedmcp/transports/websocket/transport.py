"""The transport under one client of a WebSocket server.

Rules:
- A WebSocket is a custom transport; the MCP specification does not define it.  See the package for connection,
  framing and cancellation.
- A text frame is one message, and a message one text frame; a sequence is several frames.
- A text frame that is no message is reported as ``error``, and the connection stays open.  What ends it is reported
  likewise: a binary frame (close code 1003), text that is not UTF-8 (1007), a message beyond the limit (1009), a lost
  connection, a close code that tells of an error.
- While the peer leaves more than 1 MiB unread, ``send`` waits and nothing more is read.
- ``close`` writes what is waiting, for at most a second, and then says 1000.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiohttp import WSCloseCode, WSMsgType, web

from typedmcp.core.emitter import Emitter
from typedmcp.core.errors import ConnectionClosed, MessageError, NotConnected, UsageError
from typedmcp.core.jsonrpc import JSONRPCMessage, decode_message
from typedmcp.transports.lines import encode_lines
from typedmcp.transports.websocket.frames import FAIR_SHARE, ORDINARY_CODES, Ending, binary_ending, ending
from typedmcp.transports.websocket.outbox import FrameOutbox

_FAREWELL = 1.0
"""How long the end waits, in seconds, for a peer to take what is written already."""

_GLANCE = 1.0
"""How often one who waits for a slow peer looks whether it is still there, in seconds."""


class WebSocketServerTransport:
    """A prepared ``WebSocketResponse`` as a transport.

    Events of `emitter`: ``message``, ``close`` and ``error``.

    Args:
        socket: The socket, prepared; nobody else may read from it.
        limit: The longest message the socket takes; the text of an error names it.
    """

    def __init__(self, socket: web.WebSocketResponse, *, limit: int | None = None) -> None:
        self.emitter = Emitter()
        self._socket = socket
        self._limit = limit
        self._outbox: FrameOutbox | None = None
        self._running: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._finishing = False

    @property
    def session(self) -> str | None:
        """None: a WebSocket has no session ids."""
        return None

    async def start(self) -> None:
        """Begin to read.

        Raises:
            UsageError: it has been started or closed, or the socket is not prepared.
        """
        if self._running is not None:
            raise UsageError("this transport has been started; a new connection needs a new one")
        if not self._socket.prepared:
            raise UsageError("the socket has not answered the upgrade; await socket.prepare(request) before start()")
        self._outbox = FrameOutbox(self._write)
        self._opened(self._outbox)
        self._running = asyncio.get_running_loop().create_task(self._run())
        # A task that is cancelled before its first step would release nothing.
        await asyncio.sleep(0)

    async def send(self, message: JSONRPCMessage | Sequence[JSONRPCMessage]) -> None:
        """Write one message, or several, each as a frame; wait while the peer leaves too much unread.

        Raises:
            NotConnected: the transport has not been started.
            ConnectionClosed: it is closed, or the peer is gone.
        """
        outbox = self._outbox
        if outbox is None:
            raise NotConnected("call start() before send()")
        frames = encode_lines(message)
        if outbox.closed or self._leaving is not None:
            raise ConnectionClosed("the WebSocket is closed")
        for frame in frames:
            outbox.write(frame)
        await outbox.drain()
        if outbox.closed:
            raise ConnectionClosed("the peer went away while the message was written")

    async def close(self) -> None:
        """Close the socket and emit ``close``; a second call waits for the first."""
        await asyncio.shield(self._leave(WSCloseCode.OK))

    # -- the end -----------------------------------------------------------------------------------------------------

    def _leave(self, code: int, reason: str = "") -> asyncio.Task[None]:
        """Begin to close with a code; the task returned ends when that is done."""
        loop = asyncio.get_running_loop()
        if self._running is None:
            self._running = loop.create_task(self._finish())
        elif self._leaving is None and not self._finishing:
            self._leaving = loop.create_task(self._say_goodbye(code, reason))
        return self._running

    async def _say_goodbye(self, code: int, reason: str) -> None:
        self._ended()
        if self._outbox is not None:
            await self._outbox.flushed(_FAREWELL)
            self._outbox.close()
        await self._socket.close(code=code, message=reason.encode())
        await self._release()

    async def _finish(self) -> None:
        """The last step, whatever the reason was."""
        self._finishing = True
        try:
            self._ended()
            if self._outbox is not None:
                self._outbox.close()
            if self._leaving is not None:
                await asyncio.wait([self._leaving])
            await self._release()
        finally:
            self.emitter.emit("close")

    # -- reading -----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            await self._read()
        finally:
            await self._finish()

    async def _read(self) -> None:
        """Take messages until the connection ends."""
        socket = self._socket
        count = 0
        while True:
            message = await socket.receive()
            if message.type is WSMsgType.TEXT:
                if self._leaving is None:
                    self._text(message.data)
            elif message.type is WSMsgType.BINARY:
                self._report(binary_ending("client"))
                await socket.close(code=WSCloseCode.UNSUPPORTED_DATA, message=b"messages are text frames")
                return
            else:
                self._report(ending(message.type, message.data, message.extra, peer="client", limit=self._limit))
                return
            count += 1
            if count % FAIR_SHARE == 0:
                await asyncio.sleep(0)
            await self._room()

    def _text(self, text: str) -> None:
        try:
            self._received(decode_message(text))
        except MessageError as error:
            self._rejected(error)
        except Exception as error:  # noqa: BLE001 - one message must not take the rest with it
            self.emitter.emit("error", error)

    def _report(self, end: Ending) -> None:
        if self._leaving is None and end.code not in ORDINARY_CODES:
            self.emitter.emit("error", ConnectionClosed(end.text))

    async def _room(self) -> None:
        """Wait while the peer leaves too much unread, unless it is gone."""
        outbox = self._outbox
        while outbox is not None and outbox.full and not self._socket.closed:
            try:
                async with asyncio.timeout(_GLANCE):
                    await outbox.drain()
            except TimeoutError:
                pass

    async def _write(self, frame: bytes) -> None:
        await self._socket.send_frame(frame, WSMsgType.TEXT)

    # -- what is done with it; a server does more --------------------------------------------------------------------

    def _opened(self, outbox: FrameOutbox) -> None:
        """Nothing has been read yet."""

    def _received(self, message: JSONRPCMessage) -> None:
        self.emitter.emit("message", message)

    def _rejected(self, error: MessageError) -> None:
        self.emitter.emit("error", error)

    def _ended(self) -> None:
        """Nothing more is taken; what has been written may still be flushed."""

    async def _release(self) -> None:
        """Let go of the socket."""
        await self._socket.close()
