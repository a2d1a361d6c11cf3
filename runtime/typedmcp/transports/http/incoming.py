"""What a POST carries, read once: the message, the revision its header names, and which era it belongs to."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, field

from typedmcp.core.errors import MessageError
from typedmcp.core.jsonrpc import JSONRPCMessage, JSONRPCRequest, decode_message, is_array, params_text, split_batch
from typedmcp.core.narrow import is_object
from typedmcp.transports.http.mirror import Get
from typedmcp_wire.revisions import HANDSHAKE_REVISIONS, PARSE_ERROR, PROTOCOL_VERSION_HEADER, PROTOCOL_VERSION_KEY

_KEPT: Final = b'[]{}"\\'
_DROPPED: Final = bytes(set(range(256)) - set(_KEPT))
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')
_STEP: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class RepeatedParams(Struct):
    """The members of ``params`` that headers repeat, whatever stands there."""

    meta: Any = field(name="_meta", default=None)
    name: Any = None
    uri: Any = None


_decode_params = msgspec.json.Decoder(RepeatedParams).decode
_NO_PARAMS: Final = RepeatedParams()


class Incoming(Struct):
    """One POST.

    Attributes:
        message: Its message; a MessageError where it has none, or a batch.
        revision: What ``MCP-Protocol-Version`` says; None without it.
        modern: Whether header or body put it into the modern era.
        meta: ``params._meta``; None when there is none to be used.
        params: The members that headers repeat.
    """

    message: JSONRPCMessage | MessageError
    revision: str | None
    modern: bool
    meta: dict[str, Any] | None
    params: RepeatedParams

    @property
    def batch(self) -> bytes | None:
        """The text of a batch; None when it is none."""
        message = self.message
        return message.frame if isinstance(message, MessageError) and is_array(message.frame) else None

    @property
    def opens_session(self) -> bool:
        """Whether it is an `initialize` that wants an answer."""
        message = self.message
        return isinstance(message, JSONRPCRequest) and message.method == "initialize" and message.id is not UNSET

    @property
    def stateless(self) -> bool:
        """Whether it concerns no session: it is modern, or nothing that can be read."""
        return self.modern or (isinstance(self.message, MessageError) and self.batch is None)


def read_post(get: Get, body: bytes, max_depth: int | None = None) -> Incoming:
    """Read a POST; nothing in it makes this raise.

    Args:
        get: The headers.
        max_depth: How deeply the body may nest; None: as deep as the decoder goes.
    """
    revision = get(PROTOCOL_VERSION_HEADER)
    modern = revision is not None and revision not in HANDSHAKE_REVISIONS
    try:
        if max_depth is not None and nests_deeper(body, max_depth):
            raise MessageError(PARSE_ERROR, "The message nests too deeply.", frame=b"")
        message = decode_message(body)
    except MessageError as error:
        return Incoming(error, revision, modern, None, _NO_PARAMS)
    if not isinstance(message, JSONRPCRequest) or message.params is UNSET:
        return Incoming(message, revision, modern, None, _NO_PARAMS)
    try:
        params = _decode_params(params_text(message.params))
    except (msgspec.DecodeError, ValueError, RecursionError):
        params = _NO_PARAMS
    meta = params.meta if is_object(params.meta) else None
    return Incoming(message, revision, modern or (meta is not None and PROTOCOL_VERSION_KEY in meta), meta, params)


def nests_deeper(text: bytes, limit: int) -> bool:
    """Whether JSON text nests deeper than `limit`; of other text nothing is promised.

    Only text with more brackets than that costs more than a glance.
    """
    if text.count(b"[") + text.count(b"{") <= limit:
        return False
    brackets = _STRING.sub(b"", text.translate(None, _DROPPED)).translate(None, b'"\\')
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > limit


def read_batch(frame: bytes) -> list[JSONRPCMessage | MessageError]:
    """The members of a batch, or why one cannot be read.

    Raises:
        MessageError: it is no batch.
    """
    return [_member(text) for text in split_batch(frame)]


def _member(text: bytes) -> JSONRPCMessage | MessageError:
    try:
        return decode_message(text)
    except MessageError as error:
        return error
