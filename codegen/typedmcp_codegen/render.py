"""The Jinja environment: strict about names, quiet about white space.

Templates hold layout; whatever needs a decision is decided in Python and handed over ready to print.
"""

from __future__ import annotations

import functools
import json
import textwrap
from collections.abc import Iterable
from typing import Any

import jinja2


def docstring(text: str, indent: int = 0, tail: str = "") -> str:
    """`text` as a docstring body indented by `indent` spaces, wrapped at 110 columns."""
    paragraphs = textwrap.wrap(text, 110 - indent, break_long_words=False, break_on_hyphens=False)
    return ("\n" + " " * indent).join(paragraphs) + tail


@functools.cache
def environment() -> jinja2.Environment:
    """The one environment all emitters share."""
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("typedmcp_codegen", "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - the output is Python, not HTML
    )
    env.filters["docstring"] = docstring
    env.filters["literal"] = literal
    env.filters["tuple"] = tuple_literal
    env.filters["frozenset"] = frozenset_literal
    return env


def literal(value: object) -> str:
    """A Python literal for a JSON value, strings in double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=True)
    return repr(value)


def tuple_literal(names: Iterable[str]) -> str:
    """A Python literal for a tuple of strings."""
    return literal(tuple(names))


def frozenset_literal(names: Iterable[str]) -> str:
    """A Python expression for a frozenset of strings."""
    listed = tuple(names)
    return f"frozenset({literal(listed)})" if listed else "frozenset()"


def render(template: str, **variables: Any) -> str:
    """The text of a template; an undefined name raises."""
    return environment().get_template(template).render(**variables)
