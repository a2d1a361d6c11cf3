"""stdio: a server on its own input and output, a client on a child process.

The two sides load on first use: a server never loads what a client needs to run processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typedmcp.transports.lines import LineExtraction, dispatch_lines, extract_lines

if TYPE_CHECKING:
    from typedmcp.transports.stdio.client import StdioClientTransport, create_stdio_client_transport
    from typedmcp.transports.stdio.server import StdioServer, create_stdio_server
    from typedmcp.transports.stdio.transport import StdioServerTransport

__all__ = [
    "LineExtraction",
    "StdioClientTransport",
    "StdioServer",
    "StdioServerTransport",
    "create_stdio_client_transport",
    "create_stdio_server",
    "dispatch_lines",
    "extract_lines",
]

_HOMES = {
    "StdioClientTransport": "client",
    "StdioServer": "server",
    "StdioServerTransport": "transport",
    "create_stdio_client_transport": "client",
    "create_stdio_server": "server",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
