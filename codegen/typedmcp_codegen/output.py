"""The output folder: what is there, what should be, and how to make them the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_IGNORED = {"__pycache__"}


@dataclass(frozen=True)
class Drift:
    """Files that differ from what the schema gives, by their path below the package."""

    missing: tuple[str, ...]
    differing: tuple[str, ...]
    orphans: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.missing or self.differing or self.orphans)

    def lines(self) -> list[str]:
        """One line a file."""
        return [
            *(f"missing: {name}" for name in self.missing),
            *(f"differs: {name}" for name in self.differing),
            *(f"orphan: {name}" for name in self.orphans),
        ]


def present(folder: Path) -> dict[str, bytes]:
    """Every file below `folder` but bytecode."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not _IGNORED & set(path.parts)
    }


def compare(folder: Path, files: dict[str, bytes]) -> Drift:
    """How the folder differs from `files`."""
    there = present(folder)
    return Drift(
        missing=tuple(name for name in files if name not in there),
        differing=tuple(name for name in files if name in there and there[name] != files[name]),
        orphans=tuple(name for name in there if name not in files),
    )


def write(folder: Path, files: dict[str, bytes]) -> Drift:
    """Make the folder equal to `files`, touching only what differs; what was changed is returned."""
    drift = compare(folder, files)
    for name in (*drift.missing, *drift.differing):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[name])
    for name in drift.orphans:
        (folder / name).unlink()
    return drift
