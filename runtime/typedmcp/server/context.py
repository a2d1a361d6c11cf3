"""What a handler knows about the request it serves, and its way back to the client."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Coroutine, Generator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, overload

from typedmcp.core.errors import UsageError
from typedmcp_wire.revisions import HANDSHAKE_REVISIONS, MCP_PROTOCOL_VERSION
from typedmcp_wire.types.base import ClientCapabilities, Implementation
from typedmcp_wire.types.lifecycle import ProgressNotificationParams
from typedmcp_wire.types.logging import LoggingMessageNotificationParams

if TYPE_CHECKING:
    import asyncio

    from typedmcp.core.connection import Handshake
    from typedmcp.server.forms import Elicited
    from typedmcp_wire.types.base import LoggingLevel
    from typedmcp_wire.types.roots import Root
    from typedmcp_wire.types.sampling import CreateMessageResult, ModelPreferences, SamplingMessage
    from typedmcp_wire.types.tools import Tool, ToolChoice

logger = logging.getLogger("typedmcp")

T = TypeVar("T")
Answer: TypeAlias = Coroutine[Any, Any, T]
"""What is awaited for the answer of a client."""

HUMAN_TIMEOUT = 600.0
"""Seconds a question waits when a person may have to answer it."""
ROOTS_TIMEOUT = 30.0
"""Seconds a question waits that a program answers."""

LEVELS: tuple[LoggingLevel, ...] = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
_SEVERITY = {level: number for number, level in enumerate(LEVELS)}


def as_level(name: str | None) -> LoggingLevel | None:
    """The level of this name, or None."""
    return next((level for level in LEVELS if level == name), None)


class _Done:
    """An awaitable that is done: what works at once may still be awaited."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


_DONE = _Done()


class Peer(Protocol):
    """The way back to a client, as a context needs it."""

    principal: object

    def notify(self, method: str, params: object = ...) -> None:
        """Send a notification that belongs to the request being served."""
        ...


class Context:
    """One request as its handler sees it.

    Attributes:
        revision: The protocol revision that governs the request.
        request_id: The id of the request.
        method: Its wire name.
        client_info: The client's name and version; None when it did not say.
        client_capabilities: What the client can do.
        log_level: The lowest level of log messages the client wants; None: none.
        meta: The request's ``_meta``, as sent.
        principal: Who the caller is, when something in front has established it.
    """

    __slots__ = (
        "_finished",
        "_loop",
        "_peer",
        "_progress",
        "client_capabilities",
        "client_info",
        "log_level",
        "meta",
        "method",
        "principal",
        "progress_token",
        "request_id",
        "revision",
    )

    def __init__(
        self,
        revision: str,
        request_id: int | str,
        method: str,
        *,
        client_info: Implementation | None,
        client_capabilities: ClientCapabilities,
        log_level: LoggingLevel | None,
        progress_token: int | str | None,
        meta: dict[str, Any] | None,
        peer: Peer | None,
    ) -> None:
        self.revision = revision
        self.request_id = request_id
        self.method = method
        self.client_info = client_info
        self.client_capabilities = client_capabilities
        self.log_level = log_level
        self.progress_token = progress_token
        self.meta = meta
        self.principal = None if peer is None else peer.principal
        self._peer = peer
        self._loop: asyncio.AbstractEventLoop | None = None
        self._progress: float | None = None
        self._finished = False

    @classmethod
    def for_notification(cls, method: str, handshake: Handshake | None, peer: Peer | None) -> Context:
        """The context of a notification, which has no id and no answer."""
        return cls(
            MCP_PROTOCOL_VERSION if handshake is None else handshake.revision,
            "",
            method,
            client_info=None if handshake is None else handshake.client_info,
            client_capabilities=ClientCapabilities() if handshake is None else handshake.capabilities,
            log_level=None,
            progress_token=None,
            meta=None,
            peer=peer,
        )

    @property
    def is_modern(self) -> bool:
        """Whether the request carries its own context (2026-07-28 on), rather than relying on a handshake."""
        return self.revision not in HANDSHAKE_REVISIONS

    @property
    def peer(self) -> Peer | None:
        """The way back to the client; None where there is none."""
        return self._peer

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Tell the client how far the work has come; nothing is sent when it did not ask.

        Works at once, from the event loop and from the worker thread of a plain function alike; awaiting what it
        returns is allowed and does nothing.

        Args:
            progress: How much is done; must grow with each report of a request.  A value that does not is dropped.
            total: How much there is to do, when known.
            message: What is being done, for people.
        """
        if self._peer is None or self.progress_token is None or self._finished:
            return _DONE
        if self._progress is not None and progress <= self._progress:
            logger.debug("dropped a progress report that does not grow: %s after %s", progress, self._progress)
            return _DONE
        self._progress = progress
        if self.revision < "2025-03-26":
            message = None
        params = ProgressNotificationParams(
            progress_token=self.progress_token, progress=progress, total=total, message=message
        )
        return self._notify("notifications/progress", params)

    def log(self, level: LoggingLevel, data: Any, logger_name: str | None = None) -> Awaitable[None]:
        """Send a log message to the client, if it wants messages of this level.

        Works at once, like :meth:`report_progress`.

        Args:
            level: One of :data:`LEVELS`.
            data: Any JSON value; keep secrets out of it.
            logger_name: The name of the part of the server that speaks.

        Raises:
            UsageError: there is no such level.
        """
        if level not in _SEVERITY:
            raise UsageError(f"{level!r} is no log level; use one of {', '.join(LEVELS)}")
        wanted = self._wanted_level()
        if self._peer is None or self._finished or wanted is None or _SEVERITY[level] < _SEVERITY[wanted]:
            return _DONE
        params = LoggingMessageNotificationParams(level=level, data=data, logger=logger_name)
        return self._notify("notifications/message", params)

    def _wanted_level(self) -> LoggingLevel | None:
        """The level in force: in the handshake era a client may choose another while the request runs."""
        handshake: Handshake | None = None if self.is_modern else getattr(self._peer, "handshake", None)
        return self.log_level if handshake is None else as_level(handshake.log_level)

    def choose_log_level(self, level: LoggingLevel) -> None:
        """Keep, for the connection of a client of the handshake era, which log messages it wants."""
        handshake: Handshake | None = getattr(self._peer, "handshake", None)
        if handshake is not None:
            handshake.log_level = level

    # -- asking the client -----------------------------------------------------------------------------------------

    @overload
    def elicit(self, message: str, schema: type[T], *, timeout: float | None = ...) -> Answer[Elicited[T]]: ...
    @overload
    def elicit(
        self, message: str, schema: dict[str, Any], *, timeout: float | None = ...
    ) -> Answer[Elicited[dict[str, Any]]]: ...
    def elicit(self, message: str, schema: Any, *, timeout: float | None = HUMAN_TIMEOUT) -> Answer[Elicited[Any]]:
        """Ask the user to fill in a form.  Never ask for secrets so; see :meth:`elicit_url`.

        Args:
            message: What is asked for.
            schema: A dataclass, struct or TypedDict with plain fields, or a raw JSON Schema of that kind.
            timeout: Seconds to wait; None: as long as the request lives.

        Returns:
            What the user did and, accepted, what was entered: checked, and an instance of `schema` when that is a type.

        Raises:
            MissingCapability: the client did not declare ``elicitation`` by form, or its revision lacks it.
            UsageError: the form has fields the client's revision does not know.
            InvalidResult: the answer does not fit the form.
            MCPError: the client answered with an error.
            RequestTimeout: nobody answered in time.
        """
        return self._asking().elicit(self, message, schema, timeout)

    def elicit_url(
        self,
        message: str,
        url: str,
        elicitation_id: str | None = None,
        *,
        timeout: float | None = HUMAN_TIMEOUT,
    ) -> Answer[Elicited[None]]:
        """Ask the user to visit a page, for what must not pass through the client.

        "accept" means that the user agreed to go there, not that anything has been done there.

        Args:
            message: Why.
            url: The page, as a rule https; without secrets or personal data in it.
            elicitation_id: What names this question, unique within the server; made up when left out.
            timeout: Seconds to wait; None: as long as the request lives.

        Raises:
            MissingCapability: the client did not declare ``elicitation.url``, or its revision lacks it.
        """
        return self._asking().elicit_url(self, message, url, elicitation_id, timeout)

    def sample(
        self,
        messages: str | SamplingMessage | Sequence[str | SamplingMessage],
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        model_preferences: ModelPreferences | None = None,
        temperature: float | None = None,
        stop_sequences: list[str] | None = None,
        include_context: Literal["allServers", "none", "thisServer"] | None = None,
        metadata: dict[str, Any] | None = None,
        tools: list[Tool] | None = None,
        tool_choice: ToolChoice | None = None,
        timeout: float | None = HUMAN_TIMEOUT,
    ) -> Answer[CreateMessageResult]:
        """Have the client's model continue a conversation.

        Args:
            messages: The conversation; text alone is the user's.
            max_tokens: The most tokens to make.
            tools: Tools the model may use; running them, and sampling again with their results, is the handler's part.
            timeout: Seconds to wait; None: as long as the request lives.

        Raises:
            MissingCapability: the client did not declare ``sampling``, or what it needs below it (``tools``,
                ``context``).
            UsageError: its revision cannot carry the messages, or their order is not allowed.
        """
        return self._asking().sample(
            self,
            messages,
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            model_preferences=model_preferences,
            temperature=temperature,
            stop_sequences=stop_sequences,
            include_context=include_context,
            metadata=metadata,
            tools=tools,
            tool_choice=tool_choice,
            timeout=timeout,
        )

    def list_roots(self, *, timeout: float | None = ROOTS_TIMEOUT) -> Answer[list[Root]]:
        """The directories and files the client lets the server work on.

        Raises:
            MissingCapability: the client did not declare ``roots``.
        """
        return self._asking().list_roots(self, timeout)

    def _asking(self) -> Any:
        """The module behind these methods, loaded when first used.

        Raises:
            UsageError: the handler is a plain function, which has no way to wait for an answer.
        """
        import asyncio

        from typedmcp.server import asking

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise UsageError("only an async function can ask the client: make it async def and await this") from None
        return asking

    # -- the request's end -----------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether the request is answered or withdrawn."""
        return self._finished

    def finish(self) -> None:
        """The request is answered or withdrawn: nothing more is sent for it."""
        self._finished = True

    def enter_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        """The handler runs in a worker thread: what it sends goes through `loop`."""
        self._loop = loop

    def _notify(self, method: str, params: object) -> Awaitable[None]:
        if self._loop is None:
            self._send(method, params)
        else:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and the request with it
                self._loop.call_soon_threadsafe(self._send, method, params)
        return _DONE

    def _send(self, method: str, params: object) -> None:
        if self._peer is None or self._finished:
            return
        is_cancelled = getattr(self._peer, "is_cancelled", None)  # a peer without connection has no such thing
        if is_cancelled is None or not is_cancelled(self.request_id):
            self._peer.notify(method, params)
