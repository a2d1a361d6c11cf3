"""A client in a few lines: start the calculator on stdio and call it."""

import asyncio
import sys
from pathlib import Path

from typedmcp import connect

SERVER = Path(__file__).with_name("calculator.py")


async def main() -> None:
    async with connect([sys.executable, str(SERVER)]) as client:
        result = await client.call_tool("add", {"a": 1, "b": 2})  # the stub: a typed result
        print(result.content)
        print(await client.call("add", {"a": 1, "b": 2}))  # the value itself


if __name__ == "__main__":
    asyncio.run(main())
