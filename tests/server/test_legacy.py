"""The handshake era: what is agreed, what holds before it, and results each revision can carry."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from tests.core.wired import LIMIT, Wired, call, note
from tests.server import features
from tests.server.client import ALL, CLIENT_INFO, HANDSHAKE, LATEST, Client, client, text_of
from tests.server.features import Everything

from typedmcp import App, Context, MCPError, MCPServer, Tool, ToolManager, types, validate

NEWEST = HANDSHAKE[-1]


def bare(**options: Any) -> MCPServer:
    return MCPServer(name="s", version="1", tools=ToolManager(), **options)


def app() -> App:
    made = App("s", "1")

    @made.tool
    async def revision(context: Context) -> str:
        return context.revision

    return made


def serving(result: Any = None) -> MCPServer:
    return MCPServer(name="s", version="1", servicer=Everything(result))


def initialize(version: Any, id: Any = 1, **params: Any) -> dict[str, Any]:  # noqa: A002
    asked = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT_INFO, **params}
    return {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": asked}


# -- the handshake ---------------------------------------------------------------------------------------------------


@pytest.mark.req("H-002", "H-003", "H-007", "M-050")
@pytest.mark.parametrize("make", [bare, app])
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_every_handshake_revision_is_echoed(make: Any, revision: str) -> None:
    peer = Client(make(), revision)
    result = await peer.open()
    assert result["protocolVersion"] == revision
    assert result["serverInfo"] == {"name": "s", "version": "1"}
    assert "tools" in result["capabilities"]
    await peer.wired.idle()
    assert peer.wired.connection.handshake is not None
    assert peer.wired.connection.handshake.initialized


@pytest.mark.req("H-007", "H-011", "A-037")
@pytest.mark.parametrize("make", [bare, app])
@pytest.mark.parametrize("odd", ["2026-07-28", "1999-01-01", "2999-01-01", "", "2025-11-25 ", "v1", "x" * 10_000])
async def test_any_other_version_gets_the_newest_handshake_revision(make: Any, odd: str) -> None:
    peer = Client(make(), NEWEST)
    assert (await peer.open(protocolVersion=odd))["protocolVersion"] == NEWEST
    assert len(await peer.result("tools/list")) >= 1


@pytest.mark.req("H-007", "M-048")
async def test_only_revisions_served_are_agreed_on() -> None:
    server = bare(protocol_versions=("2024-11-05", LATEST))
    assert (await Client(server, "2024-11-05").open(protocolVersion=NEWEST))["protocolVersion"] == "2024-11-05"


@pytest.mark.req("A-038", "H-001")
@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        ({"protocolVersion": 5}, "/params/protocolVersion"),
        ({"protocolVersion": None}, "/params/protocolVersion"),
        ({"capabilities": []}, "/params/capabilities"),
        ({"capabilities": None}, "/params/capabilities"),
        ({"clientInfo": {"name": "x"}}, "/params/clientInfo/version"),
        ({"clientInfo": "x"}, "/params/clientInfo"),
    ],
)
async def test_a_malformed_handshake_is_refused_by_apps_and_read_by_the_bare_server(params: Any, pointer: str) -> None:
    refused = (await Wired(app().server).ask(initialize(NEWEST, **params)))["error"]
    assert refused["code"] == -32602
    assert pointer in [entry["pointer"] for entry in refused["data"]["violations"]]
    assert (await Wired(bare()).ask(initialize(NEWEST, **params)))["result"]["protocolVersion"] == NEWEST


@pytest.mark.req("H-001")
async def test_a_refused_handshake_can_be_tried_again() -> None:
    wired = Wired(app().server)
    assert "error" in await wired.ask(initialize(NEWEST, clientInfo=5))
    assert "result" in await wired.ask(initialize(NEWEST, id=2))


@pytest.mark.req("H-001", "M-050")
@pytest.mark.parametrize("make", [bare, app])
async def test_a_second_handshake_is_refused_and_changes_nothing(make: Any) -> None:  # F030
    peer = await client(make(), "2025-03-26")
    error = (await peer.wired.ask(initialize(NEWEST, id="again")))["error"]
    assert error["code"] == -32600
    handshake = peer.wired.connection.handshake
    assert handshake is not None
    assert (handshake.revision, handshake.client_info.name) == ("2025-03-26", "tester")


@pytest.mark.req("H-004", "H-005", "H-018", "A-039")
@pytest.mark.parametrize("make", [bare, app, serving])
async def test_ping_is_answered_at_any_time(make: Any) -> None:  # F028
    wired = Wired(make() if isinstance(make(), MCPServer) else make().server)
    assert (await wired.ask(call("first", "ping")))["result"] == {}
    await wired.ask(initialize(NEWEST))
    assert (await wired.ask(call("between", "ping")))["result"] == {}
    wired.receive(note("notifications/initialized"))
    assert (await wired.ask(call("after", "ping")))["result"] == {}


@pytest.mark.req("H-001", "H-004", "H-011")
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "resources/list", "no/such", "logging/setLevel"])
@pytest.mark.parametrize("params", [None, {}, {"_meta": {}}])
async def test_a_strict_server_wants_the_handshake_first(method: str, params: Any) -> None:  # F028
    message = {"jsonrpc": "2.0", "id": 1, "method": method} | ({} if params is None else {"params": params})
    error = (await Wired(app().server).ask(message))["error"]
    assert error["code"] == -32600
    assert "initialize" in error["message"]


@pytest.mark.req("A-004")
async def test_the_bare_server_serves_before_the_handshake() -> None:
    assert (await Wired(bare()).ask(call(1, "tools/list")))["result"] == {"tools": []}


@pytest.mark.req("H-003")
async def test_a_client_that_pipelines_is_served() -> None:  # F029
    wired = Wired(app().server)
    wired.receive(initialize(NEWEST), note("notifications/initialized"), call(2, "tools/list"))
    answers = await wired.until(2)
    assert [answer["id"] for answer in answers] == [1, 2]
    assert all("result" in answer for answer in answers)
    wired = Wired(app().server)
    await wired.ask(initialize(NEWEST))
    assert "result" in await wired.ask(call(2, "tools/list")), "the notification need not have come"


@pytest.mark.req("M-019", "M-050", "M-051", "H-009")
async def test_both_eras_on_one_connection() -> None:
    peer = await client(app(), "2024-11-05")
    modern = Client(app(), LATEST)
    modern.wired = peer.wired
    modern.ids = iter(range(100, 200))  # type: ignore[assignment]
    assert text_of(await peer.call("revision")) == "2024-11-05"
    assert text_of(await modern.call("revision")) == LATEST
    assert text_of(await peer.call("revision")) == "2024-11-05"


@pytest.mark.req("H-002", "A-084")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_the_answer_fits_the_revision(revision: str) -> None:
    server = MCPServer(name="s", version="1", title="T", description="D", instructions="Do", servicer=Everything())
    result = await Client(server, revision).open()
    assert result["instructions"] == "Do"
    info = {"name", "version"} | ({"title"} if revision >= "2025-06-18" else set())
    assert set(result["serverInfo"]) == info | ({"description"} if revision >= "2025-11-25" else set())
    capabilities = {"tools", "prompts", "resources", "logging"} | (
        {"completions"} if revision >= "2025-03-26" else set()
    )
    assert set(result["capabilities"]) == capabilities
    assert result["capabilities"]["resources"] == {"subscribe": True}


@pytest.mark.req("H-009", "H-012")
async def test_handlers_see_what_was_agreed() -> None:
    seen: list[Context] = []

    class Spy(Everything):
        async def list_tools(self, params: Any, context: Context) -> types.ListToolsResult:
            seen.append(context)
            return types.ListToolsResult(tools=[])

    peer = Client(MCPServer(name="s", version="1", servicer=Spy()), "2025-06-18", principal="me")
    await peer.open(capabilities={"roots": {"listChanged": True}})
    await peer.result("tools/list", {}, {"progressToken": 0, "com.example/x": 1})
    (context,) = seen
    assert (context.revision, context.method, context.is_modern) == ("2025-06-18", "tools/list", False)
    assert context.client_info == types.Implementation(name="tester", version="1")
    assert context.client_capabilities.roots is not None
    assert (context.progress_token, context.principal) == (0, "me")
    assert context.meta == {"progressToken": 0, "com.example/x": 1}


# -- ids nobody could read -------------------------------------------------------------------------------------------


@pytest.mark.req("H-013", "M-007", "A-020")
@pytest.mark.parametrize("revision", ALL)
async def test_an_unreadable_id_is_null_up_to_2025_06_18(revision: str) -> None:
    peer = await client(app(), revision)
    answer = await peer.wired.ask("{")
    assert answer["error"]["code"] == -32700
    assert ("id" in answer) is (revision <= "2025-06-18")
    text = await peer.server.handle("{", peer.wired.connection)
    assert json.loads(text) == answer


@pytest.mark.req("H-013", "M-007", "A-020")
@pytest.mark.parametrize(
    ("server", "by_text", "on_a_connection"),
    [
        (bare(protocol_versions=("2025-06-18", "2025-03-26")), True, True),
        (bare(protocol_versions=("2025-06-18", "2025-03-26"), strict=True), True, True),
        (bare(), True, False),
        (app().server, False, False),
        (bare(protocol_versions=(LATEST,)), False, False),
        (bare(protocol_versions=(LATEST,), strict=True), False, False),
    ],
    ids=["seed", "strict old", "bare", "app", "modern only", "strict modern only"],
)
async def test_without_a_handshake_the_server_decides_about_the_unreadable_id(
    server: MCPServer, by_text: bool, on_a_connection: bool
) -> None:
    answers = [json.loads(str(await server.handle("{"))), await Wired(server).ask("{")]
    assert [answer["error"]["code"] for answer in answers] == [-32700, -32700]
    assert ["id" in answer for answer in answers] == [by_text, on_a_connection]


# -- methods by revision ---------------------------------------------------------------------------------------------


@pytest.mark.req("H-009", "A-032")
@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen", "tasks/get", "tasks/list"])
async def test_methods_a_revision_lacks_or_nobody_serves_are_not_found(revision: str, method: str) -> None:
    peer = await client(serving(), revision)
    for params in ({}, {"taskId": "t"}):
        assert (await peer.error(method, params))["code"] == -32601


@pytest.mark.req("H-059", "H-054", "H-056")
@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}),
        ("resources/subscribe", {"uri": "docs://a"}),
        ("resources/unsubscribe", {"uri": "docs://a"}),
        ("logging/setLevel", {"level": "info"}),
        ("resources/read", {"uri": "docs://a"}),
        ("resources/templates/list", {}),
    ],
)
async def test_methods_a_servicer_offers(revision: str, method: str, params: Any) -> None:
    assert isinstance(await (await client(serving(), revision)).result(method, params), dict)


@pytest.mark.req("H-056", "M-228")
@pytest.mark.parametrize("level", ["loud", "", 5, None])
async def test_an_unknown_log_level_is_invalid(level: Any) -> None:
    error = await (await client(serving(), NEWEST)).error("logging/setLevel", {"level": level})
    assert error["code"] == -32602


@pytest.mark.req("M-004", "M-025")
@pytest.mark.parametrize("token", [1.5, True, [], {}])
async def test_a_progress_token_of_another_type_is_invalid(token: Any) -> None:
    peer = await client(app(), NEWEST)
    error = await peer.error("tools/call", {"name": "revision", "arguments": {}}, {"progressToken": token})
    assert error["code"] == -32602


def chatty() -> App:
    made = App("s", "1")

    @made.tool
    async def talk(context: Context) -> None:
        for level in ("debug", "info", "error"):
            await context.log(level, level)  # type: ignore[arg-type]

    return made


@pytest.mark.req("H-056", "M-225", "M-064")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_log_messages_follow_the_level_of_the_connection(revision: str) -> None:  # F077
    made = chatty()
    peer, other = await client(made, revision), await client(made, revision)
    await peer.call("talk")
    assert peer.notifications() == [], "nobody asked"
    assert await peer.result("logging/setLevel", {"level": "info"}) == {}
    await peer.call("talk")
    await other.call("talk")
    assert [message["params"]["level"] for message in peer.notifications()] == ["info", "error"]
    assert other.notifications() == []
    assert (await peer.error("logging/setLevel", {"level": "loud"}))["code"] == -32602


@pytest.mark.req("M-225", "M-064")
@pytest.mark.parametrize("revision", ALL)
async def test_logging_is_declared_when_and_only_when_a_function_may_log(revision: str) -> None:
    for made, logs in ((chatty(), True), (App("quiet"), False)):
        made.tool(idle)
        peer = Client(made, revision)
        opened = await peer.open() or await peer.result("server/discover")
        assert ("logging" in opened["capabilities"]) is logs
        if not peer.modern and not logs:
            for params in ({"level": "info"}, {"level": "loud"}, {}):
                assert (await peer.error("logging/setLevel", params))["code"] == -32601


def idle() -> None: ...


# -- results each revision can carry ---------------------------------------------------------------------------------


def since(revision: str, first: str) -> bool:
    return revision >= first


@pytest.mark.req("H-058")
@pytest.mark.parametrize("revision", ALL)
async def test_tools_prompts_and_resources_without_what_the_revision_lacks(revision: str) -> None:
    peer = await client(serving(), revision)
    listed = {
        "tools": (await peer.result("tools/list"))["tools"],
        "prompts": (await peer.result("prompts/list"))["prompts"],
        "resources": (await peer.result("resources/list"))["resources"],
        "templates": (await peer.result("resources/templates/list"))["resourceTemplates"],
    }
    for (entry,) in listed.values():
        assert ("title" in entry) is since(revision, "2025-06-18")
        assert ("icons" in entry) is since(revision, "2025-11-25")
    (tool,) = listed["tools"]
    assert ("annotations" in tool) is since(revision, "2025-03-26")
    assert ("outputSchema" in tool) is since(revision, LATEST), "an output schema of an array came with 2026-07-28"
    assert ("title" in listed["prompts"][0]["arguments"][0]) is since(revision, "2025-06-18")


@pytest.mark.req("H-058")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("where", ["tool", "prompt"])
async def test_content_the_revision_lacks_becomes_text(revision: str, where: str) -> None:
    content = [features.TEXT, features.AUDIO, features.LINK, features.IMAGE, features.EMBEDDED]
    peer = await client(serving(types.CallToolResult(content=content)), revision)
    if where == "tool":
        blocks = (await peer.result("tools/call", {"name": "everything"}))["content"]
    else:
        blocks = [message["content"] for message in (await peer.result("prompts/get", {"name": "p"}))["messages"]]
    kinds = [block["type"] for block in blocks]
    audio = "audio" if since(revision, "2025-03-26") else "text"
    link = "resource_link" if since(revision, "2025-06-18") else "text"
    assert kinds == ["text", audio, link, "image", "resource"]
    assert blocks[0]["text"] == "words"
    if audio == "text":
        assert "audio/wav" in blocks[1]["text"]
    if link == "text":
        assert "docs://a" in blocks[2]["text"]


@pytest.mark.req("H-058", "M-197")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("value", [{"a": 1}, {}, [1], 5, "x", None, True])
async def test_structured_content_is_an_object_until_2026_07_28(revision: str, value: Any) -> None:
    result = types.CallToolResult(content=[types.TextContent(text="shown")], structured_content=value)
    sent = await (await client(serving(result), revision)).result("tools/call", {"name": "everything"})
    carried = since(revision, LATEST) or (since(revision, "2025-06-18") and isinstance(value, dict))
    assert ("structuredContent" in sent) is carried
    if carried:
        assert sent["structuredContent"] == value
    assert text_of(sent) == "shown"
    assert result.structured_content == value, "the handler's object is not changed"


class Lookalike(msgspec.Struct, rename="camel"):
    """A user's type that has a wire type's name and members."""

    name: str
    title: str | None = None
    icons: list[str] | None = None
    output_schema: int = 0


Lookalike.__name__ = "Tool"


@pytest.mark.req("H-058", "M-195")
@pytest.mark.parametrize("revision", [revision for revision in ALL if revision >= "2025-06-18"])
async def test_structured_content_is_never_cut(revision: str) -> None:
    value = Lookalike(name="n", title="t", icons=["i"], output_schema=5)
    result = types.CallToolResult(content=[types.TextContent(text="")], structured_content=value)
    sent = await (await client(serving(result), revision)).result("tools/call", {"name": "everything"})
    assert sent["structuredContent"] == {"name": "n", "title": "t", "icons": ["i"], "outputSchema": 5}


@pytest.mark.req("H-057", "M-200")
@pytest.mark.parametrize("revision", ALL)
async def test_invalid_arguments_are_a_protocol_error_before_2025_11_25(revision: str) -> None:
    peer = await client(app(), revision)
    answer = await peer.ask("tools/call", {"name": "revision", "arguments": {"a/b": 1}})
    if revision < "2025-11-25":
        assert answer["error"]["code"] == -32602
        assert answer["error"]["data"]["violations"]
    else:
        assert answer["result"]["isError"] is True


@pytest.mark.req("H-053", "M-030", "M-210")
@pytest.mark.parametrize("revision", ALL)
async def test_codes_a_handler_chooses_pass(revision: str) -> None:
    class Fails(Everything):
        async def list_tools(self, params: Any, context: Context) -> types.ListToolsResult:
            raise MCPError(-32050, "no", {"why": None})

    peer = await client(MCPServer(name="s", version="1", servicer=Fails()), revision)
    assert await peer.error("tools/list") == {"code": -32050, "message": "no", "data": {"why": None}}


@pytest.mark.req("H-058", "M-011")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_nothing_modern_is_stamped_on_old_results(revision: str) -> None:
    peer = await client(serving(), revision)
    for method in ("tools/list", "prompts/list", "resources/list", "ping"):
        assert not {"resultType", "ttlMs", "cacheScope", "_meta"} & set(await peer.result(method))


# -- progress and cancellation ---------------------------------------------------------------------------------------


@pytest.mark.req("H-052", "M-149", "M-150", "M-151")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("token", [0, "", 7, "7"])
async def test_progress_carries_the_token_as_given_and_grows(revision: str, token: Any) -> None:  # F073, F074
    made = App("s", "1")
    kept: list[Context] = []

    @made.tool
    async def work(context: Context) -> str:
        for progress in (1, 1, 0.5, 2, 2.5):
            await context.report_progress(progress, 3, "m")
        kept.append(context)
        return "done"

    peer = await client(made, revision)
    await peer.call("work", {}, {"progressToken": token})
    await kept[0].report_progress(9)
    sent = [message["params"] for message in peer.notifications()]
    assert [entry["progress"] for entry in sent] == [1, 2, 2.5]
    assert all((type(entry["progressToken"]), entry["progressToken"]) == (type(token), token) for entry in sent)
    assert all(("message" in entry) is (revision >= "2025-03-26") for entry in sent)
    assert [("method" in message) for message in peer.wired.sent][-4:] == [True, True, True, False]
    await peer.call("work")
    assert len(peer.notifications()) == 3, "no token, no progress"


@pytest.mark.req("M-139", "M-151", "H-051")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_nothing_is_sent_for_a_cancelled_request(revision: str, kind: str) -> None:  # F043
    made = App("s", "1")
    entered, left = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    go: Any = None

    if kind == "async":

        @made.tool
        async def work(context: Context) -> str:
            await context.report_progress(1)
            entered.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await context.report_progress(2)
                await context.log("error", "cancelled")
                raise
            finally:
                await context.report_progress(3)
                left.set()
            return ""

    else:
        import threading

        go = threading.Event()

        @made.tool
        def work(context: Context) -> str:
            context.report_progress(1)
            loop.call_soon_threadsafe(entered.set)
            go.wait(LIMIT)
            context.report_progress(2)
            loop.call_soon_threadsafe(left.set)
            return "late"

    peer = await client(made, revision)
    before = len(peer.wired.frames)
    peer.wired.receive(peer.message("tools/call", {"name": "work", "arguments": {}}, {"progressToken": 1}, id="w"))
    await asyncio.wait_for(entered.wait(), LIMIT)
    assert len(await peer.wired.until(before + 1)) == before + 1
    meta = {} if not peer.modern else {"_meta": peer.message("x")["params"]["_meta"]}
    if go is not None:
        # What the thread reports is on its way while the cancellation is taken.
        go.set()
    peer.wired.receive(note("notifications/cancelled", requestId="w", **meta))
    await asyncio.wait_for(left.wait(), LIMIT)
    await peer.wired.idle()
    assert len(peer.wired.frames) <= before + 1 + (go is not None)
    assert all("id" not in message for message in peer.wired.sent[before:])
    if go is None:
        assert len(peer.wired.frames) == before + 1


@pytest.mark.req("A-124", "A-321")
async def test_plain_tools_get_their_arguments_unchecked_in_every_revision() -> None:
    tools = ToolManager([Tool(name="t", parameters={"type": "object", "required": ["x"]}, execute=lambda given: given)])
    for revision in ALL:
        peer = await client(MCPServer(name="s", version="1", tools=tools), revision)
        assert text_of(await peer.call("t", {"y": 1})) == '{"y":1}'
        assert validate({"content": []}, "CallToolResult", "2025-11-25") == ()
