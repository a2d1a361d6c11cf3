"""How far something is, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from typedmcp.cli.output import printable

if TYPE_CHECKING:
    from types import TracebackType

_STEPS = 1000
"""Progress is a float and a bar counts in whole steps."""
_CLEAR = "\r\033[K"
LARGE = 5 * 1024 * 1024
"""Bytes from which on reading a file shows a bar."""


class ProgressView:
    """What a server reports about one call: a bar on a terminal, lines elsewhere, nothing when not enabled."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._terminal = sys.stderr.isatty()
        self._bar: Any = None

    def __enter__(self) -> ProgressView:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None

    def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Take one report; the callback a client wants."""
        if not self._enabled:
            return
        text = printable(message or "")
        if self._terminal and total is not None and total > 0:
            self._advance(min(max(progress / total, 0.0), 1.0), text)
        else:
            of = "" if total is None else f"/{total:g}"
            click.echo(f"progress {progress:g}{of} {text}".rstrip(), err=True)

    def _advance(self, share: float, text: str) -> None:
        if self._bar is None:
            # ProgressBar's own class is not public; the function is a context manager that can be left later.
            self._bar = click.progressbar(length=_STEPS, file=sys.stderr, item_show_func=_label, show_pos=False)
            self._bar.__enter__()
        step = int(share * _STEPS) - self._bar.pos
        self._bar.update(step, text)


def _label(text: object) -> str:
    """What stands beside the bar; nothing before the first report."""
    return "" if text is None else str(text)


class ReadingView:
    """A bar for a large file on a terminal."""

    def __init__(self, bar: Any = None) -> None:
        self._bar = bar

    def advance(self, count: int) -> None:
        """So many more bytes are read."""
        if self._bar is not None:
            self._bar.update(count)

    def make_room(self) -> None:
        """Take the bar's line away, so that something can be printed in its place."""
        if self._bar is not None:
            click.echo(_CLEAR, nl=False, err=True)


@contextmanager
def reading(stream: BinaryIO, name: str) -> Generator[ReadingView]:
    """Show how far the reading of `stream` is, where that is worth it."""
    try:
        size = stream.seek(0, 2)
        stream.seek(0)
    except (OSError, ValueError):
        size = 0
    if size < LARGE or not sys.stderr.isatty():
        yield ReadingView()
        return
    with click.progressbar(length=size, file=sys.stderr, label=printable(name), update_min_steps=size // 200) as bar:
        yield ReadingView(bar)
