"""The modern era: every request says in its ``_meta`` which revision, client and capabilities it comes with.

Order of checks, as reference pages and the official suite want it: both required members of ``_meta`` (-32602), the
revision (-32022), the method (-32601), then the parameters (-32602).

Follows the specification's 2026-07-28 pages basic/index, basic/versioning and server/discover.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, field

from typedmcp.core.errors import MCPError
from typedmcp.core.narrow import is_object
from typedmcp.core.revisions import fit
from typedmcp.core.validation import explain_data
from typedmcp.server.context import Context, Peer
from typedmcp_wire.methods import CALL_TOOL, Method
from typedmcp_wire.revisions import (
    CLIENT_CAPABILITIES_KEY,
    INVALID_PARAMS,
    LATEST_PROTOCOL_VERSION,
    METHOD_NOT_FOUND,
    PROTOCOL_VERSION_KEY,
    SERVER_INFO_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from typedmcp_wire.types.base import ClientCapabilities, Implementation, LoggingLevel

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_TTL_MS: Final = 0
DEFAULT_CACHE_SCOPE: Final = "private"


class _RequestMeta(Struct, gc=False):
    """The members of ``_meta`` that govern a request; others are the application's."""

    version: str = field(name=PROTOCOL_VERSION_KEY)
    capabilities: ClientCapabilities = field(name=CLIENT_CAPABILITIES_KEY)
    client_info: Implementation | None = field(name="io.modelcontextprotocol/clientInfo", default=None)
    log_level: LoggingLevel | None = field(name="io.modelcontextprotocol/logLevel", default=None)
    progress_token: int | str | None = field(name="progressToken", default=None)


class ModernEra:
    """Contexts from ``_meta``, and results with what the era adds to them.

    Args:
        revisions: Every revision the server serves, newest first; named in errors and by ``server/discover``.
        served: The modern ones among them.
        info: Who the server is; None leaves it out of results.
    """

    def __init__(self, revisions: Sequence[str], served: frozenset[str], info: Implementation | None) -> None:
        self._revisions = tuple(revisions)
        self._served = served
        self._meta: dict[str, Any] | None = None if info is None else {SERVER_INFO_KEY: msgspec.to_builtins(info)}

    def open(
        self, meta: dict[str, Any], request_id: int | str, name: str, method: Method[Any, Any] | None, peer: Peer | None
    ) -> Context:
        """The context of a request.

        Raises:
            MCPError: the envelope is malformed, the revision is not served, or it has no such method.
        """
        try:
            known = msgspec.convert(meta, _RequestMeta)
        except msgspec.ValidationError:
            raise self._malformed(meta) from None
        version = known.version
        if version not in self._served:
            raise self.unsupported(version)
        if method is None or version not in method.client:
            raise MCPError(METHOD_NOT_FOUND, f"Method not found: {name}")
        return Context(
            version,
            request_id,
            name,
            client_info=known.client_info,
            client_capabilities=known.capabilities,
            log_level=known.log_level,
            progress_token=known.progress_token,
            meta=meta,
            peer=peer,
        )

    def unsupported(self, version: object) -> MCPError:
        """The refusal of a revision this server does not serve."""
        return MCPError(
            UNSUPPORTED_PROTOCOL_VERSION,
            "Unsupported protocol version",
            {"supported": list(self._revisions), "requested": version},
        )

    def _malformed(self, meta: dict[str, Any]) -> MCPError:
        """Which member of ``_meta`` is missing or wrong; a readable revision that is not served goes first."""
        version = meta.get(PROTOCOL_VERSION_KEY)
        if isinstance(version, str) and CLIENT_CAPABILITIES_KEY in meta and version not in self._served:
            return self.unsupported(version)
        revision = version if isinstance(version, str) and version in self._served else LATEST_PROTOCOL_VERSION
        missing = [key for key in (PROTOCOL_VERSION_KEY, CLIENT_CAPABILITIES_KEY) if key not in meta]
        message = f"params._meta lacks {missing[0]}" if missing else "params._meta is malformed"
        return MCPError(INVALID_PARAMS, message, explain_data(meta, "RequestMetaObject", revision, "/params/_meta"))

    def finish(self, result: Any, context: Context, method: Method[Any, Any]) -> Any:
        """A copy of `result` with its type, the server's identity and, where cacheable, how long it stays fresh."""
        # A tool's result has had no field withdrawn: what is called most need not be looked through.
        if method is not CALL_TOOL or context.revision != LATEST_PROTOCOL_VERSION:
            result = fit(result, context.revision)
        if is_object(result):
            meta = self._merged(result.get("_meta"))
            stamped = {**result, "resultType": result.get("resultType", "complete")}
            return {**stamped, "_meta": meta} if meta else stamped
        changes: dict[str, Any] = {}
        if result.result_type is None:
            changes["result_type"] = "complete"
        meta = self._merged(result.meta)
        if meta:
            changes["meta"] = meta
        if method.cacheable and hasattr(result, "ttl_ms"):
            if result.ttl_ms is None:
                changes["ttl_ms"] = DEFAULT_TTL_MS
            if result.cache_scope is None:
                changes["cache_scope"] = DEFAULT_CACHE_SCOPE
        return msgspec.structs.replace(result, **changes)

    def _merged(self, meta: dict[str, Any] | None) -> dict[str, Any] | None:
        if not meta:
            return self._meta
        return meta if self._meta is None else {**self._meta, **meta}
