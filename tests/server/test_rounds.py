"""Questions to clients of 2026-07-28: rounds, replay and the sealed state."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest
from cryptography.fernet import Fernet

from typedmcp import App, Context, MCPError, types, validate_message

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "sampling": {}, "roots": {}},
}
KEY = Fernet.generate_key()


@dataclass
class Name:
    name: str


@dataclass
class Color:
    color: str


def make_app(keys: list[bytes] | None = None, lifetime: float = 600.0) -> App:
    app = App("asking", "1.0.0", state_keys=keys, state_lifetime=lifetime)
    runs: list[str] = []

    @app.tool
    async def greet(context: Context, greeting: str = "Hello") -> str:
        runs.append("greet")
        answer = await context.elicit("What is your name?", Name)
        return f"{greeting}, {answer.content.name}!" if answer.content else f"No name: {answer.action}"

    @app.tool
    async def two_rounds(context: Context) -> str:
        first = await context.elicit("Name?", Name)
        second = await context.elicit("Color?", Color)
        assert first.content is not None
        assert second.content is not None
        return f"{first.content.name} likes {second.content.color}"

    @app.tool
    async def together(context: Context) -> str:
        message = types.SamplingMessage(role="user", content=types.TextContent(text="Capital of France?"))
        name, sample, roots = await asyncio.gather(
            context.elicit("Name?", Name), context.sample([message], max_tokens=10), context.list_roots()
        )
        assert name.content is not None
        return f"{name.content.name}, {getattr(sample.content, 'text', '')}, {len(roots)} roots"

    @app.tool
    async def fickle(context: Context) -> str:
        runs.append("fickle")
        await context.elicit(f"Question {len(runs)}?", Name)
        return "done"

    @app.tool
    async def careful(context: Context) -> str:
        try:
            await context.elicit("Name?", Name)
        except Exception:  # noqa: BLE001 - what a careless author writes
            return "swallowed"
        return "asked"

    @app.tool
    async def by_hand(context: Context) -> Any:
        answer = context.input_responses.get("user_name")
        if answer is None:
            question = types.ElicitRequest(
                params=types.ElicitRequestFormParams(
                    message="Name?",
                    requested_schema=types.ElicitRequestedSchema(properties={"name": types.StringSchema()}),
                )
            )
            return types.InputRequiredResult(
                result_type="input_required", input_requests={"user_name": question}, request_state="step 1"
            )
        return f"{answer.content['name']} after {context.request_state}"

    @app.prompt
    async def story(context: Context) -> str:
        answer = await context.elicit("About whom?", Name)
        assert answer.content is not None
        return f"Tell of {answer.content.name}"

    @app.resource("asking://who", mime_type="text/plain")
    async def who(context: Context) -> str:
        answer = await context.elicit("Who?", Name)
        assert answer.content is not None
        return answer.content.name

    return app


async def send(app: App, method: str, **params: Any) -> dict[str, Any]:
    """The response, checked against the revision."""
    params = {"_meta": META, **params}
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    reply = json.loads(await app.server.handle(text) or "null")
    assert validate_message(reply, "2026-07-28", "server", method) == ()
    return reply


async def call(app: App, name: str, **params: Any) -> dict[str, Any]:
    reply = await send(app, "tools/call", name=name, **params)
    return reply["result"] if "result" in reply else reply["error"]


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


@pytest.mark.req("M-017", "M-153", "M-155", "M-156", "M-162")
async def test_one_question_takes_two_requests() -> None:
    app = make_app()
    asked = await call(app, "greet")
    assert asked["resultType"] == "input_required"
    ((key, question),) = asked["inputRequests"].items()
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "What is your name?"
    assert not {"id", "jsonrpc"} & question.keys()
    assert "ttlMs" not in asked
    done = await call(app, "greet", inputResponses={key: accept(name="Ada")}, requestState=asked["requestState"])
    assert done["resultType"] == "complete"
    assert done["content"][0]["text"] == "Hello, Ada!"


@pytest.mark.req("M-241")
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_refusal_is_an_answer(action: str) -> None:
    app = make_app()
    asked = await call(app, "greet")
    (key,) = asked["inputRequests"]
    done = await call(app, "greet", inputResponses={key: {"action": action}}, requestState=asked["requestState"])
    assert done["content"][0]["text"] == f"No name: {action}"


async def test_questions_one_after_another_are_rounds_with_states_of_their_own() -> None:
    app = make_app()
    first = await call(app, "two_rounds")
    (one,) = first["inputRequests"]
    second = await call(app, "two_rounds", inputResponses={one: accept(name="Ada")}, requestState=first["requestState"])
    (two,) = second["inputRequests"]
    assert two != one
    assert second["requestState"] != first["requestState"]
    third = await call(
        app, "two_rounds", inputResponses={two: accept(color="blue")}, requestState=second["requestState"]
    )
    assert third["content"][0]["text"] == "Ada likes blue"


async def test_questions_asked_together_are_one_round() -> None:
    app = make_app()
    asked = await call(app, "together")
    kinds = {question["method"]: key for key, question in asked["inputRequests"].items()}
    assert set(kinds) == {"elicitation/create", "sampling/createMessage", "roots/list"}
    answers: dict[str, Any] = {
        kinds["elicitation/create"]: accept(name="Ada"),
        kinds["sampling/createMessage"]: {
            "role": "assistant",
            "content": {"type": "text", "text": "Paris"},
            "model": "m",
        },
        kinds["roots/list"]: {"roots": [{"uri": "file:///work"}]},
    }
    missing = {key: value for key, value in answers.items() if key != kinds["roots/list"]}
    again = await call(app, "together", inputResponses=missing, requestState=asked["requestState"])
    assert list(again["inputRequests"]) == [kinds["roots/list"]], "what is missing is asked again, and only that"
    rest = {kinds["roots/list"]: answers[kinds["roots/list"]], "unknown": accept()}
    done = await call(app, "together", inputResponses=rest, requestState=again["requestState"])
    assert done["content"][0]["text"] == "Ada, Paris, 1 roots"


@pytest.mark.req("M-163")
async def test_answers_without_the_state_are_not_taken() -> None:
    app = make_app()
    asked = await call(app, "greet")
    (key,) = asked["inputRequests"]
    again = await call(app, "greet", inputResponses={key: accept(name="Ada")})
    assert again["resultType"] == "input_required"


async def test_an_answer_of_another_kind_is_refused() -> None:
    app = make_app()
    asked = await call(app, "greet")
    (key,) = asked["inputRequests"]
    wrong = await call(app, "greet", inputResponses={key: {"roots": []}}, requestState=asked["requestState"])
    assert wrong["code"] == -32602
    assert key in wrong["message"]


async def test_an_answer_that_does_not_fit_the_form_never_completes() -> None:
    app = make_app()
    asked = await call(app, "greet")
    (key,) = asked["inputRequests"]
    wrong = await call(app, "greet", inputResponses={key: accept(name=5)}, requestState=asked["requestState"])
    assert wrong.get("resultType") != "complete" or wrong["isError"]


@pytest.mark.req("M-158", "M-159")
async def test_a_state_is_good_for_its_own_request_only() -> None:
    app = make_app()
    asked = await call(app, "greet", arguments={"greeting": "Hi"})
    (key,) = asked["inputRequests"]
    state, answers = asked["requestState"], {key: accept(name="Ada")}
    tampered = state[:-2] + ("AA" if state[-2:] != "AA" else "BB")
    for other in (
        await call(app, "greet", arguments={"greeting": "Hi"}, inputResponses=answers, requestState=tampered),
        await call(app, "greet", arguments={"greeting": "Hi"}, inputResponses=answers, requestState=state + "-X"),
        await call(app, "greet", arguments={"greeting": "Bye"}, inputResponses=answers, requestState=state),
        await call(app, "careful", inputResponses=answers, requestState=state),
        await call(make_app(), "greet", arguments={"greeting": "Hi"}, inputResponses=answers, requestState=state),
        await call(app, "greet", inputResponses=answers, requestState="x" * 100_000),
    ):
        assert other["code"] == -32602
        assert other["message"] == "requestState is not valid for this request."
    done = await call(app, "greet", arguments={"greeting": "Hi"}, inputResponses=answers, requestState=state)
    assert done["content"][0]["text"] == "Hi, Ada!"


async def test_processes_that_share_a_key_serve_each_others_rounds() -> None:
    old = Fernet.generate_key()
    asked = await call(make_app([old]), "greet")
    (key,) = asked["inputRequests"]
    rotated = make_app([KEY, old])
    done = await call(rotated, "greet", inputResponses={key: accept(name="Ada")}, requestState=asked["requestState"])
    assert done["content"][0]["text"] == "Hello, Ada!"


async def test_a_state_expires() -> None:
    app = make_app([KEY], lifetime=1.0)
    asked = await call(app, "greet")
    (key,) = asked["inputRequests"]
    stale = Fernet(KEY).encrypt_at_time(Fernet(KEY).decrypt(asked["requestState"]), 1)
    refused = await call(app, "greet", inputResponses={key: accept(name="Ada")}, requestState=stale.decode())
    assert refused["code"] == -32602


async def test_a_handler_that_asks_something_else_is_told(caplog: pytest.LogCaptureFixture) -> None:
    app = make_app()
    asked = await call(app, "fickle")
    (key,) = asked["inputRequests"]
    failed = await call(app, "fickle", inputResponses={key: accept(name="A")}, requestState=asked["requestState"])
    assert failed["isError"]
    assert "differs from that of an earlier run" in caplog.text


async def test_a_question_is_no_exception_to_a_handler() -> None:
    assert (await call(make_app(), "careful"))["resultType"] == "input_required"


@pytest.mark.req("M-045", "M-046", "M-157")
async def test_what_the_client_did_not_declare_is_not_asked() -> None:
    bare = {**META, "io.modelcontextprotocol/clientCapabilities": {}}
    refused = await call(make_app(), "greet", _meta=bare)
    assert refused["code"] == -32021
    assert refused["data"] == {"requiredCapabilities": {"elicitation": {}}}


@pytest.mark.req("M-153")
@pytest.mark.parametrize(
    ("method", "params"), [("prompts/get", {"name": "story"}), ("resources/read", {"uri": "asking://who"})]
)
async def test_prompts_and_resources_ask_too(method: str, params: dict[str, Any]) -> None:
    app = make_app()
    asked = (await send(app, method, **params))["result"]
    (key,) = asked["inputRequests"]
    answers = {key: accept(name="Ada")}
    done = (await send(app, method, **params, inputResponses=answers, requestState=asked["requestState"]))["result"]
    assert done["resultType"] == "complete"
    assert "Ada" in json.dumps(done)


def test_a_key_that_is_none_is_the_authors_mistake() -> None:
    from typedmcp.core.errors import UsageError
    from typedmcp.server.sealing import Binding, StateSeal

    with pytest.raises(UsageError, match="no Fernet key"):
        StateSeal(["short"]).seal({}, Binding.of(None, "m", "t", {}))


def test_a_state_may_be_used_once_where_the_author_says_so() -> None:
    from typedmcp.server.sealing import Binding, StateSeal

    used: set[str] = set()
    seal = StateSeal(once=lambda state: not (state in used or used.add(state)))
    binding = Binding.of(None, "tools/call", "t", {})
    state = seal.seal({"a": 1}, binding)
    assert seal.open(state, binding) == {"a": 1}
    with pytest.raises(MCPError, match="not valid for this request"):
        seal.open(state, binding)


async def test_a_result_made_by_hand_has_its_state_sealed() -> None:
    app = make_app()
    asked = await call(app, "by_hand")
    assert list(asked["inputRequests"]) == ["user_name"]
    assert "step 1" not in asked["requestState"]
    answers = {"user_name": accept(name="Ada")}
    done = await call(app, "by_hand", inputResponses=answers, requestState=asked["requestState"])
    assert done["content"][0]["text"] == "Ada after step 1"
    refused = await call(app, "by_hand", inputResponses=answers, requestState="step 1")
    assert refused["code"] == -32602
