"""A function's signature as a tool: a struct its arguments are decoded into, and JSON Schemas both ways.

Rules:
- Every parameter is a member of the arguments object; one annotated with :class:`Context` gets the request's context.
- Types are those msgspec knows: scalars, enums, literals, dates, dataclasses, TypedDicts, attrs classes, structs, and
  containers and unions of them.  ``Annotated[int, "..."]`` describes a parameter, ``msgspec.Meta`` also bounds it.
- Unknown arguments are refused: a misspelt name must not silently leave a default in force.
- A whole number written with a fraction of zero (``1.0``) is an integer, as in JSON Schema.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Annotated, Any, cast, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta, Struct

from typedmcp.core.errors import UsageError
from typedmcp.core.narrow import is_array, is_object
from typedmcp.server.context import Context
from typedmcp.server.docstrings import parse_docstring


class Arguments(Struct, forbid_unknown_fields=True, kw_only=True):
    """The base of the structs made from signatures."""


class Signature(Struct, frozen=True, kw_only=True, eq=False):
    """What a function takes, apart from what it does."""

    description: str | None
    arguments: type[Arguments]
    input_schema: dict[str, Any]
    context_name: str | None
    """The parameter that receives the context."""
    returns: Any
    """The annotation of the result; ``inspect.Signature.empty`` when there is none."""


def read_signature(function: Callable[..., Any], *, skip: tuple[str, ...] = ()) -> Signature:
    """The signature of `function` as tool arguments.

    Args:
        skip: Parameters that are filled some other way.

    Raises:
        UsageError: a parameter has no place in an arguments object, or a type has no JSON form.
    """
    label = getattr(function, "__name__", repr(function))
    hints = resolved_hints(function, label)
    described = function
    while isinstance(described, functools.partial):  # its own docstring is about functools
        described = described.func
    description, documented = parse_docstring(described)
    context_name = None
    members: list[tuple[str, Any, Any]] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in skip:
            continue
        hint = hints.get(parameter.name, Any)
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise UsageError(f"{label}: parameter {parameter.name!r} cannot be a named argument; write it out by name")
        if hint is Context:
            if context_name is not None:
                raise UsageError(f"{label}: {context_name!r} and {parameter.name!r} are both contexts; one is enough")
            context_name = parameter.name
            continue
        if hint is object:
            hint = Any
        default = NODEFAULT if parameter.default is parameter.empty else parameter.default
        members.append((parameter.name, _described(hint, documented.get(parameter.name)), _default(default)))
    try:
        arguments = msgspec.defstruct(f"{label}_arguments", members, bases=(Arguments,), kw_only=True)
        schema = object_schema(arguments)
    except TypeError as error:
        raise UsageError(f"{label}: an argument's type has no JSON form: {error}") from error
    return Signature(
        description=description,
        arguments=cast("type[Arguments]", arguments),
        input_schema=schema,
        context_name=context_name,
        returns=hints.get("return", inspect.Signature.empty),
    )


def object_schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a type, its own definition at the root and those it refers to in one ``$defs``."""
    (root,), definitions = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    name = root.get("$ref", "").removeprefix("#/$defs/")
    if not name:
        return {**root, "$defs": definitions} if definitions else root
    own = {key: value for key, value in definitions[name].items() if key != "title"}
    if not _refers(definitions, name):
        del definitions[name]
    return {**own, "$defs": definitions} if definitions else own


def _refers(definitions: dict[str, Any], name: str) -> bool:
    """Whether any definition refers to `name`: a recursive type must stay a definition too."""
    target = f"#/$defs/{name}"

    def visit(node: object) -> bool:
        if is_object(node):
            return node.get("$ref") == target or any(map(visit, node.values()))
        return is_array(node) and any(map(visit, node))

    return visit(definitions)


def convert_arguments(value: dict[str, Any], kind: type[Arguments]) -> Arguments:
    """`value` as the struct of a signature.

    Raises:
        msgspec.ValidationError: it does not fit.
    """
    try:
        return msgspec.convert(value, kind, str_keys=True)
    except msgspec.ValidationError:
        whole = whole_numbers(value)
        if whole is value:
            raise
        return msgspec.convert(whole, kind, str_keys=True)


def whole_numbers(value: Any) -> Any:
    """`value` with every float that has no fraction as an integer; `value` itself when there is none."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if is_object(value):
        changed = {key: whole_numbers(child) for key, child in value.items()}
        return value if all(changed[key] is child for key, child in value.items()) else changed
    if is_array(value):
        entries = [whole_numbers(child) for child in value]
        return value if all(new is old for new, old in zip(entries, value, strict=True)) else entries
    return value


def resolved_hints(function: Callable[..., Any], label: str) -> dict[str, Any]:
    """The annotations of `function`, resolved.

    Raises:
        UsageError: one names what is not there.
    """
    while isinstance(function, functools.partial):
        function = function.func
    target = function if inspect.isroutine(function) or inspect.isclass(function) else type(function).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except NameError as error:
        raise UsageError(
            f"{label}: cannot resolve an annotation: {error}; is its import behind TYPE_CHECKING?"
        ) from error


def _described(hint: Any, documented: str | None) -> Any:
    """The annotation with its description as msgspec metadata; the docstring speaks where the annotation does not."""
    if get_origin(hint) is Annotated:
        inner, *extras = get_args(hint)
        metas = [Meta(description=extra) if isinstance(extra, str) else extra for extra in extras]
        known = [meta for meta in metas if isinstance(meta, Meta)]
        if documented and not any(meta.description for meta in known):
            known.append(Meta(description=documented))
        for meta in known:
            inner = Annotated[inner, meta]
        return inner
    return Annotated[hint, Meta(description=documented)] if documented else hint


def _default(value: object) -> Any:
    """A mutable default is copied for every call, as a dataclass would have it."""
    if type(value) in (list, dict, set) and value:
        return msgspec.field(default_factory=cast("list[Any]", value).copy)
    return value
