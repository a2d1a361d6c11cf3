"""A recorded conversation, judged message by message.

Rules:
- Who sent a request or notification is said by the record, by the user, or by the method table; where the table allows
  both sides, the message is valid if either may send it.
- A response is judged by the request of that id seen earlier, and comes from the other side.  Without one only its
  envelope is judged.
- The revision is the one given; otherwise each request's own ``_meta`` says it, and for the messages of the handshake
  era the result of ``initialize``.
- A batch is judged member by member in the revisions that have batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from typedmcp.cli.shapes import is_array, is_object
from typedmcp.core.validation import validate_message
from typedmcp_wire.guards import Violation
from typedmcp_wire.methods import METHODS
from typedmcp_wire.revisions import (
    BATCH_REVISIONS,
    LATEST_PROTOCOL_VERSION,
    MCP_PROTOCOL_VERSION,
    PROTOCOL_VERSION_KEY,
    REVISIONS,
)

if TYPE_CHECKING:
    from typedmcp_wire.methods import Side

Violations: TypeAlias = tuple[Violation, ...]
_SIDES: tuple[Side, Side] = ("client", "server")
_DIRECTIONS: dict[str, Side] = {
    "client": "client",
    "server": "server",
    "client-to-server": "client",
    "server-to-client": "server",
}
_MAX_WAITING = 100_000
"""Requests without an answer that are remembered; the oldest are forgotten first."""


class _Asked(NamedTuple):
    method: str
    revision: str


class Conversation:
    """The messages of one file, in order.

    Args:
        revision: The revision whose rules count; None: found out from the messages.
        sender: Who sent every message; None: found out.
    """

    def __init__(self, revision: str | None, sender: Side | None) -> None:
        self._fixed = revision
        self._sender: Side | None = sender
        self._known: str | None = None
        self._asked: dict[tuple[Side, type, Any], _Asked] = {}

    def judge(self, value: Any) -> Violations:
        """Everything wrong with a message, a batch or a record of one; pointers are relative to `value`."""
        record = _record(value)
        if record is None:
            return self._judge(value, self._sender)
        for key in ("sender", "direction"):
            if key in record:
                side: Side | None = _DIRECTIONS.get(record[key]) if isinstance(record[key], str) else None
                if side is None:
                    return (Violation(f"/{key}", " or ".join(_DIRECTIONS), repr(record[key])[:60]),)
                return _below("/message", self._judge(record["message"], side))
        return _below("/message", self._judge(record["message"], self._sender))

    def _judge(self, message: Any, stated: Side | None) -> Violations:
        if is_array(message):
            return self._batch(message, stated)
        if not is_object(message):
            return validate_message(message, self._revision(None), stated or "client")
        return self._call(message, stated) if "method" in message else self._answer(message, stated)

    def _batch(self, members: list[Any], stated: Side | None) -> Violations:
        revision = self._fixed or self._known or min(BATCH_REVISIONS)
        if revision not in BATCH_REVISIONS or not members:
            return validate_message(members, revision, stated or "client")
        found: list[Violation] = []
        for index, member in enumerate(members):
            if is_object(member) and member.get("method") != "initialize":
                found += _below(f"/{index}", self._judge(member, stated))
            else:
                # What no batch may hold: said by the rules of a batch, for a batch of this one.
                alone = validate_message([member], revision, stated or "client")
                found += _below(f"/{index}", alone, cut="/0")
        return tuple(found)

    # -- requests and notifications --------------------------------------------------------------------------------

    def _call(self, message: dict[str, Any], stated: Side | None) -> Violations:
        method = message["method"]
        sides = _senders(method, stated)
        revision, trouble = self._revision_of_call(message)
        found = _mildest(validate_message(message, revision, side) for side in sides)
        key = message.get("id")
        if isinstance(method, str) and isinstance(key, (str, int, float)) and not isinstance(key, bool):
            for side in sides:
                self._asked[_key(side, key)] = _Asked(method, revision)
            while len(self._asked) > _MAX_WAITING:
                del self._asked[next(iter(self._asked))]
        return (*found, *trouble)

    def _revision_of_call(self, message: dict[str, Any]) -> tuple[str, Violations]:
        """The revision of a request or notification, and what is wrong with the way it says so."""
        if self._fixed is not None:
            return self._fixed, ()
        named = _member(message, "params", "_meta", PROTOCOL_VERSION_KEY)
        if named is None and message["method"] == "initialize":
            wished = _member(message, "params", "protocolVersion")
            return wished if wished in REVISIONS else MCP_PROTOCOL_VERSION, ()
        if named is None:
            return self._revision(message["method"]), ()
        if named in REVISIONS:
            self._known = named
            return named, ()
        pointer = f"/params/_meta/{PROTOCOL_VERSION_KEY.replace('/', '~1')}"
        return self._revision(None), (Violation(pointer, f"one of {', '.join(REVISIONS)}", repr(named)[:60]),)

    def _revision(self, method: Any) -> str:
        """The revision in force; before the conversation has said, the newest that has the method."""
        if self._fixed or self._known:
            return str(self._fixed or self._known)
        known = METHODS.get(method) if isinstance(method, str) else None
        return LATEST_PROTOCOL_VERSION if known is None else max(known.client | known.server)

    # -- responses -------------------------------------------------------------------------------------------------

    def _answer(self, message: dict[str, Any], stated: Side | None) -> Violations:
        key = message.get("id")
        askers: Sequence[Side] = [_other(stated)] if stated else _SIDES
        keys = [_key(side, key) for side in askers] if isinstance(key, (str, int, float)) else []
        candidates = [entry for entry in keys if entry in self._asked]
        if not candidates:
            return validate_message(message, self._revision(None), stated or "server")
        judged = [(self._by_request(message, entry), entry) for entry in candidates]
        found, chosen = min(judged, key=lambda pair: len(pair[0]))
        asked = self._asked[chosen]
        for entry in candidates:
            # A request that either side may have sent was remembered for both.
            if self._asked[entry] is asked or entry == chosen:
                del self._asked[entry]
        agreed = _member(message, "result", "protocolVersion")
        if asked.method == "initialize" and agreed in REVISIONS:
            self._known = agreed
        return found

    def _by_request(self, message: dict[str, Any], entry: tuple[Side, type, Any]) -> Violations:
        method, revision = self._asked[entry]
        agreed = _member(message, "result", "protocolVersion")
        if method == "initialize" and self._fixed is None and agreed in REVISIONS:
            revision = agreed
        return validate_message(message, revision, _other(entry[0]), method if method in METHODS else None)


def _record(value: Any) -> dict[str, Any] | None:
    """The record around a message: an object with a ``message`` that is no message itself."""
    return value if is_object(value) and "message" in value and "jsonrpc" not in value else None


def _senders(method: Any, stated: Side | None) -> tuple[Side, ...]:
    if stated is not None:
        return (stated,)
    known = METHODS.get(method) if isinstance(method, str) else None
    if known is None:
        return _SIDES
    return tuple(side for side in _SIDES if (known.client if side == "client" else known.server)) or _SIDES


def _mildest(judgements: Iterable[Violations]) -> Violations:
    return min(judgements, key=len)


def _other(side: Side) -> Side:
    return "server" if side == "client" else "client"


def _key(side: Side, key: Any) -> tuple[Side, type, Any]:
    """A key under which 7 and "7" differ, and 7 and 7.0, which JSON does not tell apart, do not."""
    return side, str if isinstance(key, str) else int, key


def _member(value: Any, *path: str) -> Any:
    for name in path:
        if not is_object(value):
            return None
        value = value.get(name)
    return value if isinstance(value, str) else None


def _below(prefix: str, violations: Violations, cut: str = "") -> Violations:
    return tuple(
        Violation(prefix + entry.pointer.removeprefix(cut), entry.expected, entry.found) for entry in violations
    )
