"""The resources and templates of an app together: who answers for an address, and that nobody else does."""

from __future__ import annotations

from typing import TypeAlias

from typedmcp.core.errors import MCPError, UsageError
from typedmcp.core.uri_templates import normal_form, overlap
from typedmcp.server.app_resources import FunctionResource, FunctionTemplate
from typedmcp.server.context import Context
from typedmcp.server.registry import Registry
from typedmcp_wire.revisions import INVALID_PARAMS, RESOURCE_NOT_FOUND
from typedmcp_wire.types.input import InputRequiredResult
from typedmcp_wire.types.resources import ReadResourceResult

Read: TypeAlias = ReadResourceResult | InputRequiredResult


class Library:
    """Resources by address, templates by pattern.

    A resource or template is refused when it could answer for an address that another answers for already, so that
    which one is read never hangs on the order of registration.

    Args:
        page_size: How many entries a page of either list has.
    """

    def __init__(self, page_size: int) -> None:
        self.resources = Registry[FunctionResource]("resources", page_size)
        self.templates = Registry[FunctionTemplate]("templates", page_size)

    @property
    def served(self) -> bool:
        """Whether there has ever been a resource or template."""
        return self.resources.served or self.templates.served

    def add_resource(self, resource: FunctionResource) -> None:
        """Offer a resource.

        Raises:
            UsageError: its address has an owner.
        """
        key = normal_form(resource.uri)
        if self.resources.get(key) is not None:
            raise UsageError(f"there is a resource at {resource.uri!r} already")
        for entry in self.templates:
            if entry.template.match(resource.uri) is not None:
                raise UsageError(f"the template {entry.template.text!r} answers for {resource.uri!r} already")
        self.resources.add(key, resource)

    def add_template(self, added: FunctionTemplate) -> None:
        """Offer a template.

        Raises:
            UsageError: an address it makes has another owner.
        """
        text = added.template.text
        for entry in self.templates:
            if overlap(entry.template, added.template):
                raise UsageError(f"the templates {entry.template.text!r} and {text!r} have addresses in common")
        for resource in self.resources:
            if added.template.match(resource.uri) is not None:
                raise UsageError(f"the template {text!r} would answer for the resource {resource.uri!r} too")
        self.templates.add(normal_form(text), added)

    def remove(self, uri: str) -> bool:
        """Take out the resource or template of this address; False when there is none."""
        key = normal_form(uri)
        return self.resources.remove(key) or self.templates.remove(key)

    def template(self, uri: str) -> FunctionTemplate | None:
        """The template written as `uri`."""
        return self.templates.get(normal_form(uri))

    def knows(self, uri: str) -> bool:
        """Whether `uri` can be read."""
        return self.resources.get(normal_form(uri)) is not None or self._matching(uri) is not None

    async def read(self, uri: str, context: Context) -> Read:
        """The contents at an address.

        Raises:
            MCPError: there is nothing at it, or it cannot be read.
        """
        resource = self.resources.get(normal_form(uri))
        if resource is not None:
            return await resource.read(context)
        found = self._matching(uri)
        if found is None:
            raise not_found(uri, context)
        return await found[0].read(uri, found[1], context)

    def _matching(self, uri: str) -> tuple[FunctionTemplate, dict[str, str]] | None:
        for entry in self.templates:
            values = entry.template.match(uri)
            if values is not None:
                return entry, values
        return None


def is_template(uri: str) -> bool:
    """Whether an address given to an app is a template; no address has braces."""
    return "{" in uri or "}" in uri


def not_found(uri: str, context: Context) -> MCPError:
    """The error for an address nobody answers for."""
    code = INVALID_PARAMS if context.is_modern else RESOURCE_NOT_FOUND
    return MCPError(code, "Resource not found", {"uri": uri})
