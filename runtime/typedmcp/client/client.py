"""The client: one connection to one server, over any transport.

Rules:
- Ids are 1, 2, 3, ...; an answer finds its request by id, whatever the order of answers.
- Every request has a deadline.  When it passes, or the caller gives up, the server is told (`initialize` apart) and a
  late answer is of no effect.
- What is no answer to a request is emitted as ``notification``: notifications, requests of the server, late answers.
- What a server asks of the client goes to the functions given for it; see :mod:`typedmcp.client.callbacks`.
- A server's faults never end the client: they are emitted as ``error``, or raised by the call they belong to.
- ``connect`` and ``disconnect`` may be called from any task, any number of times.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Mapping
from typing import Any, TypeVar, Unpack

import msgspec
from msgspec import UNSET

from typedmcp.client.asked import Asked
from typedmcp.client.callbacks import Callbacks, Elicit, ElicitURL, ListRoots, Roots, Sample
from typedmcp.client.negotiation import DEFAULT_PROBE_TIMEOUT, Agreement, negotiate
from typedmcp.client.pending import Pending, PendingTable
from typedmcp.client.results import check_result, invalid_result, lost_request, unreadable_answer
from typedmcp.client.rounds import answered
from typedmcp.client.tools import RemoteTool, remote_tools
from typedmcp.client.values import value_of
from typedmcp.core.constants import (
    DEFAULT_MCP_CLIENT_NAME,
    DEFAULT_MCP_CLIENT_VERSION,
    DEFAULT_MCP_REQUEST_TIMEOUT,
)
from typedmcp.core.emitter import Emitter, ErrorHandler, Listener
from typedmcp.core.errors import (
    ConnectionClosed,
    InvalidResult,
    MessageError,
    NotConnected,
    RequestLost,
    RequestTimeout,
    TransportError,
    TypedMCPError,
    UnsupportedMethod,
    UsageError,
)
from typedmcp.core.jsonrpc import (
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    params_text,
)
from typedmcp.core.transport import ClientTransportInterface
from typedmcp_wire.client_stub import CallOptions, ClientStub
from typedmcp_wire.codec import decoder, to_builtins
from typedmcp_wire.methods import Method
from typedmcp_wire.revisions import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    HANDSHAKE_REVISIONS,
    PROGRESS_TOKEN_KEY,
    PROTOCOL_VERSION_KEY,
)
from typedmcp_wire.types.base import Implementation, ServerCapabilities
from typedmcp_wire.types.input import InputRequiredResult
from typedmcp_wire.types.lifecycle import CancelledNotificationParams, ProgressNotificationParams

logger = logging.getLogger("typedmcp")

P = TypeVar("P")
R = TypeVar("R")


class MCPClient(ClientStub):
    """Drives a remote server; the protocol's requests are its methods (see :class:`ClientStub`).

    Args:
        transport: The way to the server.
        name: How the client introduces itself.
        version: Its version.
        timeout: Seconds each request may take; None: no limit.
        protocol_version: Speak this revision and no other; by default the newest both sides know.
        probe_timeout: Seconds of silence after which a server counts as one of the handshake era.
        elicit: Answers a form a server wants filled in: gets its parameters, returns the values; None declines.
        elicit_url: Asks the user whether to open an address: True means that it was opened or will be.  Show the whole
            address, and open nothing unasked.
        sample: Answers a request to sample a model.
        sample_tools: Whether `sample` takes tools.
        roots: The folders (or ``file://`` URIs) a server may work in, or a function that returns them.
        on: Listeners for ``connect``, ``disconnect``, ``notification`` (a message) and ``error`` (an exception).
        error: Called with (exception, event) when a listener fails.
    """

    def __init__(
        self,
        *,
        transport: ClientTransportInterface,
        name: str | None = None,
        version: str | None = None,
        timeout: float | None = DEFAULT_MCP_REQUEST_TIMEOUT,
        protocol_version: str | None = None,
        probe_timeout: float | None = DEFAULT_PROBE_TIMEOUT,
        elicit: Elicit | None = None,
        elicit_url: ElicitURL | None = None,
        sample: Sample | None = None,
        sample_tools: bool = False,
        roots: Roots | ListRoots | None = None,
        on: Mapping[str, Listener] | None = None,
        error: ErrorHandler | None = None,
    ) -> None:
        self._emitter = Emitter(on, error)
        self._transport = transport
        self._info = Implementation(
            name=DEFAULT_MCP_CLIENT_NAME if name is None else name,
            version=DEFAULT_MCP_CLIENT_VERSION if version is None else version,
        )
        self._callbacks = Callbacks(
            elicit=elicit, elicit_url=elicit_url, sample=sample, sample_tools=sample_tools, roots=roots
        )
        self._asked = Asked(self._callbacks, self._send_soon, lambda error: self._emitter.emit("error", error))
        self._timeout = timeout
        self._pinned = protocol_version
        self._probe_timeout = probe_timeout
        self._pending = PendingTable()
        self._ids = itertools.count(1)
        self._agreement: Agreement | None = None
        self._opening: asyncio.Task[None] | None = None
        self._openers = 0
        self._closing: asyncio.Task[None] | None = None
        self._ended = False
        self._last_error: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        transport.emitter.on("message", self._received)
        transport.emitter.on("error", self._faulted)
        transport.emitter.on("close", self._closed)

    # -- what is known about the connection ------------------------------------------------------------------------

    @property
    def emitter(self) -> Emitter:
        """Emits ``connect``, ``disconnect``, ``notification`` and ``error``."""
        return self._emitter

    @property
    def transport(self) -> ClientTransportInterface:
        """The way to the server."""
        return self._transport

    @property
    def connected(self) -> bool:
        """Whether requests can be made."""
        return self._agreement is not None

    @property
    def protocol_version(self) -> str:
        """The revision agreed on.  Raises NotConnected before :meth:`connect`."""
        return self._agreed().revision

    @property
    def server_info(self) -> Implementation | None:
        """Who the server says it is."""
        return self._agreed().server_info

    @property
    def server_capabilities(self) -> ServerCapabilities:
        """What the server says it can do."""
        return self._agreed().capabilities

    @property
    def instructions(self) -> str | None:
        """How the server wants to be used, for a model."""
        return self._agreed().instructions

    def on(self, event: str, listener: Listener) -> None:
        """Call `listener` whenever `event` is emitted."""
        self._emitter.on(event, listener)

    # -- opening and closing ---------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Open the transport and agree with the server on a revision; does nothing when connected.

        Raises:
            TransportError: the transport cannot be opened, or ended at once.
            PeerError: the server refused, or no revision is common.
            RequestTimeout: it did not answer.
        """
        if self._agreement is not None:
            return
        if self._opening is None or self._opening.done():
            self._opening = asyncio.get_running_loop().create_task(self._open())
            self._opening.add_done_callback(_take_exception)
        opening = self._opening
        self._openers += 1
        try:
            await asyncio.wait([opening])
        except asyncio.CancelledError:
            # Others may want the connection still; when nobody does, nothing of it must stay.
            if self._openers == 1 and not opening.done():
                opening.cancel()
                await asyncio.wait([opening])
            raise
        finally:
            self._openers -= 1
        if opening.cancelled():
            raise ConnectionClosed("disconnected while connecting")
        opening.result()

    async def _open(self) -> None:
        if self._closing is not None:
            await asyncio.wait([self._closing])
        self._closing = None
        self._ended = False
        self._last_error = None
        self._asked.revision = None
        try:
            await self._transport.start()
            agreement = await negotiate(
                self._ask,
                info=self._info,
                capabilities=self._callbacks.capabilities,
                pinned=self._pinned,
                timeout=self._timeout,
                probe_timeout=self._probe_timeout,
            )
            self._asked.revision = agreement.revision
            if agreement.revision in HANDSHAKE_REVISIONS:
                await self._transport.send(JSONRPCRequest(method="notifications/initialized"))
            if self._ended:
                raise self._ending("the connection ended while connecting")
        except BaseException:
            await self._transport.close()
            raise
        self._agreement = agreement
        self._emitter.emit("connect")

    async def disconnect(self) -> None:
        """End the connection; outstanding requests fail.  Does nothing when it has ended."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
            self._closing.add_done_callback(_take_exception)
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
            await asyncio.wait([self._opening])
        was_connected = self._agreement is not None
        self._agreement = None
        self._pending.fail_all(lambda entry: ConnectionClosed(f"disconnected while waiting for {entry.method}"))
        try:
            await self._transport.close()
        finally:
            self._asked.close()
            for task in self._tasks:
                task.cancel()
            if was_connected:
                self._emitter.emit("disconnect")

    async def __aenter__(self) -> MCPClient:
        await self.connect()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.disconnect()

    # -- requests --------------------------------------------------------------------------------------------------

    async def request(self, method: Method[P, R], params: P, **options: Unpack[CallOptions]) -> R:
        """Send one request and return its result; the stub's methods end here.

        Raises:
            NotConnected: there is no connection.
            UnsupportedMethod: the revision agreed on has no such method.
            MCPError: the server answered with an error.
            InvalidResult: its result does not have the method's shape.
            RequestTimeout: it did not answer in time.
            ConnectionClosed: the connection ended first.
            RequestLost: the request or its answer did not get through.
        """
        revision = self._agreed().revision
        if not method.sent_by("client", revision):
            known = sorted(method.client)
            raise UnsupportedMethod(f"{revision} has no {method.name}; it is part of {', '.join(known) or 'none'}")
        result: Any = await self._exchange(revision, method, params, options, withdraw=method.cancellable)
        if isinstance(result, InputRequiredResult):
            if revision in HANDSHAKE_REVISIONS:
                raise InvalidResult(f"{method.name} was answered with a request for input, which {revision} has not")

            async def once(retry: Any) -> Any:
                return await self._exchange(revision, method, retry, options, withdraw=method.cancellable)

            result = await answered(once, method, params, result, self._callbacks)
        answer: R = result
        return answer

    async def _ask(self, revision: str, method: Method[Any, Any], params: Any, timeout: float | None) -> Any:
        """One request of the negotiation, before a revision is agreed on.

        It is never cancelled: `initialize` may not be, and a server that has not answered the probe may be one that
        takes nothing but a handshake.
        """
        return await self._exchange(revision, method, params, {"timeout": timeout}, withdraw=False)

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]) -> Any:
        """Run a tool and return its value.

        The value is the structured content; without one, the text read as JSON, or as it is.

        Raises:
            ToolError: the tool failed.  Everything :meth:`request` raises, too.
        """
        return value_of(await self.call_tool(name, dict(arguments or {}), **options))

    async def roots_changed(self) -> None:
        """Say that the function given as `roots` would now return others; at 2026-07-28 servers ask anew by themselves.

        Raises:
            UsageError: `roots` is no function, so that no change was announced.
        """
        declared = self._callbacks.capabilities.roots
        if declared is None or not declared.list_changed:
            raise UsageError("give roots= as a function, so that they can change")
        if self._agreed().revision in HANDSHAKE_REVISIONS:
            await self._transport.send(JSONRPCRequest(method="notifications/roots/list_changed"))

    async def tools(self) -> list[RemoteTool]:
        """The server's tools, all pages, each callable as if it were local."""
        return await remote_tools(self)

    async def _exchange(
        self, revision: str, method: Method[Any, Any], params: Any, options: CallOptions, *, withdraw: bool
    ) -> Any:
        on_progress = options.get("on_progress")
        entry = Pending(next(self._ids), method.name, on_progress)
        wants_progress = on_progress is not None or options.get("reset_on_progress", False)
        message = JSONRPCRequest(
            id=entry.id,
            method=method.name,
            params=self._enveloped(revision, params, options.get("meta"), entry.id if wants_progress else None),
        )
        self._pending.add(entry)
        try:
            raw = await self._wait(entry, message, options)
        except asyncio.CancelledError:
            if withdraw:
                self._withdraw(entry, "no longer needed")
            raise
        except RequestTimeout:
            if withdraw:
                self._withdraw(entry, "timed out")
                # The caller may send its next request at once: the withdrawal goes out before it.
                await asyncio.sleep(0)
            raise
        finally:
            self._pending.remove(entry)
        return check_result(self._decoded(method, raw, revision), method)

    async def _wait(self, entry: Pending, message: JSONRPCRequest, options: CallOptions) -> Any:
        """Send and wait; the time for sending counts."""
        seconds = options.get("timeout", self._timeout)
        longest = options.get("max_timeout")
        whole, scope = asyncio.timeout(longest), asyncio.timeout(seconds)
        try:
            async with whole, scope:
                if options.get("reset_on_progress") and seconds is not None:
                    entry.extend_by_progress(scope, seconds)
                await self._transport.send(message)
                return await entry.future
        except TimeoutError:
            if not (scope.expired() or whole.expired()):
                raise  # the operating system's, on the way out
            expired = seconds if scope.expired() else longest
            raise RequestTimeout(entry.method, expired or 0.0) from None

    def _enveloped(self, revision: str, params: Any, extra: Mapping[str, Any] | None, token: int | None) -> Any:
        """`params` with the ``_meta`` the revision and the options demand."""
        own = getattr(params, "meta", None)
        meta: dict[str, Any] = {**(own or {}), **(extra or {})}
        if token is not None:
            meta[PROGRESS_TOKEN_KEY] = token
        if revision not in HANDSHAKE_REVISIONS:
            meta[PROTOCOL_VERSION_KEY] = revision
            meta[CLIENT_CAPABILITIES_KEY] = self._callbacks.capabilities
            meta[CLIENT_INFO_KEY] = self._info
        if not meta:
            return params
        if isinstance(params, msgspec.Struct) and "meta" in params.__struct_fields__:
            return msgspec.structs.replace(params, meta=meta)
        return {**to_builtins(params), "_meta": meta}

    def _decoded(self, method: Method[Any, Any], raw: Any, revision: str) -> Any:
        text = params_text(raw)
        try:
            return decoder(method.result).decode(text)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise invalid_result(method, bytes(text), revision, error) from error

    def _withdraw(self, entry: Pending, reason: str) -> None:
        """Tell the server that a request is no longer wanted; nobody waits for the telling."""
        params = CancelledNotificationParams(request_id=entry.id, reason=reason)
        self._send_soon(JSONRPCRequest(method="notifications/cancelled", params=params))

    def _agreed(self) -> Agreement:
        if self._agreement is None:
            raise NotConnected("the client is not connected; call connect() first, or use `async with`")
        return self._agreement

    # -- messages from the server ----------------------------------------------------------------------------------

    def _received(self, message: JSONRPCMessage) -> None:
        self._last_error = None
        if isinstance(message, JSONRPCResponse):
            if not self._pending.settle(message):
                self._emitter.emit("notification", message)
            return
        if message.method == "notifications/progress":
            self._progressed(message)
        elif message.id is not UNSET:
            self._ask_back(message)
        elif message.method == "notifications/cancelled":
            self._asked.cancelled(message)
        self._emitter.emit("notification", message)

    def _progressed(self, message: JSONRPCRequest) -> None:
        try:
            report = decoder(ProgressNotificationParams).decode(params_text(message.params))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            self._emitter.emit("error", InvalidResult(f"a malformed notifications/progress: {error}"))
            return
        self._pending.progress(report.progress_token, report.progress, report.total, report.message)

    def _ask_back(self, request: JSONRPCRequest) -> None:
        """A request of the server; the modern era has none."""
        if self._asked.revision is not None and self._asked.revision not in HANDSHAKE_REVISIONS:
            error = InvalidResult(f"the server sent a request ({request.method}), which it may not")
            self._emitter.emit("error", error)
        else:
            self._asked.take(request)

    def _send_soon(self, message: JSONRPCMessage) -> None:
        async def send() -> None:
            try:
                await self._transport.send(message)
            except TypedMCPError as error:
                logger.debug("could not send %s: %s", type(message).__name__, error)
            except Exception as error:  # noqa: BLE001 - nobody awaits this task
                self._emitter.emit("error", error)

        task = asyncio.get_running_loop().create_task(send())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _faulted(self, error: BaseException) -> None:
        """A fault of the transport or of a message; one that carries a request's id is that request's failure."""
        if isinstance(error, RequestLost) and error.request_id is not None:
            if not self._pending.fail(error.request_id, lost_request(error)):
                logger.debug("lost a request that nobody waits for: %s", error)
            return
        self._last_error = error
        if isinstance(error, MessageError):
            request_id, failure = unreadable_answer(error)
            if self._pending.fail(request_id, failure):
                return
        self._emitter.emit("error", error)

    def _closed(self) -> None:
        """The transport has ended, of itself or by :meth:`disconnect`."""
        self._ended = True
        self._asked.close()
        self._pending.fail_all(lambda entry: self._ending(f"the connection ended while waiting for {entry.method}"))
        if self._agreement is not None and self._closing is None:
            self._agreement = None
            self._emitter.emit("disconnect")

    def _ending(self, text: str) -> ConnectionClosed:
        """The error for an end of the connection, with what the transport reported last as its cause."""
        cause = self._last_error if isinstance(self._last_error, (TransportError, OSError)) else None
        error = ConnectionClosed(f"{text}: {cause}" if cause else text)
        error.__cause__ = cause
        return error


def _take_exception(task: asyncio.Task[None]) -> None:
    """A task that failed while nobody waited for it any more is no news to the event loop."""
    if not task.cancelled():
        task.exception()
