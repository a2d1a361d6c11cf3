"""A function's return value as the result of ``tools/call``, and the output schema its annotation promises.

Rules:
- A value of an object type is the structured content itself; any other type is wrapped as ``{"result": value}``, in
  every revision, so that one schema serves all.
- The text block repeats the value for readers of text: a string as it is, anything else as JSON.
- Content blocks, lists of them and whole results pass through and have no output schema.
- What does not fit the annotation, or has no JSON form, never leaves: the caller sees a failed tool.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast, get_args, get_origin

import msgspec

from typedmcp.core.errors import UsageError
from typedmcp.core.jsonrpc import refuse_non_finite
from typedmcp.server.signature import object_schema
from typedmcp_wire.types.calls import CallToolResult
from typedmcp_wire.types.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from typedmcp_wire.types.input import InputRequiredResult

BLOCKS = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource)
WHOLE = (CallToolResult, InputRequiredResult)
_SCALARS = frozenset({int, str, bool})

Builder = Callable[[Any], Any]


def result_builder(returns: Any, label: str) -> tuple[dict[str, Any] | None, Builder]:
    """The output schema (None: there is none) and the function that turns a return value into a result.

    Raises:
        UsageError: the annotation has no JSON form.
    """
    if returns is inspect.Signature.empty or returns is Any or returns is object or _is_content(returns):
        return None, _loose
    if returns is None or returns is type(None):
        return None, _nothing
    try:
        schema = object_schema(returns)
    except TypeError as error:
        raise UsageError(f"{label}: the return type has no JSON form: {error}") from error
    if schema.get("type") == "object":
        return schema, _object_builder(returns)
    return _wrapped(schema), _value_builder(returns)


def _is_content(returns: Any) -> bool:
    """Whether an annotation speaks of content blocks or whole results."""
    if isinstance(returns, type):
        return issubclass(returns, (*BLOCKS, *WHOLE))
    arguments = [argument for argument in get_args(returns) if argument is not type(None)]
    return get_origin(returns) is not None and bool(arguments) and all(map(_is_content, arguments))


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    definitions = schema.pop("$defs", None)
    outer = {"type": "object", "properties": {"result": schema}, "required": ["result"], "additionalProperties": False}
    return {**outer, "$defs": definitions} if definitions else outer


def _object_builder(returns: Any) -> Builder:
    def build(value: Any) -> CallToolResult:
        checked = _checked(value, returns)
        return CallToolResult(content=[TextContent(text=to_text(checked))], structured_content=checked)

    return build


def _value_builder(returns: Any) -> Builder:
    def build(value: Any) -> CallToolResult:
        kind = cast("Any", type(value))
        checked = value if kind is returns and kind in _SCALARS else _checked(value, returns)
        text = _whole(checked) if kind is str else str(checked) if kind is int else to_text(checked)
        return CallToolResult(content=[TextContent(text=text)], structured_content={"result": checked})

    return build


def _checked(value: Any, returns: Any) -> Any:
    """`value` as its annotation has it; the round trip through plain data checks what instances hold."""
    return msgspec.convert(msgspec.to_builtins(value, str_keys=True), returns, str_keys=True)


def _nothing(value: Any) -> CallToolResult:
    if value is not None:
        raise TypeError(f"the function is annotated to return None and returned {type(value).__name__}")
    return CallToolResult(content=[])


def _loose(value: Any) -> Any:
    """The result of a function whose annotation promises nothing."""
    if isinstance(value, (*WHOLE, *BLOCKS)):
        to_text(value)  # raises for what JSON cannot hold
        return CallToolResult(content=[value]) if isinstance(value, BLOCKS) else value
    if value is None:
        return CallToolResult(content=[])
    if isinstance(value, (list, tuple)):
        entries = list(cast("list[Any]", value))
        if entries and all(isinstance(entry, BLOCKS) for entry in entries):
            to_text(entries)
            return CallToolResult(content=entries)
    return CallToolResult(content=[TextContent(text=_whole(value) if isinstance(value, str) else to_text(value))])


def _whole(text: str) -> str:
    """`text` itself; raises ValueError when it holds half a surrogate pair, which UTF-8 lacks."""
    if not text.isascii():
        text.encode()
    return text


def to_text(value: Any) -> str:
    """Compact JSON text of a value.

    Raises:
        ValueError: a number is NaN or infinite; the text names its pointer.
        TypeError: a value has no JSON form.
    """
    text = msgspec.json.encode(value)
    if b"null" in text:
        refuse_non_finite(value)
    return text.decode()
