"""``python -m typedmcp`` is the command line."""

from typedmcp.cli import main

if __name__ == "__main__":
    main()
