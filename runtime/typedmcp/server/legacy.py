"""The handshake era: a layer that gives older clients the same engine.

It answers ``initialize`` and ``ping``, keeps what the handshake agreed per connection, fills the context of each
request from it, and cuts results down to what the client's revision can carry.

Rules:
- A supported revision asked for is echoed; anything else, absent and malformed included, gets the newest handshake
  revision served.  2026-07-28 is never the answer.
- ``initialize`` opens a connection once; a second one is refused and changes nothing.
- ``ping`` is answered at any time.  A strict server refuses other requests on a connection without a handshake; a
  server without a connection (text in, text out) takes the newest handshake revision.

Follows the lifecycle pages of 2024-11-05 to 2025-11-25.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import msgspec
from msgspec import UNSET, Struct

from typedmcp.core.connection import Handshake
from typedmcp.core.errors import MCPError
from typedmcp.core.revisions import exists_in, fit
from typedmcp.core.validation import explain_data
from typedmcp.server.context import Context, Peer, as_level
from typedmcp_wire.codec import decoder, to_builtins
from typedmcp_wire.methods import Method
from typedmcp_wire.revisions import (
    HANDSHAKE_REVISIONS,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MCP_PROTOCOL_VERSION,
    METHOD_NOT_FOUND,
)
from typedmcp_wire.types.base import (
    ClientCapabilities,
    Implementation,
    ServerCapabilities,
    ToolsCapability,
)
from typedmcp_wire.types.calls import CallToolResult
from typedmcp_wire.types.content import AudioContent, ResourceLink, TextContent
from typedmcp_wire.types.lifecycle import InitializeRequestParams, InitializeResult
from typedmcp_wire.types.prompts import GetPromptResult
from typedmcp_wire.types.tools import ListToolsResult

if TYPE_CHECKING:
    from typedmcp_wire.types.content import ContentBlock

_NO_CAPABILITIES = ClientCapabilities()
_UNKNOWN_CLIENT = Implementation(name="unknown", version="")


class HandshakePeer(Peer, Protocol):
    """A connection or session that remembers a handshake."""

    handshake: Handshake | None


class _Params(Struct):
    """`initialize` as sent, nothing assumed about the shape of its members."""

    protocolVersion: Any = None  # noqa: N815 - the wire's name
    capabilities: Any = None
    clientInfo: Any = None  # noqa: N815


class _Meta(Struct):
    progressToken: int | str | None = None  # noqa: N815


class LegacyEra:
    """Contexts from a handshake, and results that fit older revisions.

    Args:
        revisions: The handshake revisions served, newest first.
        info: Who the server is.
        capabilities: Asked for what the server can do, at each handshake.
        instructions: How to use the server, for the model.
        strict: Whether malformed handshakes and requests before one are refused.
    """

    def __init__(
        self,
        revisions: Sequence[str],
        info: Implementation,
        capabilities: Callable[[], ServerCapabilities],
        instructions: str | None,
        *,
        strict: bool,
    ) -> None:
        self._revisions = tuple(revisions)
        self._info = info
        self._capabilities = capabilities
        self._instructions = instructions
        self._strict = strict

    def negotiate(self, requested: object) -> str:
        """The revision to answer a wish for `requested` with."""
        return requested if isinstance(requested, str) and requested in self._revisions else self._revisions[0]

    def initialize(self, params: msgspec.Raw | bytes, peer: Any) -> Any:
        """Answer `initialize` and remember what was agreed.

        Raises:
            MCPError: the connection has shaken hands before, or (strict) the parameters are malformed.
        """
        connection = peer if _remembers(peer) else None
        if connection is not None and connection.handshake is not None:
            raise MCPError(INVALID_REQUEST, "This connection is initialized already.")
        asked = self._read(params)
        revision = self.negotiate(asked.protocolVersion)
        if connection is not None:
            connection.handshake = Handshake(
                revision=revision,
                client_info=_lenient(asked.clientInfo, Implementation, _UNKNOWN_CLIENT),
                capabilities=_lenient(asked.capabilities, ClientCapabilities, _NO_CAPABILITIES),
            )
        return _initialized(self._info, revision, self._capabilities(), self._instructions)

    def _read(self, params: msgspec.Raw | bytes) -> _Params:
        try:
            asked = msgspec.json.decode(params, type=_Params)
        except msgspec.DecodeError:
            raise MCPError(INVALID_PARAMS, "The parameters of initialize must be an object.") from None
        if self._strict:
            self._demand(params, self.negotiate(asked.protocolVersion))
        return asked

    def _demand(self, params: msgspec.Raw | bytes, revision: str) -> None:
        """Refuse parameters of `initialize` that are not what `revision` says; guards are loaded only for that."""
        try:
            decoder(InitializeRequestParams).decode(params)
        except msgspec.DecodeError:
            data = explain_data(msgspec.json.decode(params), "InitializeRequestParams", revision, "/params")
            raise MCPError(INVALID_PARAMS, "The parameters of initialize are malformed.", data) from None

    def open(
        self, meta: dict[str, Any] | None, request_id: int | str, name: str, method: Method[Any, Any] | None, peer: Any
    ) -> Context:
        """The context of a request, from the handshake of its connection.

        Raises:
            MCPError: there was no handshake (strict), or the revision agreed on has no such method.
        """
        handshake: Handshake | None = getattr(peer, "handshake", None)
        if handshake is None and self._strict and name != "ping" and _remembers(peer):
            raise MCPError(
                INVALID_REQUEST,
                "The handshake is missing: send initialize first.",
                {"hint": "or put the members of 2026-07-28 into params._meta of every request"},
            )
        revision = self._revisions[0] if handshake is None else handshake.revision
        if method is None or revision not in method.client:
            raise MCPError(METHOD_NOT_FOUND, f"Method not found: {name}")
        return Context(
            revision,
            request_id,
            name,
            client_info=None if handshake is None else handshake.client_info,
            client_capabilities=_NO_CAPABILITIES if handshake is None else handshake.capabilities,
            log_level=None if handshake is None else as_level(handshake.log_level),
            progress_token=_token(meta) if meta else None,
            meta=meta,
            peer=peer,
        )

    def finish(self, result: Any, context: Context, method: Method[Any, Any]) -> Any:
        """`result` as the client's revision can carry it; a handler's own object is never changed."""
        revision = context.revision
        if isinstance(result, CallToolResult):
            result = _carried(result, revision)
        elif isinstance(result, GetPromptResult):
            result = _prompted(result, revision)
        elif isinstance(result, ListToolsResult):
            result = _listed(result)
        elif not isinstance(result, (Struct, dict)):
            raise TypeError(f"{context.method} must return a result object, not {type(result).__name__}")
        return fit(result, revision)


def requested_version(params: msgspec.Raw | bytes) -> object:
    """The revision an `initialize` asks for, whatever stands there; None when it cannot be read."""
    try:
        return msgspec.json.decode(params, type=_Params).protocolVersion
    except msgspec.DecodeError:
        return None


def initialize_result(name: str, version: str, requested: object = None) -> InitializeResult:
    """The answer of a plain tool server to a client that asks for the revision `requested`, whatever that is."""
    revision = requested if isinstance(requested, str) and requested in HANDSHAKE_REVISIONS else MCP_PROTOCOL_VERSION
    capabilities = ServerCapabilities(tools=ToolsCapability())
    return _initialized(Implementation(name=name, version=version), revision, capabilities, None)


def _initialized(
    info: Implementation, revision: str, capabilities: ServerCapabilities, instructions: str | None
) -> InitializeResult:
    """The result of `initialize` in a revision already negotiated."""
    whole = InitializeResult(
        protocol_version=revision, capabilities=capabilities, server_info=info, instructions=instructions
    )
    fitted: InitializeResult = fit(whole, revision)
    return fitted


def _carried(result: CallToolResult, revision: str) -> CallToolResult:
    """A tool's result without structured content the revision cannot hold and with blocks it knows."""
    changes: dict[str, Any] = {}
    structured = result.structured_content
    if structured is not UNSET and type(structured) is not dict and not isinstance(to_builtins(structured), dict):
        changes["structured_content"] = UNSET
    content = result.content
    # Text, which nearly all content is, has always existed.
    if not (len(content) == 1 and type(content[0]) is TextContent):
        carried = [_block(block, revision) for block in content]
        if not all(map(is_, carried, content)):
            changes["content"] = carried
    return msgspec.structs.replace(result, **changes) if changes else result


def _prompted(result: GetPromptResult, revision: str) -> GetPromptResult:
    """A prompt with blocks the revision knows."""
    if all(exists_in(type(message.content).__name__, revision) for message in result.messages):
        return result
    messages = [
        msgspec.structs.replace(message, content=_block(message.content, revision)) for message in result.messages
    ]
    return msgspec.structs.replace(result, messages=messages)


def _listed(result: ListToolsResult) -> ListToolsResult:
    """A list of tools without output schemas for what is no object; 2026-07-28 brought those."""
    if all(tool.output_schema is None or tool.output_schema.get("type") == "object" for tool in result.tools):
        return result
    tools = [
        tool
        if tool.output_schema is None or tool.output_schema.get("type") == "object"
        else msgspec.structs.replace(tool, output_schema=None)
        for tool in result.tools
    ]
    return msgspec.structs.replace(result, tools=tools)


def _block(block: ContentBlock, revision: str) -> ContentBlock:
    if exists_in(type(block).__name__, revision):
        return block
    if isinstance(block, AudioContent):
        return TextContent(text=f"[audio of type {block.mime_type}, {len(block.data)} base64 characters, left out]")
    if isinstance(block, ResourceLink):
        label = block.title or block.name
        about = f": {block.description}" if block.description else ""
        return TextContent(text=f"[resource {label}{about}] {block.uri}")
    return block


def _remembers(peer: object) -> TypeGuard[HandshakePeer]:
    return hasattr(peer, "handshake")


def _lenient(value: object, kind: Any, default: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return default


def _token(meta: dict[str, Any]) -> int | str | None:
    try:
        return msgspec.convert(meta, _Meta).progressToken
    except msgspec.ValidationError:
        raise MCPError(INVALID_PARAMS, "A progress token is a string or an integer.") from None
