"""How often a caller may call, and how long a body may take."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from http_tools import Site, Tools, make, modern, modern_headers, request, serving, serving_asgi, tool

from typedmcp import App, connect
from typedmcp.core.errors import MCPError, UsageError
from typedmcp.transports.asgi import create_asgi_app
from typedmcp.transports.http import create_app
from typedmcp.transports.http.rate import RateLimiter, caller_of

KINDS = pytest.mark.parametrize("kind", ["aiohttp", "httptools", "h11"])
SLOW = 1 / 3600
"""One call an hour: none comes back while a test runs."""


@asynccontextmanager
async def served(kind: str, **options: Any) -> AsyncIterator[Site]:
    server = make(Tools())
    if kind == "aiohttp":
        async with serving(create_app(server, **options)) as site:
            yield site
    else:
        async with serving_asgi(create_asgi_app(server, **options), kind) as site:
            yield site


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


# -- the bucket --------------------------------------------------------------------------------------------------------


@pytest.mark.req("M-206")
def test_a_bucket_empties_and_fills() -> None:
    clock = Clock()
    limit = RateLimiter(2, 3, clock=clock)
    assert [limit.wait("a") for _ in range(3)] == [0, 0, 0]
    assert limit.wait("a") == pytest.approx(0.5)
    assert limit.wait("a") == pytest.approx(0.5)  # a refusal costs nothing
    assert limit.wait("b") == 0
    clock.now = 0.5
    assert limit.wait("a") == 0
    assert limit.wait("a") == pytest.approx(0.5)
    clock.now = 1000
    assert [limit.wait("a") for _ in range(4)] == [0, 0, 0, pytest.approx(0.5)]  # never more than the burst


def test_without_a_burst_a_second_s_worth_may_come_at_once() -> None:
    for per_second, at_once in ((0.1, 1), (1, 1), (2.5, 3)):
        limit = RateLimiter(per_second, clock=Clock())
        assert [limit.wait("a") for _ in range(at_once)] == [0] * at_once
        assert limit.wait("a") > 0


def test_a_thousand_fractions_add_up() -> None:
    clock = Clock()
    limit = RateLimiter(10, 1, clock=clock)
    for step in range(1000):
        clock.now = step / 10
        assert limit.wait("a") == 0


def test_what_is_remembered_is_bounded() -> None:
    limit = RateLimiter(SLOW, 1, clock=Clock(), max_callers=2)
    for caller in ("a", "b", "a", "c"):
        limit.wait(caller)
    assert len(limit) == 2
    assert limit.wait("a") > 0  # asked for later than b
    assert limit.wait("b") == 0


def test_who_is_one_caller() -> None:
    assert caller_of(None, "2001:db8::1") == caller_of(None, "2001:db8:0:0:ffff::2")
    assert caller_of(None, "2001:db8::1") != caller_of(None, "2001:db8:0:1::1")
    assert caller_of(None, "::ffff:10.0.0.1") == caller_of(None, "10.0.0.1")
    assert caller_of(None, "fe80::1%eth0") == caller_of(None, "fe80::2%eth0")
    assert caller_of(None, "a:b") != caller_of(None, "a:c")
    assert caller_of(None, None) == caller_of(None, "")
    assert caller_of("10.0.0.1", None) != caller_of(None, "10.0.0.1")
    assert caller_of({"sub": "x"}, "1") == caller_of({"sub": "x"}, "2")
    assert caller_of({"sub": "x"}, "1") != caller_of({"sub": "y"}, "1")


@pytest.mark.parametrize("options", [{"rate_limit": 0}, {"rate_limit": float("nan")}, {"rate_limit": float("inf")}])
def test_a_rate_that_is_none_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="rate_limit is a number of calls per second"):
        create_app(make(), **options)
    with pytest.raises(UsageError, match="rate_limit is a number of calls per second"):
        create_asgi_app(make(), **options)
    with pytest.raises(UsageError, match="rate_burst is 1 call or more"):
        create_app(make(), rate_limit=1, rate_burst=0)


def test_the_options_are_those_of_run_too() -> None:
    with pytest.raises(UsageError, match="rate_limit is a number of calls per second"):
        App("limited", "1").run("http", port=0, rate_limit=-1, rate_burst=3, body_timeout=5)


# -- over HTTP ---------------------------------------------------------------------------------------------------------


@KINDS
@pytest.mark.req("M-206", "M-222")
async def test_one_call_too_many_is_429(kind: str) -> None:
    async with served(kind, rate_limit=SLOW, rate_burst=2) as site:
        assert (await site.ask_modern(tool("add", 1))).text == "3"
        complete = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
        assert (await site.ask_modern(request("completion/complete", 2, **complete))).error == -32601
        for message in (tool("add", 3), request("completion/complete", 3, **complete)):
            refused = await site.ask_modern(message, Origin="http://localhost:5000")
            assert refused.status == 429
            assert refused.json["id"] == 3
            assert refused.error == -32603
            seconds = refused.json["error"]["data"]["retryAfter"]
            assert 3590 <= seconds <= 3600
            assert refused.headers["retry-after"] == str(seconds)
            assert "Retry-After" in refused.headers["access-control-expose-headers"]
        # What costs little is not counted, and neither era nor session is a way around.
        assert (await site.ask_modern(request("tools/list", 4))).status == 200
        for version in ("2025-11-25", "2025-06-18"):
            session = await site.handshake(version)
            refused = await site.ask(tool("add", "five"), session)
            assert (refused.status, refused.json["id"]) == (429, "five")


@KINDS
@pytest.mark.req("M-206")
async def test_callers_that_are_known_are_counted_apart(kind: str) -> None:
    def identify(asked: Any) -> object:
        headers = dict(asked["headers"]) if isinstance(asked, dict) else asked.headers
        return headers.get(b"x-user", b"").decode() if isinstance(asked, dict) else headers.get("X-User", "")

    async with served(kind, rate_limit=SLOW, rate_burst=1, identify=identify) as site:
        for user in ("ann", "bob"):
            assert (await site.ask_modern(tool("add"), **{"X-User": user})).status == 200
            assert (await site.ask_modern(tool("add"), **{"X-User": user})).status == 429


@pytest.mark.req("M-206")
async def test_each_call_of_a_batch_counts() -> None:
    async with served("aiohttp", rate_limit=SLOW, rate_burst=3) as site:
        session = await site.handshake("2025-03-26")
        for batch in (
            [request("tools/list", 1)],
            [tool("add", 1), 7, tool("add", 2)],
            [tool("add", 3), tool("add", 4)],
        ):
            assert (await site.ask(batch, session)).status == 200
        refused = await site.ask([request("tools/list", 1), tool("add", 5)], session)
        assert (refused.status, refused.error, refused.json["id"]) == (429, -32603, None)
        assert "retry-after" in refused.headers
        assert (await site.ask([request("tools/list", 1)], session)).status == 200
        assert (await site.ask([], session)).status == 400


@pytest.mark.req("M-206")
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_our_client_is_told(version: str) -> None:
    async with (
        served("aiohttp", rate_limit=SLOW, rate_burst=1) as site,
        connect(f"http://127.0.0.1:{site.port}/mcp", version=version) as client,
    ):
        await client.call("add", {})
        with pytest.raises(MCPError, match="Too many calls") as caught:
            await client.call("add", {})
        assert caught.value.data["retryAfter"] > 0


async def test_there_is_no_limit_until_one_is_set() -> None:
    async with served("aiohttp") as site:
        for _ in range(50):
            assert (await site.ask_modern(tool("add"))).status == 200


# -- bodies ------------------------------------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("sent", [0, 20])
async def test_a_body_that_does_not_come_is_408(kind: str, sent: int) -> None:
    async with served(kind, body_timeout=0.2) as site:
        message = modern(tool("add"))
        body = json.dumps(message).encode()
        wire = await site.connect()
        head = {**modern_headers(message), "Content-Length": str(len(body)), "Origin": "http://localhost"}
        wire.send(None, head, raw=body[:sent])
        answer = await wire.answer()
        assert (answer.status, answer.error) == (408, -32600)
        assert answer.headers["access-control-allow-origin"] == "http://localhost"
        assert answer.headers["connection"].lower() == "close"
        assert (await site.ask_modern(tool("add"))).text == "3"


@KINDS
@pytest.mark.parametrize("limit", [20.0, None])
async def test_a_body_in_pieces_is_taken(kind: str, limit: float | None) -> None:
    async with served(kind, body_timeout=limit) as site:
        message = modern(tool("add"))
        body = json.dumps(message).encode()
        wire = await site.connect()
        wire.send(None, {**modern_headers(message), "Content-Length": str(len(body))}, raw=b"")
        for start in range(0, len(body), 100):
            await asyncio.sleep(0.01)
            wire.writer.write(body[start : start + 100])
        assert (await wire.answer()).text == "3"


@pytest.mark.parametrize("kind", ["aiohttp", "httptools"])
async def test_a_client_that_leaves_in_the_middle_of_its_body_does_no_harm(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(kind, body_timeout=0.1) as site:
        message = modern(tool("add"))
        wire = await site.connect()
        wire.send(None, {**modern_headers(message), "Content-Length": "500"}, raw=b"{")
        await asyncio.sleep(0.02)
        wire.drop()
        await asyncio.sleep(0.2)
        assert (await site.ask_modern(tool("add"))).text == "3"
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("headers", "raw"),
    [
        ({"Content-Encoding": "gzip", "Content-Length": "400"}, b"{}" * 200),
        ({"Transfer-Encoding": "chunked", "Content-Length": None}, b'5\r\n{"a":\r\nno size\r\n'),
    ],
)
async def test_a_body_that_cannot_be_decoded_is_400(
    headers: dict[str, str | None], raw: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with served("aiohttp") as site:
        message = modern(tool("add"))
        wire = await site.connect()
        wire.send(None, {**modern_headers(message), **headers}, raw=raw)
        assert (await wire.answer()).status == 400
        assert (await site.ask_modern(tool("add"))).text == "3"
    assert not [record for record in caplog.records if record.name == "typedmcp"]
