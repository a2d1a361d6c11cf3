"""Questions to clients of the handshake era: what is sent, what comes back, what is refused and never sent."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from msgspec import Meta, Struct
from tests.core.wired import LIMIT
from tests.server.client import CAPABILITIES_KEY, HANDSHAKE, LATEST, Client, text_of

from typedmcp import App, Context, MCPError, types, validate_message
from typedmcp.core.errors import ConnectionClosed, InvalidResult, RequestTimeout, UsageError
from typedmcp.server import Elicited, MissingCapability
from typedmcp.server.forms import form_of

NEWEST = HANDSHAKE[-1]
ELICITING = [revision for revision in HANDSHAKE if revision >= "2025-06-18"]
EVERYTHING = {"sampling": {"tools": {}, "context": {}}, "elicitation": {"form": {}, "url": {}}, "roots": {}}
Ask = Callable[[Context], Awaitable[Any]]


class Asking(Client):
    """A client of a server whose one tool asks what the test says; `outcome` is what the tool got or was raised."""

    def __init__(self, ask: Ask, revision: str = NEWEST, capabilities: Any = EVERYTHING) -> None:
        made = App("a")
        self.outcome: Any = None
        self.capabilities = capabilities

        @made.tool
        async def tool(context: Context) -> str:
            try:
                self.outcome = await ask(context)
            except BaseException as error:
                self.outcome = error
                raise
            return "done"

        super().__init__(made, revision)

    async def begin(self) -> None:
        """Call the tool."""
        await self.open(capabilities=self.capabilities)
        meta = {CAPABILITIES_KEY: self.capabilities} if self.modern else None
        self.wired.receive(self.message("tools/call", {"name": "tool", "arguments": {}}, meta, id="call"))

    async def question(self) -> Any:
        """The request the server sends, which must be valid in the revision."""
        while True:
            for message in self.wired.sent:
                if "method" in message and "id" in message:
                    assert validate_message(message, self.revision, "server") == ()
                    return message
            await self.wired.until(len(self.wired.frames) + 1)

    async def asked(self, answer: Any) -> Any:
        """The parameters of the question, answered by a result (or by an error, when it has a code)."""
        await self.begin()
        message = await self.question()
        kind = "error" if isinstance(answer, dict) and "code" in answer else "result"
        response = {"jsonrpc": "2.0", "id": message["id"], kind: answer}
        self.wired.receive(response)
        await self.answer()
        return message.get("params")

    async def answer(self) -> Any:
        """The answer to the call."""
        while True:
            for message in self.wired.sent:
                if message.get("id") == "call" and "method" not in message:
                    return message
            await self.wired.until(len(self.wired.frames) + 1)

    async def refused(self) -> Any:
        """What the tool was raised when nothing may have been sent."""
        await self.begin()
        await self.answer()
        assert all("method" not in message for message in self.wired.sent)
        return self.outcome


# -- forms -----------------------------------------------------------------------------------------------------------


class Account(Struct):
    """Who is asked."""

    username: str
    email: Annotated[str, Meta(extra_json_schema={"format": "email"})]


class Status(enum.Enum):
    ACTIVE = "active"
    INACTIVE = "inactive"


@dataclasses.dataclass
class Profile:
    name: Annotated[str, Meta(title="Name", description="Yours", min_length=1, max_length=9)] = "John Doe"
    age: Annotated[int, Meta(ge=0)] = 30
    score: float = 95.5
    status: Status = Status.ACTIVE
    size: Literal["s", "m"] = "m"
    verified: bool = True
    born: datetime.date | None = None
    note: str | None = None


class Choices(TypedDict):
    colours: list[Literal["red", "blue"]]
    statuses: list[Status]


RAW: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2"]},
        "titledSingle": {"type": "string", "oneOf": [{"const": "value1", "title": "One"}]},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": [{"const": "value1", "title": "One"}]}},
    },
}


@pytest.mark.req("M-236", "M-235", "M-240")
@pytest.mark.parametrize("revision", ELICITING)
async def test_a_form_of_a_type_gives_an_instance(revision: str) -> None:
    peer = Asking(lambda context: context.elicit("Who?", Account), revision)
    params = await peer.asked({"action": "accept", "content": {"username": "u", "email": "e@x"}})
    assert params == {
        "message": "Who?",
        "requestedSchema": {
            "type": "object",
            "properties": {"username": {"type": "string"}, "email": {"type": "string", "format": "email"}},
            "required": ["username", "email"],
        },
    }
    assert peer.outcome == Elicited(action="accept", content=Account("u", "e@x"))
    assert peer.outcome.accepted


@pytest.mark.req("M-236", "M-239", "H-058")
@pytest.mark.parametrize("revision", ELICITING)
async def test_defaults_and_bounds_of_a_type(revision: str) -> None:
    peer = Asking(lambda context: context.elicit("?", Profile), revision)
    params = await peer.asked(
        {"action": "accept", "content": {"age": 31.0, "born": "2000-01-02", "status": "inactive"}}
    )
    fields = params["requestedSchema"]["properties"]
    assert "required" not in params["requestedSchema"]
    new = revision >= "2025-11-25"

    def default(value: Any) -> dict[str, Any]:
        return {"default": value} if new else {}

    assert fields == {
        "name": {
            "type": "string", "title": "Name", "description": "Yours", "minLength": 1, "maxLength": 9,
            **default("John Doe"),
        },
        "age": {"type": "integer", "minimum": 0, **default(30)},
        "score": {"type": "number", **default(95.5)},
        "status": {"type": "string", "enum": ["active", "inactive"], **({"title": "Status"} | default("active"))},
        "size": {"type": "string", "enum": ["s", "m"], **default("m")},
        "verified": {"type": "boolean", "default": True},
        "born": {"type": "string", "format": "date"},
        "note": {"type": "string"},
    }  # fmt: skip
    assert peer.outcome.content == Profile(age=31, born=datetime.date(2000, 1, 2), status=Status.INACTIVE)


@pytest.mark.req("M-236", "H-058")
async def test_raw_forms_are_sent_as_they_are() -> None:
    peer = Asking(lambda context: context.elicit("?", RAW))
    content = {
        "untitledSingle": "option1",
        "titledSingle": "value1",
        "legacyEnum": "opt1",
        "untitledMulti": ["option1", "option2"],
        "titledMulti": ["value1"],
    }
    params = await peer.asked({"action": "accept", "content": content})
    assert params["requestedSchema"] == RAW
    assert peer.outcome.content == content


async def test_choices_of_several_values_from_a_type() -> None:
    peer = Asking(lambda context: context.elicit("?", Choices))
    params = await peer.asked({"action": "accept", "content": {"colours": ["red"], "statuses": ["active"]}})
    fields = params["requestedSchema"]["properties"]
    assert fields["colours"] == {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}}
    assert fields["statuses"] == {"type": "array", "items": {"type": "string", "enum": ["active", "inactive"]}}
    assert peer.outcome.content == {"colours": ["red"], "statuses": [Status.ACTIVE]}


@pytest.mark.req("H-058")
@pytest.mark.parametrize("name", ["titledSingle", "untitledMulti", "titledMulti"])
async def test_choices_the_revision_lacks_are_refused(name: str) -> None:
    schema = {"type": "object", "properties": {name: RAW["properties"][name]}}
    outcome = await Asking(lambda context: context.elicit("?", schema), "2025-06-18").refused()
    assert isinstance(outcome, UsageError)
    assert name in str(outcome)
    assert "2025-06-18" in str(outcome)


@pytest.mark.req("H-058")
async def test_choices_the_revision_has() -> None:
    names = ("untitledSingle", "legacyEnum")
    schema = {"type": "object", "properties": {name: RAW["properties"][name] for name in names}}
    params = await Asking(lambda context: context.elicit("?", schema), "2025-06-18").asked({"action": "cancel"})
    assert params["requestedSchema"] == schema


@pytest.mark.req("M-241", "M-249")
@pytest.mark.parametrize("revision", ELICITING)
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_who_says_no_is_no_error(revision: str, action: Any) -> None:
    peer = Asking(lambda context: context.elicit("?", Account), revision)
    await peer.asked({"action": action, "content": {"username": 5}})
    assert peer.outcome == Elicited(action=action)
    assert peer.outcome.content is None
    assert not peer.outcome.accepted
    assert text_of((await peer.answer())["result"]) == "done"


@pytest.mark.req("M-240")
@pytest.mark.parametrize("schema", [Account, msgspec.json.schema(Account)["$defs"]["Account"]], ids=["type", "raw"])
@pytest.mark.parametrize(
    "content", [{}, None, {"username": "u"}, {"username": 5, "email": "e"}, {"username": ["a"], "email": "e"}]
)
async def test_an_answer_that_does_not_fit_the_form_is_not_taken(schema: Any, content: Any) -> None:
    peer = Asking(lambda context: context.elicit("?", schema))
    await peer.asked({"action": "accept"} if content is None else {"action": "accept", "content": content})
    assert isinstance(peer.outcome, InvalidResult)
    assert (await peer.answer())["result"]["isError"] is True


@pytest.mark.req("M-240")
async def test_what_a_form_cannot_say_is_checked_all_the_same() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}}, "additionalProperties": False}
    for content, fits in (({"a": "xy"}, True), ({"a": "y"}, False), ({"b": "x"}, False)):
        peer = Asking(lambda context: context.elicit("?", schema))
        params = await peer.asked({"action": "accept", "content": content})
        assert params["requestedSchema"]["properties"] == {"a": {"type": "string"}}
        assert isinstance(peer.outcome, Elicited if fits else InvalidResult)


@pytest.mark.req("M-241")
@pytest.mark.parametrize(
    "answer",
    [
        {"code": -32602, "message": "no such mode"},
        {"action": "maybe"},
        {},
        {"action": "accept", "content": []},
        {"task": {"taskId": "t", "status": "working", "createdAt": "", "lastUpdatedAt": "", "ttl": None}},
    ],
)
async def test_a_client_that_fails(answer: Any) -> None:
    peer = Asking(lambda context: context.elicit("?", Account))
    await peer.asked(answer)
    assert isinstance(peer.outcome, MCPError if "code" in answer else InvalidResult)


class Nested(Struct):
    inner: Account


class Listed(Struct):
    values: list[str]


class Either(Struct):
    value: int | str


class Nullable(Struct):
    value: str | None


class Numbers(Struct):
    value: Literal[1, 2]


@pytest.mark.req("M-236")
@pytest.mark.parametrize(
    "schema",
    [
        Nested,
        Listed,
        Either,
        Nullable,
        Numbers,
        int,
        dict[str, str],
        {"type": "object"},
        {"type": "array"},
        {"type": "object", "properties": {"a": {"type": "object"}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        {"type": "object", "properties": {"a": {"type": "string", "format": "uuid"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}},
        {"type": "object", "properties": {}, "required": ["a"]},
    ],
    ids=str,
)
async def test_what_is_no_form_is_never_sent(schema: Any) -> None:
    outcome = await Asking(lambda context: context.elicit("?", schema)).refused()
    assert isinstance(outcome, UsageError)
    assert not isinstance(outcome, MissingCapability)


def test_the_form_of_a_type_is_made_once() -> None:
    assert form_of(Account) is form_of(Account)


# -- pages -----------------------------------------------------------------------------------------------------------


@pytest.mark.req("M-237", "M-245")
async def test_a_page_to_visit() -> None:
    peer = Asking(lambda context: context.elicit_url("Sign in", "https://example.com/x", "id-1"))
    params = await peer.asked({"action": "accept"})
    assert params == {
        "mode": "url", "message": "Sign in", "url": "https://example.com/x", "elicitationId": "id-1",
    }  # fmt: skip
    assert peer.outcome == Elicited(action="accept")
    ids = {
        (await Asking(lambda context: context.elicit_url("?", "https://example.com")).asked({"action": "cancel"}))[
            "elicitationId"
        ]
        for _ in range(2)
    }
    assert len(ids) == 2


@pytest.mark.req("M-237", "M-244")
@pytest.mark.parametrize(
    "url", ["", "example.com", "javascript://x", "file:///etc", "https://", "https://a b", "ftp://x"]
)
async def test_what_is_no_page_is_refused(url: str) -> None:
    assert isinstance(await Asking(lambda context: context.elicit_url("?", url)).refused(), UsageError)


# -- sampling --------------------------------------------------------------------------------------------------------

REPLY = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m", "stopReason": "endTurn"}
TEXT = types.TextContent(text="t")
TOOL = types.Tool(name="t", input_schema={"type": "object"})
USE = types.ToolUseContent(id="u", name="t", input={})
RESULT = types.ToolResultContent(tool_use_id="u", content=[TEXT])


def says(role: Any, *blocks: Any) -> types.SamplingMessage:
    return types.SamplingMessage(role=role, content=blocks[0] if len(blocks) == 1 else list(blocks))


@pytest.mark.req("M-257", "M-258")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_sampling(revision: str) -> None:
    peer = Asking(
        lambda context: context.sample(
            ["Capital of France?", says("assistant", TEXT)],
            max_tokens=100,
            system_prompt="s",
            temperature=0.5,
            stop_sequences=["x"],
            include_context="none",
            metadata={"a": 1},
            model_preferences=types.ModelPreferences(hints=[types.ModelHint(name="h")], cost_priority=0.5),
        ),
        revision,
    )
    params = await peer.asked(REPLY)
    assert params == {
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "Capital of France?"}},
            {"role": "assistant", "content": {"type": "text", "text": "t"}},
        ],
        "maxTokens": 100,
        "systemPrompt": "s",
        "temperature": 0.5,
        "stopSequences": ["x"],
        "includeContext": "none",
        "metadata": {"a": 1},
        "modelPreferences": {"hints": [{"name": "h"}], "costPriority": 0.5},
    }
    assert peer.outcome.content.text == "Paris"
    assert peer.outcome.model == "m"


@pytest.mark.req("M-253", "M-255", "M-256")
async def test_sampling_with_tools() -> None:
    peer = Asking(
        lambda context: context.sample(
            ["go", says("assistant", TEXT, USE), says("user", RESULT)],
            max_tokens=1,
            tools=[TOOL],
            tool_choice=types.ToolChoice(mode="auto"),
            include_context="thisServer",
        )
    )
    content = [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "v", "name": "t", "input": {}}]
    params = await peer.asked({**REPLY, "content": content, "stopReason": "toolUse"})
    assert params["tools"] == [{"name": "t", "inputSchema": {"type": "object"}}]
    assert params["toolChoice"] == {"mode": "auto"}
    assert params["includeContext"] == "thisServer"
    assert isinstance(peer.outcome.content[1], types.ToolUseContent)


@pytest.mark.req("M-255", "M-256", "M-257", "H-065")
@pytest.mark.parametrize(
    "messages",
    [
        [],
        [5],
        [says("assistant", USE)],
        [says("assistant", USE), "go on"],
        [says("assistant", USE), says("user", RESULT, TEXT)],
        [says("user", RESULT)],
        [says("assistant", USE, types.ToolUseContent(id="w", name="t", input={})), says("user", RESULT)],
        [says("user", USE), says("user", RESULT)],
        [says("assistant", USE), says("assistant", RESULT)],
    ],
)
async def test_conversations_the_protocol_does_not_allow(messages: Any) -> None:
    outcome = await Asking(lambda context: context.sample(messages, max_tokens=1)).refused()
    assert isinstance(outcome, UsageError)


@pytest.mark.req("H-058")
@pytest.mark.parametrize(
    ("revision", "message"),
    [
        ("2024-11-05", types.AudioContent(data="AAAA", mime_type="audio/wav")),
        ("2025-06-18", says("assistant", USE)),
        ("2025-06-18", says("user", TEXT, TEXT)),
    ],
)
async def test_messages_the_revision_lacks_are_refused(revision: str, message: Any) -> None:
    outcome = await Asking(lambda context: context.sample([message], max_tokens=1), revision).refused()
    assert isinstance(outcome, UsageError)
    assert revision in str(outcome)


@pytest.mark.req("H-058")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_one_block_in_a_list_is_one_block(revision: str) -> None:
    message = types.SamplingMessage(role="user", content=[TEXT])
    params = await Asking(lambda context: context.sample([message], max_tokens=1), revision).asked(REPLY)
    text = {"type": "text", "text": "t"}
    assert params["messages"][0]["content"] == ([text] if revision >= "2025-11-25" else text)


async def test_tokens_are_at_least_one() -> None:
    assert isinstance(await Asking(lambda context: context.sample("x", max_tokens=0)).refused(), UsageError)


# -- roots -----------------------------------------------------------------------------------------------------------


@pytest.mark.req("M-264")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_roots(revision: str) -> None:
    peer = Asking(lambda context: context.list_roots(), revision)
    await peer.asked({"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]})
    assert [(root.uri, root.name) for root in peer.outcome] == [("file:///a", "A"), ("file:///b", None)]


# -- what a client did not declare -----------------------------------------------------------------------------------


def form(context: Context) -> Awaitable[Any]:
    return context.elicit("?", Account)


def page(context: Context) -> Awaitable[Any]:
    return context.elicit_url("?", "https://example.com")


def plain(context: Context) -> Awaitable[Any]:
    return context.sample("x", max_tokens=1)


def tools(context: Context) -> Awaitable[Any]:
    return context.sample("x", max_tokens=1, tools=[TOOL])


def choice(context: Context) -> Awaitable[Any]:
    return context.sample("x", max_tokens=1, tool_choice=types.ToolChoice())


def included(context: Context) -> Awaitable[Any]:
    return context.sample("x", max_tokens=1, include_context="allServers")


def roots(context: Context) -> Awaitable[Any]:
    return context.list_roots()


MISSING: list[tuple[Ask, Any, Any]] = [
    (form, {}, {"elicitation": {}}),
    (form, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
    (page, {}, {"elicitation": {"url": {}}}),
    (page, {"elicitation": {}}, {"elicitation": {"url": {}}}),
    (page, {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
    (plain, {}, {"sampling": {}}),
    (tools, {}, {"sampling": {}}),
    (tools, {"sampling": {}}, {"sampling": {"tools": {}}}),
    (choice, {"sampling": {"context": {}}}, {"sampling": {"tools": {}}}),
    (included, {"sampling": {}}, {"sampling": {"context": {}}}),
    (roots, {"sampling": {}}, {"roots": {}}),
]


@pytest.mark.req("M-234", "M-253", "M-260", "M-264", "M-046")
@pytest.mark.parametrize(("ask", "declared", "needed"), MISSING)
async def test_what_the_client_did_not_declare_is_not_asked(ask: Ask, declared: Any, needed: Any) -> None:
    peer = Asking(ask, NEWEST, declared)
    outcome = await peer.refused()
    assert isinstance(outcome, MissingCapability)
    assert outcome.capability == needed
    path = ".".join([*needed, *next(iter(needed.values()))])
    assert path in str(outcome)
    result = (await peer.answer())["result"]
    assert (result["isError"], text_of(result)) == (True, str(outcome))


@pytest.mark.req("M-045", "M-035", "M-234")
@pytest.mark.parametrize(("ask", "declared", "needed"), MISSING)
async def test_at_2026_07_28_that_is_an_error_of_the_protocol(ask: Ask, declared: Any, needed: Any) -> None:
    peer = Asking(ask, LATEST, declared)
    await peer.refused()
    error = (await peer.answer())["error"]
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": needed})
    assert validate_message(await peer.answer(), LATEST, "server") == ()


@pytest.mark.req("M-234")
@pytest.mark.parametrize("revision", ELICITING)
@pytest.mark.parametrize("declared", [{}, {"form": {}}, {"form": {}, "url": {}}])
async def test_elicitation_without_modes_means_forms(revision: str, declared: Any) -> None:
    peer = Asking(form, revision, {"elicitation": declared})
    await peer.asked({"action": "decline"})
    assert peer.outcome == Elicited(action="decline")


@pytest.mark.req("H-058", "M-234")
@pytest.mark.parametrize(
    ("ask", "revisions"),
    [
        (form, ["2024-11-05", "2025-03-26"]),
        (page, ["2024-11-05", "2025-03-26", "2025-06-18"]),
        (tools, ["2024-11-05", "2025-03-26", "2025-06-18"]),
    ],
)
async def test_what_the_revision_lacks_is_not_asked_whatever_was_declared(ask: Ask, revisions: list[str]) -> None:
    for revision in revisions:
        outcome = await Asking(ask, revision).refused()
        assert isinstance(outcome, MissingCapability), "one way to go on without, whatever the reason"
        assert revision in str(outcome)


@pytest.mark.req("M-260")
@pytest.mark.parametrize("revision", [revision for revision in HANDSHAKE if revision < "2025-11-25"])
async def test_context_was_for_every_client_before_it_could_be_declared(revision: str) -> None:
    params = await Asking(included, revision, {"sampling": {}}).asked(REPLY)
    assert params["includeContext"] == "allServers"


async def test_a_handler_can_go_on_without() -> None:
    async def ask(context: Context) -> str:
        try:
            return str(await context.sample("x", max_tokens=1))
        except MissingCapability:
            return "without"

    assert await Asking(ask, NEWEST, {}).refused() == "without"


@pytest.mark.parametrize("kind", ["prompt", "resource"])
async def test_prompts_and_resources_can_ask_too(kind: str) -> None:
    made = App("a")

    async def ask(context: Context) -> str:
        return (await context.list_roots())[0].uri

    made.prompt(ask, name="p")
    made.resource("x://a")(ask)
    params = {"name": "p"} if kind == "prompt" else {"uri": "x://a"}
    method = "prompts/get" if kind == "prompt" else "resources/read"
    peer = Client(made, NEWEST)
    await peer.open()
    error = await peer.error(method, params)
    assert (error["code"], error["message"]) == (-32603, "This needs a client that declares the capability roots.")
    peer = Client(made, NEWEST)
    await peer.open(capabilities={"roots": {}})
    asking = asyncio.ensure_future(peer.result(method, params))
    await peer.wired.until(2)
    question = next(message for message in peer.wired.sent if message.get("method") == "roots/list")
    peer.wired.receive({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///a"}]}})
    assert "file:///a" in str(await asking)


# -- time and ends ---------------------------------------------------------------------------------------------------


@pytest.mark.req("M-146", "M-161")
@pytest.mark.parametrize(
    "ask",
    [
        lambda context: context.elicit("?", Account, timeout=0.01),
        lambda context: context.elicit_url("?", "https://x.y", timeout=0.01),
        lambda context: context.sample("x", max_tokens=1, timeout=0.01),
        lambda context: context.list_roots(timeout=0.01),
    ],
)
async def test_a_client_that_does_not_answer(ask: Ask) -> None:
    peer = Asking(ask)
    await peer.begin()
    question = await peer.question()
    await peer.answer()
    assert isinstance(peer.outcome, RequestTimeout)
    cancelled = [message["params"] for message in peer.notifications("notifications/cancelled")]
    assert [params["requestId"] for params in cancelled] == [question["id"]]


@pytest.mark.req("M-139", "M-140")
async def test_a_question_of_a_cancelled_call_is_withdrawn() -> None:
    peer = Asking(form)
    await peer.begin()
    question = await peer.question()
    peer.wired.receive({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "call"}})
    await peer.wired.idle()
    assert isinstance(peer.outcome, asyncio.CancelledError)
    (note,) = peer.notifications("notifications/cancelled")
    assert note["params"]["requestId"] == question["id"]


async def test_a_connection_that_ends_ends_the_question() -> None:
    async def ask(context: Context) -> Any:
        return await asyncio.shield(asyncio.ensure_future(context.elicit("?", Account)))

    peer = Asking(ask)
    await peer.begin()
    await peer.question()
    peer.wired.connection.close()
    await peer.wired.idle()
    assert isinstance(peer.outcome, (ConnectionClosed, asyncio.CancelledError))


async def test_questions_of_two_calls_do_not_mix() -> None:
    made = App("a")

    @made.tool
    async def ask(text: str, context: Context) -> str:
        return str((await context.sample(text, max_tokens=1)).content.text)  # type: ignore[union-attr]

    peer = Client(made, NEWEST)
    await peer.open(capabilities={"sampling": {}})
    calls = [asyncio.ensure_future(peer.call("ask", {"text": text})) for text in ("one", "two")]
    await peer.wired.until(3)
    for question in reversed([message for message in peer.wired.sent if "method" in message]):
        content = question["params"]["messages"][0]["content"]
        peer.wired.receive({"jsonrpc": "2.0", "id": question["id"], "result": {**REPLY, "content": content}})
    async with asyncio.timeout(LIMIT):
        assert [text_of(result) for result in await asyncio.gather(*calls)] == ["one", "two"]


async def test_only_async_functions_can_ask() -> None:
    made = App("a")
    raised: list[Exception] = []

    @made.tool
    def tool(context: Context) -> None:
        for ask in (form, page, plain, roots):
            try:
                ask(context)
            except UsageError as error:
                raised.append(error)

    peer = Client(made, NEWEST)
    await peer.open(capabilities=EVERYTHING)
    await peer.call("tool")
    assert [str(error).split(":")[0] for error in raised] == ["only an async function can ask the client"] * 4


async def test_nobody_is_asked_without_a_connection_or_after_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    kept: list[Context] = []
    made = App("a")

    @made.tool
    async def tool(context: Context) -> str:
        kept.append(context)
        return str(await context.list_roots())

    peer = Client(made, NEWEST)
    await peer.open(capabilities=EVERYTHING)
    asking = asyncio.ensure_future(peer.call("tool"))
    await peer.wired.until(2)
    peer.wired.receive({"jsonrpc": "2.0", "id": 1, "result": {"roots": []}})
    await asking
    with pytest.raises(UsageError, match="answered already"):
        await kept[0].list_roots()

    class Mute:
        principal = None
        handshake: Any = peer.wired.connection.handshake

        def notify(self, method: str, params: object = None) -> None: ...

    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "tool", "arguments": {}}}
    answer: Any = await made.server.dispatch(message, Mute())
    assert answer.result.is_error
    assert "no connection" in caplog.text
