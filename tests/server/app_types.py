"""Types of every family, at module level so that annotations resolve."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

from msgspec import Meta, Struct


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


@dataclass
class Point:
    """A place."""

    x: int
    y: int = 0


class Shape(TypedDict):
    name: str
    corners: list[Point]


class Pair(NamedTuple):
    left: int
    right: str


class User(Struct, rename="camel"):
    """A person."""

    first_name: str
    age: Annotated[int, Meta(ge=0)] = 0


@dataclass
class Tree:
    """A tree of labels."""

    label: str
    children: list[Tree] = field(default_factory=list)


class Node(Struct):
    value: int
    next: Node | None = None


class Cat(Struct, tag="cat"):
    lives: int = 9


class Dog(Struct, tag="dog"):
    tricks: list[str] = []


class Blob(Struct):
    name: str
    data: bytes


Positive = Annotated[int, Meta(gt=0)]

GOOD: list[tuple[Any, Any, Any]] = [
    # annotation, value as JSON, value as the function sees it
    (int, 5, 5),
    (int, 5.0, 5),
    (int, 2**70, 2**70),
    (int, -0.0, 0),
    (float, 1.5, 1.5),
    (float, 2, 2.0),
    (str, "x", "x"),
    (str, '{"a":1}', '{"a":1}'),
    (str, "12345", "12345"),
    (str, "null", "null"),
    (str, "", ""),
    (bool, True, True),
    (None, None, None),
    (Any, {"a": [1, None]}, {"a": [1, None]}),
    (object, [1.5], [1.5]),
    (list, [1, "a"], [1, "a"]),
    (dict, {"a": 1}, {"a": 1}),
    (list[int], [1, 2.0], [1, 2]),
    (dict[str, float], {"a": 1}, {"a": 1.0}),
    (dict[int, str], {"1": "a"}, {1: "a"}),
    (set[int], [1, 2], {1, 2}),
    (frozenset[str], ["a"], frozenset({"a"})),
    (tuple[int, str], [1, "a"], (1, "a")),
    (tuple[int, ...], [1, 2], (1, 2)),
    (int | None, None, None),
    (int | None, 3, 3),
    (int | str, "7", "7"),
    (int | str, 7, 7),
    (list[int] | str, "[1]", "[1]"),
    (Literal["a", "b"], "b", "b"),
    (Literal[1, 2], 2, 2),
    (Colour, "red", Colour.RED),
    (Size, 2, Size.LARGE),
    (Size, 2.0, Size.LARGE),
    (dt.datetime, "2025-01-02T03:04:05Z", dt.datetime(2025, 1, 2, 3, 4, 5, tzinfo=dt.UTC)),
    (dt.date, "2025-01-02", dt.date(2025, 1, 2)),
    (dt.time, "03:04:05", dt.time(3, 4, 5)),
    (dt.timedelta, "PT90S", dt.timedelta(seconds=90)),
    (uuid.UUID, "12345678-1234-5678-1234-567812345678", uuid.UUID("12345678-1234-5678-1234-567812345678")),
    (Decimal, "1.10", Decimal("1.10")),
    (bytes, "/wA=", b"\xff\x00"),
    (Point, {"x": 1}, Point(1)),
    (Point, {"x": 1.0, "y": 2}, Point(1, 2)),
    (Shape, {"name": "s", "corners": [{"x": 1}]}, {"name": "s", "corners": [Point(1)]}),
    (Pair, [1, "r"], Pair(1, "r")),
    (User, {"firstName": "A"}, User(first_name="A")),
    (Tree, {"label": "a", "children": [{"label": "b"}]}, Tree("a", [Tree("b")])),
    (Node, {"value": 1, "next": {"value": 2}}, Node(1, Node(2))),
    (Cat | Dog, {"type": "dog", "tricks": ["sit"]}, Dog(["sit"])),
    (Positive, 1, 1),
    (list[Tree], [{"label": "a"}], [Tree("a")]),
]

BAD: list[tuple[Any, Any]] = [
    (int, "5"),
    (int, 5.5),
    (int, True),
    (int, None),
    (int, [1]),
    (float, "1.5"),
    (float, True),
    (str, 5),
    (str, None),
    (str, {"a": 1}),
    (bool, 1),
    (bool, "true"),
    (list[int], [1, "2"]),
    (list[int], "[1]"),
    (dict[str, int], [1]),
    (dict[str, int], '{"a":1}'),
    (dict[int, str], {"a": "b"}),
    (tuple[int, str], [1]),
    (int | None, "x"),
    (Literal["a"], "c"),
    (Colour, "green"),
    (Size, 3),
    (dt.datetime, "yesterday"),
    (uuid.UUID, "x"),
    (bytes, "!"),
    (Point, {"y": 1}),
    (Point, {"x": "1"}),
    (User, '{"firstName":"x"}'),
    (User, {"firstName": "A", "age": -1}),
    (Tree, {"label": "a", "children": [{"label": 5}]}),
    (Cat | Dog, {"type": "bird"}),
    (Cat | Dog, {}),
    (Positive, 0),
]

RETURNED: list[tuple[Any, Any, Any]] = [
    # annotation, returned value, structured content
    (int, 7, {"result": 7}),
    (float, 1, {"result": 1.0}),
    (float, 0.5, {"result": 0.5}),
    (str, "x", {"result": "x"}),
    (bool, False, {"result": False}),
    (list[int], [1, 2], {"result": [1, 2]}),
    (list[int], (1, 2), {"result": [1, 2]}),
    (dict[str, int], {"a": 1}, {"a": 1}),
    (dict[int, str], {1: "a"}, {"1": "a"}),
    (dict, {"a": None}, {"a": None}),
    (set[int], {1}, {"result": [1]}),
    (tuple[int, str], (1, "a"), {"result": [1, "a"]}),
    (int | None, None, {"result": None}),
    (int | str, "a", {"result": "a"}),
    (Literal["a"], "a", {"result": "a"}),
    (Colour, Colour.RED, {"result": "red"}),
    (Size, Size.LARGE, {"result": 2}),
    (dt.date, dt.date(2025, 1, 2), {"result": "2025-01-02"}),
    (uuid.UUID, uuid.UUID(int=1), {"result": "00000000-0000-0000-0000-000000000001"}),
    (Decimal, Decimal("1.10"), {"result": "1.10"}),
    (bytes, b"\xff\x00", {"result": "/wA="}),
    (Blob, Blob("b", b"\xff"), {"name": "b", "data": "/w=="}),
    (Point, Point(1, 2), {"x": 1, "y": 2}),
    (Point | None, Point(1, 2), {"result": {"x": 1, "y": 2}}),
    (Shape, {"name": "s", "corners": [Point(1, 2)]}, {"name": "s", "corners": [{"x": 1, "y": 2}]}),
    (Pair, Pair(1, "r"), {"result": [1, "r"]}),
    (User, User("A", 3), {"firstName": "A", "age": 3}),
    (Tree, Tree("a", [Tree("b")]), {"label": "a", "children": [{"label": "b", "children": []}]}),
    (list[Tree], [Tree("a")], {"result": [{"label": "a", "children": []}]}),
    (Node, Node(1, Node(2)), {"value": 1, "next": {"value": 2, "next": None}}),
    (Cat | Dog, Cat(), {"result": {"type": "cat", "lives": 9}}),
    (dict[str, Tree], {"t": Tree("a")}, {"t": {"label": "a", "children": []}}),
]

MISFITS: list[tuple[Any, Any]] = [
    (int, "7"),
    (int, 7.5),
    (int, None),
    (str, 7),
    (list[int], ["a"]),
    (dict[str, int], {"a": "b"}),
    (Point, Point("x")),  # type: ignore[arg-type]
    (Point, {"x": 1, "y": None}),
    (User, User(5)),  # type: ignore[arg-type]
    (User, User("A", -1)),
    (Node, Node(1, Node("x"))),  # type: ignore[arg-type]
    (Tree, Tree("a", [Tree(5)])),  # type: ignore[arg-type]
    (Blob, Blob("b", "not bytes!")),  # type: ignore[arg-type]
    (Literal["a"], "b"),
    (type(None), 5),
    (Any, object()),
    (dict, {"a": object()}),
]
