"""The guards: plain Python that judges parsed JSON exactly as the schema of a revision does.

``guards_plan`` finds out which guards are equal and where each is written, ``guards_code`` and its neighbours turn
schemas into checks, the templates print them.
"""

from __future__ import annotations

from typedmcp_codegen.guards_code import Module
from typedmcp_codegen.guards_plan import plan
from typedmcp_codegen.guards_shapes import Place
from typedmcp_codegen.header import digest, header
from typedmcp_codegen.render import render
from typedmcp_codegen.source import Source

# Each module imports all of it; the formatter that runs over the output drops what a module does not use.
_SUPPORT = (
    "MISSING",
    "Array",
    "Found",
    "Guard",
    "Object",
    "as_dict",
    "as_list",
    "as_str",
    "bounded",
    "chosen",
    "has",
    "nested",
    "settle",
    "token",
    "typed",
    "wrong",
)


def emit(source: Source) -> dict[str, str]:
    """The files of ``guards/`` by their path below ``typedmcp_wire``."""
    head = header(source.digest)
    planned = plan(source)
    files = {
        "guards/__init__.py": render("guards_init.py.j2", header=head, modules=_modules(source)),
        "guards/support.py": render("guards_support.py.j2", header=head),
    }
    for revision, module in _modules(source).items():
        code = Module(planned, revision)
        body = render("guards_functions.py.j2", functions=code.functions, root=Place())
        files[f"guards/{module}.py"] = render(
            "guards_revision.py.j2",
            header=header(digest(planned.definitions[revision])),
            revision=revision,
            support=_SUPPORT,
            imports={_module(home): sorted(names) for home, names in sorted(code.imports.items())},
            body=body,
            table=code.table,
        )
    return files


def _modules(source: Source) -> dict[str, str]:
    return {revision: _module(revision) for revision in source.revision_names}


def _module(revision: str) -> str:
    return "r" + revision.replace("-", "_")
