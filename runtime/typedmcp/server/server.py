"""The engine: one message in, one answer out, over the generated method table and a servicer.

Rules:
- The era of a request hangs on the presence of the revision key in ``params._meta``, never on its value; from there on
  the engine is the same for both.
- A notification runs nothing here but the servicer's hook, and is never answered.
- What a handler raises is never shown unless its author meant it to be (:class:`MCPError`, :class:`ToolError`); it is
  logged with its traceback and answered with -32603.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, overload

import msgspec
from msgspec import UNSET, Struct, UnsetType

from typedmcp.core.emitter import Emitter, ErrorHandler, Listener
from typedmcp.core.ending import when_ending
from typedmcp.core.errors import MCPError, MessageError, ToolError, UsageError
from typedmcp.core.guards import is_jsonrpc_request
from typedmcp.core.jsonrpc import (
    JSONRPCErrorData,
    JSONRPCRequest,
    JSONRPCResponse,
    decode_message,
    encode_response,
    from_mapping,
    params_text,
)
from typedmcp.core.narrow import is_object
from typedmcp.core.param_headers import Lookup, offer_marks
from typedmcp.core.validation import explain_data
from typedmcp.server.context import Context, InputNeeded
from typedmcp.server.legacy import LegacyEra, requested_version
from typedmcp.server.modern import DEFAULT_CACHE_SCOPE, DEFAULT_TTL_MS, ModernEra
from typedmcp.server.servicers import ToolServicer, modern_capabilities, overrides, served_capabilities
from typedmcp.server.tools import ToolManager
from typedmcp_wire.codec import decoder
from typedmcp_wire.methods import INITIALIZE, METHODS, Method
from typedmcp_wire.revisions import (
    HANDSHAKE_REVISIONS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MODERN_REVISIONS,
    NULL_ID_REVISIONS,
    PROTOCOL_VERSION_KEY,
    REVISIONS,
)
from typedmcp_wire.servicer import MethodNotImplemented, Servicer
from typedmcp_wire.types.base import Implementation, ServerCapabilities
from typedmcp_wire.types.input import InputRequiredResult
from typedmcp_wire.types.jsonrpc import RequestParams
from typedmcp_wire.types.lifecycle import DiscoverResult

if TYPE_CHECKING:
    from typedmcp.server.rounds import Rounds
    from typedmcp.server.sealing import StateSeal

logger = logging.getLogger("typedmcp")


class _Entry(Struct, frozen=True, eq=False):
    """One method as the engine calls it."""

    method: Method[Any, Any]
    decode: Callable[[Any], Any]
    call: Callable[[Any, Context], Awaitable[Any]]
    has_meta: bool
    modern_only: bool


class _MetaOnly(Struct):
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


_OWN = frozenset({"server/discover", "ping"})
"""The methods the engine serves by itself, beside `initialize`."""

_decode_meta = msgspec.json.Decoder(_MetaOnly).decode


class MCPServer:
    """Serves the protocol without a transport: :meth:`dispatch` for requests, :meth:`handle` for text.

    Args:
        name: The server's name.
        version: The server's version.
        tools: A live registry of tools to serve as they are; for everything else give a `servicer`.
        servicer: The methods to serve; exclusive with `tools`.
        description: What the server is for; clients of 2025-11-25 and later see it.
        title: A name for people.
        instructions: How to use the server, for the model.
        protocol_versions: The revisions to serve; by default every one.
        strict: Refuse what a lenient server lets pass: malformed handshakes, requests before one.
        state_keys: Fernet keys that seal the state of questions to clients of 2026-07-28, the newest first; processes
            that serve the same clients share them.  By default a random one, good for this process.
        state_lifetime: Seconds a client has to answer such a question.
        on: Listeners for the ``request`` event, called with (method, id or None).
        error: Called with (exception, event) when a listener fails.
    """

    def __init__(
        self,
        *,
        name: str,
        version: str,
        tools: ToolManager | None = None,
        servicer: Servicer[Context] | None = None,
        description: str | None = None,
        title: str | None = None,
        instructions: str | None = None,
        protocol_versions: Sequence[str] | None = None,
        strict: bool = False,
        state_keys: Sequence[str | bytes] | None = None,
        state_lifetime: float = 600.0,
        on: Mapping[str, Listener] | None = None,
        error: ErrorHandler | None = None,
    ) -> None:
        if tools is not None and servicer is not None:
            raise UsageError("give either tools or a servicer")
        versions = _versions(protocol_versions)
        self._emitter = Emitter(on, error)
        self._name = name
        self._version = version
        self._description = description
        self._instructions = instructions
        self._strict = strict
        self._state_options = state_keys, state_lifetime
        self._seal: StateSeal | None = None
        self._versions = versions
        self._servicer = servicer or ToolServicer(tools or ToolManager(), strict=strict)
        info = Implementation(name=name, version=version, title=title, description=description)
        handshake = [version for version in versions if version in HANDSHAKE_REVISIONS]
        self._legacy = (
            LegacyEra(handshake, info, self._capabilities, instructions, strict=strict) if handshake else None
        )
        self._modern = ModernEra(versions, frozenset(versions) & frozenset(MODERN_REVISIONS), info)
        self._null_id = NULL_ID_REVISIONS.issuperset(versions) or (bool(handshake) and not strict)
        self._entries = self._table()
        end: Callable[[], None] | None = getattr(self._servicer, "end_listening", None)
        if end is not None:
            when_ending(self, end)
        marks: Lookup | None = getattr(self._servicer, "param_marks", None)
        if marks is not None:
            offer_marks(self, marks)

    @property
    def emitter(self) -> Emitter:
        """Emits ``request`` with (method, id or None) at the start of every dispatch."""
        return self._emitter

    @property
    def name(self) -> str:
        """The server's name."""
        return self._name

    @property
    def version(self) -> str:
        """The server's version."""
        return self._version

    @property
    def description(self) -> str | None:
        """What the server is for."""
        return self._description

    @property
    def protocol_versions(self) -> tuple[str, ...]:
        """The revisions served, newest first."""
        return self._versions

    async def dispatch(
        self, request: JSONRPCRequest | Mapping[str, Any], context: Any = None
    ) -> JSONRPCResponse | None:
        """Serve one request.

        Args:
            request: A decoded request or notification, or one as parsed JSON.
            context: Who sent it: a :class:`~typedmcp.core.connection.Connection`, or None.

        Returns:
            The response; None for a notification.

        Raises:
            UsageError: `request` is parsed JSON but no request.
        """
        if not isinstance(request, JSONRPCRequest):
            request = _narrowed(request)
        request_id = request.id
        if isinstance(request_id, UnsetType):
            self._emitter.emit("request", request.method, None)
            await self._notified(request, context)
            return None
        self._emitter.emit("request", request.method, request_id)
        opened: Context | None = None
        try:
            if request.method == "initialize":
                return JSONRPCResponse(id=request_id, result=self._initialize(request, request_id, context))
            era, entry, params, opened = self._open(request, request_id, context)
            result = await entry.call(params, opened)
            if type(result) is InputRequiredResult:
                result = open_rounds(opened).by_hand(result)
            return JSONRPCResponse(id=request_id, result=era.finish(result, opened, entry.method))
        except MCPError as error:
            return _failed(request_id, error.code, error.message, error.data)
        except MethodNotImplemented:
            return _failed(request_id, METHOD_NOT_FOUND, f"Method not found: {request.method}")
        except ToolError as error:
            return _failed(request_id, INTERNAL_ERROR, str(error))
        except Exception:
            logger.exception("%s failed", request.method)
            return _failed(request_id, INTERNAL_ERROR, "Internal error")
        except InputNeeded:
            assert opened is not None
            assert opened.rounds is not None
            result = self._modern.finish(opened.rounds.result(), opened, METHODS[request.method])
            return JSONRPCResponse(id=request_id, result=result)
        finally:
            if opened is not None:
                opened.finished = True

    @overload
    async def handle(self, message: bytes, context: Any = None) -> bytes | None: ...
    @overload
    async def handle(self, message: str, context: Any = None) -> str | None: ...
    async def handle(self, message: bytes | str, context: Any = None) -> bytes | str | None:
        """Serve the text of one message: bytes in, bytes out; text in, text out.

        Returns:
            The text of the response; None when there is none.  Unreadable text is answered with -32700, JSON that is
            no request with -32600.
        """
        response: JSONRPCResponse | None
        try:
            request = decode_message(message)
        except MessageError as error:
            if not error.answer and b'"method"' in error.frame:
                return None
            response = self._refusal(error, context)
        else:
            if isinstance(request, JSONRPCResponse):
                problem = MessageError(INVALID_REQUEST, "A server takes requests, not responses.")
                response = self._refusal(problem, context)
            else:
                response = await self.dispatch(request, context)
        if response is None:
            return None
        text = encode_response(response)
        return text if isinstance(message, bytes) else text.decode()

    def _refusal(self, error: MessageError, peer: Any) -> JSONRPCResponse:
        handshake = getattr(peer, "handshake", None)
        null_id = self._null_id if handshake is None else handshake.revision in NULL_ID_REVISIONS
        no_id = None if null_id else UNSET
        data = JSONRPCErrorData(code=error.code, message=error.message)
        return JSONRPCResponse(id=no_id if error.id is None else error.id, error=data)

    # -- one request -----------------------------------------------------------------------------------------------

    def _open(
        self, request: JSONRPCRequest, request_id: int | str, peer: Any
    ) -> tuple[ModernEra | LegacyEra, _Entry, Any, Context]:
        """What is needed to run a request: its era, how to call it, its parameters and its context.

        Raises:
            MCPError: the request cannot be served.
        """
        entry = self._entries.get(request.method)
        raw = params_text(request.params)
        if entry is None:
            raise self._unknown(request, request_id, raw, peer)
        try:
            params = entry.decode(raw)
            meta: dict[str, Any] | None = params.meta if entry.has_meta else _decode_meta(raw).meta
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise self._bad_params(request, request_id, entry, raw, peer) from None
        legacy = self._legacy
        if legacy is None or (meta is not None and PROTOCOL_VERSION_KEY in meta):
            context = self._modern.open(meta or {}, request_id, request.method, entry.method, peer)
            if entry.method.asks:
                context.retry = self._state_seal, params
                if params.request_state is not None:
                    open_rounds(context)
            return self._modern, entry, params, context
        if entry.modern_only and getattr(peer, "handshake", None) is None:
            # A method only the modern era has, without the envelope that era demands: this always raises.
            self._modern.open(meta or {}, request_id, request.method, entry.method, peer)
        return legacy, entry, params, legacy.open(meta, request_id, request.method, entry.method, peer)

    def _initialize(self, request: JSONRPCRequest, request_id: int | str, peer: Any) -> Any:
        """Open a connection of the handshake era; in the modern era the method does not exist."""
        raw = params_text(request.params)
        try:
            meta = _decode_meta(raw).meta
        except msgspec.ValidationError as error:
            if bytes(raw)[:1] != b"{":
                raise self._no_object(raw, error) from None
            meta = None  # the handshake itself judges malformed parameters
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise self._no_object(raw, error) from error
        if self._legacy is not None and (meta is None or PROTOCOL_VERSION_KEY not in meta):
            return self._legacy.initialize(raw, peer)
        if meta is None or PROTOCOL_VERSION_KEY not in meta:
            raise self._modern.unsupported(requested_version(raw))
        return self._modern.open(meta, request_id, "initialize", INITIALIZE, peer)

    def _state_seal(self) -> StateSeal:
        """What seals the state of unfinished requests; made for the first question, which most servers never ask."""
        if self._seal is None:
            from typedmcp.server.sealing import StateSeal

            keys, lifetime = self._state_options
            self._seal = StateSeal(keys, lifetime=lifetime)
        return self._seal

    def _unknown(self, request: JSONRPCRequest, request_id: int | str, raw: Any, peer: Any) -> Exception:
        """The error for a method nobody has, after the checks that come before the method."""
        try:
            meta = _decode_meta(raw).meta
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            return self._no_object(raw, error)
        try:
            self._era_open(meta, request_id, request.method, None, peer)
        except MCPError as error:
            return error
        return MCPError(METHOD_NOT_FOUND, f"Method not found: {request.method}")

    def _era_open(
        self, meta: dict[str, Any] | None, request_id: int | str, name: str, method: Method[Any, Any] | None, peer: Any
    ) -> Context:
        if self._legacy is None or (meta is not None and PROTOCOL_VERSION_KEY in meta):
            return self._modern.open(meta or {}, request_id, name, method, peer)
        return self._legacy.open(meta, request_id, name, method, peer)

    def _bad_params(
        self, request: JSONRPCRequest, request_id: int | str, entry: _Entry, raw: Any, peer: Any
    ) -> Exception:
        """The error for parameters of the wrong shape, after the checks that come before them."""
        try:
            value = msgspec.json.decode(raw)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            return self._no_object(raw, error)
        if not is_object(value):
            return MCPError(INVALID_REQUEST, "params must be an object.")
        meta: Any = value.get("_meta")
        if meta is not None and not is_object(meta):
            return MCPError(INVALID_PARAMS, "params._meta must be an object.")
        try:
            context = self._era_open(meta, request_id, request.method, entry.method, peer)
        except MCPError as error:
            return error
        if not self._serves(entry.method):
            return MCPError(METHOD_NOT_FOUND, f"Method not found: {request.method}")
        data = explain_data(value, entry.method.params_definition, context.revision, "/params")
        return MCPError(INVALID_PARAMS, f"Invalid params for {request.method}.", data)

    def _no_object(self, raw: Any, error: Exception) -> MCPError:
        if bytes(raw)[:1] != b"{":
            return MCPError(INVALID_REQUEST, "params must be an object.")
        return MCPError(INVALID_PARAMS, f"params cannot be read: {type(error).__name__}.")

    # -- set-up ----------------------------------------------------------------------------------------------------

    def _table(self) -> dict[str, _Entry]:
        table: dict[str, _Entry] = {}
        own = {"server/discover": self._discover, "ping": self._ping}
        for method in METHODS.values():
            if method.kind == "request" and method.client and method is not INITIALIZE:
                call = own.get(method.name) or getattr(self._servicer, method.attribute)
                has_meta = "meta" in getattr(method.params, "__struct_fields__", ())
                served = method.client.intersection(self._versions)
                modern_only = bool(served) and served.isdisjoint(HANDSHAKE_REVISIONS)
                table[method.name] = _Entry(method, decoder(method.params).decode, call, has_meta, modern_only)
        return table

    def _serves(self, method: Method[Any, Any]) -> bool:
        """Whether the method is there at all, whatever its parameters."""
        if method.name in _OWN:
            return True
        if not overrides(self._servicer, method.attribute):
            return False
        declared: Any = self._capabilities()
        for part in (method.capability or "").split("."):
            declared = getattr(declared, part, None) if part else declared
        return declared is not None and declared is not False

    def _capabilities(self) -> ServerCapabilities:
        return served_capabilities(self._servicer)

    async def _discover(self, params: RequestParams, context: Context) -> DiscoverResult:
        return DiscoverResult(
            supported_versions=list(self._versions),
            capabilities=modern_capabilities(self._servicer),
            instructions=self._instructions,
            ttl_ms=DEFAULT_TTL_MS,
            cache_scope=DEFAULT_CACHE_SCOPE,
            result_type="complete",
        )

    async def _ping(self, params: RequestParams, context: Context) -> dict[str, Any]:
        return {}

    async def _notified(self, notification: JSONRPCRequest, peer: Any) -> None:
        """Let the servicer hear a notification; nothing it does can lead to an answer."""
        handshake = getattr(peer, "handshake", None)
        if notification.method == "notifications/initialized" and handshake is not None:
            handshake.initialized = True
        method = METHODS.get(notification.method)
        if method is None or method.kind != "notification" or not method.client:
            logger.debug("ignored a notification: %s", notification.method)
            return
        hook = getattr(self._servicer, method.attribute)
        if getattr(type(self._servicer), method.attribute) is getattr(Servicer, method.attribute):
            return
        try:
            params = decoder(method.params).decode(params_text(notification.params))
            context = Context.for_notification(method.name, handshake, peer)
            await hook(params, context)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            logger.warning("ignored a malformed %s: %s", notification.method, error)
        except Exception:
            logger.exception("the hook for %s failed", notification.method)


def open_rounds(context: Context) -> Rounds:
    """The questions of a request; loaded late, since most servers never ask."""
    from typedmcp.server.rounds import rounds_of

    return rounds_of(context)


def _versions(wanted: Sequence[str] | None) -> tuple[str, ...]:
    """The revisions to serve, newest first.

    Raises:
        UsageError: one is unknown, or there is none.
    """
    if wanted is None:
        return tuple(reversed(REVISIONS))
    unknown = [version for version in wanted if version not in REVISIONS]
    if unknown or not wanted:
        known = ", ".join(REVISIONS)
        raise UsageError(f"protocol_versions must name revisions among {known}; got {list(wanted)}")
    return tuple(sorted(set(wanted), reverse=True))


def _narrowed(value: object) -> JSONRPCRequest:
    if not is_jsonrpc_request(value):
        raise UsageError("dispatch takes a JSON-RPC request; use handle() for text of unknown content")
    return from_mapping(cast("Mapping[str, Any]", value))


def _failed(request_id: int | str, code: int, message: str, data: Any = UNSET) -> JSONRPCResponse:
    return JSONRPCResponse(id=request_id, error=JSONRPCErrorData(code=code, message=message, data=data))
