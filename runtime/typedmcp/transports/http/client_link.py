"""What all requests of an HTTP client transport share: the address, the session, the way back to the listeners."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import aiohttp
import msgspec
from msgspec import Struct

from typedmcp.core.emitter import Emitter
from typedmcp.core.errors import MessageError, RequestLost
from typedmcp.core.jsonrpc import JSONRPCMessage, JSONRPCResponse, RequestId
from typedmcp.transports.http.client_message import Outgoing, decode_reply, post_headers, stream_headers
from typedmcp.transports.sse import MESSAGE_EVENTS, EventTooLong, Item
from typedmcp_wire.revisions import HANDSHAKE_REVISIONS

logger = logging.getLogger("typedmcp")

CONNECTION_ERRORS: Final = (aiohttp.ClientError, OSError, TimeoutError, ValueError)
"""What aiohttp raises when a request fails; ValueError for a header it cannot send."""

Opening: TypeAlias = AbstractAsyncContextManager[aiohttp.ClientResponse]
"""A request to be entered by ``async with``."""

_EXCERPT = 200
_ONE_PIECE = 1024 * 1024


class Reconnect(NamedTuple):
    """How event streams are opened again.

    The first wait is `delay`, each further one in vain twice as long up to `longest`, all a little longer by chance;
    what the server asks for (``retry``) is waited at least.
    """

    attempts: int = 5
    """How often in a row a stream may end without having been of use before it is given up."""
    delay: float = 0.5
    """Seconds before the first attempt, when the server does not say."""
    longest: float = 30.0
    """The longest wait in seconds, when the server does not say."""
    longest_retry: float = 300.0
    """The longest wait in seconds the server may ask for; a stream that asks for more is given up."""


class Awaiting(Protocol):
    """A POST whose requests wait for their answers."""

    def answered(self, response: JSONRPCResponse) -> None:
        """One of them has got it, on whatever stream."""
        ...

    def abort(self) -> None:
        """Nobody waits for it any more."""
        ...

    @property
    def modern(self) -> bool:
        """Whether giving it up is telling the server."""
        ...


class _Agreed(Struct):
    protocol_version: str = msgspec.field(name="protocolVersion")


class Link:
    """The connection, as far as HTTP has one.

    Attributes:
        session: The session id, once the server has given one.
        revision: The revision `initialize` has agreed on.
        modern_revision: The revision of the last request of the modern era.
        exchanges: The requests that wait for an answer, by id.
        lost: Whether the server has forgotten the session.
    """

    def __init__(
        self,
        url: str,
        emitter: Emitter,
        *,
        headers: Mapping[str, str],
        http: aiohttp.ClientSession | None,
        timeout: float | None,
        connect_timeout: float | None,
        reconnect: Reconnect,
        limit: int,
        swallow: bool,
    ) -> None:
        self.url = url
        self.emitter = emitter
        self.timeout = timeout
        self.reconnect = reconnect
        self.limit = limit
        self.swallow = swallow
        self.session: str | None = None
        self.revision: str | None = None
        self.modern_revision: str | None = None
        self.lost = False
        self.exchanges: dict[RequestId, Awaiting] = {}
        self._headers = dict(headers)
        self._given = http
        self._owned: aiohttp.ClientSession | None = None
        # A pool that is full delays a request of an injected session; that is no failure to connect.
        whole = connect_timeout if http is None else None
        self._limits = aiohttp.ClientTimeout(total=None, connect=whole, sock_connect=connect_timeout, sock_read=None)

    # -- requests --------------------------------------------------------------------------------------------------

    def post(self, post: Outgoing) -> Opening:
        """POST a message."""
        revision = self.revision or self.modern_revision
        headers = post_headers(post, self._headers, self.session, revision)
        return self._request("POST", headers, post.body)

    def get(self, last_event_id: str) -> Opening:
        """Open an event stream, or resume one."""
        return self._request("GET", stream_headers(self._headers, self.session, self.revision, last_event_id))

    def delete(self) -> Opening:
        """End the session."""
        return self._request("DELETE", stream_headers(self._headers, self.session, self.revision))

    def _request(self, verb: str, headers: Any, body: bytes | None = None) -> Opening:
        session = self._given
        if session is None:
            if self._owned is None:
                # Every open call holds a connection, and its answer may depend on another one getting through.
                self._owned = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
            session = self._owned
        return session.request(
            verb,
            self.url,
            # aiohttp writes bytes as one piece, and warns when they are many; a stream goes out piece by piece.
            data=io.BytesIO(body) if body is not None and len(body) > _ONE_PIECE else body,
            headers=headers,
            timeout=self._limits,
            allow_redirects=False,
            raise_for_status=False,
        )

    async def release(self) -> None:
        """Close the connections, unless they are somebody else's."""
        owned, self._owned = self._owned, None
        if owned is not None:
            await owned.close()

    # -- what comes back -------------------------------------------------------------------------------------------

    def deliver(self, message: JSONRPCMessage) -> None:
        """Emit a message, after whoever waits for it knows."""
        if isinstance(message, JSONRPCResponse) and isinstance(message.id, (int, str)):
            exchange = self.exchanges.get(message.id)
            if exchange is not None:
                exchange.answered(message)
        self.emitter.emit("message", message)

    def take(self, item: Item) -> bool:
        """Deliver what an event carries, or report what is wrong with it; True when it was a message.

        Raises:
            MessageError: what was wrong with it, after it has been reported.
        """
        if isinstance(item, EventTooLong):
            self.emitter.emit("error", item)
            raise item
        if item.event not in MESSAGE_EVENTS or not item.data:
            return False
        try:
            messages = decode_reply(item.data, self.revision)
        except MessageError as error:
            self.emitter.emit("error", error)
            raise
        for message in messages:
            self.deliver(message)
        return True

    def agree(self, result: Any) -> None:
        """Note the revision in the result of `initialize`."""
        try:
            revision = msgspec.json.decode(result, type=_Agreed).protocol_version
        except (msgspec.DecodeError, TypeError):  # of the wrong shape, or an error has come instead
            return
        self.revision = revision if revision in HANDSHAKE_REVISIONS else None

    async def refusal(self, response: aiohttp.ClientResponse, doing: str, body: bytes | None = None) -> RequestLost:
        """What a response says that is no answer, as an error."""
        if body is None:
            body = await read_body(response, _EXCERPT * 4, cut=True)
        shown = " ".join(body.decode("utf-8", "replace").split())
        shown = shown if len(shown) <= _EXCERPT else shown[:_EXCERPT] + "…"
        where = response.headers.get("Location") if 300 <= response.status < 400 else None
        text = f"{doing} {self.url}: the server answered {response.status} {response.reason or ''}".rstrip()
        if where:
            text += f" and points to {where}; redirects are not followed, use that address"
        elif shown:
            text += f": {shown}"
        return RequestLost(text, status=response.status, url=self.url)


async def read_body(response: aiohttp.ClientResponse, limit: int, *, cut: bool = False) -> bytes:
    """The body of a response.

    Raises:
        ValueError: it is longer than `limit` bytes; not when it may be `cut` there.
    """
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > limit:
            if cut:
                break
            raise ValueError(f"the reply is longer than {limit} bytes")
    return b"".join(parts)[:limit].removeprefix(b"\xef\xbb\xbf")


def essence(response: aiohttp.ClientResponse) -> str:
    """The media type of a response, without parameters, in lower case."""
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def now() -> float:
    """The clock of the running loop."""
    return asyncio.get_running_loop().time()
