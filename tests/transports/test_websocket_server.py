"""The server's side of WebSocket, spoken to by hand: upgrade, frames, ends."""

from __future__ import annotations

import asyncio
import gc
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from transport_fakes import FakeServer, Inbox, call

from typedmcp.core.errors import ConnectionClosed, MessageError, NotConnected, UsageError
from typedmcp.core.jsonrpc import JSONRPCRequest
from typedmcp.core.transport import ClientTransportInterface
from typedmcp.transports.websocket import (
    WebSocketServer,
    WebSocketServerTransport,
    create_websocket_routes,
    create_websocket_server,
)

PATIENCE = 10.0
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


@asynccontextmanager
async def listening(
    routes: Iterable[web.RouteDef] = (),
    *,
    middlewares: Iterable[Any] = (),
    on_shutdown: Iterable[Any] = (),
    **tcp: Any,
) -> AsyncIterator[int]:
    """An aiohttp application on a free port of the loopback interface."""
    app = web.Application(middlewares=list(middlewares))
    app.add_routes(list(routes))
    app.on_shutdown.extend(on_shutdown)
    runner = web.AppRunner(app, shutdown_timeout=PATIENCE)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, **tcp).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def encode_frame(opcode: int, payload: bytes, *, mask: bytes = b"", fin: bool = True) -> bytes:
    size = len(payload)
    bit = 0x80 if mask else 0
    head = bytes([(0x80 if fin else 0) | opcode])
    if size < 126:
        head += bytes([bit | size])
    elif size < 65536:
        head += bytes([bit | 126]) + struct.pack(">H", size)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", size)
    if mask:
        # A mask of one byte four times, so that a big payload costs nothing.
        payload = payload.translate(bytes(value ^ mask[0] for value in range(256)))
        head += mask
    return head + payload


class Wire:
    """One end of a TCP connection on which WebSocket is spoken by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, masks: bool) -> None:
        self.reader = reader
        self.writer = writer
        self.masks = masks
        self.masked: list[bool] = []

    async def head(self) -> tuple[str, dict[str, str]]:
        """The first line and the headers of an HTTP message."""
        async with asyncio.timeout(PATIENCE):
            text = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = text.strip().split("\r\n")
        return first, {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def write(self, opcode: int, payload: bytes | str, *, fin: bool = True) -> None:
        data = payload.encode() if isinstance(payload, str) else payload
        self.writer.write(encode_frame(opcode, data, mask=b"\x55" * 4 if self.masks else b"", fin=fin))

    def ask(self, request_id: object, method: str = "echo", **params: Any) -> None:
        frame = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        self.write(TEXT, json.dumps(frame))

    async def frame(self) -> tuple[int, bytes]:
        """The next frame: its opcode and payload."""
        async with asyncio.timeout(PATIENCE):
            first, second = await self.reader.readexactly(2)
            assert first & 0x80, "no message here is long enough for fragments"
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", await self.reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", await self.reader.readexactly(8))
            self.masked.append(bool(second & 0x80))
            mask = await self.reader.readexactly(4) if second & 0x80 else b""
            payload = await self.reader.readexactly(size)
        if mask:
            stream = (mask * (size // 4 + 1))[:size]
            payload = (int.from_bytes(payload, "big") ^ int.from_bytes(stream, "big")).to_bytes(size, "big")
        return first & 0x0F, payload

    async def message(self) -> Any:
        opcode, payload = await self.frame()
        assert opcode == TEXT, payload
        return json.loads(payload)

    async def closed(self) -> tuple[int, str]:
        """The close frame that comes now."""
        opcode, payload = await self.frame()
        assert opcode == CLOSE, payload
        return int.from_bytes(payload[:2], "big"), payload[2:].decode()

    async def eof(self) -> bytes:
        """What comes until the end of the connection."""
        async with asyncio.timeout(PATIENCE):
            return await self.reader.read()

    async def leave(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            pass


@asynccontextmanager
async def upgrading(
    port: int, path: str = "/mcp", *, method: str = "GET", **changes: str | None
) -> AsyncIterator[Wire]:
    """A connection on which an upgrade has been asked for; `changes` to the headers, None leaves one out."""
    headers = {
        "Host": "127.0.0.1",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": KEY,
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": "mcp",
    }
    asked = {**headers, **{name.replace("_", "-"): value for name, value in changes.items()}}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in asked.items() if value is not None)]
    wire = Wire(*await asyncio.open_connection("127.0.0.1", port, limit=2**24), masks=True)
    wire.writer.write("\r\n".join([*lines, "", ""]).encode())
    try:
        yield wire
    finally:
        await wire.leave()


@asynccontextmanager
async def talking(port: int) -> AsyncIterator[Wire]:
    """An open WebSocket."""
    async with upgrading(port) as wire:
        status, _ = await wire.head()
        assert status.startswith("HTTP/1.1 101"), status
        yield wire


class Watched:
    """An upgrade handler, and what its connections emit."""

    def __init__(self, mcp: Any = None, **options: Any) -> None:
        self.mcp = FakeServer() if mcp is None else mcp
        self.server: WebSocketServer = create_websocket_server(self.mcp, **options)
        self.transports: list[ClientTransportInterface] = []
        self.inboxes: list[Inbox] = []
        self.server.emitter.on("connection", self._connected)

    def _connected(self, transport: ClientTransportInterface) -> None:
        self.transports.append(transport)
        self.inboxes.append(Inbox(transport))

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        async with listening(self.server.routes(), on_shutdown=[self.server.shutdown]) as port:
            yield port


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
async def nothing_left_behind() -> AsyncIterator[None]:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    yield
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect(1)
    assert asyncio.all_tasks() - {asyncio.current_task()} == set()
    assert complaints == []


# -- the upgrade -------------------------------------------------------------------------------------------------------


@pytest.mark.req("A-261", "A-266", "A-267", "A-268", "A-269", "A-270")
async def test_an_upgrade_is_answered_and_messages_are_served() -> None:
    watched = Watched()
    async with watched.listening() as port, upgrading(port) as wire:
        status, headers = await wire.head()
        assert status.startswith("HTTP/1.1 101")
        assert headers["sec-websocket-accept"] == ACCEPT
        assert headers["sec-websocket-protocol"] == "mcp"
        assert "sec-websocket-extensions" not in headers
        wire.ask(1, text="hé\u2028")
        wire.write(TEXT, '{"jsonrpc":"2.0","method":"note"}')
        wire.write(TEXT, '{"jsonrpc":"2.0","id":9,"result":{}}')
        wire.ask("2")
        assert await wire.message() == {"jsonrpc": "2.0", "id": 1, "result": {"text": "hé\u2028"}}
        assert await wire.message() == {"jsonrpc": "2.0", "id": "2", "result": {}}
        assert wire.masked == [False, False]
        assert watched.mcp.notes == ["note"]
        assert (await watched.inboxes[0].message()).id == 1


NO_UPGRADES: list[tuple[dict[str, Any], int]] = [
    ({"Upgrade": None, "Connection": None}, 426),
    ({"Upgrade": "h2c"}, 426),
    ({"Sec_WebSocket_Key": None}, 400),
    ({"Sec_WebSocket_Version": "8"}, 426),
    ({"Sec_WebSocket_Version": None}, 426),
]


@pytest.mark.req("A-262", "A-264", "A-265")
@pytest.mark.parametrize(("changes", "status"), NO_UPGRADES)
async def test_what_is_no_upgrade_is_declined(changes: dict[str, Any], status: int) -> None:
    watched = Watched()

    async def other(request: web.Request) -> web.Response:
        return web.Response(text="the other handler", status=202)

    both = listening([web.get("/mcp", other)], middlewares=[watched.server.middleware])
    async with both as port, upgrading(port, **changes) as wire:
        assert "202" in (await wire.head())[0]
    async with listening(watched.server.routes()) as port, upgrading(port, **changes) as wire:
        first, headers = await wire.head()
        assert str(status) in first
        if status == 426:
            assert headers["sec-websocket-version"] == "13"
    assert watched.transports == []


@pytest.mark.req("A-263", "A-284")
async def test_other_paths_and_methods_are_declined() -> None:
    watched = Watched(path="/socket", subprotocol="mcp.v9")

    async def other(request: web.Request) -> web.Response:
        return web.Response(status=202)

    routes = [web.get("/mcp", other), web.post("/socket", other)]
    async with listening(routes, middlewares=[watched.server.middleware]) as port:
        async with upgrading(port) as wire:
            assert "202" in (await wire.head())[0]
        async with upgrading(port, "/socket", method="POST") as wire:
            assert "202" in (await wire.head())[0]
        async with upgrading(port, "/socket?query=1", Sec_WebSocket_Protocol="mcp, mcp.v9") as wire:
            first, headers = await wire.head()
            assert "101" in first
            assert headers["sec-websocket-protocol"] == "mcp.v9"
            wire.write(CLOSE, b"\x03\xe8")
            assert await wire.closed() == (1000, "")


@pytest.mark.req("A-266", "A-267")
@pytest.mark.parametrize(("offered", "chosen"), [(None, None), ("mcp", "mcp"), ("foo", None), ("foo, mcp", "mcp")])
async def test_the_subprotocol_is_chosen_only_when_offered(offered: str | None, chosen: str | None) -> None:
    async with Watched().listening() as port, upgrading(port, Sec_WebSocket_Protocol=offered) as wire:
        first, headers = await wire.head()
        assert "101" in first
        assert headers.get("sec-websocket-protocol") == chosen
        wire.ask(1)
        assert (await wire.message())["id"] == 1


@pytest.mark.parametrize("changes", [{"Sec_WebSocket_Key": "short"}, {"Connection": "keep-alive"}])
async def test_a_malformed_upgrade_is_a_bad_request(changes: dict[str, Any]) -> None:
    async with Watched().listening() as port, upgrading(port, **changes) as wire:
        assert "400" in (await wire.head())[0]


@pytest.mark.req("A-283")
async def test_a_guard_is_another_upgrade_handler_in_front() -> None:
    server = create_websocket_server(FakeServer())

    async def guard(request: web.Request) -> web.Response | None:
        return None if request.headers.get("Authorization") == "Bearer good" else web.Response(status=401)

    async def upgrade(request: web.Request) -> web.StreamResponse:
        handlers: list[Callable[[web.Request], Awaitable[web.StreamResponse | None]]] = [guard, server]
        for handler in handlers:
            response = await handler(request)
            if response is not None:
                return response
        raise web.HTTPNotFound

    async with listening([web.get("/mcp", upgrade)], on_shutdown=[server.shutdown]) as port:
        async with upgrading(port) as wire:
            assert "401" in (await wire.head())[0]
        async with upgrading(port, Authorization="Bearer good") as wire:
            assert "101" in (await wire.head())[0]


async def test_a_route_works_below_a_prefix() -> None:
    inner = web.Application()
    inner.add_routes(create_websocket_routes(FakeServer(), path="/mcp"))
    app = web.Application()
    app.add_subapp("/api", inner)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with upgrading(runner.addresses[0][1], "/api/mcp") as wire:
        assert "101" in (await wire.head())[0]
    await runner.cleanup()


@pytest.mark.parametrize(
    ("origins", "origin", "status"),
    [
        (None, "https://evil.example", "101"),
        (["https://good.example/"], "https://GOOD.example", "101"),
        (["https://good.example"], None, "101"),
        (["https://good.example"], "https://evil.example", "403"),
        ([], "null", "403"),
    ],
)
async def test_origins(origins: list[str] | None, origin: str | None, status: str) -> None:
    async with Watched(origins=origins).listening() as port, upgrading(port, Origin=origin) as wire:
        assert status in (await wire.head())[0]


async def test_the_principal_reaches_the_server() -> None:
    seen: list[object] = []

    class Server(FakeServer):
        async def dispatch(self, request: Any, context: Any = None) -> Any:
            seen.append(context.principal)
            return await super().dispatch(request, context)

    watched = Watched(Server(), principal=lambda request: request.headers["X-User"])
    async with watched.listening() as port, upgrading(port, X_User="alice") as wire:
        await wire.head()
        wire.ask(1)
        await wire.message()
    assert seen == ["alice"]


# -- frames ------------------------------------------------------------------------------------------------------------


@pytest.mark.req("A-274", "M-026")
async def test_what_is_no_message_is_answered_and_the_connection_stays() -> None:
    watched = Watched()
    two = '{"jsonrpc":"2.0","id":1,"method":"echo"}'
    frames = [("{", -32700), ("", -32700), (two + two, -32700), ("[]", -32600), ("7", -32600)]
    async with watched.listening() as port, talking(port) as wire:
        for text, code in frames:
            wire.write(TEXT, text)
            assert (await wire.message())["error"]["code"] == code, text
            assert isinstance(await watched.inboxes[0].error(), MessageError)
        wire.write(TEXT, '{"jsonrpc":"2.0","id":5,"method":true}')
        answer = await wire.message()
        assert (answer["id"], answer["error"]["code"]) == (5, -32600)
        await watched.inboxes[0].error()
        # What looks like a notification or a response gets no answer.
        wire.write(TEXT, '{"jsonrpc":"1.0","method":"note"}')
        wire.write(TEXT, '{"jsonrpc":"2.0","id":1,"result":1,"error":{}}')
        wire.ask(6)
        assert (await wire.message())["id"] == 6
        assert isinstance(await watched.inboxes[0].error(), MessageError)
        assert isinstance(await watched.inboxes[0].error(), MessageError)


@pytest.mark.req("A-274")
@pytest.mark.parametrize(
    ("opcode", "payload", "code", "text"),
    [
        (BINARY, b'{"jsonrpc":"2.0","id":1,"method":"echo"}', 1003, "binary"),
        (TEXT, b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', 1007, "UTF-8"),
        (3, b"", 1002, "opcode"),
    ],
)
async def test_frames_that_end_the_connection(opcode: int, payload: bytes, code: int, text: str) -> None:
    watched = Watched()
    async with watched.listening() as port, talking(port) as wire:
        wire.ask(1, "wait")
        await watched.mcp.begun.wait()
        wire.write(opcode, payload)
        assert (await wire.closed())[0] == code
        inbox = watched.inboxes[0]
        await inbox.message()
        error = await inbox.error()
        assert isinstance(error, ConnectionClosed)
        assert text in str(error)
        assert str(code) in str(error)
        await wire.leave()
        await inbox.close()
        await until(lambda: watched.mcp.cancelled == [1])


async def test_the_limit_counts_whole_messages() -> None:
    watched = Watched(limit=1000)
    head, tail = '{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"', '"}}'
    async with watched.listening() as port:
        async with talking(port) as wire:
            wire.write(TEXT, head + "x" * (1000 - len(head) - len(tail)) + tail)
            assert (await wire.message())["id"] == 1
            wire.write(TEXT, head + "x" * (1001 - len(head) - len(tail)) + tail)
            assert await wire.closed() == (1009, "a message may have 1000 bytes here")
            await watched.inboxes[0].message()
            assert "limit of 1000 bytes" in str(await watched.inboxes[0].error())
        async with talking(port) as wire:
            wire.write(TEXT, head, fin=False)
            for _ in range(20):
                wire.write(0, "x" * 100, fin=False)
            assert (await wire.closed())[0] == 1009


async def test_who_still_sends_reads_why_the_connection_ends() -> None:
    """A sender in the middle of a message that is too long must find the close frame, not a reset."""
    watched = Watched(limit=2**20)
    async with watched.listening() as port:
        for _ in range(5):
            async with talking(port) as wire:
                wire.write(TEXT, "x" * 2**25)
                assert (await wire.closed())[0] == 1009


async def test_fragments_and_pings_between_them() -> None:
    async with Watched().listening() as port, talking(port) as wire:
        wire.write(TEXT, '{"jsonrpc":"2.0",', fin=False)
        wire.write(PING, b"there?")
        wire.write(0, '"id":1,"method":"echo"}')
        assert await wire.frame() == (PONG, b"there?")
        assert (await wire.message())["id"] == 1


@pytest.mark.req("A-271")
async def test_a_fault_of_the_server_is_an_event() -> None:
    watched = Watched()
    async with watched.listening() as port, talking(port) as wire:
        wire.ask(1, "fault")
        assert (await wire.message())["error"] == {"code": -32603, "message": "Internal error"}
        await watched.inboxes[0].message()
        assert isinstance(await watched.inboxes[0].error(), RuntimeError)
        wire.ask(2)
        assert (await wire.message())["id"] == 2


async def test_a_burst_is_served_in_order() -> None:
    """More requests in one go than may run at once, all of them quick."""
    async with Watched(max_in_flight=256).listening() as port, talking(port) as wire:
        data = b"".join(
            encode_frame(TEXT, b'{"jsonrpc":"2.0","id":%d,"method":"echo"}' % n, mask=b"\x55" * 4) for n in range(3000)
        )
        wire.writer.write(data)
        assert [(await wire.message())["id"] for _ in range(3000)] == list(range(3000))


# -- ends --------------------------------------------------------------------------------------------------------------


@pytest.mark.req("A-275", "M-140")
async def test_a_clean_close_cancels_and_is_answered() -> None:
    watched = Watched()
    async with watched.listening() as port, talking(port) as wire:
        wire.ask(1, "wait")
        await watched.mcp.begun.wait()
        wire.write(CLOSE, b"\x03\xe8")
        assert await wire.closed() == (1000, "")
        assert await wire.eof() == b""
        await watched.inboxes[0].message()
        await watched.inboxes[0].close()
        await until(lambda: watched.mcp.cancelled == [1])


@pytest.mark.req("A-275")
async def test_an_abrupt_disconnect_cancels_and_is_reported() -> None:
    watched = Watched()
    async with watched.listening() as port, talking(port) as wire:
        wire.ask(1, "wait")
        await watched.mcp.begun.wait()
        wire.writer.transport.abort()
        await watched.inboxes[0].message()
        assert "1006" in str(await watched.inboxes[0].error())
        await watched.inboxes[0].close()
        await until(lambda: watched.mcp.cancelled == [1])


@pytest.mark.parametrize("hooked", [True, False])
@pytest.mark.parametrize("polite", [True, False])
async def test_a_shutdown_closes_with_1001(hooked: bool, polite: bool) -> None:
    watched = Watched()
    hooks = [watched.server.shutdown] if hooked else []
    began = 0.0
    loop = asyncio.get_running_loop()
    async with listening(watched.server.routes(), on_shutdown=hooks) as port:
        wire_context = talking(port)
        wire = await wire_context.__aenter__()
        wire.ask(1, "wait")
        await watched.mcp.begun.wait()

        async def client() -> tuple[int, str]:
            closed = await wire.closed()
            if polite:
                wire.write(CLOSE, b"\x03\xe9")
                await wire.eof()
                await wire.leave()
            return closed

        task = asyncio.create_task(client())
        began = loop.time()
    assert loop.time() - began < 3
    assert await task == (1001, "the server is shutting down")
    await until(lambda: watched.mcp.cancelled == [1])
    await wire_context.__aexit__(None, None, None)


async def test_a_cancelled_handler_says_goodbye() -> None:
    server = create_websocket_server(FakeServer())
    serving: list[asyncio.Task[Any]] = []

    async def upgrade(request: web.Request) -> web.StreamResponse:
        task = asyncio.create_task(server(request))
        serving.append(task)
        with pytest.raises(asyncio.CancelledError):
            await task
        raise asyncio.CancelledError

    async with listening([web.get("/mcp", upgrade)]) as port, talking(port) as wire:
        wire.ask(1)
        await wire.message()
        serving[0].cancel()
        assert (await wire.closed())[0] == 1001


@pytest.mark.parametrize("busy", [False, True])
async def test_who_gives_no_sign_of_life_is_dropped(busy: bool) -> None:
    """Also one who reads nothing, and so holds up what is written."""
    requests: list[web.Request] = []
    watched = Watched(heartbeat=0.4, principal=requests.append)
    async with watched.listening() as port, talking(port) as wire:
        if busy:
            wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
            for number in range(16):
                wire.ask(number, "blob", size=2**20)
        else:
            assert await wire.frame() == (PING, b"")
        await until(lambda: watched.transports)
        inbox = watched.inboxes[0]
        async with asyncio.timeout(PATIENCE):
            event, value = await inbox.next()
            while event == "message":
                event, value = await inbox.next()
        assert "no longer answers" in str(value) or "lost" in str(value)
        await inbox.close()
        assert requests[0].transport is None, "nothing is kept for it"


async def test_pongs_keep_a_quiet_connection() -> None:
    watched = Watched(heartbeat=0.2)
    async with watched.listening() as port, talking(port) as wire:
        for _ in range(4):
            opcode, payload = await wire.frame()
            assert opcode == PING
            wire.write(PONG, payload)
        wire.ask(1)
        assert (await wire.message())["id"] == 1


async def test_a_slow_reader_holds_up_only_itself() -> None:
    watched = Watched()
    size = 2**20
    async with watched.listening() as port, talking(port) as slow, talking(port) as quick:
        slow.writer.transport.pause_reading()  # type: ignore[attr-defined]
        for number in range(300):
            slow.ask(number, "blob", size=size, pad="x" * 20_000)
        for number in range(50):
            quick.ask(number)
            assert (await quick.message())["id"] == number
        await asyncio.sleep(0.3)
        taken = watched.inboxes[0].queue.qsize()
        assert 0 < taken < 150, "the slow reader's requests are still being read"
        slow.writer.transport.resume_reading()  # type: ignore[attr-defined]
        answers = [await slow.message() for _ in range(300)]
        assert [answer["id"] for answer in answers] == list(range(300))


# -- the transport alone -----------------------------------------------------------------------------------------------


@pytest.mark.req("A-272", "A-273", "A-275", "A-285", "A-159")
async def test_the_server_transport_by_hand() -> None:
    made: asyncio.Queue[tuple[WebSocketServerTransport, Inbox]] = asyncio.Queue()
    over = asyncio.Event()

    async def handler(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("mcp",))
        transport = WebSocketServerTransport(socket)
        with pytest.raises(NotConnected):
            await transport.send(call(1))
        with pytest.raises(UsageError, match="prepare"):
            await transport.start()
        await socket.prepare(request)
        inbox = Inbox(transport)
        await transport.start()
        with pytest.raises(UsageError, match="new one"):
            await transport.start()
        made.put_nowait((transport, inbox))
        await over.wait()
        return socket

    async with listening([web.get("/mcp", handler)]) as port, talking(port) as wire:
        transport, inbox = await made.get()
        conforming: ClientTransportInterface = transport
        assert conforming.session is None
        public = {name for name in dir(transport) if not name.startswith("_")}
        assert public == {"start", "send", "close", "emitter", "session"}
        await transport.send([call(1), JSONRPCRequest(method="note")])
        assert [(await wire.message())["method"] for _ in range(2)] == ["echo", "note"]
        wire.write(TEXT, '{"jsonrpc":"2.0","id":1,"result":{}}')
        assert (await inbox.message()).id == 1
        wire.write(TEXT, "nonsense")
        assert isinstance(await inbox.error(), MessageError)
        closing = asyncio.gather(transport.close(), transport.close())
        assert await wire.closed() == (1000, "")
        wire.write(CLOSE, b"\x03\xe8")
        await closing
        await transport.close()
        await inbox.close()
        assert inbox.queue.empty()
        with pytest.raises(ConnectionClosed):
            await transport.send(call(2))
        over.set()


async def test_a_server_transport_closed_before_it_was_started() -> None:
    async def handler(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(timeout=0.1)
        await socket.prepare(request)
        transport = WebSocketServerTransport(socket)
        inbox = Inbox(transport)
        await transport.close()
        await inbox.close()
        with pytest.raises(UsageError):
            await transport.start()
        return socket

    async with listening([web.get("/mcp", handler)]) as port, talking(port) as wire:
        assert (await wire.closed())[0] == 1000
