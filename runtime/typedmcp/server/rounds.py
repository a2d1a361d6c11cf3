"""Questions to a client of 2026-07-28: asked by the answer to its request, answered by sending the request again.

Rules (basic/patterns/mrtr):
- A handler's questions end its run with an input-required result; the retry runs the handler from its beginning, and
  each question that has been answered gets its answer at once.  So a handler must ask the same questions in the same
  order; one that does not is told so.  Work before a question is done again: keep it free of effects, or idempotent.
- Questions asked together (``asyncio.gather``) are one round.
- Answers to what was not asked are ignored; what is missing is asked again; an answer of the wrong shape is -32602.
- What has been answered travels with the client in the sealed state (:mod:`typedmcp.server.sealing`).
- A handler may also return an input-required result by hand; its state is sealed likewise, and
  ``context.request_state`` and ``context.input_responses`` give both back.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET, Struct

from typedmcp.core.errors import MCPError, UsageError
from typedmcp.server.context import InputNeeded
from typedmcp.server.sealing import Binding, StateSeal
from typedmcp_wire.codec import convert, to_builtins
from typedmcp_wire.methods import Method
from typedmcp_wire.revisions import INVALID_PARAMS
from typedmcp_wire.types.input import InputRequiredResult

if TYPE_CHECKING:
    from typedmcp.server.context import Context

T = TypeVar("T")


class _State(Struct):
    """What travels: digests of the questions asked so far, and the answers to them."""

    digests: dict[str, str]
    answers: dict[str, Any]
    own: str | None = None
    """The state of a result made by hand."""


class Rounds:
    """The questions of one request.

    Args:
        seal: Seals and opens the state.
        binding: The request the state belongs to.
        params: Its parameters, with the answers and the state the client sent.

    Raises:
        MCPError: the state is not valid for this request.
    """

    def __init__(self, seal: StateSeal, binding: Binding, params: Any) -> None:
        self._seal = seal
        self._binding = binding
        self._state = _State({}, {})
        self._count = 0
        self._open: dict[str, Any] = {}
        if params.request_state is not None:
            self._state = convert(seal.open(params.request_state, binding), _State)
            given: dict[str, Any] = to_builtins(params.input_responses or {})
            self._state.answers |= {key: given[key] for key in self._state.digests if key in given}

    async def ask(self, method: Method[Any, Any], params: object, kind: type[T]) -> T:
        """The answer to a question; without one yet, the handler ends here.

        Raises:
            MCPError: the answer has not the shape of one.
            UsageError: the handler asks something else than in an earlier run.
        """
        self._count += 1
        key = f"{method.attribute}_{self._count}"
        body: dict[str, Any] = {"method": method.name, **({} if params is UNSET else {"params": to_builtins(params)})}
        digest = hashlib.sha256(msgspec.json.encode(body, order="deterministic")).hexdigest()
        if self._state.digests.setdefault(key, digest) != digest:
            raise UsageError(
                f"question {self._count} differs from that of an earlier run; ask the same in the same order"
            )
        if key in self._state.answers:
            try:
                return convert(self._state.answers[key], kind)
            except msgspec.ValidationError:
                raise MCPError(INVALID_PARAMS, f"inputResponses.{key} is no answer to {method.name}.") from None
        self._open[key] = body
        # Questions of `asyncio.gather` begin in this turn of the loop: they become part of the same round.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        raise InputNeeded

    @property
    def own(self) -> str | None:
        """The state a handler gave along with a result made by hand."""
        return self._state.own

    def by_hand(self, result: InputRequiredResult) -> InputRequiredResult:
        """A handler's own input-required result, with its state sealed."""
        self._state.own = result.request_state
        return msgspec.structs.replace(result, request_state=self._seal.seal(self._state, self._binding))

    def result(self) -> InputRequiredResult:
        """What the client is answered: the open questions, and the sealed state."""
        return InputRequiredResult(
            result_type="input_required",
            input_requests=convert(self._open, "InputRequests"),
            request_state=self._seal.seal(self._state, self._binding),
        )


def rounds_of(context: Context) -> Rounds:
    """The questions of the request being served, begun when the first is asked.

    Raises:
        UsageError: a method of this kind cannot ask.
    """
    if context.rounds is None:
        retry = context.retry
        if retry is None:
            raise UsageError(f"{context.method} cannot ask the client; tools, prompts and resources can")
        make_seal, params = retry
        seal = make_seal()
        target = str(getattr(params, "name", None) or getattr(params, "uri", ""))
        arguments: object = getattr(params, "arguments", None) or {}
        context.rounds = Rounds(seal, Binding.of(context.principal, context.method, target, arguments), params)
    return context.rounds
