"""The server's side of stdio, in process, over real pipes, sockets, files and streams."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import socket
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import json
from transport_fakes import FakeServer, Inbox, call

from typedmcp.core.errors import ConnectionClosed, NotConnected, TransportError, UsageError
from typedmcp.core.jsonrpc import JSONRPCRequest, JSONRPCResponse, encode_message
from typedmcp.core.transport import ClientTransportInterface
from typedmcp.transports.lines import BadLine
from typedmcp.transports.stdio import StdioServer, StdioServerTransport, create_stdio_server
from typedmcp.transports.stdio.outbox import HIGH_WATER, LOW_WATER


class Peer:
    """The far ends of a server's two pipes."""

    def __init__(self) -> None:
        self.input, self.to_server = os.pipe()
        self.from_server, self.output = os.pipe()
        self._loop = asyncio.get_running_loop()
        self._rest = bytearray()

    async def write(self, data: bytes) -> None:
        await self._loop.run_in_executor(None, self._write, data)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.to_server, view) :]

    async def send(self, *messages: object) -> None:
        await self.write(b"".join(encode_message(message) + b"\n" for message in messages))

    async def line(self) -> bytes:
        """The next line, with its end; what there is at the end of the stream."""
        async with asyncio.timeout(20):
            chunk = bytes(self._rest)
            self._rest.clear()
            while b"\n" not in chunk:
                self._rest += chunk
                chunk = await self._loop.run_in_executor(None, os.read, self.from_server, 1 << 20)
                if not chunk:
                    return bytes(self._rest)
        end, _, rest = chunk.partition(b"\n")
        line = bytes(self._rest + end) + b"\n"
        self._rest = bytearray(rest)
        return line

    async def answer(self) -> Any:
        return json.decode(await self.line())

    def close(self, *names: str) -> None:
        for name in names or ("input", "to_server", "from_server", "output"):
            fd = getattr(self, name)
            if fd >= 0:
                os.close(fd)
                setattr(self, name, -1)


@contextlib.asynccontextmanager
async def serving(server: FakeServer, **options: Any) -> AsyncIterator[tuple[Peer, StdioServer]]:
    peer = Peer()
    handle = create_stdio_server(server, input=peer.input, output=peer.output, **options)
    await handle.start()
    try:
        yield peer, handle
    finally:
        await handle.stop()
        peer.close()


@pytest.mark.req("A-287", "A-288", "A-289", "A-290", "A-291", "A-304", "M-073", "M-083")
async def test_requests_are_answered_notifications_and_responses_are_not() -> None:
    server = FakeServer()
    async with serving(server) as (peer, _):
        await peer.send(call(0), JSONRPCRequest(method="note"), JSONRPCResponse(id=1, result={}))
        await peer.send(call("", text="zwölf\n\u2028"))
        assert await peer.line() == b'{"jsonrpc":"2.0","id":0,"result":{}}\n'
        assert await peer.line() == '{"jsonrpc":"2.0","id":"","result":{"text":"zwölf\\n\\u2028"}}\n'.encode()
    assert server.notes == ["note"]


async def test_bad_lines_are_answered_reported_and_survived() -> None:
    """F007, F008, F010: bad bytes, CR before LF, a request without the version member."""
    async with serving(FakeServer()) as (peer, handle):
        inbox = Inbox(handle.transport)
        await peer.write(b'\xff\xfe\n\r\n{"id":99,"method":"tools/list","params":{}}\r\n{"result":1}\n')
        await peer.send(call(5))
        assert (await peer.answer())["error"]["code"] == -32700
        second = await peer.answer()
        assert (second["id"], second["error"]["code"]) == (99, -32600)
        assert (await peer.answer())["id"] == 5
        errors = [await inbox.error() for _ in range(3)]
        assert all(isinstance(error, BadLine) for error in errors)
        assert [error.number for error in errors] == [1, 3, 4]


async def test_a_line_beyond_the_limit_is_refused() -> None:
    """F012."""
    async with serving(FakeServer(), limit=100) as (peer, _):
        await peer.write(b"x" * 300_000 + b"\n")
        await peer.send(call(5))
        refused = await peer.answer()
        assert refused["error"] == {"code": -32600, "message": "The line is longer than 100 bytes."}
        assert (await peer.answer())["id"] == 5


@pytest.mark.req("A-292")
async def test_a_fault_of_the_server_is_an_event() -> None:
    async with serving(FakeServer()) as (peer, handle):
        inbox = Inbox(handle.transport)
        await peer.send(call(1, "fault"), call(2))
        first = await peer.answer()
        assert (first["id"], first["error"]["message"]) == (1, "Internal error")
        assert (await peer.answer())["id"] == 2
        events = [await inbox.next() for _ in range(3)]
        assert sorted(event for event, _ in events) == ["error", "message", "message"]


@pytest.mark.req("A-308")
async def test_large_messages_both_ways() -> None:
    """F011: 70,000 bytes, 1 MiB, 50 MiB."""
    async with serving(FakeServer()) as (peer, _):
        for size in (70_000, 1 << 20, 50 << 20):
            sending = asyncio.create_task(peer.send(call(size, text="x" * size)))
            assert len((await peer.answer())["result"]["text"]) == size
            await sending


async def test_a_slow_request_does_not_hold_up_others() -> None:
    server = FakeServer()
    async with serving(server, max_in_flight=2) as (peer, _):
        await peer.send(call(1, "wait"), call(2))
        assert (await peer.answer())["id"] == 2
        await peer.send(call(3, "wait"), call(4))
        assert (await peer.answer())["error"]["message"] == "Too many requests in flight."
    assert sorted(map(str, server.cancelled)) == ["1", "3"]


@pytest.mark.req("M-139", "M-140", "M-143", "M-144")
async def test_cancellation() -> None:
    server = FakeServer()
    async with serving(server) as (peer, _):
        await peer.send(call(1, "wait"))
        await server.begun.wait()
        for request_id in (1, 1, 77):
            await peer.send(JSONRPCRequest(method="notifications/cancelled", params={"requestId": request_id}))
        await peer.send(JSONRPCRequest(method="notifications/cancelled", params={"requestId": {}}), call(2))
        assert (await peer.answer())["id"] == 2
        assert server.cancelled == [1]


@pytest.mark.req("M-079", "A-157")
async def test_end_of_input_ends_it() -> None:
    """F016: handlers are cancelled, serve() returns promptly, what was written is still read."""
    server = FakeServer()
    peer = Peer()
    handle = create_stdio_server(server, input=peer.input, output=peer.output)
    inbox = Inbox(handle.transport)
    task = asyncio.create_task(handle.serve())
    await peer.send(call(1, "wait"))
    await peer.write(encode_message(call(2)))
    peer.close("to_server")
    async with asyncio.timeout(5):
        await task
    assert server.cancelled == [1]
    peer.close("output")
    assert await peer.answer() == {"jsonrpc": "2.0", "id": 2, "result": {}}, "the last line needs no line end"
    assert await peer.line() == b""
    assert [(await inbox.next())[0] for _ in range(3)] == ["message", "message", "close"]
    peer.close()
    with pytest.raises(UsageError, match="new one"):
        await handle.start()


@pytest.mark.req("M-079")
async def test_every_request_before_the_end_of_input_begins() -> None:
    server = FakeServer()
    peer = Peer()
    handle = create_stdio_server(server, input=peer.input, output=peer.output)
    await peer.send(*(call(number, "wait" if number % 2 else "tools/list") for number in range(1, 21)))
    peer.close("to_server")
    async with asyncio.timeout(5):
        await handle.serve()
    assert sorted(server.cancelled) == list(range(1, 21, 2))
    peer.close("output")
    answered = [(await peer.answer())["id"] for _ in range(10)]
    assert answered == list(range(2, 21, 2))
    assert await peer.line() == b""
    peer.close()


async def test_serve_can_be_cancelled() -> None:
    server = FakeServer()
    peer = Peer()
    task = asyncio.create_task(create_stdio_server(server, input=peer.input, output=peer.output).serve())
    await peer.send(call(1, "wait"))
    await server.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert server.cancelled == [1]
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert os.get_blocking(peer.input), "the mode of a shared descriptor is given back"
    peer.close()


async def test_a_broken_pipe_ends_it_quietly() -> None:
    peer = Peer()
    handle = create_stdio_server(FakeServer(), input=peer.input, output=peer.output)
    inbox = Inbox(handle.transport)
    task = asyncio.create_task(handle.serve())
    peer.close("from_server")
    await peer.send(call(1))
    async with asyncio.timeout(5):
        await task
    assert (await inbox.message()).id == 1
    await inbox.close()
    peer.close()


async def test_a_peer_that_does_not_read_is_not_read_from() -> None:
    """Back-pressure: the answers kept are bounded, and nothing is lost."""
    async with serving(FakeServer()) as (peer, handle):
        count = 400
        seen = 0

        def received(_: object) -> None:
            nonlocal seen
            seen += 1

        handle.transport.emitter.on("message", received)
        text = "x" * 16_000
        sending = asyncio.create_task(peer.send(*(call(n, text=text) for n in range(count))))
        done, _ = await asyncio.wait([sending], timeout=0.5)
        assert not done
        assert (HIGH_WATER - LOW_WATER) / 16_000 < seen < 2 * HIGH_WATER / 16_000
        assert [(await peer.answer())["id"] for _ in range(count)] == list(range(count))
        await sending


async def test_a_stalled_peer_does_not_stop_the_end() -> None:
    peer = Peer()
    handle = create_stdio_server(FakeServer(), input=peer.input, output=peer.output)
    await handle.start()
    await peer.send(call(1, "blob", size=1 << 20))
    await asyncio.sleep(0.05)
    async with asyncio.timeout(5):
        await handle.stop()
    peer.close()


@pytest.mark.req("A-288", "A-306")
async def test_binary_files(tmp_path: Path) -> None:
    """A recorded conversation: regular files cannot be watched."""
    server = FakeServer()
    (tmp_path / "in").write_bytes(b"".join(encode_message(call(n, text="x" * 500)) + b"\n" for n in range(1000)))
    with open(tmp_path / "in", "rb") as given, open(tmp_path / "out", "wb") as written:  # noqa: ASYNC230
        async with asyncio.timeout(20):
            await create_stdio_server(server, input=given, output=written).serve()
        assert not given.closed
        assert not written.closed
    lines = (tmp_path / "out").read_bytes().split(b"\n")
    assert [json.decode(line)["id"] for line in lines[:-1]] == list(range(1000))
    assert lines[-1] == b""
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("typedmcp-reader")]


async def test_the_null_device_and_memory() -> None:
    with open(os.devnull, "rb") as nothing:  # noqa: ASYNC230
        out = io.BytesIO()
        async with asyncio.timeout(20):
            await create_stdio_server(FakeServer(), input=nothing, output=out).serve()
        assert out.getvalue() == b""
    source = io.BytesIO(encode_message(call(1)) + b"\n" + encode_message(call(2)))
    async with asyncio.timeout(20):
        await create_stdio_server(FakeServer(), input=source, output=out).serve()
    assert out.getvalue() == b'{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","id":2,"result":{}}\n'


@pytest.mark.req("A-288")
async def test_asyncio_streams() -> None:
    near, far = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=near)
    task = asyncio.create_task(create_stdio_server(FakeServer(), input=reader, output=writer).serve())
    other_reader, other_writer = await asyncio.open_connection(sock=far, limit=1 << 26)
    size = 5 << 20
    other_writer.write(encode_message(call(1, "blob", size=size)) + b"\n")
    await asyncio.sleep(0.1)
    other_writer.write(encode_message(call(2)) + b"\n")
    first = json.decode(await other_reader.readline())
    assert len(first["result"]["text"]) == size
    assert json.decode(await other_reader.readline())["id"] == 2
    other_writer.write_eof()
    async with asyncio.timeout(5):
        await task
    for each in (writer, other_writer):
        each.close()
        await each.wait_closed()


async def test_a_socket() -> None:
    near, far = socket.socketpair()
    with near, far:
        task = asyncio.create_task(create_stdio_server(FakeServer(), input=near.fileno(), output=near.fileno()).serve())
        far.sendall(encode_message(call(1)) + b"\n")
        loop = asyncio.get_running_loop()
        assert json.decode(await loop.run_in_executor(None, far.recv, 65536))["id"] == 1
        far.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(5):
            await task
        assert os.get_blocking(near.fileno())


@pytest.mark.req("A-155", "A-156", "A-157", "A-158", "A-160", "A-300", "A-307")
async def test_the_transport_driven_by_hand() -> None:
    peer = Peer()
    transport = StdioServerTransport(peer.input, peer.output)
    inbox = Inbox(transport)
    with pytest.raises(NotConnected):
        await transport.send(call(1))
    await transport.close()
    await transport.start()
    await peer.send(call(1))
    assert (await inbox.message()).id == 1
    await transport.send([call(2), call(3)])
    assert [(await peer.answer())["id"], (await peer.answer())["id"]] == [2, 3]
    assert transport.session is None
    await asyncio.gather(transport.close(), transport.close())
    await inbox.close()
    assert inbox.queue.empty()
    with pytest.raises(ConnectionClosed):
        await transport.send(call(4))
    peer.close()


async def test_send_waits_for_a_peer_that_does_not_read() -> None:
    peer = Peer()
    transport = StdioServerTransport(peer.input, peer.output)
    await transport.start()
    sending = asyncio.create_task(transport.send(call(1, text="x" * (2 << 20))))
    done, _ = await asyncio.wait([sending], timeout=0.1)
    assert not done
    assert len((await peer.answer())["params"]["text"]) == 2 << 20
    await sending
    again = asyncio.create_task(transport.send(call(1, text="x" * (2 << 20))))
    await asyncio.sleep(0.05)
    peer.close("from_server")
    with pytest.raises(ConnectionClosed):
        await again
    await transport.close()
    peer.close()


async def test_a_descriptor_that_is_not_open() -> None:
    read, write = os.pipe()
    os.close(write)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(TransportError, match="cannot use"):
        await create_stdio_server(FakeServer(), input=read, output=9999).start()
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(read)


async def test_nothing_is_left() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        async with serving(FakeServer()) as (peer, _):
            await peer.send(call(1))
            await peer.answer()
    assert len(os.listdir("/proc/self/fd")) == before
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_two_loops_serve_one_object() -> None:
    """F108: two threads, each with its own loop."""
    server = FakeServer()
    found: list[object] = []

    async def main() -> None:
        async with serving(server) as (peer, _):
            await peer.send(call(1))
            found.append((await peer.answer())["id"])

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == [1, 1]


@pytest.mark.req("A-159", "A-285", "A-311")
def test_exactly_the_interface() -> None:
    transport: ClientTransportInterface = StdioServerTransport()
    public = {name for name in {*dir(transport), *vars(transport)} if not name.startswith("_")}
    assert public == {name for name in dir(ClientTransportInterface) if not name.startswith("_")}
