"""Which era and revision: the probe, the handshake, and everything a server may make of them (M5, M6, H1)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.client.helpers import (
    META,
    MODERN,
    NEWEST_HANDSHAKE,
    SEED,
    Events,
    Frame,
    ScriptedServer,
    discover_result,
    initialize_result,
    turns,
)

from typedmcp import MCPClient, MCPServer, ToolManager, connect
from typedmcp.client import negotiation
from typedmcp.core.errors import (
    ConnectionClosed,
    MCPError,
    PeerError,
    RequestTimeout,
    TypedMCPError,
    UsageError,
)

UNSUPPORTED = -32022


def open_(server: ScriptedServer, **options: Any) -> tuple[MCPClient, asyncio.Task[None]]:
    client = MCPClient(transport=server.client, **options)
    return client, asyncio.create_task(client.connect())


async def end(client: MCPClient, server: ScriptedServer) -> None:
    await client.disconnect()
    await server.ended()


# --- a modern server


@pytest.mark.req("M-039", "M-041", "M-054", "M-062", "M-065")
async def test_the_probe_goes_first_and_is_answered() -> None:
    server = ScriptedServer()
    client, opening = open_(server)
    frame = await server.frame("server/discover")
    assert frame == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "server/discover",
        "params": {
            "_meta": {
                META + "protocolVersion": MODERN,
                META + "clientCapabilities": {},
                META + "clientInfo": {"name": "taverna", "version": "1.0.0"},
            }
        },
    }
    server.answer(frame, discover_result(instructions="hi"))
    await opening
    assert client.protocol_version == MODERN
    assert client.instructions == "hi"
    assert client.server_info is not None
    assert client.server_info.name == "scripted"
    await server.silence()
    await end(client, server)


@pytest.mark.req("M-044")
@pytest.mark.parametrize("told", [None, 5, {}, {"name": 1, "version": "x"}])
async def test_an_identity_that_is_none_matters_to_nobody(told: object) -> None:
    server = ScriptedServer()
    client, opening = open_(server)
    await server.reply("server/discover", discover_result(_meta={META + "serverInfo": told}))
    await opening
    assert client.server_info is None
    await end(client, server)


@pytest.mark.parametrize("versions", [(MODERN, SEED), (SEED, MODERN), ("2099-01-01", MODERN, "2024-11-05")])
async def test_the_newest_common_modern_revision_is_spoken(versions: tuple[str, ...]) -> None:
    server = ScriptedServer()
    client, opening = open_(server)
    await server.reply("server/discover", discover_result(*versions))
    await opening
    assert client.protocol_version == MODERN
    await end(client, server)


@pytest.mark.req("M-049", "M-056")
async def test_minus_32022_leads_to_a_listed_modern_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Today there is one modern revision; a client that knows a newer one retries in the one listed, and only there."""
    monkeypatch.setattr(negotiation, "MODERN_REVISIONS", (MODERN, "2027-01-01"))
    monkeypatch.setattr(negotiation, "LATEST_PROTOCOL_VERSION", "2027-01-01")
    server = ScriptedServer()
    client, opening = open_(server)
    first = await server.frame("server/discover")
    assert first["params"]["_meta"][META + "protocolVersion"] == "2027-01-01"
    server.refuse(first, UNSUPPORTED, data={"supported": [SEED, MODERN], "requested": "2027-01-01"})
    second = await server.frame("server/discover")
    assert second["params"]["_meta"][META + "protocolVersion"] == MODERN
    assert second["id"] != first["id"]
    server.answer(second, discover_result())
    await opening
    assert client.protocol_version == MODERN
    await end(client, server)


@pytest.mark.req("M-056")
@pytest.mark.parametrize("answer", ["refuse", "empty", "silence"])
async def test_a_server_known_to_be_modern_never_sees_initialize(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    monkeypatch.setattr(negotiation, "MODERN_REVISIONS", (MODERN, "2027-01-01"))
    monkeypatch.setattr(negotiation, "LATEST_PROTOCOL_VERSION", "2027-01-01")
    server = ScriptedServer()
    client, opening = open_(server, probe_timeout=0.05)
    server.refuse(await server.frame("server/discover"), UNSUPPORTED, data={"supported": [MODERN]})
    second = await server.frame("server/discover")
    if answer == "refuse":
        server.refuse(second, -32601)
    elif answer == "empty":
        server.answer(second, {})
    with pytest.raises((PeerError, RequestTimeout)):
        await opening
    assert not client.connected
    await server.ended()


@pytest.mark.req("M-056")
async def test_minus_32022_with_only_handshake_revisions_leads_to_the_handshake() -> None:
    server = ScriptedServer()
    client, opening = open_(server)
    server.refuse(await server.frame("server/discover"), UNSUPPORTED, data={"supported": [SEED, "2025-03-26"]})
    frame = await server.frame("initialize")
    assert frame["params"]["protocolVersion"] == NEWEST_HANDSHAKE
    server.answer(frame, initialize_result(SEED))
    await server.frame("notifications/initialized")
    await opening
    assert client.protocol_version == SEED
    await end(client, server)


@pytest.mark.req("M-049", "M-056")
@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"supported": ["2099-01-01", "2098-01-01"]}, "2099-01-01, 2098-01-01"),
        ({"supported": []}, "none it names"),
        ({"supported": "2025-06-18"}, "none it names"),
        ({"supported": [5, None]}, "none it names"),
        ({}, "none it names"),
        (None, "none it names"),
        ("x", "none it names"),
    ],
)
async def test_minus_32022_with_nothing_common_is_an_error(data: object, told: str) -> None:
    server, events = ScriptedServer(), Events()
    client, opening = open_(server, on=events.on)
    server.refuse(await server.frame("server/discover"), UNSUPPORTED, data=data)
    with pytest.raises(PeerError, match=f"no common revision: the server supports {told}"):
        await opening
    await server.ended()
    assert not client.connected
    assert events.names() == []


@pytest.mark.req("M-049")
async def test_minus_32022_for_a_revision_the_same_error_lists_is_an_error() -> None:
    server = ScriptedServer()
    _, opening = open_(server)
    server.refuse(await server.frame("server/discover"), UNSUPPORTED, data={"supported": [MODERN]})
    with pytest.raises(PeerError, match="-32022"):
        await opening
    await server.ended()


@pytest.mark.req("M-056")
@pytest.mark.parametrize("code", [-32020, -32021])
async def test_other_modern_errors_never_lead_to_initialize(code: int) -> None:
    server = ScriptedServer()
    _, opening = open_(server)
    server.refuse(await server.frame("server/discover"), code, "refused")
    with pytest.raises(MCPError, match=f"MCP error {code}: refused"):
        await opening
    await server.ended()


async def test_a_discovery_without_a_common_revision() -> None:
    """Handshake revisions listed: the handshake.  Nothing known: an error, since the server is a modern one."""
    server = ScriptedServer()
    client, opening = open_(server)
    await server.reply("server/discover", discover_result(SEED, "2099-01-01"))
    await server.shake_hands(SEED)
    await opening
    await end(client, server)
    server = ScriptedServer()
    _, opening = open_(server)
    await server.reply("server/discover", discover_result("2099-01-01"))
    with pytest.raises(PeerError, match="no common revision: the server supports 2099-01-01"):
        await opening
    await server.ended()


# --- an older server


@pytest.mark.req("M-055", "M-058", "H-006")
@pytest.mark.parametrize("code", [-32602, 0, -32601, -32600, -32603, -32000, -32002, 1, 404])
async def test_any_other_error_means_an_older_server(code: int) -> None:
    """F031: no code is special."""
    server = ScriptedServer()
    client, opening = open_(server)
    server.refuse(await server.frame("server/discover"), code, data={"supported": [MODERN]})
    asked = await server.shake_hands(SEED)
    assert asked["id"] == 2
    assert asked["params"]["protocolVersion"] == NEWEST_HANDSHAKE
    await opening
    assert client.protocol_version == SEED
    await end(client, server)


@pytest.mark.req("M-055")
@pytest.mark.parametrize(
    "result",
    [
        {},
        {"supportedVersions": [MODERN]},
        {**discover_result(), "supportedVersions": MODERN},
        {**discover_result(), "supportedVersions": [1]},
        {**discover_result(), "resultType": "surprise"},
        "ok",
        None,
        [],
    ],
)
async def test_a_result_of_no_use_means_an_older_server(result: object) -> None:
    """F032: a gateway makes an empty or odd success of the unknown method."""
    server = ScriptedServer()
    client, opening = open_(server)
    await server.reply("server/discover", result)
    await server.shake_hands(SEED)
    await opening
    await end(client, server)


@pytest.mark.req("M-055")
async def test_an_unreadable_answer_means_an_older_server() -> None:
    server = ScriptedServer()
    client, opening = open_(server)
    await server.frame("server/discover")
    server.send(b'{"jsonrpc":"2.0","id":1,"result":NaN}')
    await server.shake_hands(SEED)
    await opening
    await end(client, server)


@pytest.mark.req("M-055", "M-144", "H-001", "H-004", "H-049")
async def test_silence_means_an_older_server_and_its_late_answer_does_no_harm() -> None:
    """F031: only `initialize` follows the probe, no cancellation either, which some old servers would not take."""
    server, events = ScriptedServer(), Events()
    client, opening = open_(server, probe_timeout=0.02, on=events.on)
    probe = await server.frame("server/discover")
    frame = await server.frame("initialize")
    await server.silence()
    server.answer(probe, discover_result())
    server.answer(frame, initialize_result(SEED))
    await server.frame("notifications/initialized")
    await opening
    assert client.protocol_version == SEED
    assert [message.id for message in events.of("notification")] == [probe["id"]]
    await end(client, server)


@pytest.mark.req("M-055")
async def test_a_late_refusal_of_the_probe_does_no_harm() -> None:
    server = ScriptedServer()
    client, opening = open_(server, probe_timeout=0.02)
    probe = await server.frame("server/discover")
    await server.shake_hands(SEED)
    await opening
    server.refuse(probe, UNSUPPORTED, data={"supported": []})
    await turns()
    assert client.connected
    await end(client, server)


@pytest.mark.req("A-147", "M-146")
async def test_the_probe_is_no_longer_than_a_request_may_take() -> None:
    """F050: no hidden default beside the timeout that was asked for."""
    server = ScriptedServer()
    client, opening = open_(server, timeout=0.02)
    await server.frame("server/discover")
    await server.frame("initialize")
    with pytest.raises(RequestTimeout, match="initialize timed out"):
        await opening
    await server.ended()
    assert not client.connected


async def test_without_limits_the_probe_waits() -> None:
    server = ScriptedServer()
    client, opening = open_(server, timeout=None, probe_timeout=None)
    frame = await server.frame("server/discover")
    await asyncio.sleep(0.05)
    server.answer(frame, discover_result())
    await opening
    await end(client, server)


@pytest.mark.req("M-055")
async def test_a_lost_connection_is_no_verdict_about_the_era() -> None:
    """F032: and the error is the loss itself (F048), not something made of it later."""
    server = ScriptedServer()
    client, opening = open_(server)
    await server.frame("server/discover")
    await server.close()
    with pytest.raises(ConnectionClosed, match="server/discover"):
        await opening
    assert not client.connected


@pytest.mark.parametrize("revision", [MODERN, SEED])
async def test_a_server_that_answers_and_leaves_gives_an_error(revision: str) -> None:
    """Never a client that counts as connected to nobody."""
    server, events = ScriptedServer(), Events()
    client, opening = open_(server, protocol_version=revision, on=events.on)
    frame = await server.frame()
    server.answer(frame, discover_result() if revision == MODERN else initialize_result())
    await server.close()
    with pytest.raises(ConnectionClosed):
        await opening
    assert not client.connected
    assert events.names() == []


# --- the handshake's answer


@pytest.mark.req("H-008", "H-011")
@pytest.mark.parametrize("revision", ["2099-01-01", "", MODERN, "2024-10-07"])
async def test_an_unknown_revision_ends_the_connection(revision: str) -> None:
    server = ScriptedServer()
    client, opening = open_(server)
    server.refuse(await server.frame("server/discover"), -32601)
    await server.reply("initialize", initialize_result(revision))
    with pytest.raises(PeerError, match=f"wants revision '{revision}'; this client speaks 2024-11-05"):
        await opening
    await server.ended()
    assert not client.connected


@pytest.mark.req("H-009")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", SEED, NEWEST_HANDSHAKE])
async def test_the_servers_choice_among_known_revisions_is_kept(revision: str) -> None:
    server = ScriptedServer()
    client, opening = open_(server)
    server.refuse(await server.frame("server/discover"), -32601)
    await server.shake_hands(revision)
    await opening
    assert client.protocol_version == revision
    call = asyncio.create_task(client.ping())
    frame = await server.frame("ping")
    assert "_meta" not in frame.get("params", {})
    server.answer(frame, {})
    await call
    await end(client, server)


@pytest.mark.req("H-011")
async def test_a_refused_handshake_is_raised() -> None:
    server = ScriptedServer()
    client, opening = open_(server, protocol_version=SEED)
    server.refuse(await server.frame("initialize"), -32602, "Unsupported protocol version", {"supported": ["x"]})
    with pytest.raises(MCPError, match="Unsupported protocol version"):
        await opening
    await server.ended()
    assert not client.connected


@pytest.mark.req("H-011", "H-049")
async def test_a_handshake_without_an_answer_times_out_and_is_not_cancelled() -> None:
    server = ScriptedServer()
    _, opening = open_(server, protocol_version=SEED, timeout=0.02)
    await server.frame("initialize")
    with pytest.raises(RequestTimeout, match="initialize"):
        await opening
    await server.ended()


@pytest.mark.req("H-049")
async def test_a_connect_given_up_does_not_cancel_initialize() -> None:
    server = ScriptedServer()
    _, opening = open_(server, protocol_version=SEED)
    await server.frame("initialize")
    opening.cancel()
    await server.ended()


# --- pinned revisions


async def test_a_pinned_handshake_revision_skips_the_probe() -> None:
    server = ScriptedServer()
    client, opening = open_(server, protocol_version="2025-03-26")
    asked = await server.shake_hands("2025-03-26")
    assert asked["id"] == 1
    assert asked["params"]["protocolVersion"] == "2025-03-26"
    await opening
    await end(client, server)


async def test_a_pinned_handshake_revision_is_the_only_one() -> None:
    server = ScriptedServer()
    _, opening = open_(server, protocol_version=SEED)
    await server.reply("initialize", initialize_result(NEWEST_HANDSHAKE))
    with pytest.raises(PeerError, match=f"{SEED} was asked for and the server answered {NEWEST_HANDSHAKE}"):
        await opening
    await server.ended()


def refuse(code: int, data: object = None) -> Any:
    return lambda server, frame: server.refuse(frame, code, data=data)


def answer(result: Frame) -> Any:
    return lambda server, frame: server.answer(frame, result)


@pytest.mark.req("M-057")
@pytest.mark.parametrize(
    "react",
    [
        refuse(-32601),
        refuse(UNSUPPORTED, {"supported": [SEED]}),
        refuse(UNSUPPORTED, {"supported": ["2099-01-01"]}),
        answer({}),
        answer(discover_result(SEED)),
        lambda *_: None,
    ],
    ids=["old", "handshake listed", "nothing common", "empty", "only handshake", "silence"],
)
async def test_a_pinned_modern_revision_probes_and_fails_cleanly(react: Any) -> None:
    server = ScriptedServer()
    client, opening = open_(server, protocol_version=MODERN, timeout=0.05)
    react(server, await server.frame("server/discover"))
    with pytest.raises(PeerError) as caught:
        await opening
    assert type(caught.value).__module__ == "typedmcp.core.errors"
    assert MODERN in str(caught.value) or "2099-01-01" in str(caught.value)
    await server.ended()
    assert not client.connected


async def test_a_pinned_modern_revision_is_not_swapped_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(negotiation, "REVISIONS", (SEED, MODERN, "2027-01-01"))
    monkeypatch.setattr(negotiation, "MODERN_REVISIONS", (MODERN, "2027-01-01"))
    server = ScriptedServer()
    _, opening = open_(server, protocol_version="2027-01-01")
    server.refuse(await server.frame("server/discover"), UNSUPPORTED, data={"supported": [MODERN]})
    with pytest.raises(PeerError, match=MODERN):
        await opening
    await server.ended()


async def test_an_unknown_pin_names_the_known_revisions() -> None:
    server = ScriptedServer()
    _, opening = open_(server, protocol_version="2025-06-17")
    with pytest.raises(UsageError, match=r"'2025-06-17' is no revision; known are 2024-11-05, .*2026-07-28"):
        await opening
    await server.ended()


# --- real servers

SERVED: list[tuple[tuple[str, ...], str]] = [
    ((MODERN,), MODERN),
    ((MODERN, SEED), MODERN),
    ((SEED, "2025-03-26"), SEED),
    (("2024-11-05",), "2024-11-05"),
]


@pytest.mark.req("M-048", "M-050", "M-051", "H-007")
@pytest.mark.parametrize(("served", "spoken"), SERVED)
async def test_real_servers_of_every_kind(served: tuple[str, ...], spoken: str) -> None:
    server = MCPServer(name="s", version="1", tools=ToolManager(), protocol_versions=served)
    async with connect(server) as client:
        assert client.protocol_version == spoken
        assert (await client.list_tools()).tools == []
    for pin in ("2025-11-25", MODERN):
        if pin not in served:
            with pytest.raises(PeerError) as caught:
                async with connect(server, version=pin):
                    pytest.fail("not reached")
            assert isinstance(caught.value, TypedMCPError)


@pytest.mark.req("M-052")
async def test_the_verdict_is_kept_while_connected() -> None:
    """One probe a connection, not one a request."""
    server = ScriptedServer()
    client, opening = open_(server)
    await server.discovered()
    await opening
    for _ in range(3):
        call = asyncio.create_task(client.list_tools())
        await server.reply("tools/list", {"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"})
        await call
    await end(client, server)
