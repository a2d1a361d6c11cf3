"""JSON Schemas that users bring: looked through once, then checked against.

The dialects: 2020-12 (when ``$schema`` is absent), 2019-09, draft 7, draft 6 and draft 4.  Nothing is ever fetched:
references lead to definitions of the same document.
"""

from __future__ import annotations

from typing import Any, Final, cast

from typedmcp.core.errors import UsageError
from typedmcp.core.narrow import is_array, is_object
from typedmcp.server.arguments import schema_violations as schema_violations

DEFAULT_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
MAX_SCHEMA_DEPTH: Final = 100
"""How deeply the objects and arrays of a schema may nest."""
MAX_SCHEMA_SIZE: Final = 100_000
"""How many values a schema may hold in all."""
_DIALECTS: Final = {
    DEFAULT_DIALECT: "Draft202012Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
}


def checked_validator(schema: dict[str, Any], label: str) -> Any:
    """The jsonschema validator of a schema that has been looked through.

    Raises:
        UsageError: it is too deep or too large, its dialect is unknown, it is not valid in it, or it refers to what is
            not in it.
    """
    import jsonschema
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    _bounded(schema, label)
    dialect = _dialect(schema, label)
    kind: Any = getattr(jsonschema, _DIALECTS[dialect])
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise UsageError(f"{label}: the schema is not valid in {dialect}: {error.message[:200]}") from None
    resource: Any = specification_with(dialect).create_resource(schema)
    registry: Any = cast("Any", Registry)()
    try:
        _resolve(resource, registry.resolver_with_root(resource), label)
    except Unresolvable as error:
        raise UsageError(
            f"{label}: the schema refers to {error.ref!r}, which is not in it; nothing is fetched, "
            "so put the definition into its $defs"
        ) from None
    return kind(schema, registry=registry)


def _bounded(schema: object, label: str) -> None:
    """Refuse what would cost every check too much, before anything looks through it."""
    size = 0
    level: list[object] = [schema]
    for _ in range(MAX_SCHEMA_DEPTH):
        size += len(level)
        if size > MAX_SCHEMA_SIZE:
            raise UsageError(f"{label}: the schema has more than {MAX_SCHEMA_SIZE:,} values")
        below: list[object] = []
        for value in level:
            if is_object(value):
                below += value.values()
            elif is_array(value):
                below += value
        if not below:
            return
        level = below
    raise UsageError(f"{label}: the schema nests deeper than {MAX_SCHEMA_DEPTH} levels")


def _dialect(schema: dict[str, Any], label: str) -> str:
    named = schema.get("$schema", DEFAULT_DIALECT)
    dialect = named.rstrip("#") if isinstance(named, str) else named
    if dialect not in _DIALECTS:
        raise UsageError(f"{label}: the schema's dialect {named!r} is not known; known are {', '.join(_DIALECTS)}")
    return str(dialect)


def _resolve(resource: Any, resolver: Any, label: str) -> None:
    """Follow every reference of a schema, below it too; what cannot be resolved raises."""
    contents = resource.contents
    if is_object(contents):
        _dialect({"$schema": contents.get("$schema", DEFAULT_DIALECT)}, label)
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(contents.get(keyword), str):
                resolver.lookup(contents[keyword])
    for below in resource.subresources():
        _resolve(below, resolver.in_subresource(below), label)
