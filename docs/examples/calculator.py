"""A server in a few lines: `typedmcp run docs/examples/calculator.py`, or `python docs/examples/calculator.py`."""

import asyncio

from typedmcp import App, Context

app = App("calculator", "1.0.0", instructions="Does sums.")


@app.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool
async def total(numbers: list[float], context: Context) -> float:
    """Add many numbers, reporting progress.

    Args:
        numbers: What to add.
    """
    result = 0.0
    for count, number in enumerate(numbers, start=1):
        result += number
        context.report_progress(count, len(numbers), f"added {number:g}")
        await asyncio.sleep(0)
    return result


@app.resource("calculator://about", mime_type="text/plain")
def about() -> str:
    """What this server is."""
    return "A calculator that adds."


if __name__ == "__main__":
    app.run()
