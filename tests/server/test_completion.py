"""Suggestions for arguments of prompts and variables of templates."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.client import ALL, LATEST, Client, client

from typedmcp import App, Context, ToolError, types
from typedmcp.core.errors import UsageError

WORDS = ["pandas", "polars", "pydantic", "pytest"]


def words(value: str) -> list[str]:
    return [word for word in WORDS if word.startswith(value)]


def catalogue(**completers: Any) -> App:
    made = App("catalogue")

    @made.prompt(complete=completers or {"library": words})
    def about(library: str, topic: str = "", other: str = "") -> str:
        return library

    @made.resource("docs://{library}/{+page}", complete={"library": words})
    def page(library: str, page: str) -> str:
        return page

    @made.resource("docs:index")
    def index() -> str:
        return ""

    return made


def asked(name: str, value: str, ref: Any = None, **context: str) -> dict[str, Any]:
    ref = ref or {"type": "ref/prompt", "name": "about"}
    params: dict[str, Any] = {"ref": ref, "argument": {"name": name, "value": value}}
    return {**params, "context": {"arguments": context}} if context else params


async def suggested(peer: Client, *args: Any, **context: str) -> Any:
    return (await peer.result("completion/complete", asked(*args, **context)))["completion"]


@pytest.mark.req("M-219", "M-220", "H-059", "B-116", "B-122")
@pytest.mark.parametrize("revision", ALL)
async def test_arguments_and_variables_are_completed(revision: str) -> None:
    peer = await client(catalogue(), revision)
    assert await suggested(peer, "library", "py") == {"values": ["pydantic", "pytest"], "total": 2, "hasMore": False}
    template = {"type": "ref/resource", "uri": "docs://{library}/{+page}"}
    assert (await suggested(peer, "library", "pa", template))["values"] == ["pandas"]
    assert await suggested(peer, "topic", "x") == {"values": [], "total": 0, "hasMore": False}
    assert (await suggested(peer, "page", "x", template))["values"] == []


@pytest.mark.req("M-219", "M-064", "H-059")
@pytest.mark.parametrize("revision", ALL)
async def test_completions_are_declared_when_and_only_when_something_completes(revision: str) -> None:
    bare = App("a")
    bare.prompt(words, name="p")
    for made, completes in ((bare, False), (catalogue(), True)):
        peer = Client(made, revision)
        opened = await peer.open() or await peer.result("server/discover")
        assert ("completions" in opened["capabilities"]) is (completes and revision >= "2025-03-26")
        answer = await peer.ask("completion/complete", asked("value", "x", {"type": "ref/prompt", "name": "p"}))
        assert answer["error"]["code"] == (-32602 if completes else -32601)


@pytest.mark.req("M-221")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize(
    "params",
    [
        asked("library", "x", {"type": "ref/prompt", "name": "nope"}),
        asked("library", "x", {"type": "ref/resource", "uri": "docs://pandas/x"}),
        asked("library", "x", {"type": "ref/resource", "uri": "docs:index"}),
        asked("library", "x", {"type": "ref/tool", "name": "about"}),
        asked("nope", "x"),
        {"ref": {"type": "ref/prompt", "name": "about"}},
        {"argument": {"name": "library", "value": ""}},
        asked("library", 5),  # type: ignore[arg-type]
    ],
)
async def test_unknown_references_and_arguments_are_invalid(revision: str, params: Any) -> None:
    assert (await (await client(catalogue(), revision)).error("completion/complete", params))["code"] == -32602


@pytest.mark.req("M-220", "B-118")
@pytest.mark.parametrize(("count", "total", "more"), [(0, 0, False), (100, 100, False), (101, 101, True)])
async def test_an_answer_has_a_hundred_values_at_most(count: int, total: int, more: bool) -> None:
    found = await suggested(Client(catalogue(library=lambda value: map(str, range(count)))), "library", "")
    assert (len(found["values"]), found["total"], found["hasMore"]) == (min(count, 100), total, more)


@pytest.mark.req("M-220")
async def test_a_completer_may_say_how_many_there_are() -> None:
    def some(value: str) -> types.Completion:
        return types.Completion(values=["a"], total=5000, has_more=True)

    def many(value: str) -> types.Completion:
        return types.Completion(values=["a"] * 101)

    peer = Client(catalogue(library=some, topic=many))
    assert await suggested(peer, "library", "") == {"values": ["a"], "total": 5000, "hasMore": True}
    found = await suggested(peer, "topic", "")
    assert (len(found["values"]), found["hasMore"]) == (100, True)


@pytest.mark.req("M-223", "B-117")
@pytest.mark.parametrize("revision", ALL)
async def test_a_completer_gets_what_it_takes(revision: str) -> None:
    async def with_known(value: str, known: types.CompletionContext) -> list[str]:
        return [f"{name}={answer}" for name, answer in (known.arguments or {}).items()]

    def with_context(value: str, context: Context) -> list[str]:
        return [context.revision]

    async def with_all(text: str, context: Context, given: Any) -> list[str]:
        return [text, context.method, str(given.arguments)]

    made = catalogue(library=with_known, topic=with_context, other=with_all)
    peer = await client(made, revision)
    assert (await suggested(peer, "topic", ""))["values"] == [revision]
    assert (await suggested(peer, "library", ""))["values"] == []
    assert (await suggested(peer, "other", "v"))["values"] == ["v", "completion/complete", "{}"]
    if revision >= "2025-06-18":
        assert (await suggested(peer, "library", "", None, topic="x"))["values"] == ["topic=x"]


@pytest.mark.req("M-222")
@pytest.mark.parametrize("wrong", ["text", [1], 5, None])
async def test_what_is_no_list_of_texts_is_a_fault_of_the_server(wrong: Any, caplog: Any) -> None:
    error = await Client(catalogue(library=lambda value: wrong)).error("completion/complete", asked("library", ""))
    assert error == {"code": -32603, "message": "There are no suggestions now."}
    assert caplog.records


@pytest.mark.req("M-222")
async def test_a_completer_that_fails(caplog: Any) -> None:
    def fails(value: str) -> list[str]:
        raise ToolError("slow down") if value else ValueError("secret")

    peer = Client(catalogue(library=fails))
    assert (await peer.error("completion/complete", asked("library", "x")))["message"] == "slow down"
    assert "secret" not in str(await peer.error("completion/complete", asked("library", "")))
    assert len(caplog.records) == 1


def nothing() -> list[str]:
    return []


def three(a: str, b: str, c: str) -> list[str]:
    return []


def variable(*values: str) -> list[str]:
    return []


@pytest.mark.parametrize("completer", [nothing, three, variable])
def test_completers_of_another_shape_are_refused(completer: Any) -> None:
    with pytest.raises(UsageError, match="typed so far"):
        catalogue(library=completer)


def test_only_arguments_that_exist_can_be_completed() -> None:
    with pytest.raises(UsageError, match="nope"):
        catalogue(nope=words)


async def test_the_latest_revision_declares_it_too() -> None:
    found = await Client(catalogue(), LATEST).result("server/discover")
    assert found["capabilities"] == {
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "completions": {},
    }
