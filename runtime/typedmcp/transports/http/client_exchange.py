"""One POST of an HTTP client and everything that comes of it, until its requests have their answers.

Rules:
- The reply to a request is JSON or an event stream.  What else comes, nothing included, loses the request: the error
  names it, with the status and the beginning of the body.  A reply to anything else is success by its status alone.
- A JSON-RPC message in the body of an error status is delivered like any other.  An error without the request's id is
  the cause of the request's loss.
- 404 to a POST that named a session means that the session is lost, whatever the body says.
- A stream that ends without the answer is resumed in the handshake era, when it gave an id to resume after; otherwise,
  and always in the modern era, the request is lost at once.
- After the answer a stream has five seconds to end by itself.
"""

from __future__ import annotations

import asyncio

import aiohttp

from typedmcp.core.errors import MCPError, MessageError, RequestLost, SessionLost
from typedmcp.core.jsonrpc import JSONRPCErrorData, JSONRPCMessage, JSONRPCResponse, RequestId
from typedmcp.transports.http.client_link import CONNECTION_ERRORS, Link, essence, now, read_body
from typedmcp.transports.http.client_message import Outgoing, decode_reply, session_of
from typedmcp.transports.http.client_streams import EventStream
from typedmcp.transports.http.negotiation import EVENT_STREAM, JSON
from typedmcp.transports.sse import Item

_AFTER_ANSWER = 5.0


class Exchange:
    """A POST.

    Args:
        link: The connection it belongs to.
        post: What to send.
    """

    def __init__(self, link: Link, post: Outgoing) -> None:
        self._link = link
        self._post = post
        self._waiting: set[RequestId] = set(post.ids)
        self._limit: asyncio.Timeout | None = None
        self._task: asyncio.Task[RequestLost | None] | None = None
        self._unreadable: MessageError | None = None
        self._verdict: MCPError | None = None
        self._failure: RequestLost | None = None

    @property
    def modern(self) -> bool:
        """Whether it is of the modern era, where giving it up is telling the server."""
        return self._post.modern

    def begin(self) -> asyncio.Task[RequestLost | None]:
        """Do it all in a task of its own; its result is why it failed, after that has been emitted."""
        for request_id in self._post.ids:
            self._link.exchanges[request_id] = self
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(lambda _: self._forget())
        return self._task

    def abort(self) -> None:
        """Nobody waits any more: close the connection."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()

    def answered(self, response: JSONRPCResponse) -> None:
        """One of the requests has its answer, on whatever stream."""
        if isinstance(response.id, (int, str)):
            self._waiting.discard(response.id)
        if self._post.opens:
            self._link.agree(response.result)
        if not self._waiting and self._limit is not None and not self._limit.expired():
            self._limit.reschedule(now() + _AFTER_ANSWER)

    def _forget(self) -> None:
        exchanges = self._link.exchanges
        for request_id in self._post.ids:
            if exchanges.get(request_id) is self:
                del exchanges[request_id]

    async def _run(self) -> RequestLost | None:
        url = self._link.url
        try:
            stream = await self._send()
            if stream is not None:
                await self._follow(stream)
        except RequestLost as error:
            self._fail(error)
        except CONNECTION_ERRORS as error:
            self._fail(_caused(RequestLost(f"POST {url} failed: {_told(error)}", url=url), error))
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody may be left waiting for it
            self._fail(_caused(RequestLost(f"POST {url} failed: {error!r}", url=url), error))
        return self._failure

    def _fail(self, error: RequestLost) -> None:
        """Tell of a failure, once for each request that waits, or once when it was no request."""
        if not self._waiting and self._post.ids:
            return
        self._failure = error
        errors = [error]
        if not self._link.swallow:
            errors = [_about(error, request_id) for request_id in self._waiting] or errors
        self._waiting.clear()
        for each in errors:
            self._link.emitter.emit("error", each)

    # -- the reply -------------------------------------------------------------------------------------------------

    async def _send(self) -> EventStream | None:
        """POST, and take the reply; returns a stream that has ended without the answer."""
        seconds = self._link.timeout
        session = None if self._post.modern or self._post.opens else self._link.session
        try:
            async with asyncio.timeout(seconds) as limit, self._link.post(self._post) as response:
                if not 200 <= response.status < 300:
                    await self._refused(response, session)
                    return None
                self._capture(response)
                if not self._post.ids:
                    return None
                self._limit = limit
                if essence(response) != EVENT_STREAM:
                    await self._body(response)
                    return None
                limit.reschedule(None)
                stream = EventStream(self._link, self._take)
                await stream.read(response)
                return stream
        except TimeoutError as error:
            if not self._waiting and self._post.ids:
                return None  # the stream did not end in time after the answer
            if seconds is None or isinstance(error, aiohttp.ServerTimeoutError):
                raise
            text = f"POST {self._link.url}: no reply within {seconds:g} s; pass a larger timeout= to wait longer"
            raise RequestLost(text, url=self._link.url) from error
        finally:
            self._limit = None

    def _capture(self, response: aiohttp.ClientResponse) -> None:
        """Take the session id of a response, when this is one that gives it."""
        link = self._link
        if self._post.modern or not (self._post.opens or link.session is None):
            return
        try:
            link.session = session_of(response.headers)
        except MessageError as error:
            raise RequestLost(error.message, status=response.status, url=link.url) from error
        if self._post.opens:
            link.revision = None
            link.lost = False

    async def _body(self, response: aiohttp.ClientResponse) -> None:
        body = await read_body(response, self._link.limit)
        if essence(response) == JSON or body.lstrip().startswith(b"{"):
            self._unreadable = self._deliver(body)
        if self._waiting:
            raise await self._unanswered(response, body)

    async def _refused(self, response: aiohttp.ClientResponse, session: str | None) -> None:
        """An error status, with or without a message in its body."""
        body = b""
        try:
            async with asyncio.timeout(_AFTER_ANSWER):
                body = await read_body(response, self._link.limit, cut=True)
        except CONNECTION_ERRORS:
            pass  # the status says enough
        if response.status == 404 and session is not None:
            if self._link.session == session:
                self._link.lost = True
            refusal = await self._link.refusal(response, "POST", body)
            self._fail(SessionLost(str(refusal), status=404, url=self._link.url))
        if body.lstrip().startswith(b"{"):
            self._deliver(body)
        if self._waiting or not (self._post.ids or self._failure):
            raise await self._unanswered(response, body)

    async def _unanswered(self, response: aiohttp.ClientResponse, body: bytes) -> RequestLost:
        error = await self._link.refusal(response, "POST", body)
        return _caused(error, self._verdict or self._unreadable)

    def _deliver(self, body: bytes) -> MessageError | None:
        """Deliver the messages of a JSON body; returns what is wrong when there are none."""
        if not body.strip():
            return None
        try:
            messages = decode_reply(body, self._link.revision)
        except MessageError as error:
            return error
        for message in messages:
            self._note_verdict(message)
            self._link.deliver(message)
        return None

    def _note_verdict(self, message: JSONRPCMessage) -> None:
        """An error that names no request in flight is about this POST all the same."""
        if isinstance(message, JSONRPCResponse) and message.id not in self._link.exchanges:
            error = message.error
            if isinstance(error, JSONRPCErrorData):
                self._verdict = MCPError(error.code, error.message, error.data)

    # -- the stream ------------------------------------------------------------------------------------------------

    def _take(self, item: Item) -> bool:
        try:
            delivered = self._link.take(item)
        except MessageError as error:
            self._unreadable = error
            raise
        if delivered:
            self._unreadable = None  # the answer comes last, so that was none
        return delivered

    async def _follow(self, stream: EventStream) -> None:
        """Resume a stream until the requests have their answers, or there is no hope left."""
        while self._waiting and not self._post.modern and stream.last_event_id and self._unreadable is None:
            if not await stream.pause():
                break
            try:
                async with asyncio.timeout(None) as self._limit:
                    if self._waiting:
                        await stream.connect()
            except TimeoutError:
                return  # it did not end in time after the answer
            finally:
                self._limit = None
        if self._waiting:
            why = "broke off" if stream.cause is not None else "ended"
            text = f"POST {self._link.url}: the event stream {why} before the answer came"
            if stream.cause is not None:
                text += f": {_told(stream.cause)}"
            raise _caused(RequestLost(text, url=self._link.url), self._unreadable or stream.cause)


def _caused(error: RequestLost, cause: BaseException | None) -> RequestLost:
    error.__cause__ = cause
    return error


def _about(error: RequestLost, request_id: RequestId) -> RequestLost:
    """The error, for one request."""
    told = type(error)(str(error), request_id, status=error.status, url=error.url)
    return _caused(told, error.__cause__)


def _told(error: BaseException) -> str:
    """What an exception says; some say nothing."""
    return str(error) or type(error).__name__
