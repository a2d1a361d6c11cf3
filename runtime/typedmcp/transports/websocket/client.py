"""The client's side of WebSocket.

Rules:
- A WebSocket is a custom transport; the MCP specification does not define it.  See the package for connection,
  framing and cancellation.
- A text frame is one message, and a message one text frame; a sequence is several frames.
- A frame that is no message is reported as ``error``, and the connection stays open.
- When the connection ends by itself, ``error`` tells why, with the close code, and then comes ``close``.  ``start`` may
  then be called again: that makes a new connection, which knows nothing of the old one.
- ``close`` may be called from any task, more than once, and be cancelled: it goes on in the background, and takes two
  seconds at most.
- A session that is given stays open, and its settings count; one made here ends with the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import aiohttp
from aiohttp import WSCloseCode, WSMsgType
from yarl import URL

from typedmcp.core.emitter import Emitter
from typedmcp.core.errors import ConnectionClosed, MessageError, NotConnected, TransportError, UsageError
from typedmcp.core.jsonrpc import JSONRPCMessage, decode_response
from typedmcp.transports.lines import encode_lines
from typedmcp.transports.websocket.frames import (
    DEFAULT_HEARTBEAT,
    DEFAULT_MAX_MESSAGE_BYTES,
    FAIR_SHARE,
    MCP_WEBSOCKET_SUBPROTOCOL,
    Ending,
    binary_ending,
    ending,
)

DEFAULT_OPEN_TIMEOUT: Final = 30.0
"""Seconds a server may take to answer the handshake."""

_FAREWELL = 2.0
"""How long the end waits, in seconds, for the server's close frame."""

_CLOSE_TIMEOUT = aiohttp.ClientWSTimeout(ws_close=_FAREWELL)  # pyright: ignore[reportCallIssue]

_LAST_WORDS = 0.5
"""How long a failed ``send`` waits, in seconds, for the close frame that tells why it failed."""

_SCHEMES: Final = ("ws", "wss", "http", "https")
_ADVICE: Final = {
    401: "; give credentials by headers=",
    403: "; its guard refuses this client or its Origin",
    404: "; is the path right?",
}

Socket: TypeAlias = "aiohttp.ClientWebSocketResponse[Any]"


class WebSocketHandshakeError(TransportError):
    """A server answered, but not with a WebSocket.

    Attributes:
        status: The HTTP status of its answer.
        url: Where it is, without credentials and query.
    """

    def __init__(self, message: str, status: int, url: str) -> None:
        super().__init__(message)
        self.status = status
        self.url = url


class WebSocketClientTransport:
    """A WebSocket to a server as a transport.

    Events of `emitter`: ``message``, ``error`` and ``close``.

    Args:
        url: Where the server is: ws, wss, http or https.
        headers: More headers for the handshake.
        session: Makes the connection: its TLS settings, proxies and cookies count.
        limit: The longest message taken, in bytes.
        heartbeat: Seconds of silence after which the server is asked for a sign of life, and is gone when it gives
            none within half that time; None: never.
        open_timeout: Seconds the handshake may take; None: no limit.
    """

    def __init__(
        self,
        url: str | URL,
        *,
        headers: Mapping[str, str] | None = None,
        session: aiohttp.ClientSession | None = None,
        limit: int = DEFAULT_MAX_MESSAGE_BYTES,
        heartbeat: float | None = DEFAULT_HEARTBEAT,
        open_timeout: float | None = DEFAULT_OPEN_TIMEOUT,
    ) -> None:
        self.emitter = Emitter()
        self._url = _checked(url)
        self._headers = dict(headers or {})
        self._given = session
        self._limit = limit
        self._heartbeat = heartbeat
        self._open_timeout = open_timeout
        self._socket: Socket | None = None
        self._running: asyncio.Task[None] | None = None
        self._closer: asyncio.Task[None] | None = None
        self._announced = True
        self._reason = "the WebSocket is closed"

    @property
    def session(self) -> str | None:
        """None: a WebSocket has no session ids."""
        return None

    async def start(self) -> None:
        """Connect, and begin to read.

        Raises:
            UsageError: it is connected.
            WebSocketHandshakeError: the server answered, but not with a WebSocket.
            TransportError: it cannot be reached, or did not answer in time.
        """
        if not self._announced:
            raise UsageError("this transport is connected; close() it first")
        if self._running is not None:
            await asyncio.wait([self._running])
        own = None if self._given is not None else aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        try:
            self._socket = socket = await self._connect(self._given or own)
        except BaseException:
            if own is not None:
                await own.close()
            raise
        self._announced = False
        self._closer = None
        self._reason = "the WebSocket is closed"
        self._running = asyncio.get_running_loop().create_task(self._run(socket, own))
        # A task that is cancelled before its first step would release nothing.
        await asyncio.sleep(0)

    async def send(self, message: JSONRPCMessage | Sequence[JSONRPCMessage]) -> None:
        """Write one message, or several, each as a frame; wait while the server leaves too much unread.

        Raises:
            NotConnected: the transport has not been started.
            ConnectionClosed: the connection has ended; the text says how.
        """
        if self._socket is None or self._running is None:
            raise NotConnected("call start() before send()")
        frames = encode_lines(message)
        if self._announced or self._closer is not None:
            raise ConnectionClosed(self._reason)
        try:
            for frame in frames:
                await self._socket.send_frame(frame, WSMsgType.TEXT)
        except (OSError, RuntimeError) as error:
            await asyncio.wait([self._running], timeout=_LAST_WORDS)
            raise ConnectionClosed(self._reason) from error

    async def close(self) -> None:
        """Close the connection and emit ``close``; a second call waits for the first."""
        running, socket = self._running, self._socket
        if running is None or socket is None:
            return
        if self._closer is None and not running.done():
            self._closer = asyncio.get_running_loop().create_task(_part(socket))
        await asyncio.shield(running)

    # -- connecting --------------------------------------------------------------------------------------------------

    async def _connect(self, session: aiohttp.ClientSession | None) -> Socket:
        assert session is not None
        url = str(self._url.with_user(None).with_query(None))
        try:
            async with asyncio.timeout(self._open_timeout):
                return await session.ws_connect(
                    self._url,
                    protocols=(MCP_WEBSOCKET_SUBPROTOCOL,),
                    headers=self._headers,
                    heartbeat=self._heartbeat,
                    # aiohttp refuses what has as many bytes as its own limit.
                    max_msg_size=self._limit + 1,
                    timeout=_CLOSE_TIMEOUT,
                )
        except aiohttp.WSServerHandshakeError as error:
            advice = _ADVICE.get(error.status, "")
            text = f"the WebSocket handshake with {url} failed: {error.message} (HTTP {error.status}){advice}"
            raise WebSocketHandshakeError(text, error.status, url) from error
        except TimeoutError as error:
            raise TransportError(f"{url} did not answer the WebSocket handshake in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise TransportError(f"cannot connect to {url}: {error}") from error

    # -- the connection's life -----------------------------------------------------------------------------------------

    async def _run(self, socket: Socket, own: aiohttp.ClientSession | None) -> None:
        """From the start of a connection to its end, whoever brings that about."""
        try:
            end = await self._read(socket)
            if self._closer is None:
                self._announce(end)
        finally:
            if self._closer is not None:
                await asyncio.wait([self._closer])
            await _part(socket, WSCloseCode.OK)
            if own is not None:
                await own.close()
            self._announce()

    async def _read(self, socket: Socket) -> Ending:
        """Take messages until the connection ends."""
        count = 0
        while True:
            message = await socket.receive()
            if message.type is WSMsgType.TEXT:
                self._text(message.data)
            elif message.type is WSMsgType.BINARY:
                end = binary_ending("server")
                if self._closer is None:
                    self._announce(end)
                    await _part(socket, end.code)
                return end
            else:
                data = message.data if message.data is not None else socket.exception()
                return ending(message.type, data, message.extra, peer="server", limit=self._limit)
            count += 1
            if count % FAIR_SHARE == 0:
                await asyncio.sleep(0)

    def _text(self, text: str) -> None:
        try:
            message = decode_response(text)
        except MessageError as error:
            self.emitter.emit("error", error)
        else:
            self.emitter.emit("message", message)

    def _announce(self, end: Ending | None = None) -> None:
        """Emit ``close``, once, after an error if there is one."""
        if not self._announced:
            self._announced = True
            if end is not None:
                self._reason = end.text
                self.emitter.emit("error", ConnectionClosed(end.text))
            self.emitter.emit("close")


async def _part(socket: Socket, code: int = WSCloseCode.OK) -> None:
    """Say goodbye and let go of the connection; a server that does not answer is not waited for long."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_FAREWELL):
            await socket.close(code=code)


def _checked(url: str | URL) -> URL:
    try:
        checked = URL(url)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{url!r} is no URL: {error}") from None
    if checked.scheme not in _SCHEMES or not checked.host:
        raise UsageError(f"{url!r} is no address of a WebSocket; it begins with ws:// or wss:// and names a host")
    return checked


def create_websocket_client_transport(
    url: str | URL,
    *,
    headers: Mapping[str, str] | None = None,
    session: aiohttp.ClientSession | None = None,
    limit: int = DEFAULT_MAX_MESSAGE_BYTES,
    heartbeat: float | None = DEFAULT_HEARTBEAT,
    open_timeout: float | None = DEFAULT_OPEN_TIMEOUT,
) -> WebSocketClientTransport:
    """A :class:`WebSocketClientTransport`, whose arguments these are."""
    return WebSocketClientTransport(
        url, headers=headers, session=session, limit=limit, heartbeat=heartbeat, open_timeout=open_timeout
    )
