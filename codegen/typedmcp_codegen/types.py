"""The ``types`` package: msgspec structs for every definition, one module per schema file.

datamodel-code-generator turns properties into annotated fields.  What it cannot know is decided here and handed to its
template as plain values: which property is a tag, what an absent member becomes, which definitions are dictionaries.
Unions and aliases are laid out by our own template after its classes.
"""

from __future__ import annotations

import ast
import json
import re
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from datamodel_code_generator import GenerateConfig, generate
from datamodel_code_generator.enums import DataModelType, InputFileType
from datamodel_code_generator.format import Formatter, PythonVersion
from datamodel_code_generator.parser import LiteralType

from typedmcp_codegen import unions
from typedmcp_codegen.header import header
from typedmcp_codegen.model import Absence, Definition, Field, Kind, Model
from typedmcp_codegen.render import literal, render
from typedmcp_codegen.source import Schema, Source, SourceError

PACKAGE = "typedmcp_wire.types"
TEMPLATES = Path(__file__).parent / "templates" / "datamodel"


def emit(source: Source, model: Model) -> dict[str, str]:
    """The text of every module of ``types``, by path below ``typedmcp_wire``."""
    order = import_order(model)
    classes = _classes(model)
    files: dict[str, str] = {}
    exports: dict[str, list[str]] = {}
    for domain in order:
        definitions = [model.definition(name) for name in model.names() if model.domain(name) == domain]
        body, imports = classes.get(domain, ("", set[str]()))
        aliases = [unions.layout(model, entry) for entry in unions.in_order(model, definitions)]
        exports[domain] = sorted(definition.name for definition in definitions)
        files[f"types/{domain}.py"] = render(
            "types_module.py.j2",
            header=header(source.digest),
            domain=domain,
            description=source.documents[domain].get("description", ""),
            imports=sorted(imports | _alias_imports(model, domain, aliases)),
            body=body,
            aliases=aliases,
            exports=exports[domain],
        )
    names = sorted((name, domain) for domain, listed in exports.items() for name in listed)
    files["types/__init__.py"] = render("types_init.py.j2", header=header(source.digest), exports=names)
    files["types/_struct.py"] = render("types_struct.py.j2", header=header(source.digest))
    return files


def import_order(model: Model) -> list[str]:
    """Domains so that each stands after all it refers to.

    Raises:
        SourceError: two domains refer to each other.
    """
    needs: dict[str, set[str]] = defaultdict(set)
    for name in model.names():
        domain = model.domain(name)
        needs[domain] |= {model.domain(target) for target in unions.mentioned(model, name)} - {domain}
    order: list[str] = []
    while needs:
        ready = sorted(domain for domain, wanted in needs.items() if wanted <= set(order))
        if not ready:
            raise SourceError(f"{min(needs)}.json", "", f"imports in a circle with {', '.join(sorted(needs))}")
        order += ready
        for domain in ready:
            del needs[domain]
    return order


def _classes(model: Model) -> dict[str, tuple[str, set[str]]]:
    """What datamodel-code-generator makes of the structs: by domain, the class bodies and the import lines."""
    documents: dict[str, dict[str, Schema]] = defaultdict(dict)
    extra: dict[str, dict[str, Any]] = defaultdict(dict)
    for name in model.names():
        definition = model.definition(name)
        if definition.kind is Kind.STRUCT:
            documents[definition.domain][name] = _input(model, definition)
            extra[name] = _extra(definition)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in"), Path(folder, "out")
        source.mkdir()
        for domain, definitions in documents.items():
            document = {"$id": f"{domain}.json", "$defs": definitions}
            (source / f"{domain}.json").write_text(json.dumps(document), encoding="utf-8")
        generate(source, config=_config(target, extra))
        return {domain: _split(domain, (target / f"{domain}.py").read_text("utf-8")) for domain in documents}


def _config(target: Path, extra: dict[str, dict[str, Any]]) -> GenerateConfig:
    return GenerateConfig(
        input_file_type=InputFileType.JsonSchema,
        output=target,
        output_model_type=DataModelType.MsgspecStruct,
        custom_template_dir=TEMPLATES,
        extra_template_data=defaultdict(dict, extra),
        aliases={"_meta": "meta", "$schema": "schema_"},
        snake_case_field=True,
        use_exact_imports=True,
        use_union_operator=True,
        enum_field_as_literal=LiteralType.All,
        target_python_version=PythonVersion.PY_311,
        formatters=[Formatter.BUILTIN],
        disable_timestamp=True,
    )


def _input(model: Model, definition: Definition) -> Schema:
    """The schema datamodel-code-generator sees: all fields required, only what decides a type left in."""
    properties = {
        entry.wire: hint_schema(model, definition.domain, entry.schema)
        for entry in definition.fields
        if definition.tag is None or entry.wire != definition.tag[0]
    }
    return {"type": "object", "properties": properties, "required": list(properties)}


def hint_schema(model: Model, domain: str, schema: Schema) -> Schema:
    """`schema` reduced to its Python type: structs stay references, everything else is named or spelled out."""
    if "$ref" in schema:
        name = model.reference(domain, schema)
        target = model.domain(name)
        if model.definition(name).kind is Kind.STRUCT:
            return {"$ref": f"{target}.json#/$defs/{name}" if target != domain else f"#/$defs/{name}"}
        return {"customTypePath": f"{PACKAGE}.{target}.{name}"}
    if "anyOf" in schema:
        members = [hint_schema(model, domain, member) for member in schema["anyOf"]]
        if all(_is_open(model, domain, member) for member in schema["anyOf"]):
            return {"type": "object", "additionalProperties": True}
        return {"anyOf": members}
    if "const" in schema:
        return {"enum": [schema["const"]], "type": "string" if isinstance(schema["const"], str) else "integer"}
    if "enum" in schema:
        return {"enum": schema["enum"], "type": "string"}
    kinds = schema.get("type")
    if kinds == "number":
        return {"type": ["integer", "number"]}
    if kinds == "array":
        return {"type": "array", "items": hint_schema(model, domain, schema.get("items", {}))}
    if kinds == "object":
        values = schema.get("additionalProperties", True)
        return {
            "type": "object",
            "additionalProperties": values if values is True else hint_schema(model, domain, values),
        }
    return {"type": kinds} if kinds else {}


def _is_open(model: Model, domain: str, schema: Schema) -> bool:
    return "$ref" in schema and model.definition(model.reference(domain, schema)).kind is Kind.OPEN


def _extra(definition: Definition) -> dict[str, Any]:
    """What the class template prints beside names and hints."""
    tag = definition.tag
    return {
        "doc": unions.documentation(definition),
        "tag": {"field": tag[0], "name": _tag_name(definition, tag[0]), "value": tag[1]} if tag else None,
        "layout": {
            entry.wire: {"suffix": _suffix(entry), "optional": _optional(entry), "doc": entry.description}
            for entry in definition.fields
        },
    }


def _tag_name(definition: Definition, wire: str) -> str:
    return next(entry.name for entry in definition.fields if entry.wire == wire)


def _optional(entry: Field) -> str:
    return {Absence.NONE: " | None", Absence.UNSET: " | UnsetType"}.get(entry.absence, "")


def _suffix(entry: Field) -> str:
    """The default of a field, with its wire name where that differs from the attribute."""
    named = f"name={literal(entry.wire)}" if entry.wire != entry.name else ""
    default = {Absence.NONE: "default=None", Absence.UNSET: "default=UNSET"}.get(entry.absence, "")
    if entry.absence is Absence.CONSTANT:
        # A plain default would be left out on the wire.
        default = f"default_factory=lambda: {literal(entry.constant)}"
    if not named and entry.absence in (Absence.NONE, Absence.UNSET):
        return f" = {default.removeprefix('default=')}"
    inside = ", ".join(part for part in (named, default) if part)
    return f" = field({inside})" if inside else ""


def _split(domain: str, text: str) -> tuple[str, set[str]]:
    """Class bodies and import lines of a module datamodel-code-generator wrote."""
    tree = ast.parse(text)
    imports: set[str] = set()
    bodies: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            module = f"{PACKAGE}.{node.module}" if node.level else str(node.module)
            if module not in ("__future__", f"{PACKAGE}.{domain}"):
                for alias in node.names:
                    renamed = f" as {alias.asname}" if alias.asname else ""
                    imports.add(f"from {module} import {alias.name}{renamed}")
        elif isinstance(node, ast.ClassDef):
            body = ast.get_source_segment(text, node) or ""
            bodies.append(re.sub(r'\n\n(    """)', r"\n\1", body))
    return "\n\n\n".join(bodies), imports


def _alias_imports(model: Model, domain: str, aliases: list[dict[str, Any]]) -> set[str]:
    return {
        f"from {PACKAGE}.{model.domain(name)} import {name}"
        for alias in aliases
        for name in alias["uses"]
        if model.domain(name) != domain
    }
