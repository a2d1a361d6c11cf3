"""The wire as msgspec structs; a mirror of :mod:`typedmcp_wire.types`, name for name."""

from typedmcp_wire.types import *  # noqa: F403
from typedmcp_wire.types import __all__ as __all__
