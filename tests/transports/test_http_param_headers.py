"""Parameters that travel in a header too: markers when a tool is defined, headers when it is called (2026-07-28)."""

from __future__ import annotations

import base64
import contextlib
from typing import Annotated, Any

import msgspec
import pytest
from http_tools import Site, modern, modern_headers, request, serving, serving_asgi

from typedmcp import App, MCPServer, Tool, ToolManager
from typedmcp.core.errors import UsageError
from typedmcp.core.param_headers import Mark, read_marks
from typedmcp.transports.asgi import create_asgi_app
from typedmcp.transports.http import create_app


def headed(name: str) -> msgspec.Meta:
    return msgspec.Meta(extra_json_schema={"x-mcp-header": name})


def regional() -> App:
    app = App("regional", "1")

    @app.tool
    async def query(
        region: Annotated[str, headed("Region")],
        count: Annotated[int, headed("X-Count")] = 1,
        fresh: Annotated[bool, headed("Fresh")] = False,
        text: str = "",
    ) -> str:
        return f"{region} {count} {fresh} {text}"

    @app.tool
    async def plain(region: str = "") -> str:
        return region

    return app


# -- markers -----------------------------------------------------------------------------------------------------------


@pytest.mark.req("M-119")
def test_markers_are_found_through_properties() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "x-mcp-header": "A"},
            "x-mcp-header": {"type": "integer", "x-mcp-header": "B"},
            "deep": {"type": "object", "properties": {"c": {"type": "boolean", "x-mcp-header": "C-1"}}},
            "data": {"type": "object", "default": {"x-mcp-header": "no"}, "enum": [{"x-mcp-header": "no"}]},
        },
    }
    assert read_marks(schema) == (
        Mark("A", ("a",), "string"),
        Mark("B", ("x-mcp-header",), "integer"),
        Mark("C-1", ("deep", "c"), "boolean"),
    )
    for nothing in ({}, True, {"properties": True}, {"type": "object", "properties": {"a": {"type": "string"}}}):
        assert read_marks(nothing) == ()


@pytest.mark.req("M-119")
@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"a": {"type": "string", "x-mcp-header": ""}}, "header name"),
        ({"a": {"type": "string", "x-mcp-header": "two words"}}, "header name"),
        ({"a": {"type": "string", "x-mcp-header": "Zoë"}}, "header name"),
        ({"a": {"type": "string", "x-mcp-header": "a:b"}}, "header name"),
        ({"a": {"type": "string", "x-mcp-header": 7}}, "header name"),
        ({"a": {"type": "number", "x-mcp-header": "A"}}, "needs the type"),
        ({"a": {"type": "object", "x-mcp-header": "A"}}, "needs the type"),
        ({"a": {"type": "array", "x-mcp-header": "A"}}, "needs the type"),
        ({"a": {"type": ["string", "null"], "x-mcp-header": "A"}}, "needs the type"),
        ({"a": {"x-mcp-header": "A"}}, "needs the type"),
        (
            {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}},
            "stands at both a and b",
        ),
        ({"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}, "do not lead"),
        ({"a": {"anyOf": [{"type": "string", "x-mcp-header": "A"}]}}, "do not lead"),
        ({"a": {"if": {"properties": {"b": {"type": "string", "x-mcp-header": "A"}}}}}, "do not lead"),
    ],
)
def test_markers_that_break_a_rule_are_refused_when_the_tool_is_defined(properties: Any, told: str) -> None:
    app = App("s")
    with pytest.raises(UsageError, match=told) as refused:
        app.tool(lambda arguments: "", name="marked", input_schema={"type": "object", "properties": properties})
    assert "'marked'" in str(refused.value)
    assert not app._servicer.param_marks("marked")


@pytest.mark.req("M-119")
@pytest.mark.parametrize("schema", [{"x-mcp-header": "A"}, {"$defs": {"d": {"type": "string", "x-mcp-header": "A"}}}])
def test_a_schema_itself_and_its_definitions_cannot_be_marked(schema: Any) -> None:
    with pytest.raises(UsageError, match="do not lead"):
        read_marks({"type": "object", **schema})


# -- headers -----------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def served(kind: str) -> Any:
    if kind == "aiohttp":
        async with serving(create_app(regional())) as site:
            yield site
    else:
        async with serving_asgi(create_asgi_app(regional()), kind) as site:
            yield site


async def call(site: Site, tool: str, arguments: Any, **headers: str | None) -> Any:
    message = modern(request("tools/call", 1, name=tool, arguments=arguments))
    names = {f"Mcp-Param-{name.replace('_', '-')}": value for name, value in headers.items()}
    return await site.ask(message, modern_headers(message, **names))


def sixty_four(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@pytest.mark.req("M-123", "M-124", "M-125")
@pytest.mark.parametrize("kind", ["aiohttp", "httptools", "h11"])
async def test_headers_that_equal_the_arguments_pass(kind: str) -> None:
    async with served(kind) as site:
        passing: list[tuple[dict[str, Any], dict[str, str]]] = [
            ({"region": "eu"}, {"Region": "eu"}),
            ({"region": "eu"}, {"region": "  eu \t"}),
            ({"region": "eu"}, {"Region": sixty_four("eu")}),
            ({"region": "Zürich\n"}, {"Region": sixty_four("Zürich\n")}),
            ({"region": ""}, {"Region": ""}),
            ({"region": "eu", "count": 42}, {"Region": "eu", "X-Count": "42"}),
            ({"region": "eu", "count": -7}, {"Region": "eu", "X-Count": "-7.0"}),
            ({"region": "eu", "fresh": True}, {"Region": "eu", "Fresh": "true"}),
            ({"region": "eu", "count": 2**53 - 1}, {"Region": "eu", "X-Count": str(2**53 - 1)}),
            ({"region": "eu", "text": "x"}, {"Region": "eu", "Text": "unknown headers pass"}),
        ]
        for arguments, headers in passing:
            answer = await call(site, "query", arguments, **headers)
            assert answer.status == 200, (arguments, headers, answer)
            assert "isError" not in answer.json["result"], answer
        assert (await call(site, "plain", {"region": "eu"})).status == 200
        assert (await call(site, "plain", {"region": "eu"}, Region="us")).status == 200


@pytest.mark.req("M-120", "M-123", "M-124")
@pytest.mark.parametrize("kind", ["aiohttp", "httptools", "h11"])
async def test_headers_that_differ_are_refused(kind: str) -> None:
    async with served(kind) as site:
        refused: list[tuple[dict[str, Any], dict[str, str]]] = [
            ({"region": "eu"}, {}),
            ({"region": "eu"}, {"Region": "us"}),
            ({"region": "eu"}, {"Region": "EU"}),
            ({"region": "eu"}, {"Region": sixty_four("us")}),
            ({"region": "eu"}, {"Region": "=?base64?ZXU?="}),
            ({"region": "eu"}, {"Region": "=?base64?ZX!!U=?="}),
            ({"region": "eu", "count": 42}, {"Region": "eu"}),
            ({"region": "eu", "count": 42}, {"Region": "eu", "X-Count": "43"}),
            ({"region": "eu", "count": 42}, {"Region": "eu", "X-Count": "0x2a"}),
            ({"region": "eu", "count": 42}, {"Region": "eu", "X-Count": "4_2"}),
            ({"region": "eu", "count": 42}, {"Region": "eu", "X-Count": "1e999999"}),
            ({"region": "eu", "count": 2**53}, {"Region": "eu", "X-Count": str(2**53)}),
            ({"region": "eu", "fresh": True}, {"Region": "eu", "Fresh": "True"}),
            ({"region": "eu", "fresh": True}, {"Region": "eu", "Fresh": "1"}),
            ({}, {"Region": "eu"}),
            ({"region": None}, {"Region": "eu"}),
            ({"region": "eu"}, {"Region": "eu", "Fresh": "false"}),
            ({"region": ["eu"]}, {"Region": "us"}),
        ]
        for arguments, headers in refused:
            answer = await call(site, "query", arguments, **headers)
            assert (answer.status, answer.error) == (400, -32020), (arguments, headers, answer)


async def test_what_is_no_value_of_the_parameter_is_the_tools_to_refuse() -> None:
    async with served("aiohttp") as site:
        for value in ([], {}):
            answer = await call(site, "query", {"region": value})
            assert answer.status == 200
            assert answer.json["result"]["isError"] is True
        assert (await call(site, "query", {})).json["result"]["isError"] is True
        assert (await call(site, "query", "no object")).status in (200, 400)


@pytest.mark.req("M-048")
async def test_an_unknown_revision_is_told_before_its_headers_are_looked_at() -> None:
    async with served("aiohttp") as site:
        message = modern(request("tools/call", 1, name="query", arguments={"region": "eu"}), "2099-01-01")
        answer = await site.ask(message, modern_headers(message, **{"MCP-Protocol-Version": "2099-01-01"}))
        assert (answer.status, answer.error) == (400, -32022)


@pytest.mark.req("M-119", "M-123", "M-124")
async def test_a_plain_registry_of_tools_is_checked_too() -> None:
    def registered(kind: str) -> Tool:
        parameters = {"type": "object", "properties": {"region": {"type": kind, "x-mcp-header": "Region"}}}
        return Tool(name="query", execute=lambda arguments: "ran", parameters=parameters)

    manager = ToolManager([registered("string")])
    async with serving(create_app(MCPServer(name="s", version="1", tools=manager))) as site:
        assert (await call(site, "query", {"region": "eu"})).error == -32020
        assert (await call(site, "query", {"region": "eu"}, Region="eu")).status == 200
        manager.remove("query")
        assert (await call(site, "query", {"region": "eu"})).status == 200  # the tool is not there: no header is wanted
    with pytest.raises(UsageError, match=r"'query'.*needs the type"):
        ToolManager([registered("number")])


@pytest.mark.req("M-072")
def test_schemas_are_bounded() -> None:
    deep: Any = {"type": "string"}
    for _ in range(5000):
        deep = {"type": "object", "properties": {"a": deep}}
    app = App("s")
    with pytest.raises(UsageError, match=r"'deep'.*nests"):
        app.tool(lambda arguments: "", name="deep", input_schema=deep)
    with pytest.raises(UsageError, match=r"'deep'.*nests"):
        ToolManager([Tool(name="deep", execute=len, parameters=deep)])
    wide = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(60_000)}}
    with pytest.raises(UsageError, match="100,000 values"):
        app.tool(lambda arguments: "", name="wide", input_schema=wide)


async def test_clients_of_the_handshake_era_know_no_such_headers() -> None:
    async with served("aiohttp") as site:
        session = await site.handshake()
        message = request("tools/call", 1, name="query", arguments={"region": "eu"})
        assert (await site.ask(message, session)).text == "eu 1 False "


async def test_a_tool_that_is_taken_out_takes_its_marks_along() -> None:
    app = regional()
    assert [mark.header for mark in app._servicer.param_marks("query")] == ["Region", "X-Count", "Fresh"]
    app.remove_tool("query")
    assert app._servicer.param_marks("query") == ()
