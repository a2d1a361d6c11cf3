"""What a handler knows about the request it serves, and its way back to the client."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from typedmcp.core.errors import UsageError
from typedmcp.server.questions import Questions
from typedmcp_wire.revisions import HANDSHAKE_REVISIONS, MCP_PROTOCOL_VERSION
from typedmcp_wire.types.base import ClientCapabilities, Implementation
from typedmcp_wire.types.lifecycle import ProgressNotificationParams
from typedmcp_wire.types.logging import LoggingMessageNotificationParams

if TYPE_CHECKING:
    import asyncio

    from typedmcp.core.connection import Handshake
    from typedmcp.server.rounds import Rounds
    from typedmcp.server.sealing import StateSeal
    from typedmcp_wire.types.base import LoggingLevel

logger = logging.getLogger("typedmcp")

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
_LONGEST_RETRY = 24 * 60 * 60  # seconds
_SEVERITY = {level: number for number, level in enumerate(LEVELS)}


_BY_NAME: dict[str | None, LoggingLevel] = {level: level for level in LEVELS}


def as_level(name: str | None) -> LoggingLevel | None:
    """The level of this name, or None."""
    return _BY_NAME.get(name)


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


class InputNeeded(BaseException):
    """Unwinds a handler whose questions are the client's to answer first.

    Not an Exception: a handler's own ``except Exception`` must not take it for a failure.
    """


class Context(Struct, Questions, eq=False):
    """One request as its handler sees it.

    Attributes:
        revision: The protocol revision that governs the request.
        request_id: The id of the request.
        method: Its wire name.
        client_info: The client's name and version; None when it did not say.
        client_capabilities: What the client can do.
        log_level: The lowest level of log messages the client wants; None: none.
        meta: The request's ``_meta``, as sent.
    """

    revision: str
    request_id: int | str
    method: str
    client_info: Implementation | None
    client_capabilities: ClientCapabilities
    log_level: LoggingLevel | None
    progress_token: int | str | None
    meta: dict[str, Any] | None
    peer: Peer | None
    """The way back to the client; None where there is none."""
    retry: tuple[Callable[[], StateSeal], Any] | None = None
    """How a modern request is sent again with answers; see :mod:`typedmcp.server.rounds`."""
    rounds: Rounds | None = None
    """What a modern request has asked."""
    finished: bool = False
    """Whether the request is answered or withdrawn: nothing more is sent for it."""
    _loop: asyncio.AbstractEventLoop | None = None
    _progress: float | None = None

    def __repr__(self) -> str:
        # Without what the client sent: contexts are printed in logs.
        return f"<Context of {self.method} {self.request_id!r} at {self.revision}>"

    @property
    def principal(self) -> object:
        """Who the caller is, when something in front has established it."""
        return None if self.peer is None else self.peer.principal

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
    def input_responses(self) -> dict[str, Any]:
        """The answers a client of 2026-07-28 sent along, by key; for handlers that ask by hand."""
        return {} if self.retry is None else self.retry[1].input_responses or {}

    @property
    def request_state(self) -> str | None:
        """The state of an input-required result that a handler returned by hand, given back unchanged."""
        return None if self.rounds is None else self.rounds.own

    @property
    def is_modern(self) -> bool:
        """Whether the request carries its own context (2026-07-28 on), rather than relying on a handshake."""
        return self.revision not in HANDSHAKE_REVISIONS

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
        if self.peer is None or self.progress_token is None or self.finished:
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
        if self.peer is None or self.finished or wanted is None or _SEVERITY[level] < _SEVERITY[wanted]:
            return _DONE
        params = LoggingMessageNotificationParams(level=level, data=data, logger=logger_name)
        return self._notify("notifications/message", params)

    def close_stream(self, retry: float | None = None) -> Awaitable[None]:
        """Close the connection on which the client waits, and go on: the client comes back and gets the rest.

        For work that takes long, so that no connection need stay open for it.  That needs Streamable HTTP, a client of
        2025-11-25 that takes event streams, and a session that can be resumed; anywhere else this does nothing, and
        the answer arrives as usual.  Works at once, like :meth:`report_progress`.

        Args:
            retry: The seconds the client is asked to wait before it comes back; None: what the server says anyway.

        Raises:
            UsageError: `retry` is no length of time.
        """
        if retry is not None and not 0 <= retry <= _LONGEST_RETRY:
            raise UsageError(f"retry is a number of seconds from 0 to {_LONGEST_RETRY}, not {retry!r}")
        milliseconds = None if retry is None else round(retry * 1000)
        if self._loop is None:
            self._close_stream(milliseconds)
        else:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and the request with it
                self._loop.call_soon_threadsafe(self._close_stream, milliseconds)
        return _DONE

    def _close_stream(self, milliseconds: int | None) -> None:
        close: Callable[[int | None], bool] | None = getattr(self.peer, "close_stream", None)
        if self.finished or close is None or not close(milliseconds):
            logger.debug("the stream of %s stays open: its client could not come back for the rest", self.method)

    def _wanted_level(self) -> LoggingLevel | None:
        """The level in force: in the handshake era a client may choose another while the request runs."""
        handshake: Handshake | None = None if self.is_modern else getattr(self.peer, "handshake", None)
        return self.log_level if handshake is None else as_level(handshake.log_level)

    def choose_log_level(self, level: LoggingLevel) -> None:
        """Keep, for the connection of a client of the handshake era, which log messages it wants."""
        handshake: Handshake | None = getattr(self.peer, "handshake", None)
        if handshake is not None:
            handshake.log_level = level

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
        if self.peer is None or self.finished:
            return
        is_cancelled = getattr(self.peer, "is_cancelled", None)  # a peer without connection has no such thing
        if is_cancelled is None or not is_cancelled(self.request_id):
            self.peer.notify(method, params)
