"""The keyword arguments of the bare mechanism, as types for those who pass them on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict


class HTTPTransportOptions(TypedDict, total=False):
    """What :func:`create_mcp_routes` takes beside the server."""

    path: str
    streaming: bool


class MCPSessionOptions(TypedDict, total=False):
    """What :func:`create_mcp_session` takes."""

    path: str
    ttl: float | None
    capacity: int
    clock: Callable[[], float]
    keep_alive: float | None
    fan_out: bool
