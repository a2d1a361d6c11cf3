"""Which era and revision to speak: asked once, before anything else.

Rules (specification 2026-07-28, basic/versioning and basic/transports/stdio):
- With nothing pinned, ``server/discover`` goes first.  An answer means the modern era; a list of supported revisions in
  an error means the newest revision both know.
- Any other error, an answer of another shape, and silence mean an older server: ``initialize``.  So does an HTTP
  status without an answer, unless it tells of access, of a proxy, or of an address that has moved; a connection that
  fails tells nothing.  No error code is special in this, and a modern error never leads to ``initialize`` unless the
  server itself lists handshake revisions.
- A server that was merely slow to start may refuse ``initialize`` with a list of modern revisions: then one of those.
- Once the server has shown that it is modern, no failure leads to ``initialize``.
- A pinned revision is spoken or the connection fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from typedmcp.core.errors import InvalidResult, MCPError, PeerError, RequestLost, RequestTimeout, UsageError
from typedmcp.core.narrow import is_array, is_object
from typedmcp_wire.codec import convert
from typedmcp_wire.methods import DISCOVER, INITIALIZE, Method
from typedmcp_wire.revisions import (
    HANDSHAKE_REVISIONS,
    HEADER_MISMATCH,
    LATEST_PROTOCOL_VERSION,
    MCP_PROTOCOL_VERSION,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    MODERN_REVISIONS,
    REVISIONS,
    SERVER_INFO_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from typedmcp_wire.types.base import ClientCapabilities, Implementation, ServerCapabilities
from typedmcp_wire.types.jsonrpc import RequestParams
from typedmcp_wire.types.lifecycle import DiscoverResult, InitializeRequestParams

DEFAULT_PROBE_TIMEOUT = 5.0
_NO_VERDICT = frozenset({401, 403, 407, 408, 429, 502, 503, 504})
"""HTTP statuses that come from somebody in front of the server, or say nothing about its era."""
_MODERN_ERRORS = frozenset({HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY})


class Agreement(Struct, frozen=True, kw_only=True):
    """What was found out about a server."""

    revision: str
    capabilities: ServerCapabilities
    server_info: Implementation | None
    instructions: str | None
    supported: tuple[str, ...]


class Ask(Protocol):
    """How negotiation sends: one request, in a given revision, before there is an agreement."""

    async def __call__(self, revision: str, method: Method[Any, Any], params: Any, timeout: float | None) -> Any: ...


async def negotiate(
    ask: Ask,
    *,
    info: Implementation,
    capabilities: ClientCapabilities,
    pinned: str | None,
    timeout: float | None,
    probe_timeout: float | None,
) -> Agreement:
    """Agree on a revision with the server behind `ask`.

    Raises:
        UsageError: the pinned revision is none.
        PeerError: no revision is common, or the server refused.
        RequestTimeout: it did not answer ``initialize`` in time.
    """
    if pinned is not None and pinned not in REVISIONS:
        raise UsageError(f"{pinned!r} is no revision; known are {', '.join(REVISIONS)}")
    if pinned in HANDSHAKE_REVISIONS:
        return await _initialize(ask, pinned, info, capabilities, timeout, pinned=True)
    if pinned is not None:
        try:
            return await _discover(ask, pinned, timeout, (pinned,))
        except _Older as older:
            raise PeerError(f"the server does not speak {pinned}, the revision asked for: {older}") from older.__cause__
    patience = min((limit for limit in (probe_timeout, timeout) if limit is not None), default=None)
    try:
        return await _discover(ask, LATEST_PROTOCOL_VERSION, patience, MODERN_REVISIONS)
    except _Older:
        pass
    try:
        return await _initialize(ask, MCP_PROTOCOL_VERSION, info, capabilities, timeout, pinned=False)
    except MCPError as error:
        common = _newest(_listed(error), MODERN_REVISIONS) if error.code == UNSUPPORTED_PROTOCOL_VERSION else None
        if common is None:
            raise
    # It was slow to start, and the probe it found waiting has made it modern for good.
    return _agreement(common, await ask(common, DISCOVER, RequestParams(), timeout))


class _Older(Exception):
    """The server is of the handshake era; the text says how that shows."""


async def _discover(ask: Ask, revision: str, timeout: float | None, wanted: Sequence[str]) -> Agreement:
    """Ask in the modern way, once more in a listed revision when the first is refused.

    Raises:
        _Older: the answer is that of a handshake server, or there is none.
        PeerError: it is a modern server with no revision in common, or one that refuses.
    """
    try:
        result = await ask(revision, DISCOVER, RequestParams(), timeout)
    except (RequestTimeout, InvalidResult) as error:
        raise _Older(str(error)) from error
    except RequestLost as error:
        if error.status is None or 300 <= error.status < 400 or error.status in _NO_VERDICT:
            raise
        raise _Older(str(error)) from error
    except MCPError as error:
        if error.code in _MODERN_ERRORS:
            raise
        if error.code != UNSUPPORTED_PROTOCOL_VERSION:
            raise _Older(str(error)) from error
        common = _common(_listed(error), wanted, error)
        if common == revision:
            raise
        # From here on the server is known to be modern: no failure leads to `initialize`.
        return _agreement(common, await ask(common, DISCOVER, RequestParams(), timeout))
    return _agreement(_common(result.supported_versions, wanted, None), result)


def _common(listed: Sequence[str], wanted: Sequence[str], cause: Exception | None) -> str:
    """The newest revision of `wanted` among those a modern server lists.

    Raises:
        _Older: it lists none of them, but revisions of the handshake era.
        PeerError: it lists nothing this client knows.
    """
    common = _newest(listed, wanted)
    if common is not None:
        return common
    told = f"the server supports {', '.join(listed) or 'none it names'}"
    if _newest(listed, HANDSHAKE_REVISIONS) is not None:
        raise _Older(told) from cause
    raise PeerError(f"no common revision: {told}") from cause


def _agreement(revision: str, result: DiscoverResult) -> Agreement:
    told = (result.meta or {}).get(SERVER_INFO_KEY)
    return Agreement(
        revision=revision,
        capabilities=result.capabilities,
        server_info=_identity(told),
        instructions=result.instructions,
        supported=tuple(result.supported_versions),
    )


def _identity(told: object) -> Implementation | None:
    """Who the server says it is, when it says so in the right shape; nothing depends on it."""
    try:
        return convert(told, Implementation)
    except msgspec.ValidationError:
        return None


async def _initialize(
    ask: Ask,
    revision: str,
    info: Implementation,
    capabilities: ClientCapabilities,
    timeout: float | None,
    *,
    pinned: bool,
) -> Agreement:
    params = InitializeRequestParams(protocol_version=revision, capabilities=capabilities, client_info=info)
    result = await ask(revision, INITIALIZE, params, timeout)
    agreed = result.protocol_version
    if agreed not in HANDSHAKE_REVISIONS:
        raise PeerError(f"the server wants revision {agreed!r}; this client speaks {', '.join(HANDSHAKE_REVISIONS)}")
    if pinned and agreed != revision:
        raise PeerError(f"revision {revision} was asked for and the server answered {agreed}; pin that one or none")
    return Agreement(
        revision=agreed,
        capabilities=result.capabilities,
        server_info=result.server_info,
        instructions=result.instructions,
        supported=(agreed,),
    )


def _listed(error: MCPError) -> list[str]:
    """The revisions an error of a modern server names."""
    supported = error.data.get("supported") if is_object(error.data) else None
    return [entry for entry in supported if isinstance(entry, str)] if is_array(supported) else []


def _newest(listed: Iterable[str], known: Iterable[str]) -> str | None:
    return max(set(listed) & set(known), default=None)
