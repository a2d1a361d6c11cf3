"""How often a caller may call: the rate of tool calls and completions, off until set.

Rules:
- Counted are the requests that make a server work for somebody: ``tools/call`` and ``completion/complete``.
- A caller is who `identify` says, or else the address the connection comes from; of IPv6 the network (/64), since one
  caller has all of it.  A session is no caller: opening another one costs nothing.
- A caller may save up `burst` calls.  One more is 429 with ``Retry-After`` and an error that names the request.
- A batch (2025-03-26) passes when one call may; each of its calls is charged, so the next one waits for all of them.
- What is kept is bounded: of too many callers those not seen for longest are forgotten.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable
from typing import Final

from typedmcp.core.errors import MCPError, MessageError, UsageError
from typedmcp.core.jsonrpc import JSONRPCMessage, JSONRPCRequest
from typedmcp.transports.http.incoming import Incoming, read_batch
from typedmcp.transports.http.replies import Reply, refuse, refuse_request
from typedmcp_wire.revisions import INTERNAL_ERROR

LIMITED_METHODS: Final = frozenset({"tools/call", "completion/complete"})
MAX_CALLERS: Final = 10_000
"""How many callers are remembered."""


class RateLimiter:
    """Token buckets, one a caller; each is one number, the time at which it will be full again.

    Args:
        per_second: How many calls a caller may make each second in the long run.
        burst: How many at once; None: those of one second, at least one.
        clock: The time in seconds.
        max_callers: How many callers are remembered.

    Raises:
        UsageError: a number is out of range.
    """

    def __init__(
        self,
        per_second: float,
        burst: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        max_callers: int = MAX_CALLERS,
    ) -> None:
        if not 0 < per_second < math.inf:
            raise UsageError(f"rate_limit is a number of calls per second above 0, not {per_second!r}")
        if burst is not None and burst < 1:
            raise UsageError(f"rate_burst is 1 call or more, not {burst!r}")
        self._interval = 1 / per_second
        self._slack = ((burst or max(1, math.ceil(per_second))) - 1) * self._interval
        self._clock = clock
        self._max_callers = max_callers
        self._full_at: dict[Hashable, float] = {}  # the order is that of use

    def __len__(self) -> int:
        return len(self._full_at)

    def wait(self, caller: Hashable, calls: int = 1) -> float:
        """Charge a caller; 0.0 when it may call now, or else the seconds after which it may, and nothing is charged."""
        now = self._clock()
        full_at = max(self._full_at.pop(caller, now), now)
        wait = full_at - now - self._slack
        refused = wait > 1e-9  # sums of intervals are not exact
        self._full_at[caller] = full_at if refused else full_at + calls * self._interval
        if len(self._full_at) > self._max_callers:
            del self._full_at[next(iter(self._full_at))]
        return wait if refused else 0.0

    def check(self, incoming: Incoming, principal: object, address: str | None) -> Reply | None:
        """The refusal of a POST that comes too soon; None when it may pass."""
        message = incoming.message
        calls = int(_counts(message)) if incoming.batch is None else _calls_in(incoming.batch)
        wait = self.wait(caller_of(principal, address), calls) if calls else 0.0
        if wait == 0.0:
            return None
        seconds = math.ceil(wait)
        text = "Too many calls."
        if isinstance(message, JSONRPCRequest):
            reply = refuse_request(message, MCPError(INTERNAL_ERROR, text, {"retryAfter": seconds}), 429)
        else:
            reply = refuse(429, text, code=INTERNAL_ERROR, null_id=True)
        return reply.extended((("Retry-After", str(seconds)),))


def caller_of(principal: object, address: str | None) -> Hashable:
    """Under which name a caller is counted; whoever cannot be told apart shares one."""
    if principal is None:
        return ("address", _network(address or ""))
    try:
        hash(principal)
    except TypeError:
        return ("principal", repr(principal))
    return ("principal", principal)


def _network(address: str) -> str:
    if ":" not in address:
        return address
    import ipaddress

    try:
        parsed = ipaddress.IPv6Address(address)
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(parsed) >> 64 << 64, 64)))


def _counts(message: JSONRPCMessage | MessageError) -> bool:
    return isinstance(message, JSONRPCRequest) and message.method in LIMITED_METHODS


def _calls_in(frame: bytes) -> int:
    """How many calls a batch holds; what cannot be read is none."""
    try:
        return sum(map(_counts, read_batch(frame)))
    except MessageError:
        return 0
