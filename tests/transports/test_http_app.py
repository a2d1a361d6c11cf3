"""The safe application for aiohttp, and serving it until a signal comes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from http_tools import (
    LATEST,
    Answer,
    Site,
    Tools,
    initialize,
    make,
    modern,
    modern_headers,
    notification,
    request,
    serving,
    tool,
    until,
)

from typedmcp.core.errors import UsageError
from typedmcp.serving import run, serve_http
from typedmcp.transports import http
from typedmcp.transports.http import create_app
from typedmcp.transports.http.app import ENDPOINT
from typedmcp.transports.http.limits import DEFAULT_MAX_BODY, DEFAULT_MAX_DEPTH, DEFAULT_MAX_SESSIONS

JSON_ONLY = {"Accept": "application/json"}


@asynccontextmanager
async def safe(tools: Tools | None = None, *, versions: Any = None, **options: Any) -> AsyncIterator[Site]:
    app = create_app(make(tools, protocol_versions=versions), **options)
    async with serving(app, handler_cancellation=True) as site:
        site.endpoint = app[ENDPOINT]
        yield site


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.req("A-224", "A-225", "A-226", "A-227", "A-228", "A-232", "A-239", "A-013", "A-014")
def test_names_and_constants() -> None:
    assert http.MCP_SESSION_HEADER == "mcp-session-id"
    assert http.MCP_PROTOCOL_VERSION_HEADER == "mcp-protocol-version"
    assert http.DEFAULT_MCP_PATH == "/mcp"
    for name in http.__all__:
        assert getattr(http, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = http.no_such_name
    assert (http.reject_unknown_session().status, DEFAULT_MAX_BODY, DEFAULT_MAX_SESSIONS) == (404, 16 << 20, 10_000)


@pytest.mark.req("A-229", "A-230", "A-231", "A-233", "A-235", "A-236", "A-237")
async def test_helpers_for_requests() -> None:
    seen: list[tuple[Any, ...]] = []

    async def look(request: web.Request) -> web.Response:
        seen.append(
            (
                http.accepts_event_stream(request),
                http.read_session_header(request),
                http.read_last_event_id(request),
                http.upgrade_request_path(request),
            )
        )
        return web.Response()

    app = web.Application()
    app.router.add_get("/{tail:.*}", look)
    async with serving(app) as site:
        headers = {"mcp-session-id": "s", "LAST-EVENT-ID": "7"}
        await site.ask(None, headers, method="GET", path="/a%20b/c?d=e")
        await site.ask(None, {"Accept": "*/*"}, method="GET", path="/")
    assert seen == [(True, "s", "7", "/a%20b/c"), (False, None, None, "/")]


# -- bounds and paths --------------------------------------------------------------------------------------------------


@pytest.mark.req("M-088", "B-022", "B-023")
async def test_both_forms_of_the_path_and_the_probes() -> None:
    async with safe() as site:
        message = modern(tool("add"))
        for path in ("/mcp", "/mcp/"):
            answer = await site.ask(message, modern_headers(message), path=path)
            assert (answer.status, answer.text) == (200, "3")
        assert (await site.ask(message, modern_headers(message), path="/")).status == 404
        for path in ("/healthz", "/readyz"):
            assert (await site.ask(None, {"Host": "anything"}, method="GET", path=path)).status == 200
    for path in ("/", "/a/b/", "/x"):
        async with safe(path=path) as site:
            for form in {path, path.rstrip("/") or "/", path.rstrip("/") + "/"}:
                assert (await site.ask(message, modern_headers(message), path=form)).status == 200


@pytest.mark.req("M-100", "B-137", "H-023")
async def test_other_methods_are_405() -> None:
    async with safe(versions=(LATEST,)) as site:
        for method in ("GET", "DELETE", "PUT", "PATCH", "OPTIONS"):
            for session in (None, "x"):
                answer = await site.ask(None, {"Mcp-Session-Id": session}, method=method)
                assert (answer.status, answer.headers["allow"]) == (405, "POST")
    async with safe() as site:
        answer = await site.ask(None, method="PUT")
        assert (answer.status, answer.headers["allow"]) == (405, "GET, POST, DELETE")


@pytest.mark.req("M-101", "B-137", "M-020")
async def test_a_modern_request_has_no_session() -> None:
    async with safe() as site:
        session = await site.handshake()
        message = modern(tool("whoami"))
        for extra in (
            {},
            {"Mcp-Session-Id": "unknown", "Last-Event-ID": "1"},
            {"Mcp-Session-Id": session["Mcp-Session-Id"]},
        ):
            answer = await site.ask(message, modern_headers(message, **extra))
            assert (answer.status, answer.text) == (200, f"None {LATEST}")
            assert "mcp-session-id" not in answer.headers


@pytest.mark.req("M-130")
async def test_a_body_too_large_is_413() -> None:
    async with safe(max_body=1000) as site:
        for size, status in ((500, 200), (1500, 413)):
            message = modern(tool("deep", value="x" * size))
            answer = await site.ask(message, modern_headers(message))
            assert answer.status == status
        assert b"1000 bytes" in answer.body
        wire = await site.connect()
        wire.send(None, {"Content-Length": None, "Transfer-Encoding": "chunked"})
        for _ in range(3):
            wire.writer.write(b"1f4\r\n" + b" " * 500 + b"\r\n")
        assert (await wire.answer()).status == 413


async def test_a_body_too_deep_is_400() -> None:
    value: Any = 1
    for _ in range(DEFAULT_MAX_DEPTH):
        value = [value]
    message = modern(tool("deep", value=value))
    async with safe() as site:
        answer = await site.ask(message, modern_headers(message))
        assert (answer.status, answer.error) == (400, -32700)
    async with safe(max_depth=1000) as site:
        assert (await site.ask(message, modern_headers(message))).status == 200


async def test_one_request_too_many_is_503() -> None:
    tools = Tools()
    async with safe(tools, max_requests=2) as site:
        message = modern(tool("wait"))
        wires = [await site.connect() for _ in range(2)]
        for wire in wires:
            wire.send(message, modern_headers(message))
        await until(lambda: site.endpoint.open == 2)
        refused = await site.ask_modern(tool("add"))
        assert (refused.status, refused.kind) == (503, "application/json")
        tools.go.set()
        for wire in wires:
            assert (await wire.answer()).status == 200
        assert (await site.ask_modern(tool("add"))).status == 200
        assert site.endpoint.open == 0


@pytest.mark.req("M-091", "H-042")
async def test_who_calls_is_told_by_the_application() -> None:
    def identify(request: web.Request) -> str:
        if "Authorization" not in request.headers:
            raise web.HTTPUnauthorized(headers={"WWW-Authenticate": "Bearer"})
        return request.headers["Authorization"]

    async with safe(identify=identify) as site:
        assert (await site.ask_modern(tool("whoami"), Authorization="ann")).text == f"ann {LATEST}"
        refused = await site.ask_modern(tool("whoami"), Origin="http://localhost:3000")
        assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert refused.headers["access-control-allow-origin"] == "http://localhost:3000"
        assert "WWW-Authenticate" in refused.headers["access-control-expose-headers"]

    async def look_up(request: web.Request) -> str:
        await asyncio.sleep(0)
        return "looked up"

    async with safe(identify=look_up) as site:
        assert (await site.ask_modern(tool("whoami"))).text == f"looked up {LATEST}"


@pytest.mark.req("M-022", "M-023", "M-051", "M-050")
async def test_one_connection_carries_both_eras_and_many_conversations() -> None:
    async with safe() as site:
        sessions = [await site.handshake(version) for version in ("2025-03-26", "2025-11-25")]
        wire = await site.connect()
        message = modern(tool("whoami"))
        for _ in range(3):
            wire.send(message, modern_headers(message))
            assert (await wire.answer()).text == f"None {LATEST}"
            for session in sessions:
                wire.send(tool("whoami"), session)
                assert (await wire.answer()).text == f"None {session['MCP-Protocol-Version']}"


async def test_a_body_that_breaks_off_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    async with safe() as site:
        for body in (b"", b'{"jsonrpc"'):
            wire = await site.connect()
            wire.send(raw=body, headers={"Content-Length": "1000"})
            await asyncio.sleep(0.05)
            wire.drop()
        await asyncio.sleep(0.05)
        assert (await site.ask_modern(tool("add"))).status == 200
        assert site.endpoint.open == 0
    assert caplog.text == ""


# -- slow readers ------------------------------------------------------------------------------------------------------


async def test_a_slow_reader_loses_its_stream_and_nobody_else_anything(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tools = Tools()
    async with safe(tools) as site:
        slow = await site.connect()
        message = modern(tool("flood", token=1, count=400, size=100_000))
        slow.send(message, modern_headers(message))
        slow.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await until(lambda: tools.stopped or tools.ended)
        assert "bytes behind" in caplog.text
        assert (await site.ask_modern(tool("add"))).status == 200
        await until(lambda: site.endpoint.open == 0)
        slow.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert not (await slow.gone()).endswith(b"0\r\n\r\n")
        session = await site.handshake()
        slow = await site.connect()
        slow.send(tool("flood", token=1, count=400, size=100_000), session)
        slow.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await until(lambda: tools.ended)  # in the handshake era only the stream is lost
        await until(lambda: site.endpoint.open == 0)


async def test_five_hundred_slow_readers_do_not_slow_a_fast_one() -> None:
    loop = asyncio.get_running_loop()
    async with safe() as site:
        session = await site.handshake()
        slow = [await site.open(None, session, method="GET") for _ in range(500)]
        for wire in slow:
            wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        state = site.endpoint.sessions.find(session["Mcp-Session-Id"])
        state._fan_out = True
        for _ in range(20):
            state.push(notification("n", filler="x" * 2000))
        begun = loop.time()
        for number in range(50):
            assert (await site.ask_modern(tool("add", number))).status == 200
        assert loop.time() - begun < 10
        for wire in slow:
            wire.drop()
        await until(lambda: site.endpoint.open == 0)


# -- stopping ----------------------------------------------------------------------------------------------------------


async def test_stopping_ends_streams_lets_requests_finish_and_takes_nothing_new() -> None:
    tools = Tools()
    app = create_app(make(tools))
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=10)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    site = Site(runner.addresses[0][1])
    session = await site.handshake()
    listening = await site.listen(session)
    streamed = await site.open(tool("steps", 1, token=1, after=1), session)
    message = modern(tool("wait", 2))
    plain, idle = await site.connect(), await site.connect()
    plain.send(message, modern_headers(message))
    await until(lambda: len(tools.contexts) == 2)
    stopping = asyncio.create_task(runner.cleanup())
    assert await listening.event() is None
    idle.send(request(), session)
    assert await idle.gone() == b""
    assert not stopping.done()
    tools.go.set()
    assert (await plain.answer()).text == "went on"
    while (last := await streamed.message()).get("id") != 1:
        pass
    assert last["result"]["content"][0]["text"] == "stepped"
    await asyncio.wait_for(stopping, 5)
    assert tools.stopped == []
    assert app[ENDPOINT].admit({"Host": "localhost"}.get).status == 503  # type: ignore[union-attr]
    site.close()


async def test_what_has_not_ended_in_time_is_cancelled() -> None:
    """Also a request of the handshake era whose client has long gone."""
    tools = Tools()
    async with safe(tools) as site:
        session = await site.handshake()
        lost = await site.open(tool("wait", 1), session)
        lost.drop()
        plain = await site.connect()
        message = modern(tool("wait", 2))
        plain.send(message, modern_headers(message))
        await until(lambda: len(tools.contexts) == 2)
    assert sorted(map(str, tools.stopped)) == ["1", "2"]
    assert len(site.endpoint.sessions) == 0


# -- serving in a process ----------------------------------------------------------------------------------------------

SCRIPT = """
import sys, asyncio
sys.path[:0] = {path!r}
from http_tools import Tools, make
from typedmcp.serving import run
class Told(Tools):
    async def _wait(self, context):
        print("begun", flush=True)
        try:
            return await super()._wait(context)
        finally:
            print("stopped", flush=True)
print("ended with", run(make(Told()), "http", port=0, **{options!r}), flush=True)
"""


@asynccontextmanager
async def process(**options: Any) -> AsyncIterator[tuple[asyncio.subprocess.Process, Site, str]]:
    here = str(Path(__file__).parent)
    script = SCRIPT.format(path=[here], options=options)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        script,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(os.environ),
    )
    try:
        assert child.stderr is not None
        async with asyncio.timeout(30):
            line = (await child.stderr.readline()).decode()
        site = Site(int(line.rpartition(":")[2].partition("/")[0]))
        try:
            yield child, site, line
        finally:
            site.close()
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


@pytest.mark.req("M-090", "B-019")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_server_in_order(number: signal.Signals) -> None:
    async with process(grace=0.3) as (child, site, line):
        assert line.startswith("Serving tested at http://127.0.0.1:")
        assert line.endswith("/mcp\n")
        session = await site.handshake()
        listening = await site.listen(session)
        assert child.stdout is not None
        message = modern(tool("wait"))
        wire = await site.connect()
        wire.send(message, modern_headers(message))
        assert await child.stdout.readline() == b"begun\n"
        child.send_signal(number)
        assert await listening.event() is None
        async with asyncio.timeout(20):
            out, errors = await child.communicate()
        assert out.decode().splitlines() == ["stopped", f"ended with {int(number)}"]
        assert errors == b""
        assert child.returncode == 0


@pytest.mark.req("M-137")
async def test_a_process_notices_at_once_that_a_client_has_gone() -> None:
    async with process() as (child, site, _):
        assert child.stdout is not None
        message = modern(tool("wait"))
        wire = await site.connect()
        wire.send(message, modern_headers(message, **JSON_ONLY))
        assert await child.stdout.readline() == b"begun\n"
        wire.drop()
        async with asyncio.timeout(5):
            assert await child.stdout.readline() == b"stopped\n"


async def test_who_cancels_it_is_not_told_that_it_has_ended() -> None:
    serving = asyncio.create_task(serve_http(make(), port=0))
    await asyncio.sleep(0.1)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


async def test_a_port_in_use_is_told() -> None:
    async with safe() as site:
        with pytest.raises(UsageError, match="choose another port="):
            await serve_http(make(), port=site.port)


def test_unknown_transports_and_options_are_told() -> None:
    with pytest.raises(UsageError, match="stdio"):
        run(make(), "carrier pigeon")
    with pytest.raises(UsageError, match="port"):
        run(make(), "stdio", port=1)


async def test_answers_are_ordinary_http(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of all this leaves a line in any log."""
    async with safe() as site:
        answer: Answer = await site.ask(initialize())
        assert json.loads(answer.events[0].data)["id"] == 0
        session = {"Mcp-Session-Id": answer.session}
        await site.ask(request(), session)
        wire = await site.listen(session)
        wire.drop()
        await until(lambda: site.endpoint.open == 0)
    assert caplog.text == ""
