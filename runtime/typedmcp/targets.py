"""What a client can be connected to, and the transport each target needs."""

from __future__ import annotations

import shlex
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from typedmcp.client.client import MCPClient
from typedmcp.client.negotiation import DEFAULT_PROBE_TIMEOUT
from typedmcp.core.constants import DEFAULT_MCP_REQUEST_TIMEOUT
from typedmcp.core.errors import UsageError
from typedmcp.core.transport import ClientTransportInterface

if TYPE_CHECKING:
    from typedmcp.client.callbacks import Elicit, ElicitURL, ListRoots, Roots, Sample
    from typedmcp.core.emitter import Listener
    from typedmcp.server.app import App
    from typedmcp.server.server import MCPServer

    Target: TypeAlias = App | MCPServer | ClientTransportInterface | Sequence[str] | str


class Connecting:
    """A client on its way: ``async with`` connects and disconnects it, ``await`` connects it for you to disconnect."""

    def __init__(self, client: MCPClient) -> None:
        self._client = client

    def __await__(self) -> Generator[Any, None, MCPClient]:
        return self._client.__aenter__().__await__()

    async def __aenter__(self) -> MCPClient:
        return await self._client.__aenter__()

    async def __aexit__(self, *exception: object) -> None:
        await self._client.__aexit__(*exception)


def connect(
    target: Target,
    *,
    version: str | None = None,
    timeout: float | None = DEFAULT_MCP_REQUEST_TIMEOUT,
    probe_timeout: float | None = DEFAULT_PROBE_TIMEOUT,
    name: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    elicit: Elicit | None = None,
    elicit_url: ElicitURL | None = None,
    sample: Sample | None = None,
    sample_tools: bool = False,
    roots: Roots | ListRoots | None = None,
    on: Mapping[str, Listener] | None = None,
) -> Connecting:
    """A client for a server, to be entered by ``async with`` or awaited.

    Args:
        target: An :class:`App` or :class:`MCPServer` in this process, a transport, the address of a server
            (``http://...`` or ``ws://...``), or the command that starts one on stdio: a list of words, or one line as a
            shell would split it.
        version: The protocol revision to speak; by default the newest both sides know.
        timeout: Seconds each request may take; None: no limit.
        probe_timeout: Seconds of silence after which a server counts as one of the handshake era.
        name: How the client introduces itself.
        env: The whole environment of a command; by default this process's.
        cwd: The folder a command starts in.
        elicit, elicit_url, sample, sample_tools, roots: What answers the server's questions; see :class:`MCPClient`.
        on: Listeners for the client's events.

    Raises:
        UsageError: there is no way to connect to `target`.
    """
    client = MCPClient(
        transport=transport_for(target, env=env, cwd=cwd),
        name=name,
        timeout=timeout,
        protocol_version=version,
        probe_timeout=probe_timeout,
        elicit=elicit,
        elicit_url=elicit_url,
        sample=sample,
        sample_tools=sample_tools,
        roots=roots,
        on=on,
    )
    return Connecting(client)


def transport_for(
    target: Target, *, env: Mapping[str, str] | None = None, cwd: str | None = None
) -> ClientTransportInterface:
    """The transport to a target of :func:`connect`.

    Raises:
        UsageError: it is none.
    """
    if isinstance(target, str):
        scheme, is_address, _ = target.partition(" ")[0].partition("://")
        if is_address and scheme.lower() in ("http", "https"):
            from typedmcp.transports.http.client import HTTPClientTransport

            return HTTPClientTransport(target)
        if is_address and scheme.lower() in ("ws", "wss"):
            from typedmcp.transports.websocket.client import WebSocketClientTransport

            return WebSocketClientTransport(target)
        if is_address:
            raise UsageError(f"{target!r} is no address to connect to; http, https, ws and wss are known")
        try:
            target = shlex.split(target)
        except ValueError as error:
            raise UsageError(
                f"the command {target!r} cannot be split into words: {error}; give a list of words"
            ) from None
    if isinstance(target, Sequence) and not isinstance(target, (bytes, bytearray, memoryview)):
        return _command([str(word) for word in target], env, cwd)
    server: Any = getattr(target, "server", target)
    if hasattr(server, "dispatch"):
        from typedmcp.transports.memory import serve_memory

        return serve_memory(server).client
    if all(hasattr(target, name) for name in ("emitter", "start", "send", "close")):
        return target  # type: ignore[return-value]
    raise UsageError(f"cannot connect to {type(target).__name__}; give an App, a server, a transport or a command")


def _command(words: list[str], env: Mapping[str, str] | None, cwd: str | None) -> ClientTransportInterface:
    if not words:
        raise UsageError("the command is empty; give the program and its arguments")
    from typedmcp.transports.stdio.client import StdioClientTransport

    return StdioClientTransport(words[0], words[1:], env, cwd=cwd)
