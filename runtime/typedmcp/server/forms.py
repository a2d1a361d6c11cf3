"""What a user is asked for: a flat form, from a type or a raw schema, and the check of what comes back.

Rules:
- A form's fields are text, numbers, booleans and choices; there is nothing inside them.
- What a form has no word for (a pattern, an exclusive bound) is not sent, and checked all the same when the answer
  comes.
- Choices of several values, and choices with titles, came with 2025-11-25; defaults too, but those are only left out.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from typedmcp.core.errors import InvalidResult, UsageError
from typedmcp.core.narrow import is_object
from typedmcp.core.revisions import exists_in, fit
from typedmcp.server.signature import object_schema, whole_numbers
from typedmcp_wire.codec import convert
from typedmcp_wire.types.elicitation import (
    ElicitRequestedSchema,
    LegacyTitledEnumSchema,
    UntitledSingleSelectEnumSchema,
)

T = TypeVar("T")

_FORMATS = frozenset({"email", "uri", "date", "date-time"})


class Elicited(Struct, Generic[T], frozen=True, kw_only=True):
    """What became of a question to the user.

    Attributes:
        action: ``"accept"``, ``"decline"`` (the user said no) or ``"cancel"`` (the user said nothing).
        content: What was entered, checked against the form; None unless accepted.
    """

    action: Literal["accept", "cancel", "decline"]
    content: T | None = None

    @property
    def accepted(self) -> bool:
        """Whether the user agreed."""
        return self.action == "accept"


class Form(Struct, frozen=True, eq=False):
    """A form, and how an answer to it is read; `read` raises InvalidResult when the answer does not fit."""

    schema: dict[str, Any]
    read: Callable[[dict[str, Any]], Any]

    def for_revision(self, revision: str) -> ElicitRequestedSchema:
        """The form as a client of `revision` knows it.

        Raises:
            UsageError: that revision has no such form; the text says which field.
        """
        untyped = [name for name, field in self.schema.get("properties", {}).items() if "type" not in field]
        if untyped:
            raise UsageError(f"fields of a form say their type; these do not: {untyped}")
        try:
            form = convert(self.schema, ElicitRequestedSchema)
        except msgspec.ValidationError as error:
            raise UsageError(f"this is no form of text, numbers, booleans and choices: {error}") from None
        unknown = [name for name in form.required or () if name not in form.properties]
        if unknown:
            raise UsageError(f"the form requires fields it does not have: {unknown}")
        fields: dict[str, Any] = {}
        for name, field in form.properties.items():
            if isinstance(field, UntitledSingleSelectEnumSchema):
                # The same on the wire, under a name that every revision has.
                fields[name] = LegacyTitledEnumSchema(
                    title=field.title, description=field.description, default=field.default, enum=field.enum
                )
            elif not exists_in(type(field).__name__, revision):
                raise UsageError(f"field {name!r}: clients of {revision} do not know this kind of choice")
            else:
                fields[name] = field
            fields[name] = fit(fields[name], revision)
        fitted: ElicitRequestedSchema = fit(msgspec.structs.replace(form, properties=fields), revision)
        return fitted


def form_of(schema: Any) -> Form:
    """The form of a type (a dataclass, struct or TypedDict) or of a raw JSON Schema.

    Raises:
        UsageError: it has fields no form can have.
    """
    return _raw_form(schema) if is_object(schema) else _typed_form(schema)


def _raw_form(schema: dict[str, Any]) -> Form:
    # Loaded here because only raw schemas need it.
    from typedmcp.server.schemas import checked_validator, schema_violations

    validator = checked_validator(schema, "the form")

    def read(content: dict[str, Any]) -> dict[str, Any]:
        if not validator.is_valid(content):
            found = schema_violations(validator, content, "it does not fit")
            raise InvalidResult("the answer does not fit the form: " + "; ".join(f"{at} {why}" for at, why in found))
        return content

    return Form(schema, read)


@lru_cache(maxsize=256)  # bounded, since a type may be made anew with every call
def _typed_form(kind: Any) -> Form:
    label = getattr(kind, "__name__", repr(kind))
    try:
        schema, hints = object_schema(kind), get_type_hints(kind)
    except (TypeError, NameError) as error:
        raise UsageError(f"{label} has no JSON form: {error}") from error
    if schema.get("type") != "object" or "properties" not in schema:
        raise UsageError(f"{label} is no form; use a dataclass, a struct or a TypedDict with fields")
    required = schema.get("required", [])
    fields = {
        name: _field(member, schema.get("$defs", {}), f"{label}.{name}", name in required)
        for name, member in schema["properties"].items()
    }
    for name, hint in hints.items():
        _order(fields.get(name, {}), _choices(hint))
    form: dict[str, Any] = {"type": "object", "properties": fields}

    def read(content: dict[str, Any]) -> Any:
        try:
            return msgspec.convert(whole_numbers(content), kind)
        except msgspec.ValidationError as error:
            raise InvalidResult(f"the answer does not fit the form: {error}") from None

    return Form({**form, "required": list(required)} if required else form, read)


def _field(member: dict[str, Any], definitions: dict[str, Any], label: str, required: bool) -> dict[str, Any]:
    """One field of a type as a form has it."""
    member = _resolved(member, definitions)
    options = [_resolved(option, definitions) for option in member.pop("anyOf", ())]
    if options:
        values = [option for option in options if option.get("type") != "null"]
        if len(values) != 1:
            raise UsageError(f"{label}: a field of a form has one type")
        if required and len(values) < len(options):
            raise UsageError(
                f"{label}: a form has no null; give the field a default of None, so that it may be left out"
            )
        member = {**values[0], **member}
    if member.get("default", ...) is None:
        del member["default"]
    if "enum" in member:
        member = {"type": "string", **member}
    if member.get("format", "uri") not in _FORMATS:
        del member["format"]
    kind = member.get("type")
    if kind == "array":
        member["items"] = _field(member.get("items", {}), definitions, label, False)
        # Titles and texts belong to the field, not to its choices.
        member["items"] = {key: member["items"][key] for key in ("type", "enum", "anyOf") if key in member["items"]}
    if kind not in ("string", "integer", "number", "boolean", "array"):
        raise UsageError(f"{label}: a field of a form is text, a number, a boolean or a choice")
    if kind == "array" and not member["items"].keys() & {"enum", "anyOf"}:
        raise UsageError(f"{label}: a list in a form is a choice of several values: annotate its items with a Literal")
    return member


def _choices(hint: Any) -> list[Any]:
    """The values of the Literal or enum within an annotation, in the order written."""
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return [member.value for member in hint]
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [value for argument in get_args(hint) for value in _choices(argument)]


def _order(field: dict[str, Any], choices: list[Any]) -> None:
    """Put the choices of a field into the order in which people are to see them; JSON Schema has none."""
    holder = field.get("items", field)
    if "enum" in holder and sorted(holder["enum"]) == sorted(choices):
        holder["enum"] = choices


def _resolved(member: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in member:
        return dict(member)
    rest = {key: value for key, value in member.items() if key != "$ref"}
    return {**definitions[member["$ref"].removeprefix("#/$defs/")], **rest}
