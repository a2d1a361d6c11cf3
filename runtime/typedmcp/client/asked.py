"""Requests of a server in the handshake era, while they are being answered.

Rules:
- Each runs in a task; ``notifications/cancelled`` and the end of the connection cancel it, and then nothing is sent.
- `ping` is always answered.  An internal fault is emitted as ``error`` and answered with -32603, without its text.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UnsetType

from typedmcp.client.callbacks import Callbacks
from typedmcp.core.errors import MCPError
from typedmcp.core.in_flight import Key, key_of, read_cancelled
from typedmcp.core.jsonrpc import JSONRPCErrorData, JSONRPCRequest, JSONRPCResponse, params_text
from typedmcp_wire.codec import decoder
from typedmcp_wire.methods import METHODS
from typedmcp_wire.revisions import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND

logger = logging.getLogger("typedmcp")

MAX_ASKED = 100
"""How many requests of a server may be open at once; one more is refused."""


class Asked:
    """The requests a server waits for.

    Args:
        callbacks: What answers them.
        send: Takes an answer.
        fault: Told what a callback has raised.

    Attributes:
        revision: The revision agreed on; None before, when nothing but `ping` may be asked.
    """

    def __init__(
        self, callbacks: Callbacks, send: Callable[[JSONRPCResponse], None], fault: Callable[[BaseException], None]
    ) -> None:
        self._callbacks = callbacks
        self._send = send
        self._fault = fault
        self.revision: str | None = None
        self._running: dict[Key, asyncio.Task[None]] = {}

    def take(self, request: JSONRPCRequest) -> None:
        """Begin to answer a request."""
        assert not isinstance(request.id, UnsetType)
        if request.method == "ping":
            self._send(JSONRPCResponse(id=request.id, result={}))
            return
        key = key_of(request.id)
        if key in self._running or len(self._running) >= MAX_ASKED:
            text = "A request with this id is still open." if key in self._running else "Too many requests are open."
            self._refuse(request.id, INVALID_REQUEST if key in self._running else INTERNAL_ERROR, text)
            return
        task = asyncio.get_running_loop().create_task(self._answer(request, request.id))
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))

    def cancelled(self, notification: JSONRPCRequest) -> None:
        """The server no longer wants an answer; an unknown or malformed id is ignored."""
        params = read_cancelled(notification)
        task = None if params is None or params.request_id is None else self._running.get(key_of(params.request_id))
        if task is not None:
            task.cancel()

    def close(self) -> None:
        """Nobody waits any longer."""
        for task in list(self._running.values()):
            task.cancel()

    async def _answer(self, request: JSONRPCRequest, request_id: int | str) -> None:
        try:
            params = self._params(request)
            answer = await self._callbacks.answer(request.method, params)
        except MCPError as error:
            self._refuse(request_id, error.code, error.message, error.data)
        except Exception as error:  # noqa: BLE001 - whatever a callback raises
            self._fault(error)
            self._refuse(request_id, INTERNAL_ERROR, "Internal error")
        else:
            self._send(JSONRPCResponse(id=request_id, result=answer))

    def _params(self, request: JSONRPCRequest) -> Any:
        method, revision = METHODS.get(request.method), self.revision
        known = method is not None and revision is not None and method.sent_by("server", revision)
        if method is None or not known or not self._callbacks.offers(request.method):
            raise MCPError(METHOD_NOT_FOUND, f"Method not found: {request.method}")
        try:
            return decoder(method.params).decode(params_text(request.params))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise MCPError(INVALID_PARAMS, f"Invalid params for {request.method}", str(error)) from error

    def _refuse(self, request_id: int | str, code: int, message: str, data: Any = msgspec.UNSET) -> None:
        self._send(JSONRPCResponse(id=request_id, error=JSONRPCErrorData(code=code, message=message, data=data)))
