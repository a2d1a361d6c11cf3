"""A TCP relay between a client and a server that cuts an answer at a chosen byte."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

How: TypeAlias = Literal["close", "abort", "deaf"]
"""In order (FIN), by reset (RST), or in order towards the client while the server goes on writing to nobody."""


class Cut:
    """One cut: the next answer to a request that fits ends after so many bytes.

    Attributes:
        passed: The bytes of the answer that have been passed on.
        done: Set when the connection has been cut.
    """

    def __init__(self, verb: bytes, needle: bytes, after: int, how: How) -> None:
        self.verb = verb
        self.needle = needle
        self.after = after
        self.how: How = how
        self.passed = bytearray()
        self.done = asyncio.Event()

    def fits(self, request: bytes) -> bool:
        return request.startswith(self.verb) and self.needle in request


class Relay:
    """Passes on what comes, both ways, until a cut.

    Attributes:
        port: Where clients connect to.
        answers: What was passed to clients in all.
    """

    def __init__(self, target: int) -> None:
        self.port = 0
        self.answers = 0
        self._target = target
        self._cuts: list[Cut] = []
        self._open: set[_Passage] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def cut(self, verb: str, after: int, how: How = "close", needle: str = "") -> Cut:
        """Cut the answer to the next request with that verb, and with that text in it, after so many bytes."""
        cut = Cut(verb.encode() + b" ", needle.encode(), after, how)
        self._cuts.append(cut)
        return cut

    def forget(self, cut: Cut) -> None:
        """Let pass what has not been cut."""
        if cut in self._cuts:
            self._cuts.remove(cut)
        for passage in self._open:
            if passage.cut is cut:
                passage.cut = None

    def break_all(self, verb: str) -> int:
        """End the connections whose last request had that verb; how many there were."""
        broken = [one for one in self._open if not one.dead and one.request.startswith(verb.encode())]
        for passage in broken:
            passage.end("close")
        return len(broken)

    def armed(self, request: bytes) -> Cut | None:
        for cut in self._cuts:
            if cut.fits(request):
                self._cuts.remove(cut)
                return cut
        return None

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", self._target)
        passage = _Passage(self, writer, there[1])
        self._open.add(passage)
        ways = [asyncio.ensure_future(way) for way in (passage.up(reader), passage.down(there[0]))]
        self._tasks.update(ways)
        try:
            await asyncio.wait(ways)
        finally:
            self._open.discard(passage)
            self._tasks.difference_update(ways)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for passage in self._open:
            passage.end("abort")


class _Passage:
    """One connection and its other half."""

    def __init__(self, relay: Relay, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.request = bytearray()
        self.cut: Cut | None = None
        self._relay = relay
        self._client = client
        self._server = server
        self._answering = False
        self.dead = False

    async def up(self, reader: asyncio.StreamReader) -> None:
        """What the client says."""
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                if self._answering:
                    self._answering = False
                    self.request.clear()
                self.request += data
                self.cut = self.cut or self._relay.armed(bytes(self.request))
                self._server.write(data)
        if not self.dead:
            self._server.close()

    async def down(self, reader: asyncio.StreamReader) -> None:
        """What the server says."""
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                self._answering = True
                if not self.dead:
                    self._pass(data)
        self._client.close()

    def _pass(self, data: bytes) -> None:
        cut = self.cut
        if cut is None:
            self._relay.answers += len(data)
            self._client.write(data)
            return
        room = cut.after - len(cut.passed)
        cut.passed += data[:room]
        self._client.write(data[:room])
        if len(data) >= room:
            cut.done.set()
            self.end(cut.how)

    def end(self, how: How) -> None:
        """End the connection."""
        self.dead = True
        if how == "abort":
            self._client.transport.abort()
            self._server.transport.abort()
        else:
            self._client.close()
            if how == "close":
                self._server.close()


@asynccontextmanager
async def relaying(target: int) -> AsyncIterator[Relay]:
    """A relay in front of a port of the loopback interface."""
    relay = Relay(target)
    server = await asyncio.start_server(relay.accept, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        relay.close()
        await asyncio.sleep(0)
