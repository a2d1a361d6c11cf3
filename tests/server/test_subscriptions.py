"""What clients of the handshake era are told without asking: changed lists, updated resources."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from tests.core.wired import note
from tests.server.client import ALL, HANDSHAKE, LATEST, Client, client

from typedmcp import App, Context
from typedmcp.core.connection import Handshake
from typedmcp.server import peers
from typedmcp.server.peers import MAX_SUBSCRIPTIONS

TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"


def idle() -> str:
    return ""


def of_n(n: str) -> str:
    return n


def watched() -> App:
    made = App("a")
    made.tool(idle)
    made.prompt(idle)
    made.resource("test://watched")(idle)
    made.resource("test://café")(idle)
    made.resource("item://{n}")(of_n)
    return made


async def told(peer: Client) -> list[tuple[str, Any]]:
    """What has been sent unasked, every message valid in the revision."""
    await peer.wired.idle()
    return [(message["method"], message.get("params", {}).get("uri")) for message in peer.notifications()]


def peers_of(made: App) -> Any:
    return made._servicer.peers


@pytest.mark.req("H-055", "H-054", "M-064", "M-174")
@pytest.mark.parametrize("revision", ALL)
async def test_what_is_announced_is_declared_and_no_more(revision: str) -> None:
    peer = Client(watched(), revision)
    opened = await peer.open() or await peer.result("server/discover")
    changed = {"listChanged": True}
    assert opened["capabilities"] == {"tools": changed, "prompts": changed, "resources": {**changed, "subscribe": True}}


@pytest.mark.req("H-055")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_changes_of_lists_are_announced(revision: str) -> None:
    made = watched()
    peer, other = await client(made, revision), await client(made, revision)
    assert await told(peer) == []
    made.tool(idle, name="more")
    assert await told(peer) == [(TOOLS, None)]
    made.remove_tool("more")
    made.prompt(idle, name="more")
    made.remove_prompt("more")
    made.resource("test://more")(idle)
    made.resource("more://{n}")(of_n)
    made.remove_resource("test://more")
    assert await told(peer) == [(TOOLS, None), (TOOLS, None), (PROMPTS, None), (RESOURCES, None)], "once a turn"
    assert await told(other) == await told(peer)
    made.remove_tool("nope")
    made.notify_tools_changed()
    made.notify_resources_changed()
    made.notify_prompts_changed()
    assert (await told(peer))[4:] == [(TOOLS, None), (RESOURCES, None), (PROMPTS, None)]


@pytest.mark.req("H-055", "H-008")
async def test_only_clients_that_finished_the_handshake_are_told() -> None:
    made = watched()
    begun, modern, fresh = Client(made, HANDSHAKE[-1]), Client(made, LATEST), Client(made, HANDSHAKE[-1])
    asked = {"protocolVersion": begun.revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    await begun.result("initialize", asked)
    await begun.result("resources/subscribe", {"uri": "test://watched"})
    await modern.call("idle")
    fresh.wired.receive(note("notifications/initialized"))
    await fresh.wired.idle()
    made.tool(idle, name="more")
    made.notify_resource_updated("test://watched")
    for peer in (begun, modern, fresh):
        assert await told(peer) == []
    begun.wired.receive(note("notifications/initialized"))
    await begun.wired.idle()
    made.remove_tool("more")
    made.notify_resource_updated("test://watched")
    assert await told(begun) == [(TOOLS, None), (UPDATED, "test://watched")]


@pytest.mark.req("H-055", "M-064")
async def test_lists_that_were_not_declared_are_not_announced() -> None:
    made = App("a")
    made.tool(idle)
    peer = await client(made, HANDSHAKE[-1])
    made.prompt(idle)
    made.resource("test://x")(idle)
    assert await told(peer) == []
    assert (await peer.result("prompts/list"))["prompts"], "it is there all the same"


@pytest.mark.req("H-054", "M-171")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_updates_go_to_those_who_subscribed(revision: str) -> None:
    made = watched()
    peer, other = await client(made, revision), await client(made, revision)
    for uri in ("test://watched", "test://caf%C3%A9", "item://5"):
        assert await peer.result("resources/subscribe", {"uri": uri}) == {}
    await other.result("resources/subscribe", {"uri": "item://6"})
    made.notify_resource_updated("test://watched")
    made.notify_resource_updated("test://watched")
    made.notify_resource_updated("item://6")
    assert await told(peer) == [(UPDATED, "test://watched")]
    assert await told(other) == [(UPDATED, "item://6")]
    made.notify_resource_updated("test://café")
    made.notify_resource_updated("item://5")
    assert (await told(peer))[1:] == [(UPDATED, "test://caf%C3%A9"), (UPDATED, "item://5")]
    for uri in ("test://watched", "test://watched", "never://x"):
        assert await peer.result("resources/unsubscribe", {"uri": uri}) == {}
    made.notify_resource_updated("test://watched")
    assert len(await told(peer)) == 3


@pytest.mark.req("H-054")
async def test_what_ends_before_it_is_sent_is_not_sent() -> None:
    made = watched()
    peer = await client(made, HANDSHAKE[-1])
    await peer.result("resources/subscribe", {"uri": "test://watched"})
    made.notify_resource_updated("test://watched")
    peers_of(made).unwatch(peer.wired.connection, "test://watched")
    assert await told(peer) == []


@pytest.mark.req("H-054", "M-212", "H-053")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_what_cannot_be_read_cannot_be_watched(revision: str) -> None:
    peer = await client(watched(), revision)
    assert (await peer.error("resources/subscribe", {"uri": "test://nope"}))["code"] == -32002
    assert (await peer.error("resources/subscribe", {}))["code"] == -32602


@pytest.mark.req("H-054", "M-064")
@pytest.mark.parametrize("revision", ALL)
async def test_without_resources_nothing_can_be_watched(revision: str) -> None:
    peer = await client(App("a"), revision)
    for method in ("resources/subscribe", "resources/unsubscribe"):
        assert (await peer.error(method, {"uri": "test://x"}))["code"] == -32601
    if revision == LATEST:
        peer = await client(watched(), revision)
        assert (await peer.error("resources/subscribe", {"uri": "test://watched"}))["code"] == -32601


@pytest.mark.req("M-206")
async def test_subscriptions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_SUBSCRIPTIONS >= 1000
    monkeypatch.setattr(peers, "MAX_SUBSCRIPTIONS", 6)
    peer = await client(watched(), HANDSHAKE[-1])
    for number in range(6):
        await peer.result("resources/subscribe", {"uri": f"item://{number}"})
    error = await peer.error("resources/subscribe", {"uri": "item://more"})
    assert (error["code"], error["data"]) == (-32603, {"limit": 6})
    await peer.result("resources/subscribe", {"uri": "item://5"})
    await peer.result("resources/unsubscribe", {"uri": "item://5"})
    await peer.result("resources/subscribe", {"uri": "item://more"})


@pytest.mark.req("H-055")
@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_tool_may_change_the_lists(kind: str) -> None:
    made = watched()

    async def change() -> None:
        made.tool(idle, name="more")
        made.notify_resource_updated("test://watched")

    def plainly() -> None:
        made.tool(idle, name="more")
        made.notify_resource_updated("test://watched")

    made.tool(change if kind == "async" else plainly, name="change")
    peer = await client(made, HANDSHAKE[-1])
    await peer.result("resources/subscribe", {"uri": "test://watched"})
    await peer.call("change")
    assert await told(peer) == [(TOOLS, None), (UPDATED, "test://watched")]


async def test_a_client_that_is_gone_is_forgotten() -> None:
    made = watched()
    peer = await client(made, HANDSHAKE[-1])
    await peer.result("resources/subscribe", {"uri": "test://watched"})
    assert len(peers_of(made)) == 1
    before = len(peer.wired.frames)
    peer.wired.connection.close()
    made.notify_tools_changed()
    await asyncio.sleep(0)
    assert len(peer.wired.frames) == before
    made.notify_tools_changed()
    del peer
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()
    assert len(peers_of(made)) == 0
    made.notify_tools_changed()


class Session:
    """A session of HTTP: it outlives the peers of its requests."""

    def __init__(self) -> None:
        self.handshake: Handshake | None = None
        self.sent: list[str] = []

    def notify(self, method: str, params: object = None) -> None:
        self.sent.append(method)


class RequestPeer:
    __slots__ = ("principal", "sent", "standalone")

    def __init__(self, session: Session | None) -> None:
        self.principal = None
        self.standalone = session
        self.sent: list[str] = []

    @property
    def handshake(self) -> Handshake | None:
        return None if self.standalone is None else self.standalone.handshake

    @handshake.setter
    def handshake(self, value: Handshake | None) -> None:
        if self.standalone is not None:
            self.standalone.handshake = value

    def notify(self, method: str, params: object = None) -> None:
        self.sent.append(method)


async def test_a_session_is_told_by_its_own_stream() -> None:
    made = watched()
    session = Session()
    ids = iter(range(99))

    async def send(method: str, params: Any = None, *, request: bool = True) -> RequestPeer:
        peer = RequestPeer(session)
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        answer = await made.server.dispatch({**message, "id": next(ids)} if request else message, peer)
        assert not request or (answer is not None and not answer.error)
        return peer

    asked = {"protocolVersion": HANDSHAKE[-1], "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    await send("initialize", asked)
    await send("notifications/initialized", request=False)
    peer = await send("resources/subscribe", {"uri": "test://watched"})
    made.notify_tools_changed()
    made.notify_resource_updated("test://watched")
    await asyncio.sleep(0.01)
    assert session.sent == [TOOLS, UPDATED]
    assert peer.sent == []
    assert len(peers_of(made)) == 1


async def test_a_client_without_session_cannot_be_told() -> None:
    made = watched()
    peer = RequestPeer(None)
    await made.server.dispatch({"jsonrpc": "2.0", "method": "notifications/initialized"}, peer)
    made.notify_tools_changed()
    await asyncio.sleep(0.01)
    assert (peer.sent, len(peers_of(made))) == ([], 0)


async def test_a_loop_that_has_ended_does_no_harm() -> None:
    made = watched()
    kept: list[Client] = []

    async def there() -> None:
        kept.append(await client(made, HANDSHAKE[-1]))
        await kept[0].wired.idle()

    await asyncio.to_thread(asyncio.run, there())
    assert len(peers_of(made)) == 1
    made.tool(idle, name="more")
    assert all(b"list_changed" not in frame for frame in kept[0].wired.frames)


# -- log messages ----------------------------------------------------------------------------------------------------


@pytest.mark.req("H-056")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_level_chosen_while_a_tool_runs_counts_from_then_on(revision: str) -> None:
    made = App("a")
    began, go = asyncio.Event(), asyncio.Event()

    @made.tool
    async def work(context: Context) -> None:
        await context.log("info", "first")
        began.set()
        await go.wait()
        await context.log("info", "second")
        await context.log("error", "third")

    peer = await client(made, revision)
    await peer.result("logging/setLevel", {"level": "debug"})
    peer.wired.receive(peer.message("tools/call", {"name": "work", "arguments": {}}, id="w"))
    await began.wait()
    await peer.result("logging/setLevel", {"level": "error"})
    go.set()
    await peer.wired.idle()
    assert [message["params"]["data"] for message in peer.notifications()] == ["first", "third"]


# -- tasks of 2025-11-25 ---------------------------------------------------------------------------------------------


@pytest.mark.req("H-071", "H-072", "H-073")
async def test_tasks_are_not_declared_and_not_there() -> None:
    made = watched()
    peer = Client(made, "2025-11-25")
    assert "tasks" not in (await peer.open())["capabilities"]
    result = await peer.result("tools/call", {"name": "idle", "arguments": {}, "task": {"ttl": 1000}})
    assert "task" not in result
    assert result["content"]
    task = {"taskId": "t"}
    calls: dict[str, Any] = {"tasks/list": {}, "tasks/get": task, "tasks/result": task, "tasks/cancel": task}
    for method, params in calls.items():
        assert (await peer.error(method, params))["code"] == -32601
