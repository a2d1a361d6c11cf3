"""Jobs begin in order, run beside each other, and know nothing of those before them."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any

import pytest

from typedmcp.core.running import Job, Runner

LIMIT = 10.0

mark = contextvars.ContextVar("mark", default="clean")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT):
        while not condition():  # noqa: ASYNC110 - the conditions are of all kinds
            await asyncio.sleep(0)


async def settled(runner: Runner) -> None:
    await until(lambda: not runner.waiting and not runner.tasks)


@pytest.fixture
async def runner() -> Runner:
    return Runner(asyncio.get_running_loop())


@pytest.mark.parametrize("waiting", [(), (0,), (3,), (0, 1, 2, 3, 4, 5), (1, 4), (5,)])
async def test_jobs_begin_in_order_whichever_of_them_wait(runner: Runner, waiting: tuple[int, ...]) -> None:
    began: list[int] = []
    ended: list[int] = []
    release = asyncio.Event()

    async def run(number: int) -> None:
        began.append(number)
        if number in waiting:
            await release.wait()
        ended.append(number)

    for number in range(6):
        runner.start(Job(run, number))
    await until(lambda: not runner.waiting)
    assert began == [0, 1, 2, 3, 4, 5]
    assert ended == [number for number in range(6) if number not in waiting]
    release.set()
    await settled(runner)
    assert sorted(ended) == began


async def test_few_turns_of_the_loop_are_enough_when_all_wait(runner: Runner) -> None:
    began = 0

    async def run() -> None:
        nonlocal began
        began += 1
        await asyncio.get_running_loop().create_future()

    for _ in range(500):
        runner.start(Job(run))
    for _ in range(3):
        await asyncio.sleep(0)
    assert began == 500
    runner.cancel()


async def test_what_comes_while_others_wait_or_wake_begins(runner: Runner) -> None:
    began: list[int] = []
    loop = asyncio.get_running_loop()

    async def run(number: int) -> None:
        began.append(number)
        if number % 3 == 0:
            await asyncio.sleep(0)
        if number < 100:
            runner.start(Job(run, number + 100))
            loop.call_soon(runner.start, Job(run, number + 200))

    for number in range(100):
        runner.start(Job(run, number))
        if number % 7 == 0:
            await asyncio.sleep(0)
    await until(lambda: len(began) == 300)
    assert sorted(began) == list(range(300))


async def test_context_variables_do_not_leak_into_the_next_job(runner: Runner) -> None:
    seen: list[str] = []

    async def run(number: int) -> None:
        seen.append(mark.get())
        mark.set(f"left by {number}")

    for number in range(20):
        runner.start(Job(run, number))
    await settled(runner)
    assert seen == ["clean"] * 20
    assert mark.get() == "clean"


async def test_a_job_that_swallows_its_cancellation_ends_its_task_all_the_same(runner: Runner) -> None:
    cancelling: list[int] = []
    jobs: list[Job] = []

    async def stubborn() -> None:
        try:
            await asyncio.sleep(LIMIT)
        except asyncio.CancelledError:
            # What comes meanwhile must not run in the task that was cancelled.
            runner.start(Job(count))
            runner.start(Job(count))

    async def count() -> None:
        task = asyncio.current_task()
        assert task is not None
        cancelling.append(task.cancelling())

    jobs.append(Job(stubborn))
    runner.start(jobs[0])
    await asyncio.sleep(0)
    assert jobs[0].task is not None
    jobs[0].task.cancel()
    await until(lambda: len(cancelling) == 2)
    assert cancelling == [0, 0]


async def test_timeouts_and_task_groups_work_in_every_job(runner: Runner) -> None:
    ended: list[Any] = []

    async def run(number: int) -> None:
        try:
            async with asyncio.timeout(0 if number % 2 else LIMIT):
                async with asyncio.TaskGroup() as group:
                    inner = group.create_task(asyncio.sleep(0.01, number))
                ended.append(inner.result())
        except TimeoutError:
            ended.append("late")

    for number in range(10):
        runner.start(Job(run, number))
    await settled(runner)
    assert sorted(map(str, ended)) == sorted(["0", "2", "4", "6", "8", *["late"] * 5])


async def test_what_has_not_begun_can_be_withdrawn(runner: Runner) -> None:
    began: list[str] = []
    release = asyncio.Event()

    async def first() -> None:
        began.append("first")
        await release.wait()

    async def other(name: str) -> None:
        began.append(name)

    jobs = [Job(first), Job(other, "second"), Job(other, "third")]

    async def start_all() -> None:
        # From inside a job: the others have to wait, on every Python.
        for job in jobs[1:]:
            runner._queue.append(job)
        runner.withdraw(jobs[1])

    runner.start(jobs[0])
    runner.start(Job(start_all))
    release.set()
    await settled(runner)
    assert began == ["first", "third"]
    assert jobs[1].task is None


async def test_cancel_ends_what_runs_and_begins_nothing_more(runner: Runner) -> None:
    ended: list[str] = []

    async def run() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    for _ in range(5):
        runner.start(Job(run))
    for _ in range(3):
        await asyncio.sleep(0)
    runner.cancel()
    await settled(runner)
    assert ended == ["cancelled"] * 5
