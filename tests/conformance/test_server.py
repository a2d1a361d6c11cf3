"""The official conformance suite against our everything server, revision by revision.

Every required scenario passes.  What is not required and not built is listed; a scenario that passes although it is
listed fails the test, so the list cannot go stale.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.conformance.conftest import Suite

LEGS = {
    "2025-11-25": ["--requirements", "2025-11-25"],
    "2025-06-18": ["--suite", "all", "--spec-version", "2025-06-18"],
    "2025-03-26": ["--suite", "all", "--spec-version", "2025-03-26"],
    "2026-07-28": ["--requirements", "2026-07-28"],
}
REQUIRED = {"2025-11-25": 30, "2025-06-18": 27, "2025-03-26": 1, "2026-07-28": 37}
# Scenarios of 2026-07-28 that are not required: the tasks extension is not built.
NOT_BUILT = {
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-lifecycle",
    "tasks-mrtr-composition",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-required-task-error",
    "tasks-wire-fields",
}
_LINE = re.compile(r"^([✓✗]) ([\w/-]+): (\d+) passed, (\d+) failed", re.MULTILINE)
_UNSCORED = re.compile(r"^  [✓✗] ([\w/-]+) \(", re.MULTILINE)


@pytest.mark.parametrize("revision", LEGS)
def test_the_official_suite(suite: Suite, url: str, revision: str, tmp_path: Path) -> None:
    command = [suite.node, suite.script, "server", "--url", url, *LEGS[revision], "-o", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    verdicts = {name: mark == "✓" for mark, name, _, _ in _LINE.findall(done.stdout)}
    unscored = set(_UNSCORED.findall(done.stdout))
    required = {name for name in verdicts if name not in unscored}
    # At 2025-11-25 one scenario counts although it came later than the release.
    assert len(required) == REQUIRED[revision], sorted(required)
    failed = {name for name in verdicts if not verdicts[name]}
    assert failed == (NOT_BUILT if revision == "2026-07-28" else set()), done.stdout[-4000:]
    assert warnings(tmp_path) == set()
    others = f"{len(unscored - failed)} of {len(unscored)}"
    print(f"\n{revision}: all of {len(required)} required scenarios, {others} others")


def warnings(folder: Path) -> set[str]:
    """Scenarios with a check that is only a warning."""
    return {
        re.sub(r"^server-|-\d{4}-\d{2}-\d{2}T.*$", "", file.parent.name)
        for file in folder.rglob("checks.json")
        if any(check.get("status") == "WARNING" for check in json.loads(file.read_text()))
    }
