"""A server made with the low-level API of mcp 2.x that gives its tools two at a time."""

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

NAMES = [f"tool{number}" for number in range(5)]


async def list_tools(ctx, params):
    start = int(params.cursor) if params and params.cursor else 0
    tools = [types.Tool(name=name, input_schema={"type": "object"}) for name in NAMES[start : start + 2]]
    following = start + 2
    return types.ListToolsResult(tools=tools, next_cursor=str(following) if following < len(NAMES) else None)


async def call_tool(ctx, params):
    return types.CallToolResult(content=[types.TextContent(text=params.name)])


async def main():
    server = Server("paged", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


anyio.run(main)
