"""A server on WebSocket, behind aiohttp.

Rules:
- A WebSocket is a custom transport; the MCP specification does not define it.  See the package for connection,
  framing and cancellation.
- The upgrade handler declines (returns None, so that another handler can run) what is no GET, whose ``Upgrade`` is not
  ``websocket``, whose path is another, which has no ``Sec-WebSocket-Key``, or whose version is not 13.  Otherwise it
  answers 101 and serves until the connection ends.  A client that offers the subprotocol gets it; one that does not is
  served too.
- A frame that is no message is answered where an answer is due, and reported as ``error`` on the transport; so is what
  a handler or a frame's writing raises.
- The end of the connection cancels its handlers.  A slow reader is waited for on its own connection only.
- Nothing is checked beyond that: a web page of any origin can open a WebSocket.  Give `origins`, or put a guard in
  front: a middleware, or another upgrade handler that runs before this one.
- When the application shuts down, connections are closed with 1001: at once where :meth:`WebSocketServer.shutdown` is
  in ``app.on_shutdown``, within half a second otherwise.

As a middleware, which lets other routes have the same path, and as a route::

    websocket = create_websocket_server(mcp)
    app = web.Application(middlewares=[guard, websocket.middleware])
    app.on_shutdown.append(websocket.shutdown)

    app.add_routes(create_websocket_routes(mcp))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from aiohttp import WSCloseCode, hdrs, web
from aiohttp.typedefs import Handler

from typedmcp.core.connection import DEFAULT_MAX_IN_FLIGHT, Connection
from typedmcp.core.emitter import Emitter
from typedmcp.core.ending import end_listening
from typedmcp.core.errors import MessageError
from typedmcp.core.jsonrpc import JSONRPCMessage
from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.websocket.frames import (
    DEFAULT_HEARTBEAT,
    DEFAULT_MAX_MESSAGE_BYTES,
    DEFAULT_MCP_PATH,
    MCP_WEBSOCKET_SUBPROTOCOL,
)
from typedmcp.transports.websocket.outbox import FrameOutbox
from typedmcp.transports.websocket.socket import ServerSocket
from typedmcp.transports.websocket.transport import WebSocketServerTransport

_FAREWELL: Final = 1.0
"""How long the end waits, in seconds, for cancelled handlers."""

_WATCH: Final = 0.5
"""How often, in seconds, is looked whether the application shuts down."""

_VERSION: Final = "13"
_LEAVING: Final = "the server is shutting down"


class _Serving(WebSocketServerTransport):
    """A connection whose messages go to a server."""

    def __init__(self, server: WebSocketServer, socket: ServerSocket, principal: object) -> None:
        super().__init__(socket, limit=server.limit)
        self._server = server
        self._own = socket
        self._principal = principal
        self._connection: Connection | None = None

    @property
    def doomed(self) -> bool:
        return self._own.doomed

    def leave(self) -> asyncio.Task[None]:
        """Begin to close, because the server goes."""
        return self._leave(WSCloseCode.GOING_AWAY, _LEAVING)

    async def wait_closed(self) -> None:
        """Return when the connection and its handlers have ended."""
        assert self._running is not None
        await asyncio.shield(self._running)
        assert self._connection is not None
        await self._connection.wait_closed(_FAREWELL)

    def _opened(self, outbox: FrameOutbox) -> None:
        server = self._server
        self._connection = Connection(
            server.mcp,
            outbox.write,
            max_in_flight=server.max_in_flight,
            principal=self._principal,
            on_fault=lambda error: self.emitter.emit("error", error),
        )

    def _received(self, message: JSONRPCMessage) -> None:
        assert self._connection is not None
        self.emitter.emit("message", message)
        self._connection.receive(message)

    def _rejected(self, error: MessageError) -> None:
        assert self._connection is not None
        self.emitter.emit("error", error)
        self._connection.receive_malformed(error)

    def _ended(self) -> None:
        if self._connection is not None:
            self._connection.close()

    async def _release(self) -> None:
        await self._own.release()


class WebSocketServer:
    """An upgrade handler and the connections it has made; :func:`create_websocket_server` tells the arguments.

    Attributes:
        emitter: Emits ``connection`` with the transport of each new connection, before it is read.
    """

    def __init__(
        self,
        mcp: MCPServerInterface,
        *,
        path: str = DEFAULT_MCP_PATH,
        subprotocol: str = MCP_WEBSOCKET_SUBPROTOCOL,
        origins: Iterable[str] | None = None,
        limit: int = DEFAULT_MAX_MESSAGE_BYTES,
        heartbeat: float | None = DEFAULT_HEARTBEAT,
        max_in_flight: int = DEFAULT_MAX_IN_FLIGHT,
        principal: Callable[[web.Request], object] | None = None,
    ) -> None:
        self.emitter = Emitter()
        self.mcp = mcp
        self.limit = limit
        self.max_in_flight = max_in_flight
        self._principal = principal
        self._path = path
        self._subprotocol = subprotocol
        self._origins = None if origins is None else frozenset(origin.rstrip("/").lower() for origin in origins)
        self._heartbeat = heartbeat
        self._servings: set[_Serving] = set()
        self._watching: asyncio.TimerHandle | None = None

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._servings)

    async def __call__(self, request: web.Request) -> web.WebSocketResponse | None:
        """Serve an upgrade request until its connection ends; None when it is none for this handler.

        Raises:
            web.HTTPForbidden: its origin is not allowed.
            web.HTTPBadRequest: its key or its ``Connection`` header is malformed.
        """
        if request.path != self._path or refusal(request) is not None:
            return None
        return await self._serve(request)

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The same as an aiohttp middleware: what it declines goes on to `handler`."""
        response = await self(request)
        return await handler(request) if response is None else response

    def routes(self) -> list[web.RouteDef]:
        """The same as a route; what it declines gets 426 or 400."""
        return [web.get(self._path, self._route, allow_head=False)]

    async def shutdown(self, app: web.Application | None = None) -> None:
        """Close every connection with 1001; made for ``app.on_shutdown``."""
        await end_listening(self.mcp)
        if self._servings:
            await asyncio.wait([serving.leave() for serving in self._servings])

    async def _route(self, request: web.Request) -> web.StreamResponse:
        # The router has matched the path, which may have a prefix here.
        refused = refusal(request)
        return await self._serve(request) if refused is None else refused

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        origin = request.headers.get(hdrs.ORIGIN)
        if self._origins is not None and origin is not None and origin.lower() not in self._origins:
            raise web.HTTPForbidden(text="This origin may not connect.")
        principal = None if self._principal is None else self._principal(request)
        socket = ServerSocket(request, self._subprotocol, self.limit, self._heartbeat)
        await socket.prepare(request)
        serving = _Serving(self, socket, principal)
        self._servings.add(serving)
        self._watch()
        self.emitter.emit("connection", serving)
        try:
            await serving.start()
            await serving.wait_closed()
        finally:
            # Cancelled: aiohttp has lost patience with the handler.
            await asyncio.shield(serving.leave())
            self._servings.discard(serving)
        return socket

    def _watch(self) -> None:
        """See to it that no shutdown waits for a connection: aiohttp tells only those who asked before it began."""
        if self._watching is None:
            self._watching = asyncio.get_running_loop().call_later(_WATCH, self._look)

    def _look(self) -> None:
        self._watching = None
        for serving in self._servings:
            self._watch()
            if serving.doomed:
                _ = serving.leave()


def refusal(request: web.BaseRequest) -> web.Response | None:
    """Why a request is no WebSocket upgrade, as the response that says so; None when it is one."""
    headers = request.headers
    if request.method != hdrs.METH_GET or headers.get(hdrs.UPGRADE, "").strip().lower() != "websocket":
        return _refused(426, "This is a WebSocket; connect to it by ws://.")
    if headers.get(hdrs.SEC_WEBSOCKET_VERSION, "").strip() != _VERSION:
        return _refused(426, f"The WebSocket version is {_VERSION}.")
    if not headers.get(hdrs.SEC_WEBSOCKET_KEY):
        return _refused(400, "Sec-WebSocket-Key is missing.")
    return None


def _refused(status: int, text: str) -> web.Response:
    upgrade = {hdrs.UPGRADE: "websocket", hdrs.CONNECTION: "Upgrade", hdrs.SEC_WEBSOCKET_VERSION: _VERSION}
    return web.Response(status=status, text=text, headers=upgrade if status == 426 else {})


def create_websocket_server(
    mcp: MCPServerInterface,
    *,
    path: str = DEFAULT_MCP_PATH,
    subprotocol: str = MCP_WEBSOCKET_SUBPROTOCOL,
    origins: Iterable[str] | None = None,
    limit: int = DEFAULT_MAX_MESSAGE_BYTES,
    heartbeat: float | None = DEFAULT_HEARTBEAT,
    max_in_flight: int = DEFAULT_MAX_IN_FLIGHT,
    principal: Callable[[web.Request], object] | None = None,
) -> WebSocketServer:
    """The upgrade handler for a server: ``await handler(request)`` is its response, or None when it declines.

    Args:
        mcp: The server.
        path: The path it answers on.
        subprotocol: Chosen when the client offers it.
        origins: The values of ``Origin`` that may connect, besides its absence; others get 403.  None: not checked.
        limit: The longest message taken, in bytes.
        heartbeat: Seconds of silence after which the client is asked for a sign of life, and dropped when it gives
            none within half that time; None: never.
        max_in_flight: How many requests of one connection may run at once; one more is refused with -32603.
        principal: Says who the client is, from the upgrade request that a guard in front has let through.
    """
    return WebSocketServer(
        mcp,
        path=path,
        subprotocol=subprotocol,
        origins=origins,
        limit=limit,
        heartbeat=heartbeat,
        max_in_flight=max_in_flight,
        principal=principal,
    )


def create_websocket_routes(
    mcp: MCPServerInterface,
    *,
    path: str = DEFAULT_MCP_PATH,
    subprotocol: str = MCP_WEBSOCKET_SUBPROTOCOL,
    origins: Iterable[str] | None = None,
    limit: int = DEFAULT_MAX_MESSAGE_BYTES,
    heartbeat: float | None = DEFAULT_HEARTBEAT,
    max_in_flight: int = DEFAULT_MAX_IN_FLIGHT,
    principal: Callable[[web.Request], object] | None = None,
) -> list[web.RouteDef]:
    """The route of a server, for ``app.add_routes``; the arguments are those of :func:`create_websocket_server`."""
    return create_websocket_server(
        mcp,
        path=path,
        subprotocol=subprotocol,
        origins=origins,
        limit=limit,
        heartbeat=heartbeat,
        max_in_flight=max_in_flight,
        principal=principal,
    ).routes()
