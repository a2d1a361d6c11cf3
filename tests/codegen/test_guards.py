"""The generated guards judge as jsonschema does; equal ones are written once; modules load when used."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from tests.codegen.guard_values import (
    EVERY,
    LATEST,
    REVISIONS,
    document,
    near_miss,
    quiet,
    seeds,
    valid_value,
    validator,
)

from typedmcp_wire import guards


def agree(value: Any, definition: str, revision: str) -> bool:
    """Whether value is valid; fails unless guard and jsonschema say the same and the guard is consistent."""
    wanted = validator(revision, definition).is_valid(value)
    found = guards.explain(value, definition, revision)
    assert (not found) == wanted, (value, found)
    assert guards.is_valid(value, definition, revision) == wanted
    assert guards.parse(value, definition, revision) is (value if wanted else None)
    return wanted


# --- the verdict


@pytest.mark.req("A-077", "A-079")
@pytest.mark.parametrize(("revision", "definition"), EVERY)
@settings(quiet, max_examples=6)
@given(seed=seeds)
def test_verdict_is_jsonschemas(revision: str, definition: str, seed: int) -> None:
    rng = random.Random(seed)
    value = valid_value(revision, definition, rng)
    assert agree(value, definition, revision)
    for _ in range(5):
        agree(near_miss(value, rng), definition, revision)
    agree(near_miss(near_miss(value, rng), rng), definition, revision)


@pytest.mark.parametrize("revision", REVISIONS)
def test_definitions_are_the_schemas(revision: str) -> None:
    assert guards.definitions(revision) == tuple(sorted(document(revision)["$defs"]))


@pytest.mark.parametrize("value", [1.0, -1.0, 1e300, "x"])
def test_an_integral_float_is_an_integer(value: object) -> None:
    assert guards.is_valid(value, "RequestId", LATEST)


@pytest.mark.parametrize("value", [True, False, 1.5, float("nan"), float("inf"), None, [], {}])
def test_a_boolean_or_a_fraction_is_no_integer(value: object) -> None:
    assert not guards.is_valid(value, "RequestId", LATEST)


def test_constants_compare_as_json() -> None:
    error = {"code": -32601.0, "message": "x"}
    assert agree(error, "MethodNotFoundError", LATEST)
    assert not agree({**error, "code": True}, "MethodNotFoundError", LATEST)


# --- one guard for what is equal


def closure(revision: str, definition: str) -> Any:
    """A definition and all it refers to, without the words."""
    seen: dict[str, Any] = {}
    queue = [definition]
    while queue:
        name = queue.pop()
        if name not in seen:
            seen[name] = _bare(document(revision)["$defs"][name])
            queue.extend(_references(seen[name]))
    return seen


def _bare(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key not in ("description", "format")}
    for key, value in kept.items():
        if key == "properties":
            kept[key] = {name: _bare(child) for name, child in value.items()}
        elif key == "anyOf":
            kept[key] = [_bare(child) for child in value]
        elif key in ("items", "additionalProperties"):
            kept[key] = _bare(value)
    return kept


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].rpartition("/")[2]
        for child in schema.values():
            yield from _references(child)
    elif isinstance(schema, list):
        for child in schema:
            yield from _references(child)


@pytest.mark.parametrize(("older", "newer"), list(itertools.pairwise(REVISIONS)))
def test_equal_guards_are_one_function(older: str, newer: str) -> None:
    both = set(guards.definitions(older)) & set(guards.definitions(newer))
    shared = 0
    for name in both:
        one = guards.guard(name, older) is guards.guard(name, newer)
        shared += one
        if "$ref" not in document(older)["$defs"][name]:
            assert one == (closure(older, name) == closure(newer, name)), name
    assert shared > 10


def test_modules_load_when_used() -> None:
    script = (
        "import sys; from typedmcp_wire import guards; loaded = lambda: sorted(m[-10:] for m in sys.modules"
        " if m.startswith('typedmcp_wire.guards.r')); print(loaded());"
        f"guards.is_valid(1, 'Result', {REVISIONS[1]!r}); print(loaded())"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    upto = [revision.replace("-", "_") for revision in REVISIONS[:2]]
    assert done.stdout.splitlines() == ["[]", str(upto)]


# --- names that do not exist


def test_an_unknown_revision_names_the_known() -> None:
    with pytest.raises(LookupError) as caught:
        guards.guard("Result", "2023-01-01")
    assert str(caught.value) == f"unknown revision '2023-01-01'; known: {', '.join(REVISIONS)}"


def test_a_definition_of_other_revisions_says_which() -> None:
    with pytest.raises(LookupError) as caught:
        guards.explain({}, "DiscoverRequest", "2024-11-05")
    assert str(caught.value) == "2024-11-05 has no DiscoverRequest; it is part of 2026-07-28"


def test_an_unknown_definition_suggests() -> None:
    with pytest.raises(LookupError, match="has no definition 'CallToolReslt'; did you mean CallToolResult"):
        guards.is_valid({}, "CallToolReslt", LATEST)
    with pytest.raises(LookupError, match="definitions\\(revision\\) lists the names"):
        guards.parse({}, "???", LATEST)
