"""The aiohttp shell: web requests in, replies and streams out as web responses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web
from multidict import CIMultiDict

from typedmcp.core.errors import ConnectionClosed
from typedmcp.transports.http.exchange import Reply
from typedmcp.transports.http.outgoing import Responder
from typedmcp_wire.revisions import LAST_EVENT_ID_HEADER, SESSION_ID_HEADER

_WATCH_SECONDS: Final = 0.25
"""How often a request that takes long looks whether its client is still there."""

Serve = Callable[[Responder], Awaitable[Reply | None]]


class WebResponder:
    """A streamed answer of aiohttp."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self.response: web.StreamResponse | None = None

    async def begin(self, headers: tuple[tuple[str, str], ...]) -> None:
        """Send status 200 and the headers."""
        self.response = web.StreamResponse(headers=CIMultiDict(headers))
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
        with contextlib.suppress(ConnectionResetError, RuntimeError):
            await self.response.write_eof()
        return self.response


async def respond(request: web.Request, serve: Serve) -> web.StreamResponse:
    """Aiohttp's response for what `serve` answers or streams; cancelled when the client goes away meanwhile."""
    responder = WebResponder(request)
    watch = _Watch(request)
    try:
        reply = await serve(responder)
    except ConnectionClosed:
        reply = None
    finally:
        watch.stop()
    if reply is not None:
        return plain(reply)
    if responder.response is None:
        return web.Response(status=499, reason="Client Closed Request")
    return await responder.end()


def plain(reply: Reply) -> web.Response:
    """Aiohttp's response for a whole answer."""
    return web.Response(status=reply.status, body=reply.body or None, headers=CIMultiDict(reply.headers))


def read_session_header(request: web.Request) -> str | None:
    """The session id a request carries."""
    return request.headers.get(SESSION_ID_HEADER)


def read_last_event_id(request: web.Request) -> str | None:
    """The id of the last event a client has seen."""
    return request.headers.get(LAST_EVENT_ID_HEADER)


class _Watch:
    """Cancels the running task when the client has gone.

    aiohttp itself does so only where the application was started with `handler_cancellation`; a handler that is silent
    would otherwise run on for nobody.
    """

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
        """The answer is there."""
        self._timer.cancel()
        self._task = None
