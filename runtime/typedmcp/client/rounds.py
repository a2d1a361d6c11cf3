"""Calls that a server of 2026-07-28 answers with a request for input: answer, ask again, until there is a result.

Rules:
- All that is asked for in one result is answered side by side; what the answers cannot be given to ends the call.
- The retry is a request of its own, with a new id; the server's state goes back untouched, or not at all.
- A server that asks more than :data:`MAX_ROUNDS` times is not answered any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from typedmcp.client.callbacks import Answer, Callbacks
from typedmcp.core.errors import InvalidResult, MCPError
from typedmcp_wire.methods import Method
from typedmcp_wire.types.input import InputRequests, InputRequiredResult

MAX_ROUNDS: Final = 16
"""How often one call may be asked for input."""

_PAUSE: Final = 0.1
"""Seconds before a retry that brings no answers, times how often that was so."""


async def answered(
    once: Callable[[Any], Awaitable[Any]],
    method: Method[Any, Any],
    params: Any,
    result: InputRequiredResult,
    callbacks: Callbacks,
) -> Any:
    """The result of a call that was answered with a request for input.

    Args:
        once: Sends the request with such parameters and returns its result, or the next request for input.
        method: Which.
        params: Its parameters, as sent.
        result: What it was answered with.
        callbacks: What answers.

    Raises:
        InvalidResult: the server asks for what the client has not declared, where it may not ask, or without an end.
    """
    if not (isinstance(params, msgspec.Struct) and "input_responses" in params.__struct_fields__):
        raise InvalidResult(f"{method.name} was answered with a request for input, which it may not be")
    idle = 0
    for _ in range(MAX_ROUNDS):
        if not result.input_requests:
            if result.request_state is None:
                raise InvalidResult(f"{method.name} was answered with a request for input that asks for nothing")
            idle += 1
            await asyncio.sleep(_PAUSE * idle)
        responses = await _answers(method, result.input_requests or {}, callbacks)
        found = await once(
            msgspec.structs.replace(params, input_responses=responses or None, request_state=result.request_state)
        )
        if not isinstance(found, InputRequiredResult):
            return found
        result = found
    raise InvalidResult(f"{method.name} asks for input again and again; gave up after {MAX_ROUNDS} rounds")


async def _answers(method: Method[Any, Any], requests: InputRequests, callbacks: Callbacks) -> dict[str, Answer]:
    """The answers by the keys of the requests."""
    tasks = [asyncio.ensure_future(callbacks.answer(request.method, request.params)) for request in requests.values()]
    try:
        found = await asyncio.gather(*tasks)
    except MCPError as error:
        raise InvalidResult(f"{method.name} asks for input it may not ask for: {error.message}") from error
    finally:
        for task in tasks:
            task.cancel()
    return dict(zip(requests, found, strict=True))
