"""What a client must have declared before it is asked for something."""

from __future__ import annotations

from typing import Any

from typedmcp.core.errors import MCPError, UsageError
from typedmcp_wire.revisions import HANDSHAKE_REVISIONS, MISSING_REQUIRED_CLIENT_CAPABILITY


class MissingCapability(UsageError):
    """A handler wanted something of a client that cannot do it.  Catch it to go on without.

    Attributes:
        capability: What the client would have to declare, in the shape of its capabilities.
    """

    def __init__(self, capability: dict[str, Any], text: str | None = None) -> None:
        self.capability = capability
        super().__init__(text or f"This needs a client that declares the capability {capability_path(capability)}.")


def capability_path(capability: dict[str, Any]) -> str:
    """A nested capability in dots: ``{"elicitation": {"url": {}}}`` is ``elicitation.url``."""
    names: list[str] = []
    while capability:
        name, inner = next(iter(capability.items()))
        names.append(name)
        capability = inner
    return ".".join(names)


def missing(capability: dict[str, Any], revision: str) -> MissingCapability | MCPError:
    """The refusal in `revision`: from 2026-07-28 on the protocol has an error of its own for it."""
    error = MissingCapability(capability)
    if revision in HANDSHAKE_REVISIONS:
        return error
    return MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, str(error), {"requiredCapabilities": capability})
