"""A server made with the high-level API of mcp, 1.x (FastMCP) or 2.x (MCPServer), whichever is installed."""

import logging
import sys

import anyio
from pydantic import BaseModel

try:
    from mcp.server.mcpserver import Context, Image, MCPServer
except ImportError:
    from mcp.server.fastmcp import Context, Image
    from mcp.server.fastmcp import FastMCP as MCPServer

logging.basicConfig(stream=sys.stderr, level=logging.DEBUG)
sys.stderr.write("chatter on standard error: {}\n" * 3)

server = MCPServer("peer", instructions="Be kind.")
cancelled: list[str] = []


class Point(BaseModel):
    x: float
    label: str


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def point(x: float) -> Point:
    """A structured result."""
    return Point(x=x, label="here")


@server.tool()
def lie() -> Point:
    """A result that is not what the output schema promises."""
    return {"x": "far away"}


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@server.tool()
def picture() -> Image:
    """No text."""
    return Image(data=b"\x89PNG not really", format="png")


@server.tool()
async def slow(seconds: float, steps: int, ctx: Context) -> str:
    """Report progress, and count how often that was interrupted."""
    try:
        for step in range(steps):
            await ctx.report_progress(step + 1, steps, f"step {step + 1}")
            await anyio.sleep(seconds / steps)
    except anyio.get_cancelled_exc_class():
        cancelled.append("once more")
        raise
    return "done"


@server.tool()
def interruptions() -> int:
    """How often a slow call was interrupted."""
    return len(cancelled)


@server.resource("peer://note", mime_type="text/plain")
def note() -> str:
    """A note."""
    return "read me"


@server.resource("peer://user/{name}")
def user(name: str) -> str:
    """A user."""
    return f"user {name}"


@server.prompt()
def greet(name: str) -> str:
    """A greeting."""
    return f"Say hello to {name}."


if __name__ == "__main__":
    server.run()
