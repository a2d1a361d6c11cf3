"""A whole aiohttp application for one server, with safe defaults.

Rules:
- ``Origin`` is checked on every bind: absent passes; loopback and the configured origins pass; any other is 403.
  ``Host`` is checked too where the server is bound to loopback.
- Sessions of the handshake era: a missing id is 400, an unknown or ended one 404; a message goes to one stream.
- Bodies, their nesting, requests, sessions, what they keep and how long they may idle are bounded.
- ``/healthz`` and ``/readyz`` answer for supervisors.
- On shutdown streams got by GET end at once; what still runs after the time the runner allows is cancelled.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

from aiohttp import web

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
from typedmcp.transports.http.outgoing import DEFAULT_KEEP_ALIVE
from typedmcp.transports.http.rate import RateLimiter
from typedmcp.transports.http.replies import Reply
from typedmcp.transports.http.sessions import DEFAULT_MCP_SESSION_CAPACITY
from typedmcp.transports.http.shell import add_health, make_watch, plain, read_body, respond
from typedmcp.transports.http.store import SessionStore

Identify = Callable[[web.Request], object]
"""Tells who the caller is, at once or as an awaitable; raises one of aiohttp's HTTP exceptions to refuse."""

ENDPOINT: Final = web.AppKey("mcp_endpoint", Endpoint)
"""Where an application made by :func:`create_app` keeps its endpoint, whose counters can be read."""


def create_app(
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
) -> web.Application:
    """An application that serves `mcp` at `path`, with and without a slash at its end.

    Args:
        mcp: An :class:`~typedmcp.App`, or a server.
        path: Where.
        streaming: Whether clients of the handshake era that take event streams get one.
        host: The address it will be bound to: on loopback the ``Host`` header is checked.
        origins: Origins of web pages that may call, such as ``"https://app.example"``; they get CORS headers.
        hosts: Public names the server is reached by, for the ``Host`` check, such as ``"mcp.example:8443"``.
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
        identify: Tells who a request's caller is; a session belongs to the one who opened it.
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

    watch = make_watch()

    async def serve(request: web.Request) -> web.StreamResponse:
        get = request.headers.get
        refusal = endpoint.admit(get)
        if refusal is not None:
            return plain(refusal)
        body = await read_body(request, max_body, body_timeout)
        if isinstance(body, Reply):
            refused = plain(body.extended(endpoint.cors(get)))
            refused.force_close()  # what is left of the body is not waited for
            return refused
        principal: object = None
        if identify is not None:
            try:
                principal = identify(request)
                if inspect.isawaitable(principal):
                    principal = await principal
            except web.HTTPException as refused:
                refused.headers.extend(endpoint.cors(get))
                raise
        return await respond(
            request,
            lambda responder: endpoint.serve(request.method, get, body, responder, principal, request.remote),
            watch,
        )

    async def stop(_: web.Application) -> None:
        endpoint.stop()

    async def close(_: web.Application) -> None:
        await endpoint.close()

    app = web.Application(client_max_size=max_body)
    app[ENDPOINT] = endpoint
    for place in {path, path.rstrip("/") or "/", path.rstrip("/") + "/"}:
        app.router.add_route("*", place, serve)
    add_health(app)
    app.on_shutdown.append(stop)
    app.on_cleanup.append(close)
    return app
