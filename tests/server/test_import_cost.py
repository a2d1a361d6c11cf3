"""Importing is cheap: what is not needed is not loaded."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

HEAVY = {
    "aiohttp",
    "click",
    "cryptography",
    "jinja2",
    "joserfc",
    "jsonschema",
    "redis",
    "referencing",
    "rich",
    "uvloop",
}


def loaded(code: str) -> set[str]:
    """The modules a fresh interpreter has after `code`."""
    script = f"import sys\n{code}\nprint(' '.join(sys.modules))"
    path = ":".join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={"PYTHONPATH": path}
    )
    return set(done.stdout.split())


CODE: dict[str, str] = {
    "the package": "import typedmcp",
    "an app": "from typedmcp import App",
    "a server": "from typedmcp import MCPServer, ToolManager",
    "everything public": "import typedmcp\n[getattr(typedmcp, name) for name in typedmcp.__all__]",
    "the barrels": "import typedmcp.core as c, typedmcp.server as s\n[getattr(m, n) for m in (c, s) for n in dir(m)]",
    "an app at work": """
import asyncio
from typedmcp import App
app = App("a")
@app.tool
async def add(a: int, b: int = 1) -> int:
    return a + b
text = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}'
assert '"2"' in asyncio.run(app.server.handle(text))
""",
}


@pytest.mark.req("A-005", "A-316")
@pytest.mark.parametrize("name", CODE)
def test_no_heavy_library_is_loaded(name: str) -> None:  # F106
    modules = loaded(CODE[name])
    assert not {module.partition(".")[0] for module in modules} & (HEAVY | {"typedmcp_codegen"})
    assert not {module for module in modules if module.startswith("typedmcp_wire.guards.r")}, "guards load when used"


@pytest.mark.req("A-316")
def test_the_bare_package_loads_next_to_nothing() -> None:
    modules = loaded("import typedmcp")
    assert not {"asyncio", "msgspec", "typedmcp_wire", "logging"} & modules
    assert {module for module in modules if module.startswith("typedmcp")} == {"typedmcp"}


@pytest.mark.parametrize("name", ["App", "MCPServer", "validate", "types", "connect"])
def test_public_names_stay_where_they_are(name: str) -> None:
    import typedmcp

    value: Any = getattr(typedmcp, name)
    assert getattr(typedmcp, name) is value
