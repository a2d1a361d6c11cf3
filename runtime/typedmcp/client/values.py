"""The result of a tool as a plain value, or as the exception it stands for."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from typedmcp.core.errors import ToolError
from typedmcp.core.narrow import is_object
from typedmcp_wire.types.calls import CallToolResult
from typedmcp_wire.types.content import TextContent


def text_of(result: CallToolResult) -> str:
    """The text of all text blocks, with nothing between them."""
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


def value_of(result: CallToolResult) -> Any:
    """What a tool returned.

    The structured content comes first.  One of the form ``{"result": value}`` whose text block repeats just the value
    is a value that was wrapped to be an object, and is unwrapped.  Without structured content the text is read as JSON,
    and taken as it is when it is none; no content at all is None.  A result without text whose blocks are of other
    kinds (images, links) is the list of those blocks.

    Raises:
        ToolError: the result says that the tool failed.
    """
    text = text_of(result)
    if result.is_error is True:
        raise ToolError(
            text or "the tool failed without saying why",
            content=result.content,
            structured_content=result.structured_content,
            meta=result.meta,
        )
    structured = result.structured_content
    if structured is UNSET:
        # Images and the like have no plain value: the blocks themselves are handed over rather than lost.
        return _parsed(text) if text or not result.content else _text_or_blocks(result)
    if is_object(structured) and structured.keys() == {"result"}:
        inner = structured["result"]
        if inner == text or (text and inner == _parsed(text)):
            return inner
    return structured


def _text_or_blocks(result: CallToolResult) -> Any:
    return None if all(isinstance(block, TextContent) for block in result.content) else result.content


def _parsed(text: str) -> Any:
    if not text:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return text
