"""Streamable HTTP as an ASGI application: for uvicorn, hypercorn and granian, alone or mounted in Starlette or FastAPI.

The same endpoint as ``create_app`` of :mod:`typedmcp.transports.http`, with the same checks and sessions; only the
shell differs.  A client that goes away is noticed while a handler is silent, too.

ASGI tells an application only after the fact that the server stops: give uvicorn ``timeout_graceful_shutdown=5``, or it
waits for open streams for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final, TypeAlias

from typedmcp.core.errors import ConnectionClosed
from typedmcp.core.transport import MCPServerInterface
from typedmcp.transports.http.endpoint import Endpoint
from typedmcp.transports.http.guard import OriginGuard
from typedmcp.transports.http.limits import (
    DEFAULT_BODY_SECONDS,
    DEFAULT_IDLE_SECONDS,
    DEFAULT_MAX_BODY,
    DEFAULT_MAX_DEPTH,
    DEFAULT_MAX_REQUESTS,
    DEFAULT_MAX_SESSIONS,
    DEFAULT_MCP_PATH,
    DEFAULT_REPLAY_BYTES,
)
from typedmcp.transports.http.mirror import Get
from typedmcp.transports.http.outgoing import DEFAULT_KEEP_ALIVE
from typedmcp.transports.http.rate import RateLimiter
from typedmcp.transports.http.replies import Headers, Reply, too_large, too_slow
from typedmcp.transports.http.sessions import DEFAULT_MCP_SESSION_CAPACITY
from typedmcp.transports.http.store import SessionStore
from typedmcp.transports.http.ticker import Ticker

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Identify: TypeAlias = Callable[[Scope], object]

_WATCH_SECONDS: Final = 0.05
"""Seconds after which at the latest a request that still runs begins to look whether its client is there."""


def create_asgi_app(
    mcp: Any,
    *,
    path: str = DEFAULT_MCP_PATH,
    streaming: bool = True,
    host: str = "127.0.0.1",
    origins: Sequence[str] = (),
    hosts: Sequence[str] = (),
    max_body: int = DEFAULT_MAX_BODY,
    max_depth: int = DEFAULT_MAX_DEPTH,
    max_requests: int = DEFAULT_MAX_REQUESTS,
    max_sessions: int = DEFAULT_MAX_SESSIONS,
    session_idle: float = DEFAULT_IDLE_SECONDS,
    capacity: int = DEFAULT_MCP_SESSION_CAPACITY,
    replay_bytes: int = DEFAULT_REPLAY_BYTES,
    keep_alive: float | None = DEFAULT_KEEP_ALIVE,
    body_timeout: float | None = DEFAULT_BODY_SECONDS,
    rate_limit: float | None = None,
    rate_burst: int | None = None,
    identify: Identify | None = None,
) -> ASGIApp:
    """An ASGI application that serves `mcp` at `path`, or at the place it is mounted.

    Args:
        mcp: An :class:`~typedmcp.App`, or a server.
        path: Where; under a mount the mount's own path serves, too.
        streaming: Whether clients of the handshake era that take event streams get one.
        host: The address it will be bound to: on loopback the ``Host`` header is checked.
        origins: Origins of web pages that may call; they get CORS headers.
        hosts: Public names the server is reached by, for the ``Host`` check.
        max_body: The largest body, in bytes; a larger one is 413.
        max_depth: How deeply a body's arrays and objects may nest.
        max_requests: How many requests may be open at once, streams included; one more is 503.
        max_sessions: How many sessions there may be; one more is 503.
        session_idle: Seconds without use after which a session ends; an open stream is use.
        capacity: How many messages a session keeps for replay.
        replay_bytes: How much text it keeps.
        keep_alive: Seconds of silence on a stream before a comment is sent.
        body_timeout: Seconds within which a body must have arrived, or it is 408; None: any time.
        rate_limit: How many tool calls and completions per second a caller may ask for; one more is 429.  A caller is
            who `identify` says, or else an address.  None: any number.
        rate_burst: How many of them at once; by default those of one second.
        identify: Tells from the scope who a request's caller is, at once or as an awaitable.
    """
    server: MCPServerInterface = getattr(mcp, "server", mcp)
    endpoint = Endpoint(
        server,
        SessionStore(
            ttl=session_idle,
            capacity=capacity,
            limit=max_sessions,
            fan_out=False,
            max_bytes=replay_bytes,
            spare_busy=True,
        ),
        OriginGuard(host, origins, hosts),
        streaming=streaming,
        keep_alive=keep_alive,
        max_depth=max_depth,
        max_requests=max_requests,
        rate=None if rate_limit is None else RateLimiter(rate_limit, rate_burst),
    )
    return ASGIApp(endpoint, path, max_body, identify, body_timeout)


class ASGIApp:
    """The application :func:`create_asgi_app` makes.

    Attributes:
        endpoint: What serves; its counters can be read.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        path: str,
        max_body: int,
        identify: Identify | None,
        body_timeout: float | None = DEFAULT_BODY_SECONDS,
    ) -> None:
        self.endpoint = endpoint
        self._paths = {path.rstrip("/"), path.rstrip("/") + "/"}
        self._max_body = max_body
        self._body_timeout = body_timeout
        self._identify = identify
        self._watch = Ticker(_WATCH_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            # An open handshake must be refused in the scope's own way.
            await send({"type": "websocket.close", "code": 1000})
        else:
            raise ValueError(f"no scope of type {scope['type']!r} is served")

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.endpoint.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        responder = _Responder(send)
        if not self._serves(scope):
            await responder.answer(self._elsewhere(scope))
            return
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            # Some servers leave white space behind a value, which is not part of it.
            headers.setdefault(name.decode("latin-1"), value.decode("latin-1").strip(" \t"))

        def get(name: str) -> str | None:
            return headers.get(name.lower())

        reply = self.endpoint.admit(get)
        if reply is None:
            reply = await self._watched(scope, get, receive, responder)
        if reply is not None:
            await responder.answer(reply)
        else:
            await responder.end()

    def _serves(self, scope: Scope) -> bool:
        root: str = scope.get("root_path", "")
        path: str = scope["path"]
        rest = path.removeprefix(root) if root else path
        return rest in self._paths or (bool(root) and rest in ("", "/"))

    def _elsewhere(self, scope: Scope) -> Reply:
        if scope["path"].endswith(("/healthz", "/readyz")):
            return Reply(200, b"ok\n", (("Content-Type", "text/plain; charset=utf-8"),))
        return Reply(404, b"Not Found\n", (("Content-Type", "text/plain; charset=utf-8"),))

    async def _watched(self, scope: Scope, get: Get, receive: Receive, responder: _Responder) -> Reply | None:
        """Read the body and serve the request, while somebody looks after the client."""
        task = asyncio.current_task()
        assert task is not None
        client = _Client(receive, task, self._body_timeout)
        responder.task = task
        self._watch.add(client)
        try:
            body = await read_body(receive, self._max_body)
            if body is None:
                return too_large(self._max_body).extended(self.endpoint.cors(get))
            client.reading = False
            return await self._exchange(scope, get, body, responder)
        except ConnectionClosed:
            responder.broken = True
            return None
        except asyncio.CancelledError:
            if client.late:
                return self._late(scope, get)
            if not client.left:
                raise
            responder.broken = True
            return None
        finally:
            self._watch.remove(client)
            client.release()

    async def _exchange(self, scope: Scope, get: Get, body: bytes, responder: _Responder) -> Reply | None:
        principal: object = None
        if self._identify is not None:
            principal = self._identify(scope)
            if inspect.isawaitable(principal):
                principal = await principal
        peer = scope.get("client")
        return await self.endpoint.serve(scope["method"], get, body, responder, principal, peer[0] if peer else None)

    def _late(self, scope: Scope, get: Get) -> Reply:
        """The refusal of a body that does not come; what is left of it is not waited for."""
        reply = too_slow(self._body_timeout or 0.0).extended(self.endpoint.cors(get))
        return reply.extended((("Connection", "close"),)) if scope.get("http_version", "1.1")[0] == "1" else reply


async def read_body(receive: Receive, limit: int) -> bytes | None:
    """The whole body of a request; None when it is larger than `limit` bytes."""
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(chunks)  # the client has gone: what follows finds no reader
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            return None
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


class _Responder:
    """A streamed answer in ASGI's messages."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self.task: asyncio.Task[Any] | None = None
        self.broken = False

    async def begin(self, headers: Headers) -> None:
        """Send status 200 and the headers."""
        try:
            await self._start(200, headers)
        except OSError as error:
            raise ConnectionClosed("the client is gone") from error
        self._begun = True

    async def write(self, data: bytes) -> None:
        """Send bytes; raises ConnectionClosed when the client is gone."""
        try:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})
        except OSError as error:
            raise ConnectionClosed("the client is gone") from error

    def cancel(self) -> None:
        """Cancel the task that serves the request."""
        if self.task is not None:
            self.task.cancel()

    async def answer(self, reply: Reply) -> None:
        """Send a whole answer."""
        length = ("Content-Length", str(len(reply.body)))
        with contextlib.suppress(OSError):
            await self._start(reply.status, (*reply.headers, length) if reply.status != 204 else reply.headers)
            await self._send({"type": "http.response.body", "body": reply.body})

    async def end(self) -> None:
        """End the stream; one that broke is left as it is, and its server closes the connection."""
        if self._begun and not self.broken:
            with contextlib.suppress(OSError):
                await self._send({"type": "http.response.body", "body": b""})

    async def _start(self, status: int, headers: Headers) -> None:
        raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})


class _Client:
    """Cancels the running task when the body does not come, or the client goes away; quick ones are not watched."""

    __slots__ = ("_patience", "_receive", "_task", "_watcher", "late", "left", "reading")

    def __init__(self, receive: Receive, task: asyncio.Task[Any], patience: float | None) -> None:
        self._receive = receive
        self._task: asyncio.Task[Any] | None = task
        self._patience = math.inf if patience is None else patience
        self._watcher: asyncio.Task[None] | None = None
        self.reading = True
        self.late = False
        self.left = False

    def tick(self) -> None:
        """The request takes long: count the seconds of its body; then wait for its client to go."""
        if self.reading:
            self._patience -= _WATCH_SECONDS
            if self._patience <= 0 and not self.late and self._task is not None:
                self.late = True
                self._task.cancel()
        elif self._watcher is None:
            self._watcher = asyncio.get_running_loop().create_task(self._look())

    def release(self) -> None:
        """The request has been answered."""
        if self._watcher is not None:
            self._watcher.cancel()
        if (self.left or self.late) and self._task is not None:
            self._task.uncancel()
        self._task = None

    async def _look(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self._task is not None:
            self.left = True
            self._task.cancel()
