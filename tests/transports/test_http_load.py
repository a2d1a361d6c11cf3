"""Many clients at once: those that do not read, sessions that do nothing, streams that wait.

What is slow is told by order, not by the clock: whoever must not be held up is done before the others have moved.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from http_tools import Site, Tools, Wire, make, modern, modern_headers, serving, tool, until

from typedmcp.transports.http.app import ENDPOINT, create_app

SLOW = 500
SESSIONS = 2_000
STREAMS = 1_000
REPORTS, SIZE = 20, 16_384


@pytest.fixture(autouse=True)
def descriptors() -> None:
    """Both ends of every connection are here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * (SLOW + STREAMS) + 500
    if soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < wanted:
            pytest.skip(f"the system lets a process open {hard} files; {wanted} are needed")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    app = create_app(make(Tools()), keep_alive=None)
    async with serving(app, handler_cancellation=True, backlog=1024) as found:
        found.endpoint = app[ENDPOINT]
        yield found


async def slow_reader(port: int) -> Wire:
    """A client that takes little before it has to be asked for more, and then does not ask."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=4096)
    return Wire(reader, writer)


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_readers_that_do_not_read_hold_nobody_up(era: str) -> None:
    async with site() as found:
        session = await found.handshake() if era == "handshake" else {}
        slow = [await slow_reader(found.port) for _ in range(SLOW)]
        for number, wire in enumerate(slow):
            message = tool("flood", number + 1, token=number, count=REPORTS, size=SIZE)
            if era == "modern":
                message = modern(message)
            wire.send(message, modern_headers(message) if era == "modern" else session)
        fast = [await found.ask_modern(tool("add", a=number, b=1)) for number in range(50)]
        assert [answer.text for answer in fast] == [str(number + 1) for number in range(50)]
        other = await found.handshake()
        assert (await found.ask(tool("add"), other)).text == "3"
        # Nobody was waited for, and nobody has lost anything.
        for number, wire in enumerate(slow):
            await wire.head()
            reports = [await wire.message() for _ in range(REPORTS)]
            assert [report["params"]["progress"] for report in reports] == list(range(1, REPORTS + 1))
            assert (await wire.message())["id"] == number + 1
            wire.drop()


async def test_sessions_and_streams_that_wait_hold_nobody_up() -> None:
    async with site() as found:
        sessions = [await found.handshake() for _ in range(SESSIONS)]
        assert len(found.endpoint.sessions) == SESSIONS
        streams = [await found.listen(session) for session in sessions[:STREAMS]]
        assert found.endpoint.open == STREAMS
        for session in (sessions[0], sessions[STREAMS], sessions[-1]):
            assert (await found.ask(tool("add"), session)).text == "3"
        assert (await found.ask_modern(tool("add"))).text == "3"
        # The streams are alive, each by itself.
        for number in (0, STREAMS // 2, STREAMS - 1):
            deleted = await found.ask(None, sessions[number], method="DELETE")
            assert deleted.status == 204
            assert await streams[number].event() is None
        assert found.endpoint.open == STREAMS - 3
        assert len(found.endpoint.sessions) == SESSIONS - 3
        for stream in streams:
            stream.drop()
        await until(lambda: not found.endpoint.open)
