"""Asking the client while its request is served: its user, its model, its roots.

In the handshake era a question is a request to the client, and the handler waits for the answer.  What the client did
not declare, or its revision does not have, is refused here and never sent.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from msgspec import UNSET

from typedmcp.core.errors import InvalidResult, UsageError
from typedmcp.core.revisions import fit
from typedmcp.server.capabilities import MissingCapability, missing
from typedmcp.server.conversation import conversation
from typedmcp.server.forms import Elicited, form_of
from typedmcp_wire.methods import CREATE_MESSAGE, ELICIT, LIST_ROOTS, Method
from typedmcp_wire.types.elicitation import ElicitRequestFormParams, ElicitRequestURLParams, ElicitResult
from typedmcp_wire.types.roots import ListRootsResult, Root
from typedmcp_wire.types.sampling import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ModelPreferences,
)
from typedmcp_wire.types.tools import Tool, ToolChoice

if TYPE_CHECKING:
    from typedmcp.server.context import Context

TOOLS_REVISION = "2025-11-25"
"""The revision that brought tools in sampling, questions by URL and what a client declares about both."""

T = TypeVar("T")
Capability: TypeAlias = dict[str, Any]


async def elicit(context: Context, message: str, schema: Any, timeout: float | None) -> Elicited[Any]:
    """Ask the user to fill in a form; see :meth:`Context.elicit`."""
    declared = context.client_capabilities.elicitation
    by_form = declared is not None and (declared.form is not None or declared.url is None)
    _demand(context, ELICIT, {"elicitation": {}} if declared is None else {"elicitation": {"form": {}}}, by_form)
    form = form_of(schema)
    params = ElicitRequestFormParams(message=message, requested_schema=form.for_revision(context.revision))
    result = await _ask(context, ELICIT, fit(params, context.revision), timeout, ElicitResult)
    if result.action != "accept":
        return Elicited(action=result.action)
    return Elicited(action="accept", content=form.read(cast("dict[str, Any]", result.content or {})))


async def elicit_url(
    context: Context, message: str, url: str, elicitation_id: str | None, timeout: float | None
) -> Elicited[None]:
    """Ask the user to visit a page; see :meth:`Context.elicit_url`."""
    scheme, _, rest = url.partition("://")
    if scheme.lower() not in ("https", "http") or not rest.strip("/") or any(map(str.isspace, url)):
        raise UsageError(f"the user is sent to an https address; got {url!r}")
    declared = context.client_capabilities.elicitation
    _demand(context, ELICIT, {"elicitation": {"url": {}}}, declared is not None and declared.url is not None)
    if context.revision < TOOLS_REVISION:
        raise MissingCapability({"elicitation": {"url": {}}}, _too_old("elicitation by URL", context))
    params = ElicitRequestURLParams(message=message, url=url, elicitation_id=elicitation_id or str(uuid.uuid4()))
    result = await _ask(context, ELICIT, fit(params, context.revision), timeout, ElicitResult)
    return Elicited(action=result.action)


async def sample(
    context: Context,
    messages: Any,
    *,
    max_tokens: int,
    system_prompt: str | None,
    model_preferences: ModelPreferences | None,
    temperature: float | None,
    stop_sequences: list[str] | None,
    include_context: Any,
    metadata: dict[str, Any] | None,
    tools: list[Tool] | None,
    tool_choice: ToolChoice | None,
    timeout: float | None,
) -> CreateMessageResult:
    """Have the client's model continue a conversation; see :meth:`Context.sample`."""
    if max_tokens < 1:
        raise UsageError("max_tokens must be at least 1")
    declared = context.client_capabilities.sampling
    _demand(context, CREATE_MESSAGE, {"sampling": {}}, declared is not None)
    if tools is not None or tool_choice is not None:
        wanted: Capability = {"sampling": {"tools": {}}}
        if context.revision < TOOLS_REVISION:
            raise MissingCapability(wanted, _too_old("sampling with tools", context))
        _demand(context, CREATE_MESSAGE, wanted, declared is not None and declared.tools is not None)
    if include_context not in (None, "none") and context.revision >= TOOLS_REVISION:
        has_context = declared is not None and declared.context is not None
        _demand(context, CREATE_MESSAGE, {"sampling": {"context": {}}}, has_context)
    params = CreateMessageRequestParams(
        messages=conversation(messages, context.revision),
        max_tokens=max_tokens,
        system_prompt=system_prompt,
        model_preferences=model_preferences,
        temperature=temperature,
        stop_sequences=stop_sequences,
        include_context=include_context,
        metadata=metadata,
        tools=tools,
        tool_choice=tool_choice,
    )
    return await _ask(context, CREATE_MESSAGE, fit(params, context.revision), timeout, CreateMessageResult)


async def list_roots(context: Context, timeout: float | None) -> list[Root]:
    """Ask for the client's roots; see :meth:`Context.list_roots`."""
    _demand(context, LIST_ROOTS, {"roots": {}}, context.client_capabilities.roots is not None)
    return (await _ask(context, LIST_ROOTS, UNSET, timeout, ListRootsResult)).roots


def _demand(context: Context, method: Method[Any, Any], capability: Capability, declared: bool) -> None:
    """Refuse a question the client's revision does not have, or that it did not say it can answer."""
    if not context.is_modern and context.revision not in method.server:
        raise MissingCapability(capability, _too_old(method.name, context))
    if not declared:
        raise missing(capability, context.revision)


def _too_old(what: str, context: Context) -> str:
    return f"This needs a client that knows {what}; the one here speaks {context.revision}."


async def _ask(context: Context, method: Method[Any, Any], params: object, timeout: float | None, kind: type[T]) -> T:
    if context.is_modern:
        from typedmcp.server.rounds import rounds_of

        return await rounds_of(context).ask(method, params, kind)
    if context.finished:
        raise UsageError(f"{method.name}: the request is answered already; ask while it is served")
    request = getattr(context.peer, "request", None)
    if request is None:
        raise UsageError(f"{method.name}: there is no connection to ask the client on")
    result: object = await request(method, params, timeout=timeout)
    if not isinstance(result, kind):
        raise InvalidResult(
            f"the client's answer to {method.name} is a {type(result).__name__}, which nobody asked for"
        )
    return result
