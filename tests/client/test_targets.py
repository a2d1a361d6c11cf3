"""What connect() takes, and what it says about what it does not take."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.client.helpers import MODERN, SEED, Events, ScriptedServer

import typedmcp
import typedmcp_wire
from typedmcp import App, MCPClient, MCPServer, Tool, ToolManager, connect
from typedmcp.core.errors import ConnectionClosed, TransportError, TypedMCPError, UsageError
from typedmcp.targets import transport_for
from typedmcp.transports.memory import MemoryTransport, serve_memory

SERVER = """
from typedmcp import App

app = App("child", "1.0.0")

@app.tool
async def add(a: int, b: int) -> int:
    return a + b

@app.tool
def place() -> str:
    import os
    return os.getcwd() + "|" + os.environ.get("MINE", "")

app.run()
"""


def calculator() -> App:
    app = App("calculator", "1.0.0")

    @app.tool
    def add(a: int, b: int) -> int:
        return a + b

    return app


def bare() -> MCPServer:
    manager = ToolManager()
    manager.add(Tool(id="1", name="add", execute=lambda arguments: arguments["a"] + arguments["b"]))
    return MCPServer(name="bare", version="1", tools=manager)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "a server.py"
    path.write_text(SERVER)
    return path


@pytest.mark.req("A-003", "A-153")
@pytest.mark.parametrize(
    "make", [calculator, bare, lambda: serve_memory(bare()).client], ids=["app", "server", "transport"]
)
async def test_targets_in_this_process(make: Callable[[], Any]) -> None:
    async with connect(make()) as client:
        assert isinstance(client, MCPClient)
        assert client.connected
        assert await client.call("add", {"a": 1, "b": 2}) == 3
    assert not client.connected


@pytest.mark.req("A-003", "A-153")
@pytest.mark.parametrize("shape", ["list", "tuple", "line"])
async def test_a_command(script: Path, shape: str) -> None:
    """A path with a space in it: one word of a list, quoted in a line."""
    words = [sys.executable, str(script)]
    target: Any = {"list": words, "tuple": tuple(words), "line": f"{sys.executable} '{script}'"}[shape]
    async with connect(target) as client:
        assert client.protocol_version == MODERN
        assert await client.call("add", {"a": 1, "b": 2}) == 3


async def test_where_and_with_what_a_command_runs(script: Path, tmp_path: Path) -> None:
    roots = [str(Path(str(module.__file__)).parents[1]) for module in (typedmcp, typedmcp_wire)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(roots), "MINE": "yes"}
    async with connect([sys.executable, str(script)], cwd=str(tmp_path), env=env, version=SEED) as client:
        assert await client.call("place") == f"{tmp_path}|yes"


async def test_a_program_that_is_not_there() -> None:
    """F048: one documented error."""
    with pytest.raises(TransportError, match="no-such-program"):
        async with connect(["/no-such-program", "x"]):
            pytest.fail("not reached")


async def test_a_program_that_ends_at_once() -> None:
    with pytest.raises(ConnectionClosed, match=r"3"):
        async with connect([sys.executable, "-c", "raise SystemExit(3)"]):
            pytest.fail("not reached")


async def test_awaiting_connects_and_leaves_the_end_to_the_caller() -> None:
    """F045: connected here, closed in another task."""
    client = await connect(calculator())
    assert await client.call("add", {"a": 1, "b": 2}) == 3
    await asyncio.create_task(client.disconnect())
    assert not client.connected


async def test_a_body_that_raises_closes_too() -> None:
    """F048: the error of the body comes out as itself."""
    with pytest.raises(KeyError, match="mine"):
        async with connect(calculator()) as client:
            raise KeyError("mine")
    assert not client.connected


async def test_a_connect_that_fails_closes_the_transport() -> None:
    server = ScriptedServer()
    leaving = asyncio.create_task(_enter(connect(server.client, timeout=0.02, probe_timeout=0.01)))
    await server.frame("server/discover")
    await server.frame("initialize")
    await server.ended()
    with pytest.raises(TypedMCPError):
        await leaving


async def test_a_connect_given_up_closes_the_transport() -> None:
    server = ScriptedServer()
    leaving = asyncio.create_task(_enter(connect(server.client)))
    await server.frame("server/discover")
    leaving.cancel()
    await server.ended()
    with pytest.raises(asyncio.CancelledError):
        await leaving


async def _enter(connecting: Any) -> None:
    async with connecting:
        pytest.fail("not reached")


@pytest.mark.req("A-102")
async def test_options_reach_the_client() -> None:
    server, events = ScriptedServer(), Events()
    entering = asyncio.create_task(
        connect(server.client, version=SEED, name="me", timeout=0.05, on=events.on).__aenter__()
    )
    asked = await server.shake_hands()
    client = await entering
    assert asked["params"]["clientInfo"] == {"name": "me", "version": "1.0.0"}
    assert events.names() == ["connect"]
    with pytest.raises(TimeoutError):
        await client.ping()
    await client.disconnect()


def test_a_transport_is_taken_as_it_is() -> None:
    transport = MemoryTransport()
    assert transport_for(transport) is transport


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("", "the command is empty; give the program and its arguments"),
        ("   ", "the command is empty"),
        ([], "the command is empty"),
        ((), "the command is empty"),
        ("gopher://host/mcp", "'gopher://host/mcp' is "),
        ("gopher://host/a b", "gopher://"),
        ("python 'server.py", "cannot be split into words: No closing quotation"),
        (None, "cannot connect to NoneType; give an App, a server, a transport"),
        (5, "cannot connect to int"),
        (b"python", "cannot connect to bytes"),
        (bytearray(b"python"), "cannot connect to bytearray"),
        ({"command": "python"}, "cannot connect to dict"),
        (Path("server.py"), "cannot connect to .*Path"),
        (App, "cannot connect to type"),
        (object(), "cannot connect to object"),
    ],
)
def test_bad_targets_are_told_before_anything_opens(target: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        connect(target)


async def test_an_unknown_revision_is_told_before_anything_is_sent() -> None:
    server = ScriptedServer()
    with pytest.raises(UsageError, match="is no revision; known are"):
        await connect(server.client, version="latest")
    await server.ended()
