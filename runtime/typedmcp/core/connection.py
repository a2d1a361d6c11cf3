"""A server's side of one message stream: requests in flight, their cancellation, and calls to the client.

Rules:
- A slow request never holds up another.  Notifications and requests begin in the order in which they came; see
  :mod:`typedmcp.core.running`.
- ``notifications/cancelled`` for a request in flight cancels its handler; nothing more is written for it.  For an
  unknown or finished request, or for ``initialize``, it does nothing.
- An id that is in flight already is refused with -32600; the first request goes on.
- When the stream ends, every task is cancelled and every outstanding call to the client fails.
- There is no IO here: messages come in by :meth:`Connection.receive`, text goes out by the `write` given.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from typedmcp.core.errors import ConnectionClosed, InvalidResult, MCPError, MessageError, RequestTimeout
from typedmcp.core.in_flight import Key, key_of, read_cancelled
from typedmcp.core.jsonrpc import (
    JSONRPCErrorData,
    JSONRPCRequest,
    JSONRPCResponse,
    decode_message,
    encode_message,
    encode_response,
    is_array,
    split_batch,
)
from typedmcp.core.running import Job, Runner, start_task
from typedmcp.core.transport import MCPServerInterface
from typedmcp_wire.codec import decoder
from typedmcp_wire.methods import Method
from typedmcp_wire.revisions import BATCH_REVISIONS, INTERNAL_ERROR, INVALID_REQUEST, NULL_ID_REVISIONS
from typedmcp_wire.types.base import ClientCapabilities, Implementation

logger = logging.getLogger("typedmcp")

DEFAULT_MAX_IN_FLIGHT = 1024


class Handshake(Struct, kw_only=True):
    """What `initialize` agreed on, kept for the life of a connection or session."""

    revision: str
    client_info: Implementation
    capabilities: ClientCapabilities
    log_level: str | None = None
    """The lowest level of log messages the client asked for; None: it has not asked."""
    initialized: bool = False


class Connection:
    """One client on a message stream.

    Args:
        server: Who serves the requests.
        write: Called with the text of each outgoing message, without a line end.
        max_in_flight: How many requests may run at once; one more is refused with -32603.
        principal: Who the client is, when something in front has established it.
        on_fault: Called with what `server` raised instead of answering; the client gets an internal error.
    """

    def __init__(
        self,
        server: MCPServerInterface,
        write: Callable[[bytes], None],
        *,
        max_in_flight: int = DEFAULT_MAX_IN_FLIGHT,
        principal: object = None,
        on_fault: Callable[[Exception], object] | None = None,
    ) -> None:
        self.handshake: Handshake | None = None
        self.principal = principal
        self._server = server
        revisions: tuple[str, ...] = getattr(server, "protocol_versions", ())
        self._null_id = bool(revisions) and NULL_ID_REVISIONS.issuperset(revisions)
        self._write = write
        self._max_in_flight = max_in_flight
        self._on_fault = on_fault
        self._in_flight: dict[Key, Job] = {}
        self._cancelled: set[Key] = set()
        self._initializing: Job | None = None
        self._held: list[MessageError] = []
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._ids = itertools.count(1)
        self._loop = asyncio.get_running_loop()
        self._runner = Runner(self._loop)
        self._batches: set[asyncio.Task[None]] = set()
        self.closed = False

    @property
    def waiting(self) -> bool:
        """Whether something received has yet to begin."""
        return self._runner.waiting

    # -- messages from the client ----------------------------------------------------------------------------------

    def receive(self, message: JSONRPCRequest | JSONRPCResponse) -> None:
        """Take one decoded message."""
        if self.closed:
            return
        if isinstance(message, JSONRPCResponse):
            self._answered(message)
        elif message.id is UNSET:
            self._notified(message)
        else:
            self._requested(message)

    def receive_malformed(self, error: MessageError) -> None:
        """Take what could not be decoded: answer it when its sender may be waiting for an answer.

        A batch comes here too; it is served when the revision agreed on has batches.
        """
        if self.closed:
            return
        array = is_array(error.frame)
        if array and self._initializing is not None:
            # Sent right behind the handshake: only its outcome tells whether this is a batch.
            self._held.append(error)
        elif array and self.handshake is not None and self.handshake.revision in BATCH_REVISIONS:
            self._batch(error.frame)
        elif error.answer:
            self._write(encode_message(self.refusal(error)))
        else:
            logger.warning("dropped a message that is neither valid nor answerable: %s", error)

    def refusal(self, error: MessageError) -> JSONRPCResponse:
        """The error response to an unreadable message."""
        handshake = self.handshake
        null_id = self._null_id if handshake is None else handshake.revision in NULL_ID_REVISIONS
        no_id = None if null_id else UNSET
        data = JSONRPCErrorData(code=error.code, message=error.message)
        return JSONRPCResponse(id=no_id if error.id is None else error.id, error=data)

    def _requested(self, request: JSONRPCRequest) -> None:
        request_id = request.id
        assert not isinstance(request_id, msgspec.UnsetType)
        key = (type(request_id), request_id)
        if key in self._in_flight or len(self._in_flight) >= self._max_in_flight:
            self._write(encode_message(self._not_now(key)))
        else:
            self._in_flight[key] = job = Job(self._serve, key, request)
            if request.method == "initialize":
                self._initializing = job
            self._runner.start(job)

    def _not_now(self, key: Key) -> JSONRPCResponse:
        """The refusal of a request while others are in flight."""
        if key in self._in_flight:
            return _failed(key[1], INVALID_REQUEST, "A request with this id is still in flight.")
        return _failed(key[1], INTERNAL_ERROR, "Too many requests in flight.", {"limit": self._max_in_flight})

    async def _serve(self, key: Key, request: JSONRPCRequest) -> None:
        try:
            response = await self._server.dispatch(request, self)
            if response is not None and key not in self._cancelled and not self.closed:
                self._write(encode_response(response))
        except Exception as error:  # noqa: BLE001 - MCPServer answers its own faults; other servers may not
            self._faulted(error)
            if key not in self._cancelled and not self.closed:
                self._write(encode_message(_failed(key[1], INTERNAL_ERROR, "Internal error")))
        finally:
            self._done(key)

    def _faulted(self, error: Exception) -> None:
        logger.error("the server failed without an answer", exc_info=error)
        if self._on_fault is not None:
            self._on_fault(error)

    def _done(self, key: Key) -> None:
        job = self._in_flight.pop(key, None)
        self._cancelled.discard(key)
        if job is not None and job is self._initializing:
            self._initializing = None
            held, self._held = self._held, []
            for error in held:
                self._loop.call_soon(self.receive_malformed, error)

    def _never_ran(self, key: Key, job: Job) -> None:
        """Forget a job cancelled before its first step, which never reaches its own `finally`."""
        if self._in_flight.get(key) is job:
            self._done(key)

    def _notified(self, notification: JSONRPCRequest) -> None:
        if notification.method == "notifications/cancelled":
            self._cancel(notification)
        self._runner.start(Job(self._take_note, notification))

    async def _take_note(self, notification: JSONRPCRequest) -> None:
        try:
            await self._server.dispatch(notification, self)
        except Exception as error:  # noqa: BLE001 - a notification has no answer that could tell
            self._faulted(error)

    def _cancel(self, notification: JSONRPCRequest) -> None:
        params = read_cancelled(notification)
        if params is None:
            return
        key = key_of(params.request_id) if params.request_id is not None else None
        job = self._in_flight.get(key) if key else None
        if key is None or job is None or job is self._initializing:
            return
        logger.info("request %r cancelled by the client: %s", params.request_id, params.reason or "no reason given")
        if job.task is None:
            self._runner.withdraw(job)
            self._done(key)
        else:
            self._cancelled.add(key)
            job.task.add_done_callback(lambda _: self._never_ran(key, job))
            job.task.cancel()

    def is_cancelled(self, request_id: int | str) -> bool:
        """Whether the client has withdrawn a request that is still winding down."""
        return key_of(request_id) in self._cancelled

    # -- batches (2025-03-26) --------------------------------------------------------------------------------------

    def _batch(self, frame: bytes) -> None:
        try:
            members = split_batch(frame)
        except MessageError as error:
            self._write(encode_message(self.refusal(error)))
            return
        # Members begin here, in order, before the next message is taken.
        parts = [self._take_member(member) for member in members]
        task = start_task(self._answer_batch(parts), self._loop)
        if not task.done():
            self._batches.add(task)
            task.add_done_callback(self._batches.discard)

    def _take_member(self, member: bytes) -> JSONRPCResponse | asyncio.Task[JSONRPCResponse | None] | None:
        """The answer to a member, the task that will have it, or None when there is none."""
        try:
            message = decode_message(member)
        except MessageError as error:
            return self.refusal(error) if error.answer else None
        if isinstance(message, JSONRPCResponse) or message.id is UNSET:
            self.receive(message)
            return None
        assert not isinstance(message.id, msgspec.UnsetType)
        if message.method == "initialize":
            return _failed(message.id, INVALID_REQUEST, "A batch never holds initialize.")
        key = key_of(message.id)
        if key in self._in_flight or len(self._in_flight) >= self._max_in_flight:
            return self._not_now(key)
        self._in_flight[key] = job = Job(self._serve, key, message)
        job.task = task = start_task(self._serve_member(key, message), self._loop)
        return task

    async def _serve_member(self, key: Key, request: JSONRPCRequest) -> JSONRPCResponse | None:
        try:
            response = await self._server.dispatch(request, self)
            return None if key in self._cancelled else response
        except Exception as error:  # noqa: BLE001 - as in _serve
            self._faulted(error)
            return None if key in self._cancelled else _failed(key[1], INTERNAL_ERROR, "Internal error")
        finally:
            self._done(key)

    async def _answer_batch(self, parts: list[JSONRPCResponse | asyncio.Task[JSONRPCResponse | None] | None]) -> None:
        """Write the answers of a batch as one array; members that cannot be read have their error in it."""
        tasks = [part for part in parts if isinstance(part, asyncio.Task)]
        if tasks:
            await asyncio.wait(tasks)
        ended = [
            part if not isinstance(part, asyncio.Task) else None if part.cancelled() else part.result()
            for part in parts
        ]
        answers = [encode_response(answer) for answer in ended if answer is not None]
        if answers and not self.closed:
            self._write(b"[" + b",".join(answers) + b"]")

    # -- messages to the client ------------------------------------------------------------------------------------

    def notify(self, method: str, params: object = UNSET) -> None:
        """Send a notification."""
        if not self.closed:
            self._write(encode_message(JSONRPCRequest(method=method, params=params)))

    async def request(self, method: Method[Any, Any], params: object, *, timeout: float | None = None) -> Any:
        """Call the client and return its decoded result.

        Raises:
            MCPError: the client answered with an error.
            InvalidResult: its result is not what the method's must be.
            RequestTimeout: it did not answer within `timeout` seconds.
            ConnectionClosed: the stream ended first.
        """
        if self.closed:
            raise ConnectionClosed("the client is gone")
        number = next(self._ids)
        future: asyncio.Future[Any] = self._loop.create_future()
        self._calls[number] = future
        try:
            self._write(encode_message(JSONRPCRequest(id=number, method=method.name, params=params)))
            async with asyncio.timeout(timeout):
                raw = await future
        except TimeoutError:
            self.notify("notifications/cancelled", {"requestId": number, "reason": "timed out"})
            raise RequestTimeout(method.name, timeout or 0.0) from None
        except asyncio.CancelledError:
            self.notify("notifications/cancelled", {"requestId": number, "reason": "no longer needed"})
            raise
        finally:
            self._calls.pop(number, None)
        try:
            return decoder(method.result).decode(raw)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise InvalidResult(f"the client's answer to {method.name} has the wrong shape: {error}") from error

    def _answered(self, response: JSONRPCResponse) -> None:
        number = response.id
        future = self._calls.get(number) if type(number) is int else None
        if future is None or future.done():
            logger.info("dropped a response nobody waits for: id %r", number)
        elif isinstance(response.error, JSONRPCErrorData):
            error = response.error
            future.set_exception(MCPError(error.code, error.message, error.data))
        else:
            future.set_result(response.result)

    # -- the end ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """The stream has ended: cancel what runs, fail what waits."""
        if self.closed:
            return
        self.closed = True
        self._runner.cancel()
        for task in self._tasks() - self._runner.tasks:
            task.cancel()
        for future in self._calls.values():
            if not future.done():
                future.set_exception(ConnectionClosed("the client closed the connection"))

    async def wait_closed(self, timeout: float | None = None) -> None:
        """Wait until the cancelled handlers have ended, at most `timeout` seconds."""
        tasks = self._tasks()
        if tasks:
            await asyncio.wait(tasks, timeout=timeout)

    def _tasks(self) -> set[asyncio.Task[Any]]:
        return {*self._runner.tasks, *self._batches, *(job.task for job in self._in_flight.values() if job.task)}


def _failed(request_id: int | str, code: int, message: str, data: Any = UNSET) -> JSONRPCResponse:
    return JSONRPCResponse(id=request_id, error=JSONRPCErrorData(code=code, message=message, data=data))
