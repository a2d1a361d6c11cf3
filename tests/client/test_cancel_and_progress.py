"""Requests given up, deadlines that move, progress reports (M13, M14, H8)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

import pytest
from tests.client.helpers import MODERN, SEED, Events, ScriptedServer, talking, turns

from typedmcp import App, Context, MCPClient, connect
from typedmcp.core.errors import InvalidResult, RequestTimeout

BOTH = pytest.mark.parametrize("revision", [SEED, MODERN])
LISTED = {"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"}


def cancelled(request_id: object, reason: str) -> dict[str, Any]:
    params = {"requestId": request_id, "reason": reason}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


# --- cancellation


@BOTH
@pytest.mark.req("M-138", "M-141", "M-145", "H-030", "H-050")
async def test_a_caller_that_gives_up_is_told_to_the_server_once(revision: str) -> None:
    async with talking(revision) as (client, server):
        call = asyncio.create_task(client.list_tools())
        frame = await server.frame("tools/list")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await server.frame() == cancelled(frame["id"], "no longer needed")
        await server.silence()


@BOTH
@pytest.mark.req("M-146", "M-145", "M-138")
async def test_a_timeout_is_told_to_the_server_once(revision: str) -> None:
    async with talking(revision) as (client, server):
        call = asyncio.create_task(client.list_tools(timeout=0.01))
        frame = await server.frame("tools/list")
        with pytest.raises(RequestTimeout):
            await call
        assert await server.frame() == cancelled(frame["id"], "timed out")
        await server.silence()


@pytest.mark.req("M-146")
async def test_an_outer_timeout_cancels_too() -> None:
    async with talking() as (client, server):
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.01):
                await client.list_tools()
        assert not isinstance(caught.value, RequestTimeout)
        frame = await server.frame("tools/list")
        assert await server.frame() == cancelled(frame["id"], "no longer needed")


@pytest.mark.req("M-141", "M-143", "M-144")
async def test_answered_and_failed_requests_are_not_cancelled() -> None:
    async with talking() as (client, server):
        call = asyncio.create_task(client.ping())
        await server.reply("ping", {})
        await call
        call.cancel()
        call = asyncio.create_task(client.ping())
        server.refuse(await server.frame("ping"), 1)
        await asyncio.gather(call, return_exceptions=True)
        await server.silence()


@pytest.mark.req("M-143", "M-144")
@pytest.mark.parametrize("answer_first", [True, False])
async def test_answer_and_cancellation_in_the_same_turn(answer_first: bool) -> None:
    async with talking() as (client, server):
        call = asyncio.create_task(client.ping())
        frame = await server.frame("ping")
        if answer_first:
            server.answer(frame, {})
        call.cancel()
        if not answer_first:
            server.answer(frame, {})
        with contextlib.suppress(asyncio.CancelledError):
            await call
        await turns()
        again = asyncio.create_task(client.ping())
        number = frame["id"] + 1
        seen = [await server.frame()]
        while seen[-1].get("id") != number:
            seen.append(await server.frame())
        assert len(seen) <= 2
        server.answer(seen[-1], {})
        assert await again == {}


async def test_a_request_given_up_before_it_began_sends_nothing() -> None:
    async with talking() as (client, server):
        call = asyncio.create_task(client.ping())
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await server.silence()


@pytest.mark.req("M-143", "H-051")
async def test_a_cancelled_call_stops_the_real_handler() -> None:
    """F043: the caller is free at once; the handler sees the cancellation; the connection goes on."""
    app = App("a", "1.0.0")
    began, ended = asyncio.Event(), asyncio.Event()

    @app.tool
    async def slow() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    @app.tool
    async def quick() -> int:
        return 1

    events = Events()
    async with connect(app, on=events.on) as client:
        call = asyncio.create_task(client.call("slow"))
        await began.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(ended.wait(), 5)
        assert await client.call("quick") == 1
        assert events.names() == ["connect"]


# --- deadlines that move


@BOTH
@pytest.mark.req("M-147")
async def test_reset_on_progress_sends_a_token_by_itself(revision: str) -> None:
    """F046: no callback is needed for the deadline to move."""
    async with talking(revision) as (client, server):
        call = asyncio.create_task(client.list_tools(timeout=0.15, reset_on_progress=True))
        frame = await server.frame("tools/list")
        token = frame["params"]["_meta"]["progressToken"]
        for progress in range(4):
            await asyncio.sleep(0.07)
            server.notify("notifications/progress", progressToken=token, progress=progress)
        await asyncio.sleep(0.07)
        server.answer(frame, LISTED)
        assert (await call).tools == []


@pytest.mark.req("M-147")
async def test_progress_moves_no_deadline_unasked() -> None:
    async with talking() as (client, server):
        call = asyncio.create_task(client.list_tools(timeout=0.1, on_progress=lambda *_: None))
        frame = await server.frame("tools/list")
        for progress in range(4):
            await asyncio.sleep(0.04)
            token = frame["params"]["_meta"]["progressToken"]
            server.notify("notifications/progress", progressToken=token, progress=progress)
        with pytest.raises(RequestTimeout, match=r"0\.1 s"):
            await call


@pytest.mark.req("M-147")
async def test_max_timeout_holds_whatever_progress_comes() -> None:
    async with talking() as (client, server):
        call = asyncio.create_task(client.list_tools(timeout=0.1, reset_on_progress=True, max_timeout=0.2))
        frame = await server.frame("tools/list")
        token = frame["params"]["_meta"]["progressToken"]
        began = asyncio.get_running_loop().time()
        progress = 0
        while not call.done():
            await asyncio.sleep(0.03)
            progress += 1
            server.notify("notifications/progress", progressToken=token, progress=progress)
        with pytest.raises(RequestTimeout, match=r"0\.2 s"):
            await call
        assert 0.15 < asyncio.get_running_loop().time() - began < 2
        assert await server.frame() == cancelled(frame["id"], "timed out")


async def test_max_timeout_holds_without_another_limit() -> None:
    async with talking(timeout=None) as (client, server):
        with pytest.raises(RequestTimeout, match=r"0\.02 s"):
            await client.list_tools(max_timeout=0.02)
        await server.frame("tools/list")


# --- progress


@BOTH
@pytest.mark.req("H-052", "M-148")
async def test_progress_reaches_its_own_callback(revision: str) -> None:
    """Only the exact token counts: no folding of 2, "2" and 2.0 (F020, F073)."""
    events = Events()
    async with talking(revision, on=events.on) as (client, server):
        seen: dict[str, list[object]] = {"a": [], "b": []}
        calls = [
            asyncio.create_task(
                client.list_tools(name, on_progress=lambda *report, name=name: seen[name].append(report))
            )
            for name in seen
        ]
        frames = [await server.frame("tools/list") for _ in calls]
        tokens = [frame["params"]["_meta"]["progressToken"] for frame in frames]
        server.notify("notifications/progress", progressToken=tokens[1], progress=1)
        server.notify("notifications/progress", progressToken=tokens[0], progress=0.5, total=2, message="half")
        for stranger in (str(tokens[0]), 0, "", 999):
            server.notify("notifications/progress", progressToken=stranger, progress=3)
        for frame in frames:
            server.answer(frame, LISTED)
        await asyncio.gather(*calls)
        server.notify("notifications/progress", progressToken=tokens[0], progress=9)
        await turns()
        assert seen == {"a": [(0.5, 2, "half")], "b": [(1, None, None)]}
        assert len(events.of("notification")) == 7
        assert events.of("error") == []


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_what_came_before_the_answer_has_begun_before_the_call_returns(asynchronous: bool) -> None:
    """F078: progress and notifications are handed out in order, and begun before the caller goes on."""
    order: list[object] = []

    def note(value: object) -> Any:
        async def run() -> None:
            order.append(value)
            await asyncio.sleep(0)

        return run() if asynchronous else order.append(value)

    async with talking(on={"notification": lambda message: note(message.method)}) as (client, server):
        call = asyncio.create_task(client.list_tools(on_progress=lambda progress, *_: note(progress)))
        frame = await server.frame("tools/list")
        for progress in (1, 2):
            server.notify("notifications/progress", progressToken=frame["id"], progress=progress)
        server.notify("notifications/message", level="info", data="x")
        server.answer(frame, LISTED)
        server.notify("notifications/progress", progressToken=frame["id"], progress=3)
        await call
        method = "notifications/progress"
        assert order[:5] == [1, method, 2, method, "notifications/message"]
        await turns()
        assert 3 not in order


async def test_a_callback_may_call_the_client_itself() -> None:
    """F078, F049: no deadlock for nested calls."""
    async with talking() as (client, server):
        inner: list[object] = []

        async def ask(*_: object) -> None:
            inner.append(await client.ping())

        call = asyncio.create_task(client.list_tools(on_progress=ask))
        frame = await server.frame("tools/list")
        server.notify("notifications/progress", progressToken=frame["id"], progress=1)
        await server.reply("ping", {})
        await turns()
        assert inner == [{}]
        server.answer(frame, LISTED)
        await call


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_failing_callback_harms_nothing(asynchronous: bool, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[float] = []

    def plain(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)
        raise ValueError("mine")

    async def later(progress: float, total: float | None, message: str | None) -> None:
        plain(progress, total, message)

    async with talking() as (client, server):
        call = asyncio.create_task(client.list_tools(on_progress=later if asynchronous else plain))
        frame = await server.frame("tools/list")
        with caplog.at_level(logging.ERROR, "typedmcp"):
            for progress in (1, 2):
                server.notify("notifications/progress", progressToken=frame["id"], progress=progress)
            server.answer(frame, LISTED)
            assert (await call).tools == []
    assert seen == [1, 2]
    assert [record.exc_info is not None and "mine" in str(record.exc_info[1]) for record in caplog.records] == [
        True
    ] * 2


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"progressToken": 2},
        {"progressToken": None, "progress": 1},
        {"progressToken": 2, "progress": "1"},
        {"progressToken": True, "progress": 1},
        {"progressToken": 2, "progress": 1, "message": 5},
    ],
)
async def test_malformed_progress_is_reported_and_ignored(params: dict[str, Any]) -> None:
    events = Events()
    async with talking(on=events.on) as (client, server):
        seen: list[object] = []
        call = asyncio.create_task(client.list_tools(on_progress=lambda *report: seen.append(report)))
        frame = await server.frame("tools/list")
        server.notify("notifications/progress", **params)
        server.answer(frame, LISTED)
        await call
        assert seen == []
        (error,) = events.of("error")
        assert isinstance(error, InvalidResult)
        assert "notifications/progress" in str(error)


@pytest.mark.req("H-052", "M-149", "M-150")
@pytest.mark.parametrize("version", [None, "2025-06-18"])
async def test_progress_of_a_real_tool(version: str | None) -> None:
    app = App("a", "1.0.0")

    @app.tool
    async def work(context: Context) -> str:
        for step in (1, 2, 3):
            await context.report_progress(step, 3, f"step {step}")
        return "done"

    seen: list[object] = []
    async with connect(app, version=version) as client:
        assert await client.call("work", on_progress=lambda *report: seen.append(report)) == "done"
    assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_the_clients_own_token_is_not_needed() -> None:
    """A caller that gives its own token in `meta` keeps it, and gets the reports as notifications."""
    server, events = ScriptedServer(), Events()
    client = MCPClient(transport=server.client, protocol_version=SEED, on=events.on)
    opening = asyncio.create_task(client.connect())
    await server.shake_hands()
    await opening
    call = asyncio.create_task(client.list_tools(meta={"progressToken": "mine"}))
    frame = await server.frame("tools/list")
    assert frame["params"]["_meta"] == {"progressToken": "mine"}
    server.notify("notifications/progress", progressToken="mine", progress=1)
    server.answer(frame, LISTED)
    await call
    assert [note.method for note in events.of("notification")] == ["notifications/progress"]
    await client.disconnect()
