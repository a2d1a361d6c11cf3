"""The aiohttp shell: web requests in, replies and streams out as web responses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from multidict import CIMultiDict

from typedmcp.core.errors import ConnectionClosed
from typedmcp.transports.http import negotiation
from typedmcp.transports.http.outgoing import Responder
from typedmcp.transports.http.replies import Headers, Reply, refuse, too_large, too_slow
from typedmcp.transports.http.ticker import Ticker
from typedmcp_wire.revisions import LAST_EVENT_ID_HEADER, PROTOCOL_VERSION_HEADER, SESSION_ID_HEADER

MCP_SESSION_HEADER: Final = SESSION_ID_HEADER.lower()
MCP_PROTOCOL_VERSION_HEADER: Final = PROTOCOL_VERSION_HEADER.lower()

_WATCH_SECONDS: Final = 0.25
"""How often a request that takes long looks whether its client is still there."""

Serve = Callable[[Responder], Awaitable[Reply | None]]


def make_watch() -> Ticker:
    """What :func:`respond` needs: looks after all requests of an application."""
    return Ticker(_WATCH_SECONDS)


class WebResponder:
    """A streamed answer of aiohttp, whose client is watched.

    aiohttp itself cancels handlers of clients that have gone only where the application was started with
    `handler_cancellation`; a handler that is silent would otherwise run on for nobody.
    """

    __slots__ = ("_request", "cancelled", "response")

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        self.response: web.StreamResponse | None = None
        self.cancelled = False

    async def begin(self, headers: Headers) -> None:
        """Send status 200 and the headers."""
        response = web.StreamResponse(headers=CIMultiDict(headers))
        try:
            await response.prepare(self._request)
        except (ConnectionResetError, RuntimeError) as error:
            raise ConnectionClosed("the client is gone") from error
        self.response = response

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
        with contextlib.suppress(ConnectionResetError, RuntimeError):
            await self.response.write_eof()
        return self.response

    def abort(self) -> web.StreamResponse:
        """The client is gone, or is not waited for: end the connection."""
        if self._request.transport is not None:
            self._request.transport.abort()
        return self.response or web.Response(status=499, reason="Client Closed Request")

    def cancel(self) -> None:
        """Cancel the handler."""
        self._request.task.cancel()

    def tick(self) -> None:
        """Look whether the client is still there."""
        transport = self._request.transport
        if not self.cancelled and (transport is None or transport.is_closing()):
            self.cancelled = True
            self.cancel()


async def respond(request: web.BaseRequest, serve: Serve, watch: Ticker) -> web.StreamResponse:
    """Aiohttp's response for what `serve` answers or streams; cancelled when the client goes away meanwhile."""
    responder = WebResponder(request)
    watch.add(responder)
    try:
        reply = await serve(responder)
    except ConnectionClosed:
        return responder.abort()
    except asyncio.CancelledError:
        if not responder.cancelled:
            raise
        return responder.abort()
    finally:
        watch.remove(responder)
        if responder.cancelled:
            request.task.uncancel()
    return await responder.end() if reply is None else plain(reply)


async def read_body(request: web.BaseRequest, limit: int, seconds: float | None) -> bytes | Reply:
    """The body of a request, or the refusal of one that is too large, too slow, or breaks off."""
    try:
        if seconds is None or request.content.is_eof():
            return await request.read()  # most are there with their headers, and need no timer
        async with asyncio.timeout(seconds):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        return too_large(limit)
    except TimeoutError:
        return too_slow(seconds or 0.0)
    except (ConnectionError, web.RequestPayloadError) as error:
        return refuse(400, f"Bad Request: the body breaks off: {error}")


def plain(reply: Reply) -> web.Response:
    """Aiohttp's response for a whole answer."""
    return web.Response(status=reply.status, body=reply.body or None, headers=CIMultiDict(reply.headers))


def add_health(app: web.Application) -> None:
    """Answer ``/healthz`` and ``/readyz``."""

    async def healthy(request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    for place in ("/healthz", "/readyz"):
        app.router.add_get(place, healthy)


def accepts_event_stream(request: web.BaseRequest) -> bool:
    """Whether a client asks for an event stream by name; wildcards are not enough."""
    return negotiation.names(request.headers.get("Accept"), negotiation.EVENT_STREAM)


def read_session_header(request: web.BaseRequest) -> str | None:
    """The session id a request carries."""
    return request.headers.get(MCP_SESSION_HEADER)


def read_last_event_id(request: web.BaseRequest) -> str | None:
    """The id of the last event a client has seen."""
    return request.headers.get(LAST_EVENT_ID_HEADER)


def upgrade_request_path(request: web.BaseRequest) -> str:
    """The path a request asks for, without the query; ``/`` when it names none."""
    return request.rel_url.raw_path or "/"
