"""A function as a resource of an app."""

from __future__ import annotations

import base64
import inspect
import logging
import re
from collections.abc import Callable
from typing import Any, cast

from typedmcp.core.errors import MCPError, ToolError, UsageError
from typedmcp.server.context import Context
from typedmcp.server.signature import read_signature
from typedmcp.server.threads import WorkerThreads
from typedmcp_wire.revisions import INTERNAL_ERROR
from typedmcp_wire.types.content import BlobResourceContents, Resource, TextResourceContents
from typedmcp_wire.types.resources import ReadResourceResult

logger = logging.getLogger("typedmcp")

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


class FunctionResource:
    """What a function returns, at a fixed address.

    Raises:
        UsageError: the address is none, or the function takes more than a context.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        threads: WorkerThreads,
        *,
        uri: str,
        name: str | None,
        title: str | None,
        description: str | None,
        mime_type: str | None,
    ) -> None:
        if not _URI.fullmatch(uri):
            raise UsageError(f"a resource's address has a scheme, such as 'docs://intro'; got {uri!r}")
        signature = read_signature(function)
        if signature.arguments.__struct_fields__:
            taken = ", ".join(signature.arguments.__struct_fields__)
            raise UsageError(f"the function of resource {uri} takes arguments ({taken}); a fixed address has none")
        self.uri = uri
        self._function = function
        self._threads = threads
        self._is_async = inspect.iscoroutinefunction(function)
        self._context_name = signature.context_name
        self.takes_context = signature.context_name is not None
        self.descriptor = Resource(
            uri=uri,
            name=name or str(getattr(function, "__name__", uri)),
            title=title,
            description=description if description is not None else signature.description,
            mime_type=mime_type,
        )

    async def read(self, context: Context) -> ReadResourceResult:
        """Call the function and return its contents.

        Raises:
            MCPError: the function failed; only the text of a ToolError is told.
        """
        values = {} if self._context_name is None else {self._context_name: context}
        try:
            return ReadResourceResult(contents=[self._contents(await self._run(values, context))])
        except ToolError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from error
        except MCPError:
            raise
        except Exception as error:
            logger.exception("resource %r failed", self.uri)
            raise MCPError(INTERNAL_ERROR, "The resource cannot be read.") from error

    async def _run(self, values: dict[str, Any], context: Context) -> Any:
        if self._is_async:
            return await self._function(**values)
        import asyncio

        context.enter_thread(asyncio.get_running_loop())
        return await self._threads.run(self._function, values)

    def _contents(self, value: Any) -> TextResourceContents | BlobResourceContents:
        mime_type = self.descriptor.mime_type
        if isinstance(value, str):
            return TextResourceContents(uri=self.uri, mime_type=mime_type, text=value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            blob = base64.b64encode(bytes(cast("bytes", value))).decode()
            return BlobResourceContents(uri=self.uri, mime_type=mime_type, blob=blob)
        raise TypeError(f"a resource is text or bytes, the function returned {type(value).__name__}")
