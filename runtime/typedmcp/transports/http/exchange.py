"""One HTTP exchange without IO: headers and body in; a reply, or a stream written through a responder, out.

Rules (order as the specification's pages and the official suite need it):
- media types, message shape, notification, ``_meta`` of the modern era, headers against body, and only then the engine.
- A POST is modern when its body says so, or when its version header names no handshake revision.  A modern body whose
  header is missing or names another revision is 400 with -32020.
- In the modern era the HTTP status follows the error; in the handshake era every answer of the engine is 200.
- A reply is JSON unless something has to be sent before it (modern), or the client takes event streams and
  `streaming` is on (handshake era).
- A client of the handshake era that goes away does not cancel: its request runs on in a task of its own.  In the modern
  era whoever runs the exchange cancels it, and with it the handler.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from typedmcp.core.connection import Handshake, key_of
from typedmcp.core.errors import MCPError, MessageError
from typedmcp.core.jsonrpc import (
    JSONRPCErrorData,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    decode_message,
    encode_response,
    is_array,
    params_text,
    split_batch,
)
from typedmcp.core.narrow import is_object
from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.http import negotiation
from typedmcp.transports.http.live import LiveSession
from typedmcp.transports.http.mirror import Get, check_mirror
from typedmcp.transports.http.outgoing import STREAM_HEADERS, OutgoingStream, Responder
from typedmcp.transports.http.peer import RequestPeer, Stateless
from typedmcp.transports.sse import encode_event
from typedmcp_wire.revisions import (
    ASSUMED_PROTOCOL_VERSION,
    BATCH_REVISIONS,
    CLIENT_CAPABILITIES_KEY,
    HANDSHAKE_REVISIONS,
    HTTP_STATUS,
    INVALID_REQUEST,
    NULL_ID_REVISIONS,
    PROTOCOL_VERSION_HEADER,
    PROTOCOL_VERSION_KEY,
    REVISIONS,
)

logger = logging.getLogger("typedmcp")
_JSON_HEADERS = (("Content-Type", negotiation.JSON),)


class Reply(Struct, frozen=True):
    """A whole HTTP answer."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class _Params(Struct):
    """What the headers are compared with."""

    meta: Any = field(name="_meta", default=None)
    name: Any = None
    uri: Any = None


_decode_params = msgspec.json.Decoder(_Params).decode


class Exchange:
    """Serves POSTs for one server.

    Args:
        server: Who serves the messages.
        streaming: Whether clients of the handshake era that take event streams get one.
        strict: Check media types, refuse what the bare profile lets pass.
        keep_alive: Seconds of silence on a stream before a comment is sent.
        revisions: The revisions served.
    """

    def __init__(
        self,
        server: MCPServerInterface,
        *,
        streaming: bool = True,
        strict: bool = False,
        keep_alive: float | None = None,
    ) -> None:
        self._server = server
        self._streaming = streaming
        self._strict = strict
        self._keep_alive = keep_alive
        self._revisions: tuple[str, ...] = getattr(server, "protocol_versions", REVISIONS)
        self._running: set[asyncio.Task[Any]] = set()

    async def post(
        self,
        get: Get,
        body: bytes,
        responder: Responder,
        *,
        session: LiveSession | None = None,
        principal: object = None,
    ) -> Reply | None:
        """Serve one POST.

        Args:
            get: The request's headers.
            responder: Used when the answer is a stream.
            session: The session it belongs to, when there are sessions.
            principal: Who the caller is.

        Returns:
            The reply; None when the answer was streamed.
        """
        refusal = self._media(get) if self._strict else None
        if refusal is not None:
            return refusal
        revision = get(PROTOCOL_VERSION_HEADER)
        try:
            message = decode_message(body)
        except MessageError as error:
            return await self._unreadable(error, revision, session, principal)
        if isinstance(message, JSONRPCResponse):
            return self._answered(message, session)
        meta, params = _peek(message)
        modern = (meta is not None and PROTOCOL_VERSION_KEY in meta) or not _of_handshake(revision)
        if message.id is UNSET:
            return await self._notified(message, revision, modern, session, principal)
        if modern:
            return await self._modern(get, message, meta, params, responder, principal)
        if revision is not None and revision not in self._revisions:
            return self._error(message, MCPError(INVALID_REQUEST, f"Unsupported protocol version: {revision}"), 400)
        return await self._legacy(get, message, revision, responder, session, principal)

    # -- what is answered at once ----------------------------------------------------------------------------------

    def _media(self, get: Get) -> Reply | None:
        accept = get("Accept")
        if not (negotiation.accepts(accept, negotiation.JSON) or negotiation.accepts(accept, negotiation.EVENT_STREAM)):
            return self._refuse(406, "Not Acceptable: the client must take application/json or text/event-stream")
        if not negotiation.is_json(get("Content-Type")):
            return self._refuse(415, "Unsupported Media Type: Content-Type must be application/json")
        return None

    async def _unreadable(
        self, error: MessageError, revision: str | None, session: LiveSession | None, principal: object
    ) -> Reply:
        """The answer to a body that is no message, or a batch."""
        spoken = session.revision if session is not None and session.revision else revision
        if is_array(error.frame) and spoken in BATCH_REVISIONS:
            return await self._batch(error.frame, session, principal, spoken)
        null = error.id is None and (not self._strict or (spoken or ASSUMED_PROTOCOL_VERSION) in NULL_ID_REVISIONS)
        request_id = None if null else UNSET if error.id is None else error.id
        data = JSONRPCErrorData(code=error.code, message=error.message)
        return Reply(400, encode_response(JSONRPCResponse(id=request_id, error=data)), _JSON_HEADERS)

    def _answered(self, response: JSONRPCResponse, session: LiveSession | None) -> Reply:
        if session is None:
            return self._refuse(400, "A server takes requests, not responses.")
        if not session.calls.settle(response):
            logger.info("dropped a response nobody waits for: id %r", response.id)
        return Reply(202)

    async def _notified(
        self,
        notification: JSONRPCRequest,
        revision: str | None,
        modern: bool,
        session: LiveSession | None,
        principal: object,
    ) -> Reply:
        if revision is not None and revision not in self._revisions:
            return self._refuse(400, f"Unsupported protocol version: {revision}")
        if not modern:
            if session is not None and notification.method == "notifications/cancelled":
                session.cancel(notification)
            await self._server.dispatch(notification, self._peer(None, revision, session, principal))
        return Reply(202)

    async def _batch(self, frame: bytes, session: LiveSession | None, principal: object, revision: str | None) -> Reply:
        """Serve a batch of 2025-03-26; its answers come as one array."""
        try:
            members = split_batch(frame)
        except MessageError as error:
            return self._refuse(400, error.message)
        peer = self._peer(None, revision, session, principal)
        answers = await asyncio.gather(*(self._member(member, peer, session) for member in members))
        written = [encode_response(answer) for answer in answers if answer is not None]
        return Reply(200, b"[" + b",".join(written) + b"]", _JSON_HEADERS) if written else Reply(202)

    async def _member(self, member: bytes, peer: RequestPeer, session: LiveSession | None) -> JSONRPCResponse | None:
        try:
            message = decode_message(member)
        except MessageError as error:
            data = JSONRPCErrorData(code=error.code, message=error.message)
            return JSONRPCResponse(id=error.id, error=data) if error.answer else None
        if isinstance(message, JSONRPCResponse):
            if session is not None:
                session.calls.settle(message)
            return None
        if message.method == "initialize" and not isinstance(message.id, UnsetType):
            data = JSONRPCErrorData(code=INVALID_REQUEST, message="A batch never holds initialize.")
            return JSONRPCResponse(id=message.id, error=data)
        return await self._server.dispatch(message, peer)

    # -- the modern era --------------------------------------------------------------------------------------------

    async def _modern(
        self,
        get: Get,
        request: JSONRPCRequest,
        meta: dict[str, Any] | None,
        params: _Params,
        responder: Responder,
        principal: object,
    ) -> Reply | None:
        whole = meta is not None and PROTOCOL_VERSION_KEY in meta and CLIENT_CAPABILITIES_KEY in meta
        if whole and meta is not None:
            try:
                named = {"name": params.name, "uri": params.uri}
                check_mirror(get, request.method, meta[PROTOCOL_VERSION_KEY], named)
            except MCPError as mismatch:
                return self._error(request, mismatch, HTTP_STATUS[mismatch.code])
        elif meta is None or PROTOCOL_VERSION_KEY not in meta:
            # The header alone makes it modern; the engine must not take it for a request of the other era.
            request = _marked(request, meta)
        stream = _LazyStream(self._stream(), responder) if self._may_stream(get) else None
        peer = RequestPeer(stream.send if stream else None, _NOBODY, principal=principal)
        response = await self._dispatch(request, peer, stream)
        assert response is not None
        if stream is not None and stream.begun:
            await stream.finish(encode_event(encode_response(response)))
            return None
        error = response.error
        status = HTTP_STATUS.get(error.code, 200) if isinstance(error, JSONRPCErrorData) else 200
        return Reply(status, encode_response(response), _JSON_HEADERS)

    async def _dispatch(
        self, request: JSONRPCRequest, peer: RequestPeer, stream: _LazyStream | None
    ) -> JSONRPCResponse | None:
        try:
            return await self._server.dispatch(request, peer)
        except BaseException:
            if stream is not None:
                stream.abandon()
            raise

    def _may_stream(self, get: Get) -> bool:
        return negotiation.accepts(get("Accept"), negotiation.EVENT_STREAM)

    def _stream(self) -> OutgoingStream:
        return OutgoingStream(keep_alive=self._keep_alive)

    # -- the handshake era -----------------------------------------------------------------------------------------

    async def _legacy(
        self,
        get: Get,
        request: JSONRPCRequest,
        revision: str | None,
        responder: Responder,
        session: LiveSession | None,
        principal: object,
    ) -> Reply | None:
        assert not isinstance(request.id, UnsetType)
        if session is not None and session.runs(request.id):
            return self._error(request, MCPError(INVALID_REQUEST, "A request with this id is still in flight."), 400)
        streamed = self._streaming and negotiation.names(get("Accept"), negotiation.EVENT_STREAM)
        stream = self._stream() if streamed else None
        send = None
        if stream is not None:
            send = session.sender(request.id, stream) if session is not None else _plain_sender(stream)
        if session is not None and stream is not None:
            session.prime(request.id, stream)
        peer = self._peer(send, revision, session, principal)
        task = asyncio.get_running_loop().create_task(self._run(request, peer, stream, send, session))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        if session is not None:
            session.began(request.id, task)
        if stream is None:
            return await self._plain(task)
        try:
            await responder.begin(STREAM_HEADERS)
            await stream.pump(responder)
        finally:
            if session is not None:
                session.state.detach(stream)
        return None

    async def _run(
        self,
        request: JSONRPCRequest,
        peer: RequestPeer,
        stream: OutgoingStream | None,
        send: Callable[[bytes], None] | None,
        session: LiveSession | None,
    ) -> bytes | None:
        """Run a request to its end, whoever still listens; the text of the answer, when it is not streamed."""
        try:
            response = await self._server.dispatch(request, peer)
            text = encode_response(response) if response is not None else b""
            if send is None:
                return text
            send(text)
            return None
        finally:
            if stream is not None:
                stream.end()
            if session is not None and not isinstance(request.id, UnsetType):
                session.ended(key_of(request.id))

    async def _plain(self, task: asyncio.Task[bytes | None]) -> Reply:
        try:
            text = await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            # Cancelled by the client itself: there is no answer to send, yet HTTP wants one.
            return Reply(202)
        return Reply(200, text or b"", _JSON_HEADERS)

    def _peer(
        self,
        send: Callable[[bytes], None] | None,
        revision: str | None,
        session: LiveSession | None,
        principal: object,
    ) -> RequestPeer:
        if session is not None:
            return RequestPeer(send, session.state, calls=session.calls, principal=principal)
        return RequestPeer(send, Stateless(revision or self._fallback()), principal=principal)

    def _fallback(self) -> str:
        """What a client without version header and session is taken to speak."""
        return ASSUMED_PROTOCOL_VERSION if self._strict else self._newest_handshake()

    def _newest_handshake(self) -> str:
        return next((r for r in self._revisions if r in HANDSHAKE_REVISIONS), ASSUMED_PROTOCOL_VERSION)

    # -- answers ---------------------------------------------------------------------------------------------------

    def _refuse(self, status: int, text: str) -> Reply:
        return refuse(status, text, null_id=not self._strict)

    def _error(self, request: JSONRPCRequest, error: MCPError, status: int) -> Reply:
        data = JSONRPCErrorData(code=error.code, message=error.message, data=error.data)
        return Reply(status, encode_response(JSONRPCResponse(id=request.id, error=data)), _JSON_HEADERS)


def refuse(status: int, text: str, *, null_id: bool = False) -> Reply:
    """An error without a request to belong to."""
    data = JSONRPCErrorData(code=INVALID_REQUEST, message=text)
    response = JSONRPCResponse(id=None, error=data) if null_id else JSONRPCResponse(error=data)
    return Reply(status, encode_response(response), _JSON_HEADERS)


def parse_body(body: bytes) -> JSONRPCMessage | None:
    """The message in a body; None when it holds none."""
    try:
        return decode_message(body)
    except MessageError:
        return None


def opens_session(message: JSONRPCMessage | None) -> bool:
    """Whether a message is an `initialize` that wants an answer."""
    return isinstance(message, JSONRPCRequest) and message.method == "initialize" and not message.is_notification


def is_modern(version: str | None, message: JSONRPCMessage | None) -> bool:
    """Whether a POST belongs to the modern era, by its version header or its body."""
    if not _of_handshake(version):
        return True
    meta = _peek(message)[0] if isinstance(message, JSONRPCRequest) else None
    return meta is not None and PROTOCOL_VERSION_KEY in meta


class _Nobody:
    """The modern era remembers no handshake."""

    handshake: Handshake | None = None


_NOBODY = _Nobody()


class _LazyStream:
    """A response stream that begins with the first thing to be sent before the answer."""

    def __init__(self, stream: OutgoingStream, responder: Responder) -> None:
        self._stream = stream
        self._responder = responder
        self._writer: asyncio.Task[None] | None = None

    @property
    def begun(self) -> bool:
        return self._writer is not None

    def send(self, message: bytes) -> None:
        self._stream.send(encode_event(message))
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write())

    async def finish(self, last: bytes) -> None:
        """Write the answer, and wait until all is written."""
        assert self._writer is not None
        self._stream.send(last)
        self._stream.end()
        await self._writer

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.cancel()

    async def _write(self) -> None:
        await self._responder.begin(STREAM_HEADERS)
        await self._stream.pump(self._responder)


def _plain_sender(stream: OutgoingStream) -> Callable[[bytes], None]:
    return lambda message: stream.send(encode_event(message))


def _of_handshake(revision: str | None) -> bool:
    return revision is None or revision in HANDSHAKE_REVISIONS


def _peek(message: JSONRPCRequest) -> tuple[dict[str, Any] | None, _Params]:
    """``_meta`` (None when there is none to be used) and the members that headers repeat."""
    if message.params is UNSET:
        return None, _Params()
    try:
        params = _decode_params(params_text(message.params))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None, _Params()
    return (params.meta if is_object(params.meta) else None), params


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
