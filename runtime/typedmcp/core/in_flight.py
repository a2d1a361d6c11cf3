"""Requests in flight, whichever side serves them: what they go by, and what withdraws them."""

from __future__ import annotations

import logging
from typing import TypeAlias

import msgspec
from msgspec import UNSET

from typedmcp.core.jsonrpc import JSONRPCRequest, params_text
from typedmcp_wire.codec import decoder
from typedmcp_wire.types.lifecycle import CancelledNotificationParams

logger = logging.getLogger("typedmcp")

Key: TypeAlias = tuple[type, int | str]


def key_of(request_id: int | str) -> Key:
    """A dictionary key under which 7 and "7" differ."""
    return type(request_id), request_id


def read_cancelled(notification: JSONRPCRequest) -> CancelledNotificationParams | None:
    """What ``notifications/cancelled`` says; None, and a line in the log, when it is malformed."""
    try:
        if notification.params is not UNSET:
            params: CancelledNotificationParams = decoder(CancelledNotificationParams).decode(
                params_text(notification.params)
            )
            return params
    except (msgspec.DecodeError, TypeError, ValueError, RecursionError):
        pass
    logger.warning("ignored a malformed notifications/cancelled")
    return None
