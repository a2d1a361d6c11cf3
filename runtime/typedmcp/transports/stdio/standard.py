"""The process's own input and output, set aside for the protocol while a server runs on them.

Rules:
- Only messages reach the real output.  Meanwhile descriptor 0 is the null device, descriptor 1 goes where descriptor 2
  goes, and ``sys.stdout`` is ``sys.stderr``: a stray ``print``, a C library and a child process do no harm, and no
  child process can eat input or keep the pipes open.
- Everything is as it was after :meth:`Aside.give_back`.
- A process has one input and one output: setting one aside twice is an error.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Final, TextIO

from typedmcp.core.errors import TransportError, UsageError

_INPUT: Final = 0
_OUTPUT: Final = 1
_aside: set[int] = set()


class Aside:
    """A standard stream set aside.

    Attributes:
        fd: A private copy of the real one.
    """

    def __init__(self, number: int) -> None:
        if number in _aside:
            raise UsageError("this process serves on its standard streams already; give input= and output= instead")
        self._number = number
        self._text: TextIO | None = sys.stdout if number == _OUTPUT else None
        self._flush()
        try:
            self.fd = os.dup(number)
        except OSError as error:
            name = "output" if number == _OUTPUT else "input"
            raise TransportError(f"this process has no standard {name}; give {name}= instead") from error
        _aside.add(number)
        _binary(self.fd)
        self._point(number)
        self._stand_in = sys.stderr if number == _OUTPUT else None
        if number == _OUTPUT:
            sys.stdout = self._stand_in

    def give_back(self) -> None:
        """Put the stream back; a second call does nothing."""
        if self.fd < 0:
            return
        # What the old sys.stdout object still holds was written meanwhile, by those who kept a reference to it.
        self._flush()
        if self._stand_in is not None and sys.stdout is self._stand_in and self._text is not None:
            sys.stdout = self._text
        os.dup2(self.fd, self._number, inheritable=True)
        os.close(self.fd)
        self.fd = -1
        _aside.discard(self._number)

    def _flush(self) -> None:
        if self._text is not None:
            with contextlib.suppress(OSError, ValueError):
                self._text.flush()

    def _point(self, number: int) -> None:
        """Let the public number lead where it does no harm."""
        if number == _OUTPUT:
            with contextlib.suppress(OSError):
                os.dup2(2, number, inheritable=True)
                return
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, number, inheritable=True)
        os.close(null)


def set_input_aside() -> Aside:
    """Take descriptor 0."""
    return Aside(_INPUT)


def set_output_aside() -> Aside:
    """Take descriptor 1 and ``sys.stdout``."""
    return Aside(_OUTPUT)


def _binary(fd: int) -> None:
    """No translation of line ends, which Windows would otherwise do."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(fd, os.O_BINARY)
