"""The client's side of WebSocket, against servers that speak it by hand."""

from __future__ import annotations

import asyncio
import base64
import datetime
import gc
import hashlib
import json
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.transports.test_websocket_server import BINARY, CLOSE, PATIENCE, PING, PONG, TEXT, Wire, listening
from transport_fakes import FakeServer, Inbox, call

from typedmcp.core.errors import ConnectionClosed, MessageError, NotConnected, TransportError, UsageError
from typedmcp.core.jsonrpc import JSONRPCRequest
from typedmcp.core.transport import ClientTransportInterface
from typedmcp.transports.websocket import (
    WebSocketClientTransport,
    WebSocketHandshakeError,
    client,
    create_websocket_client_transport,
    create_websocket_routes,
)

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
Script = Callable[[Wire], Awaitable[None]]


def accept_of(key: str) -> str:
    return base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()


async def agree(wire: Wire, **changes: str) -> dict[str, str]:
    """Answer the handshake; `changes` to the headers of the answer."""
    first, asked = await wire.head()
    assert first.startswith("GET /mcp")
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Accept": accept_of(asked["sec-websocket-key"]),
        "Sec-WebSocket-Protocol": "mcp",
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    lines = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in headers.items())]
    wire.writer.write("\r\n".join([*lines, "", ""]).encode())
    return asked


@asynccontextmanager
async def scripted(script: Script) -> AsyncIterator[str]:
    """A server that runs `script` for each connection; what the script raises fails the test."""
    tasks: list[asyncio.Task[None]] = []

    async def serve(wire: Wire) -> None:
        try:
            await script(wire)
        finally:
            await wire.leave()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.create_task(serve(Wire(reader, writer, masks=False))))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()
        async with asyncio.timeout(PATIENCE):
            for task in tasks:
                await task


@asynccontextmanager
async def connected(url: str, **options: Any) -> AsyncIterator[tuple[WebSocketClientTransport, Inbox]]:
    transport = WebSocketClientTransport(url, **options)
    inbox = Inbox(transport)
    await transport.start()
    try:
        yield transport, inbox
    finally:
        await transport.close()


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


# -- the handshake -----------------------------------------------------------------------------------------------------


@pytest.mark.req("A-276", "A-277", "A-279", "A-280", "A-284")
async def test_the_handshake_and_masked_frames() -> None:
    asked: list[dict[str, str]] = []

    async def script(wire: Wire) -> None:
        asked.append(await agree(wire))
        assert [(await wire.message())["id"] for _ in range(3)] == [1, 2, 3]
        assert wire.masked == [True, True, True]
        assert await wire.closed() == (1000, "")
        wire.write(CLOSE, b"\x03\xe8")
        await wire.eof()

    async with scripted(script) as url:
        for _ in range(2):
            transport = create_websocket_client_transport(url, headers={"Authorization": "Bearer x", "X-Own": "1"})
            await transport.start()
            await transport.send(call(1))
            await transport.send([call(2), call(3)])
            await transport.close()
    first = asked[0]
    assert (first["upgrade"], first["connection"].lower()) == ("websocket", "upgrade")
    assert (first["sec-websocket-version"], first["sec-websocket-protocol"]) == ("13", "mcp")
    assert (first["authorization"], first["x-own"]) == ("Bearer x", "1")
    assert len(base64.b64decode(first["sec-websocket-key"])) == 16
    assert first["sec-websocket-key"] != asked[1]["sec-websocket-key"]


@pytest.mark.req("A-278")
@pytest.mark.parametrize(
    "changes", [{"Sec_WebSocket_Accept": accept_of("other")}, {"Upgrade": "h2c"}, {"Connection": "close"}]
)
async def test_a_wrong_answer_to_the_handshake_rejects_start(changes: dict[str, str]) -> None:
    async def script(wire: Wire) -> None:
        await agree(wire, **changes)
        assert await wire.eof() == b"", "the client hangs up"

    async with scripted(script) as url:
        transport = WebSocketClientTransport(url)
        inbox = Inbox(transport)
        with pytest.raises(WebSocketHandshakeError, match="handshake") as caught:
            await transport.start()
        assert caught.value.status == 101
        with pytest.raises(NotConnected):
            await transport.send(call(1))
        await transport.close()
        assert inbox.queue.empty()


@pytest.mark.req("A-278")
@pytest.mark.parametrize(
    ("status", "advice"), [(401, "headers="), (403, "guard"), (404, "path"), (426, "426"), (200, "200")]
)
async def test_another_status_rejects_start(status: int, advice: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, text="no")

    async with listening([web.get("/mcp", answer)]) as port:
        transport = WebSocketClientTransport(f"ws://user:secret@127.0.0.1:{port}/mcp?token=secret")
        with pytest.raises(WebSocketHandshakeError, match=advice) as caught:
            await transport.start()
    assert isinstance(caught.value, TransportError)
    assert caught.value.status == status
    assert caught.value.url == f"ws://127.0.0.1:{port}/mcp"
    assert isinstance(caught.value.__cause__, aiohttp.WSServerHandshakeError)
    assert "secret" not in str(caught.value)


@pytest.mark.req("A-278")
async def test_nobody_listens_and_nobody_answers() -> None:
    async with scripted(Wire.leave) as url:
        pass
    with pytest.raises(TransportError, match="cannot connect") as caught:
        await WebSocketClientTransport(url).start()
    assert isinstance(caught.value.__cause__, OSError)

    async def garbage(wire: Wire) -> None:
        await wire.head()
        wire.writer.write(b"SSH-2.0-nonsense\r\n\r\n")

    async with scripted(garbage) as url:
        with pytest.raises(TransportError, match="cannot connect"):
            await WebSocketClientTransport(url).start()

    async def silent(wire: Wire) -> None:
        await wire.eof()

    async with scripted(silent) as url:
        with pytest.raises(TransportError, match="in time"):
            await WebSocketClientTransport(url, open_timeout=0.1).start()


@pytest.mark.req("A-282")
@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_schemes(scheme: str) -> None:
    server = listening(create_websocket_routes(FakeServer()))
    async with server as port, connected(f"{scheme}://127.0.0.1:{port}/mcp") as (transport, inbox):
        await transport.send(call(1))
        assert (await inbox.message()).id == 1


@pytest.mark.req("A-282")
@pytest.mark.parametrize("scheme", ["wss", "https"])
async def test_schemes_with_tls(scheme: str, tmp_path: Path) -> None:
    server_side, client_side = certificates(tmp_path)
    async with listening(create_websocket_routes(FakeServer(), limit=2**16), ssl_context=server_side) as port:
        url = f"{scheme}://127.0.0.1:{port}/mcp"
        with pytest.raises(TransportError, match="certificate"):
            await WebSocketClientTransport(url).start()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=client_side)) as session:
            async with connected(url, session=session) as (transport, inbox):
                await transport.send(call(1))
                assert (await inbox.message()).id == 1
                await transport.send(call(2, text="x" * 2**22))
                assert "65536" in str(await inbox.error())
            assert not session.closed


def certificates(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A self-signed certificate for 127.0.0.1: a server's context, and the context of a client that trusts it."""
    import ipaddress

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(
        now + datetime.timedelta(days=1)
    )
    certificate = builder.add_extension(address, critical=False).sign(key, hashes.SHA256())
    file = folder / "server.pem"
    file.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(file)
    return server_side, ssl.create_default_context(cafile=str(file))


@pytest.mark.req("A-282")
@pytest.mark.parametrize("url", ["ftp://host/mcp", "127.0.0.1:8000/mcp", "ws:///mcp", "python server.py", "", 7])
def test_what_is_no_url(url: Any) -> None:
    with pytest.raises(UsageError, match=r"ws://|no URL"):
        WebSocketClientTransport(url)


# -- frames ------------------------------------------------------------------------------------------------------------


async def test_what_is_no_message_is_an_event_and_the_connection_stays() -> None:
    async def script(wire: Wire) -> None:
        await agree(wire)
        for text in ("{", "", "[]", '{"jsonrpc":"2.0"}', '{"jsonrpc":"2.0","id":1,"result":{}}'):
            wire.write(TEXT, text)
        assert await wire.closed() == (1000, "")

    async with scripted(script) as url, connected(url) as (_, inbox):
        for _ in range(4):
            assert isinstance(await inbox.error(), MessageError)
        assert (await inbox.message()).id == 1


@pytest.mark.parametrize(
    ("opcode", "payload", "code", "text"),
    [(BINARY, b"{}", 1003, "binary"), (TEXT, b'"\xff"', 1007, "UTF-8"), (TEXT, b"x" * 101, 1009, "limit of 100 bytes")],
)
async def test_frames_that_end_the_connection(opcode: int, payload: bytes, code: int, text: str) -> None:
    async def script(wire: Wire) -> None:
        await agree(wire)
        wire.write(TEXT, b" " * 99 + b"x")
        wire.write(opcode, payload)
        assert (await wire.closed())[0] == code

    async with scripted(script) as url, connected(url, limit=100) as (transport, inbox):
        assert isinstance(await inbox.error(), MessageError)
        error = await inbox.error()
        assert isinstance(error, ConnectionClosed)
        assert text in str(error)
        assert str(code) in str(error)
        await inbox.close()
        with pytest.raises(ConnectionClosed, match=text):
            await transport.send(call(1))


# -- ends --------------------------------------------------------------------------------------------------------------


@pytest.mark.req("A-281", "A-285", "A-159")
async def test_close_is_idempotent_and_emits_one_event() -> None:
    async with listening(create_websocket_routes(FakeServer())) as port:
        transport = WebSocketClientTransport(f"ws://127.0.0.1:{port}/mcp")
        conforming: ClientTransportInterface = transport
        assert conforming.session is None
        public = {name for name in dir(transport) if not name.startswith("_")}
        assert public == {"start", "send", "close", "emitter", "session"}
        inbox = Inbox(transport)
        await transport.close()
        with pytest.raises(NotConnected, match="start"):
            await transport.send(call(1))
        await transport.start()
        with pytest.raises(UsageError, match="connected"):
            await transport.start()
        await asyncio.gather(transport.close(), transport.close())
        await transport.close()
        await inbox.close()
        assert inbox.queue.empty()
        with pytest.raises(ConnectionClosed):
            await transport.send(call(1))
        # A new start is a new connection.
        await transport.start()
        await transport.send(JSONRPCRequest(id=5, method="echo"))
        assert (await inbox.message()).id == 5
        await transport.close()
        await inbox.close()


async def test_a_close_that_is_cancelled_goes_on() -> None:
    left = asyncio.Event()

    async def script(wire: Wire) -> None:
        await agree(wire)
        await wire.closed()
        await left.wait()
        wire.write(CLOSE, b"\x03\xe8")

    async with scripted(script) as url, connected(url) as (transport, inbox):
        closing = asyncio.create_task(transport.close())
        await asyncio.sleep(0.05)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        left.set()
        await inbox.close()


async def test_a_server_that_does_not_answer_a_close_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_FAREWELL", 0.2)

    async def script(wire: Wire) -> None:
        await agree(wire)
        await wire.eof()

    async with scripted(script) as url, connected(url) as (transport, inbox):
        began = asyncio.get_running_loop().time()
        await transport.close()
        assert asyncio.get_running_loop().time() - began < 1
        await inbox.close()
        assert inbox.queue.empty()


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b"\x03\xf3boom", "code 1011: boom"),
        (b"\x03\xe9", "code 1001"),
        (b"\x03\xe8", "code 1000"),
        (b"", "code 1005"),
        (b"\x0f\xa1own", "code 4001: own"),
    ],
)
async def test_a_close_by_the_server_is_told_with_its_code(payload: bytes, text: str) -> None:
    async def script(wire: Wire) -> None:
        await agree(wire)
        await wire.message()
        wire.write(CLOSE, payload)
        await wire.closed()

    async with scripted(script) as url, connected(url) as (transport, inbox):
        await transport.send(call(1))
        error = await inbox.error()
        assert isinstance(error, ConnectionClosed)
        assert text in str(error)
        await inbox.close()
        with pytest.raises(ConnectionClosed, match=text):
            await transport.send(call(2))


async def test_a_server_that_disappears() -> None:
    async def script(wire: Wire) -> None:
        await agree(wire)
        await wire.message()
        wire.write(TEXT, '{"jsonrpc":"2.0","id":1,"result":{}}')
        await wire.writer.drain()
        wire.writer.close()

    async with scripted(script) as url, connected(url) as (transport, inbox):
        await transport.send(call(1))
        assert (await inbox.message()).id == 1
        assert "1006" in str(await inbox.error())
        await inbox.close()


async def test_a_server_without_a_sign_of_life_is_gone() -> None:
    async def script(wire: Wire) -> None:
        await agree(wire)
        assert await wire.frame() == (PING, b"")
        wire.write(PONG, b"")
        assert await wire.frame() == (PING, b"")
        await wire.eof()

    async with scripted(script) as url, connected(url, heartbeat=0.2) as (_, inbox):
        assert "no longer answers pings" in str(await inbox.error())
        await inbox.close()


async def test_a_ping_of_the_server_is_answered() -> None:
    async def script(wire: Wire) -> None:
        await agree(wire)
        wire.write(PING, b"you?")
        assert await wire.frame() == (PONG, b"you?")
        await wire.closed()

    async with scripted(script) as url, connected(url) as (_, inbox):
        await asyncio.sleep(0.05)
        assert inbox.queue.empty()


async def test_a_message_beyond_the_limit_of_the_server() -> None:
    async with listening(create_websocket_routes(FakeServer(), limit=10_000)) as port:
        for size in (10_000, 2**25):
            async with connected(f"ws://127.0.0.1:{port}/mcp") as (transport, inbox):
                sending = asyncio.create_task(transport.send(call(1, text="x" * size)))
                error = await inbox.error()
                assert "1009" in str(error)
                assert "a message may have 10000 bytes" in str(error)
                await inbox.close()
                await asyncio.wait([sending])
                assert sending.exception() is None or "1009" in str(sending.exception())


async def test_send_waits_for_a_slow_server() -> None:
    go = asyncio.Event()

    async def script(wire: Wire) -> None:
        await agree(wire)
        await go.wait()
        for number in range(40):
            assert (await wire.message())["id"] == number
        await wire.closed()

    async with scripted(script) as url, connected(url) as (transport, _):
        sent: list[int] = []

        async def send() -> None:
            for number in range(40):
                await transport.send(call(number, text="x" * 2**20))
                sent.append(number)

        sending = asyncio.create_task(send())
        await asyncio.sleep(0.3)
        assert len(sent) < 30
        go.set()
        await sending


async def test_the_loop_may_end_first() -> None:
    """As asyncio.run does it: every task is cancelled, and nothing is left unclosed."""

    async def script(wire: Wire) -> None:
        await agree(wire)
        await wire.eof()

    async with scripted(script) as url:
        transport = WebSocketClientTransport(url)
        inbox = Inbox(transport)
        before = asyncio.all_tasks()
        await transport.start()
        (running,) = [task for task in asyncio.all_tasks() - before if "_run" in repr(task.get_coro())]
        running.cancel()
        await inbox.close()
        await asyncio.wait([running])


@pytest.mark.req("A-316")
def test_nothing_heavy_is_loaded_before_it_is_used() -> None:
    code = (
        "import sys, json, typedmcp.transports.websocket as ws; before = 'aiohttp' in sys.modules; "
        "ws.MCP_WEBSOCKET_SUBPROTOCOL; ws.WebSocketClientTransport; "
        "print(json.dumps([before, sorted(m for m in sys.modules if m.startswith('typedmcp.transports.websocket.'))]))"
    )
    before, loaded = json.loads(subprocess.check_output([sys.executable, "-c", code], timeout=PATIENCE))
    assert not before
    assert "typedmcp.transports.websocket.server" not in loaded
    with pytest.raises(ImportError):
        from typedmcp.transports.websocket import nonsense  # type: ignore[attr-defined] # noqa: F401
