"""No test of a client may leave a task behind, or an exception nobody took."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest


@pytest.fixture(autouse=True)
async def nothing_left_behind() -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    complaints: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    yield
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect(1)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert left == set()
    assert complaints == []
