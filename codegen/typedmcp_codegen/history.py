"""``history.py``: which revisions have which fields, so that a value can be cut down to what a peer knows."""

from __future__ import annotations

from typedmcp_codegen.header import header
from typedmcp_codegen.model import Kind, Model
from typedmcp_codegen.render import render
from typedmcp_codegen.source import Schema, Source


def emit(source: Source, model: Model) -> dict[str, str]:
    """The text of ``history.py``."""
    first, last = source.revision_names[0], source.revision_names[-1]

    def span(schema: Schema) -> tuple[str, str]:
        return schema.get("x-since", first), schema.get("x-until", last)

    whole = (first, last)
    definitions = {name: span(model.definition(name).schema) for name in sorted(model.names())}
    fields = {
        name: {entry.name: span(entry.schema) for entry in model.definition(name).fields if span(entry.schema) != whole}
        for name in sorted(model.names())
        if model.definition(name).kind is Kind.STRUCT
    }
    return {
        "history.py": render(
            "history.py.j2",
            header=header(source.digest),
            definitions={name: entry for name, entry in definitions.items() if entry != whole},
            fields={name: entry for name, entry in fields.items() if entry},
        ),
    }
