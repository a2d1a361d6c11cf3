"""What a generation run gives, made once a session: each takes seconds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.codegen import extension, schemas

from typedmcp_codegen.model import Model
from typedmcp_codegen.source import Source, load


@pytest.fixture(scope="session")
def source() -> Source:
    """The project's own schema."""
    return load(schemas.SCHEMA)


@pytest.fixture(scope="session")
def model(source: Source) -> Model:
    return Model(source)


class Extended:
    """The wire with an extension, generated over a copy of the committed output."""

    def __init__(self, folder: Path, run: subprocess.CompletedProcess[str]) -> None:
        self.folder = folder
        self.wire = folder / "typedmcp_wire"
        self.run = run


@pytest.fixture(scope="session")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Extended:
    folder = tmp_path_factory.mktemp("extended")
    schema = schemas.copy(folder)
    extension.extend(schema)
    wire = folder / "typedmcp_wire"
    wire.mkdir()
    for path in schemas.GENERATED.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            target = wire / path.relative_to(schemas.GENERATED)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return Extended(folder, schemas.generate("--schema", schema, "--out", wire, cwd=folder))
