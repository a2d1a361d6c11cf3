"""typedmcp: the Model Context Protocol, typed.

Names are loaded when first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typedmcp import types as types
    from typedmcp.client.client import MCPClient as MCPClient
    from typedmcp.core.errors import MCPError as MCPError
    from typedmcp.core.errors import ToolError as ToolError
    from typedmcp.core.errors import TypedMCPError as TypedMCPError
    from typedmcp.core.validation import validate as validate
    from typedmcp.core.validation import validate_message as validate_message
    from typedmcp.server.app import App as App
    from typedmcp.server.context import Context as Context
    from typedmcp.server.server import MCPServer as MCPServer
    from typedmcp.server.tools import Tool as Tool
    from typedmcp.server.tools import ToolManager as ToolManager
    from typedmcp.targets import connect as connect

__version__ = "0.1.0"

_HOMES = {
    "App": "typedmcp.server.app",
    "Context": "typedmcp.server.context",
    "MCPClient": "typedmcp.client.client",
    "MCPError": "typedmcp.core.errors",
    "MCPServer": "typedmcp.server.server",
    "Tool": "typedmcp.server.tools",
    "ToolError": "typedmcp.core.errors",
    "ToolManager": "typedmcp.server.tools",
    "TypedMCPError": "typedmcp.core.errors",
    "connect": "typedmcp.targets",
    "validate": "typedmcp.core.validation",
    "validate_message": "typedmcp.core.validation",
}

__all__ = [
    "App",
    "Context",
    "MCPClient",
    "MCPError",
    "MCPServer",
    "Tool",
    "ToolError",
    "ToolManager",
    "TypedMCPError",
    "connect",
    "types",
    "validate",
    "validate_message",
]


def __getattr__(name: str) -> object:
    import importlib

    if name == "types":
        return importlib.import_module("typedmcp.types")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'typedmcp' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
