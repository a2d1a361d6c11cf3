"""Who sent a POST, and the way back to them while it is served."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import msgspec
from msgspec import UNSET

from typedmcp.core.connection import Handshake
from typedmcp.core.errors import ConnectionClosed, InvalidResult, MCPError, RequestTimeout, UsageError
from typedmcp.core.jsonrpc import JSONRPCErrorData, JSONRPCRequest, JSONRPCResponse, encode_message
from typedmcp_wire.codec import decoder
from typedmcp_wire.methods import Method
from typedmcp_wire.types.base import ClientCapabilities, Implementation

_UNKNOWN = Implementation(name="unknown", version="")
_NO_CAPABILITIES = ClientCapabilities()

Send = Callable[[bytes], None]
"""Takes the text of one message."""


class HandshakeHolder(Protocol):
    """What remembers a handshake."""

    @property
    def handshake(self) -> Handshake | None:
        """What was agreed."""
        ...

    @handshake.setter
    def handshake(self, value: Handshake | None) -> None: ...


@runtime_checkable
class StreamCloser(Protocol):
    """A session whose streams can be closed before they are complete."""

    def close_stream(self, name: str, retry_ms: int | None) -> bool:
        """Close what a request's messages are written to now; False when the client could not come back for more."""
        ...


class Nobody:
    """Remembers no handshake: the modern era has none, and a first `initialize` comes before it."""

    handshake: Handshake | None = None


class Stateless:
    """The handshake of a client without a session: what its version header says, for one request.

    Args:
        revision: The revision of the header, or the one assumed without it.
    """

    def __init__(self, revision: str) -> None:
        self.handshake: Handshake | None = Handshake(
            revision=revision, client_info=_UNKNOWN, capabilities=_NO_CAPABILITIES, initialized=True
        )


class Calls:
    """Requests of the server to the client of one session, and the answers that come in later POSTs."""

    __slots__ = ("_closed", "_ids", "_waiting")

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._closed = False

    async def make(self, send: Send, method: Method[Any, Any], params: object, timeout: float | None) -> Any:
        """Send one request and wait for its answer.

        Raises:
            MCPError: the client answered with an error.
            InvalidResult: its result is not what the method's must be.
            RequestTimeout: it did not answer in time.
            ConnectionClosed: the session ended first.
        """
        if self._closed:
            raise ConnectionClosed("the session has ended")
        number = f"server-{next(self._ids)}"
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            send(encode_message(JSONRPCRequest(id=number, method=method.name, params=params)))
            async with asyncio.timeout(timeout):
                raw = await future
        except TimeoutError:
            send(_withdrawal(number, "timed out"))
            raise RequestTimeout(method.name, timeout or 0.0) from None
        except asyncio.CancelledError:
            send(_withdrawal(number, "no longer needed"))
            raise
        finally:
            self._waiting.pop(number, None)
        try:
            return decoder(method.result).decode(raw)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise InvalidResult(f"the client's answer to {method.name} has the wrong shape: {error}") from error

    def settle(self, response: JSONRPCResponse) -> bool:
        """Hand an answer to the call that waits for it; False when none does."""
        future = self._waiting.get(response.id) if isinstance(response.id, str) else None
        if future is None or future.done():
            return False
        if isinstance(response.error, JSONRPCErrorData):
            error = response.error
            future.set_exception(MCPError(error.code, error.message, error.data))
        else:
            future.set_result(response.result)
        return True

    def fail(self) -> None:
        """The session has ended: nobody will answer."""
        self._closed = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionClosed("the session has ended"))


def _withdrawal(number: str, reason: str) -> bytes:
    params = {"requestId": number, "reason": reason}
    return encode_message(JSONRPCRequest(method="notifications/cancelled", params=params))


class RequestPeer:
    """The client behind one POST.

    Args:
        send: Takes the text of a message that belongs to the request; None where nothing can be sent before the answer.
        holder: What keeps the handshake: the session, or something that lives for this request alone.
        calls: Where the session's calls to the client are made; None without a session.
        principal: Who the caller is.
        standalone: The session as something that can be notified at any time; None without one.
        stream: The name in the session of the stream its messages go to; empty where that cannot be resumed.
    """

    __slots__ = ("_calls", "_holder", "_send", "_stream", "principal", "standalone", "withdrawn")

    def __init__(
        self,
        send: Send | None,
        holder: HandshakeHolder,
        *,
        calls: Calls | None = None,
        principal: object = None,
        standalone: object = None,
        stream: str = "",
    ) -> None:
        self.principal = principal
        self.standalone = standalone
        self.withdrawn = False
        self._holder = holder
        self._send = send
        self._stream = stream
        self._calls = calls

    @property
    def handshake(self) -> Handshake | None:
        """What the client agreed to at `initialize`."""
        return self._holder.handshake

    @handshake.setter
    def handshake(self, value: Handshake | None) -> None:
        self._holder.handshake = value

    def is_cancelled(self, request_id: int | str) -> bool:
        """Whether the client has withdrawn its request, which may still be winding down."""
        return self.withdrawn

    def notify(self, method: str, params: object = UNSET) -> None:
        """Send a notification on the response stream; dropped where the client takes none."""
        self._forward(JSONRPCRequest(method=method, params=params))

    async def request(self, method: Method[Any, Any], params: object, *, timeout: float | None = None) -> Any:
        """Ask the client something on the response stream; it answers in a POST of its own.

        Raises:
            UsageError: the client has no session, or takes no event stream: it cannot be asked.
        """
        if self._calls is None or self._send is None:
            raise UsageError("this client cannot be asked: that needs a session and an event stream")
        return await self._calls.make(self._send, method, params, timeout)

    def close_stream(self, retry_ms: int | None = None) -> bool:
        """Close the connection that waits for the answer, so that the client polls for it.

        Args:
            retry_ms: How many milliseconds the client should stay away; None: as long as the session says.

        Returns:
            Whether there was one that could be closed.
        """
        session = self.standalone
        if not self._stream or self.withdrawn or not isinstance(session, StreamCloser):
            return False
        return session.close_stream(self._stream, retry_ms)

    def _forward(self, message: JSONRPCRequest) -> None:
        if self._send is not None and not self.withdrawn:
            self._send(encode_message(message))
