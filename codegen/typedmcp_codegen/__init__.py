"""Schema to code: the generator behind ``typedmcp_wire``; ``python -m typedmcp_codegen --help`` tells how to run it."""
