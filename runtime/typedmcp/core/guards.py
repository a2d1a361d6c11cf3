"""Guards and builders for JSON-RPC envelopes (seed A).

The guards judge parsed JSON, and our own envelope structs, by the envelope alone; what a method's parameters must be
is judged by :mod:`typedmcp.core.validation`.  They are total: no input makes them raise.  Unlike the decoder they let
a number with a fraction of zero pass as an id, since JSON does not tell 1.0 from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard, cast

from msgspec import UNSET, UnsetType

from typedmcp.core.jsonrpc import JSONRPCErrorData, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse


def is_request_id(value: object) -> bool:
    """Whether `value` can be the id of a request: a string, a number without fraction, or absent (UNSET)."""
    return _total(_request_id, value)


def is_jsonrpc_request(value: object) -> TypeGuard[JSONRPCRequest | Mapping[str, Any]]:
    """Whether `value` is a request, or a notification when it has no id."""
    return _total(_request, value)


def is_jsonrpc_response(value: object) -> TypeGuard[JSONRPCResponse | Mapping[str, Any]]:
    """Whether `value` is a response: an id (null allowed) and either a result or an error."""
    return _total(_response, value)


def is_jsonrpc_message(value: object) -> TypeGuard[JSONRPCMessage | Mapping[str, Any]]:
    """Whether `value` is a request, a notification or a response."""
    return is_jsonrpc_request(value) or is_jsonrpc_response(value)


def is_initialize_request(value: object) -> TypeGuard[JSONRPCRequest | Mapping[str, Any]]:
    """Whether `value` is a request whose method is ``initialize``."""
    return _total(_initialize, value)


def parse_jsonrpc_message(value: object) -> Any:
    """`value` itself when it is a message, otherwise None."""
    return value if is_jsonrpc_message(value) else None


def jsonrpc_result(id: int | str, value: Any) -> JSONRPCResponse:  # noqa: A002 - the protocol's own name
    """A response that carries a result."""
    return JSONRPCResponse(id=id, result=value)


def jsonrpc_error(
    id: int | str | None,  # noqa: A002
    code: int,
    message: str,
    data: Any | UnsetType = UNSET,
) -> JSONRPCResponse:
    """A response that carries an error; `data` is left out when not given."""
    return JSONRPCResponse(id=id, error=JSONRPCErrorData(code=code, message=message, data=data))


def _total(judge: Callable[[Any], bool], value: object) -> bool:
    try:
        return judge(value)
    except Exception:  # noqa: BLE001 - a value that cannot be looked at is no message
        return False


def _members(value: object) -> dict[str, Any]:
    """The members of an envelope, absent ones left out; nothing for any other value."""
    if isinstance(value, (JSONRPCRequest, JSONRPCResponse)):
        pairs = ((name, getattr(value, name)) for name in value.__struct_fields__)
        return {name: member for name, member in pairs if member is not UNSET}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _request_id(value: object) -> bool:
    if value is UNSET or isinstance(value, str):
        return True
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _request(value: object) -> bool:
    members = _members(value)
    if members.get("jsonrpc") != "2.0" or not isinstance(members.get("method"), str):
        return False
    if not _request_id(members.get("id", UNSET)):
        return False
    return isinstance(value, JSONRPCRequest) or isinstance(members.get("params", {}), dict)


def _initialize(value: object) -> bool:
    return _request(value) and bool(_members(value).get("method") == "initialize")


def _response(value: object) -> bool:
    members = _members(value)
    if members.get("jsonrpc") != "2.0" or "id" not in members or "method" in members:
        return False
    if not (members["id"] is None or _request_id(members["id"])):
        return False
    if ("result" in members) == ("error" in members):
        return False
    return "result" in members or _error(members["error"])


def _error(value: object) -> bool:
    if isinstance(value, JSONRPCErrorData):
        return True
    if not isinstance(value, dict):
        return False
    members = cast("dict[str, Any]", value)
    code = members.get("code")
    return isinstance(code, (int, float)) and not isinstance(code, bool) and isinstance(members.get("message"), str)
