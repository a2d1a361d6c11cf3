"""The state of an unfinished request, sealed: the client carries it, and can neither read nor change it.

Rules (specification 2026-07-28, basic/patterns/mrtr):
- What comes back is hostile until proven: it is encrypted and authenticated (Fernet), lives for a short time, and is
  good only for the same principal, method, name or uri, and arguments.
- Keys rotate: the first seals, all open.  Without keys a random one is made, good for this process only; processes that
  serve the same clients share keys.
- A state that must not be used twice is the author's to enforce, by the `once` hook: it is told the id of each state.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from typedmcp.core.errors import MCPError, UsageError
from typedmcp_wire.revisions import INVALID_PARAMS

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

DEFAULT_STATE_LIFETIME: Final = 600.0
"""Seconds for which a sealed state is good."""
MAX_STATE_BYTES: Final = 64 * 1024
"""The longest state taken."""

Once = Callable[[str], bool]


class Binding(Struct, frozen=True, kw_only=True):
    """The request a state belongs to."""

    principal: str
    method: str
    target: str
    digest: str

    @classmethod
    def of(cls, principal: object, method: str, target: str, arguments: object) -> Binding:
        """The binding of a request; the order of its arguments' members does not count."""
        text = msgspec.json.encode(arguments, order="deterministic")
        return cls(
            principal="" if principal is None else repr(principal),
            method=method,
            target=target,
            digest=hashlib.sha256(text).hexdigest(),
        )


class _Sealed(Struct, kw_only=True):
    id: str
    binding: Binding
    payload: Any


class StateSeal:
    """Seals and opens states.

    Args:
        keys: Fernet keys (32 bytes in URL-safe base64), the newest first; None makes a random one.
        lifetime: Seconds for which a state is good.
        once: Called with the id of each state that is opened; False refuses it, as one that has been used.
    """

    def __init__(
        self,
        keys: Sequence[str | bytes] | None = None,
        *,
        lifetime: float = DEFAULT_STATE_LIFETIME,
        once: Once | None = None,
    ) -> None:
        if lifetime <= 0:
            raise UsageError("the lifetime of a state must be positive")
        self._keys = None if keys is None else tuple(keys)
        self._lifetime = lifetime
        self._once = once
        self._made: MultiFernet | None = None

    def seal(self, payload: Any, binding: Binding) -> str:
        """The text a client is to carry."""
        sealed = _Sealed(id=secrets.token_urlsafe(16), binding=binding, payload=payload)
        return self._fernet().encrypt(msgspec.json.encode(sealed)).decode()

    def open(self, state: str, binding: Binding) -> Any:
        """The payload of a state.

        Raises:
            MCPError: it was tampered with, has expired, belongs to another request, or has been used.
        """
        from cryptography.fernet import InvalidToken

        if len(state) > MAX_STATE_BYTES:
            raise refused()
        try:
            # Python's decoder lets anything follow the padding; only the one way to write a token is taken.
            if base64.urlsafe_b64encode(base64.urlsafe_b64decode(state)).decode() != state:
                raise refused()
            text = self._fernet().decrypt(state.encode(), ttl=int(self._lifetime))
        except (InvalidToken, ValueError):
            raise refused() from None
        sealed = msgspec.json.decode(text, type=_Sealed)
        if sealed.binding != binding or (self._once is not None and not self._once(sealed.id)):
            raise refused()
        return sealed.payload

    def _fernet(self) -> MultiFernet:
        """The cipher, made when first needed: most servers never ask a client anything."""
        if self._made is None:
            from cryptography.fernet import Fernet, MultiFernet

            try:
                self._made = MultiFernet([Fernet(key) for key in self._keys or (Fernet.generate_key(),)])
            except ValueError as error:
                raise UsageError(f"a key is no Fernet key: {error}; make one with Fernet.generate_key()") from error
        return self._made


def refused() -> MCPError:
    """The one answer to every state that is no good; it does not say why, to whoever made it up."""
    return MCPError(INVALID_PARAMS, "requestState is not valid for this request.")
