"""The messages of a sampling request: made of what a handler gives, and in the order the protocol wants.

Rules (2025-11-25 on):
- A user's message with results of tools holds nothing else.
- A message with uses of tools is followed at once by their results, every one of them.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from typedmcp.core.errors import UsageError
from typedmcp.core.revisions import exists_in
from typedmcp_wire.types.content import AudioContent, ImageContent, TextContent, ToolResultContent, ToolUseContent
from typedmcp_wire.types.sampling import SamplingMessage

BLOCKS = (TextContent, ImageContent, AudioContent, ToolUseContent, ToolResultContent)
LISTS_REVISION = "2025-11-25"
"""The revision that lets one message hold several blocks."""


def conversation(messages: Any, revision: str) -> list[SamplingMessage]:
    """The messages to send to a client of `revision`.

    Raises:
        UsageError: there is none, the revision cannot carry them, or their order is not allowed.
    """
    given = list(cast("list[Any]", messages)) if isinstance(messages, (list, tuple)) else [messages]
    made = [_carried(_message(entry), revision) for entry in given]
    if not made:
        raise UsageError("sampling needs at least one message")
    _check_tools(made)
    return made


def _message(value: Any) -> SamplingMessage:
    """One message; text and content blocks are the user's."""
    if isinstance(value, SamplingMessage):
        return value
    if isinstance(value, str):
        return SamplingMessage(role="user", content=TextContent(text=value))
    if isinstance(value, BLOCKS):
        return SamplingMessage(role="user", content=value)
    raise UsageError(f"a conversation is made of messages, content and text, not {type(value).__name__}")


def blocks_of(message: SamplingMessage) -> list[Any]:
    """The blocks of a message, whether it holds one or a list."""
    return [*message.content] if isinstance(message.content, list) else [message.content]


def _carried(message: SamplingMessage, revision: str) -> SamplingMessage:
    blocks = blocks_of(message)
    for block in blocks:
        if not exists_in(type(block).__name__, revision):
            raise UsageError(f"clients of {revision} do not know {type(block).__name__}")
    if revision >= LISTS_REVISION or not isinstance(message.content, list):
        return message
    if len(blocks) != 1:
        raise UsageError(f"a message to a client of {revision} holds one block; write several messages")
    return msgspec.structs.replace(message, content=blocks[0])


def _check_tools(messages: list[SamplingMessage]) -> None:
    awaited: list[str] = []
    for message in messages:
        blocks = blocks_of(message)
        results = [block.tool_use_id for block in blocks if isinstance(block, ToolResultContent)]
        if results and (message.role != "user" or len(results) < len(blocks)):
            raise UsageError("results of tools stand in a user's message that holds nothing else")
        if sorted(results) != sorted(awaited):
            raise UsageError("each use of a tool is followed at once by its result, and by nothing else")
        awaited = [block.id for block in blocks if isinstance(block, ToolUseContent)]
        if awaited and message.role != "assistant":
            raise UsageError("uses of tools stand in a message of the assistant")
    if awaited:
        raise UsageError("each use of a tool is followed at once by its result, and by nothing else")
