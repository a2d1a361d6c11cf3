"""What the guard templates print: checks, functions, and the pointers they report.

Nothing here decides anything; :mod:`typedmcp_codegen.guards_code` fills these in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
        step = pointer(name)
        return Place(self.text + (_braced(step) if self.dynamic else step), self.dynamic)

    def computed(self, expression: str) -> Place:
        """The place of a member or an item whose token is the value of `expression`."""
        return Place(f"{self.text if self.dynamic else _braced(self.text)}/{{{expression}}}", dynamic=True)

    def __str__(self) -> str:
        return ("f" if self.dynamic else "") + literal(self.text)


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


@dataclass(frozen=True)
class Leaf:
    """A value judged by itself: an expression that is true when it needs a closer look, and the closer look."""

    test: str
    closer: str
    form: str = "leaf"

    def doubt(self, value: str) -> str:
        return self.test.replace(VALUE, value)

    def look(self, place: object, value: str) -> str:
        return self.closer.replace(PLACE, str(place)).replace(VALUE, value)


@dataclass(frozen=True)
class Call:
    """A value judged by another function."""

    function: str
    form: str = "call"


@dataclass(frozen=True)
class Array:
    """A list judged in place, item by item."""

    items: tuple[Check, ...]
    bound: str = ""
    """An expression over ``items`` that is true when there are too few or too many."""
    expected: str = "array"
    typed: bool = True
    """Whether anything else than an array is a violation."""
    form: str = "array"


Check = Leaf | Call | Array


@dataclass(frozen=True)
class Property:
    name: str
    required: bool
    sure: bool
    """Whether the checks refuse an absent value by themselves."""
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Function:
    """One guard, or a part of one: see the template for what each form prints."""

    name: str
    form: str = field(init=False, default="")


@dataclass(frozen=True)
class ObjectFunction(Function):
    typed: bool
    """Whether anything else than an object is a violation."""
    properties: tuple[Property, ...]
    others: tuple[Check, ...]
    """Checks of the members that are no named property."""
    known: tuple[str, ...] = ()
    form: str = field(init=False, default="object")


@dataclass(frozen=True)
class ChecksFunction(Function):
    checks: tuple[Check, ...]
    form: str = field(init=False, default="checks")


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
    objects: Pick | None
    arrays: Pick | None
    scalar: Leaf | None
    """All members that are neither object nor array, as one check."""
    trial: Pick | None
    """Set when members overlap in kind: each is tried."""
    expected: str
    form: str = field(init=False, default="union")
