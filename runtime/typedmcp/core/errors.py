"""The exceptions of typedmcp, one tree.

TypedMCPError
+-- PeerError              the other side did something wrong
|   +-- MCPError           it answered with a JSON-RPC error (or a handler wants to answer with one)
|   +-- MessageError       it sent something that is no message
|   +-- InvalidResult      its answer is not what the method's result must be
+-- UsageError             the caller did something wrong
|   +-- UnsupportedMethod  the agreed revision has no such method
|   +-- NotConnected       there is no connection to use
+-- TransportError         the connection failed or was lost
|   +-- ConnectionClosed   it ended before the answer came
|   +-- ProcessExited      the child process ended by itself
|   +-- RequestLost        one request gets no answer any more; the connection goes on
|       +-- SessionLost    because the server has forgotten the session
+-- RequestTimeout         no answer came in time (a TimeoutError too)
+-- ToolError              a tool failed; its text is for the model to read
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

if TYPE_CHECKING:
    from msgspec import UnsetType


_EXCERPT = 120


class TypedMCPError(Exception):
    """The root of every exception this library raises on purpose."""


class PeerError(TypedMCPError):
    """The other side broke the protocol or refused."""


class MCPError(PeerError):
    """A JSON-RPC error: received from the peer, or raised by a handler to be sent.

    Attributes:
        code: The error code, such as -32602; ``typedmcp_wire.revisions`` names them.
        message: One short sentence.
        data: More about it, any JSON value; ``msgspec.UNSET`` when there is none.
    """

    def __init__(self, code: int, message: str, data: Any | UnsetType = UNSET) -> None:
        super().__init__(f"MCP error {code}: {message}")
        self.code = code
        self.message = message
        self.data = data


class MessageError(PeerError):
    """Bytes that are no JSON-RPC message.

    Attributes:
        code: The code a receiver of requests answers with: -32700 or -32600.
        id: The id of the request, when one could be read; None when not.
        answer: Whether a server answers it: what looks like a notification or a response is not answered.
        frame: The bytes themselves.
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        id: int | str | None = None,  # noqa: A002 - the protocol's own name
        answer: bool = True,
        frame: bytes = b"",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.id = id
        self.answer = answer
        self.frame = frame

    def __str__(self) -> str:
        shown = self.frame[:_EXCERPT].decode("utf-8", "backslashreplace")
        return f"{self.message} Got {len(self.frame)} bytes: {shown!r}" if self.frame else self.message


class InvalidResult(PeerError):
    """A peer's result does not have the shape its method demands.

    Attributes:
        violations: What is wrong and where, as :class:`typedmcp.core.validation.Violation`.
    """

    def __init__(self, message: str, violations: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.violations = tuple(violations)


class UsageError(TypedMCPError):
    """The library was called in a way that cannot work; the text says what to do instead."""


class UnsupportedMethod(UsageError):
    """The revision agreed on has no such method; the text says which revisions do."""


class NotConnected(UsageError):
    """A request was made before the connection was opened or after it was closed."""


class TransportError(TypedMCPError):
    """The way to the peer failed; the cause is chained."""


class ConnectionClosed(TransportError):
    """The connection ended while an answer was outstanding."""


class ProcessExited(TransportError):
    """A server process ended by itself.

    Attributes:
        returncode: Its exit code; negative: the signal that ended it.
        stderr: Its last lines on standard error, when they were captured.
    """

    def __init__(self, message: str, returncode: int | None = None, stderr: str = "") -> None:
        super().__init__(message)
        self.returncode = returncode
        self.stderr = stderr


class RequestLost(TransportError):
    """One message did not get through, or its answer did not; the connection is of use still.  The cause is chained.

    A transport emits it as ``error``; whoever waits for the request gives up at once.

    Attributes:
        request_id: The request that gets no answer; None: it was no request, or no single one.
        status: The HTTP status, when there was a response.
        url: Where the message went, when it went by HTTP.
    """

    def __init__(
        self,
        message: str,
        request_id: int | str | None = None,
        *,
        status: int | None = None,
        url: str | None = None,
    ) -> None:
        super().__init__(message)
        self.request_id = request_id
        self.status = status
        self.url = url


class SessionLost(RequestLost):
    """The server does not know the session any more; only a new ``initialize`` helps."""


class RequestTimeout(TypedMCPError, TimeoutError):
    """No answer came within the time allowed.

    Attributes:
        method: The method that was called.
        seconds: How long was waited.
    """

    def __init__(self, method: str, seconds: float) -> None:
        super().__init__(f"{method} timed out after {seconds:g} s; pass a larger timeout= to wait longer")
        self.method = method
        self.seconds = seconds


class ToolError(TypedMCPError):
    """A tool failed.  Raise it in a tool to tell the model why; a client raises it for a result with ``isError``.

    Attributes:
        content: The content blocks of a received result.
        structured_content: Its structured content; ``msgspec.UNSET`` when there is none.
        meta: Its ``_meta``.
    """

    def __init__(
        self,
        text: str,
        *,
        content: Sequence[Any] = (),
        structured_content: Any | UnsetType = UNSET,
        meta: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(text)
        self.content = tuple(content)
        self.structured_content = structured_content
        self.meta = meta
