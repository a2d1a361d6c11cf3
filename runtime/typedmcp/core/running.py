"""Runs jobs in the order in which they came, each beside the others.

A task of its own for every message would cost about as much as a quick handler does.  So a task whose job has ended
takes the next one that has not begun; when a job waits, those behind it get tasks of their own.

Rules:
- Jobs begin in the order in which they were given.
- A job sees nothing of an earlier one: a task takes no further job once it has been cancelled, or when a job has left
  its context variables changed.
- ``Job.task`` is None until the job begins.  Then cancelling the task cancels the job; before, there is
  :meth:`Runner.withdraw`.
- There is no IO here.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

if sys.version_info >= (3, 12):

    def start_task(coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
        """A task for `coroutine`, begun at once."""
        return asyncio.Task(coroutine, loop=loop, eager_start=True)

else:

    def start_task(coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
        """A task for `coroutine`, begun in the next turn of the loop: this Python cannot begin it at once."""
        return loop.create_task(coroutine)


class Job:
    """One call of a coroutine function, which deals with its own exceptions.

    Attributes:
        task: The task that runs it; None until it begins.
    """

    __slots__ = ("arguments", "function", "task")

    def __init__(self, function: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        self.function = function
        self.arguments = arguments
        self.task: asyncio.Task[Any] | None = None


class Runner:
    """A queue of jobs and the tasks that work on it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: deque[Job] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._to_come = 0
        """Tasks that have not begun yet; each takes at least one job, if there is one."""
        self._looking = False
        """Whether :meth:`_look` is called in the next turn."""

    @property
    def waiting(self) -> bool:
        """Whether a job has yet to begin."""
        return bool(self._queue)

    @property
    def tasks(self) -> frozenset[asyncio.Task[None]]:
        """The tasks under way."""
        return frozenset(self._tasks)

    def start(self, job: Job) -> None:
        """Run a job: from Python 3.12 on it begins at once unless others wait, before that in a turn to come."""
        self._queue.append(job)
        if not self._to_come and not self._looking:
            self._add_task()

    def withdraw(self, job: Job) -> None:
        """Take back a job that has not begun."""
        self._queue.remove(job)

    def cancel(self) -> None:
        """Cancel what runs, and begin nothing more."""
        self._queue.clear()
        for task in self._tasks:
            task.cancel()

    def _add_task(self) -> None:
        self._to_come += 1
        task = start_task(self._work(), self._loop)
        if not task.done():
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self) -> None:
        queue = self._queue
        self._to_come -= 1
        if len(queue) > 1 + self._to_come and not self._looking:
            # Enough for jobs that do not wait; the next turn shows whether they did.
            self._looking = True
            self._loop.call_soon(self._look)
        task = asyncio.current_task()
        assert task is not None
        clean = contextvars.copy_context()
        while queue:
            job = queue.popleft()
            job.task = task
            await job.function(*job.arguments)
            if task.cancelling() or contextvars.copy_context() != clean:
                return

    def _look(self) -> None:
        self._looking = False
        while len(self._queue) > self._to_come:
            self._add_task()
