"""The aiohttp shell: web requests to exchanges, replies and streams to web responses."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from aiohttp import web

from typedmcp.core.errors import ConnectionClosed
from typedmcp.transports.http.exchange import Exchange, Reply
from typedmcp.transports.http.guard import CORS_HEADERS
from typedmcp.transports.http.live import LiveSession
from typedmcp.transports.http.outgoing import STREAM_HEADERS, OutgoingStream
from typedmcp.transports.http.sessions import STANDALONE, MCPSession
from typedmcp.transports.sse import encode_event
from typedmcp_wire.revisions import LAST_EVENT_ID_HEADER, SESSION_ID_HEADER

_WATCH_SECONDS: Final = 0.25
"""How often a request of the modern era that takes long looks whether its client is still there."""


class WebResponder:
    """A streamed answer of aiohttp; `headers` are added to those of the stream."""

    def __init__(self, request: web.Request, headers: dict[str, str]) -> None:
        self._request = request
        self._headers = headers
        self.response: web.StreamResponse | None = None

    async def begin(self, headers: tuple[tuple[str, str], ...]) -> None:
        """Send status 200 and the headers."""
        self.response = web.StreamResponse(headers={**dict(headers), **self._headers})
        try:
            await self.response.prepare(self._request)
        except (ConnectionResetError, RuntimeError) as error:
            raise ConnectionClosed("the client is gone") from error

    async def write(self, data: bytes) -> None:
        """Send bytes; raises ConnectionClosed when the client is gone."""
        assert self.response is not None
        try:
            await self.response.write(data)
        except (ConnectionResetError, RuntimeError) as error:
            raise ConnectionClosed("the client is gone") from error

    async def end(self) -> web.StreamResponse:
        """Finish the answer."""
        assert self.response is not None
        try:
            await self.response.write_eof()
        except (ConnectionResetError, RuntimeError):
            pass
        return self.response


async def serve_post(
    exchange: Exchange,
    request: web.Request,
    *,
    session: LiveSession | None = None,
    principal: object = None,
    headers: dict[str, str] | None = None,
) -> web.StreamResponse:
    """Serve one POST and return aiohttp's response.

    Args:
        headers: Added to whatever is answered.
    """
    body = await request.read()
    extra = {**request.get(CORS_HEADERS, {}), **(headers or {})}
    responder = WebResponder(request, extra)
    watch = _Watch(request)
    try:
        reply = await exchange.post(request.headers.get, body, responder, session=session, principal=principal)
    except ConnectionClosed:
        reply = None
    finally:
        watch.stop()
    if reply is not None:
        return plain(reply, extra)
    if responder.response is None:
        return web.Response(status=499, reason="Client Closed Request")
    return await responder.end()


def plain(reply: Reply, headers: dict[str, str] | None = None) -> web.Response:
    """Aiohttp's response for a whole answer."""
    merged = {**dict(reply.headers), **(headers or {})}
    return web.Response(status=reply.status, body=reply.body or None, headers=merged)


async def serve_stream(
    request: web.Request,
    session: MCPSession,
    *,
    keep_alive: float | None,
    headers: dict[str, str],
    closing: asyncio.Event | None = None,
) -> web.StreamResponse:
    """Serve one GET: replay what the client missed, then send what comes, until it goes away."""
    responder = WebResponder(request, {**request.get(CORS_HEADERS, {}), **headers})
    stream = OutgoingStream(keep_alive=keep_alive)
    cursor = read_last_event_id(request)
    name = (session.stream_of(cursor) if cursor else None) or STANDALONE
    try:
        await responder.begin(STREAM_HEADERS)
        for entry in session.replay(cursor) if cursor else ():
            stream.send(encode_event(entry.message, id=entry.id))
        live = session.live
        if name == STANDALONE or (isinstance(live, LiveSession) and live.streams(name)):
            session.attach(stream, name)
        else:
            stream.end()  # the request is answered: what was missed is all there is
        await stream.pump(responder)
    except ConnectionClosed:
        pass
    finally:
        session.detach(stream)
    return await responder.end() if responder.response is not None else web.Response(status=499)


def read_session_header(request: web.Request) -> str | None:
    """The session id a request carries."""
    return request.headers.get(SESSION_ID_HEADER)


def read_last_event_id(request: web.Request) -> str | None:
    """The id of the last event a client has seen."""
    return request.headers.get(LAST_EVENT_ID_HEADER)


class _Watch:
    """Cancels the running task when the client has gone; the answer of a modern request has no other reader."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._task: asyncio.Task[Any] | None = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(_WATCH_SECONDS, self._look)

    def _look(self) -> None:
        transport = self._request.transport
        if transport is None or transport.is_closing():
            if self._task is not None:
                self._task.cancel()
            return
        self._timer = self._loop.call_later(_WATCH_SECONDS, self._look)

    def stop(self) -> None:
        self._timer.cancel()
        self._task = None
