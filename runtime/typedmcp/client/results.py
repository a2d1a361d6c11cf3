"""What a client makes of a result before the caller sees it, good or bad."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from typedmcp.core.errors import InvalidResult, MCPError, MessageError, RequestLost, SessionLost
from typedmcp.core.narrow import is_object
from typedmcp_wire.methods import Method
from typedmcp_wire.types.input import InputRequiredResult
from typedmcp_wire.types.tasks import CreateTaskResult

_COMPLETE = (None, "complete")


def check_result(result: Any, method: Method[Any, Any]) -> Any:
    """`result` itself.

    Raises:
        InvalidResult: it is of a kind this client has not declared: another `resultType`, a task.
    """
    if isinstance(result, InputRequiredResult):
        return result
    if isinstance(result, CreateTaskResult):
        raise InvalidResult(f"{method.name} was answered with a task, which this client has not asked for")
    kind = result.get("resultType") if is_object(result) else getattr(result, "result_type", None)
    if kind not in _COMPLETE:
        raise InvalidResult(f"{method.name} was answered with the unknown resultType {kind!r}")
    return result


def invalid_result(method: Method[Any, Any], text: bytes, revision: str, error: Exception) -> InvalidResult:
    """Why the text of a result could not be decoded, with pointers from the guards."""
    from typedmcp.core.validation import validate

    try:
        value = _lenient(text)
    except (ValueError, RecursionError):
        return InvalidResult(f"the result of {method.name} cannot be read: {error}")
    violations = validate(value, str(method.result_definition), revision)
    if violations:
        return InvalidResult(f"the result of {method.name} is malformed: {violations[0].message}", violations)
    kind = "is malformed" if isinstance(error, msgspec.ValidationError) else "cannot be read"
    return InvalidResult(f"the result of {method.name} {kind}: {error}")


_BEGINS_AS_ANSWER = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+)\s*,\s*"(?:result|error)"\s*:'
)


def unreadable_answer(error: MessageError) -> tuple[int | None, InvalidResult]:
    """The id of the request an unreadable answer belongs to (None: it is no answer, or tells none), and its failure.

    More lenient than the decoder, which takes neither half a surrogate pair nor NaN nor bytes that are no UTF-8.
    """
    text = f"the answer cannot be read: {error}"
    number: object = None
    try:
        value = _lenient(error.frame)
    except (ValueError, RecursionError):
        begun = _BEGINS_AS_ANSWER.match(error.frame)
        number = int(begun[1]) if begun else None
    else:
        if is_object(value) and "method" not in value:
            number = value.get("id")
        if _has_half_pair(value):
            text = f"the answer cannot be read, it holds half of a surrogate pair: {error}"
    failure = InvalidResult(text)
    failure.__cause__ = error
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return number if type(number) is int else None, failure


def lost_request(error: RequestLost) -> Exception:
    """Why a request has failed, as its caller is told: what the server has said about it, if it has."""
    cause = error.__cause__
    if isinstance(error, SessionLost):
        return error
    if isinstance(cause, MessageError):
        return unreadable_answer(cause)[1]
    return cause if isinstance(cause, MCPError) else error


def _has_half_pair(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _lenient(text: bytes) -> Any:
    return json.loads(text.decode("utf-8", "replace"))
