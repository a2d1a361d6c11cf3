"""What a client can be asked by a server, and the functions of its user that answer.

Rules:
- A capability is declared when, and only when, there is a function that answers: form and URL elicitation, sampling
  with and without tools, roots, each by itself.  A method nobody answers is refused with -32601, a mode with -32602.
- Functions may be coroutines or plain ones; plain ones run in a thread, as they may wait for a person.
- The content a form is accepted with gets the form's defaults and must fit the form.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from typedmcp.core.errors import MCPError, UsageError
from typedmcp.core.narrow import is_mapping
from typedmcp_wire.codec import to_builtins
from typedmcp_wire.revisions import INVALID_PARAMS, METHOD_NOT_FOUND
from typedmcp_wire.types.base import ClientCapabilities, ElicitationCapability, RootsCapability, SamplingCapability
from typedmcp_wire.types.elicitation import ElicitRequestFormParams, ElicitRequestURLParams, ElicitResult
from typedmcp_wire.types.roots import ListRootsResult, Root
from typedmcp_wire.types.sampling import CreateMessageRequestParams, CreateMessageResult

FormAnswer: TypeAlias = ElicitResult | Mapping[str, Any] | None
"""A form's values, which accept it; None declines; a result says anything else."""
URLAnswer: TypeAlias = ElicitResult | bool
"""Whether the user agreed to open the address."""
RootLike: TypeAlias = Root | str | Path
"""A root, its ``file://`` URI, or a folder."""
Roots: TypeAlias = Iterable[RootLike]

Elicit: TypeAlias = Callable[[ElicitRequestFormParams], FormAnswer | Awaitable[FormAnswer]]
ElicitURL: TypeAlias = Callable[[ElicitRequestURLParams], URLAnswer | Awaitable[URLAnswer]]
Sample: TypeAlias = Callable[[CreateMessageRequestParams], CreateMessageResult | Awaitable[CreateMessageResult]]
ListRoots: TypeAlias = Callable[[], Roots | Awaitable[Roots]]

Answer: TypeAlias = ElicitResult | CreateMessageResult | ListRootsResult


class Callbacks:
    """The functions that answer; :class:`~typedmcp.MCPClient` tells what each is for.

    Attributes:
        capabilities: What a client with these functions declares.
    """

    def __init__(
        self,
        *,
        elicit: Elicit | None = None,
        elicit_url: ElicitURL | None = None,
        sample: Sample | None = None,
        sample_tools: bool = False,
        roots: Roots | ListRoots | None = None,
    ) -> None:
        if sample_tools and sample is None:
            raise UsageError("sample_tools needs sample, the function that takes the tools")
        self._elicit = elicit
        self._elicit_url = elicit_url
        self._sample = sample
        self._sample_tools = sample_tools
        self._roots = roots if roots is None or callable(roots) else [_root(entry) for entry in roots]
        asks = elicit is not None or elicit_url is not None
        self.capabilities = ClientCapabilities(
            elicitation=ElicitationCapability(form=_declared(elicit), url=_declared(elicit_url)) if asks else None,
            sampling=SamplingCapability(tools={} if sample_tools else None) if sample is not None else None,
            roots=RootsCapability(list_changed=True if callable(roots) else None) if roots is not None else None,
        )

    def offers(self, method: str) -> bool:
        """Whether there is a function for requests of this method."""
        declared = self.capabilities
        return {
            "elicitation/create": declared.elicitation,
            "sampling/createMessage": declared.sampling,
            "roots/list": declared.roots,
        }.get(method) is not None

    async def answer(self, method: str, params: Any) -> Answer:
        """The answer to one request of a server.

        Raises:
            MCPError: the client has not declared that it can be asked this.
            UsageError: what the function returned is no answer.
        """
        if not self.offers(method):
            raise MCPError(METHOD_NOT_FOUND, f"Method not found: {method}")
        if method == "elicitation/create":
            if isinstance(params, ElicitRequestURLParams):
                return await self._answer_url(params)
            return await self._answer_form(params)
        if method == "sampling/createMessage":
            return await self._answer_sample(params)
        return await self._answer_roots()

    async def _answer_form(self, params: ElicitRequestFormParams) -> ElicitResult:
        if self._elicit is None:
            raise _undeclared("elicitation.form")
        answer = await _run(self._elicit, params)
        if answer is None:
            return ElicitResult(action="decline")
        if is_mapping(answer):
            answer = ElicitResult(action="accept", content=dict(answer))
        if not isinstance(answer, ElicitResult):
            raise UsageError(f"elicit returns values, None or an ElicitResult, not {type(answer).__name__}")
        return _completed(answer, params) if answer.action == "accept" else answer

    async def _answer_url(self, params: ElicitRequestURLParams) -> ElicitResult:
        if self._elicit_url is None:
            raise _undeclared("elicitation.url")
        answer = await _run(self._elicit_url, params)
        if isinstance(answer, bool):
            return ElicitResult(action="accept" if answer else "decline")
        if not isinstance(answer, ElicitResult):
            raise UsageError(f"elicit_url returns a bool or an ElicitResult, not {type(answer).__name__}")
        return answer

    async def _answer_sample(self, params: CreateMessageRequestParams) -> CreateMessageResult:
        assert self._sample is not None
        if not self._sample_tools and (params.tools is not None or params.tool_choice is not None):
            raise _undeclared("sampling.tools")
        answer = await _run(self._sample, params)
        if not isinstance(answer, CreateMessageResult):
            raise UsageError(f"sample returns a CreateMessageResult, not {type(answer).__name__}")
        return answer

    async def _answer_roots(self) -> ListRootsResult:
        found: Any = await _run(self._roots) if callable(self._roots) else self._roots
        return ListRootsResult(roots=[_root(entry) for entry in found])


async def _run(function: Callable[..., Any], *arguments: Any) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    found = await asyncio.to_thread(function, *arguments)
    return await found if inspect.isawaitable(found) else found


def _declared(function: object) -> dict[str, Any] | None:
    return None if function is None else {}


def _undeclared(capability: str) -> MCPError:
    return MCPError(INVALID_PARAMS, f"This client has not declared {capability}.")


def _completed(answer: ElicitResult, params: ElicitRequestFormParams) -> ElicitResult:
    """An accepted form with its defaults, checked.

    Raises:
        UsageError: the content does not fit the form.
    """
    from jsonschema import Draft202012Validator
    from referencing import Registry

    schema: dict[str, Any] = to_builtins(params.requested_schema)
    defaults = {name: field["default"] for name, field in schema["properties"].items() if "default" in field}
    content: dict[str, Any] = {**defaults, **(answer.content or {})}
    validator: Any = Draft202012Validator(schema, registry=Registry())
    problems = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(content)]
    if problems:
        raise UsageError(f"the answer does not fit the form that was asked for: {'; '.join(problems[:5])}")
    return ElicitResult(action="accept", content=content, meta=answer.meta)


def _root(entry: RootLike) -> Root:
    if isinstance(entry, str) and "://" in entry:
        entry = Root(uri=entry)
    if isinstance(entry, Root):
        if not entry.uri.startswith("file://"):
            raise UsageError(f"a root is a folder or a file:// URI, not {entry.uri!r}")
        return entry
    folder = Path(os.fspath(entry)).absolute()
    return Root(uri=folder.as_uri(), name=folder.name or None)
