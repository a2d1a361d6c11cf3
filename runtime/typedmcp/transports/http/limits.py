"""The documented bounds of the safe HTTP entry points, and where they serve."""

from __future__ import annotations

from typing import Final

DEFAULT_MCP_PATH: Final = "/mcp"
DEFAULT_MAX_BODY: Final = 16 * 1024 * 1024
"""The largest body taken, in bytes: 16 MiB."""
DEFAULT_BODY_SECONDS: Final = 30.0
"""Seconds within which a body must have arrived."""
DEFAULT_MAX_DEPTH: Final = 100
"""How deeply a body's arrays and objects may nest."""
DEFAULT_MAX_SESSIONS: Final = 10_000
DEFAULT_MAX_REQUESTS: Final = 10_000
"""How many HTTP requests may be open at once, streams included."""
DEFAULT_IDLE_SECONDS: Final = 30 * 60.0
"""Seconds without use after which a session ends: half an hour."""
DEFAULT_REPLAY_BYTES: Final = 4 * 1024 * 1024
"""How much a session keeps for replay, in bytes: 4 MiB."""
