"""The specification's published examples and schemas, where they lie beside the checkout (CI has them)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.codegen import schemas

from typedmcp_wire import decode, encode, guards

SHARED = schemas.ROOT.parent / "shared"
SPEC = SHARED / "reference" / "spec-schema"
PARITY = SHARED / "tools" / "schema_parity.py"
REVISION = "2026-07-28"
EXAMPLES = sorted((SPEC / REVISION / "examples").rglob("*.json"))

pytestmark = pytest.mark.skipif(not SPEC.is_dir(), reason=f"the specification's schemas are not at {SPEC}")


def test_all_of_them_are_there() -> None:
    assert len(EXAMPLES) == 129


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_example_is_valid_and_survives(path: Path) -> None:
    definition = path.parent.name
    value = json.loads(path.read_text("utf-8"))
    assert guards.explain(value, definition, REVISION) == ()
    assert json.loads(encode(decode(path.read_bytes(), definition))) == value


@pytest.mark.skipif(not PARITY.is_file(), reason=f"the comparison is not at {PARITY}")
def test_every_revision_equals_the_specifications() -> None:
    command = [sys.executable, str(PARITY), str(schemas.GENERATED / "schemas")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-2:] == ["groups: 33/33 equal", "parity: 436/436 definitions equal"]
    assert done.returncode == 0
