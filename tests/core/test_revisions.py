"""Cutting a value down to what a revision knows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from typedmcp import validate
from typedmcp.core.revisions import exists_in, fit
from typedmcp_wire.revisions import HANDSHAKE_REVISIONS, REVISIONS
from typedmcp_wire.types.base import Icon, Implementation, ServerCapabilities, ToolsCapability
from typedmcp_wire.types.calls import CallToolResult
from typedmcp_wire.types.content import Annotations, Resource, TextContent
from typedmcp_wire.types.resources import ListResourcesResult
from typedmcp_wire.types.tools import ListToolsResult, Tool, ToolAnnotations

TOOL = Tool(
    name="t",
    title="T",
    input_schema={"type": "object", "title": "stays"},
    output_schema={"type": "object"},
    annotations=ToolAnnotations(title="A", read_only_hint=True),
    icons=[Icon(src="https://example.com/i.png", theme="dark")],
    meta={"a": 1},
)
LIST = ListToolsResult(
    tools=[TOOL], next_cursor="n", ttl_ms=5, cache_scope="public", result_type="complete", meta={"title": "stays"}
)


def wire(value: Any) -> Any:
    return msgspec.to_builtins(value)


@pytest.mark.req("H-058", "M-011", "M-179")
@pytest.mark.parametrize(
    ("revision", "tool_keys", "result_keys"),
    [
        ("2024-11-05", {"name", "inputSchema"}, set()),
        ("2025-03-26", {"name", "inputSchema", "annotations"}, set()),
        ("2025-06-18", {"name", "inputSchema", "annotations", "title", "outputSchema", "_meta"}, set()),
        ("2025-11-25", {"name", "inputSchema", "annotations", "title", "outputSchema", "_meta", "icons"}, set()),
        (
            "2026-07-28",
            {"name", "inputSchema", "annotations", "title", "outputSchema", "_meta", "icons"},
            {"ttlMs", "cacheScope", "resultType"},
        ),
    ],
)
def test_a_list_of_tools(revision: str, tool_keys: set[str], result_keys: set[str]) -> None:
    fitted = wire(fit(LIST, revision))
    assert set(fitted) == {"tools", "nextCursor", "_meta", *result_keys}
    assert set(fitted["tools"][0]) == tool_keys
    assert fitted["tools"][0]["inputSchema"] == {"type": "object", "title": "stays"}
    assert fitted["_meta"] == {"title": "stays"}
    assert validate(fitted, "ListToolsResult", revision) == ()


@pytest.mark.req("H-058")
def test_the_original_is_never_changed() -> None:
    before = wire(LIST)
    for revision in REVISIONS:
        fit(LIST, revision)
    assert wire(LIST) == before


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_fits_already_is_the_same_object(revision: str) -> None:
    plain = ListToolsResult(tools=[Tool(name="t", input_schema={"type": "object"})])
    assert fit(plain, revision) is plain
    for value in (None, 5, "x", {"icons": 1}, [plain], msgspec.UNSET):
        assert fit(value, revision) is value


@pytest.mark.req("H-058")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_nested_structs_are_reached_through_lists(revision: str) -> None:
    resource = Resource(
        uri="a://b",
        name="n",
        title="T",
        icons=[Icon(src="https://example.com/i.png")],
        size=5,
        annotations=Annotations(priority=1.0, last_modified="2025-01-12T15:00:58Z"),
    )
    fitted = wire(fit(ListResourcesResult(resources=[resource]), revision))
    assert validate(fitted, "ListResourcesResult", revision) == ()
    entry = fitted["resources"][0]
    assert ("title" in entry) is (revision >= "2025-06-18")
    assert ("icons" in entry) is (revision >= "2025-11-25")
    assert ("lastModified" in entry["annotations"]) is (revision >= "2025-06-18")
    assert entry["size"] == 5


@pytest.mark.req("H-058")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_implementation_and_capabilities(revision: str) -> None:
    info = Implementation(
        name="n", version="1", title="T", description="D", website_url="https://example.com", icons=[Icon(src="a://b")]
    )
    keys = set(wire(fit(info, revision)))
    assert keys == {"name", "version"} | ({"title"} if revision >= "2025-06-18" else set()) | (
        {"description", "websiteUrl", "icons"} if revision >= "2025-11-25" else set()
    )
    capabilities = ServerCapabilities(tools=ToolsCapability(), completions={}, logging={})
    assert ("completions" in wire(fit(capabilities, revision))) is (revision >= "2025-03-26")


@pytest.mark.req("H-058")
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_null_that_is_a_value_stays_one(revision: str) -> None:
    result = CallToolResult(content=[TextContent(text="x", meta={"a": 1})], structured_content=None)
    fitted = wire(fit(result, revision))
    assert ("structuredContent" in fitted) is (revision >= "2025-06-18")
    assert ("_meta" in fitted["content"][0]) is (revision >= "2025-06-18")


@pytest.mark.req("H-058")
@pytest.mark.parametrize(
    ("definition", "since"),
    [("AudioContent", "2025-03-26"), ("ResourceLink", "2025-06-18"), ("Icon", "2025-11-25"), ("Tool", "2024-11-05")],
)
def test_definitions_have_a_first_revision(definition: str, since: str) -> None:
    assert [revision for revision in REVISIONS if exists_in(definition, revision)] == [
        revision for revision in REVISIONS if revision >= since
    ]
