"""Our client and our server with a relay between them that cuts answers at every byte.

What a replay can give back arrives, once and in order; what it cannot is told as lost, and nothing arrives twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from http_tools import PATIENCE, serving, until
from msgspec import json
from relay import Cut, How, Relay, relaying

from typedmcp import App, Context
from typedmcp.core.errors import RequestLost
from typedmcp.core.jsonrpc import JSONRPCRequest, JSONRPCResponse
from typedmcp.transports.http import ENDPOINT, HTTPClientTransport, create_app, endpoint
from typedmcp.transports.http.client import Reconnect
from typedmcp.transports.http.sessions import MCPSession
from typedmcp.transports.sse import Event, EventParser

TEXT = "é€😀"
"""Of two, three and four bytes a character: many cuts fall inside one."""
WAYS: list[How] = ["close", "abort", "deaf"]
"""Taken in turn, one a byte: all of them for each would take a minute."""


class Ears:
    """What a transport delivers."""

    def __init__(self, transport: HTTPClientTransport) -> None:
        self.transport = transport
        self.messages: list[Any] = []
        self.errors: list[Any] = []
        transport.emitter.on("message", lambda message: self._take(self.messages, message))
        transport.emitter.on("error", lambda error: self._take(self.errors, error))
        self.ids = iter(range(1, 1_000_000))
        self._came = asyncio.Event()

    def _take(self, kept: list[Any], value: Any) -> None:
        kept.append(value)
        self._came.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what comes to be enough."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._came.clear()
                await self._came.wait()

    @property
    def heard(self) -> list[Any]:
        """Progress as its number, an answer as its text, other notifications as their data."""
        return [_essence(message) for message in self.messages]

    async def open(self) -> None:
        await self.transport.start()
        client = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        await self.transport.send(JSONRPCRequest(id=0, method="initialize", params=params))
        await self.until(lambda: bool(self.messages or self.errors))
        assert self.errors == []
        await self.transport.send(JSONRPCRequest(method="notifications/initialized"))
        self.messages.clear()

    async def call(self, name: str) -> list[Any]:
        """Call a tool, and return all that comes until its answer or its loss."""
        self.messages.clear()
        self.errors.clear()
        number = next(self.ids)
        params = {"name": name, "arguments": {}, "_meta": {"progressToken": number}}
        await self.transport.send(JSONRPCRequest(id=number, method="tools/call", params=params))
        await self.until(lambda: bool(self.errors) or any(isinstance(m, JSONRPCResponse) for m in self.messages))
        assert all(isinstance(error, RequestLost) and error.request_id == number for error in self.errors)
        return self.heard


def _essence(message: Any) -> Any:
    if isinstance(message, JSONRPCResponse):
        return json.decode(message.result)["content"][0]["text"]
    params = json.decode(message.params)
    if "data" in params:
        return params["data"]
    assert params["message"] == TEXT
    return params["progress"]


class Stage:
    """A server, a relay in front of it, and what its tools did."""

    def __init__(self, relay: Relay, sessions: Any, runs: list[str]) -> None:
        self.relay = relay
        self.runs = runs
        self._sessions = sessions

    @property
    def session(self) -> MCPSession:
        """The session opened last."""
        return list(self._sessions)[-1]

    @asynccontextmanager
    async def client(self, *, listen: bool = False) -> AsyncIterator[Ears]:
        url = f"http://127.0.0.1:{self.relay.port}/mcp"
        transport = HTTPClientTransport(
            url, listen=listen, reconnect=Reconnect(attempts=20, delay=0.001, longest=0.002)
        )
        ears = Ears(transport)
        try:
            await ears.open()
            yield ears
        finally:
            await transport.close()


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr(endpoint, "_RETRY_MS", 0)
    app = App("cut", "1")
    runs: list[str] = []

    @app.tool
    async def slow(context: Context) -> str:
        """Its answer comes in pieces."""
        runs.append("slow")
        for step in (1, 2):
            context.report_progress(step, message=TEXT)
            await asyncio.sleep(0.002)  # longer than the way back: some of it is replayed, some comes live
        return TEXT

    @app.tool
    async def quick(context: Context) -> str:
        """Its answer comes as one."""
        runs.append("quick")
        context.report_progress(1, message=TEXT)
        context.report_progress(2, message=TEXT)
        return TEXT

    web = create_app(app)
    async with serving(web) as site, relaying(site.port) as relay:
        yield Stage(relay, web[ENDPOINT].sessions, runs)


def events(passed: bytes) -> list[Event]:
    """The whole events in the beginning of an answer."""
    head, _, body = passed.partition(b"\r\n\r\n")
    if b"chunked" in head:
        body = b"".join(_chunks(body))
    return [event for event in EventParser().feed(body) if isinstance(event, Event)]


def _chunks(body: bytes) -> Iterator[bytes]:
    while b"\r\n" in body:
        size, _, body = body.partition(b"\r\n")
        yield body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]


def judge(cut: Cut, heard: list[Any], lost: bool) -> None:
    """What must have arrived of a call whose answer was cut there."""
    came = events(bytes(cut.passed))
    resumable = bool(came)
    if resumable:
        assert (heard, lost) == ([1, 2, TEXT], False), (cut.after, bytes(cut.passed))
    else:
        assert (heard, lost) == ([], True), (cut.after, bytes(cut.passed))


@pytest.mark.req("H-043", "H-044", "H-046", "H-047", "H-048")
@pytest.mark.parametrize("name", ["slow", "quick"])
async def test_an_answer_cut_at_every_byte(stage: Stage, name: str) -> None:
    async with stage.client() as ears:
        whole = stage.relay.cut("POST", 10**6, needle="tools/call")
        assert await ears.call(name) == [1, 2, TEXT]
        stage.relay.forget(whole)
        length = len(whole.passed)
        assert len(events(bytes(whole.passed))) == 4
        for after in range(length):
            cut = stage.relay.cut("POST", after, WAYS[after % 3], needle="tools/call")
            judge(cut, await ears.call(name), bool(ears.errors))
            assert cut.done.is_set()
    assert len(stage.runs) == length + 1  # no call ran twice


@pytest.mark.req("H-047", "H-048")
async def test_the_resumption_is_cut_at_every_byte(stage: Stage) -> None:
    async with stage.client() as ears:
        first = stage.relay.cut("POST", 10**6, needle="tools/call")
        await ears.call("slow")
        stage.relay.forget(first)
        head = first.passed.index(b"\r\n\r\n") + 4
        primed = next(n for n in range(head, len(first.passed)) if events(bytes(first.passed[:n]))) + 8
        stage.relay.cut("POST", primed, needle="tools/call")
        whole = stage.relay.cut("GET", 10**6)
        assert await ears.call("slow") == [1, 2, TEXT]
        stage.relay.forget(whole)
        for after in range(len(whole.passed)):
            stage.relay.cut("POST", primed, needle="tools/call")
            again = stage.relay.cut("GET", after, WAYS[after % 3])
            assert await ears.call("slow") == [1, 2, TEXT], after
            assert ears.errors == []
            stage.relay.forget(again)


def note(number: int) -> dict[str, Any]:
    params = {"level": "info", "data": [number, TEXT]}
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}


@pytest.mark.req("H-047", "H-048")
async def test_the_servers_own_stream_is_cut_at_every_byte(stage: Stage) -> None:
    numbers = iter(range(1_000_000))
    async with stage.client(listen=True) as ears:

        async def round_of(after: int, cut_how: How) -> Cut:
            """Cut the next stream, and say something before and while it is open."""
            ears.messages.clear()
            cut = stage.relay.cut("GET", after, cut_how)
            assert stage.relay.break_all("GET") == 1
            said = [next(numbers) for _ in range(3)]
            for number in said:
                stage.session.push(note(number))
                await asyncio.sleep(0)
            await ears.until(lambda: len(ears.messages) >= len(said))
            await asyncio.sleep(0)
            assert ears.heard == [[number, TEXT] for number in said], (after, bytes(cut.passed))
            assert ears.errors == []
            return cut

        await until(lambda: any(p.request.startswith(b"GET") for p in stage.relay._open))
        stage.session.push(note(next(numbers)))
        await ears.until(lambda: len(ears.messages) == 1)  # from here on the client has a place to come back to
        whole = await round_of(10**6, "close")
        stage.relay.forget(whole)
        for after in range(len(whole.passed)):
            cut = await round_of(after, WAYS[after % 3])
            await cut.done.wait()


@pytest.mark.req("H-044", "H-047")
async def test_the_first_bytes_of_the_servers_own_stream_are_cut(stage: Stage) -> None:
    """Without the event that begins it there is no place to come back to; what is said later arrives all the same."""
    whole = stage.relay.cut("GET", 10**6)
    async with stage.client(listen=True):
        await until(lambda: bool(events(bytes(whole.passed))))
    head = whole.passed.index(b"\r\n\r\n")
    for after in (0, 1, head // 2, *range(head, len(whole.passed))):
        cut = stage.relay.cut("GET", after, WAYS[after % 3])
        again = stage.relay.cut("GET", 10**6)
        async with stage.client(listen=True) as ears:
            await cut.done.wait()
            if events(bytes(cut.passed)):
                stage.session.push(note(1))
            await until(lambda: bool(events(bytes(again.passed))))  # noqa: B023 - waited for here
            stage.session.push(note(2))
            await ears.until(lambda: [2, TEXT] in ears.heard)
            assert ears.heard == ([[1, TEXT]] if events(bytes(cut.passed)) else []) + [[2, TEXT]], after
            assert ears.errors == []
        stage.relay.forget(again)
