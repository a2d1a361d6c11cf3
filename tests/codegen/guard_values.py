"""Values for the guard tests, valid ones made from a schema and near misses, and what jsonschema says of them."""

from __future__ import annotations

import copy
import functools
import json
import random
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry

import typedmcp_wire
from typedmcp_wire import guards

SCHEMAS = Path(typedmcp_wire.__file__).parent / "schemas"
REVISIONS = tuple(path.name.removesuffix(".schema.json") for path in sorted(SCHEMAS.glob("*.schema.json")))
LATEST = REVISIONS[-1]
EVERY = [(revision, name) for revision in REVISIONS for name in guards.definitions(revision)]
quiet = settings(derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
seeds = st.integers(0, 2**32)

Schema = dict[str, Any]
POOL: list[Any] = [
    None, True, False, 0, 1, -1, 3, 1.0, 0.5, -0.0, 1e300, 10**30, float("nan"), float("inf"),
    "", "x", "2.0", "text", "url", "object", "tools/call", [], {}, [None], ["x"], [{}], {"type": "text"}, {"a": {}},
]  # fmt: skip
_DEEPEST = 6
# Keys by which unions are told apart.
_TELLING = ["extra", "error", "result", "id", "method", "blob", "items", "enum", "oneOf", "task", "action", "_meta"]


class Maker:
    """Makes values that are valid against the definitions of one revision's schema."""

    def __init__(self, document: Schema, rng: random.Random) -> None:
        self._definitions = document["$defs"]
        self._rng = rng

    def definition(self, name: str) -> Any:
        return self._make(self._definitions[name], 0)

    def _make(self, schema: Any, depth: int) -> Any:
        rng = self._rng
        if not isinstance(schema, dict):
            return copy.deepcopy(rng.choice(POOL))
        if "$ref" in schema:
            return self._make(self._definitions[schema["$ref"].rpartition("/")[2]], depth + 1)
        if "anyOf" in schema:
            members = schema["anyOf"]
            return self._make(members[-1] if depth > _DEEPEST else rng.choice(members), depth + 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return rng.choice(schema["enum"])
        kinds = schema.get("type", [])
        kind = kinds if isinstance(kinds, str) else rng.choice(kinds) if kinds else None
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            most = 0 if depth > _DEEPEST else min(3, schema.get("maxItems", 3))
            return [self._make(schema.get("items"), depth + 1) for _ in range(rng.randint(0, most))]
        return copy.deepcopy(rng.choice(POOL)) if kind is None else self._scalar(kind, schema)

    def _object(self, schema: Schema, depth: int) -> Schema:
        required = schema.get("required", [])
        chance = 0.5 if depth <= _DEEPEST else 0.0
        out = {
            name: self._make(child, depth + 1)
            for name, child in schema.get("properties", {}).items()
            if name in required or self._rng.random() < chance
        }
        if self._rng.random() < chance:
            others = schema.get("additionalProperties", True)
            out[self._rng.choice(["extra", "a/b~c", "ü", "{x}"])] = self._make(others, depth + 1)
        return out

    def _scalar(self, kind: str, schema: Schema) -> Any:
        low, high = schema.get("minimum", -5), schema.get("maximum", 5)
        number = self._rng.choice([low, high, self._rng.uniform(low, high)])
        return {
            "string": self._rng.choice(["", "x", "text", "\ud800", "long " * 30]),
            "integer": self._rng.choice([int(low), int(high), float(int(high)), 0 if low <= 0 <= high else low]),
            "number": number,
            "boolean": self._rng.random() < 0.5,
            "null": None,
        }[kind]


def near_miss(value: Any, rng: random.Random) -> Any:
    """A copy of `value` with one thing done to one place of it."""
    root = [copy.deepcopy(value)]
    places = _places(root)
    holder, key = rng.choice(places)
    here = holder[key]
    action = rng.choice(["replace", "replace", "delete", "delete", "add", "nest", "alter"])
    if action == "delete" and holder is not root:
        del holder[key]
    elif action == "add" and isinstance(here, dict):
        here[rng.choice(_TELLING)] = _any(rng)
    elif action == "add" and isinstance(here, list):
        here.append(_any(rng))
    elif action == "nest":
        holder[key] = rng.choice([[here], {"x": here}])
    elif action == "alter":
        holder[key] = _altered(here)
    else:
        holder[key] = _any(rng)
    return root[0]


def _altered(value: Any) -> Any:
    """Something that looks much like `value`: 1 for True, 1.0 for 1, another string."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return float(value) if abs(value) < 9 else str(value)
    return value + 0.5 if isinstance(value, float) else f"{value}x" if isinstance(value, str) else 0


def _any(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(POOL))


def _places(root: list[Any]) -> list[tuple[Any, Any]]:
    """Every place inside `root` as container and key."""
    found: list[tuple[Any, Any]] = []
    queue: list[Any] = [root]
    while queue:
        container = queue.pop()
        for key, child in container.items() if isinstance(container, dict) else enumerate(container):
            found.append((container, key))
            if isinstance(child, (dict, list)):
                queue.append(child)
    return found


def planted(value: Any, intruder: Any, rng: random.Random) -> Any:
    """A copy of `value` with `intruder` put in one place of it."""
    root = [copy.deepcopy(value)]
    holder, key = rng.choice(_places(root))
    holder[key] = intruder
    return root[0]


@functools.cache
def document(revision: str) -> dict[str, Any]:
    """The generated plain schema of a revision."""
    return json.loads((SCHEMAS / f"{revision}.schema.json").read_text(encoding="utf-8"))


@functools.cache
def validator(revision: str, definition: str) -> Draft202012Validator:
    schema = {"$ref": f"#/$defs/{definition}", "$defs": document(revision)["$defs"]}
    return Draft202012Validator(schema, registry=Registry())


def valid_value(revision: str, definition: str, rng: random.Random) -> Any:
    return Maker(document(revision), rng).definition(definition)
