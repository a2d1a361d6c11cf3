"""Who sent a POST, and the way back to them while it is served."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, Protocol

from msgspec import UNSET

from typedmcp.core.connection import Handshake
from typedmcp.core.errors import ConnectionClosed, MCPError, RequestTimeout, UsageError
from typedmcp.core.jsonrpc import JSONRPCErrorData, JSONRPCRequest, JSONRPCResponse, encode_message
from typedmcp_wire.codec import decoder
from typedmcp_wire.methods import Method
from typedmcp_wire.types.base import ClientCapabilities, Implementation

_UNKNOWN = Implementation(name="unknown", version="")
_NO_CAPABILITIES = ClientCapabilities()


class HandshakeHolder(Protocol):
    """What remembers a handshake."""

    handshake: Handshake | None


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

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[Any]] = {}

    async def make(
        self, send: Callable[[bytes], None], method: Method[Any, Any], params: object, timeout: float | None
    ) -> Any:
        """Send one request and wait for its answer.

        Raises:
            MCPError: the client answered with an error.
            RequestTimeout: it did not answer in time.
            ConnectionClosed: the session ended first.
        """
        number = f"server-{next(self._ids)}"
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            send(encode_message(JSONRPCRequest(id=number, method=method.name, params=params)))
            async with asyncio.timeout(timeout):
                raw = await future
        except TimeoutError:
            raise RequestTimeout(method.name, timeout or 0.0) from None
        finally:
            self._waiting.pop(number, None)
        return decoder(method.result).decode(raw)

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
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionClosed("the session has ended"))


class RequestPeer:
    """The client behind one POST.

    Args:
        send: Takes the text of a message that belongs to the request; None where nothing can be sent before the answer.
        holder: What keeps the handshake: the session, or a :class:`Stateless` of this request alone.
        calls: The session's calls to the client; None without a session.
        principal: Who the caller is.
    """

    __slots__ = ("_calls", "_holder", "_send", "principal")

    def __init__(
        self,
        send: Callable[[bytes], None] | None,
        holder: HandshakeHolder,
        *,
        calls: Calls | None = None,
        principal: object = None,
    ) -> None:
        self.principal = principal
        self._holder = holder
        self._send = send
        self._calls = calls

    @property
    def handshake(self) -> Handshake | None:
        """What the client agreed to at `initialize`."""
        return self._holder.handshake

    @handshake.setter
    def handshake(self, value: Handshake | None) -> None:
        self._holder.handshake = value

    def notify(self, method: str, params: object = UNSET) -> None:
        """Send a notification on the response stream; dropped where the client takes none."""
        if self._send is not None:
            self._send(encode_message(JSONRPCRequest(method=method, params=params)))

    async def request(self, method: Method[Any, Any], params: object, *, timeout: float | None = None) -> Any:
        """Ask the client something on the response stream; it answers in a POST of its own.

        Raises:
            UsageError: the client has no session, or takes no event stream: it cannot be asked.
        """
        if self._calls is None or self._send is None:
            raise UsageError("this client cannot be asked: that needs a session and an event stream")
        return await self._calls.make(self._send, method, params, timeout)
