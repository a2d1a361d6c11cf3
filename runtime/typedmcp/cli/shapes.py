"""The two shapes of parsed JSON that hold other values, told apart for type checkers."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether parsed JSON is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether parsed JSON is an array."""
    return isinstance(value, list)
