"""The part of a context that asks the client: its user, its model, its roots.

What the methods do is in :mod:`typedmcp.server.asking`, loaded when the first question is asked.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast, overload

from typedmcp.core.errors import UsageError

if TYPE_CHECKING:
    from typedmcp.server.context import Context
    from typedmcp.server.forms import Elicited
    from typedmcp_wire.types.roots import Root
    from typedmcp_wire.types.sampling import CreateMessageResult, ModelPreferences, SamplingMessage
    from typedmcp_wire.types.tools import Tool, ToolChoice

T = TypeVar("T")
Answer: TypeAlias = Coroutine[Any, Any, T]
"""What is awaited for the answer of a client."""

HUMAN_TIMEOUT = 600.0
"""Seconds a question waits when a person may have to answer it."""
ROOTS_TIMEOUT = 30.0
"""Seconds a question waits that a program answers."""


class Questions:
    """The questions a handler can put to the client; each is sent at once and awaited."""

    __slots__ = ()

    @overload
    def elicit(self, message: str, schema: type[T], *, timeout: float | None = ...) -> Answer[Elicited[T]]: ...
    @overload
    def elicit(
        self, message: str, schema: dict[str, Any], *, timeout: float | None = ...
    ) -> Answer[Elicited[dict[str, Any]]]: ...
    def elicit(self, message: str, schema: Any, *, timeout: float | None = HUMAN_TIMEOUT) -> Answer[Elicited[Any]]:
        """Ask the user to fill in a form.  Never ask for secrets so; see :meth:`elicit_url`.

        Args:
            message: What is asked for.
            schema: A dataclass, struct or TypedDict with plain fields, or a raw JSON Schema of that kind.
            timeout: Seconds to wait; None: as long as the request lives.

        Returns:
            What the user did and, accepted, what was entered: checked, and an instance of `schema` when that is a type.

        Raises:
            MissingCapability: the client did not declare ``elicitation`` by form, or its revision lacks it.
            UsageError: the form has fields the client's revision does not know.
            InvalidResult: the answer does not fit the form.
            MCPError: the client answered with an error.
            RequestTimeout: nobody answered in time.
        """
        from typedmcp.server import asking

        return asking.elicit(_asker(self), message, schema, timeout)

    def elicit_url(
        self,
        message: str,
        url: str,
        elicitation_id: str | None = None,
        *,
        timeout: float | None = HUMAN_TIMEOUT,
    ) -> Answer[Elicited[None]]:
        """Ask the user to visit a page, for what must not pass through the client.

        "accept" means that the user agreed to go there, not that anything has been done there.

        Args:
            message: Why.
            url: The page, as a rule https; without secrets or personal data in it.
            elicitation_id: What names this question, unique within the server; made up when left out.
            timeout: Seconds to wait; None: as long as the request lives.

        Raises:
            MissingCapability: the client did not declare ``elicitation.url``, or its revision lacks it.
        """
        from typedmcp.server import asking

        return asking.elicit_url(_asker(self), message, url, elicitation_id, timeout)

    def sample(
        self,
        messages: str | SamplingMessage | Sequence[str | SamplingMessage],
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        model_preferences: ModelPreferences | None = None,
        temperature: float | None = None,
        stop_sequences: list[str] | None = None,
        include_context: Literal["allServers", "none", "thisServer"] | None = None,
        metadata: dict[str, Any] | None = None,
        tools: list[Tool] | None = None,
        tool_choice: ToolChoice | None = None,
        timeout: float | None = HUMAN_TIMEOUT,
    ) -> Answer[CreateMessageResult]:
        """Have the client's model continue a conversation.

        Args:
            messages: The conversation; text alone is the user's.
            max_tokens: The most tokens to make.
            tools: Tools the model may use; running them, and sampling again with their results, is the handler's part.
            timeout: Seconds to wait; None: as long as the request lives.

        Raises:
            MissingCapability: the client did not declare ``sampling``, or what it needs below it (``tools``,
                ``context``).
            UsageError: its revision cannot carry the messages, or their order is not allowed.
        """
        from typedmcp.server import asking

        return asking.sample(
            _asker(self),
            messages,
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            model_preferences=model_preferences,
            temperature=temperature,
            stop_sequences=stop_sequences,
            include_context=include_context,
            metadata=metadata,
            tools=tools,
            tool_choice=tool_choice,
            timeout=timeout,
        )

    def list_roots(self, *, timeout: float | None = ROOTS_TIMEOUT) -> Answer[list[Root]]:
        """The directories and files the client lets the server work on.

        Raises:
            MissingCapability: the client did not declare ``roots``.
        """
        from typedmcp.server import asking

        return asking.list_roots(_asker(self), timeout)


def _asker(questions: Questions) -> Context:
    """The context whose part `questions` is.

    Raises:
        UsageError: the handler is a plain function, which has no way to wait for an answer.
    """
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError("only an async function can ask the client: make it async def and await this") from None
    return cast("Context", questions)
