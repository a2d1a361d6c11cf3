"""Values that no JSON parser makes: their methods raise, they lie about their class, they never end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _raise(*_: object, **__: object) -> Any:
    raise RuntimeError("hostile")


_RAISING = dict.fromkeys(
    [
        "__eq__", "__ne__", "__repr__", "__str__", "__len__", "__iter__", "__getitem__", "__contains__", "__bool__",
        "__lt__", "__gt__", "__le__", "__ge__", "__format__", "__int__", "__float__", "__index__", "__call__",
        "get", "items", "keys", "values", "copy", "__copy__", "__getattr__", "is_integer", "bit_length", "encode",
    ],
    _raise,
)  # fmt: skip


def hostile_subclass(base: type[Any]) -> type[Any]:
    """A subclass of `base` all of whose methods raise, hashing left alone so that it can be a key."""
    return type(f"Hostile{base.__name__}", (base,), {**_RAISING, "__hash__": base.__hash__})


class Liar:
    """Claims to be a dict."""

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        return dict


class Blower:
    """Raises when asked for its class."""

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("hostile")


class _Meta(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("hostile")

    def __instancecheck__(cls, instance: object) -> bool:
        raise RuntimeError("hostile")

    __repr__ = __eq__ = _raise
    __hash__ = type.__hash__


class Nameless(metaclass=_Meta):
    """Its class refuses to tell its name."""


class TwinKey:
    """A key that lands where the string does and raises when compared."""

    def __init__(self, text: str, error: BaseException) -> None:
        self._hash = hash(text)
        self._error = error

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        raise self._error


class Unhashable:
    __hash__ = None  # type: ignore[assignment]
    __eq__ = __repr__ = _raise


def deep(make: Callable[[Any], Any], levels: int = 200_000) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = make(value)
    return value


def cyclic_list() -> list[Any]:
    value: list[Any] = []
    value.extend([value, value])
    return value


def cyclic_dict() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value.update(dict.fromkeys(("a", "params", "content", "items", "_meta", "properties", "tools"), value))
    return value


def hostile_values() -> dict[str, Any]:
    """Values that no JSON parser makes, or hardly any, by name."""
    dicts, lists, texts = hostile_subclass(dict), hostile_subclass(list), hostile_subclass(str)
    numbers = {base.__name__: hostile_subclass(base)(2) for base in (int, float)}
    return {
        "dict subclass": dicts(jsonrpc="2.0", id=1, method="x", params=dicts(), type="text", name=texts("n")),
        "list subclass": lists([dicts(), 1, texts("x")]),
        "str subclass": texts("text"),
        **{f"{name} subclass": value for name, value in numbers.items()},
        "bare hostile": type("Bare", (), {**_RAISING, "__hash__": _raise})(),
        "liar": Liar(),
        "blower": Blower(),
        "nameless": Nameless(),
        "class": _Meta,
        "hostile class": Nameless.__class__("Other", (), {}),
        "unhashable": Unhashable(),
        "object": object(),
        "huge": 10**5000,
        "huge negative": -(10**5000),
        "nan": float("nan"),
        "inf": float("-inf"),
        "complex": 1j,
        "bytes": b"x",
        "tuple": (1, 2),
        "set": {1},
        "cyclic list": cyclic_list(),
        "cyclic dict": cyclic_dict(),
        "number keys": {1: 2, None: 3, (): 4},
        "object keys": {object(): 1},
        "twin key": {TwinKey(name, ValueError()): 1 for name in ("type", "jsonrpc", "_meta")},
        "surrogates": {"\ud800": "\udfff", "type": "\ud800"},
        "lone surrogate": "\ud800",
        "long string": "x" * 1_000_000,
    }
