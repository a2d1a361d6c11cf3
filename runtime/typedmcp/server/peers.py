"""The clients of the handshake era that are there now, and what they are told without having asked.

A client is known from its ``notifications/initialized`` on, or from its first subscription, by the peer its messages
come with; where that peer lives for one message only (HTTP), by the peer's `standalone`, which speaks for the session.
It is held weakly: when its connection or session is gone, so is all that is kept here.

Rules:
- Only clients that have finished the handshake are told anything, and of lists only those that were declared to them.
- What is announced in one turn of the event loop goes out once, in the next; from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from typing import Any, Protocol, TypeGuard

from typedmcp.core.connection import Handshake
from typedmcp.core.errors import MCPError
from typedmcp_wire.revisions import INTERNAL_ERROR
from typedmcp_wire.types.resources import ResourceUpdatedNotificationParams

MAX_SUBSCRIPTIONS = 1024
"""How many resources one client may watch."""

RESOURCE_UPDATED = "notifications/resources/updated"


class StandingPeer(Protocol):
    """A client that can be told something at any time."""

    handshake: Handshake | None

    def notify(self, method: str, params: object = ...) -> None:
        """Send a notification that belongs to no request."""
        ...


class _Known:
    """What is kept of one client."""

    __slots__ = ("declared", "loop", "pending", "waking", "watched")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.declared: frozenset[str] = frozenset()
        self.watched: dict[str, str] = {}
        """Normal form of an address to the address as the client wrote it."""
        self.waking = False
        """Whether what is pending will be sent in the loop's next turn."""
        self.pending: dict[tuple[str, str], None] = {}


class Peers:
    """The clients a server can speak to by itself."""

    def __init__(self) -> None:
        self._known: weakref.WeakKeyDictionary[StandingPeer, _Known] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def opened(self, peer: object, declared: frozenset[str]) -> None:
        """A client has finished its handshake; `declared` are the notifications about lists it was promised."""
        known = self._meet(peer)
        if known is not None:
            known.declared = declared

    def watch(self, peer: object, key: str, uri: str) -> None:
        """A client subscribes to a resource.

        Raises:
            MCPError: it watches too many already.
        """
        known = self._meet(peer)
        if known is None:
            return
        if len(known.watched) >= MAX_SUBSCRIPTIONS and key not in known.watched:
            raise MCPError(INTERNAL_ERROR, "Too many subscriptions.", {"limit": MAX_SUBSCRIPTIONS})
        known.watched[key] = uri

    def unwatch(self, peer: object, key: str) -> None:
        """A client ends a subscription; one it does not have is no error."""
        known = self._meet(peer)
        if known is not None:
            with self._lock:
                known.pending.pop((RESOURCE_UPDATED, known.watched.pop(key, "")), None)

    def list_changed(self, method: str) -> None:
        """Tell every client that was promised it that a list has changed."""
        for peer, known in self._all():
            if method in known.declared:
                self._tell(peer, known, (method, ""))

    def updated(self, key: str) -> None:
        """Tell every client that watches a resource that it has changed."""
        for peer, known in self._all():
            if key in known.watched:
                self._tell(peer, known, (RESOURCE_UPDATED, known.watched[key]))

    def _all(self) -> list[tuple[StandingPeer, _Known]]:
        with self._lock:
            return list(self._known.items())

    def _meet(self, peer: object) -> _Known | None:
        """What is kept of the client behind `peer`; None when it cannot be spoken to outside a request."""
        target: object = getattr(peer, "standalone", peer)
        if not _stands(target):
            return None
        with self._lock:
            known = self._known.get(target)
            if known is None:
                known = self._known[target] = _Known(asyncio.get_running_loop())
        return known

    def _tell(self, peer: StandingPeer, known: _Known, message: tuple[str, str]) -> None:
        with self._lock:
            asleep, known.waking = not known.waking, True
            known.pending[message] = None
        if asleep:
            with contextlib.suppress(RuntimeError):  # the client's loop has ended
                known.loop.call_soon_threadsafe(self._flush, weakref.ref(peer), known)

    def _flush(self, reference: weakref.ref[StandingPeer], known: _Known) -> None:
        with self._lock:
            pending, known.pending, known.waking = known.pending, {}, False
        peer = reference()
        if peer is None or peer.handshake is None or not peer.handshake.initialized:
            return
        for method, uri in pending:
            if uri:
                peer.notify(method, ResourceUpdatedNotificationParams(uri=uri))
            else:
                peer.notify(method)


def _stands(peer: Any) -> TypeGuard[StandingPeer]:
    if peer is None or not hasattr(peer, "notify") or not hasattr(peer, "handshake"):
        return False
    try:
        weakref.ref(peer)
    except TypeError:  # it lives as long as one message, and keeps no place for weak references
        return False
    return True
