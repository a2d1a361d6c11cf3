"""Running a server until its client goes away: where the server room and the transports meet."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any

from typedmcp.core.errors import UsageError
from typedmcp.core.transport import MCPServerInterface

TRANSPORTS = ("stdio",)


def run(server: MCPServerInterface, transport: str = "stdio") -> int | None:
    """Serve in this process until the client goes away, Ctrl-C or SIGTERM; the number of that signal is returned.

    Raises:
        UsageError: there is no such transport, or an event loop is running already.
    """
    if transport not in TRANSPORTS:
        raise UsageError(f"{transport!r} is no transport; use one of {', '.join(TRANSPORTS)}")
    try:
        return _run(serve_stdio(server))
    except KeyboardInterrupt:
        return signal.SIGINT


async def serve_stdio(server: MCPServerInterface) -> int | None:
    """Serve the process's standard input and output until end of input or a signal, and return the signal's number."""
    from typedmcp.transports.stdio.server import create_stdio_server

    handle = create_stdio_server(server)
    await handle.start()
    loop = asyncio.get_running_loop()
    closing = asyncio.ensure_future(handle.wait_closed())
    received: list[int] = []

    def end(number: int) -> None:
        received.append(number)
        closing.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        # Not on Windows, and not outside the main thread: there Ctrl-C raises KeyboardInterrupt instead.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, end, number)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await closing
    finally:
        await handle.stop()
    return received[0] if received else None


def _run(main: Coroutine[Any, Any, int | None]) -> int | None:
    """asyncio.run, on uvloop where it is loaded already or asked for by TYPEDMCP_UVLOOP=1."""
    if os.environ.get("TYPEDMCP_UVLOOP") == "1" or "uvloop" in sys.modules:
        import uvloop  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

        return uvloop.run(main)  # pyright: ignore[reportUnknownMemberType]
    return asyncio.run(main)
