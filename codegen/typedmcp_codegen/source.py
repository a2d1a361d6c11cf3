"""Read the annotated schema and refuse what the rest of the generator could not trust.

The source is a folder: one JSON Schema 2020-12 document a domain, plus ``methods.json`` and ``revisions.json``.
What changed between revisions is said by annotations (``x-since``, ``x-until``, ``x-required-since``,
``x-required-until``, ``x-when``, ``x-revisions``); ``docs/schema.md`` explains each.  Every fault found is a
:class:`SourceError` that names the file and the JSON Pointer of the place.
"""

from __future__ import annotations

import hashlib
import json
import keyword
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

Schema: TypeAlias = dict[str, Any]

METHODS = "methods.json"
REVISIONS = "revisions.json"
ANNOTATIONS = frozenset(
    {"x-since", "x-until", "x-required-since", "x-required-until", "x-when", "x-revisions"},
)
_REVISION_ANNOTATIONS = ("x-since", "x-until", "x-required-since", "x-required-until")
# Every keyword the generator understands.  Another one would be lost in silence, so it is refused.
KEYWORDS = frozenset(
    {
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "description",
        "enum",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "pattern",
        "properties",
        "required",
        "type",
    },
)


def is_object(value: object) -> TypeGuard[Schema]:
    """Whether parsed JSON is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether parsed JSON is an array."""
    return isinstance(value, list)


_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
# What an entry of revisions.json and an error must tell, beside what is checked by itself.
_REVISION_MEMBERS = ("name", "era", "batches", "unreadableId")
_ERROR_MEMBERS = ("code", "httpStatus", "description")
# Names a method cannot have, since the stub has them.
_TAKEN = frozenset({"request"})


class SourceError(Exception):
    """The schema source has a fault; the text starts with ``file#pointer``."""

    def __init__(self, file: str, pointer: str, problem: str) -> None:
        super().__init__(f"{file}#{pointer}: {problem}")
        self.file = file
        self.pointer = pointer
        self.problem = problem


@dataclass(frozen=True)
class Source:
    """The parsed documents of a schema folder, checked."""

    documents: dict[str, Schema]
    """Domain name (file name without its ending) to document, in file name order."""
    methods: dict[str, Schema]
    revisions: Schema
    digest: str
    """SHA-256 over names and bytes of all source files: the mark each generated header carries."""

    @property
    def revision_names(self) -> tuple[str, ...]:
        return tuple(entry["name"] for entry in self.revisions["revisions"])


def load(folder: Path) -> Source:
    """Read and check the schema folder.

    Raises:
        SourceError: a file is missing or not JSON, an annotation is malformed, a reference dangles, a revision
            is unknown, or a method lacks what the generator needs.
    """
    if not folder.is_dir():
        raise SourceError(str(folder), "", "is not a folder; name the schema folder with --schema")
    texts = {path.name: path.read_bytes() for path in sorted(folder.glob("*.json"))}
    for needed in (METHODS, REVISIONS):
        if needed not in texts:
            raise SourceError(needed, "", "is missing from the schema folder")
    parsed = {name: _parse(name, text) for name, text in texts.items()}
    digest = hashlib.sha256()
    for name, text in texts.items():
        digest.update(name.encode() + b"\0" + text.replace(b"\r\n", b"\n") + b"\0")
    revisions = parsed.pop(REVISIONS)
    methods = parsed.pop(METHODS).get("methods")
    if not is_object(methods):
        raise SourceError(METHODS, "/methods", "must be an object of methods by wire name")
    source = Source(
        documents={name.removesuffix(".json"): document for name, document in parsed.items()},
        methods=methods,
        revisions=revisions,
        digest=digest.hexdigest()[:16],
    )
    _check_revisions(source)
    _check_documents(source)
    _check_methods(source)
    return source


def pointer(*tokens: str | int) -> str:
    """A JSON Pointer made of unescaped tokens (RFC 6901)."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)


def _parse(name: str, text: bytes) -> Schema:
    def unique(members: list[tuple[str, Any]]) -> Schema:
        known = dict(members)
        if len(known) < len(members):
            keys = [key for key, _ in members]
            raise SourceError(name, "", f"has {next(key for key in keys if keys.count(key) > 1)!r} twice in one object")
        return known

    try:
        value = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise SourceError(name, "", f"is not JSON: {error}") from error
    if not is_object(value):
        raise SourceError(name, "", "must hold a JSON object")
    return value


def _check_revisions(source: Source) -> None:
    entries = source.revisions.get("revisions")
    if not is_array(entries) or not entries:
        raise SourceError(REVISIONS, "/revisions", "must list at least one revision")
    for index, entry in enumerate(entries):
        _check_members(REVISIONS, ("revisions", index), entry, _REVISION_MEMBERS)
        if entry["era"] not in ("handshake", "modern"):
            raise SourceError(REVISIONS, pointer("revisions", index, "era"), "must be handshake or modern")
    names = source.revision_names
    if list(names) != sorted(set(names)):
        raise SourceError(REVISIONS, "/revisions", "must be in order, oldest first, each once")
    for table in ("errors", "headers", "meta"):
        if not isinstance(source.revisions.get(table), dict):
            raise SourceError(REVISIONS, pointer(table), "must be an object")
    for name, entry in source.revisions["errors"].items():
        _check_members(REVISIONS, ("errors", name), entry, _ERROR_MEMBERS)
        if not isinstance(entry.get("code"), int):
            raise SourceError(REVISIONS, pointer("errors", name, "code"), "must be an integer")
        _check_range(REVISIONS, ("errors", name), entry, names)
    if source.revisions.get("assumedRevision") not in names:
        raise SourceError(REVISIONS, "/assumedRevision", "is not a listed revision")


def _check_members(file: str, place: tuple[str | int, ...], entry: object, needed: Iterable[str]) -> None:
    if not is_object(entry):
        raise SourceError(file, pointer(*place), "must be an object")
    for key in needed:
        if key not in entry:
            raise SourceError(file, pointer(*place), f"needs {key!r}")


def _is_name(name: str) -> bool:
    """Whether Python takes it as the name of a module, class or function."""
    return name.isidentifier() and not keyword.iskeyword(name)


def _check_documents(source: Source) -> None:
    owners: dict[str, str] = {}
    for domain, document in source.documents.items():
        file = f"{domain}.json"
        if not _is_name(domain):
            raise SourceError(file, "", "is named by no Python identifier, and becomes a module")
        if document.get("$id") != file:
            raise SourceError(file, "/$id", f"must be {file!r}")
        definitions = document.get("$defs")
        if not is_object(definitions) or not definitions:
            raise SourceError(file, "/$defs", "must hold at least one definition")
        for name, schema in definitions.items():
            if name in owners:
                raise SourceError(file, pointer("$defs", name), f"is defined in {owners[name]} too")
            if not is_object(schema):
                raise SourceError(file, pointer("$defs", name), "must be an object")
            if not _is_name(name):
                raise SourceError(file, pointer("$defs", name), "is no Python identifier")
            owners[name] = file
            for tokens, node in walk(schema, ("$defs", name)):
                _check_node(source, file, tokens, node)


def walk(schema: object, tokens: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Schema]]:
    """Every schema inside `schema`, itself first, each with its path."""
    if not is_object(schema):
        return
    yield tokens, schema
    for name, child in schema.get("properties", {}).items():
        yield from walk(child, (*tokens, "properties", name))
    for index, child in enumerate(schema.get("anyOf", [])):
        yield from walk(child, (*tokens, "anyOf", index))
    for key in ("items", "additionalProperties"):
        yield from walk(schema.get(key), (*tokens, key))
    for index, entry in enumerate(schema.get("x-revisions", [])):
        if is_object(entry):
            yield from walk(entry.get("schema"), (*tokens, "x-revisions", index, "schema"))


def _check_node(source: Source, file: str, tokens: tuple[str | int, ...], node: Schema) -> None:
    for key in node:
        if key.startswith("x-") and key not in ANNOTATIONS:
            raise SourceError(file, pointer(*tokens, key), "is no known annotation")
        if not key.startswith("x-") and key not in KEYWORDS:
            raise SourceError(file, pointer(*tokens, key), "is a keyword the generator does not know")
    _check_range(file, tokens, node, source.revision_names)
    _check_shape(file, tokens, node)
    if "$ref" in node:
        resolve(source, file, (*tokens, "$ref"), node["$ref"])
    for name in node.get("required", []):
        if name not in node.get("properties", {}):
            raise SourceError(file, pointer(*tokens, "required"), f"names {name!r}, which is no property")
    for index, entry in enumerate(node.get("x-revisions", [])):
        place = (*tokens, "x-revisions", index)
        if not is_object(entry) or "schema" not in entry or not {"until", "since"} & set(entry):
            raise SourceError(file, pointer(*place), "must have `schema` and `until` or `since`")
        for key in entry:
            if key not in ("schema", "since", "until"):
                raise SourceError(file, pointer(*place, key), "is no member of an entry of x-revisions")
        for key in ("since", "until"):
            if key in entry and entry[key] not in source.revision_names:
                raise SourceError(file, pointer(*place, key), f"unknown revision {entry[key]!r}")
        if entry.get("since", "") > entry.get("until", "~"):
            raise SourceError(file, pointer(*place), "ends before since")
    when = node.get("x-when")
    if when is not None and (not is_object(when) or len(when) != 1):
        raise SourceError(file, pointer(*tokens, "x-when"), "must be an object with one member")


def _check_shape(file: str, tokens: tuple[str | int, ...], node: Schema) -> None:
    """Keywords hold what this generator can read; JSON Schema would allow more."""
    for name, child in node.get("properties", {}).items():
        if not is_object(child):
            raise SourceError(file, pointer(*tokens, "properties", name), "must be an object")
    for index, child in enumerate(node.get("anyOf", [])):
        if not is_object(child):
            raise SourceError(file, pointer(*tokens, "anyOf", index), "must be an object")
    if not isinstance(node.get("items", {}), dict):
        raise SourceError(file, pointer(*tokens, "items"), "must be an object")
    more = node.get("additionalProperties", True)
    if more is not True and not is_object(more):
        raise SourceError(file, pointer(*tokens, "additionalProperties"), "must be true or a schema")
    kinds = node.get("type", [])
    unknown = [kind for kind in (kinds if is_array(kinds) else [kinds]) if kind not in _TYPES]
    if unknown:
        raise SourceError(file, pointer(*tokens, "type"), f"{unknown[0]!r} is no type of JSON")
    if is_array(kinds) and {"array", "object"} & set(kinds):
        raise SourceError(file, pointer(*tokens, "type"), "lists more than scalars; use anyOf")


def _check_range(file: str, tokens: tuple[str | int, ...], node: Schema, names: tuple[str, ...]) -> None:
    for key in _REVISION_ANNOTATIONS:
        if key in node and node[key] not in names:
            raise SourceError(file, pointer(*tokens, key), f"unknown revision {node[key]!r}; known: {', '.join(names)}")
    if "x-since" in node and "x-until" in node and node["x-since"] > node["x-until"]:
        raise SourceError(file, pointer(*tokens, "x-until"), "lies before x-since")


def resolve(source: Source, file: str, tokens: tuple[str | int, ...], reference: object) -> tuple[str, str]:
    """The domain and name a reference means.

    Raises:
        SourceError: it is no reference of the form ``file.json#/$defs/Name``, or nothing is there.
    """
    head, separator, name = str(reference).partition("#/$defs/")
    domain = (head or file).removesuffix(".json")
    if not separator or not name:
        raise SourceError(file, pointer(*tokens), f"{reference!r} is not of the form file.json#/$defs/Name")
    if name not in source.documents.get(domain, {}).get("$defs", {}):
        raise SourceError(file, pointer(*tokens), f"{reference!r} leads nowhere")
    return domain, name


def _check_methods(source: Source) -> None:
    attributes: dict[str, str] = {}
    for method, entry in source.methods.items():
        place = ("methods", method)
        _check_members(METHODS, place, entry, ())
        kind = entry.get("kind")
        if kind not in ("request", "notification"):
            raise SourceError(METHODS, pointer(*place, "kind"), "must be request or notification")
        needed = ["name", "description", "params", "senders", kind, *(["result"] if kind == "request" else [])]
        for key in needed:
            if key not in entry:
                raise SourceError(METHODS, pointer(*place), f"a {kind} needs {key!r}")
        name = entry["name"]
        if not _is_name(str(name)) or name in attributes or name in _TAKEN:
            raise SourceError(
                METHODS, pointer(*place, "name"), f"{name!r} is no identifier, or is used twice or by the stub"
            )
        attributes[name] = method
        for key in ("params", "result", kind):
            if key in entry:
                domain, definition = resolve(source, METHODS, (*place, key), entry[key])
                if key == kind:
                    _check_constant(source, place, method, domain, definition)
        _check_senders(source, place, entry)


def _check_constant(source: Source, place: tuple[str, ...], method: str, domain: str, definition: str) -> None:
    properties = source.documents[domain]["$defs"][definition].get("properties", {})
    if properties.get("method", {}).get("const") != method:
        raise SourceError(METHODS, pointer(*place), f"{definition} does not fix `method` to {method!r}")


def _check_senders(source: Source, place: tuple[str, ...], entry: Schema) -> None:
    senders = entry["senders"]
    if not is_array(senders) or not senders:
        raise SourceError(METHODS, pointer(*place, "senders"), "must list at least one sender")
    for index, sender in enumerate(senders):
        where: tuple[str | int, ...] = (*place, "senders", index)
        if sender.get("side") not in ("client", "server") or sender.get("carrier") not in ("message", "input"):
            raise SourceError(METHODS, pointer(*where), "needs `side` client or server and `carrier` message or input")
        _check_range(METHODS, where, sender, source.revision_names)
