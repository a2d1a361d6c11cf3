"""Our server with one tool, for the benchmark."""

from __future__ import annotations

from typedmcp import App

app = App("bench", "1")


@app.tool
async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


if __name__ == "__main__":
    app.run()
