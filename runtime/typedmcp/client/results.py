"""What a client makes of a decoded result before the caller sees it."""

from __future__ import annotations

from typing import Any

from typedmcp_wire.methods import Method
from typedmcp_wire.types.input import InputRequiredResult
from typedmcp_wire.types.tasks import CreateTaskResult

from typedmcp.core.errors import InvalidResult

_COMPLETE = (None, "complete")


def check_result(result: Any, method: Method[Any, Any]) -> Any:
    """`result` itself.

    Raises:
        InvalidResult: it is of a kind this client has not declared: another `resultType`, a request for input, a task.
    """
    if isinstance(result, InputRequiredResult):
        raise InvalidResult(f"{method.name} asks for input, which this client has not offered to give")
    if isinstance(result, CreateTaskResult):
        raise InvalidResult(f"{method.name} was answered with a task, which this client has not asked for")
    kind = result.get("resultType") if isinstance(result, dict) else getattr(result, "result_type", None)
    if kind not in _COMPLETE:
        raise InvalidResult(f"{method.name} was answered with the unknown resultType {kind!r}")
    return result
