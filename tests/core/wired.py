"""A connection whose other end is a list, and a server whose handlers a test writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from typedmcp.core.connection import Connection
from typedmcp.core.emitter import Emitter
from typedmcp.core.errors import MessageError
from typedmcp.core.jsonrpc import JSONRPCErrorData, JSONRPCRequest, JSONRPCResponse, decode_message

LIMIT = 10.0
"""Seconds after which a test has hung."""

Handler = Callable[[JSONRPCRequest, Any], Awaitable[Any]]


class StubServer:
    """Serves what a test gives it, and notes in which order requests began."""

    name, version = "stub", "1"

    def __init__(self, **handlers: Handler) -> None:
        self.emitter = Emitter()
        self.handlers = handlers
        self.began: list[Any] = []

    async def dispatch(self, request: Any, context: Any = None) -> JSONRPCResponse | None:
        self.began.append(request.id if isinstance(request.id, (int, str)) else request.method)
        handler = self.handlers.get(request.method.replace("/", "_"))
        if isinstance(request.id, (int, str)):
            if handler is None:
                return JSONRPCResponse(id=request.id, error=JSONRPCErrorData(code=-32601, message="no such method"))
            return JSONRPCResponse(id=request.id, result=await handler(request, context))
        if handler is not None:
            await handler(request, context)
        return None

    async def handle(self, message: Any, context: Any = None) -> Any:
        raise NotImplementedError


class Wired:
    """A connection to a server, the wire being a list."""

    def __init__(self, server: Any, **options: Any) -> None:
        self.frames: list[bytes] = []
        self._written = asyncio.Event()
        self.connection = Connection(server, self._write, **options)

    def _write(self, data: bytes) -> None:
        self.frames.append(bytes(data))
        self._written.set()

    async def begun(self) -> None:
        """Return when everything received has begun."""
        async with asyncio.timeout(LIMIT):
            while self.connection.waiting:  # noqa: ASYNC110 - a connection has no event for it
                await asyncio.sleep(0)

    @property
    def sent(self) -> list[Any]:
        return [json.loads(frame) for frame in self.frames]

    def receive(self, *messages: Any) -> None:
        """Take messages (parsed JSON, or text) as one read of a transport would bring them."""
        for message in messages:
            data = message if isinstance(message, (str, bytes)) else json.dumps(message)
            try:
                self.connection.receive(decode_message(data))
            except MessageError as error:
                self.connection.receive_malformed(error)

    async def until(self, count: int) -> list[Any]:
        """Wait until so many messages have been sent."""
        async with asyncio.timeout(LIMIT):
            while len(self.frames) < count:
                self._written.clear()
                await self._written.wait()
        return self.sent

    async def idle(self) -> list[Any]:
        """Wait until nothing is in flight."""
        for _ in range(5):
            await self.connection.wait_closed(LIMIT)
            await asyncio.sleep(0)
        return self.sent

    async def ask(self, message: Any) -> Any:
        """The answer to one request."""
        before = len(self.frames)
        self.receive(message)
        return (await self.until(before + 1))[before]


def call(id: Any, method: str = "tools/call", **params: Any) -> dict[str, Any]:  # noqa: A002
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
    return {**message, "params": params} if params else message


def note(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def cancel(request_id: Any, **more: Any) -> dict[str, Any]:
    return note("notifications/cancelled", requestId=request_id, **more)
