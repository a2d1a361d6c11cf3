"""The client's side of Streamable HTTP, both eras, over aiohttp.

Rules:
- Every message is a POST of its own; they run side by side.  ``send`` of a request returns when it is on its way, so
  what the server asks meanwhile can be answered; ``send`` of anything else waits until the server has accepted it.
- A request that cannot be answered any more is emitted as ``error`` with
  :class:`~typedmcp.core.errors.RequestLost`, which names it, the status and the address; the connection goes on.  With
  `swallow` the error names no request, and ``send`` never raises it: the request is left to its deadline.
- The session id that comes with the answer to ``initialize`` goes out with every later request, and so does the
  revision agreed on.  404 to a request with an id is :class:`~typedmcp.core.errors.SessionLost`; the next
  ``initialize`` goes without the id and begins anew.
- Requests of the modern era name their revision, method and name in headers.  Cancelling one closes its connection;
  nothing is posted.  In the handshake era ``notifications/cancelled`` is posted, and then the connection is closed.
- After ``notifications/initialized`` the server's own event stream is opened, if it offers one.
- Nothing limits how long a stream lasts.  `timeout` limits how long a reply takes to begin, and a JSON reply to end.
- Proxies, certificates, cookies and the size of the pool are those of the injected session, which stays open; a pool
  with fewer places than there are open calls keeps the answers to the server's questions waiting.  Redirects are not
  followed.
- ``close`` gives up what is under way, ends the session by DELETE, within two seconds, and emits ``close``.  ``start``
  may then be called again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict, Unpack

import aiohttp
from yarl import URL

from typedmcp.core.emitter import Emitter
from typedmcp.core.errors import ConnectionClosed, NotConnected, UsageError
from typedmcp.core.jsonrpc import JSONRPCMessage, JSONRPCRequest, JSONRPCResponse
from typedmcp.transports.http.client_exchange import Exchange
from typedmcp.transports.http.client_link import CONNECTION_ERRORS, Link, Reconnect, logger
from typedmcp.transports.http.client_message import Outgoing, outgoing
from typedmcp.transports.http.client_streams import listen as listen_apart
from typedmcp.transports.sse import DEFAULT_MAX_EVENT_BYTES
from typedmcp_wire.revisions import BATCH_REVISIONS

__all__ = ["HTTPClientTransport", "HTTPClientTransportOptions", "Reconnect", "create_http_client_transport"]

DEFAULT_CONNECT_TIMEOUT: Final = 10.0
"""Seconds until a connection to the server must stand."""

DEFAULT_RECONNECT: Final = Reconnect()

_FAREWELL = 2.0
_NO_HEADERS: Final[Mapping[str, str]] = {}


class HTTPClientTransport:
    """A server behind an address as a transport.

    Events of `emitter`: ``message``, ``error`` and ``close``.

    Args:
        url: The server's endpoint, ``http://...`` or ``https://...``; used as it is.
        headers: Sent with every request; they win over the protocol's own, content-type and accept apart.
        session: Where connections come from; by default a session of the transport's own, closed with it.
        timeout: Seconds until a reply to a POST must have begun, and ended when it is JSON; None: no limit.
        connect_timeout: Seconds until a connection must stand; None: no limit.
        listen: Whether to open the server's own event stream in the handshake era.
        reconnect: How event streams are opened again.
        swallow: Keep failures to the ``error`` event, and out of ``send`` and of the requests they concern.
        max_event_bytes: The longest event, or JSON reply, taken.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        session: aiohttp.ClientSession | None = None,
        timeout: float | None = None,
        connect_timeout: float | None = DEFAULT_CONNECT_TIMEOUT,
        listen: bool = True,
        reconnect: Reconnect = DEFAULT_RECONNECT,
        swallow: bool = False,
        max_event_bytes: int = DEFAULT_MAX_EVENT_BYTES,
    ) -> None:
        self.emitter = Emitter()
        self._link_options: dict[str, Any] = {
            "headers": dict(headers or _NO_HEADERS),
            "http": session,
            "timeout": timeout,
            "connect_timeout": connect_timeout,
            "reconnect": reconnect,
            "limit": max_event_bytes,
            "swallow": swallow,
        }
        self._url = _checked(url)
        self._listen = listen
        self._link: Link | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listener: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def session(self) -> str | None:
        """The session id; None before the server has given one."""
        return None if self._link is None else self._link.session

    async def start(self) -> None:
        """Get ready; the first connection is opened by the first message."""
        if self._closing is not None:
            await asyncio.wait([self._closing])
            self._closing = None
            self._link = None
        if self._link is None:
            self._link = Link(self._url, self.emitter, **self._link_options)

    async def send(self, message: JSONRPCMessage | Sequence[JSONRPCMessage]) -> None:
        """POST one message, or several: in one array where the revision has batches, or none is agreed on yet.

        Raises:
            NotConnected: the transport has not been started.
            ConnectionClosed: it has been closed.
            RequestLost: the server has not accepted a notification or a response.
        """
        link = self._link
        if link is None:
            raise NotConnected("call start() before send()")
        if self._closing is not None:
            raise ConnectionClosed("the transport is closed; start() opens it anew")
        if not isinstance(message, (JSONRPCRequest, JSONRPCResponse)) and _one_by_one(link):
            for each in message:
                await self._post(link, outgoing(each))
        else:
            await self._post(link, outgoing(message))

    async def close(self) -> None:
        """Give up what is under way, end the session, and emit ``close``; a second call waits for the first."""
        if self._link is None:
            return
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._end(self._link))
        await asyncio.shield(self._closing)

    # -- sending ---------------------------------------------------------------------------------------------------

    async def _post(self, link: Link, post: Outgoing) -> None:
        withdrawn = None if post.withdraws is None else link.exchanges.get(post.withdraws)
        if post.withdraws is not None and not post.modern:
            if withdrawn is not None and withdrawn.modern:
                withdrawn.abort()
                return
            if link.revision is None and link.modern_revision is not None:
                return  # of the modern era, and over already
        if post.modern:
            link.modern_revision = post.revision
        task = self._keep(Exchange(link, post).begin())
        if post.ids:
            return
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.cancelled():
            raise ConnectionClosed("the transport was closed while the message was on its way")
        failure = task.result()
        if withdrawn is not None:
            withdrawn.abort()
        if failure is not None:
            if not link.swallow:
                raise failure
        elif post.method == "notifications/initialized" and link.revision is not None and self._listen:
            self._listen_anew(link)

    def _listen_anew(self, link: Link) -> None:
        if self._listener is not None:
            self._listener.cancel()
        self._listener = self._keep(asyncio.get_running_loop().create_task(listen_apart(link)))

    def _keep(self, task: asyncio.Task[Any]) -> asyncio.Task[Any]:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- the end ---------------------------------------------------------------------------------------------------

    async def _end(self, link: Link) -> None:
        try:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(list(self._tasks))
            if link.session is not None and not link.lost:
                await _say_farewell(link)
        finally:
            self._listener = None
            link.session = None
            try:
                await link.release()
            finally:
                self.emitter.emit("close")


class HTTPClientTransportOptions(TypedDict, total=False):
    """The options of :func:`create_http_client_transport`; :class:`HTTPClientTransport` tells what they do."""

    headers: Mapping[str, str] | None
    session: aiohttp.ClientSession | None
    timeout: float | None
    connect_timeout: float | None
    listen: bool
    reconnect: Reconnect
    swallow: bool
    max_event_bytes: int


def create_http_client_transport(url: str, **options: Unpack[HTTPClientTransportOptions]) -> HTTPClientTransport:
    """A :class:`HTTPClientTransport`, whose arguments these are."""
    return HTTPClientTransport(url, **options)


async def _say_farewell(link: Link) -> None:
    """End the session; a server need not have that, and nobody waits long for one that does not answer."""
    try:
        async with asyncio.timeout(_FAREWELL), link.delete() as response:
            logger.debug("DELETE %s: %s", link.url, response.status)
    except CONNECTION_ERRORS as error:
        logger.debug("could not end the session at %s: %r", link.url, error)


def _one_by_one(link: Link) -> bool:
    """Whether the revision in force has no batches."""
    revision = link.revision or link.modern_revision
    return revision is not None and revision not in BATCH_REVISIONS


def _checked(url: str) -> str:
    try:
        parts = URL(url)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{url!r} is no address: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.host:
        raise UsageError(f"{url!r} is no address of an HTTP server; give http://host:port/path or https://...")
    return url
