"""A function as a prompt of an app: text arguments in, messages out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict, cast

import msgspec

from typedmcp.core.errors import MCPError, UsageError
from typedmcp.server.completion import Completer, Completers
from typedmcp.server.context import Context
from typedmcp.server.functions import BoundFunction, guarded
from typedmcp.server.results import BLOCKS
from typedmcp.server.signature import Signature, read_signature
from typedmcp.server.text_arguments import convert_texts, demand_textual, text_violations
from typedmcp.server.threads import WorkerThreads
from typedmcp_wire.revisions import INVALID_PARAMS
from typedmcp_wire.types.base import Icon
from typedmcp_wire.types.content import TextContent
from typedmcp_wire.types.input import InputRequiredResult
from typedmcp_wire.types.prompts import GetPromptResult, Prompt, PromptArgument, PromptMessage

_FAILED = "The prompt cannot be made."


class PromptOptions(TypedDict, total=False):
    """What can be said about a prompt.

    Attributes:
        name: Its name; the function's by default.
        title: A name for people.
        description: What it is for; the docstring's by default.
        icons: Icons a user interface may show.
        meta: Its ``_meta``.
        complete: Argument name to a function that suggests values for it, see :mod:`typedmcp.server.completion`.
    """

    name: str | None
    title: str | None
    description: str | None
    icons: list[Icon] | None
    meta: dict[str, Any] | None
    complete: Mapping[str, Completer] | None


class FunctionPrompt:
    """One function, its parameters as arguments.

    Raises:
        UsageError: it has no name, or a parameter cannot be made from text.
    """

    def __init__(self, function: Callable[..., Any], threads: WorkerThreads, options: PromptOptions) -> None:
        self.name: str = options.get("name") or str(getattr(function, "__name__", ""))
        if not self.name:
            raise UsageError("a prompt needs a name; give name=")
        label = f"prompt {self.name!r}"
        signature = read_signature(function)
        demand_textual(signature, label)
        self._signature = signature
        self._function = BoundFunction(function, threads, signature.context_name)
        self.takes_context = self._function.takes_context
        names = signature.arguments.__struct_fields__
        self.completers = Completers(options.get("complete") or {}, names, threads, label)
        described = options.get("description")
        self.descriptor = Prompt(
            name=self.name,
            title=options.get("title"),
            description=signature.description if described is None else described,
            arguments=_arguments(signature) or None,
            icons=options.get("icons"),
            meta=options.get("meta"),
        )

    async def get(self, arguments: dict[str, str] | None, context: Context) -> GetPromptResult | InputRequiredResult:
        """Call the function and return its messages.

        Raises:
            MCPError: the arguments do not fit, or the function failed.
        """
        given = arguments or {}
        try:
            values = convert_texts(given, self._signature.arguments)
        except msgspec.ValidationError as error:
            data = text_violations(given, self._signature, error)
            raise MCPError(INVALID_PARAMS, f"Invalid arguments for prompt {self.name}.", data) from None

        async def work() -> GetPromptResult | InputRequiredResult:
            return self._result(await self._function.call(values, context))

        result: GetPromptResult | InputRequiredResult = await guarded(work(), f"prompt {self.name!r}", _FAILED)
        return result

    def _result(self, value: Any) -> GetPromptResult | InputRequiredResult:
        if isinstance(value, (GetPromptResult, InputRequiredResult)):
            return value
        parts = list(cast("list[Any]", value)) if isinstance(value, (list, tuple)) else [value]
        return GetPromptResult(description=self.descriptor.description, messages=[_message(part) for part in parts])


def _arguments(signature: Signature) -> list[PromptArgument]:
    schema = signature.input_schema
    required = schema.get("required", ())
    return [
        PromptArgument(
            name=name,
            title=member.get("title"),
            description=member.get("description"),
            required=True if name in required else None,
        )
        for name, member in schema.get("properties", {}).items()
    ]


def _message(value: Any) -> PromptMessage:
    """One message; text and content blocks are the user's."""
    if isinstance(value, PromptMessage):
        return value
    if isinstance(value, str):
        return PromptMessage(role="user", content=TextContent(text=value))
    if isinstance(value, BLOCKS):
        return PromptMessage(role="user", content=value)
    raise TypeError(f"a prompt is made of messages, content and text; the function returned {type(value).__name__}")
