"""``typedmcp schema``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import Result
from jsonschema import Draft202012Validator

from typedmcp_wire.revisions import LATEST_PROTOCOL_VERSION, REVISIONS

Invoke = Callable[..., Result]


def test_the_newest_revision_by_default(invoke: Invoke) -> None:
    printed = json.loads(invoke("schema").stdout)
    assert printed == json.loads(invoke("schema", LATEST_PROTOCOL_VERSION).stdout)
    assert printed == json.loads(invoke("schema", "latest").stdout)
    assert "DiscoverResult" in printed["$defs"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_revision_is_a_valid_schema(invoke: Invoke, revision: str) -> None:
    printed = json.loads(invoke("schema", revision).stdout)
    Draft202012Validator.check_schema(printed)
    assert revision in printed["title"]


def test_a_list_of_the_revisions(invoke: Invoke) -> None:
    assert invoke("schema", "--list").stdout.split() == list(REVISIONS)


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, member in value.items():
            if key == "$ref":
                yield member
            yield from references(member)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_one_definition_comes_with_all_it_refers_to(invoke: Invoke) -> None:
    printed = json.loads(invoke("schema", "2025-06-18", "--definition", "Tool").stdout)
    assert printed["$ref"] == "#/$defs/Tool"
    assert {"Tool", "ToolAnnotations"} <= printed["$defs"].keys()
    assert "Resource" not in printed["$defs"]
    assert {ref.removeprefix("#/$defs/") for ref in references(printed)} <= printed["$defs"].keys()
    validator = Draft202012Validator(printed)
    assert validator.is_valid({"name": "a", "inputSchema": {"type": "object"}})
    assert not validator.is_valid({"name": "a"})


def test_a_recursive_definition_ends(invoke: Invoke) -> None:
    printed = json.loads(invoke("schema", "--definition", "CallToolResult").stdout)
    assert {ref.removeprefix("#/$defs/") for ref in references(printed)} <= printed["$defs"].keys()


def test_the_method_table(invoke: Invoke) -> None:
    table = json.loads(invoke("schema", "2024-11-05", "--methods").stdout)
    assert table["initialize"]["senders"] == ["client"]
    assert "server/discover" not in table


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["2025-06"], "did you mean 2025-06-18?"),
        (["zzz"], "known are 2024-11-05"),
        (["--definition", "tol"], "did you mean Tool?"),
        (["2024-11-05", "--definition", "DiscoverResult"], "2024-11-05 has no definition 'DiscoverResult'"),
        (["--list", "--methods"], "use one of them"),
    ],
)
def test_mistakes_get_advice(invoke: Invoke, words: list[str], advice: str) -> None:
    result = invoke("schema", *words)
    assert result.exit_code == 2
    assert advice in result.stderr
    assert result.stdout == ""
