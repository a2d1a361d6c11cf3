"""Unions, maps, scalars and open dictionaries as Python aliases, and how a union without a tag is decided."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typedmcp_codegen.model import Definition, Kind, Member, Model
from typedmcp_codegen.render import literal
from typedmcp_codegen.source import Schema, is_array, is_object, walk

_SCALARS = {"string": "str", "integer": "int", "number": "int | float", "boolean": "bool", "null": "None"}


def documentation(definition: Definition) -> str:
    """The description and the revisions of a definition, as one text."""
    since, until = definition.schema.get("x-since"), definition.schema.get("x-until")
    parts = [definition.description] if definition.description else [definition.name]
    if since and until:
        parts.append(f"Only in {since}." if since == until else f"From {since} to {until}.")
    elif since:
        parts.append(f"Since {since}.")
    elif until:
        parts.append(f"Until {until}.")
    return " ".join(parts)


def mentioned(model: Model, name: str) -> list[str]:
    """Names of the definitions `name` refers to directly, in order of appearance."""
    definition = model.definition(name)
    nodes = [node for _, node in walk(definition.schema, ())]
    found = dict.fromkeys(model.reference(definition.domain, node) for node in nodes if "$ref" in node)
    found |= dict.fromkeys(member.definition for member in definition.members if member.definition)
    return list(found)


def in_order(model: Model, definitions: Iterable[Definition]) -> list[Definition]:
    """The definitions that are no structs, each after those it is made of."""
    waiting = {entry.name: entry for entry in definitions if entry.kind is not Kind.STRUCT}
    out: list[Definition] = []

    def place(entry: Definition) -> None:
        waiting.pop(entry.name, None)
        if entry.kind is not Kind.UNION or not _recursive(model, entry.name):
            for name in mentioned(model, entry.name):
                if name in waiting:
                    place(waiting[name])
        out.append(entry)

    while waiting:
        place(waiting[min(waiting)])
    return out


def layout(model: Model, definition: Definition) -> dict[str, Any]:
    """What the module template prints for one alias."""
    uses: dict[str, None] = {}
    hint = _hint_of(model, definition, uses)
    return {
        "name": definition.name,
        "doc": documentation(definition),
        "hint": hint,
        "members": ""
        if not definition.picked
        else f"({', '.join(_run_time(model, member) for member in definition.members)},)",
        "picked": definition.picked,
        "steps": _steps(model, definition) if definition.picked else [],
        "uses": list(uses),
    }


def _recursive(model: Model, name: str) -> bool:
    """Whether an alias leads back to itself without a struct between: any JSON value does."""
    seen: set[str] = set()
    queue = [name]
    while queue:
        for target in mentioned(model, queue.pop()):
            if target == name:
                return True
            if target not in seen and model.definition(target).kind is not Kind.STRUCT:
                seen.add(target)
                queue.append(target)
    return False


def _hint_of(model: Model, definition: Definition, uses: dict[str, None]) -> str:
    if definition.kind is Kind.OPEN:
        return "dict[str, Any]"
    if definition.kind is Kind.UNION:
        if _recursive(model, definition.name):
            return "Any"
        parts = [_member_hint(model, definition.domain, member, uses) for member in definition.members]
        return " | ".join(dict.fromkeys(part for text in parts for part in text.split(" | ")))
    return hint(model, definition.domain, definition.schema, uses)


def _member_hint(model: Model, domain: str, member: Member, uses: dict[str, None]) -> str:
    if member.definition is not None:
        uses[member.definition] = None
        return member.definition
    return hint(model, domain, member.schema, uses)


def hint(model: Model, domain: str, schema: Schema, uses: dict[str, None]) -> str:
    """The Python type of an inline schema that is no struct; names it needs are added to `uses`."""
    if "$ref" in schema:
        name = model.reference(domain, schema)
        uses[name] = None
        return name
    if "anyOf" in schema:
        return " | ".join(hint(model, domain, member, uses) for member in schema["anyOf"])
    if "enum" in schema:
        return f"Literal[{', '.join(map(literal, schema['enum']))}]"
    if "const" in schema:
        return f"Literal[{literal(schema['const'])}]"
    kinds = schema.get("type")
    if is_array(kinds):
        return " | ".join(_SCALARS[kind] for kind in kinds)
    if kinds == "array":
        return f"list[{hint(model, domain, schema.get('items', {}), uses)}]"
    if kinds == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {hint(model, domain, values, uses) if is_object(values) else 'Any'}]"
    return _SCALARS.get(str(kinds), "Any")


def _run_time(model: Model, member: Member) -> str:
    """What isinstance can test for a member: lists stand for arrays."""
    name = str(member.definition)
    return name if model.definition(name).kind is Kind.STRUCT else "list"


def _steps(model: Model, definition: Definition) -> list[dict[str, str]]:
    """The choice of a member as `if` lines: array members first, the default of each kind last."""
    arrays = [member for member in definition.members if _run_time(model, member) == "list"]
    objects = [member for member in definition.members if member not in arrays]
    steps: list[dict[str, str]] = []
    for member in arrays:
        test = "type(value) is list"
        if member.when is not None:
            test += f" and value and type(value[0]) is dict and {_test(member.when, 'value[0]')}"
        steps.append({"test": test, "choice": str(member.definition)})
    default = next((member for member in objects if member.when is None), objects[-1])
    for member in objects:
        if member.when is not None and member is not default:
            steps.append(
                {"test": f"type(value) is dict and {_test(member.when, 'value')}", "choice": str(member.definition)}
            )
    steps.append({"test": "", "choice": str(default.definition)})
    return steps


def _test(when: Schema, value: str) -> str:
    ((path, wanted),) = when.items()
    head, _, tail = path.partition(".")
    if tail:
        return f"type({value}.get({literal(head)})) is dict and {_test({tail: wanted}, f'{value}[{literal(head)}]')}"
    if wanted is True:
        return f"{literal(head)} in {value}"
    if is_array(wanted):
        return f"{value}.get({literal(head)}) in ({', '.join(map(literal, wanted))})"
    return f"{value}.get({literal(head)}) == {literal(wanted)}"
