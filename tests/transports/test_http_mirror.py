"""The headers that repeat parts of a message, against its body."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from http_tools import LATEST, Site, Tools, make, modern, modern_headers, request, serving, serving_asgi, tool
from hypothesis import given
from hypothesis import strategies as st

from typedmcp.core.errors import MCPError
from typedmcp.transports.asgi import create_asgi_app
from typedmcp.transports.http import create_app
from typedmcp.transports.http.mirror import check_mirror, decode_value, encode_value


def marked(value: str) -> str:
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.req("M-111", "M-112", "M-117", "M-118")
@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("plain", "plain"),
        ("in between\tsp ace", "in between\tsp ace"),
        ("ünï", marked("ünï")),
        ("日本語", marked("日本語")),
        (" lead", marked(" lead")),
        ("trail\t", marked("trail\t")),
        ("new\nline", marked("new\nline")),
        ("null\0", marked("null\0")),
        ("", marked("")),
        (marked("x"), marked(marked("x"))),
        ("=?base64?", "=?base64?"),
        ("=?BASE64?eA==?=", "=?BASE64?eA==?="),
        ("?=", "?="),
    ],
)
def test_a_value_goes_as_it_is_or_marked(value: str, header: str) -> None:
    assert encode_value(value) == header
    assert decode_value(header) == value


@pytest.mark.req("M-111", "M-112")
@given(st.text())
def test_every_text_comes_back(value: str) -> None:
    header = encode_value(value)
    assert header.isascii()
    assert "\n" not in header
    assert "\r" not in header
    assert decode_value(header) == value


@pytest.mark.req("M-113", "M-110")
@pytest.mark.parametrize(
    "header",
    [
        "=?base64?e?=",
        "=?base64?eA?=",
        "=?base64?eA===?=",
        "=?base64?e A==?=",
        "=?base64?eB==?=",  # a stray trailing bit
        "=?base64?*A==?=",
        "=?base64?_-8=?=",
        "=?base64?/w==?=",  # no UTF-8
        "ünï",
        "a\x01b",
        "a\x7f\x80",
    ],
)
def test_what_stands_for_no_value_is_none(header: str) -> None:
    assert decode_value(header) is None


@pytest.mark.req("M-109", "M-113")
@pytest.mark.parametrize(
    ("header", "value"),
    [("  x \t", "x"), ("=?base64?eA==", "=?base64?eA=="), ("eA==?=", "eA==?="), ("=?base64?=", "=?base64?=")],
)
def test_white_space_around_and_half_a_marker(header: str, value: str) -> None:
    assert decode_value(header) == value


@pytest.mark.req("M-107")
def test_the_refusal_names_the_header_and_not_what_the_client_sent() -> None:
    with pytest.raises(MCPError) as caught:
        check_mirror({"mcp-protocol-version": "<script>"}.get, "x", LATEST, {})
    assert caught.value.code == -32020
    with pytest.raises(MCPError) as caught:
        check_mirror(lambda name: "<script>", "x", LATEST, {})
    assert "<script>" not in f"{caught.value.message} {caught.value.data}"
    assert caught.value.data == {"header": "MCP-Protocol-Version", "expected": LATEST}


@pytest.mark.req("M-110")
@pytest.mark.parametrize("value", ["ünï", "a\x01b", "a\x7f", "=?base64?eA==?="])
def test_a_header_that_equals_the_body_must_still_be_one(value: str) -> None:
    """Also where its letters could not stand in a header, or stand for something else."""
    headers = {"MCP-Protocol-Version": LATEST, "Mcp-Method": "tools/call", "Mcp-Name": value}
    with pytest.raises(MCPError):
        check_mirror(headers.get, "tools/call", LATEST, {"name": value})
    check_mirror({**headers, "Mcp-Name": encode_value(value)}.get, "tools/call", LATEST, {"name": value})


# -- over HTTP ---------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def served(kind: str) -> AsyncIterator[Site]:
    server = make(Tools())
    context = serving(create_app(server)) if kind == "aiohttp" else serving_asgi(create_asgi_app(server), kind)
    async with context as site:
        yield site


KINDS = pytest.mark.parametrize("kind", ["aiohttp", "httptools", "h11"])


@KINDS
@pytest.mark.req("M-104", "M-105", "M-107", "M-108", "M-109", "M-110", "M-112", "M-113", "B-142")
async def test_headers_and_body_must_agree(kind: str) -> None:
    message = modern(tool("add"))
    good = modern_headers(message)
    async with served(kind) as site:

        async def status(**changes: str | None) -> int:
            headers = {name.replace("_", "-"): value for name, value in changes.items()}
            answer = await site.ask(message, {**good, **headers})
            assert answer.status == 200 or answer.error == -32020, answer
            return answer.status

        assert await status() == 200
        for missing in ("MCP_Protocol_Version", "Mcp_Method", "Mcp_Name"):
            assert await status(**{missing: None}) == 400
        assert await status(MCP_Protocol_Version="2025-11-25") == 400
        assert await status(MCP_Protocol_Version="2027-01-01") == 400
        assert await status(Mcp_Method="tools/list") == 400
        assert await status(Mcp_Method="Tools/Call") == 400
        assert await status(Mcp_Name="safe") == 400
        assert await status(Mcp_Name="Add") == 400
        assert await status(Mcp_Name="") == 400
        assert await status(Mcp_Name="  add\t ") == 200
        assert await status(MCP_Protocol_Version=f" {LATEST}  ", Mcp_Method="tools/call ") == 200
        assert await status(Mcp_Name=marked("add")) == 200
        assert await status(Mcp_Name="=?base64?YWRk=?=") == 400
        assert await status(Mcp_Name="=?base64?YWRl?=") == 400
        assert await status(Mcp_Name="ädd") == 400
        lowered = {name.lower(): value for name, value in good.items()}
        assert (await site.ask(message, lowered)).status == 200
        raised = {name.upper(): value for name, value in good.items()}
        assert (await site.ask(message, raised)).status == 200


@KINDS
@pytest.mark.req("M-109", "H-026")
async def test_white_space_around_other_headers_is_not_part_of_them(kind: str) -> None:
    """uvicorn with httptools leaves it behind a value."""
    async with served(kind) as site:
        session = await site.handshake()
        padded = {name: f"  {value} \t " for name, value in session.items()}
        padded["Content-Type"] = " application/json \t"
        assert (await site.ask(request(), padded)).status == 200
        assert (await site.ask(None, padded, method="DELETE")).status == 204


@pytest.mark.req("M-107", "M-106")
async def test_what_the_name_header_repeats_depends_on_the_method() -> None:
    async with served("aiohttp") as site:
        for method, params, name in (
            ("prompts/get", {"name": "p"}, "p"),
            ("resources/read", {"uri": "a://b"}, "a://b"),
            ("tools/call", {"name": "日"}, marked("日")),
        ):
            message = modern(request(method, **params))
            right = await site.ask(message, modern_headers(message, **{"Mcp-Name": name}))
            assert right.json.get("error", {}).get("code") != -32020
            for wrong in (None, "x", name + "x"):
                answer = await site.ask(message, modern_headers(message, **{"Mcp-Name": wrong}))
                assert (answer.status, answer.error) == (400, -32020)
        # Where nothing is repeated, what stands there does not matter.
        message = modern(request("tools/list", name="x"))
        assert (await site.ask(message, modern_headers(message, **{"Mcp-Name": "whatever"}))).status == 200


@pytest.mark.req("M-104")
async def test_a_body_without_the_member_agrees_with_no_header() -> None:
    async with served("aiohttp") as site:
        for name in (7, None, ["add"], {"a": 1}):
            message = modern(request("tools/call", name=name))
            for header in (None, "add", json.dumps(name)):
                answer = await site.ask(message, modern_headers(message, **{"Mcp-Name": header}))
                assert (answer.status, answer.error) == (400, -32020)


async def test_other_headers_of_the_protocol_are_let_pass() -> None:
    async with served("aiohttp") as site:
        message = modern(tool("add"))
        answer = await site.ask(message, modern_headers(message, **{"Mcp-Param-Unknown": "x", "Mcp-Future": "y"}))
        assert answer.status == 200


@pytest.mark.req("H-026", "M-107")
async def test_in_the_handshake_era_the_routing_headers_mean_nothing() -> None:
    async with served("aiohttp") as site:
        session = await site.handshake()
        answer = await site.ask(tool("add"), {**session, "Mcp-Method": "x", "Mcp-Name": "y"})
        assert answer.status == 200
