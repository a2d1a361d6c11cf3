"""A server with every kind of tool the command line has to show; prints where it should not."""

import asyncio
import sys
import time
from typing import Annotated, Any, Literal

from typedmcp import App, Context, ToolError

print("printed while imported")

app = App("calculator", "1.2.3", instructions="Add things.")


@app.tool
async def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first number.
        b: The second one.
    """
    return a + b


@app.tool
def echo(text: str) -> str:
    """Give a text back."""
    print("printed while called")
    return text


@app.tool
def kind(value: Any, maybe: str | None = None, mode: Literal["1", "on"] = "on") -> dict[str, Any]:
    """Tell the types of what came."""
    return {"value": type(value).__name__, "maybe": maybe, "mode": mode}


@app.tool
def pick(tags: list[str], exact: bool, ratio: float, count: int | str) -> list[str]:
    """Tell what came."""
    return [*tags, repr(exact), repr(ratio), repr(count)]


@app.tool
def fail(why: str = "it was meant to") -> str:
    """Fail."""
    raise ToolError(f"failed: {why}")


@app.tool
async def count(steps: int, context: Context) -> str:
    """Report progress."""
    for step in range(1, steps + 1):
        context.report_progress(step, steps, f"step {step}")
        await asyncio.sleep(0)
    return "counted"


@app.tool
async def sleep(seconds: float) -> str:
    """Sleep, and say so first."""
    print("sleeping", file=sys.stderr, flush=True)
    await asyncio.sleep(seconds)
    return "slept"


@app.tool
def block(seconds: float) -> str:
    """Sleep in a thread, and say so first."""
    print("blocking", file=sys.stderr, flush=True)
    time.sleep(seconds)
    return "woke"


@app.tool
def weird(text: Annotated[str, "esc \x1b[31m red"] = "") -> str:
    """Looks \x1b[2J harmless."""
    return text


@app.resource("demo://greeting", mime_type="text/plain")
def greeting() -> str:
    """A greeting."""
    return "hello"


if __name__ == "__main__":
    app.run()
