"""Running a server until its client goes away: where the server room and the transports meet."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from typedmcp.core.ending import end_listening
from typedmcp.core.errors import UsageError
from typedmcp.core.transport import MCPServerInterface

if TYPE_CHECKING:
    from aiohttp import web

TRANSPORTS = ("stdio", "http", "ws")


def run(server: MCPServerInterface, transport: str = "stdio", **options: Any) -> int | None:
    """Serve in this process until the client goes away, Ctrl-C or SIGTERM; the number of that signal is returned.

    Args:
        transport: ``"stdio"``, ``"http"`` or ``"ws"``.
        options: For HTTP, those of :func:`serve_http`; for WebSocket, those of :func:`serve_ws`.

    Raises:
        UsageError: there is no such transport, it has no such option, or the address cannot be bound.
    """
    if transport not in TRANSPORTS:
        raise UsageError(f"{transport!r} is no transport; use one of {', '.join(TRANSPORTS)}")
    if transport == "stdio" and options:
        raise UsageError(f"stdio has no options; got {', '.join(options)}")
    serve = {"stdio": serve_stdio, "http": serve_http, "ws": serve_ws}[transport]
    try:
        return _run(serve(server, **options))
    except KeyboardInterrupt:
        return signal.SIGINT


async def serve_http(
    server: MCPServerInterface,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    grace: float = 5.0,
    **options: Any,
) -> int | None:
    """Serve HTTP until SIGINT or SIGTERM, and return the signal's number.

    Args:
        host: The address to bind; loopback by default.
        port: The port; 0 takes a free one.
        grace: Seconds open requests have to end after a signal.
        options: Those of :func:`typedmcp.transports.http.create_app`: path, streaming, origins, ...
    """
    from typedmcp.transports.http.app import create_app

    app = _made(create_app, server, host=host, **options)
    return await _serve_app(app, server.name, "http", host, port, options.get("path", "/mcp"), grace)


async def serve_ws(
    server: MCPServerInterface,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    grace: float = 5.0,
    **options: Any,
) -> int | None:
    """Serve WebSockets until SIGINT or SIGTERM, and return the signal's number.

    Args:
        host: The address to bind; loopback by default.
        port: The port; 0 takes a free one.
        grace: Seconds connections have to end after a signal.
        options: Those of :func:`typedmcp.transports.websocket.create_websocket_app`: path, origins, limit, ...
    """
    from typedmcp.transports.websocket.app import create_websocket_app

    app = _made(create_websocket_app, server, host=host, **options)
    return await _serve_app(app, server.name, "ws", host, port, options.get("path", "/mcp"), grace)


def _made(create: Callable[..., web.Application], server: MCPServerInterface, **options: Any) -> web.Application:
    known = inspect.signature(create).parameters
    for name in options:
        if name not in known:
            raise UsageError(f"there is no option {name!r}; there are {', '.join(['port', 'grace', *list(known)[1:]])}")
    return create(server, **options)


async def _serve_app(
    app: web.Application, name: str, scheme: str, host: str, port: int, path: str, grace: float
) -> int | None:
    from aiohttp import web

    signals = _Signals()
    # A modern request ends with its client; one of the handshake era runs in a task of its own.
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=grace)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise UsageError(
                f"cannot listen on {host}:{port}: {error.strerror or error}; choose another port="
            ) from error
        for address in runner.addresses:
            place = f"[{address[0]}]" if ":" in address[0] else address[0]
            sys.stderr.write(f"Serving {name} at {scheme}://{place}:{address[1]}{path}\n")
        return await signals.wait(asyncio.get_running_loop().create_future())
    finally:
        await runner.cleanup()


async def serve_stdio(server: MCPServerInterface) -> int | None:
    """Serve the process's standard input and output until end of input or a signal, and return the signal's number."""
    from typedmcp.transports.stdio.server import create_stdio_server

    signals = _Signals()
    handle = create_stdio_server(server)
    await handle.start()
    try:
        return await signals.wait(asyncio.ensure_future(handle.wait_closed()))
    finally:
        await end_listening(server)
        await handle.stop()


class _Signals:
    """SIGINT and SIGTERM, caught from here on; later than the first word of a server would be too late."""

    def __init__(self) -> None:
        self._received: list[int] = []
        self._closing: asyncio.Future[None] | None = None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            # Not on Windows, and not outside the main thread: there Ctrl-C raises KeyboardInterrupt instead.
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self._end, number)

    async def wait(self, closing: asyncio.Future[None]) -> int | None:
        """Wait for `closing`, or for a signal, whose number is returned."""
        self._closing = closing
        if self._received:
            closing.cancel()
        try:
            await closing
        except asyncio.CancelledError:
            if not self._received:
                raise
        return self._received[0] if self._received else None

    def _end(self, number: int) -> None:
        self._received.append(number)
        if self._closing is not None:
            self._closing.cancel()


def _run(main: Coroutine[Any, Any, int | None]) -> int | None:
    """asyncio.run, on uvloop where it is installed (the extra `speed`)."""
    try:
        import uvloop  # pyright: ignore[reportMissingImports, reportUnknownVariableType]
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)  # pyright: ignore[reportUnknownMemberType]
