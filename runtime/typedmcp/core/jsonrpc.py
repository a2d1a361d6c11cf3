"""JSON-RPC 2.0 envelopes between bytes and structs.

Rules:
- One pass over the bytes reads the envelope; ``params`` and ``result`` stay undecoded (:class:`msgspec.Raw`) until the
  method table has named their type.
- An id is a string or an integer.  0 and "" are ids; null, true and 1.5 are not.  A request without the member is a
  notification.  Nothing folds ids: 7 and "7" differ.
- Every failure to read a message is one :class:`~typedmcp.core.errors.MessageError`: -32700 for text that is not JSON
  (or nests too deeply to read), -32600 for JSON that is no message.
- Outgoing text is compact, has no line break of any kind (U+2028, U+2029 and U+0085 are escaped), and never holds a
  number that JSON lacks: NaN and the infinities are refused.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from typedmcp.core.errors import MessageError
from typedmcp.core.narrow import is_object
from typedmcp_wire.revisions import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR

logger = logging.getLogger("typedmcp")
RequestId: TypeAlias = int | str

_NO_PARAMS = Raw(b"{}")


class JSONRPCRequest(Struct, kw_only=True, omit_defaults=True, gc=False):
    """A call, or a notification when it has no id.

    `params` is undecoded text in a message read from the wire, and may be a dictionary or a struct in one to be sent.
    """

    jsonrpc: Literal["2.0"] = field(default_factory=lambda: "2.0")
    id: RequestId | UnsetType = UNSET
    method: str
    params: Any = UNSET

    @property
    def is_notification(self) -> bool:
        return self.id is UNSET


class JSONRPCErrorData(Struct, omit_defaults=True, gc=False):
    """What went wrong: a code, one short sentence, and anything more as `data`."""

    code: int
    message: str
    data: Any = UNSET


class JSONRPCResponse(Struct, kw_only=True, omit_defaults=True, gc=False):
    """The answer to a call: `result` or `error`, never both.

    `id` is None or unset only in an error about a request whose id could not be read.
    """

    jsonrpc: Literal["2.0"] = field(default_factory=lambda: "2.0")
    id: RequestId | UnsetType | None = UNSET
    result: Any = UNSET
    error: JSONRPCErrorData | UnsetType = UNSET


JSONRPCMessage: TypeAlias = JSONRPCRequest | JSONRPCResponse


class _RequestFrame(JSONRPCRequest, kw_only=True, gc=False):
    """What a request is decoded into; here `jsonrpc` is demanded, while the base fills it in."""

    jsonrpc: Literal["2.0"]  # pyright: ignore[reportGeneralTypeIssues]
    params: Raw | UnsetType = UNSET


class _ResponseFrame(JSONRPCResponse, kw_only=True, gc=False):
    """What a response is decoded into; `jsonrpc` as in a request."""

    jsonrpc: Literal["2.0"]  # pyright: ignore[reportGeneralTypeIssues]
    method: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET


_decode_request = msgspec.json.Decoder(_RequestFrame).decode
_decode_response = msgspec.json.Decoder(_ResponseFrame).decode
_encode = msgspec.json.Encoder().encode


def decode_message(data: bytes | str) -> JSONRPCMessage:
    """The message in `data`.

    Raises:
        MessageError: it is not JSON, or JSON that is no request, notification or response (an array among them).
    """
    try:
        return _decode_request(data)
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise _unreadable(data, error) from error
    return decode_response(data)


def decode_response(data: bytes | str) -> JSONRPCMessage:
    """Like :func:`decode_message`, quicker for a reader that expects responses."""
    try:
        frame = _decode_response(data)
    except msgspec.ValidationError as error:
        raise _no_message(data, error) from error
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise _unreadable(data, error) from error
    if frame.method is not UNSET:
        try:
            return _decode_request(data)
        except msgspec.ValidationError as error:
            raise _no_message(data, error) from error
        except (msgspec.DecodeError, ValueError) as error:  # bad UTF-8 shows only when a text is decoded
            raise _unreadable(data, error) from error
    if (frame.result is UNSET) == (frame.error is UNSET):
        raise _no_message(data, ValueError("a response has either a result or an error"))
    if frame.result is not UNSET and (frame.id is UNSET or frame.id is None):
        raise _no_message(data, ValueError("a result carries the id of its request"))
    return frame


def split_batch(data: bytes | str) -> list[bytes]:
    """The members of a JSON-RPC batch, undecoded.

    Raises:
        MessageError: it is no array, or an empty one.
    """
    try:
        members = msgspec.json.decode(data, type=list[Raw])
    except msgspec.ValidationError as error:
        raise _no_message(data, error) from error
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise _unreadable(data, error) from error
    if not members:
        raise MessageError(INVALID_REQUEST, "A batch holds at least one message.", frame=_frame(data))
    return [bytes(member) for member in members]


def is_array(data: bytes | str) -> bool:
    """Whether JSON text begins like an array, that is, a batch."""
    return data.lstrip()[:1] in (b"[", "[")


class NonFiniteNumber(ValueError):
    """A value to be sent holds NaN or an infinity, which JSON lacks; the text names its JSON Pointer."""


def encode_message(message: object) -> bytes:
    """Compact UTF-8 text of a message, without any line break.

    Args:
        message: A request, a response, or a mapping of the same shape.

    Raises:
        NonFiniteNumber: a number is NaN or infinite.
        ValueError: a string holds half a surrogate pair.
        TypeError: a value has no JSON form.
    """
    data = _encode(message)
    if b"null" in data:
        refuse_non_finite(message)
    if not data.isascii():
        data = (
            data.replace(b"\xe2\x80\xa8", b"\\u2028")
            .replace(b"\xe2\x80\xa9", b"\\u2029")
            .replace(b"\xc2\x85", b"\\u0085")
        )
    return data


def encode_response(response: JSONRPCResponse) -> bytes:
    """Like :func:`encode_message`; a result that has no JSON form becomes an internal error, and is logged."""
    try:
        data = _encode(response)
        # Nearly every answer: nothing to escape, and no null that could have been a NaN.
        return data if data.isascii() and b"null" not in data else encode_message(response)
    except (ValueError, TypeError, RecursionError):
        logger.exception("the result of request %r cannot be written as JSON", response.id)
        error = JSONRPCErrorData(code=INTERNAL_ERROR, message="Internal error")
        return _encode(JSONRPCResponse(id=response.id, error=error))


def refuse_non_finite(value: object) -> None:
    """Raise NonFiniteNumber naming the pointer of a NaN or infinity inside `value`; the encoder writes null for it."""
    found = _non_finite(msgspec.to_builtins(value, builtin_types=(Raw,)), "")
    if found is not None:
        raise NonFiniteNumber(f"JSON has no NaN or infinity, found one at {found or 'the top'}")


def _non_finite(value: object, path: str) -> str | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else path
    children: Iterable[tuple[Any, Any]] = ()
    if is_object(value):
        children = value.items()
    elif isinstance(value, (list, tuple)):
        children = enumerate(cast("list[Any]", value))
    for key, child in children:
        token = str(key).replace("~", "~0").replace("/", "~1")
        found = _non_finite(child, f"{path}/{token}")
        if found is not None:
            return found
    return None


def from_mapping(value: Mapping[str, Any]) -> JSONRPCRequest:
    """The request a parsed JSON object stands for; the guards have seen it."""
    params = value.get("params", UNSET)
    return JSONRPCRequest(id=value.get("id", UNSET), method=value["method"], params=params)


def params_text(params: object) -> Raw | bytes:
    """`params` of a request as JSON text, whatever form they have."""
    if params is UNSET:
        return _NO_PARAMS
    return params if isinstance(params, Raw) else _encode(params)


def _unreadable(data: bytes | str, error: Exception) -> MessageError:
    if isinstance(error, RecursionError):
        text = "The message nests too deeply."
    elif isinstance(error, UnicodeError):
        text = "The message is not UTF-8."
    else:
        text = "The message is not JSON."
    return MessageError(PARSE_ERROR, text, frame=_frame(data))


class _Glance(Struct):
    id: Any = UNSET
    method: Any = UNSET
    result: Any = UNSET
    error: Any = UNSET


def _no_message(data: bytes | str, error: Exception) -> MessageError:
    """Why JSON is no message, and whether the sender may be waiting for an answer."""
    frame = _frame(data)
    try:
        # A wrong type ends decoding early: only a pass over all of it tells whether this is JSON at all.
        msgspec.json.decode(data, type=Raw)
        glance = msgspec.json.decode(data, type=_Glance)
    except msgspec.ValidationError:
        return MessageError(INVALID_REQUEST, "A message is one JSON object.", frame=frame)
    except (msgspec.DecodeError, ValueError, RecursionError) as unreadable:
        return _unreadable(data, unreadable)
    request_id = glance.id if type(glance.id) in (int, str) else None
    response = glance.method is UNSET and (glance.result is not UNSET or glance.error is not UNSET)
    notification = isinstance(glance.method, str) and glance.id is UNSET
    text = f"Not a JSON-RPC 2.0 message: {error}"
    return MessageError(INVALID_REQUEST, text, id=request_id, answer=not (response or notification), frame=frame)


def _frame(data: bytes | str) -> bytes:
    return data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
