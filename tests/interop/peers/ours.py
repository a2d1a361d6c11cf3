"""A server of ours that does what the calculator does not: wait, fail, log, work in a thread."""

import asyncio
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "docs" / "examples"))

from calculator import app

from typedmcp import Context, ToolError

cancelled: list[str] = []


@app.tool
async def nap(seconds: float, context: Context) -> str:
    """Sleep, and count how often that was interrupted."""
    try:
        context.report_progress(0, seconds, "asleep")
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        cancelled.append("once more")
        raise
    return "awake"


@app.tool
async def interruptions() -> int:
    """How often a nap was interrupted."""
    return len(cancelled)


@app.tool
def block(seconds: float) -> str:
    """Sleep in a worker thread."""
    time.sleep(seconds)
    return "done"


@app.tool
async def refuse() -> str:
    """Fail and say why."""
    raise ToolError("not today")


@app.tool
async def crash() -> str:
    """Fail by accident."""
    raise ZeroDivisionError("a secret")


@app.tool
async def chatter(text: str) -> dict[str, str]:
    """Print on standard output, which must harm nobody."""
    print("this is no message")
    sys.stderr.write("nor is this\n")
    return {"text": text}


if __name__ == "__main__":
    app.run()
