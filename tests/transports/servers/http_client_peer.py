"""A server that does as each test says, for the HTTP client's tests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from aiohttp import web
from msgspec import json
from transport_fakes import Inbox

from typedmcp.core.jsonrpc import JSONRPCRequest
from typedmcp.transports.http.client import HTTPClientTransport, Reconnect

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Answer = Callable[["Seen"], Awaitable[web.StreamResponse]]

OPEN = JSONRPCRequest(id=0, method="initialize", params={"protocolVersion": "2025-11-25"})
INITIALIZED = JSONRPCRequest(method="notifications/initialized")
QUICK = Reconnect(attempts=3, delay=0.01, longest=0.05)
STREAM = {"Content-Type": "text/event-stream"}
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Seen:
    """A request that has arrived."""

    def __init__(self, request: web.Request, body: bytes) -> None:
        self.request = request
        self.verb = request.method
        self.headers = request.headers
        self.body = body

    @property
    def message(self) -> Any:
        return json.decode(self.body)

    @property
    def id(self) -> Any:
        return self.message["id"]

    async def stream(self, *parts: bytes, **headers: str) -> web.StreamResponse:
        """Begin an event stream and write some of it."""
        response = web.StreamResponse(headers={**STREAM, **headers})
        await response.prepare(self.request)
        for part in parts:
            await response.write(part)
        return response

    def cut(self) -> None:
        """Break the connection in the middle of whatever is going on."""
        assert self.request.transport is not None
        self.request.transport.abort()


class Peer:
    """What arrived, and where it runs."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.seen: list[Seen] = []

    def of(self, verb: str) -> list[Seen]:
        return [each for each in self.seen if each.verb == verb]

    @property
    def last(self) -> Seen:
        return self.seen[-1]


async def refuse(seen: Seen) -> web.StreamResponse:
    return web.Response(status=405)


@contextlib.asynccontextmanager
async def peer(post: Answer, get: Answer = refuse, delete: Answer = refuse) -> AsyncIterator[Peer]:
    """A server on a free port."""
    answers = {"POST": post, "GET": get, "DELETE": delete}

    async def handle(request: web.Request) -> web.StreamResponse:
        seen = Seen(request, await request.read())
        there.seen.append(seen)
        try:
            return await answers[request.method](seen)
        except ConnectionError:
            return web.Response()

    app = web.Application(client_max_size=0)
    app.router.add_route("*", "/mcp", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    there = Peer(f"http://127.0.0.1:{runner.addresses[0][1]}/mcp")
    try:
        yield there
    finally:
        await runner.cleanup()


def result(request_id: Any, **members: Any) -> bytes:
    return json.encode({"jsonrpc": "2.0", "id": request_id, "result": members})


def event(data: bytes, **fields: object) -> bytes:
    lines = [f"{name}: {value}".encode() for name, value in fields.items()]
    return b"\n".join([*lines, b"data: " + data]) + b"\n\n"


def answer(request_id: Any, **members: Any) -> web.Response:
    return web.Response(body=result(request_id, **members), content_type="application/json")


def initialized(seen: Seen, session: str | None = "s-1", revision: str = "2025-11-25") -> web.Response:
    """The answers to a handshake."""
    if seen.message["method"] != "initialize":
        return web.Response(status=202)
    response = answer(seen.id, protocolVersion=revision, capabilities={}, serverInfo={"name": "peer", "version": "1"})
    if session is not None:
        response.headers["Mcp-Session-Id"] = session
    return response


def told(message: Any) -> Any:
    """The result in a message."""
    return json.decode(message.result)


async def until(condition: Callable[[], object], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the conditions are of all kinds
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def running(url: str, **options: Any) -> AsyncIterator[tuple[HTTPClientTransport, Inbox]]:
    transport = HTTPClientTransport(url, **{"reconnect": QUICK, **options})
    inbox = Inbox(transport)
    await transport.start()
    try:
        yield transport, inbox
    finally:
        await transport.close()


def modern(request_id: int | str, method: str = "tools/list", **params: Any) -> JSONRPCRequest:
    return JSONRPCRequest(id=request_id, method=method, params={**params, "_meta": MODERN_META})
