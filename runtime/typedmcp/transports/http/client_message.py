"""A message of a client as the body and the headers of a POST, without IO.

Rules:
- One message is one JSON object.  Several are one JSON array, which revision 2025-03-26 alone has.
- A request is of the modern era when its ``_meta`` names a revision; that revision, the method, and the name of the
  tool, prompt or resource are repeated in headers (specification 2026-07-28, basic/transports/streamable-http).
- In the handshake era the headers name the session and the revision that ``initialize`` has brought; ``initialize``
  itself goes without them.
- The caller's own headers win over these, ``Content-Type`` and ``Accept`` apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, field
from multidict import CIMultiDict, CIMultiDictProxy

from typedmcp.core.errors import MessageError
from typedmcp.core.jsonrpc import (
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    decode_response,
    is_array,
    split_batch,
)
from typedmcp.transports.http.mirror import encode_value
from typedmcp.transports.http.negotiation import EVENT_STREAM, JSON
from typedmcp.transports.lines import encode_lines
from typedmcp_wire.methods import METHODS
from typedmcp_wire.revisions import (
    BATCH_REVISIONS,
    INVALID_REQUEST,
    LAST_EVENT_ID_HEADER,
    METHOD_HEADER,
    MODERN_REVISIONS,
    NAME_HEADER,
    PROTOCOL_VERSION_HEADER,
    PROTOCOL_VERSION_KEY,
    SESSION_ID_HEADER,
)


class Outgoing(Struct, frozen=True, kw_only=True):
    """One POST.

    Attributes:
        body: Its text.
        ids: The ids of the requests in it.
        method: The method of its only message; None for a response and for several messages.
        modern: Whether it is of the modern era by its ``_meta``.
        revision: The revision its ``_meta`` names, when that is a string.
        name: What ``Mcp-Name`` repeats.
        withdraws: The id of the request it cancels.
    """

    body: bytes
    ids: tuple[RequestId, ...] = ()
    method: str | None = None
    modern: bool = False
    revision: str | None = None
    name: str | None = None
    withdraws: RequestId | None = None

    @property
    def opens(self) -> bool:
        """Whether it asks for a session."""
        return self.method == "initialize" and bool(self.ids)


class _Meta(Struct):
    revision: Any = field(default=UNSET, name=PROTOCOL_VERSION_KEY)


class _Envelope(Struct):
    params: dict[str, Raw] = {}


def outgoing(messages: JSONRPCMessage | Sequence[JSONRPCMessage]) -> Outgoing:
    """What to POST for one message, or for several in one array.

    Raises:
        ValueError, TypeError: a message has no JSON form.
    """
    several = [messages] if isinstance(messages, (JSONRPCRequest, JSONRPCResponse)) else list(messages)
    texts = encode_lines(several)
    ids = tuple(each.id for each in several if isinstance(each, JSONRPCRequest) and isinstance(each.id, (int, str)))
    if len(several) != 1:
        return Outgoing(body=b"[" + b",".join(texts) + b"]", ids=ids)
    message = several[0]
    if isinstance(message, JSONRPCResponse):
        return Outgoing(body=texts[0])
    params = _members(texts[0], _Envelope, _Envelope()).params
    revision = _members(params.get("_meta", Raw(b"{}")), _Meta, _Meta()).revision
    method = METHODS.get(message.method)
    name = _text(params.get(method.name_header)) if method is not None and method.name_header else None
    withdraws: Any = None
    if message.method == "notifications/cancelled" and "requestId" in params:
        withdraws = msgspec.json.decode(params["requestId"])
    return Outgoing(
        body=texts[0],
        ids=ids,
        method=message.method,
        modern=revision is not UNSET,
        revision=revision if isinstance(revision, str) else None,
        name=name,
        withdraws=withdraws if isinstance(withdraws, (int, str)) else None,
    )


def _members(text: bytes | Raw, shape: type[Any], otherwise: Any) -> Any:
    """Some members of a JSON object; those of `otherwise` when it is none."""
    try:
        return msgspec.json.decode(text, type=shape)
    except msgspec.ValidationError:
        return otherwise


def _text(raw: Raw | None) -> str | None:
    value = None if raw is None else msgspec.json.decode(raw)
    return value if isinstance(value, str) else None


def post_headers(post: Outgoing, own: Mapping[str, str], session: str | None, revision: str | None) -> CIMultiDict[str]:
    """The headers of a POST.

    Args:
        own: The caller's.
        session: The session id of the handshake era.
        revision: The revision in force, for messages that do not name theirs.
    """
    headers: CIMultiDict[str] = CIMultiDict()
    if post.modern:
        session, revision = None, post.revision
    elif post.opens:
        session = revision = None
    _name_connection(headers, session, revision)
    if post.method is not None and (post.modern or revision in MODERN_REVISIONS):
        headers[METHOD_HEADER] = encode_value(post.method)
        if post.name is not None:
            headers[NAME_HEADER] = encode_value(post.name)
    headers.update(own)
    headers["Content-Type"] = JSON
    headers["Accept"] = f"{JSON}, {EVENT_STREAM}"
    return headers


def stream_headers(
    own: Mapping[str, str], session: str | None, revision: str | None, last_event_id: str = ""
) -> CIMultiDict[str]:
    """The headers of a GET or a DELETE; those of :func:`post_headers` but for the body's."""
    headers: CIMultiDict[str] = CIMultiDict()
    _name_connection(headers, session, revision)
    headers.update(own)
    headers["Accept"] = EVENT_STREAM
    if last_event_id:
        headers[LAST_EVENT_ID_HEADER] = last_event_id
    return headers


def _name_connection(headers: CIMultiDict[str], session: str | None, revision: str | None) -> None:
    if session is not None:
        headers[SESSION_ID_HEADER] = session
    if revision is not None:
        headers[PROTOCOL_VERSION_HEADER] = revision


def session_of(headers: CIMultiDictProxy[str]) -> str | None:
    """The session id that response headers give; the same one given twice counts once.

    Raises:
        MessageError: they give several, or one that is not visible ASCII.
    """
    # A proxy may join two headers with a comma and a space; an id has no space.
    given = {part.strip() for value in headers.getall(SESSION_ID_HEADER, []) for part in value.split(", ")}
    if not given:
        return None
    found = given.pop()
    if given or not found or not all("!" <= character <= "~" for character in found):
        raise MessageError(
            INVALID_REQUEST, f"The server gave {SESSION_ID_HEADER} more than once, or one that is no id."
        )
    return found


def decode_reply(body: bytes | str, revision: str | None) -> list[JSONRPCMessage]:
    """The messages of a JSON reply, or of an event; several only in a revision that has batches.

    Raises:
        MessageError: it is none.
    """
    if revision in BATCH_REVISIONS and is_array(body):
        return [decode_response(member) for member in split_batch(body)]
    return [decode_response(body)]
