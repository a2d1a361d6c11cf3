"""Who may call from where: Origin, Host, and what pages of allowed origins may read."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from http_tools import (
    Site,
    initialize,
    make,
    modern,
    modern_headers,
    notification,
    request,
    serving,
    serving_asgi,
    tool,
)

from typedmcp.transports.asgi import create_asgi_app
from typedmcp.transports.http import create_app
from typedmcp.transports.http.guard import OriginGuard, is_loopback

APP = "https://app.example"


@asynccontextmanager
async def served(kind: str = "aiohttp", **options: Any) -> AsyncIterator[Site]:
    server = make()
    if kind == "aiohttp":
        async with serving(create_app(server, **options)) as site:
            yield site
    else:
        async with serving_asgi(create_asgi_app(server, **options), kind) as site:
            yield site


KINDS = pytest.mark.parametrize("kind", ["aiohttp", "httptools"])


@pytest.mark.req("M-089", "B-144")
@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost", True),
        ("http://LOCALHOST:3000", True),
        ("https://127.0.0.1:8443", True),
        ("http://[::1]:5173", True),
        (APP, True),
        ("HTTPS://App.Example", True),
        ("null", False),
        ("", False),
        ("https://evil.example", False),
        ("https://app.example.evil.example", False),
        ("https://app.example:444", False),
        ("http://app.example", False),
        ("http://localhost.evil.example", False),
        ("http://localhost:80.evil.example", False),
        ("http://localhost:99999", False),
        ("http://localhost:", False),
        ("http://evil.example#localhost", False),
        ("http://evil@localhost", False),
        ("http://127.0.0.1/../", False),
        ("file://", False),
        ("chrome-extension://abc", False),
        ("ws://localhost", False),
    ],
)
def test_origins(origin: str, allowed: bool) -> None:
    for host in ("127.0.0.1", "0.0.0.0", "mcp.example"):
        guard = OriginGuard(host, origins=[APP + "/"])
        refusal = guard.check({"Origin": origin, "Host": "127.0.0.1"}.get)
        assert (refusal is None) is allowed
        assert guard.check({"Host": "127.0.0.1"}.get) is None


@pytest.mark.req("M-089", "M-090")
@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:8000", True),
        ("localhost:1", True),
        ("LocalHost", True),
        ("[::1]:65535", True),
        ("mcp.example", True),
        ("MCP.example:1234", True),
        ("wild.example:9000", True),
        ("wild.example", False),
        ("wild.example:9001", False),
        ("wild.example:9000.evil", False),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("localhost:65536", False),
        ("localhost:80:80", False),
        ("localhost:", False),
        ("[::1", False),
        ("::1", False),
        ("127.0.0.1, evil.example", False),
        ("", False),
    ],
)
def test_hosts_on_a_loopback_bind(host: str, allowed: bool) -> None:
    guard = OriginGuard("localhost", hosts=["mcp.example", "Wild.example:9000"])
    assert (guard.check({"Host": host}.get) is None) is allowed
    for bind in ("0.0.0.0", "::", "10.0.0.1"):
        assert OriginGuard(bind).check({"Host": host}.get) is None


def test_every_loopback_address_is_one_and_may_be_named() -> None:
    for address in ("127.0.0.1", "127.8.9.1", "localhost", "::1"):
        assert is_loopback(address)
    for address in ("0.0.0.0", "::", "192.168.0.1", "mcp.example"):
        assert not is_loopback(address)
    assert OriginGuard("127.8.9.1").check({"Host": "127.8.9.1:80"}.get) is None
    assert OriginGuard("127.0.0.1").check({"Host": "127.8.9.1:80"}.get) is not None


@KINDS
@pytest.mark.req("M-089", "B-144")
async def test_a_foreign_origin_is_403_whatever_it_asks(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "typedmcp")
    async with served(kind) as site:
        headers = {"Origin": "https://evil.example"}
        message = modern(tool("add"))
        for answer in (
            await site.ask(message, modern_headers(message, **headers)),
            await site.ask(initialize(), headers),
            await site.ask(notification(), headers),
            await site.ask(None, headers, method="GET"),
            await site.ask(None, headers, method="DELETE"),
            await site.ask(None, headers, method="OPTIONS"),
            await site.ask(raw=b"{", headers=headers | {"Content-Type": "text/plain"}),
        ):
            assert answer.status == 403
            assert "mcp-session-id" not in answer.headers
            assert "access-control-allow-origin" not in answer.headers
            # F058: whoever runs the server learns what was refused and which setting would let it pass.
            assert b"https://evil.example" in answer.body
            assert b"origins=" in answer.body
        assert "origins=" in caplog.text
        refused = await site.ask(initialize(), {"Host": "rebound.example:8000"})
        assert (refused.status, b"hosts=" in refused.body) == (403, True)


@KINDS
async def test_a_foreign_page_cannot_make_the_server_read_its_body(kind: str) -> None:
    async with served(kind) as site:
        wire = await site.connect()
        wire.send(None, {"Origin": "https://evil.example", "Content-Length": "100000000"})
        assert (await wire.answer()).status == 403


@KINDS
@pytest.mark.req("M-089")
async def test_on_every_other_bind_origins_are_checked_and_hosts_are_not(kind: str) -> None:
    async with served(kind, host="0.0.0.0") as site:
        assert (await site.ask(initialize(), {"Host": "mcp.example"})).status == 200
        refused = await site.ask(initialize(), {"Host": "mcp.example", "Origin": "https://evil.example"})
        assert refused.status == 403


@KINDS
async def test_pages_of_allowed_origins_can_read_every_answer(kind: str) -> None:
    """F060: on real answers and not only on the preflight."""
    async with served(kind, origins=[APP], max_body=2000) as site:
        page = {"Origin": APP}
        session = await site.handshake(**page)
        modern_message = modern(tool("quick", token=1))
        bad_session = {**session, "Mcp-Session-Id": "x"}
        answers = [
            await site.ask(initialize(), page),
            await site.ask(request(), session),
            await site.ask(request(), {**session, "Accept": "application/json"}),
            await site.ask(notification(), session),
            await site.ask(request(), bad_session),
            await site.ask(modern_message, modern_headers(modern_message, **page)),
            await site.ask(raw=b"{", headers=page),
            await site.ask(raw=b" " * 3000, headers=page),
            await site.ask(None, page, method="GET"),
            await site.ask(None, page, method="PUT"),
        ]
        assert {answer.status for answer in answers} == {200, 202, 400, 404, 405, 413}
        for answer in answers:
            assert answer.headers["access-control-allow-origin"] == APP
            exposed = answer.headers["access-control-expose-headers"].lower()
            assert "mcp-session-id" in exposed
            assert "www-authenticate" in exposed
            assert answer.headers["vary"] == "Origin"
        wire = await site.listen(session)
        assert wire.headers["access-control-allow-origin"] == APP
        without = await site.ask(initialize())
        assert not [name for name in without.headers if name.startswith("access-control")]


@KINDS
async def test_a_preflight_is_answered(kind: str) -> None:
    async with served(kind, origins=[APP]) as site:
        asked = {"Origin": APP, "Access-Control-Request-Method": "POST"}
        answer = await site.ask(None, asked, method="OPTIONS")
        assert (answer.status, answer.body) == (204, b"")
        assert answer.headers["access-control-allow-methods"] == "GET, POST, DELETE"
        allowed = answer.headers["access-control-allow-headers"].lower()
        for name in (
            "content-type",
            "authorization",
            "mcp-protocol-version",
            "mcp-session-id",
            "mcp-method",
            "mcp-name",
        ):
            assert name in allowed
        wanted = "content-type,mcp-param-region"
        answer = await site.ask(None, {**asked, "Access-Control-Request-Headers": wanted}, method="OPTIONS")
        assert answer.headers["access-control-allow-headers"] == wanted
        answer = await site.ask(None, {**asked, "Access-Control-Request-Headers": "a;b(c)"}, method="OPTIONS")
        assert answer.headers["access-control-allow-headers"].lower() == allowed
        assert (await site.ask(None, method="OPTIONS")).status == 405
