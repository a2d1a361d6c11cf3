"""Suggestions for the values of arguments, made by functions of an app.

A completer takes the text typed so far.  It may take more, each by a parameter of its own: the request's
:class:`Context`, and the earlier answers, which any other second parameter receives as a
:class:`~typedmcp.types.CompletionContext` whose `arguments` is always there.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from typedmcp.core.errors import MCPError, UsageError
from typedmcp.server.context import Context
from typedmcp.server.functions import BoundFunction, guarded
from typedmcp.server.signature import resolved_hints
from typedmcp.server.threads import WorkerThreads
from typedmcp_wire.revisions import INVALID_PARAMS
from typedmcp_wire.types.completion import CompleteRequestParams, CompleteResult, Completion, CompletionContext

MAX_VALUES = 100
"""The most suggestions one answer carries; the specification's number."""

Suggestions: TypeAlias = Iterable[str] | Completion
Completer: TypeAlias = Callable[..., Suggestions | Awaitable[Suggestions]]


class Completers:
    """The completers of one prompt or template.

    Args:
        functions: Argument name to completer.
        names: The arguments there are.
        label: Whose they are, for errors.

    Raises:
        UsageError: there is no such argument, or a completer's signature is none of those above.
    """

    def __init__(
        self, functions: Mapping[str, Completer], names: Iterable[str], threads: WorkerThreads, label: str
    ) -> None:
        self._names = tuple(names)
        unknown = [name for name in functions if name not in self._names]
        if unknown:
            raise UsageError(f"{label}: complete= names {unknown}; its arguments are {list(self._names)}")
        self._completers = {
            name: _Completer(function, threads, f"{label}: the completer of {name!r}")
            for name, function in functions.items()
        }

    def __bool__(self) -> bool:
        return bool(self._completers)

    async def complete(self, params: CompleteRequestParams, context: Context) -> CompleteResult:
        """The suggestions for an argument; none for one without completer.

        Raises:
            MCPError: there is no such argument, or the completer failed.
        """
        name = params.argument.name
        if name not in self._names:
            known = list(self._names)
            raise MCPError(INVALID_PARAMS, "There is no such argument to complete.", {"argument": name, "known": known})
        completer = self._completers.get(name)
        if completer is None:
            return CompleteResult(completion=Completion(values=[], total=0, has_more=False))
        return CompleteResult(completion=await completer.suggest(params, context))


class _Completer:
    def __init__(self, function: Completer, threads: WorkerThreads, label: str) -> None:
        self._label = label
        hints = resolved_hints(function, label)
        parameters = list(inspect.signature(function).parameters.values())
        positional = [entry.name for entry in parameters if entry.kind is entry.POSITIONAL_OR_KEYWORD]
        contexts = [entry.name for entry in parameters if hints.get(entry.name) is Context]
        others = [name for name in positional if name not in contexts]
        if not 1 <= len(others) <= 2 or len(contexts) > 1 or len(others) + len(contexts) < len(parameters):
            raise UsageError(f"{label} takes the text typed so far, and may take the earlier answers and a context")
        self._value, self._known = others[0], others[1] if len(others) == 2 else None
        self._function = BoundFunction(function, threads, contexts[0] if contexts else None)

    async def suggest(self, params: CompleteRequestParams, context: Context) -> Completion:
        values: dict[str, Any] = {self._value: params.argument.value}
        if self._known is not None:
            given = params.context.arguments if params.context is not None else None
            values[self._known] = CompletionContext(arguments=given or {})

        async def work() -> Completion:
            return _cut(await self._function.call(values, context))

        completion: Completion = await guarded(work(), self._label, "There are no suggestions now.")
        return completion


def _cut(found: Any) -> Completion:
    """Suggestions as the protocol has them: at most a hundred, with the number of all."""
    if isinstance(found, Completion):
        if len(found.values) <= MAX_VALUES:
            return found
        return msgspec.structs.replace(found, values=found.values[:MAX_VALUES], has_more=True)
    if isinstance(found, str):
        raise TypeError("a completer returns a list of texts; this one returned a single text")
    values = list(found)
    if not all(isinstance(value, str) for value in values):
        raise TypeError("a completer returns texts, nothing else")
    return Completion(values=values[:MAX_VALUES], total=len(values), has_more=len(values) > MAX_VALUES)
