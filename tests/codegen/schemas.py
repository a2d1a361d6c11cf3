"""Copies of the schema folder with something changed, and small schemas of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typedmcp_codegen
from typedmcp_codegen.source import Source, load

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "schema"
GENERATED = ROOT / "generated" / "typedmcp_wire"
CODEGEN = Path(typedmcp_codegen.__file__).parents[1]
RUNTIME = ROOT / "runtime"

Schema = dict[str, Any]
Change = Callable[[Any], object]


def copy(folder: Path) -> Path:
    """A copy of the schema folder below `folder`."""
    target = folder / "schema"
    shutil.copytree(SCHEMA, target)
    return target


def edit(folder: Path, file: str, change: Change) -> None:
    """Change one file of a schema folder; `change` gets its document."""
    path = folder / file
    document = json.loads(path.read_text("utf-8"))
    change(document)
    path.write_text(json.dumps(document, indent=2), encoding="utf-8", newline="\n")


def tiny(folder: Path, definitions: Schema, methods: Schema | None = None) -> Source:
    """A source of one domain, ``thing.json``, over three revisions: one, two (handshake) and three (modern)."""
    folder.mkdir(exist_ok=True)
    entries = [
        {"name": name, "era": era, "batches": False, "unreadableId": "null"}
        for name, era in (("2001-01-01", "handshake"), ("2002-02-02", "handshake"), ("2003-03-03", "modern"))
    ]
    revisions = {"revisions": entries, "assumedRevision": "2001-01-01", "errors": {}, "headers": {}, "meta": {}}
    documents: dict[str, Schema] = {
        "thing.json": {"$id": "thing.json", "$defs": definitions},
        "methods.json": {"methods": methods or {}},
        "revisions.json": revisions,
    }
    for name, document in documents.items():
        (folder / name).write_text(json.dumps(document), encoding="utf-8")
    return load(folder)


def environment(**changes: str) -> dict[str, str]:
    """This process's environment, with the code under test on the path whatever the working folder is."""
    path = os.pathsep.join(map(str, (RUNTIME, GENERATED.parent, CODEGEN)))
    return {**os.environ, "PYTHONPATH": path, **changes}


def generate(*arguments: str | Path, cwd: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """``python -m typedmcp_codegen generate`` with arguments, in a process of its own."""
    command = [sys.executable, "-m", "typedmcp_codegen", "generate", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=environment(**changes), capture_output=True, text=True, check=False, timeout=300
    )
