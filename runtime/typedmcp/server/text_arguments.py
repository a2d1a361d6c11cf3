"""Arguments that come as text: those of prompts, and the variables of resource templates.

Text is converted to what the function's parameter is annotated with: numbers, booleans, enums, literals, dates and
whatever else has a form as text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import asdict

from typedmcp.core.errors import UsageError
from typedmcp.server.signature import Arguments, Signature

_SHOWN = 20
_PLACE = re.compile(r"^(.*) - at `\$\.(\w+)`$", re.DOTALL)
_TEXTUAL = frozenset({"string", "integer", "number", "boolean", "null"})


def demand_textual(signature: Signature, label: str) -> None:
    """Refuse parameters that no text can be converted to.

    Raises:
        UsageError: there is one; the text names it.
    """
    schema = signature.input_schema
    definitions = schema.get("$defs", {})
    for name, member in schema.get("properties", {}).items():
        if not _textual(member, definitions):
            raise UsageError(f"{label}: argument {name!r} comes as text, which its annotation cannot be made from")


def _textual(schema: dict[str, Any], definitions: dict[str, Any]) -> bool:
    if "$ref" in schema:
        return _textual(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    if "anyOf" in schema:
        return all(_textual(member, definitions) for member in schema["anyOf"])
    return schema.get("type", "string") in _TEXTUAL


def convert_texts(given: Mapping[str, str], kind: type[Arguments]) -> dict[str, Any]:
    """The values of text arguments, by parameter, defaults included.

    Raises:
        msgspec.ValidationError: one is unknown, missing, or of another type.
    """
    return asdict(msgspec.convert(given, kind, strict=False))


def text_violations(given: Mapping[str, str], signature: Signature, error: Exception) -> dict[str, Any]:
    """What is wrong with text arguments, as the ``data`` of an error."""
    known = list(signature.input_schema.get("properties", {}))
    missing = [name for name in signature.input_schema.get("required", ()) if name not in given]
    found = [(f"/{_escaped(name)}", f"unknown; known are {known or 'none'}") for name in given if name not in known]
    found += [("", f"missing {name!r}") for name in missing]
    if not found:
        where = _PLACE.search(str(error))
        pointer, text = (f"/{where[2]}", where[1]) if where else ("", str(error))
        found = [(pointer, text.replace("`", ""))]
    return {"violations": [{"pointer": pointer, "message": message} for pointer, message in found[:_SHOWN]]}


def _escaped(name: str) -> str:
    return name[:64].replace("~", "~0").replace("/", "~1")
