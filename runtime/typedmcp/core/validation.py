"""The guards' front door: is a value what a revision says, and if not, where and why.

``validate`` judges one value against one definition; ``validate_message`` judges a whole message by who sent it.
Neither ever raises because of the value.  Guards are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typedmcp.core.errors import UsageError
from typedmcp.core.narrow import is_array, is_object
from typedmcp_wire.revisions import BATCH_REVISIONS, LATEST_PROTOCOL_VERSION, REVISIONS

if TYPE_CHECKING:
    from typedmcp_wire.guards import Violation
    from typedmcp_wire.methods import Side

# How many violations an error carries: enough to act on, bounded whatever was sent.
_SHOWN = 20
_ENVELOPES = ("JSONRPCErrorResponse", "JSONRPCError")


def validate(value: object, definition: str, revision: str = LATEST_PROTOCOL_VERSION) -> tuple[Violation, ...]:
    """Everything in `value` that is not as `definition` demands; empty when it is valid.

    Args:
        value: Parsed JSON: dictionaries, lists and scalars.
        definition: The specification's name of a type, such as ``"Tool"``.
        revision: The revision whose rules count.

    Raises:
        UsageError: there is no such revision, or it has no such definition.
    """
    from typedmcp_wire import guards

    try:
        return guards.explain(value, definition, revision)
    except LookupError as error:
        raise UsageError(str(error.args[0])) from None


def validate_message(
    message: object, revision: str, sender: Side, request_method: str | None = None
) -> tuple[Violation, ...]:
    """Everything in a whole JSON-RPC message that `sender` may not send in `revision`; empty when it is valid.

    Args:
        message: Parsed JSON; a list is a batch.
        sender: ``"client"`` or ``"server"``.
        request_method: For a response, the method it answers; without it only the envelope is checked.

    Raises:
        UsageError: there is no such revision, side or method.
    """
    from typedmcp_wire.methods import METHODS

    if revision not in REVISIONS:
        raise UsageError(f"{revision!r} is no revision; known are {', '.join(REVISIONS)}")
    if sender not in ("client", "server"):
        raise UsageError(f"{sender!r} is no sender; use client or server")
    if request_method is not None and request_method not in METHODS:
        raise UsageError(f"{request_method!r} is no method of the protocol")
    try:
        return _message(message, revision, sender, request_method)
    except Exception:  # noqa: BLE001 - a value may raise anything when looked at; it is no JSON then
        return (_violation("", "a JSON-RPC message that can be inspected", None),)


def _message(message: object, revision: str, sender: Side, request_method: str | None) -> tuple[Violation, ...]:
    if is_array(message):
        return _batch(message, revision, sender, request_method)
    if not is_object(message):
        return (_violation("", "a JSON-RPC message, which is an object", message),)
    if "method" in message:
        return _call(message, revision, sender)
    return _response(message, revision, sender, request_method)


def _batch(members: list[object], revision: str, sender: Side, request_method: str | None) -> tuple[Violation, ...]:
    if revision not in BATCH_REVISIONS:
        return (_violation("", f"one message: {revision} has no batches", members),)
    if not members:
        return (_violation("", "at least one message in a batch", members),)
    found: list[Violation] = []
    for index, member in enumerate(members):
        if is_array(member):
            found.append(_violation(f"/{index}", "a message, not a batch inside a batch", member))
        elif is_object(member) and member.get("method") == "initialize":
            found.append(_violation(f"/{index}/method", "any method but initialize inside a batch", "initialize"))
        else:
            found += _below(f"/{index}", _message(member, revision, sender, request_method))
    return tuple(found)


def _call(message: dict[str, Any], revision: str, sender: Side) -> tuple[Violation, ...]:
    from typedmcp_wire.methods import METHODS

    kind = "JSONRPCRequest" if "id" in message else "JSONRPCNotification"
    envelope = validate(message, kind, revision)
    if envelope:
        return envelope
    method = METHODS.get(message["method"])
    if method is None:
        # Unknown methods are extensions, judged by nobody here, or mistakes the receiver answers with -32601.
        return ()
    if not method.sent_by(sender, revision):
        return (_violation("/method", f"a method that a {sender} sends in {revision}", message["method"]),)
    if method.kind == "request" and "id" not in message:
        return (_violation("", f"an id: {method.name} is a request", message),)
    if method.kind == "notification" and "id" in message:
        return (_violation("/id", f"no id: {method.name} is a notification", message["id"]),)
    return validate(message, method.message_definition, revision)


def _response(
    message: dict[str, Any], revision: str, sender: Side, request_method: str | None
) -> tuple[Violation, ...]:
    from typedmcp_wire.methods import METHODS

    if "error" in message and "result" in message:
        return (_violation("", "either a result or an error, not both", message),)
    receiver: Side = "server" if sender == "client" else "client"
    if not any(method.kind == "request" and method.sent_by(receiver, revision) for method in METHODS.values()):
        return (_violation("", f"no response: a {receiver} sends no requests in {revision}", message),)
    if "error" in message:
        from typedmcp_wire import guards

        known = guards.definitions(revision)
        return validate(message, next(name for name in _ENVELOPES if name in known), revision)
    if "result" not in message:
        return (_violation("", "a method, a result or an error", message),)
    generic = "JSONRPCResultResponse"
    envelope = validate(message, generic, revision)
    if request_method is None:
        return envelope
    method = METHODS[request_method]
    if method.result_definition is None or not method.sent_by(receiver, revision):
        return (_violation("", f"no response: a {receiver} does not ask {request_method} in {revision}", message),)
    # The envelope knows of a result only what all have in common: each place is told once.
    found = {entry.pointer: entry for entry in envelope}
    for entry in _below("/result", validate(message["result"], method.result_definition, revision)):
        found.setdefault(entry.pointer, entry)
    return tuple(found.values())


def explain_data(value: object, definition: str, revision: str, prefix: str = "") -> dict[str, Any]:
    """The violations of a value as the ``data`` of a JSON-RPC error: ``{"violations": [{pointer, message}, ...]}``."""
    found = _below(prefix, validate(value, definition, revision))
    return {"violations": [{"pointer": entry.pointer, "message": entry.message} for entry in found[:_SHOWN]]}


def _below(prefix: str, violations: tuple[Violation, ...]) -> list[Violation]:
    from typedmcp_wire.guards import Violation

    return [
        Violation(pointer=prefix + entry.pointer, expected=entry.expected, found=entry.found) for entry in violations
    ]


def _violation(pointer: str, expected: str, found: object) -> Violation:
    from typedmcp_wire.guards import Violation

    text = repr(found) if isinstance(found, (str, int, float, bool)) else type(found).__name__
    return Violation(pointer=pointer, expected=expected, found=text[:80])
