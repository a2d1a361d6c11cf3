"""``python -m typedmcp_codegen generate [--check]``: make ``generated/typedmcp_wire`` from ``schema/``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from typedmcp_codegen import changes, output
from typedmcp_codegen.build import build
from typedmcp_codegen.source import Source, SourceError, load

ROOT = Path(__file__).resolve().parents[2]


@click.group()
def main() -> None:
    """Generate the typed wire of the Model Context Protocol from its annotated JSON Schema."""


@main.command()
@click.option("--schema", type=click.Path(path_type=Path), default=ROOT / "schema", help="The schema folder.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=ROOT / "generated" / "typedmcp_wire",
    help="The package folder to write.",
)
@click.option(
    "--check", is_flag=True, help="Write nothing; exit 1 and name each file that is not as the schema gives it."
)
def generate(schema: Path, out: Path, check: bool) -> None:
    """Write structs, guards, method table, client stub, servicers and plain schemas.

    Prints what changed since the output that is there: types, fields and methods, with the revisions concerned.
    """
    if not output.is_output(out):
        click.echo(
            f"error: {out} has files, and is no output of this generator; name another folder with --out", err=True
        )
        sys.exit(2)
    try:
        source = load(schema)
        files = _build(source)
    except SourceError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    if check:
        drift = output.compare(out, files)
        for line in drift.lines():
            click.echo(line)
        if drift:
            click.echo("The output is not what the schema gives: run `make generate` and commit the result.", err=True)
            sys.exit(1)
        click.echo(f"{len(files)} files are as schema {source.digest} gives them.")
        return
    before = output.present(out) if out.is_dir() else {}
    written = output.write(out, files)
    for line in changes.describe(before, files):
        click.echo(line)
    count = len(written.missing) + len(written.differing)
    click.echo(f"{len(files)} files, {count} written, {len(written.orphans)} removed; schema {source.digest}.")


def _build(source: Source) -> dict[str, bytes]:
    """Build with one status line on a terminal, silently elsewhere."""
    if not sys.stderr.isatty():
        return build(source)
    try:
        return build(source, lambda name: click.echo(f"\r\033[K{name} ...", err=True, nl=False))
    finally:
        click.echo("\r\033[K", err=True, nl=False)


if __name__ == "__main__":
    main()
