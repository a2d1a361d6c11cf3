"""The command line: ``typedmcp COMMAND ...``, one module per command, each loaded when it is asked for."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command the process was started with, and end the process."""
    try:
        from typedmcp.cli.program import program
    except KeyboardInterrupt:  # Ctrl-C while modules load
        sys.exit(130)
    program()
