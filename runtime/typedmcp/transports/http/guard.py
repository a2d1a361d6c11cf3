"""Who may call from where: the ``Origin`` and ``Host`` checks, and CORS for the origins allowed.

Rules:
- ``Origin`` absent: no browser, passes.  Loopback origins and the configured ones pass; any other is 403.
- On a loopback bind, ``Host`` must be a loopback name or the address bound to (any port), or a configured name; any
  other is 403.  This stops pages whose name was re-pointed to this machine.
- Names compare whole and without case; after the colon only a port number up to 65535 is a port.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Final

from typedmcp.transports.http.mirror import Get
from typedmcp.transports.http.replies import Headers, Reply
from typedmcp_wire.revisions import (
    LAST_EVENT_ID_HEADER,
    METHOD_HEADER,
    NAME_HEADER,
    PROTOCOL_VERSION_HEADER,
    SESSION_ID_HEADER,
)

logger = logging.getLogger("typedmcp")

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
_AUTHORITY: Final = re.compile(r"^(\[[0-9a-f:.]+\]|[^:/?#@\[\]]+)(?::([0-9]{1,5}))?$")
_ORIGIN: Final = re.compile(r"^(https?)://(.+)$")
_ALLOW_HEADERS: Final = (
    f"Content-Type, Authorization, {PROTOCOL_VERSION_HEADER}, {SESSION_ID_HEADER}, {METHOD_HEADER}, {NAME_HEADER}, "
    f"{LAST_EVENT_ID_HEADER}"
)
_MAX_SEEN: Final = 64
_EXPOSE_HEADERS: Final = f"{SESSION_ID_HEADER}, {PROTOCOL_VERSION_HEADER}, WWW-Authenticate, Retry-After"
_TOKENS: Final = re.compile(r"[\w!#$%&'*+.^`|~, -]{1,2000}", re.ASCII)


class OriginGuard:
    """The checks of one endpoint.

    Args:
        host: The address the server is bound to.
        origins: Origins allowed besides loopback.
        hosts: Host names allowed besides loopback.
    """

    def __init__(self, host: str, origins: Sequence[str] = (), hosts: Sequence[str] = ()) -> None:
        self._check_host = is_loopback(host)
        self._origins = {origin.lower().rstrip("/") for origin in origins}
        self._hosts = {name.lower() for name in hosts} | {host.lower()}
        self._seen: set[str] = set()  # hosts that pass: few, and always the same

    def check(self, get: Get) -> Reply | None:
        """The refusal of a request, or None when it may pass."""
        origin = get("Origin")
        if origin is not None and not self.allows_origin(origin):
            return _forbidden("Origin", origin, "origins")
        if self._check_host:
            host = get("Host") or ""
            if host not in self._seen:
                if not self.allows_host(host):
                    return _forbidden("Host", host, "hosts")
                if len(self._seen) < _MAX_SEEN:
                    self._seen.add(host)
        return None

    def cors(self, get: Get) -> Headers:
        """The headers a page of an allowed origin needs to read the answer; none without an origin."""
        origin = get("Origin")
        if origin is None:
            return ()
        return (
            ("Access-Control-Allow-Origin", origin),
            ("Access-Control-Expose-Headers", _EXPOSE_HEADERS),
            ("Vary", "Origin"),
        )

    def preflight(self, get: Get) -> Headers:
        """What else the answer to a preflight says: any header may be sent, ``Mcp-Param-*`` among them."""
        wanted = get("Access-Control-Request-Headers")
        return (
            ("Access-Control-Allow-Methods", "GET, POST, DELETE"),
            ("Access-Control-Allow-Headers", wanted if wanted and _TOKENS.fullmatch(wanted) else _ALLOW_HEADERS),
            ("Access-Control-Max-Age", "600"),
        )

    def allows_origin(self, origin: str) -> bool:
        """Whether a page of that origin may call."""
        origin = origin.lower()
        match = _ORIGIN.match(origin)
        if origin in self._origins:
            return True
        return match is not None and _name(match[2]) in _LOOPBACK

    def allows_host(self, host: str) -> bool:
        """Whether a request may name that host."""
        host = host.lower()
        name = _name(host)
        return name is not None and (name in _LOOPBACK or host in self._hosts or name in self._hosts)


def is_loopback(host: str) -> bool:
    """Whether an address to bind to reaches only this machine."""
    return host.lower() in _LOOPBACK or host.startswith("127.")


def _name(authority: str) -> str | None:
    """The host of ``host[:port]``; None when it is no such thing."""
    match = _AUTHORITY.match(authority)
    if match is None or (match[2] is not None and int(match[2]) > 65535):
        return None
    return match[1]


def _forbidden(header: str, value: str, setting: str) -> Reply:
    """403 with the value and the setting that would allow it."""
    logger.warning("refused a request with %s %r; allow it with %s=", header, value[:200], setting)
    text = f"{header} {value[:200]!r} is not allowed; see the setting {setting}=\n"
    return Reply(403, text.encode(), (("Content-Type", "text/plain; charset=utf-8"),))
