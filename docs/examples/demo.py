"""The main job, end to end: generate the wire, serve, call through the typed client, check every message.

Run by `make demo`.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from typedmcp import ToolError, connect, validate_message
from typedmcp.core.emitter import Emitter
from typedmcp.core.jsonrpc import JSONRPCMessage, encode_message
from typedmcp.transports.stdio import StdioClientTransport

SERVER = Path(__file__).with_name("calculator.py")


class Recorder:
    """A transport around another one that keeps every message, with its sender."""

    def __init__(self, inner: StdioClientTransport) -> None:
        self.inner = inner
        self.messages: list[tuple[str, Any]] = []
        inner.emitter.on("message", lambda message: self._keep("server", message))

    @property
    def emitter(self) -> Emitter:
        return self.inner.emitter

    @property
    def session(self) -> str | None:
        return self.inner.session

    async def start(self) -> None:
        await self.inner.start()

    async def send(self, message: JSONRPCMessage | Sequence[JSONRPCMessage]) -> None:
        for one in [message] if not isinstance(message, Sequence) else message:
            self._keep("client", one)
        await self.inner.send(message)

    async def close(self) -> None:
        await self.inner.close()

    def _keep(self, sender: str, message: JSONRPCMessage) -> None:
        self.messages.append((sender, msgspec.json.decode(encode_message(message))))


async def talk(revision: str) -> list[tuple[str, Any]]:
    """One conversation with a real server process; the messages it took."""
    recorder = Recorder(StdioClientTransport(sys.executable, [str(SERVER)]))
    async with connect(recorder, version=revision) as client:
        server = client.server_info
        print(f"\n{revision}: connected to {server.name if server else 'a server'} on stdio")
        tools = (await client.list_tools()).tools
        print("  tools:", ", ".join(tool.name for tool in tools))
        print("  add(2, 5) =", await client.call("add", {"a": 2, "b": 5}))
        steps: list[float] = []
        value = await client.call("total", {"numbers": [1, 2.5, 4]}, on_progress=lambda done, *_: steps.append(done))
        print(f"  total(1, 2.5, 4) = {value}, with progress {steps}")
        contents = (await client.read_resource("calculator://about")).contents
        print("  calculator://about:", getattr(contents[0], "text", "no text"))
        if revision >= "2025-11-25":
            try:
                await client.call("add", {"a": 2, "c": 5})
            except ToolError as error:
                print("  add(a=2, c=5):", str(error).replace("\n", " "))
    return recorder.messages


def check(revision: str, messages: list[tuple[str, Any]]) -> int:
    """How many messages break the protocol; each violation is printed."""
    methods = {
        (sender, message["id"]): message["method"]
        for sender, message in messages
        if "method" in message and "id" in message
    }
    bad = 0
    for sender, message in messages:
        asker = "client" if sender == "server" else "server"
        method = methods.get((asker, message.get("id"))) if "method" not in message else None
        for violation in validate_message(message, revision, sender, method):
            bad += 1
            print(f"  {violation.pointer}: {violation.message}")
    return bad


def main() -> int:
    began = time.monotonic()
    print("Generating the wire from schema/ ...", flush=True)
    generated = subprocess.run([sys.executable, "-m", "typedmcp_codegen", "generate"], check=False)
    if generated.returncode:
        return generated.returncode
    bad = 0
    for revision in ("2026-07-28", "2025-06-18"):
        messages = asyncio.run(talk(revision))
        found = check(revision, messages)
        print(f"  {len(messages)} messages recorded, {len(messages) - found} as {revision} demands")
        bad += found
    print(f"\nDone in {time.monotonic() - began:.1f} s. What to try next:")
    print("  .venv/bin/typedmcp list docs/examples/calculator.py")
    print("  .venv/bin/typedmcp call docs/examples/calculator.py total 'numbers=[1, 2, 3]'")
    print("  .venv/bin/typedmcp schema 2026-07-28 --definition Tool")
    print("  edit schema/tools.json, then `make generate`, and see what changed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
