"""A client of 2026-07-28: every request carries its context, results say their kind, the server never asks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.client.helpers import CHANGED, META, MODERN, SEED, Events, Frame, method_of, talking, text_result, turns

from typedmcp import App, connect, validate_message
from typedmcp.core.errors import InvalidResult, PeerError, UnsupportedMethod, UsageError
from typedmcp_wire import methods
from typedmcp_wire.types import CallToolRequestParams, SubscriptionFilter

CONTEXT = {
    META + "protocolVersion": MODERN,
    META + "clientCapabilities": {},
    META + "clientInfo": {"name": "taverna", "version": "1.0.0"},
}
LISTED = {"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"}


@pytest.mark.req("M-039", "M-041")
@pytest.mark.parametrize(
    ("attribute", "arguments"),
    [
        ("discover", ()),
        ("list_tools", ()),
        ("list_tools", ("c",)),
        ("call_tool", ("f", {"x": 1})),
        ("list_resources", ()),
        ("list_resource_templates", ()),
        ("read_resource", ("a:b",)),
        ("list_prompts", ()),
        ("get_prompt", ("p",)),
        ("listen", (SubscriptionFilter(tools_list_changed=True),)),
    ],
)
async def test_every_request_carries_its_context(attribute: str, arguments: tuple[Any, ...]) -> None:
    async with talking(MODERN) as (client, server):
        call = asyncio.create_task(getattr(client, attribute)(*arguments))
        frame = await server.frame()
        assert frame["params"]["_meta"] == CONTEXT
        assert validate_message(frame, MODERN, "client") == ()
        server.refuse(frame, 1)
        with pytest.raises(PeerError):
            await call


@pytest.mark.req("M-039")
async def test_own_meta_is_merged_and_cannot_replace_the_context() -> None:
    async with talking(MODERN) as (client, server):
        mine = {"com.example/x": [1], META + "protocolVersion": "2020-01-01", "traceparent": "00-a-b-01"}
        call = asyncio.create_task(client.list_tools(meta=mine))
        frame = await server.reply("tools/list", LISTED)
        assert frame["params"]["_meta"] == {**CONTEXT, "com.example/x": [1], "traceparent": "00-a-b-01"}
        await call
        assert mine[META + "protocolVersion"] == "2020-01-01", "the caller's own object is left alone"


@pytest.mark.parametrize("revision", [MODERN, SEED])
async def test_meta_inside_params_stays(revision: str) -> None:
    """request() with params that bring their own `_meta`: nothing of it is lost."""
    async with talking(revision) as (client, server):
        params = CallToolRequestParams(name="f", meta={"a": 1, "b": 1})
        call = asyncio.create_task(client.request(methods.CALL_TOOL, params, meta={"b": 2}))
        frame = await server.reply("tools/call", text_result("7"))
        assert {"a": 1, "b": 2}.items() <= frame["params"]["_meta"].items()
        await call
        assert params.meta == {"a": 1, "b": 1}


async def test_the_handshake_era_sends_only_what_was_asked_for() -> None:
    async with talking() as (client, server):
        call = asyncio.create_task(client.ping())
        assert "_meta" not in (await server.reply("ping", {})).get("params", {})
        await call
        call = asyncio.create_task(client.ping(meta={"a": 1}))
        assert (await server.reply("ping", {}))["params"] == {"_meta": {"a": 1}}
        await call


@pytest.mark.req("M-148")
async def test_progress_tokens_are_integers_and_differ() -> None:
    async with talking(MODERN) as (client, server):
        calls = [asyncio.create_task(client.list_tools(on_progress=print)) for _ in range(3)]
        frames = [await server.frame("tools/list") for _ in calls]
        tokens = [frame["params"]["_meta"]["progressToken"] for frame in frames]
        assert [type(token) for token in tokens] == [int] * 3
        assert len(set(tokens)) == 3
        for frame in frames:
            server.answer(frame, LISTED)
        await asyncio.gather(*calls)


@pytest.mark.req("M-148")
async def test_no_token_unless_progress_is_wanted() -> None:
    async with talking(MODERN) as (client, server):
        call = asyncio.create_task(client.list_tools())
        assert "progressToken" not in (await server.reply("tools/list", LISTED))["params"]["_meta"]
        await call


# --- results

TEXT = text_result("7")


@pytest.mark.req("M-014")
@pytest.mark.parametrize("kind", [{}, {"resultType": "complete"}])
async def test_a_missing_result_type_means_complete(kind: Frame) -> None:
    async with talking(MODERN) as (client, server):
        call = asyncio.create_task(client.call("f"))
        await server.reply("tools/call", {**TEXT, **kind})
        assert await call == 7


@pytest.mark.req("M-012", "M-013")
@pytest.mark.parametrize("kind", ["partial", "", "Complete", "io.example/streamed"])
async def test_an_unknown_result_type_is_refused(kind: str) -> None:
    async with talking(MODERN) as (client, server):
        call = asyncio.create_task(client.call("f"))
        await server.reply("tools/call", {**TEXT, "resultType": kind})
        with pytest.raises(InvalidResult, match=f"unknown resultType '{kind}'"):
            await call


@pytest.mark.req("M-013")
async def test_an_unknown_result_type_of_an_empty_result_is_refused() -> None:
    async with talking() as (client, server):
        call = asyncio.create_task(client.ping())
        await server.reply("ping", {"resultType": "task"})
        with pytest.raises(InvalidResult, match="ping was answered with the unknown resultType 'task'"):
            await call


ASKED: Frame = {
    "method": "elicitation/create",
    "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}},
}


@pytest.mark.req("M-168")
@pytest.mark.parametrize("attribute", ["call_tool", "read_resource", "get_prompt"])
async def test_a_request_for_input_is_refused_clearly(attribute: str) -> None:
    """This client declares no capability, so nobody may ask it; it neither retries nor takes it for a result."""
    async with talking(MODERN) as (client, server):
        call = asyncio.create_task(getattr(client, attribute)("x"))
        frame = await server.frame()
        server.answer(frame, {"resultType": "input_required", "inputRequests": {"a": ASKED}, "requestState": "s"})
        with pytest.raises(InvalidResult, match=r"asks for input"):
            await call
        await server.silence()


@pytest.mark.req("M-013")
async def test_a_request_for_input_where_none_may_be_is_refused() -> None:
    async with talking(MODERN) as (client, server):
        call = asyncio.create_task(client.list_tools())
        await server.reply("tools/list", {**LISTED, "resultType": "input_required", "requestState": "s"})
        with pytest.raises(InvalidResult, match="input_required"):
            await call


async def test_a_task_instead_of_a_result_is_refused_clearly() -> None:
    async with talking("2025-11-25") as (client, server):
        call = asyncio.create_task(client.call("f"))
        now = "2026-01-01T00:00:00Z"
        task = {"taskId": "1", "status": "working", "createdAt": now, "lastUpdatedAt": now, "ttl": None}
        await server.reply("tools/call", {"task": task})
        with pytest.raises(InvalidResult, match="task, which this client has not asked for"):
            await call


# --- the server never asks


@pytest.mark.req("M-015", "M-016")
@pytest.mark.parametrize("method", ["ping", "roots/list", "sampling/createMessage", "made/up"])
async def test_a_request_of_the_server_is_never_answered_and_is_reported(method: str) -> None:
    events = Events()
    async with talking(MODERN, on=events.on) as (client, server):
        server.send({"jsonrpc": "2.0", "id": 1, "method": method})
        await server.silence()
        (error,) = events.of("error")
        assert isinstance(error, InvalidResult)
        assert method in str(error)
        assert [method_of(note) for note in events.of("notification")] == [method]
        assert client.connected


async def test_notifications_surface() -> None:
    """F076."""
    events = Events()
    async with talking(MODERN, on=events.on) as (_, server):
        server.send(CHANGED)
        await turns()
        assert [method_of(note) for note in events.of("notification")] == [CHANGED["method"]]


# --- methods of other revisions


@pytest.mark.req("H-009")
@pytest.mark.parametrize(
    ("revision", "attribute", "arguments", "known"),
    [
        (MODERN, "ping", (), "2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25"),
        (MODERN, "subscribe_resource", ("a:b",), "2025-11-25"),
        (MODERN, "set_logging_level", ("info",), "2025-11-25"),
        (MODERN, "get_task", ("t",), "it is part of 2025-11-25$"),
        (SEED, "discover", (), "it is part of 2026-07-28$"),
        (SEED, "list_tasks", (), "it is part of 2025-11-25$"),
        (SEED, "listen", (SubscriptionFilter(),), "it is part of 2026-07-28$"),
    ],
)
async def test_a_method_the_revision_lacks_is_a_local_error(
    revision: str, attribute: str, arguments: tuple[Any, ...], known: str
) -> None:
    async with talking(revision) as (client, server):
        with pytest.raises(UnsupportedMethod, match=known) as caught:
            await getattr(client, attribute)(*arguments)
        assert isinstance(caught.value, UsageError)
        assert str(caught.value).startswith(f"{revision} has no ")
        await server.silence()


@pytest.mark.req("H-009")
async def test_a_method_only_servers_send_is_a_local_error() -> None:
    async with talking() as (client, server):
        with pytest.raises(UnsupportedMethod, match="roots/list; it is part of none"):
            await client.request(methods.LIST_ROOTS, None)  # type: ignore[arg-type]
        await server.silence()


@pytest.mark.req("M-039", "M-063")
async def test_against_a_real_app() -> None:
    app = App("a", "1.0.0")

    @app.tool
    def greet(name: str) -> str:
        return f"hello {name}"

    @app.resource("a://b", mime_type="text/plain")
    def text() -> str:
        return "text"

    async with connect(app, version=MODERN) as client:
        told = await client.discover()
        assert told.supported_versions[0] == MODERN
        assert told.capabilities.tools is not None
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("a", "1.0.0")
        assert await client.call("greet", {"name": "you"}) == "hello you"
        assert [entry.uri for entry in (await client.list_resources()).resources] == ["a://b"]
        assert (await client.read_resource("a://b")).contents[0].text == "text"  # type: ignore[union-attr]
