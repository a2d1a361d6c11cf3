"""The subscriptions of clients of 2026-07-28: requests that stay open while the server tells what changes.

Follows basic/patterns/subscriptions of the specification.  Rules:
- The acknowledgement goes first, and names only what the server will send; everything carries the id of the request.
- What is announced in one turn of the event loop goes out once, in the next; from any thread.  So no more can wait for
  a subscription than it has kinds and resources.
- A client ends a subscription by leaving or by cancelling; the server ends it with a result, and tells a client on a
  message stream (stdio, WebSocket) before that its request is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any, Final

from typedmcp.core.connection import Connection
from typedmcp.core.errors import MCPError
from typedmcp.server.context import Context
from typedmcp.server.peers import RESOURCE_UPDATED
from typedmcp_wire.revisions import INTERNAL_ERROR, INVALID_REQUEST
from typedmcp_wire.types.lifecycle import CancelledNotificationParams
from typedmcp_wire.types.subscriptions import (
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenResult,
)

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
SUBSCRIPTION_ID_KEY: Final = "io.modelcontextprotocol/subscriptionId"
MAX_LISTENING: Final = 10_000
"""How many subscriptions may be open at once; one more is refused."""


class _Subscription:
    """One open request.

    Args:
        kinds: The list-changed notifications to send.
        watched: Normal form of an address to the address as the client wrote it.
    """

    def __init__(self, kinds: frozenset[str], watched: dict[str, str]) -> None:
        self.kinds = kinds
        self.watched = watched
        self.loop = asyncio.get_running_loop()
        self.wake = asyncio.Event()
        self.pending: dict[tuple[str, str], None] = {}
        self.ended = False


class Subscribers:
    """All open subscriptions of a server."""

    def __init__(self) -> None:
        self._open: dict[_Subscription, None] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    async def serve(
        self, context: Context, granted: SubscriptionFilter, kinds: frozenset[str], watched: dict[str, str]
    ) -> SubscriptionsListenResult:
        """Serve one subscription until the server ends it.

        Args:
            context: The request.
            granted: What of the client's wish is granted, to be acknowledged.
            kinds: The same as methods of list-changed notifications.
            watched: The same as resources: normal form of an address to the address as the client wrote it.

        Raises:
            MCPError: there is no way to send anything before an answer, or too many are open.
        """
        peer = context.peer
        if peer is None:
            raise MCPError(INVALID_REQUEST, "A subscription needs a connection.")
        if len(self._open) >= MAX_LISTENING:
            raise MCPError(INTERNAL_ERROR, "Too many subscriptions are open.", {"limit": MAX_LISTENING})
        subscription = _Subscription(kinds, watched)
        meta = {SUBSCRIPTION_ID_KEY: context.request_id}
        with self._lock:
            self._open[subscription] = None
        try:
            peer.notify(ACKNOWLEDGED, SubscriptionsAcknowledgedNotificationParams(notifications=granted, meta=meta))
            while True:
                await subscription.wake.wait()
                for method, uri in self._taken(subscription):
                    peer.notify(method, {"uri": uri, "_meta": meta} if uri else {"_meta": meta})
                if subscription.ended:
                    break
        finally:
            with self._lock:
                self._open.pop(subscription, None)
        if isinstance(peer, Connection):
            peer.notify(
                "notifications/cancelled",
                CancelledNotificationParams(request_id=context.request_id, reason="the server ends the subscription"),
            )
        return SubscriptionsListenResult(result_type="complete", meta=dict[str, Any](meta))

    def list_changed(self, method: str) -> None:
        """Tell every subscriber to it that a list has changed."""
        for subscription in self._all():
            if method in subscription.kinds:
                self._tell(subscription, (method, ""))

    def updated(self, key: str) -> None:
        """Tell every subscriber to a resource that it has changed; `key` is the normal form of its address."""
        for subscription in self._all():
            if key in subscription.watched:
                self._tell(subscription, (RESOURCE_UPDATED, subscription.watched[key]))

    def end(self) -> None:
        """End every subscription with its result."""
        for subscription in self._all():
            subscription.ended = True
            self._wake(subscription)

    def _all(self) -> list[_Subscription]:
        with self._lock:
            return list(self._open)

    def _tell(self, subscription: _Subscription, message: tuple[str, str]) -> None:
        with self._lock:
            subscription.pending[message] = None
        self._wake(subscription)

    def _wake(self, subscription: _Subscription) -> None:
        with contextlib.suppress(RuntimeError):  # the subscriber's loop has ended
            subscription.loop.call_soon_threadsafe(subscription.wake.set)

    def _taken(self, subscription: _Subscription) -> list[tuple[str, str]]:
        with self._lock:
            pending, subscription.pending = list(subscription.pending), {}
            subscription.wake.clear()
        return pending
