"""POSTs of the modern era: each request stands alone, on its own connection.

Rules:
- Order: ``_meta``, headers against body, and only then the engine.  The HTTP status follows the error.
- A reply is JSON unless something has to be sent before it: a notification of the handler, or a comment that keeps the
  connection open after a long silence.  A client that takes only event streams gets one.
- Whoever runs the exchange cancels it when the client goes away, and with it the handler.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from typedmcp.core.errors import ConnectionClosed, MCPError
from typedmcp.core.jsonrpc import JSONRPCErrorData, JSONRPCRequest, encode_response, params_text
from typedmcp.core.narrow import is_object
from typedmcp.core.param_headers import marks_of
from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.http import negotiation
from typedmcp.transports.http.dispatching import ask
from typedmcp.transports.http.incoming import Incoming
from typedmcp.transports.http.mirror import Get, check_mirror, check_params
from typedmcp.transports.http.outgoing import KEEP_ALIVE, STREAM_HEADERS, OutgoingStream, Responder
from typedmcp.transports.http.peer import Nobody, RequestPeer
from typedmcp.transports.http.replies import JSON_HEADERS, Reply, refuse, refuse_request
from typedmcp.transports.http.ticker import Ticker
from typedmcp.transports.sse import encode_event
from typedmcp_wire.methods import CALL_TOOL, LISTEN
from typedmcp_wire.revisions import CLIENT_CAPABILITIES_KEY, HTTP_STATUS, PROTOCOL_VERSION_KEY, REVISIONS

_NOBODY = Nobody()
_TICK: Final = 0.5
"""Seconds; how exactly the first comment of a silent request comes."""


class ModernPosts:
    """Serves the requests of the modern era.

    Args:
        server: Who serves them.
        dual: Whether the server serves the handshake era, too.
        keep_alive: Seconds of silence before a comment is sent.
    """

    def __init__(self, server: MCPServerInterface, *, dual: bool, keep_alive: float | None) -> None:
        self._server = server
        self._dual = dual
        self._keep_alive = keep_alive
        self._ticker = Ticker(_TICK)
        self._marks = marks_of(server)
        self._revisions: tuple[str, ...] = getattr(server, "protocol_versions", REVISIONS)

    async def serve(
        self, get: Get, request: JSONRPCRequest, incoming: Incoming, responder: Responder, principal: object
    ) -> Reply | None:
        """Serve one request; None when the answer was streamed."""
        meta = incoming.meta
        if meta is None or PROTOCOL_VERSION_KEY not in meta:
            if self._dual:
                # The header alone makes it modern; the engine must not take it for a request of the other era.
                request = _marked(request, meta)
        elif CLIENT_CAPABILITIES_KEY in meta:
            named = {"name": incoming.params.name, "uri": incoming.params.uri}
            try:
                check_mirror(get, request.method, meta[PROTOCOL_VERSION_KEY], named)
                if self._marks is not None and request.method == CALL_TOOL.name and isinstance(named["name"], str):
                    marks = self._marks(named["name"])
                    if marks and meta[PROTOCOL_VERSION_KEY] in self._revisions:  # the engine refuses the others
                        check_params(get, marks, _arguments(request))
            except MCPError as mismatch:
                return refuse_request(request, mismatch, HTTP_STATUS[mismatch.code])
        accept = get("Accept")
        if not negotiation.accepts(accept, negotiation.EVENT_STREAM):
            if request.method == LISTEN.name:
                return refuse(406, f"Not Acceptable: {request.method} is answered with text/event-stream")
            response = await ask(self._server, request, RequestPeer(None, _NOBODY, principal=principal))
            return _whole(encode_response(response), response.error)
        stream = _LazyStream(responder, self._keep_alive, self._ticker)
        peer = RequestPeer(stream.send, _NOBODY, principal=principal)
        try:
            response = await ask(self._server, request, peer)
            answer = encode_response(response)
            only_stream = response.error is msgspec.UNSET and not negotiation.accepts(accept, negotiation.JSON)
            if stream.begun or only_stream:
                await stream.finish(answer)
                return None
        except asyncio.CancelledError:
            if not stream.broken:
                raise
            raise ConnectionClosed("the client is gone") from None
        finally:
            stream.stop()
            if stream.broken and (task := asyncio.current_task()) is not None:
                task.uncancel()
        return _whole(answer, response.error)


def _whole(answer: bytes, error: JSONRPCErrorData | msgspec.UnsetType) -> Reply:
    status = HTTP_STATUS.get(error.code, 200) if isinstance(error, JSONRPCErrorData) else 200
    return Reply(status, answer, JSON_HEADERS)


class _LazyStream:
    """A response stream that begins with the first thing to be sent before the answer."""

    __slots__ = ("_keep_alive", "_patience", "_responder", "_stream", "_ticker", "_writer", "broken")

    def __init__(self, responder: Responder, keep_alive: float | None, ticker: Ticker) -> None:
        self._responder = responder
        self._keep_alive = keep_alive
        self._stream: OutgoingStream | None = None
        self._writer: asyncio.Task[None] | None = None
        self._ticker = ticker
        self.broken = False
        if keep_alive is not None:
            self._patience = keep_alive
            ticker.add(self)

    @property
    def begun(self) -> bool:
        return self._stream is not None

    def tick(self) -> None:
        self._patience -= _TICK
        if self._patience <= 0:
            self._put(KEEP_ALIVE)

    def send(self, message: bytes) -> None:
        self._put(encode_event(message))

    def _put(self, chunk: bytes) -> None:
        stream = self._stream
        if stream is None:
            self._ticker.remove(self)
            stream = self._stream = OutgoingStream(keep_alive=self._keep_alive)
            self._writer = asyncio.get_running_loop().create_task(self._write(stream))
        stream.send(chunk)

    async def finish(self, answer: bytes) -> None:
        """Write the answer, and wait until all is written."""
        self.send(answer)
        assert self._stream is not None
        assert self._writer is not None
        self._stream.end()
        await self._writer

    def stop(self) -> None:
        """The request is answered, or nobody waits for the answer."""
        self._ticker.remove(self)
        if self._writer is not None:
            self._writer.cancel()

    async def _write(self, stream: OutgoingStream) -> None:
        try:
            await self._responder.begin(STREAM_HEADERS)
            await stream.pump(self._responder)
        except ConnectionClosed:
            self.broken = True
            stream.abandon()
            self._responder.cancel()


def _arguments(request: JSONRPCRequest) -> object:
    try:
        params = msgspec.json.decode(params_text(request.params))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None  # the engine says what is wrong with them
    return params.get("arguments") if is_object(params) else None


def _marked(request: JSONRPCRequest, meta: dict[str, Any] | None) -> JSONRPCRequest:
    """The request with an unreadable revision in its ``_meta``, so that the engine answers as the modern era does."""
    try:
        params = msgspec.json.decode(params_text(request.params))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return request
    if not is_object(params):
        return request
    marked = {**params, "_meta": {**(meta or {}), PROTOCOL_VERSION_KEY: None}}
    return JSONRPCRequest(id=request.id, method=request.method, params=marked)
