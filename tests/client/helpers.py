"""A scripted server on the other end of a memory pair: it sees the client's bytes and sends any bytes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from typedmcp.client.client import MCPClient
from typedmcp.core.jsonrpc import JSONRPCRequest, JSONRPCResponse
from typedmcp.transports.memory import MemoryTransport

MODERN = "2026-07-28"
NEWEST_HANDSHAKE = "2025-11-25"
SEED = "2025-06-18"
PATIENCE = 5.0
"""Seconds after which a test that waits for a frame fails."""

META = "io.modelcontextprotocol/"
Frame = dict[str, Any]
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


class _RawEnd(MemoryTransport):
    """The server's end; takes lines as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._started = True

    def _put(self, line: bytes | None) -> None:
        if not self._closed:
            self.lines.put_nowait(line)
        if line is None:
            super()._put(line)

    def write(self, line: bytes | None) -> None:
        self._peer._put(line)


class ScriptedServer:
    """What a test makes of a server, frame by frame.  `client` is the transport for the client."""

    def __init__(self) -> None:
        self._end = _RawEnd()
        self.client = MemoryTransport(peer=self._end)

    async def line(self) -> bytes:
        """The next frame's bytes."""
        line = await asyncio.wait_for(self._end.lines.get(), PATIENCE)
        assert line is not None, "the client closed instead of sending"
        return line

    async def frame(self, method: str | None = None) -> Frame:
        """The next frame, parsed; it must be of `method` when one is named."""
        frame: Frame = json.loads(await self.line())
        assert frame["jsonrpc"] == "2.0"
        if method is not None:
            assert frame.get("method") == method, frame
        return frame

    async def silence(self) -> None:
        """Nothing more comes from the client."""
        await turns()
        assert self._end.lines.empty(), self._end.lines.get_nowait()

    async def ended(self) -> None:
        """The client closes, without sending anything more."""
        assert await asyncio.wait_for(self._end.lines.get(), PATIENCE) is None

    def send(self, frame: Mapping[str, Any] | bytes | str) -> None:
        """Send a frame, or any bytes."""
        text = frame if isinstance(frame, (bytes, str)) else json.dumps(frame)
        self._end.write(text if isinstance(text, bytes) else text.encode())

    def notify(self, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def answer(self, frame: Frame, result: object) -> None:
        self.send({"jsonrpc": "2.0", "id": frame["id"], "result": result})

    def refuse(self, frame: Frame, code: int, message: str = "no", data: object = None) -> None:
        error: Frame = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        self.send({"jsonrpc": "2.0", "id": frame["id"], "error": error})

    async def reply(self, method: str, result: object) -> Frame:
        """Await a request and answer it."""
        frame = await self.frame(method)
        self.answer(frame, result)
        return frame

    def fault(self, error: BaseException) -> None:
        """Let the client's transport report an error."""
        self.client.emitter.emit("error", error)

    async def close(self) -> None:
        """Go away."""
        await self._end.close()

    async def shake_hands(self, revision: str = SEED, **members: Any) -> Frame:
        """Serve the handshake; the request is returned."""
        asked = await self.reply("initialize", initialize_result(revision, **members))
        assert await self.frame() == {"jsonrpc": "2.0", "method": "notifications/initialized"}
        return asked

    async def discovered(self, **members: Any) -> Frame:
        """Answer the probe like a modern server."""
        return await self.reply("server/discover", discover_result(**members))


def initialize_result(revision: str = SEED, **members: Any) -> Frame:
    info = {"name": "scripted", "version": "0.1"}
    return {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": info, **members}


def discover_result(*versions: str, **members: Any) -> Frame:
    return {
        "resultType": "complete",
        "supportedVersions": list(versions or (MODERN,)),
        "capabilities": {"tools": {}},
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {META + "serverInfo": {"name": "scripted", "version": "0.1"}},
        **members,
    }


def tool(name: str, **members: Any) -> Frame:
    return {"name": name, "inputSchema": {"type": "object"}, **members}


def text_result(*texts: str, **members: Any) -> Frame:
    return {"content": [{"type": "text", "text": text} for text in texts], **members}


async def turns(count: int = 20) -> None:
    """Let everything that can happen now happen."""
    for _ in range(count):
        await asyncio.sleep(0)


class Events:
    """What a client emits, in order, as (event, values)."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, tuple[Any, ...]]] = []

    @property
    def on(self) -> dict[str, Any]:
        names = ("connect", "disconnect", "notification", "error")
        return {name: lambda *values, name=name: self.seen.append((name, values)) for name in names}

    def names(self) -> list[str]:
        return [name for name, _ in self.seen]

    def of(self, event: str) -> list[Any]:
        """The single values of one event."""
        return [values[0] for name, values in self.seen if name == event]


def method_of(message: JSONRPCRequest | JSONRPCResponse) -> str | None:
    return message.method if isinstance(message, JSONRPCRequest) else None


@asynccontextmanager
async def talking(revision: str = SEED, **options: Any) -> AsyncIterator[tuple[MCPClient, ScriptedServer]]:
    """A connected client and its scripted server; in the handshake era the first id left is 2."""
    server = ScriptedServer()
    client = MCPClient(transport=server.client, protocol_version=revision, **options)
    opening = asyncio.create_task(client.connect())
    await (server.discovered() if revision == MODERN else server.shake_hands(revision))
    await opening
    try:
        yield client, server
    finally:
        await client.disconnect()
