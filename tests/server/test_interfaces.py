"""The surface: what the interfaces promise is what the classes have, and who may import whom."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest

import typedmcp
from typedmcp import MCPServer, ToolManager, types
from typedmcp.client.client import MCPClient
from typedmcp.core.connection import Connection
from typedmcp.core.emitter import Emitter
from typedmcp.core.jsonrpc import JSONRPCErrorData, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse
from typedmcp.core.transport import ClientTransportInterface, MCPServerInterface
from typedmcp.transports.memory import MemoryTransport

RUNTIME = Path(typedmcp.__file__).parent
PACKAGES = ["typedmcp", "typedmcp.core", "typedmcp.server"]


def public(kind: type[Any]) -> dict[str, Any]:
    """The public attributes of a class, its bases' included."""
    return {
        name: inspect.getattr_static(kind, name)
        for name in dir(kind)
        if not name.startswith("_") and name not in dir(object)
    }


def methods(kind: type[Any]) -> set[str]:
    return {name for name, value in public(kind).items() if callable(value)}


def data(kind: type[Any]) -> set[str]:
    return {name for name, value in public(kind).items() if isinstance(value, property)}


def modules(folder: str) -> list[Path]:
    return sorted((RUNTIME / folder).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Every module a file imports, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add(node.module or "")
    return found


# -- interfaces ------------------------------------------------------------------------------------------------------


@pytest.mark.req("A-008", "A-098", "A-310", "A-311", "A-312", "A-033")
def test_the_server_has_the_methods_of_its_interface_and_no_more() -> None:
    assert methods(MCPServerInterface) == {"dispatch", "handle"}
    assert methods(MCPServer) == {"dispatch", "handle"}
    assert data(MCPServerInterface) == {"emitter", "name", "version"}
    assert data(MCPServer) == {"emitter", "name", "version", "description", "protocol_versions"}


@pytest.mark.req("A-010", "A-099", "A-100", "A-310", "A-311", "A-312")
def test_a_transport_has_the_methods_of_its_interface_and_no_more() -> None:
    assert methods(ClientTransportInterface) == {"start", "send", "close"}
    assert methods(MemoryTransport) == {"start", "send", "close"}
    assert data(ClientTransportInterface) == {"emitter", "session"}


@pytest.mark.req("A-009", "A-055", "A-103")
def test_the_client_mirrors_the_server() -> None:
    assert {"on", "connect", "disconnect", "tools", "call"} <= methods(MCPClient)
    assert {"emitter", "connected", "transport"} <= data(MCPClient)


@pytest.mark.req("A-104", "A-310", "A-311")
def test_the_emitter_and_the_registry() -> None:
    assert methods(Emitter) == {"on", "once", "off", "emit", "destroy"}
    assert methods(ToolManager) == {"add", "remove", "definitions", "execute"}
    assert methods(Connection) == {
        "receive", "receive_malformed", "refusal", "notify", "request", "is_cancelled", "close", "wait_closed",
    }  # fmt: skip


@pytest.mark.req("A-310")
@pytest.mark.parametrize(
    ("kind", "interface"), [(MCPServer, MCPServerInterface), (MemoryTransport, ClientTransportInterface)]
)
def test_signatures_are_those_of_the_interface(kind: type[Any], interface: type[Any]) -> None:
    for name in methods(interface):
        mine, theirs = inspect.signature(getattr(kind, name)), inspect.signature(getattr(interface, name))
        assert list(mine.parameters) == list(theirs.parameters), name
        assert inspect.iscoroutinefunction(getattr(kind, name)) == inspect.iscoroutinefunction(getattr(interface, name))


@pytest.mark.req("A-310")
@pytest.mark.parametrize(
    "kind", [MCPServer, Emitter, ToolManager, Connection, MCPServerInterface, ClientTransportInterface]
)
def test_public_methods_are_documented(kind: type[Any]) -> None:
    for name in methods(kind):
        assert inspect.getdoc(getattr(kind, name)), f"{kind.__name__}.{name}"


@pytest.mark.req("A-088", "A-089", "A-090", "A-091", "A-092", "A-093", "A-094", "A-095", "A-314")
def test_types_are_plain_bags() -> None:
    shapes: dict[Any, set[str]] = {
        JSONRPCRequest: {"jsonrpc", "id", "method", "params"},
        JSONRPCResponse: {"jsonrpc", "id", "result", "error"},
        JSONRPCErrorData: {"code", "message", "data"},
    }
    for kind, fields in shapes.items():
        assert {info.encode_name for info in msgspec.structs.fields(kind)} == fields
        assert methods(kind) == set()
    assert JSONRPCMessage == JSONRPCRequest | JSONRPCResponse
    for struct, required in (
        (types.TextContent, {"text"}),
        (types.CallToolResult, {"content"}),
        (types.Tool, {"name", "inputSchema"}),
        (types.Implementation, {"name", "version"}),
    ):
        assert {info.encode_name for info in msgspec.structs.fields(struct) if info.required} == required
        assert methods(struct) == set()
    assert msgspec.json.encode(types.TextContent(text="7")) == b'{"type":"text","text":"7"}'
    assert types.TextContent(text="7").type == "text"


@pytest.mark.req("A-052", "A-057", "A-097", "A-314")
def test_options_of_the_server() -> None:
    parameters = inspect.signature(MCPServer).parameters
    assert {"name", "version", "tools", "description", "on", "error"} <= set(parameters)
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values())
    assert {name for name, parameter in parameters.items() if parameter.default is parameter.empty} == {
        "name",
        "version",
    }


@pytest.mark.req("A-053", "A-055", "A-102")
def test_options_of_the_client() -> None:
    parameters = inspect.signature(MCPClient).parameters
    assert {"transport", "name", "version", "timeout", "on", "error"} <= set(parameters)
    required = {name for name, parameter in parameters.items() if parameter.default is parameter.empty}
    assert required == {"transport"}


@pytest.mark.req("A-001", "A-003", "A-009", "A-101", "A-109")
async def test_a_client_hands_a_servers_tools_back_as_local_ones() -> None:
    tools = ToolManager([typedmcp.Tool(name="add", execute=lambda given: given["x"] + given["y"])])
    heard: list[str] = []
    async with typedmcp.connect(
        MCPServer(name="s", version="1", tools=tools), on={"connect": lambda: heard.append("connect")}
    ) as client:
        client.on("disconnect", lambda: heard.append("disconnect"))
        (tool,) = await client.tools()
        assert tool.name == "add"
        assert await tool.execute({"x": 2, "y": 5}) == 7
        assert await client.call("add", {"x": 2, "y": 5}) == 7
    assert heard == ["connect", "disconnect"]


@pytest.mark.req("A-064", "M-027", "M-029", "M-030", "M-032")
def test_no_error_code_is_made_up() -> None:
    """Codes come from the generated table; the one literal is the reference document's, and nothing sends it."""
    found: dict[str, list[int]] = {}
    for path in [*modules("core"), *modules("server")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and type(node.value) is int and 32000 <= node.value <= 32768:
                found.setdefault(path.name, []).append(-node.value)
            if isinstance(node, ast.Name) and node.id == "JSONRPC_SERVER_ERROR":
                assert path.name in ("constants.py", "__init__.py")
    assert found == {"constants.py": [-32000]}


# -- exports ---------------------------------------------------------------------------------------------------------


@pytest.mark.req("A-014", "A-309", "A-087")
@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_exists_and_is_documented(package: str) -> None:
    module = importlib.import_module(package)
    assert len(module.__all__) == len(set(module.__all__))
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), name
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name  # noqa: B018


@pytest.mark.req("A-014", "A-309")
@pytest.mark.parametrize("package", PACKAGES)
def test_what_type_checkers_see_is_what_is_exported(package: str) -> None:
    module = importlib.import_module(package)
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    seen: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                assert isinstance(statement, ast.ImportFrom)
                seen |= {name.asname or name.name: str(statement.module) for name in statement.names}
    assert set(seen) == set(module.__all__)
    for name, home in module._HOMES.items():
        assert seen[name] == home


SEED_CORE = """
    MCP_PROTOCOL_VERSION SUPPORTED_PROTOCOL_VERSIONS JSONRPC_PARSE_ERROR JSONRPC_INVALID_REQUEST
    JSONRPC_METHOD_NOT_FOUND JSONRPC_INVALID_PARAMS JSONRPC_SERVER_ERROR DEFAULT_MCP_CLIENT_NAME
    DEFAULT_MCP_CLIENT_VERSION DEFAULT_MCP_REQUEST_TIMEOUT is_request_id is_jsonrpc_request is_jsonrpc_response
    is_jsonrpc_message is_initialize_request parse_jsonrpc_message jsonrpc_result jsonrpc_error JSONRPCRequest
    JSONRPCErrorData JSONRPCResponse JSONRPCMessage MCPServerInterface ClientTransportInterface
"""
SEED_SERVER = "MCPServer ToolManager Tool build_tool_descriptors build_tool_result initialize_result"


@pytest.mark.req("A-087", "A-309", "A-001", "A-014")
def test_the_names_of_the_reference_document() -> None:
    assert set(SEED_CORE.split()) <= set(typedmcp.core.__all__)
    assert set(SEED_SERVER.split()) <= set(typedmcp.server.__all__)
    assert {"MCPServer", "MCPClient", "ToolManager", "App", "Context", "connect", "types", "validate"} <= set(
        typedmcp.__all__
    )


# -- who imports whom ------------------------------------------------------------------------------------------------

OUTSIDE = {"aiohttp", "click", "cryptography", "jinja2", "joserfc", "jsonschema", "redis", "rich", "uvloop"}
WAYS_OUT = {"asyncio.subprocess", "asyncio.streams", "http", "socket", "ssl", "subprocess", "urllib", "websockets"}


@pytest.mark.req("A-005", "A-006", "A-316", "A-013")
@pytest.mark.parametrize("path", modules("core"), ids=lambda path: path.name)
def test_the_core_imports_its_siblings_the_wire_and_no_way_out(path: Path) -> None:
    for name in imported(path):
        top = name.partition(".")[0]
        assert top not in OUTSIDE | WAYS_OUT
        assert name not in WAYS_OUT
        if top == "typedmcp":
            assert name == "typedmcp" or name.startswith("typedmcp.core"), name
        else:
            assert top in {"typedmcp_wire", "msgspec"} or top in sys.stdlib_module_names, name


@pytest.mark.req("A-005", "A-011", "A-316")
@pytest.mark.parametrize("path", modules("server"), ids=lambda path: path.name)
def test_the_server_knows_neither_transports_nor_clients(path: Path) -> None:
    for name in imported(path):
        assert not name.startswith(("typedmcp.transports", "typedmcp.client", "typedmcp.cli")), name
        assert name.partition(".")[0] not in (OUTSIDE - {"jsonschema", "cryptography"}) | WAYS_OUT, name


@pytest.mark.req("A-013")
@pytest.mark.parametrize("path", modules("core"), ids=lambda path: path.name)
def test_the_core_names_no_header(path: Path) -> None:
    text = path.read_text(encoding="utf-8").lower()
    assert "mcp-session-id" not in text
    assert "mcp-protocol-version" not in text
    assert "_HEADER" not in path.read_text(encoding="utf-8")


@pytest.mark.req("A-005", "A-316")
def test_the_core_loads_no_way_out() -> None:
    code = (
        "import sys, asyncio, logging\n"
        "before = set(sys.modules)\n"
        "import typedmcp.core as core\n"
        "[getattr(core, name) for name in core.__all__]\n"
        "print(' '.join(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_env())
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & (OUTSIDE | {"typedmcp_codegen", "http", "urllib", "subprocess"})
    assert not {name for name in done.stdout.split() if name.startswith(("typedmcp.server", "typedmcp.transports"))}


@pytest.mark.req("A-007")
@pytest.mark.parametrize("folder", ["core", "server"])
def test_wire_values_are_narrowed_not_cast(folder: str) -> None:
    """A cast is allowed where an isinstance or the annotation machinery stands beside it; never on decoded text."""
    for path in modules(folder):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"cast", "typing.cast"}:
                assert "decode" not in ast.unparse(node), f"{path.name}:{node.lineno}"


@pytest.mark.req("A-317", "A-318", "A-319")
def test_core_and_server_keep_no_timers_and_no_stores() -> None:
    for path in [*modules("core"), *modules("server")]:
        text = path.read_text(encoding="utf-8")
        assert "call_later" not in text, path.name
        assert not imported(path) & {"sched", "shelve", "sqlite3", "pickle"}


def test_annotations_of_the_interfaces_resolve() -> None:
    for kind in (MCPServer, Emitter, ToolManager):
        for name in methods(kind):
            assert "return" in get_type_hints(getattr(kind, name))


def _env() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(path for path in sys.path if path)}
