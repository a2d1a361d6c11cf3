"""What the tests of HTTP share: a server whose tools can be watched, free ports, and a client made of bytes.

A client of the library would hide what is on the wire; here every header and every byte can be seen and chosen.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from aiohttp import web

from typedmcp.core.errors import ConnectionClosed
from typedmcp.server.context import Context
from typedmcp.server.server import MCPServer
from typedmcp.transports.sse import Event, EventParser
from typedmcp_wire import types
from typedmcp_wire.methods import METHODS
from typedmcp_wire.servicer import Servicer

PATIENCE = 20.0
LATEST = "2026-07-28"
HANDSHAKE = ("2025-03-26", "2025-06-18", "2025-11-25")
BOTH = "application/json, text/event-stream"
PREFIX = "io.modelcontextprotocol/"


class Tools(Servicer[Context]):
    """Tools named after what they do, and a record of what happened to them."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.stopped: list[object] = []
        self.ended: list[object] = []
        self.heard: list[str] = []
        self.answers: list[object] = []
        self.contexts: list[Context] = []

    async def list_tools(self, params: types.PaginatedRequestParams, context: Context) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="add", input_schema={"type": "object"})])

    async def call_tool(self, params: types.CallToolRequestParams, context: Context) -> types.CallToolResult:
        self.contexts.append(context)
        arguments = params.arguments or {}
        try:
            text = await getattr(self, "_" + params.name)(context, **arguments)
        except asyncio.CancelledError:
            self.stopped.append(context.request_id)
            raise
        self.ended.append(context.request_id)
        return types.CallToolResult(content=[types.TextContent(text=text)])

    async def _add(self, context: Context, a: int = 1, b: int = 2) -> str:
        return str(a + b)

    async def _wait(self, context: Context) -> str:
        """Until told to go on."""
        self.begun.set()
        await self.go.wait()
        return "went on"

    async def _steps(self, context: Context, before: int = 2, after: int = 0) -> str:
        """Some progress, a wait, some more progress."""
        for step in range(before):
            await context.report_progress(step + 1)
        self.begun.set()
        if after >= 0:
            await self.go.wait()
        for step in range(after):
            await context.report_progress(before + step + 1)
        return "stepped"

    async def _quick(self, context: Context, reports: int = 2) -> str:
        return await self._steps(context, reports, -1)

    async def _deaf(self, context: Context) -> str:
        """Does not let itself be cancelled, and goes on talking."""
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.stopped.append(context.request_id)
            await context.report_progress(9)
        return "too late"

    async def _log(self, context: Context, level: Any = "info") -> str:
        await context.log(level, "logged")
        return "said"

    async def _blob(self, context: Context, size: int) -> str:
        return "x" * size

    async def _flood(self, context: Context, count: int, size: int) -> str:
        for step in range(count):
            await context.report_progress(step + 1, message="x" * size)
            await asyncio.sleep(0)
        return "flooded"

    async def _ask(self, context: Context, timeout: float | None = None) -> str:
        """Ask the client for its roots."""
        assert context.peer is not None
        try:
            answer = await context.peer.request(METHODS["roots/list"], types.RequestParams(), timeout=timeout)
            self.answers.append(answer)
        except Exception as error:
            self.answers.append(error)
            raise
        return "asked"

    async def _whoami(self, context: Context) -> str:
        return f"{context.principal} {context.revision}"

    async def _deep(self, context: Context, value: object) -> str:
        return "deep"

    async def cancelled(self, params: Any, context: Context) -> None:
        self.heard.append("cancelled")


def make(tools: Tools | None = None, **options: Any) -> MCPServer:
    options.setdefault("strict", True)
    return MCPServer(name="tested", version="1", servicer=tools or Tools(), **options)


# -- messages ----------------------------------------------------------------------------------------------------------


def initialize(version: str = "2025-06-18", request_id: int | str = 0) -> dict[str, Any]:
    params = {"protocolVersion": version, "capabilities": {"roots": {}}, "clientInfo": {"name": "test", "version": "1"}}
    return {"jsonrpc": "2.0", "id": request_id, "method": "initialize", "params": params}


def request(method: str = "tools/list", request_id: int | str = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def tool(name: str, request_id: int | str = 1, *, token: int | str | None = None, **arguments: Any) -> dict[str, Any]:
    message = request("tools/call", request_id, name=name, arguments=arguments)
    if token is not None:
        message["params"]["_meta"] = {"progressToken": token}
    return message


def notification(method: str = "notifications/initialized", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def cancel(request_id: int | str) -> dict[str, Any]:
    return notification("notifications/cancelled", requestId=request_id, reason="tests")


def modern(message: dict[str, Any], version: object = LATEST, *drop: str, **meta: Any) -> dict[str, Any]:
    """The message with the envelope of 2026-07-28; `drop` leaves members of it out."""
    params = message.setdefault("params", {})
    members = {"protocolVersion": version, "clientCapabilities": {}, **meta}
    envelope = {PREFIX + name: value for name, value in members.items() if name not in drop}
    params["_meta"] = {**params.get("_meta", {}), **envelope}
    return message


def modern_headers(message: Mapping[str, Any], **changes: str | None) -> dict[str, str | None]:
    """The headers that repeat parts of a message of 2026-07-28."""
    params = message.get("params", {})
    headers: dict[str, str | None] = {"MCP-Protocol-Version": LATEST, "Mcp-Method": message["method"]}
    name = params.get("name", params.get("uri"))
    if isinstance(name, str):
        headers["Mcp-Name"] = name
    return headers | changes


# -- a client made of bytes --------------------------------------------------------------------------------------------


class Answer:
    """A whole answer."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def kind(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0]

    @property
    def json(self) -> Any:
        assert self.kind == "application/json", (self.status, self.headers, self.body)
        return json.loads(self.body)

    @property
    def events(self) -> list[Event]:
        assert self.kind == "text/event-stream", (self.status, self.headers, self.body)
        return [event for event in EventParser().feed(self.body) if isinstance(event, Event)]

    @property
    def messages(self) -> list[Any]:
        """What the answer carries, whatever its form."""
        if self.kind == "application/json":
            return [self.json]
        return [json.loads(event.data) for event in self.events if event.data]

    @property
    def error(self) -> int:
        code: int = self.json["error"]["code"]
        return code

    @property
    def session(self) -> str:
        return self.headers["mcp-session-id"]

    @property
    def text(self) -> str:
        """The text of the tool's result that ends the answer."""
        content: str = self.messages[-1]["result"]["content"][0]["text"]
        return content

    def __repr__(self) -> str:
        return f"<{self.status} {self.headers} {self.body[:500]!r}>"


class Wire:
    """One connection on which HTTP is spoken by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}
        self._events: list[Event] = []
        self._parser = EventParser()

    def send(
        self,
        message: object = None,
        headers: Mapping[str, str | None] | None = None,
        *,
        method: str = "POST",
        path: str = "/mcp",
        raw: bytes | None = None,
    ) -> None:
        body = raw if raw is not None else b"" if message is None else json.dumps(message).encode()
        merged: dict[str, str | None] = {"Host": "127.0.0.1", "Accept": BOTH}
        if method == "POST":
            merged |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        else:
            merged["Accept"] = "text/event-stream"
        for name, value in (headers or {}).items():
            merged = {key: kept for key, kept in merged.items() if key.lower() != name.lower()} | {name: value}
        lines = [f"{name}: {value}" for name, value in merged.items() if value is not None]
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(line + "\r\n" for line in lines) + "\r\n"
        self.writer.write(head.encode("utf-8", "surrogateescape") + body)

    async def head(self) -> Wire:
        """Read the beginning of the answer."""
        async with asyncio.timeout(PATIENCE):
            text = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = text.strip().split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            assert name.lower() not in self.headers, f"{name} came twice"
            self.headers[name.lower()] = value.strip()
        self._parser = EventParser()
        self._events = []
        return self

    async def answer(self) -> Answer:
        """Read a whole answer."""
        await self.head()
        body = b""
        async with asyncio.timeout(PATIENCE):
            if "content-length" in self.headers:
                body = await self.reader.readexactly(int(self.headers["content-length"]))
            elif "chunked" in self.headers.get("transfer-encoding", ""):
                while chunk := await self._chunk():
                    body += chunk
        return Answer(self.status, self.headers, body)

    async def _chunk(self) -> bytes:
        size = int(await self.reader.readline(), 16)
        chunk = await self.reader.readexactly(size)
        await self.reader.readexactly(2)
        return chunk

    async def event(self) -> Event | None:
        """The next event of the stream; None at its end."""
        async with asyncio.timeout(PATIENCE):
            while not self._events:
                chunk = await self._chunk()
                if not chunk:
                    return None
                self._events += [event for event in self._parser.feed(chunk) if isinstance(event, Event)]
        return self._events.pop(0)

    async def message(self) -> Any:
        """The message of the next event that has one."""
        while True:
            event = await self.event()
            assert event is not None, "the stream has ended"
            if event.data:
                return json.loads(event.data)

    async def raw_chunk(self) -> bytes:
        async with asyncio.timeout(PATIENCE):
            return await self._chunk()

    async def gone(self) -> bytes:
        """What comes until the server closes the connection."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    def drop(self) -> None:
        """Go away without a word."""
        self.writer.transport.abort()


class Site:
    """A server on a port of the loopback interface."""

    def __init__(self, port: int, kind: str = "aiohttp") -> None:
        self.port = port
        self.kind = kind
        self.endpoint: Any = None
        self._wires: list[Wire] = []

    async def connect(self) -> Wire:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        wire = Wire(reader, writer)
        self._wires.append(wire)
        return wire

    async def open(self, message: object = None, headers: Mapping[str, str | None] | None = None, **more: Any) -> Wire:
        """Ask, and read the beginning of the answer."""
        wire = await self.connect()
        wire.send(message, headers, **more)
        return await wire.head()

    async def ask(self, message: object = None, headers: Mapping[str, str | None] | None = None, **more: Any) -> Answer:
        """One request on a connection of its own."""
        wire = await self.connect()
        wire.send(message, headers, **more)
        try:
            return await wire.answer()
        finally:
            wire.drop()

    async def ask_modern(self, message: dict[str, Any], **changes: str | None) -> Answer:
        """One request of 2026-07-28."""
        message = modern(message)
        return await self.ask(message, modern_headers(message, **changes))

    async def handshake(self, version: str = "2025-06-18", **headers: str | None) -> dict[str, str | None]:
        """Open a session, and return the headers of its messages."""
        answer = await self.ask(initialize(version), headers)
        assert answer.status == 200, answer
        assert answer.messages[0]["result"]["protocolVersion"] == version
        later = {**headers, "Mcp-Session-Id": answer.session, "MCP-Protocol-Version": version}
        accepted = await self.ask(notification(), later)
        assert (accepted.status, accepted.body) == (202, b"")
        return later

    async def listen(self, headers: Mapping[str, str | None], **more: str) -> Wire:
        """The stream of a GET."""
        wire = await self.open(None, {**headers, **more}, method="GET")
        assert (wire.status, wire.headers["content-type"]) == (200, "text/event-stream")
        return wire

    def close(self) -> None:
        for wire in self._wires:
            wire.drop()


@asynccontextmanager
async def serving(app: web.Application, **options: Any) -> AsyncIterator[Site]:
    """An aiohttp application on a free port."""
    options.setdefault("shutdown_timeout", 0.5)
    runner = web.AppRunner(app, access_log=None, **options)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        site = Site(runner.addresses[0][1])
        try:
            yield site
        finally:
            site.close()
    finally:
        await runner.cleanup()


@asynccontextmanager
async def serving_asgi(app: Any, http: str = "httptools", **options: Any) -> AsyncIterator[Site]:
    """An ASGI application under uvicorn on a free port."""
    options.setdefault("timeout_graceful_shutdown", 1)
    config = uvicorn.Config(
        app, port=0, http=http, ws="none", loop="none", lifespan="on", log_level="warning", access_log=False, **options
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())
    try:
        async with asyncio.timeout(PATIENCE):
            while not server.started:
                assert not task.done(), task
                await asyncio.sleep(0.005)
        site = Site(server.servers[0].sockets[0].getsockname()[1], http)
        try:
            yield site
        finally:
            site.close()
    finally:
        server.should_exit = True
        await task


async def until(condition: Callable[[], object], patience: float = PATIENCE) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(patience):
        while not condition():  # noqa: ASYNC110 - the conditions are of all kinds
            await asyncio.sleep(0.005)


# -- without a network -------------------------------------------------------------------------------------------------


class FakeResponder:
    """What a shell offers, with the client's end in the test's hand."""

    def __init__(self) -> None:
        self.headers: dict[str, str] | None = None
        self.written = b""
        self.gone = False
        self.task = asyncio.current_task()
        self.slow: asyncio.Event | None = None

    async def begin(self, headers: tuple[tuple[str, str], ...]) -> None:
        if self.gone:
            raise ConnectionClosed("gone")
        self.headers = dict(headers)

    async def write(self, data: bytes) -> None:
        if self.slow is not None:
            await self.slow.wait()
        if self.gone:
            raise ConnectionClosed("gone")
        self.written += data

    def cancel(self) -> None:
        assert self.task is not None
        self.task.cancel()

    @property
    def events(self) -> list[Event]:
        return [event for event in EventParser().feed(self.written) if isinstance(event, Event)]

    @property
    def messages(self) -> list[Any]:
        return [json.loads(event.data) for event in self.events if event.data]


def getter(headers: Mapping[str, str | None]) -> Callable[[str], str | None]:
    """Headers as an exchange reads them."""
    lowered = {name.lower(): value for name, value in headers.items()}
    return lambda name: lowered.get(name.lower())
