"""Serves a fake server on this process's input and output."""

from __future__ import annotations

import asyncio
import sys

from transport_fakes import FakeServer

from typedmcp.transports.stdio import create_stdio_server


async def main() -> None:
    handle = create_stdio_server(FakeServer())
    handle.transport.emitter.on("error", lambda error: print(error, file=sys.stderr, flush=True))
    await handle.serve()


asyncio.run(main())
print("after serving", flush=True)
