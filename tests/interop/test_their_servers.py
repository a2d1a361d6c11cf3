"""Servers made with other libraries, driven over stdio by our client."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import pytest_asyncio

from typedmcp import MCPClient, MCPError, ToolError, types
from typedmcp.core.errors import PeerError, RequestTimeout, UnsupportedMethod

SERVER = Path(__file__).parent / "peers" / "server.py"
PAGED = Path(__file__).parent / "peers" / "paged.py"
LIMIT = 30.0
MODERN = "2026-07-28"
NEWEST_HANDSHAKE = "2025-11-25"

shared = pytest.mark.asyncio(loop_scope="module")
"""A test that uses the connection all share."""


@dataclass
class Case:
    """A server, what our client is told to speak, and what they must agree on."""

    python: str
    pinned: str | None
    revision: str

    @property
    def modern(self) -> bool:
        return self.revision == MODERN

    @property
    def structured(self) -> bool:
        """Whether the revision has structured content."""
        return self.revision >= "2025-06-18"

    @property
    def opening(self) -> list[str]:
        """What our client must send before anything else."""
        handshake = ["initialize", "notifications/initialized"]
        return (["server/discover"] if self.pinned in (None, MODERN) else []) + ([] if self.modern else handshake)


CASES = {
    "mcp 2.3.0": Case("python_2", None, MODERN),
    "mcp 2.3.0, modern": Case("python_2", MODERN, MODERN),
    "mcp 2.3.0, handshake": Case("python_2", "2025-06-18", "2025-06-18"),
    "mcp 1.30.0": Case("python_1", None, NEWEST_HANDSHAKE),
    "mcp 1.30.0, old handshake": Case("python_1", "2024-11-05", "2024-11-05"),
}


@dataclass
class Peer:
    """A running server, our client connected to it, and what goes over the pipes."""

    case: Case
    client: MCPClient
    errors: list[Exception]
    watch: Any


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=list(CASES))
async def peer(request: Any, connected: Any, watch_at: Any, tmp_path_factory: Any) -> AsyncIterator[Peer]:
    """One connection for several tests."""
    case = CASES[request.param]
    watch = watch_at(tmp_path_factory.mktemp("peer") / "watched.jsonl")
    command = watch.command(request.getfixturevalue(case.python), SERVER)
    async with connected(command, version=case.pinned) as here:
        yield Peer(case, here.client, here.errors, watch)
    assert here.errors == []
    assert watch.violations() == []
    watch.ended_by_itself()


@shared
@pytest.mark.req("M-039", "M-041", "M-052", "M-054", "M-055")
async def test_the_era_is_found_out(peer: Peer) -> None:
    async with asyncio.timeout(LIMIT):
        assert peer.client.protocol_version == peer.case.revision
        assert peer.client.server_info is not None
        assert peer.client.server_info.name == "peer"
        assert peer.client.instructions == "Be kind."
        assert peer.client.server_capabilities.tools is not None
        assert {"add", "slow"} <= {tool.name for tool in (await peer.client.list_tools()).tools}
    assert peer.watch.methods("client") == [*peer.case.opening, "tools/list"]
    if peer.case.opening[0] == "server/discover":
        meta = peer.watch.messages[0][1]["params"]["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == MODERN


@shared
@pytest.mark.req("A-153")
async def test_calls(peer: Peer) -> None:
    client = peer.client
    async with asyncio.timeout(LIMIT):
        tools = {tool.name: tool for tool in await client.tools()}
        result = await client.call_tool("add", {"a": 2, "b": 3})
        assert [block.text for block in result.content] == ["5"]
        assert not result.is_error
        assert await client.call("add", {"a": 2, "b": 3}) == 5
        assert await tools["add"].execute({"a": 40, "b": 2}) == 42
        assert await client.call("point", {"x": 1.5}) == {"x": 1.5, "label": "here"}

        picture = await client.call_tool("picture")
        assert [type(block) for block in picture.content] == [types.ImageContent]
        assert base64.b64decode(picture.content[0].data).startswith(b"\x89PNG")

        sums = await asyncio.gather(*(client.call("add", {"a": n, "b": n}) for n in range(20)))
        assert sums == [2 * n for n in range(20)]


@shared
async def test_structured_results_fit_their_schemas(peer: Peer) -> None:
    async with asyncio.timeout(LIMIT):
        tools = {tool.name: tool for tool in (await peer.client.list_tools()).tools}
        for name, arguments in {"add": {"a": 2, "b": 3}, "point": {"x": 1.5}}.items():
            result = await peer.client.call_tool(name, arguments)
            if peer.case.structured:
                jsonschema.validate(result.structured_content, tools[name].output_schema)
        with pytest.raises(ToolError, match="lie"):  # the server finds out itself
            await peer.client.call("lie")


@shared
async def test_failures(peer: Peer) -> None:
    client = peer.client
    async with asyncio.timeout(LIMIT):
        with pytest.raises(ToolError, match="tool fail"):
            await client.call("fail", {"why": "because"})
        with pytest.raises(ToolError, match="validation error"):
            await client.call("add", {"a": "x"})
        with pytest.raises(ToolError, match="Unknown tool: nope"):  # both make a result of it
            await client.call("nope")
        with pytest.raises(MCPError, match="Unknown resource"):
            await client.read_resource("peer://nothing")
        assert await client.call("add", {"a": 1, "b": 1}) == 2


@shared
async def test_resources_and_prompts(peer: Peer) -> None:
    client = peer.client
    async with asyncio.timeout(LIMIT):
        assert [each.uri for each in (await client.list_resources()).resources] == ["peer://note"]
        templates = (await client.list_resource_templates()).resource_templates
        assert [each.uri_template for each in templates] == ["peer://user/{name}"]
        (note,) = (await client.read_resource("peer://note")).contents
        assert isinstance(note, types.TextResourceContents)
        assert (note.text, note.mime_type) == ("read me", "text/plain")
        (user,) = (await client.read_resource("peer://user/bob")).contents
        assert user.text == "user bob"
        (prompt,) = (await client.list_prompts()).prompts
        assert (prompt.name, [each.name for each in prompt.arguments]) == ("greet", ["name"])
        (message,) = (await client.get_prompt("greet", {"name": "Ada"})).messages
        assert (message.role, message.content.text) == ("user", "Say hello to Ada.")
        if peer.case.modern:
            with pytest.raises(UnsupportedMethod):
                await client.ping()
        else:
            await client.ping()


@shared
@pytest.mark.req("M-138", "M-143", "M-144", "M-146", "M-147")
async def test_progress_timeouts_and_cancellation(peer: Peer) -> None:
    client = peer.client
    async with asyncio.timeout(LIMIT):
        steps: list[tuple[float, float | None]] = []
        value = await client.call(
            "slow", {"seconds": 0.1, "steps": 3}, on_progress=lambda done, total, _: steps.append((done, total))
        )
        assert (value, steps) == ("done", [(1, 3), (2, 3), (3, 3)])

        # Longer than the timeout, but never silent for as long; then ended in spite of the reports.
        slow = {"seconds": 1.5, "steps": 15}
        assert await client.call("slow", slow, timeout=0.9, reset_on_progress=True) == "done"
        with pytest.raises(RequestTimeout):
            await client.call("slow", slow, timeout=0.9, reset_on_progress=True, max_timeout=0.5)

        with pytest.raises(RequestTimeout):
            await client.call("slow", {"seconds": 20, "steps": 1}, timeout=0.3)

        begun = asyncio.Event()
        slow = {"seconds": 20, "steps": 1}
        task = asyncio.create_task(client.call("slow", slow, on_progress=lambda *_: begun.set()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        for _ in range(100):
            if await client.call("interruptions") == 3:
                break
            await asyncio.sleep(0.02)
        assert await client.call("interruptions") == 3
    calls = peer.watch.sent("client", "tools/call")
    given_up = [each["id"] for each in calls if each["params"]["name"] == "slow"][2:]
    cancelled = [each["params"]["requestId"] for each in peer.watch.sent("client", "notifications/cancelled")]
    assert cancelled == given_up


@pytest.mark.parametrize("pinned", [None, "2025-11-25"])
async def test_every_page_is_read(pinned: str | None, python_2: Path, connected: Any, watch: Any) -> None:
    async with asyncio.timeout(LIMIT), connected(watch.command(python_2, PAGED), version=pinned) as here:
        assert [tool.name for tool in await here.client.tools()] == [f"tool{number}" for number in range(5)]
        assert await here.client.call("tool4") == "tool4"
    pages = watch.sent("client", "tools/list")
    assert [each["params"].get("cursor") for each in pages] == [None, "2", "4"]


@pytest.mark.req("M-057")
async def test_a_pinned_modern_revision_fails_cleanly_at_an_old_server(
    python_1: Path, connected: Any, watch: Any
) -> None:
    async with asyncio.timeout(LIMIT):
        with pytest.raises(PeerError, match=MODERN):
            async with connected(watch.command(python_1, SERVER), version=MODERN):
                pass
    assert watch.methods("client") == ["server/discover"]
    watch.ended_by_itself()


@pytest.mark.req("M-049", "M-056")
async def test_a_refused_revision_leads_to_one_that_is_listed(
    python_2: Path, connected: Any, watch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client of the future meets the peer of today."""
    monkeypatch.setattr("typedmcp.client.negotiation.LATEST_PROTOCOL_VERSION", "2099-01-01")
    async with asyncio.timeout(LIMIT), connected(watch.command(python_2, SERVER)) as here:
        assert here.client.protocol_version == MODERN
        assert await here.client.call("add", {"a": 1, "b": 1}) == 2
    first, second, _ = (message for who, message in watch.messages if who == "client")
    assert watch.answer(first)["error"]["code"] == -32022
    assert (first["method"], second["method"]) == ("server/discover", "server/discover")


@pytest.mark.req("M-056", "M-144")
@pytest.mark.parametrize("python", ["python_2", "python_1"])
async def test_a_server_that_is_slow_to_start(
    python: str, request: pytest.FixtureRequest, connected: Any, watch: Any
) -> None:
    """The probe times out before the server runs; it reads the probe and what follows at once."""
    command = watch.command(request.getfixturevalue(python), SERVER)
    async with asyncio.timeout(LIMIT), connected(command, probe_timeout=0.05) as here:
        assert here.client.protocol_version == (MODERN if python == "python_2" else NEWEST_HANDSHAKE)
        assert await here.client.call("add", {"a": 1, "b": 1}) == 2
        assert here.errors == []
    assert watch.methods("client")[:2] == ["server/discover", "initialize"]
    watch.ended_by_itself()


async def test_the_same_command_as_one_line(python_2: Path, connected: Any) -> None:
    async with asyncio.timeout(LIMIT), connected(f"'{python_2}' '{SERVER}'") as here:
        assert await here.client.call("add", {"a": 1, "b": 1}) == 2


async def test_a_server_that_cannot_start(python_1: Path, connected: Any) -> None:
    async with asyncio.timeout(LIMIT):
        with pytest.raises(Exception, match="code 3") as failure:
            async with connected([str(python_1), "-c", "import sys; sys.exit(3)"]):
                pass
    assert type(failure.value).__module__.startswith("typedmcp."), failure.value
