"""The server: the engine, its two eras, the tool registry and the app.  Imports the core only.

Names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typedmcp.server.app import App as App
    from typedmcp.server.capabilities import MissingCapability as MissingCapability
    from typedmcp.server.context import Context as Context
    from typedmcp.server.forms import Elicited as Elicited
    from typedmcp.server.legacy import initialize_result as initialize_result
    from typedmcp.server.server import MCPServer as MCPServer
    from typedmcp.server.tools import Tool as Tool
    from typedmcp.server.tools import ToolCall as ToolCall
    from typedmcp.server.tools import ToolManager as ToolManager
    from typedmcp.server.tools import ToolResult as ToolResult
    from typedmcp.server.tools import build_tool_descriptors as build_tool_descriptors
    from typedmcp.server.tools import build_tool_result as build_tool_result

_HOMES = {
    "App": "typedmcp.server.app",
    "Context": "typedmcp.server.context",
    "Elicited": "typedmcp.server.forms",
    "MCPServer": "typedmcp.server.server",
    "MissingCapability": "typedmcp.server.capabilities",
    "Tool": "typedmcp.server.tools",
    "ToolCall": "typedmcp.server.tools",
    "ToolManager": "typedmcp.server.tools",
    "ToolResult": "typedmcp.server.tools",
    "build_tool_descriptors": "typedmcp.server.tools",
    "build_tool_result": "typedmcp.server.tools",
    "initialize_result": "typedmcp.server.legacy",
}

__all__ = [
    "App",
    "Context",
    "Elicited",
    "MCPServer",
    "MissingCapability",
    "Tool",
    "ToolCall",
    "ToolManager",
    "ToolResult",
    "build_tool_descriptors",
    "build_tool_result",
    "initialize_result",
]


def __getattr__(name: str) -> object:
    import importlib

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
