"""No value makes a guard raise; interrupts pass."""

from __future__ import annotations

import gc
import random
from typing import Any

import pytest
from tests.codegen.guard_values import LATEST, planted, valid_value
from tests.codegen.hostile_values import TwinKey, deep, hostile_values

from typedmcp_wire import guards


@pytest.mark.req("A-077")
@pytest.mark.parametrize("name", hostile_values())
def test_hostile_values_raise_nothing(name: str) -> None:
    intruder = hostile_values()[name]
    rng = random.Random(name)
    for definition in guards.definitions(LATEST):
        for value in (intruder, planted(valid_value(LATEST, definition, rng), intruder, rng)):
            found = guards.explain(value, definition, LATEST)
            assert all(type(text) is str for entry in found for text in (entry.expected, entry.found, entry.message))
            assert guards.is_valid(value, definition, LATEST) is (not found)
            assert guards.parse(value, definition, LATEST) is (None if found else value)


@pytest.mark.req("A-077")
@pytest.mark.parametrize("make", [lambda v: [v], lambda v: {"a": v}, lambda v: {"params": v, "content": [v]}])
def test_deep_values_raise_nothing(make: Any) -> None:
    value = deep(make)
    try:
        for definition in guards.definitions(LATEST):
            guards.explain(value, definition, LATEST)
        (found,) = guards.explain([value], "JSONValue", LATEST)
        assert found.found == "value that nests too deeply"
    finally:
        _dismantle(value)


def _dismantle(value: Any) -> None:
    """Free a deep value from the outside in, since its own destructor could run out of stack."""
    while isinstance(value, (list, dict)) and value:
        inner = value[0] if isinstance(value, list) else next(iter(value.values()))
        value.clear()
        value = inner
    gc.collect()


def test_subclasses_of_the_json_types_are_judged_as_those() -> None:
    hostile = hostile_values()["dict subclass"]
    assert guards.is_valid(hostile, "JSONRPCRequest", LATEST)
    assert guards.parse(hostile, "JSONRPCRequest", LATEST) is hostile
    assert guards.is_valid(hostile_values()["int subclass"], "RequestId", LATEST)
    assert not guards.is_valid(hostile_values()["liar"], "Result", LATEST)


def test_what_cannot_be_inspected_is_invalid() -> None:
    (found,) = guards.explain({TwinKey("name", ValueError()): 1}, "Implementation", LATEST)
    assert found.found == "value that cannot be inspected"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_interrupts_pass(error: type[BaseException]) -> None:
    with pytest.raises(error):
        guards.explain({TwinKey("name", error()): 1}, "Implementation", LATEST)
    with pytest.raises(error):
        guards.is_valid({TwinKey("name", error()): 1}, "Implementation", LATEST)


def test_many_violations_take_linear_time() -> None:
    found = guards.explain({"tools": [1] * 100_000}, "ListToolsResult", LATEST)
    assert len(found) > 100_000
    assert found[99_999].pointer == "/tools/99999"
