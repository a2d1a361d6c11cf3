"""npm's reference server, which knows only the handshake, driven over stdio by our client."""

from __future__ import annotations

import asyncio
import base64
import gzip
import os
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from typedmcp import MCPClient, MCPError, ToolError, types
from typedmcp.core.errors import PeerError, RequestTimeout
from typedmcp.core.jsonrpc import JSONRPCRequest
from typedmcp.transports.stdio import StdioClientTransport
from typedmcp_wire.types.completion import CompletionArgument, CompletionContext, PromptReference

LIMIT = 30.0

shared = pytest.mark.asyncio(loop_scope="module")
"""A test that uses the connection all share."""


@dataclass
class Peer:
    """The server, our client connected to it, all that came unasked, and what goes over the pipes."""

    client: MCPClient
    here: Any
    watch: Any

    async def heard(self, method: str, count: int = 1) -> None:
        """Wait until so many notifications or requests of that method have come."""
        came = asyncio.Event()
        self.client.on("notification", lambda _: came.set())
        async with asyncio.timeout(LIMIT):
            while self.here.heard(method) < count:
                await came.wait()
                came.clear()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def peer(everything: Any, connected: Any, watch_at: Any, tmp_path_factory: Any) -> AsyncIterator[Peer]:
    """One connection for several tests."""
    watch = watch_at(tmp_path_factory.mktemp("everything") / "watched.jsonl")
    async with connected(watch.command(*everything.command), env={**os.environ, **everything.env}) as here:
        yield Peer(here.client, here, watch)
    assert here.errors == []
    assert watch.violations() == []
    assert watch.end["unreadable"] == []


@shared
@pytest.mark.req("M-054", "M-055")
async def test_it_is_found_to_be_of_the_handshake_era(peer: Peer) -> None:
    async with asyncio.timeout(LIMIT):
        assert peer.client.protocol_version == "2025-11-25"
        assert peer.client.server_info.name == "mcp-servers/everything"
        assert peer.client.instructions
        assert peer.client.server_capabilities.resources.subscribe is True
        await peer.heard("notifications/tools/list_changed")
    assert peer.watch.methods("client") == ["server/discover", "initialize", "notifications/initialized"]
    assert "error" in peer.watch.answer(peer.watch.messages[0][1])


@shared
@pytest.mark.req("A-153")
async def test_tools(peer: Peer) -> None:
    client = peer.client
    async with asyncio.timeout(LIMIT):
        tools = {tool.name: tool for tool in await client.tools()}
        assert {"echo", "get-sum", "get-tiny-image", "trigger-long-running-operation"} <= tools.keys()
        assert tools["echo"].parameters["required"] == ["message"]
        assert tools["get-structured-content"].descriptor.output_schema["type"] == "object"
        assert tools["echo"].descriptor.annotations.read_only_hint is True

        assert await client.call("echo", {"message": "hello"}) == "Echo: hello"
        assert await tools["get-sum"].execute({"a": 2, "b": 3.5}) == "The sum of 2 and 3.5 is 5.5."
        weather = await client.call("get-structured-content", {"location": "New York"})
        assert weather == {"temperature": 33, "conditions": "Cloudy", "humidity": 82}
        # A task is what this tool wants, and no client of ours asks for one.
        with pytest.raises(ToolError, match="task"):
            await client.call("simulate-research-query", {"topic": "bees"})


@shared
async def test_long_and_odd_texts(peer: Peer) -> None:
    odd = "\u2028\u2029\x85\x00\U0001f600 ünïcode\r\n"
    long = "ab\u00e9" * 200_000
    async with asyncio.timeout(LIMIT):
        texts = [odd, long, *map(str, range(20))]
        answers = await asyncio.gather(*(peer.client.call_tool("echo", {"message": text}) for text in texts))
        assert [answer.content[0].text for answer in answers] == [f"Echo: {text}" for text in texts]


@shared
async def test_failures(peer: Peer) -> None:
    async with asyncio.timeout(LIMIT):
        with pytest.raises(ToolError, match="Invalid arguments for tool echo"):
            await peer.client.call("echo", {})
        with pytest.raises(ToolError, match="nope not found"):
            await peer.client.call("nope")
        with pytest.raises(MCPError) as missing:
            await peer.client.read_resource("demo://nothing")
        assert missing.value.code == -32602
        assert await peer.client.call("echo", {"message": "still there"}) == "Echo: still there"


@shared
async def test_content_that_is_no_text(peer: Peer) -> None:
    client = peer.client
    async with asyncio.timeout(LIMIT):
        _, image, _ = (await client.call_tool("get-tiny-image")).content
        assert isinstance(image, types.ImageContent)
        assert (image.type, image.mime_type) == ("image", "image/png")
        assert base64.b64decode(image.data).startswith(b"\x89PNG")

        message, _ = (
            await client.call_tool("get-annotated-message", {"messageType": "error", "includeImage": True})
        ).content
        assert (message.annotations.audience, message.annotations.priority) == (["user", "assistant"], 1)

        _, *links = (await client.call_tool("get-resource-links", {"count": 3})).content
        assert [type(link) for link in links] == [types.ResourceLink] * 3
        assert all(link.uri.startswith("demo://resource/dynamic/") for link in links)

        _, embedded, _ = (await client.call_tool("get-resource-reference")).content
        assert isinstance(embedded, types.EmbeddedResource)
        assert isinstance(embedded.resource, types.TextResourceContents)

        arguments = {"name": "hello.gz", "data": "data:text/plain,hello", "outputType": "resource"}
        (packed,) = (await client.call_tool("gzip-file-as-resource", arguments)).content
        assert isinstance(packed.resource, types.BlobResourceContents)
        assert gzip.decompress(base64.b64decode(packed.resource.blob)) == b"hello"
        await peer.heard("notifications/resources/list_changed")


@shared
async def test_progress_of_a_long_call(peer: Peer) -> None:
    steps: list[tuple[float, float | None]] = []
    async with asyncio.timeout(LIMIT):
        said = await peer.client.call(
            "trigger-long-running-operation",
            {"duration": 0.4, "steps": 4},
            on_progress=lambda done, total, _: steps.append((done, total)),
        )
    assert said == "Long running operation completed. Duration: 0.4 seconds, Steps: 4."
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]


@shared
@pytest.mark.req("M-138", "M-144", "M-146")
async def test_timeouts_and_cancellation(peer: Peer) -> None:
    """The server never stops what it does, and goes on reporting; nobody must mind."""
    arguments = {"duration": 0.8, "steps": 4}
    steps: list[float] = []
    async with asyncio.timeout(LIMIT):
        with pytest.raises(RequestTimeout):
            await peer.client.call(
                "trigger-long-running-operation",
                arguments,
                timeout=0.3,
                on_progress=lambda done, *_: steps.append(done),
            )
        task = asyncio.create_task(peer.client.call("trigger-long-running-operation", arguments))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await peer.client.call("echo", {"message": "meanwhile"}) == "Echo: meanwhile"
        await asyncio.sleep(1)
        assert await peer.client.call("echo", {"message": "later"}) == "Echo: later"
    calls = peer.watch.sent("client", "tools/call")
    given_up = [each for each in calls if each["params"]["name"] == "trigger-long-running-operation"][-2:]
    cancelled = [each["params"]["requestId"] for each in peer.watch.sent("client", "notifications/cancelled")]
    assert cancelled == [each["id"] for each in given_up]
    assert [peer.watch.answer(each) for each in given_up] == [None, None]
    assert len(peer.watch.sent("server", "notifications/progress")) >= 4
    assert steps in ([], [1])


@shared
async def test_resources(peer: Peer) -> None:
    client = peer.client
    async with asyncio.timeout(LIMIT):
        uris = [each.uri for each in (await client.list_resources()).resources]
        assert "demo://resource/static/document/features.md" in uris
        (page,) = (await client.read_resource("demo://resource/static/document/features.md")).contents
        assert page.mime_type == "text/markdown"
        assert len(page.text) > 100
        templates = (await client.list_resource_templates()).resource_templates
        assert "demo://resource/dynamic/blob/{resourceId}" in [each.uri_template for each in templates]
        (blob,) = (await client.read_resource("demo://resource/dynamic/blob/7")).contents
        assert isinstance(blob, types.BlobResourceContents)
        assert b"Resource 7" in base64.b64decode(blob.blob)

        await client.subscribe_resource("demo://resource/dynamic/text/1")
        await client.call("toggle-subscriber-updates")
        await peer.heard("notifications/resources/updated")
        await client.unsubscribe_resource("demo://resource/dynamic/text/1")
        await client.call("toggle-subscriber-updates")


@shared
async def test_prompts_and_completion(peer: Peer) -> None:
    client = peer.client
    async with asyncio.timeout(LIMIT):
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert [(each.name, each.required) for each in prompts["args-prompt"].arguments] == [
            ("city", True),
            ("state", False),
        ]
        (message,) = (await client.get_prompt("args-prompt", {"city": "Oslo"})).messages
        assert (message.role, message.content.text) == ("user", "What's weather in Oslo?")
        filled = await client.get_prompt("resource-prompt", {"resourceType": "Blob", "resourceId": "2"})
        assert isinstance(filled.messages[1].content, types.EmbeddedResource)
        with pytest.raises(MCPError):
            await client.get_prompt("args-prompt", {})
        with pytest.raises(MCPError):
            await client.get_prompt("no such prompt")

        ref = PromptReference(name="completable-prompt")
        found = await client.complete(ref, CompletionArgument(name="department", value="S"))
        assert found.completion.values == ["Sales", "Support"]
        context = CompletionContext(arguments={"department": "Sales"})
        found = await client.complete(ref, CompletionArgument(name="name", value="E"), context)
        assert found.completion.values == ["Eve"]


@shared
async def test_ping_and_log_messages(peer: Peer) -> None:
    async with asyncio.timeout(LIMIT):
        await peer.client.ping()
        await peer.client.set_logging_level("debug")
        await peer.client.call("toggle-simulated-logging")
        await peer.heard("notifications/message")
        await peer.client.call("toggle-simulated-logging")
        await peer.client.ping()


@pytest.mark.parametrize("revision", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_every_handshake_revision(revision: str, everything: Any, connected: Any, watch: Any) -> None:
    async with asyncio.timeout(LIMIT), connected(watch.command(*everything.command), version=revision) as here:
        assert here.client.protocol_version == revision
        assert await here.client.call("echo", {"message": "hello"}) == "Echo: hello"
        assert here.errors == []
    assert watch.methods("client")[:2] == ["initialize", "notifications/initialized"]
    # The server has one set of messages for all revisions, so only ours are judged.
    assert watch.violations("client") == []
    watch.ended_by_itself()


@pytest.mark.req("M-057")
async def test_a_pinned_modern_revision_fails_cleanly(everything: Any, connected: Any, watch: Any) -> None:
    async with asyncio.timeout(LIMIT):
        with pytest.raises(PeerError, match="2026-07-28"):
            async with connected(watch.command(*everything.command), version="2026-07-28"):
                pass
    assert watch.methods("client") == ["server/discover"]
    watch.ended_by_itself()


class Boaster(StdioClientTransport):
    """Makes our client declare in `initialize` what it cannot do."""

    async def send(self, message: Any) -> None:
        if isinstance(message, JSONRPCRequest) and message.method == "initialize":
            declared = {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}
            params = {**msgspec.json.decode(msgspec.json.encode(message.params)), "capabilities": declared}
            message = JSONRPCRequest(id=message.id, method=message.method, params=params)
        await super().send(message)


async def test_requests_of_the_server_are_answered(everything: Any, connected: Any, watch: Any) -> None:
    command, *words = watch.command(*everything.command)
    async with asyncio.timeout(LIMIT), connected(Boaster(command, words)) as here:
        peer = Peer(here.client, here, watch)
        await peer.heard("roots/list")
        calls: dict[str, Sequence[Any]] = {
            "trigger-sampling-request": ["sampling/createMessage", {"prompt": "Say something."}],
            "trigger-elicitation-request": ["elicitation/create", {}],
        }
        for tool, (method, arguments) in calls.items():
            with pytest.raises(ToolError):
                await here.client.call(tool, arguments)
            assert here.heard(method) == 1
        assert await here.client.call("echo", {"message": "unhurt"}) == "Echo: unhurt"
        assert here.errors == []
    for method in ("roots/list", "sampling/createMessage", "elicitation/create"):
        (asked,) = watch.sent("server", method)
        answers = [each for who, each in watch.messages if who == "client" and "method" not in each]
        (answer,) = (each for each in answers if each["id"] == asked["id"])
        assert answer["error"]["code"] == -32601
    assert watch.violations() == []


@pytest.mark.req("M-077")
async def test_chatter_on_standard_error_goes_where_ours_goes(
    everything: Any, connected: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    async with asyncio.timeout(LIMIT), connected(everything.command) as here:
        assert await here.client.call("echo", {"message": "hello"}) == "Echo: hello"
        assert here.errors == []
    assert "Starting default (STDIO) server..." in capfd.readouterr().err


@pytest.mark.req("M-078")
async def test_a_server_started_through_npm_ends_with_all_its_processes(
    everything: Any, connected: Any, token: str, running: Any
) -> None:
    """npm starts a shell that starts Node; whoever starts it knows only npm."""
    before = running(token)
    env = {**os.environ, **everything.env}
    async with asyncio.timeout(LIMIT), connected(everything.npx, env=env, cwd=str(everything.folder)) as here:
        assert await here.client.call("echo", {"message": "hello"}) == "Echo: hello"
        started = running(token) - before
        assert len(started) > 1
        assert len({os.getpgid(pid) for pid in started}) == 1
    assert running(token) - before == set()


@pytest.mark.req("M-078")
async def test_a_server_that_stays_is_ended(everything: Any, connected: Any, token: str, running: Any) -> None:
    """The timer behind the log messages keeps Node alive after the end of its input."""
    before = running(token)
    async with asyncio.timeout(LIMIT), connected(everything.command) as here:
        await here.client.call("toggle-simulated-logging")
        began = time.monotonic()
    assert 1.5 < time.monotonic() - began < 10
    assert running(token) - before == set()


async def test_a_server_that_is_killed(everything: Any, connected: Any, token: str, running: Any) -> None:
    before = running(token)
    async with asyncio.timeout(LIMIT):
        async with connected(everything.command) as here:
            (pid,) = running(token) - before
            call = asyncio.create_task(here.client.call("trigger-long-running-operation", {"duration": 20}))
            await asyncio.sleep(0.2)
            os.kill(pid, 9)
            with pytest.raises(Exception, match="signal 9") as failure:
                await call
            assert type(failure.value).__name__ == "ConnectionClosed"
