"""Events: order, isolation, once, destroy, async listeners."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from typedmcp.core.emitter import Emitter


def boom(*_: object) -> None:
    raise ValueError("boom")


@pytest.mark.req("A-104", "A-110")
def test_listeners_are_called_at_once_in_registration_order() -> None:
    heard: list[Any] = []
    emitter = Emitter({"request": lambda *values: heard.append(("first", values))})
    emitter.on("request", lambda *values: heard.append(("second", values)))
    emitter.emit("request", "ping", 1)
    assert heard == [("first", ("ping", 1)), ("second", ("ping", 1))]
    emitter.emit("other", 1)
    assert len(heard) == 2


@pytest.mark.req("A-105", "A-107", "A-112")
def test_every_failing_listener_is_reported_and_harms_no_other() -> None:
    reported: list[Any] = []
    heard: list[Any] = []
    emitter = Emitter(error=lambda error, event: reported.append((str(error), event)))
    for listener in (boom, heard.append, boom):
        emitter.on("message", listener)
    emitter.emit("message", 1)
    assert reported == [("boom", "message")] * 2
    assert heard == [1]


@pytest.mark.req("A-112")
def test_without_a_handler_failures_are_swallowed() -> None:
    heard: list[Any] = []
    emitter = Emitter({"message": boom})
    emitter.on("message", heard.append)
    emitter.emit("message", 1)
    assert heard == [1]


@pytest.mark.req("A-106")
def test_the_error_handler_is_not_the_error_event() -> None:
    events: list[Any] = []
    failures: list[Any] = []
    emitter = Emitter({"error": events.append}, error=lambda error, event: failures.append(event))
    emitter.emit("error", "domain")
    assert (events, failures) == (["domain"], [])
    emitter.on("message", boom)
    emitter.emit("message", 1)
    assert (events, failures) == (["domain"], ["message"])


@pytest.mark.req("A-108")
def test_a_failing_error_handler_neither_escapes_nor_recurses() -> None:
    calls: list[str] = []

    def handler(error: BaseException, event: str) -> None:
        calls.append(event)
        raise RuntimeError("worse")

    emitter = Emitter({"message": boom, "error": boom}, error=handler)
    emitter.emit("message")
    assert calls == ["message"]


@pytest.mark.req("A-107")
def test_a_listener_cannot_cancel_the_task_that_emits() -> None:
    reported: list[BaseException] = []

    def cancelled(*_: object) -> None:
        raise asyncio.CancelledError

    emitter = Emitter({"message": cancelled}, error=lambda error, event: reported.append(error))
    emitter.emit("message")
    assert [type(error) for error in reported] == [asyncio.CancelledError]


@pytest.mark.req("A-107")
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_the_end_of_the_process_passes_through(kind: type[BaseException]) -> None:
    def stop() -> None:
        raise kind

    emitter = Emitter({"message": stop})
    with pytest.raises(kind):
        emitter.emit("message")


@pytest.mark.req("A-111")
def test_changes_during_an_emit_count_from_the_next() -> None:
    heard: list[str] = []
    emitter = Emitter()

    def last() -> None:
        heard.append("last")

    def late() -> None:
        heard.append("late")

    def first() -> None:
        heard.append("first")
        emitter.off("message", last)
        emitter.on("message", late)

    emitter.on("message", first)
    emitter.on("message", last)
    emitter.emit("message")
    assert heard == ["first", "last"]
    heard.clear()
    emitter.emit("message")
    assert heard == ["first", "late"]


@pytest.mark.req("A-113")
def test_once_is_called_once() -> None:
    heard: list[int] = []
    emitter = Emitter()
    emitter.once("message", heard.append)
    emitter.emit("message", 1)
    emitter.emit("message", 2)
    assert heard == [1]


@pytest.mark.req("A-113")
def test_once_that_raises_is_removed_and_reported() -> None:
    reported: list[str] = []
    emitter = Emitter(error=lambda error, event: reported.append(event))
    emitter.once("message", boom)
    emitter.emit("message")
    emitter.emit("message")
    assert reported == ["message"]


@pytest.mark.req("A-113")
def test_once_is_called_once_though_it_emits_again() -> None:
    heard: list[str] = []
    emitter = Emitter()

    def again(depth: int) -> None:
        if depth == 0:
            emitter.emit("message", 1)

    emitter.on("message", again)
    emitter.once("message", lambda depth: heard.append(f"once at {depth}"))
    emitter.emit("message", 0)
    emitter.emit("message", 2)
    assert heard == ["once at 1"]


@pytest.mark.req("A-113")
def test_off_takes_the_original_of_a_once() -> None:
    heard: list[int] = []
    emitter = Emitter()
    emitter.once("message", heard.append)
    emitter.off("message", heard.append)
    emitter.off("message", heard.append)
    emitter.emit("message", 1)
    assert heard == []


@pytest.mark.req("A-113")
def test_a_once_beside_an_on_of_the_same_function_takes_off_only_itself() -> None:
    heard: list[int] = []
    emitter = Emitter()
    emitter.on("message", heard.append)
    emitter.once("message", heard.append)
    for value in (1, 2, 3):
        emitter.emit("message", value)
    assert heard == [1, 1, 2, 3]


@pytest.mark.req("A-114")
def test_after_destroy_nothing_happens() -> None:
    heard: list[int] = []
    emitter = Emitter({"message": heard.append})
    emitter.destroy()
    emitter.destroy()
    emitter.on("message", heard.append)
    emitter.once("message", heard.append)
    emitter.off("message", heard.append)
    emitter.emit("message", 1)
    assert heard == []


@pytest.mark.req("A-115")
async def test_async_listeners_are_scheduled_and_their_failures_reported() -> None:
    heard: list[int] = []
    told = asyncio.Event()

    async def listener(value: int) -> None:
        await asyncio.sleep(0)
        heard.append(value)
        raise ValueError("later")

    emitter = Emitter({"message": listener}, error=lambda error, event: told.set())
    emitter.emit("message", 1)
    assert heard == []
    await asyncio.wait_for(told.wait(), 5)
    assert heard == [1]


@pytest.mark.req("A-115")
def test_an_async_listener_without_a_loop_is_a_failure_of_its_own() -> None:
    reported: list[BaseException] = []

    async def listener() -> None: ...

    emitter = Emitter({"message": listener}, error=lambda error, event: reported.append(error))
    emitter.emit("message")
    assert [type(error) for error in reported] == [RuntimeError]
