"""A tool's arguments as words of a command line.

Rules:
- ``key=value``: the value is read as JSON where the tool's schema has room for what that gives, and is text otherwise.
  So a number stays text for a text parameter, and becomes a number for a numeric one.  Where both fit, JSON wins;
  a value in quotation marks is never unquoted.
- ``key:=json``: the value is JSON, whatever the schema says.
- One word that is a JSON object is all the arguments.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from typedmcp.cli.output import Misuse
from typedmcp.cli.shapes import is_array, is_object

_MAX_DEPTH = 32
_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


class Words(NamedTuple):
    """Arguments as given: all of them as one object, or word by word."""

    whole: dict[str, Any] | None
    each: dict[str, Word]


class Word(NamedTuple):
    """One value: its text, and whether that is JSON for certain."""

    text: str
    is_json: bool


def read_words(words: Sequence[str]) -> Words:
    """Take the words apart.

    Raises:
        Misuse: a word is neither of the forms, or a key comes twice.
    """
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return Words(read_object(words[0], "the arguments"), {})
    found: dict[str, Word] = {}
    for word in words:
        key, equals, text = word.partition("=")
        is_json = key.endswith(":")
        key = key.removesuffix(":")
        if not equals or not key:
            raise Misuse(f"{word!r} is no argument; write key=value, key:=json, or one JSON object.")
        if key in found:
            raise Misuse(f"{key!r} is given twice; write a list as {key}:='[1, 2]'.")
        found[key] = Word(text, is_json)
        if is_json:
            _value(key, found[key], {}, {})
    return Words(None, found)


def read_object(text: str, what: str) -> dict[str, Any]:
    """The JSON object in `text`.

    Raises:
        Misuse: there is none.
    """
    try:
        value = parse_json(text)
    except ValueError as error:
        raise Misuse(f"{what[:1].upper()}{what[1:]} cannot be read as JSON: {error}.") from None
    if not is_object(value):
        raise Misuse(f'{what[:1].upper()}{what[1:]} must be a JSON object, such as {{"a": 1}}.')
    return value


def arguments_for(words: Words, schema: dict[str, Any]) -> dict[str, Any]:
    """The arguments object for a tool with this input schema."""
    if words.whole is not None:
        return words.whole
    properties = schema.get("properties")
    known: dict[str, Any] = properties if is_object(properties) else {}
    rest = schema.get("additionalProperties", True)
    return {key: _value(key, word, known.get(key, rest), schema) for key, word in words.each.items()}


def parse_json(text: str) -> Any:
    """Parsed JSON; ValueError when it is none (NaN and infinities among it) or nests too deeply."""
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def allows(schema: Any, value: Any, root: dict[str, Any], depth: int = 0) -> bool:
    """Whether a JSON Schema has room for a value of this kind; its parts are not looked at."""
    if isinstance(schema, bool):
        return schema
    if not is_object(schema) or depth > _MAX_DEPTH:
        return True
    if "const" in schema and not _same(schema["const"], value):
        return False
    if is_array(schema.get("enum")) and not any(_same(entry, value) for entry in schema["enum"]):
        return False
    if "type" in schema and not _of_type(schema["type"], value):
        return False
    if "$ref" in schema and not allows(_resolve(schema["$ref"], root), value, root, depth + 1):
        return False
    tests = {"anyOf": any, "oneOf": any, "allOf": all}
    return all(
        test(allows(entry, value, root, depth + 1) for entry in schema[key])
        for key, test in tests.items()
        if is_array(schema.get(key))
    )


def _value(key: str, word: Word, schema: Any, root: dict[str, Any]) -> Any:
    try:
        value = parse_json(word.text)
    except ValueError as error:
        if word.is_json:
            raise Misuse(f"{key}:={word.text} is no JSON: {error}.") from None
        return word.text
    if word.is_json:
        return value
    return word.text if isinstance(value, str) or not allows(schema, value, root) else value


def _of_type(named: Any, value: Any) -> bool:
    names = named if is_array(named) else [named]
    return any(_is(str(name), value) for name in names)


def _is(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, _TYPES.get(name, ()))


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON: true is not 1."""
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _resolve(reference: Any, root: Any) -> Any:
    """What a reference inside the schema points to; True, which allows anything, when it leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return True
    found: Any = root
    for token in reference[1:].split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if not is_object(found) or key not in found:
            return True
        found = found[key]
    return found


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    return _refuse(text) if number in (float("inf"), float("-inf")) else number
