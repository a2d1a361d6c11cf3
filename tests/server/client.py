"""A client by hand: a wired connection to a server at one revision, every answer checked against that revision."""

from __future__ import annotations

import itertools
from typing import Any

from tests.core.wired import Wired

from typedmcp import validate_message
from typedmcp_wire.methods import METHODS
from typedmcp_wire.revisions import HANDSHAKE_REVISIONS, LATEST_PROTOCOL_VERSION, REVISIONS

LATEST = LATEST_PROTOCOL_VERSION
HANDSHAKE = list(HANDSHAKE_REVISIONS)
ALL = list(REVISIONS)
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
INFO_KEY = "io.modelcontextprotocol/clientInfo"
LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
CLIENT_INFO = {"name": "tester", "version": "1"}


def modern_meta(**more: Any) -> dict[str, Any]:
    return {VERSION_KEY: LATEST, CAPABILITIES_KEY: {}, INFO_KEY: CLIENT_INFO, **more}


class Client:
    """Speaks one revision to a server (or to an app's server)."""

    def __init__(self, target: Any, revision: str = LATEST, **options: Any) -> None:
        self.server = getattr(target, "server", target)
        self.revision = revision
        self.wired = Wired(self.server, **options)
        self.ids = itertools.count(1)
        self.modern = revision not in HANDSHAKE_REVISIONS

    async def open(self, **params: Any) -> Any:
        """Shake hands where the revision wants it; the result, if any."""
        if self.modern:
            return None
        asked = {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": CLIENT_INFO, **params}
        result = await self.result("initialize", asked)
        self.wired.receive({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def message(self, method: str, params: Any = None, meta: Any = None, id: Any = None) -> dict[str, Any]:  # noqa: A002
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": next(self.ids) if id is None else id, "method": method}
        if self.modern:
            params = {**(params or {}), "_meta": {**modern_meta(), **(meta or {})}}
        elif meta is not None:
            params = {**(params or {}), "_meta": meta}
        return message if params is None else {**message, "params": params}

    async def ask(self, method: str, params: Any = None, meta: Any = None, id: Any = None) -> Any:  # noqa: A002
        """The response to a request, which must be valid in this revision."""
        message = self.message(method, params, meta, id)
        self.wired.receive(message)
        while True:
            await self.wired.until(len(self.wired.frames))
            for answer in self.wired.sent:
                if "method" not in answer and answer.get("id") == message["id"]:
                    known = method if method in METHODS else None
                    assert (
                        validate_message(answer, self.revision, "server", known if "result" in answer else None) == ()
                    )
                    return answer
            await self.wired.until(len(self.wired.frames) + 1)

    async def result(self, method: str, params: Any = None, meta: Any = None) -> Any:
        answer = await self.ask(method, params, meta)
        assert "error" not in answer, answer
        return answer["result"]

    async def error(self, method: str, params: Any = None, meta: Any = None) -> Any:
        answer = await self.ask(method, params, meta)
        assert "result" not in answer, answer
        return answer["error"]

    async def call(self, name: str, arguments: Any = None, meta: Any = None) -> Any:
        """The result of a tool."""
        params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
        return await self.result("tools/call", params, meta)

    def notifications(self, method: str | None = None) -> list[Any]:
        """What the server sent without being asked, in order."""
        found = [message for message in self.wired.sent if "method" in message]
        assert all(validate_message(message, self.revision, "server") == () for message in found)
        return [message for message in found if method in (None, message["method"])]


async def client(target: Any, revision: str = LATEST, **options: Any) -> Client:
    made = Client(target, revision, **options)
    await made.open()
    return made


def text_of(result: Any) -> str:
    (block,) = result["content"]
    assert block["type"] == "text"
    return str(block["text"])
