"""The service: the method table, the client stub, the servicers and the constants of the revisions."""

from __future__ import annotations

from typing import Any

from typedmcp_codegen import projection, unions
from typedmcp_codegen.header import header
from typedmcp_codegen.model import Absence, Definition, Field, Kind, Model
from typedmcp_codegen.render import render
from typedmcp_codegen.source import METHODS, Schema, Source, SourceError, pointer, resolve
from typedmcp_codegen.types import PACKAGE

# Members of params that belong to the client's machinery; a stub's caller never writes them.
MACHINERY = frozenset({"_meta", "inputResponses", "requestState", "task"})
INPUT_REQUIRED = "InputRequiredResult"


def emit(source: Source, model: Model) -> dict[str, str]:
    """The text of ``revisions.py``, ``methods.py``, ``client_stub.py`` and ``servicer.py``."""
    methods = [_method(source, model, name, entry) for name, entry in source.methods.items()]
    requests = [method for method in methods if method["kind"] == "request"]
    notifications = [method for method in methods if method["kind"] == "notification"]
    head = header(source.digest)
    calls = [method for method in requests if "client" in method["sides"]]
    asked = [method for method in requests if "server" in method["sides"]]
    heard = [method for method in notifications if "client" in method["sides"]]
    told = [method for method in notifications if "server" in method["sides"]]
    return {
        "revisions.py": render("revisions.py.j2", header=head, **_revisions(source)),
        "methods.py": render("methods.py.j2", header=head, methods=methods, imports=_imports(model, methods)),
        "client_stub.py": render("client_stub.py.j2", header=head, methods=calls, imports=_imports(model, calls)),
        "servicer.py": render(
            "servicer.py.j2",
            header=head,
            sides=[
                ("Servicer", "server", "client", calls, heard),
                ("ClientServicer", "client", "server", asked, told),
            ],
            imports=_imports(model, methods),
        ),
    }


def _revisions(source: Source) -> dict[str, Any]:
    entries = source.revisions["revisions"]
    errors = source.revisions["errors"]
    return {
        "names": source.revision_names,
        "handshake": [entry["name"] for entry in entries if entry["era"] == "handshake"],
        "modern": [entry["name"] for entry in entries if entry["era"] == "modern"],
        "assumed": source.revisions["assumedRevision"],
        "batches": [entry["name"] for entry in entries if entry["batches"]],
        "null_id": [entry["name"] for entry in entries if entry["unreadableId"] == "null"],
        "errors": [(name, entry, unions.documentation(_as_definition(name, entry))) for name, entry in errors.items()],
        "headers": source.revisions["headers"],
        "meta": source.revisions["meta"],
    }


def _as_definition(name: str, entry: Schema) -> Definition:
    return Definition("revisions", name, Kind.ALIAS, entry, entry["description"])


def _method(source: Source, model: Model, name: str, entry: Schema) -> dict[str, Any]:
    """Everything the templates print about one method."""
    params = resolve(source, METHODS, (), entry["params"])[1]
    message = resolve(source, METHODS, (), entry[entry["kind"]])[1]
    outcome = resolve(source, METHODS, (), entry["result"])[1] if "result" in entry else None
    final = _final(model, name, outcome) if outcome else None
    schema = model.definition(params)
    if schema.kind not in (Kind.STRUCT, Kind.UNION):
        raise SourceError(METHODS, pointer("methods", name, "params"), f"{params} must be an object or a union")
    return {
        "name": name,
        "attribute": entry["name"],
        "constant": entry["name"].upper(),
        "kind": entry["kind"],
        "description": _documentation(entry),
        "params": params,
        "message": message,
        "outcome": outcome,
        "final": final,
        "sides": sorted({sender["side"] for sender in entry["senders"]}),
        "senders": _senders(source, entry),
        "carried": _revisions_of(source, [s for s in entry["senders"] if s["carrier"] == "input"]),
        "needs_params": _needs_params(source, model, message),
        "cancellable": entry.get("cancellable", True),
        "capability": entry.get("capability"),
        "name_header": entry.get("name-header"),
        "cacheable": bool(final and _has_field(model, final, "ttlMs")),
        "paginated": bool(final and _has_field(model, final, "nextCursor")),
        "asks": bool(outcome and any(m.definition == INPUT_REQUIRED for m in model.definition(outcome).members)),
        "arguments": _arguments(model, schema),
        # The client fills these in; a struct that demands them is begun empty.
        "machinery": ", ".join(
            f"{entry.name}={{}}"
            for entry in schema.fields
            if entry.wire in MACHINERY and entry.absence is Absence.REQUIRED
        ),
    }


def _final(model: Model, method: str, outcome: str) -> str:
    """The result a caller ends with: the default member of a union, or the definition itself."""
    definition = model.definition(outcome)
    if definition.kind is not Kind.UNION:
        return outcome
    defaults = [member.definition for member in definition.members if member.when is None and member.definition]
    if len(defaults) != 1:
        raise SourceError(METHODS, pointer("methods", method, "result"), f"{outcome} needs one member without x-when")
    return defaults[0]


def _documentation(entry: Schema) -> str:
    since = min((s.get("x-since", "") for s in entry["senders"]), default="")
    untils = [s.get("x-until") for s in entry["senders"]]
    until = None if None in untils else max(untils)
    bare: Schema = {key: value for key, value in (("x-since", since), ("x-until", until)) if value}
    return unions.documentation(Definition("", "", Kind.ALIAS, bare, entry["description"]))


def _senders(source: Source, entry: Schema) -> dict[str, list[str]]:
    """Side to the revisions in which it sends the method as a message of its own."""
    return {
        side: _revisions_of(source, [s for s in entry["senders"] if s["side"] == side and s["carrier"] == "message"])
        for side in ("client", "server")
    }


def _revisions_of(source: Source, nodes: list[Schema]) -> list[str]:
    return [name for name in source.revision_names if any(projection.exists(node, name) for node in nodes)]


def _needs_params(source: Source, model: Model, message: str) -> list[str]:
    """Revisions whose message must have `params`."""
    schema = model.definition(message).schema
    child = schema["properties"]["params"]
    names = [name for name in source.revision_names if projection.exists(schema, name)]
    return [name for name in names if projection.required_in("params", child, schema, name)]


def _has_field(model: Model, name: str, wire: str) -> bool:
    return any(entry.wire == wire for entry in model.definition(name).fields)


def _arguments(model: Model, definition: Definition) -> list[dict[str, str]]:
    """A stub's parameters: the fields of a params struct, required ones first; a union is one parameter."""
    if definition.kind is Kind.UNION:
        return [{"name": "params", "hint": definition.name, "default": "", "doc": definition.description}]
    fields = [entry for entry in definition.fields if entry.wire not in MACHINERY]
    fields.sort(key=lambda entry: entry.absence is not Absence.REQUIRED)
    return [_argument(model, definition, entry) for entry in fields]


def _argument(model: Model, definition: Definition, entry: Field) -> dict[str, str]:
    uses: dict[str, None] = {}
    hint = unions.hint(model, definition.domain, entry.schema, uses)
    optional = entry.absence is not Absence.REQUIRED
    return {
        "name": entry.name,
        "hint": f"{hint} | None" if optional else hint,
        "default": " = None" if optional else "",
        "doc": entry.description,
        "uses": " ".join(uses),
    }


def _imports(model: Model, methods: list[dict[str, Any]]) -> list[str]:
    names: dict[str, None] = {}
    for method in methods:
        for key in ("params", "outcome", "final"):
            if method[key]:
                names[method[key]] = None
        for argument in method["arguments"]:
            names |= dict.fromkeys(argument.get("uses", "").split())
    return [f"from {PACKAGE}.{model.domain(name)} import {name}" for name in sorted(names)]
