"""A server in a package, by a relative import, under another name than `app`."""

from typedmcp import App

from .helper import NAME  # noqa: TID252 - that this works is the point

packed = App(NAME, "1")
