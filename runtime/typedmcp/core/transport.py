"""What a client needs of a transport, and what a transport needs of a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typedmcp.core.emitter import Emitter
    from typedmcp.core.jsonrpc import JSONRPCMessage, JSONRPCRequest, JSONRPCResponse


class ClientTransportInterface(Protocol):
    """The way to a peer: messages out by :meth:`send`, messages in as events.

    Events of `emitter`: ``message`` with one message, ``close`` with nothing, ``error`` with one exception.  A
    transport can be driven by hand: listen to ``message``, then start, send, close.
    """

    @property
    def emitter(self) -> Emitter:
        """The events of this transport."""
        ...

    @property
    def session(self) -> str | None:
        """The session id, for transports that have one."""
        ...

    async def start(self) -> None:
        """Open the way and begin to read.  Raises TransportError when it cannot be opened."""
        ...

    async def send(self, message: JSONRPCMessage | Sequence[JSONRPCMessage]) -> None:
        """Write one message, or several.  Raises ConnectionClosed when the peer is gone."""
        ...

    async def close(self) -> None:
        """Release everything and emit ``close``, once; a second call does nothing."""
        ...


class MCPServerInterface(Protocol):
    """What transports serve: a typed entry and a textual one."""

    @property
    def emitter(self) -> Emitter:
        """Emits ``request`` with (method, id or None) at the start of every dispatch."""
        ...

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    async def dispatch(
        self, request: JSONRPCRequest | Mapping[str, Any], context: Any = None
    ) -> JSONRPCResponse | None:
        """Serve one request; None for a notification."""
        ...

    async def handle(self, message: Any, context: Any = None) -> Any:
        """Serve the text of one message and return the text of the answer; None when there is none."""
        ...
