"""What the guard templates print: checks, functions, and the pointers they report.

Nothing here decides anything; :mod:`typedmcp_codegen.guards_code` fills these in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typedmcp_codegen.render import literal
from typedmcp_codegen.source import pointer

# Stand in the expressions of a leaf for the variable looked at and for its pointer; no schema text can hold them.
VALUE = "\0value\0"
PLACE = "\0place\0"


@dataclass(frozen=True)
class Place:
    """A relative JSON Pointer as Python source: a literal, or an f-string when a part is known at run time only."""

    text: str = ""
    dynamic: bool = False

    def member(self, name: str) -> Place:
        """The place of the member called `name`."""
        return Place(self.text + pointer(name))

    def computed(self, expression: str) -> Place:
        """The place of a member or an item whose token is the value of `expression`."""
        return Place(self.text.replace("{", "{{").replace("}", "}}") + f"/{{{expression}}}", dynamic=True)

    def __str__(self) -> str:
        return ("f" if self.dynamic else "") + literal(self.text)


@dataclass(frozen=True)
class Leaf:
    """A value judged by itself: an expression that is true when it needs a closer look, and the closer look."""

    test: str
    closer: str
    form: ClassVar[str] = "leaf"

    def doubt(self, value: str) -> str:
        """The test, for the variable `value`."""
        return self.test.replace(VALUE, value)

    def look(self, place: object, value: str) -> str:
        """The closer look, for the variable `value` at `place`."""
        return self.closer.replace(PLACE, str(place)).replace(VALUE, value)


@dataclass(frozen=True)
class Call:
    """A value judged by another function."""

    function: str
    form: ClassVar[str] = "call"


@dataclass(frozen=True)
class Array:
    """A list judged in place, item by item."""

    items: tuple[Check, ...]
    bound: str = ""
    """An expression over ``items`` that is true when there are too few or too many."""
    expected: str = "array"
    typed: bool = True
    """Whether anything else than an array is a violation."""
    form: ClassVar[str] = "array"


@dataclass(frozen=True)
class Map:
    """An object without named properties judged in place, member by member."""

    members: tuple[Check, ...]
    form: ClassVar[str] = "map"


Check = Leaf | Call | Array | Map


@dataclass(frozen=True)
class Property:
    """A named member of an object."""

    name: str
    required: bool
    sure: bool
    """Whether the checks refuse an absent value by themselves."""
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Function:
    """One guard, or a part of one: see the template for what each form prints."""

    name: str
    form: ClassVar[str] = ""


@dataclass(frozen=True)
class ObjectFunction(Function):
    """Judges an object member by member."""

    typed: bool
    """Whether anything else than an object is a violation."""
    properties: tuple[Property, ...]
    others: tuple[Check, ...]
    """Checks of the members that are no named property."""
    known: tuple[str, ...] = ()
    form: ClassVar[str] = "object"


@dataclass(frozen=True)
class ChecksFunction(Function):
    """Applies some checks, one after the other."""

    checks: tuple[Check, ...]
    form: ClassVar[str] = "checks"


@dataclass(frozen=True)
class Pick:
    """How one of several members is chosen for an object or a list."""

    form: str
    """``one``, ``tag``, ``when`` or ``trial``."""
    functions: tuple[str, ...]
    tests: tuple[str, ...] = ()
    """``tag``: the constants; ``when``: expressions over ``plain``, all but the last function's."""
    default: str = ""
    tag: str = ""
    expected: str = ""


@dataclass(frozen=True)
class UnionFunction(Function):
    """Judges a union: by the kind of the value first, then as the pick for that kind says."""

    objects: Pick | None
    arrays: Pick | None
    scalar: Leaf | None
    """All members that are neither object nor array, as one check that the value passes when `test` is true."""
    trial: Pick | None
    """Set when members overlap in kind: each is tried."""
    expected: str
    form: ClassVar[str] = "union"
