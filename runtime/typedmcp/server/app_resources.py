"""Functions as resources of an app: at a fixed address, or at every address of a template."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any, TypedDict, cast

import msgspec

from typedmcp.core.errors import MCPError, UsageError
from typedmcp.core.uri_templates import URITemplate
from typedmcp.server.completion import Completer, Completers
from typedmcp.server.context import Context
from typedmcp.server.functions import BoundFunction, guarded
from typedmcp.server.signature import read_signature
from typedmcp.server.text_arguments import convert_texts, demand_textual, text_violations
from typedmcp.server.threads import WorkerThreads
from typedmcp_wire.revisions import INVALID_PARAMS
from typedmcp_wire.types.base import Annotations, Icon
from typedmcp_wire.types.content import (
    AnyResourceContents,
    BlobResourceContents,
    Resource,
    TextResourceContents,
)
from typedmcp_wire.types.input import InputRequiredResult
from typedmcp_wire.types.resources import ReadResourceResult, ResourceTemplate

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_FAILED = "The resource cannot be read."


class ResourceOptions(TypedDict, total=False):
    """What can be said about a resource or template beside its address.

    Attributes:
        name: Its name; the function's by default.
        title: A name for people.
        description: What it holds; the docstring's by default.
        mime_type: The type of the contents.
        annotations: Hints on audience, importance and age.
        icons: Icons a user interface may show.
        meta: Its ``_meta``.
    """

    name: str | None
    title: str | None
    description: str | None
    mime_type: str | None
    annotations: Annotations | None
    icons: list[Icon] | None
    meta: dict[str, Any] | None


class FunctionResource:
    """What a function returns, at a fixed address.

    Raises:
        UsageError: the address is none, or the function takes more than a context.
    """

    def __init__(
        self, function: Callable[..., Any], threads: WorkerThreads, *, uri: str, options: ResourceOptions
    ) -> None:
        if not _URI.fullmatch(uri):
            raise UsageError(f"a resource's address has a scheme, such as 'docs://intro'; got {uri!r}")
        signature = read_signature(function)
        if signature.arguments.__struct_fields__:
            taken = ", ".join(signature.arguments.__struct_fields__)
            raise UsageError(f"the function of resource {uri} takes arguments ({taken}); a fixed address has none")
        self.uri = uri
        self._function = BoundFunction(function, threads, signature.context_name)
        self.takes_context = self._function.takes_context
        self.descriptor = Resource(uri=uri, **_described(function, signature.description, options, uri))

    async def read(self, context: Context) -> ReadResourceResult | InputRequiredResult:
        """Call the function and return its contents.

        Raises:
            MCPError: the function failed; only the text of a ToolError is told.
        """
        return await _read(self._function, {}, context, self.uri, self.descriptor.mime_type)


class FunctionTemplate:
    """What a function returns for the variables of an address.

    Raises:
        UsageError: the template is none, or its variables and the function's parameters differ.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        threads: WorkerThreads,
        *,
        template: str,
        options: ResourceOptions,
        complete: Mapping[str, Completer] | None = None,
    ) -> None:
        self.template = URITemplate(template)
        label = f"the function of resource template {template}"
        signature = read_signature(function)
        taken = set(signature.arguments.__struct_fields__)
        unfilled = [name for name in signature.input_schema.get("required", ()) if name not in self.template.names]
        if unfilled or not taken.issuperset(self.template.names):
            names = ", ".join(self.template.names) or "none"
            raise UsageError(f"{label} must take the variables as parameters ({names}); it takes {sorted(taken)}")
        demand_textual(signature, label)
        self._signature = signature
        self._function = BoundFunction(function, threads, signature.context_name)
        self.takes_context = self._function.takes_context
        self.completers = Completers(complete or {}, self.template.names, threads, label)
        self.descriptor = ResourceTemplate(
            uri_template=template, **_described(function, signature.description, options, template)
        )

    async def read(self, uri: str, texts: dict[str, str], context: Context) -> ReadResourceResult | InputRequiredResult:
        """Call the function with the variables of `uri` and return its contents.

        Raises:
            MCPError: a variable does not fit its parameter, or the function failed.
        """
        try:
            values = convert_texts(texts, self._signature.arguments)
        except msgspec.ValidationError as error:
            data = {"uri": uri, **text_violations(texts, self._signature, error)}
            raise MCPError(INVALID_PARAMS, "The address has a value its template does not allow.", data) from None
        return await _read(self._function, values, context, uri, self.descriptor.mime_type)


def _described(
    function: Callable[..., Any], documented: str | None, options: ResourceOptions, address: str
) -> dict[str, Any]:
    """The members of a descriptor that resources and templates share."""
    described: dict[str, Any] = {**options}
    described["name"] = described.get("name") or str(getattr(function, "__name__", address))
    if described.get("description") is None:
        described["description"] = documented
    return described


async def _read(
    function: BoundFunction, values: dict[str, Any], context: Context, uri: str, mime_type: str | None
) -> ReadResourceResult | InputRequiredResult:
    async def work() -> ReadResourceResult | InputRequiredResult:
        return _result(await function.call(values, context), uri, mime_type)

    result: ReadResourceResult | InputRequiredResult = await guarded(work(), f"resource {uri!r}", _FAILED)
    return result


def _result(value: Any, uri: str, mime_type: str | None) -> ReadResourceResult | InputRequiredResult:
    if isinstance(value, (ReadResourceResult, InputRequiredResult)):
        return value
    parts = list(cast("list[Any]", value)) if isinstance(value, (list, tuple)) else [value]
    return ReadResourceResult(contents=[_contents(part, uri, mime_type) for part in parts])


def _contents(value: Any, uri: str, mime_type: str | None) -> AnyResourceContents:
    if isinstance(value, (TextResourceContents, BlobResourceContents)):
        return value
    if isinstance(value, str):
        return TextResourceContents(uri=uri, mime_type=mime_type, text=value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        blob = base64.b64encode(bytes(cast("bytes", value))).decode()
        return BlobResourceContents(uri=uri, mime_type=mime_type, blob=blob)
    raise TypeError(f"a resource is text, bytes or resource contents; the function returned {type(value).__name__}")
