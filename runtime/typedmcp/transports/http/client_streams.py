"""Event streams as an HTTP client reads them, over as many connections as it takes.

Rules:
- A stream of the handshake era that ends is opened again by a GET with ``Last-Event-ID``, after the wait the server
  asks for by ``retry``, or a growing one.
- A connection was of use when it brought a message, when it lasted ten seconds, or when the server gave a new id and
  said by ``retry`` that it wants to be polled.  After several in a row that were of none the stream is given up,
  however politely they ended.
- Only status 200 with ``text/event-stream`` is a stream; everything else means that there is none.  Where there was one
  before, 429, 500, 502, 503 and 504 count as an attempt in vain.
- A stream has no time limit.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TypeAlias

import aiohttp

from typedmcp.core.errors import MessageError, RequestLost, SessionLost
from typedmcp.transports.http.client_link import CONNECTION_ERRORS, Link, essence, logger, now
from typedmcp.transports.http.negotiation import EVENT_STREAM
from typedmcp.transports.sse import EventParser, Item

_IN_VAIN = (429, 500, 502, 503, 504)
_OF_USE_SECONDS = 10.0

Take: TypeAlias = Callable[[Item], bool]
"""Delivers what an event carries; True when it was a message.  Raises MessageError after reporting one that is bad."""


class EventStream:
    """One stream, whatever connections it takes.

    Attributes:
        last_event_id: What to resume after; empty when the server gave no ids.
        cause: Why the latest connection ended; None when it ended in order.
    """

    def __init__(self, link: Link, take: Take) -> None:
        self.last_event_id = ""
        self.cause: Exception | None = None
        self._link = link
        self._take = take
        self._retry: int | None = None
        self._in_vain = 0

    async def read(self, response: aiohttp.ClientResponse) -> None:
        """Deliver what comes until this connection ends, one way or the other."""
        parser = EventParser(self._link.limit, self.last_event_id)
        began, heard = now(), False
        self.cause = None
        try:
            async for chunk in response.content.iter_any():
                for item in parser.feed(chunk):
                    heard = self._taken(item) or heard
        except CONNECTION_ERRORS as error:
            self.cause = error
        polled = parser.retry is not None and parser.last_event_id != self.last_event_id
        self.last_event_id = parser.last_event_id
        self._retry = self._retry if parser.retry is None else parser.retry
        self._in_vain = 0 if heard or polled or now() - began > _OF_USE_SECONDS else self._in_vain + 1

    def _taken(self, item: Item) -> bool:
        try:
            return self._take(item)
        except MessageError:
            return False

    async def pause(self) -> bool:
        """Wait as long as is due before the next connection; False when there should be none."""
        settings = self._link.reconnect
        told = None if self._retry is None else self._retry / 1000
        if self._in_vain > settings.attempts or (told is not None and told > settings.longest_retry):
            return False
        delay = settings.delay if told is None else told
        if self._in_vain > 1:
            # A power beyond any limit would be no float any more.
            delay = max(delay, min(settings.longest, settings.delay * 2.0 ** min(self._in_vain - 1, 64)))
        await asyncio.sleep(delay * (1 + random.random() / 4))  # noqa: S311 - nothing secret about it
        return True

    async def connect(self, *, anew: bool = False) -> None:
        """Open a connection and read it to its end.

        Args:
            anew: The stream has not been open before, so there may be none.

        Raises:
            SessionLost: the server does not know the session.
            RequestLost: it does not offer the stream.
        """
        link = self._link
        session = link.session
        try:
            async with link.get(self.last_event_id) as response:
                if response.status == 200 and essence(response) == EVENT_STREAM:
                    await self.read(response)
                    return
                refusal = await link.refusal(response, "GET")
        except CONNECTION_ERRORS as error:
            self.cause = error
            self._in_vain += 1
            return
        if refusal.status == 404 and session is not None and not anew:
            raise SessionLost(str(refusal), status=404, url=link.url)
        if anew or refusal.status not in _IN_VAIN:
            raise refusal
        self.cause = refusal
        self._in_vain += 1


async def listen(link: Link) -> None:
    """Read the stream for what belongs to no call, as long as the server offers one."""
    stream = EventStream(link, link.take)
    session = link.session
    try:
        await stream.connect(anew=True)
    except RequestLost as refusal:
        logger.debug("no event stream apart from the calls: %s", refusal)
        return
    try:
        while await stream.pause():
            await stream.connect()
    except RequestLost as refusal:
        stream.cause = refusal
        if isinstance(refusal, SessionLost) and link.session == session:
            link.lost = True
    error: RequestLost = RequestLost(
        f"GET {link.url}: the event stream is given up ({stream.cause or 'it ends at once'}); what the server sends"
        " apart from the calls does not arrive any more",
        url=link.url,
    )
    if isinstance(stream.cause, SessionLost):
        error = stream.cause
    else:
        error.__cause__ = stream.cause
    link.emitter.emit("error", error)
