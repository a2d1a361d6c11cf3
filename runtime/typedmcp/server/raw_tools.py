"""A tool that brings its own JSON Schema: listed as it is, and every call checked against it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from typedmcp.core.errors import UsageError
from typedmcp.server.app_tools import FunctionTool, ToolOptions
from typedmcp.server.schemas import checked_validator, schema_violations
from typedmcp.server.signature import Arguments
from typedmcp.server.threads import WorkerThreads


class RawTool(FunctionTool):
    """A function that takes the arguments object as one parameter named ``arguments``, and perhaps a context.

    Raises:
        UsageError: the schema is none, cannot be checked here, or the function takes something else.
    """

    def __init__(
        self, function: Callable[..., Any], threads: WorkerThreads, options: ToolOptions, schema: dict[str, Any]
    ) -> None:
        super().__init__(function, threads, options)
        if self._arguments.__struct_fields__ != ("arguments",):
            taken = ", ".join(self._arguments.__struct_fields__) or "nothing"
            raise UsageError(
                f"tool {self.name!r} brings a schema: its function takes one parameter named arguments, not {taken}"
            )
        if schema.get("type") != "object":
            raise UsageError(f"tool {self.name!r}: the input schema must have type: object at its root")
        self._validator = checked_validator(schema, f"tool {self.name!r}")
        self._convert = self._checked
        self.descriptor = msgspec.structs.replace(self.descriptor, input_schema=schema)

    def _checked(self, given: dict[str, Any], kind: type[Arguments]) -> Arguments:
        if not self._validator.is_valid(given):
            raise msgspec.ValidationError("the arguments do not fit the schema")
        return msgspec.convert({"arguments": given}, kind)

    def _violations(self, given: dict[str, Any], error: Exception) -> list[tuple[str, str]]:
        return schema_violations(self._validator, given, str(error))
