"""What the transports' tests share: the smallest server, and an inbox for events."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, UnsetType, json

from typedmcp.core.emitter import Emitter
from typedmcp.core.jsonrpc import JSONRPCRequest, JSONRPCResponse
from typedmcp.core.transport import ClientTransportInterface


def call(request_id: int | str, method: str = "echo", **params: Any) -> JSONRPCRequest:
    return JSONRPCRequest(id=request_id, method=method, params=params)


class Inbox:
    """What a transport emits, in order."""

    def __init__(self, transport: ClientTransportInterface) -> None:
        self.queue: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        transport.emitter.on("message", lambda value: self.queue.put_nowait(("message", value)))
        transport.emitter.on("error", lambda value: self.queue.put_nowait(("error", value)))
        transport.emitter.on("close", lambda: self.queue.put_nowait(("close", None)))

    async def next(self) -> tuple[str, Any]:
        async with asyncio.timeout(20):
            return await self.queue.get()

    async def message(self) -> Any:
        event, value = await self.next()
        assert event == "message", value
        return value

    async def error(self) -> Any:
        event, value = await self.next()
        assert event == "error", value
        return value

    async def close(self) -> None:
        assert await self.next() == ("close", None)


class FakeServer:
    """Answers ``echo`` with its own params; other methods do what their names say."""

    name = "fake"
    version = "1"

    def __init__(self) -> None:
        self.emitter = Emitter()
        self.cancelled: list[object] = []
        self.notes: list[str] = []
        self.begun = asyncio.Event()

    async def dispatch(
        self, request: JSONRPCRequest | Mapping[str, Any], context: Any = None
    ) -> JSONRPCResponse | None:
        assert isinstance(request, JSONRPCRequest)
        request_id = request.id
        if isinstance(request_id, UnsetType):
            self.notes.append(request.method)
            return None
        params = json.decode(request.params) if request.params is not UNSET else {}
        result: Any = params
        if request.method == "wait":
            self.begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.append(request_id)
                raise
        elif request.method == "blob":
            result = {"text": "x" * params["size"]}
        elif request.method == "fault":
            raise RuntimeError("a fault of the server")
        elif request.method == "print":
            print("stray", flush=params["flush"])
        elif request.method == "child":
            # Inherits descriptors 0 and 1 on purpose: it must find an empty input, and must not reach the client.
            code = "import sys; print('from the child'); sys.exit(len(sys.stdin.buffer.read()))"
            result = {"code": await asyncio.to_thread(subprocess.call, [sys.executable, "-c", code], timeout=20)}
        return JSONRPCResponse(id=request_id, result=result)

    async def handle(self, message: Any, context: Any = None) -> Any:
        raise NotImplementedError
