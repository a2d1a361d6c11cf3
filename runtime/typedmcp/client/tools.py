"""A server's tools as local objects, and lists walked page by page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from typedmcp.core.errors import InvalidResult

if TYPE_CHECKING:
    from typedmcp.client.client import MCPClient
    from typedmcp_wire.types.tools import Tool as ToolDescriptor

MAX_PAGES = 10_000


class RemoteTool(Struct, frozen=True, kw_only=True):
    """A remote tool as if it were local.

    Attributes:
        name: Its name.
        description: What it does.
        parameters: JSON Schema of its arguments.
        execute: Call it with the arguments object; returns the value, raises ToolError.
        descriptor: The whole entry of the list.
    """

    name: str
    description: str | None
    parameters: dict[str, Any]
    execute: Callable[[dict[str, Any]], Awaitable[Any]]
    descriptor: ToolDescriptor


async def remote_tools(client: MCPClient) -> list[RemoteTool]:
    """Every tool of the server, all pages.

    Raises:
        InvalidResult: the server gives the same cursor twice, or pages without end.
    """
    found: list[RemoteTool] = []
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor)
        found += [_local(client, descriptor) for descriptor in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return found
        if cursor in seen:
            raise InvalidResult(f"the server gave the cursor {cursor!r} twice: its list of tools has no end")
        seen.add(cursor)
    raise InvalidResult(f"the list of tools has more than {MAX_PAGES} pages")


def _local(client: MCPClient, descriptor: ToolDescriptor) -> RemoteTool:
    async def execute(arguments: dict[str, Any]) -> Any:
        return await client.call(descriptor.name, arguments)

    return RemoteTool(
        name=descriptor.name,
        description=descriptor.description,
        parameters=descriptor.input_schema,
        execute=execute,
        descriptor=descriptor,
    )
