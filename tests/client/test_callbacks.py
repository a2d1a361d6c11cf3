"""Questions of servers, answered by a client's functions: in both eras, the same functions and the same answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.client.helpers import MODERN, NEWEST_HANDSHAKE, Frame, ScriptedServer, talking

from typedmcp import App, Context, MCPClient, connect, types
from typedmcp.core.errors import InvalidResult, MCPError, ToolError, UsageError

ERAS = [MODERN, NEWEST_HANDSHAKE]


@dataclass
class Person:
    name: str
    age: int = 30


def asking() -> App:
    app = App("asking", "1")

    @app.tool
    async def greet(context: Context) -> str:
        answer = await context.elicit("Who are you?", Person)
        return f"{answer.content.name}, {answer.content.age}" if answer.content else answer.action

    @app.tool
    async def visit(context: Context) -> str:
        return (await context.elicit_url("Sign in", "https://example.com/sign-in")).action

    @app.tool
    async def ask_model(context: Context, with_tools: bool = False) -> str:
        message = types.SamplingMessage(role="user", content=types.TextContent(text="Capital of France?"))
        tools = [types.Tool(name="map", input_schema={"type": "object"})] if with_tools else None
        found = await context.sample([message], max_tokens=10, tools=tools)
        return getattr(found.content, "text", "")

    @app.tool
    async def folders(context: Context) -> list[str]:
        return [root.uri for root in await context.list_roots()]

    @app.tool
    async def all_at_once(context: Context) -> str:
        message = types.SamplingMessage(role="user", content=types.TextContent(text="Capital?"))
        person, found, roots = await asyncio.gather(
            context.elicit("Who?", Person), context.sample([message], max_tokens=10), context.list_roots()
        )
        assert person.content is not None
        return f"{person.content.name} {getattr(found.content, 'text', '')} {len(roots)}"

    @app.tool
    async def twice(context: Context) -> str:
        first = await context.elicit("First?", Person)
        second = await context.elicit("Second?", Person)
        assert first.content is not None
        assert second.content is not None
        return first.content.name + second.content.name

    return app


async def paris(params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    return types.CreateMessageResult(role="assistant", content=types.TextContent(text="Paris"), model="atlas")


@pytest.mark.req("M-164", "M-166", "M-233", "H-012", "H-035")
@pytest.mark.parametrize("version", ERAS)
async def test_a_form_is_answered(version: str) -> None:
    seen: list[types.ElicitRequestFormParams] = []

    async def elicit(params: types.ElicitRequestFormParams) -> Mapping[str, Any]:
        seen.append(params)
        return {"name": "Ann", "age": 41}

    async with connect(asking(), version=version, elicit=elicit) as client:
        assert await client.call("greet") == "Ann, 41"
    assert [params.message for params in seen] == ["Who are you?"]
    assert set(seen[0].requested_schema.properties) == {"name", "age"}


@pytest.mark.req("M-239")
@pytest.mark.parametrize("version", ERAS)
async def test_defaults_of_the_form_fill_what_is_left_out(version: str) -> None:
    async with connect(asking(), version=version, elicit=lambda params: {"name": "Ann"}) as client:
        assert await client.call("greet") == "Ann, 30"


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("answer", "action"),
    [
        (None, "decline"),
        (types.ElicitResult(action="decline"), "decline"),
        (types.ElicitResult(action="cancel"), "cancel"),
        (types.ElicitResult(action="accept", content={"name": "Bo"}), "Bo, 30"),
    ],
)
async def test_a_form_can_be_declined(version: str, answer: Any, action: str) -> None:
    async with connect(asking(), version=version, elicit=lambda params: answer) as client:
        assert await client.call("greet") == action


@pytest.mark.parametrize("version", ERAS)
async def test_a_plain_function_runs_in_a_thread(version: str) -> None:
    """It may wait for a person, as input() does, while the client goes on."""
    typed, asked = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def elicit(params: types.ElicitRequestFormParams) -> Mapping[str, Any]:
        loop.call_soon_threadsafe(asked.set)
        assert typed.wait(10)
        return {"name": "Ann"}

    async with connect(asking(), version=version, elicit=elicit) as client:
        call = asyncio.create_task(client.call("greet"))
        await asked.wait()
        assert (await client.list_tools()).tools
        typed.set()
        assert await call == "Ann, 30"


@pytest.mark.req("M-240")
async def test_an_answer_that_does_not_fit_is_never_sent() -> None:
    async with connect(asking(), version=MODERN, elicit=lambda params: {"name": 7}) as client:
        with pytest.raises(UsageError, match=r"does not fit the form.*\$\.name"):
            await client.call("greet")
        assert (await client.list_tools()).tools


@pytest.mark.req("M-240")
async def test_an_answer_that_does_not_fit_is_an_internal_error_to_the_server_and_an_event_here() -> None:
    errors: list[BaseException] = []
    options: Any = {"elicit": lambda params: {"name": 7}, "on": {"error": errors.append}}
    async with connect(asking(), version=NEWEST_HANDSHAKE, **options) as client:
        with pytest.raises((ToolError, MCPError)):
            await client.call("greet")
    assert [type(error) for error in errors] == [UsageError]
    assert "$.name" in str(errors[0])


@pytest.mark.req("M-234")
@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(("agrees", "action"), [(True, "accept"), (False, "decline")])
async def test_an_address_is_put_before_the_user(version: str, agrees: bool, action: str) -> None:
    seen: list[str] = []

    def visit(params: types.ElicitRequestURLParams) -> bool:
        seen.append(params.url)
        return agrees

    async with connect(asking(), version=version, elicit_url=visit) as client:
        assert await client.call("visit") == action
        with pytest.raises((ToolError, MCPError)):  # a form was not declared, and the server knows
            await client.call("greet")
    assert seen == ["https://example.com/sign-in"]


@pytest.mark.req("M-252")
@pytest.mark.parametrize("version", ERAS)
async def test_a_model_is_sampled(version: str) -> None:
    async with connect(asking(), version=version, sample=paris) as client:
        assert await client.call("ask_model") == "Paris"
        with pytest.raises((ToolError, MCPError)):
            await client.call("ask_model", {"with_tools": True})
    async with connect(asking(), version=version, sample=paris, sample_tools=True) as client:
        assert await client.call("ask_model", {"with_tools": True}) == "Paris"


@pytest.mark.req("M-262", "M-263")
@pytest.mark.parametrize("version", ERAS)
async def test_roots_are_folders_or_uris(version: str, tmp_path: Path) -> None:
    roots: list[Any] = [tmp_path, str(tmp_path), "file:///srv/data", types.Root(uri="file:///x", name="x")]
    async with connect(asking(), version=version, roots=roots) as client:
        uri = tmp_path.as_uri()
        assert await client.call("folders") == [uri, uri, "file:///srv/data", "file:///x"]
    with pytest.raises(UsageError, match="file://"):
        MCPClient(transport=ScriptedServer().client, roots=["https://example.com"])


@pytest.mark.req("H-066")
async def test_roots_that_change_are_announced() -> None:
    found = ["file:///a"]
    async with talking(NEWEST_HANDSHAKE, roots=lambda: found) as (client, server):
        await client.roots_changed()
        assert await server.frame("notifications/roots/list_changed")
        server.send({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        assert (await server.frame())["result"] == {"roots": [{"uri": "file:///a"}]}
    fixed = MCPClient(transport=ScriptedServer().client, roots=["file:///a"])
    with pytest.raises(UsageError, match="function"):
        await fixed.roots_changed()


@pytest.mark.req("M-164", "M-166")
@pytest.mark.parametrize("version", ERAS)
async def test_several_questions_and_several_rounds(version: str) -> None:
    names = iter("ABC")
    options: Any = {"elicit": lambda params: {"name": next(names)}, "sample": paris, "roots": ["file:///a"]}
    async with connect(asking(), version=version, **options) as client:
        assert await client.call("all_at_once") == "A Paris 1"
        assert await client.call("twice") == "BC"


@pytest.mark.parametrize("version", ERAS)
async def test_nothing_is_declared_without_a_function(version: str) -> None:
    async with connect(asking(), version=version) as client:
        for name in ("greet", "visit", "ask_model", "folders"):
            with pytest.raises((ToolError, MCPError)):
                await client.call(name)


def test_tools_need_a_function_that_takes_them() -> None:
    with pytest.raises(UsageError, match="sample_tools needs sample"):
        MCPClient(transport=ScriptedServer().client, sample_tools=True)


# -- a server that does as it likes ------------------------------------------------------------------------------------


@pytest.mark.req("H-060", "M-235")
@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("elicitation/create", {"mode": "url", "message": "m", "url": "https://a", "elicitationId": "1"}, -32602),
        ("elicitation/create", {"message": "m"}, -32602),
        ("sampling/createMessage", {"messages": [], "maxTokens": 1, "tools": []}, -32602),
        ("roots/list", {}, -32601),
        ("tools/list", {}, -32601),
        ("no/such", {}, -32601),
    ],
)
async def test_what_was_not_declared_is_refused(method: str, params: Frame, code: int) -> None:
    async with talking(NEWEST_HANDSHAKE, elicit=lambda params: None, sample=paris) as (_, server):
        server.send({"jsonrpc": "2.0", "id": "q", "method": method, "params": params})
        answer = await server.frame()
        assert (answer["id"], answer["error"]["code"]) == ("q", code)


async def test_a_question_can_be_withdrawn() -> None:
    asked, stopped = asyncio.Event(), asyncio.Event()

    async def elicit(params: types.ElicitRequestFormParams) -> None:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    form = {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}
    async with talking(NEWEST_HANDSHAKE, elicit=elicit) as (_, server):
        server.send({"jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": form})
        await asked.wait()
        server.send({"jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": form})
        assert (await server.frame())["error"]["code"] == -32600
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
        await stopped.wait()
        server.send({"jsonrpc": "2.0", "id": 6, "method": "ping"})
        assert await server.frame() == {"jsonrpc": "2.0", "id": 6, "result": {}}


async def test_the_end_of_the_connection_ends_the_questions() -> None:
    asked, stopped = asyncio.Event(), asyncio.Event()

    async def elicit(params: types.ElicitRequestFormParams) -> None:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    form = {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}
    async with talking(NEWEST_HANDSHAKE, elicit=elicit) as (_, server):
        server.send({"jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": form})
        await asked.wait()
    await asyncio.wait_for(stopped.wait(), 5)


FORM = {
    "method": "elicitation/create",
    "params": {"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}},
}


def wanted(requests: Frame | None, state: str | None) -> Frame:
    found: Frame = {"resultType": "input_required"}
    if requests is not None:
        found["inputRequests"] = requests
    if state is not None:
        found["requestState"] = state
    return found


@pytest.mark.req("M-165", "M-166", "M-167")
async def test_the_state_goes_back_untouched_and_only_when_there_was_one() -> None:
    async with talking(MODERN, elicit=lambda params: {}) as (client, server):
        call = asyncio.create_task(client.call_tool("t", {"a": 1}))
        states: list[str | None] = ["\u0000 opaque =", None, ""]
        ids: list[Any] = []
        for number, state in enumerate(states):
            request = await server.frame("tools/call")
            ids.append(request["id"])
            assert ("inputResponses" in request["params"]) is (number > 0)
            server.send({"jsonrpc": "2.0", "id": request["id"], "result": wanted({"k": FORM}, state)})
        request = await server.frame("tools/call")
        assert len({*ids, request["id"]}) == 4
        assert request["params"]["requestState"] == ""
        assert request["params"]["inputResponses"] == {"k": {"action": "accept", "content": {}}}
        assert request["params"]["arguments"] == {"a": 1}
        assert "io.modelcontextprotocol/protocolVersion" in request["params"]["_meta"]
        server.send({"jsonrpc": "2.0", "id": request["id"], "result": {"resultType": "complete", "content": []}})
        assert (await call).content == []


@pytest.mark.req("M-164")
async def test_a_state_alone_is_tried_again() -> None:
    async with talking(MODERN) as (client, server):
        call = asyncio.create_task(client.call_tool("t"))
        request = await server.frame("tools/call")
        server.send({"jsonrpc": "2.0", "id": request["id"], "result": wanted(None, "later")})
        request = await server.frame("tools/call")
        assert request["params"]["requestState"] == "later"
        assert "inputResponses" not in request["params"]
        server.send({"jsonrpc": "2.0", "id": request["id"], "result": {"resultType": "complete", "content": []}})
        await call


@pytest.mark.parametrize(
    ("requests", "state", "told"),
    [
        (None, None, "asks for nothing"),
        ({}, None, "asks for nothing"),
        ({"k": {"method": "roots/list"}}, "s", "roots/list"),
        ({"k": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}}, None, "sampling"),
    ],
)
async def test_a_server_that_asks_amiss_fails_its_call_alone(requests: Any, state: Any, told: str) -> None:
    async with talking(MODERN, elicit=lambda params: {}) as (client, server):
        call = asyncio.create_task(client.call_tool("t"))
        request = await server.frame("tools/call")
        server.send({"jsonrpc": "2.0", "id": request["id"], "result": wanted(requests, state)})
        with pytest.raises(InvalidResult, match=told):
            await call
        assert client.connected


async def test_a_server_that_asks_for_ever_is_given_up() -> None:
    async with talking(MODERN, elicit=lambda params: {}) as (client, server):
        call = asyncio.create_task(client.call_tool("t"))
        for _ in range(17):
            request = await server.frame("tools/call")
            server.send({"jsonrpc": "2.0", "id": request["id"], "result": wanted({"k": FORM}, None)})
        with pytest.raises(InvalidResult, match="again and again"):
            await call


async def test_a_fault_of_a_function_is_the_callers() -> None:
    def elicit(params: types.ElicitRequestFormParams) -> None:
        raise LookupError("no terminal")

    async with connect(asking(), version=MODERN, elicit=elicit) as client:
        with pytest.raises(LookupError, match="no terminal"):
            await client.call("greet")
