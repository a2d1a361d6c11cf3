"""How a transport that is about to stop lets a server end what would never end by itself.

A server's interface has no method for it: servers say here what is to be done, and transports ask here.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import Final

_LAST_TURNS: Final = 5
"""Turns of the loop in which a subscription that is told to end wakes, says so, and is written."""
_enders: weakref.WeakKeyDictionary[object, Callable[[], None]] = weakref.WeakKeyDictionary()


def when_ending(server: object, end: Callable[[], None]) -> None:
    """Have `end` called before the transports of `server` stop; it must not refer to the server itself."""
    _enders[server] = end


def begin_ending(server: object) -> None:
    """Tell a server that its transport stops; what it ends is written as the loop turns."""
    try:
        end = _enders.get(server)
    except TypeError:  # a server of another kind, to which no weak reference can be made
        return
    if end is not None:
        end()


async def end_listening(server: object) -> None:
    """Tell a server that its transport stops, and give its subscriptions the turns they need."""
    begin_ending(server)
    for _ in range(_LAST_TURNS):
        await asyncio.sleep(0)
