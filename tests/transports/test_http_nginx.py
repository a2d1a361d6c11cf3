"""Behind a real nginx: a path prefix, and otherwise as it comes (HTTP/1.0 to the server, buffering on)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from http_tools import PATIENCE, Tools, make, serving, serving_asgi, until

from typedmcp import MCPClient, connect
from typedmcp.core.errors import RequestLost
from typedmcp.transports.asgi import create_asgi_app
from typedmcp.transports.http import ENDPOINT, HTTPClientTransport, create_app

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
KINDS = pytest.mark.parametrize("kind", ["aiohttp", "httptools", "h11"])
VERSIONS = pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
BEAT = 0.4
"""Seconds between the comments of an idle stream."""
PROXY_PATIENCE = 2
"""Seconds of silence after which /short/ gives a stream up; nginx's default is 60."""

CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location /tools/ {{
            proxy_pass http://127.0.0.1:{target}/;
        }}
        location /large/ {{
            proxy_pass http://127.0.0.1:{target}/;
            client_max_body_size 16m;
        }}
        location /short/ {{
            proxy_pass http://127.0.0.1:{target}/;
            proxy_read_timeout {patience}s;
        }}
    }}
}}
"""


def free_port() -> int:
    """A port from below the range the system hands out to other tests meanwhile."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@asynccontextmanager
async def proxied(folder: Path, target: int) -> AsyncIterator[str]:
    """The address of an nginx in front of a port."""
    if NGINX is None:
        message = "no nginx on this machine (Debian: apt-get install nginx-light)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    port = free_port()
    conf = folder / "nginx.conf"
    conf.write_text(CONFIGURATION.format(folder=folder, port=port, target=target, patience=PROXY_PATIENCE))
    log = folder / "error.log"
    process = await asyncio.create_subprocess_exec(NGINX, "-p", str(folder), "-c", str(conf), "-e", str(log))
    try:
        async with asyncio.timeout(PATIENCE):
            while not await _answers(port):
                assert process.returncode is None, log.read_text()
                await asyncio.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


class Scene:
    """A server behind a proxy."""

    def __init__(self, address: str, tools: Tools, endpoint: Any) -> None:
        self.address = address
        self.tools = tools
        self.endpoint = endpoint

    @asynccontextmanager
    async def client(self, version: str, place: str = "tools", **options: Any) -> AsyncIterator[MCPClient]:
        async with connect(f"{self.address}/{place}/mcp", version=version, timeout=PATIENCE, **options) as client:
            yield client


@asynccontextmanager
async def scene(kind: str, folder: Path, **options: Any) -> AsyncIterator[Scene]:
    tools = Tools()
    server = make(tools)
    options.setdefault("keep_alive", BEAT)
    if kind == "aiohttp":
        app = create_app(server, **options)
        async with serving(app) as site, proxied(folder, site.port) as address:
            yield Scene(address, tools, app[ENDPOINT])
    else:
        asgi = create_asgi_app(server, **options)
        async with serving_asgi(asgi, kind) as site, proxied(folder, site.port) as address:
            yield Scene(address, tools, asgi.endpoint)


@KINDS
@VERSIONS
async def test_calls_pass(kind: str, version: str, tmp_path: Path) -> None:
    async with scene(kind, tmp_path) as behind, behind.client(version) as client:
        assert await client.call("add", {"a": 20, "b": 22}) == 42
        sums = await asyncio.gather(*(client.call("add", {"a": n, "b": 1}) for n in range(20)))
        assert sums == list(range(1, 21))
        for size in (1_000_000, 3_000_000):
            assert len(await client.call("blob", {"size": size})) == size
        with pytest.raises(RequestLost, match="413 Request Entity Too Large") as caught:
            await client.call("deep", {"value": "x" * 1_100_000})
        assert caught.value.status == 413
        async with behind.client(version, "large") as wide:
            assert await wide.call("deep", {"value": "x" * 1_100_000}) == "deep"


@KINDS
@VERSIONS
@pytest.mark.req("M-134")
async def test_progress_is_not_held_back(kind: str, version: str, tmp_path: Path) -> None:
    """The tool goes on only when its first words have arrived."""
    async with scene(kind, tmp_path) as behind, behind.client(version) as client:
        steps: list[float] = []

        def heard(progress: float, total: float | None, message: str | None) -> None:
            steps.append(progress)
            if len(steps) == 2:
                behind.tools.go.set()

        assert await client.call("steps", {"before": 2, "after": 2}, on_progress=heard) == "stepped"
        assert steps == [1, 2, 3, 4]


@KINDS
@pytest.mark.req("M-134")
async def test_silent_streams_outlast_the_proxys_patience(kind: str, tmp_path: Path) -> None:
    """A comment now and then is what keeps them: of calls of each era, and of the stream got by GET."""
    async with (
        scene(kind, tmp_path) as behind,
        behind.client("2025-11-25", "short") as session,
        behind.client("2026-07-28", "short") as modern,
    ):
        notes: list[Any] = []
        session.on("notification", notes.append)
        calls = [asyncio.ensure_future(client.call("wait", {})) for client in (session, modern)]
        await asyncio.sleep(2 * PROXY_PATIENCE + 2 * BEAT)
        assert not any(call.done() for call in calls)
        behind.tools.go.set()
        assert await asyncio.gather(*calls) == ["went on", "went on"]
        (state,) = behind.endpoint.sessions
        state.push({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "late"}})
        await until(lambda: [note.method for note in notes] == ["notifications/message"])
        assert len(behind.tools.ended) == 2


@pytest.mark.req("H-047")
async def test_without_comments_the_proxy_breaks_streams_and_the_client_resumes(tmp_path: Path) -> None:
    async with (
        scene("aiohttp", tmp_path, keep_alive=None) as behind,
        behind.client("2025-11-25", "short") as session,
        behind.client("2026-07-28", "short") as modern,
    ):
        call = asyncio.ensure_future(session.call("wait", {}))
        with pytest.raises(RequestLost, match="504"):
            await modern.call("wait", {})
        await asyncio.sleep(BEAT)
        behind.tools.go.set()
        assert await call == "went on"


@KINDS
@pytest.mark.req("M-139")
async def test_a_client_that_leaves_is_noticed_and_a_session_ends(kind: str, tmp_path: Path) -> None:
    async with scene(kind, tmp_path) as behind:
        async with behind.client("2026-07-28") as client:
            call = asyncio.ensure_future(client.call("wait", {}))
            await behind.tools.begun.wait()
            call.cancel()
            await until(lambda: len(behind.tools.stopped) == 1)
        transport = HTTPClientTransport(f"{behind.address}/tools/mcp")
        async with connect(transport, version="2025-11-25") as client:
            assert await client.call("add", {}) == 3
            assert len(behind.endpoint.sessions) == 1
        await until(lambda: len(behind.endpoint.sessions) == 0)
