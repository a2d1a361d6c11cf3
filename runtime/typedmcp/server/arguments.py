"""Everything wrong with the arguments of a call, found only after a quick check has failed."""

from __future__ import annotations

from typing import Any, cast

_SHOWN = 20


def argument_violations(given: dict[str, Any], schema: dict[str, Any], fallback: str) -> list[tuple[str, str]]:
    """Pointer and message of each violation of `schema`; `fallback` alone when the schema sees none.

    Unknown arguments are named together with those the tool knows.
    """
    # Loaded here because a server whose callers make no mistakes never needs it.
    from jsonschema import Draft202012Validator
    from referencing import Registry

    # An empty registry: a reference to another document is an error, never a download.
    return schema_violations(Draft202012Validator(schema, registry=cast("Any", Registry)()), given, fallback)


def schema_violations(validator: Any, given: dict[str, Any], fallback: str) -> list[tuple[str, str]]:
    """What a jsonschema validator has against `given`, in the same form."""
    try:
        found = [(_pointer(error.absolute_path), _message(error)) for error in validator.iter_errors(given)]
    except RecursionError:
        return [("", "the arguments nest too deeply")]
    return sorted(found)[:_SHOWN] or [("", fallback)]


def _pointer(path: Any) -> str:
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in path)


def _message(error: Any) -> str:
    """The violation in words a model can act on, without repeating what may be a huge value."""
    if error.validator == "additionalProperties":
        known = list(cast("dict[str, Any]", error.schema.get("properties", {})))
        unknown = [name for name in error.instance if name not in known]
        return f"unknown {_names(unknown)}; known are {_names(known) if known else 'none'}"
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return f"missing {_names(missing)}"
    if error.validator == "type":
        return f"expected {error.validator_value}, got {_kind(error.instance)}"
    if error.validator in ("enum", "const"):
        return f"must be one of {str(error.validator_value)[:200]}"
    text = str(error.message)
    return text if len(text) <= 200 else f"does not satisfy {error.validator} {str(error.validator_value)[:100]}"


def _names(names: list[str]) -> str:
    return ", ".join(repr(name[:64]) for name in names[:_SHOWN])


def _kind(value: object) -> str:
    names: dict[type, str] = {
        dict: "object",
        list: "array",
        str: "string",
        bool: "boolean",
        int: "integer",
        float: "number",
    }
    return "null" if value is None else names.get(type(value), type(value).__name__)
