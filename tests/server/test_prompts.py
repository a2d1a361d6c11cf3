"""Functions as prompts: text arguments in, messages out."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta
from tests.server.client import ALL, LATEST, Client, client

from typedmcp import App, Context, MCPError, ToolError, types
from typedmcp.core.errors import UsageError

IMAGE = types.ImageContent(data="AAAA", mime_type="image/png")
AUDIO = types.AudioContent(data="AAAA", mime_type="audio/wav")
EMBEDDED = types.EmbeddedResource(resource=types.TextResourceContents(uri="test://x", mime_type="text/plain", text="t"))
LINK = types.ResourceLink(uri="test://x", name="x")


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def studio() -> App:
    made = App("studio", "1.0.0")

    @made.prompt
    def simple() -> str:
        """A simple prompt."""
        return "This is a simple prompt for testing."

    @made.prompt(name="with-arguments", title="With arguments")
    async def with_arguments(
        arg1: str, arg2: Annotated[str, "The second"], count: int = 1, size: Literal["s", "m"] = "s"
    ) -> str:
        """Repeats its arguments.

        Args:
            arg1: The first.
        """
        return f"arg1={arg1!r}, arg2={arg2!r}, count={count}, size={size}"

    @made.prompt
    def talk(context: Context) -> list[Any]:
        return [
            types.PromptMessage(role="assistant", content=types.TextContent(text="How?")),
            IMAGE,
            EMBEDDED,
            f"In {context.revision}",
        ]

    @made.prompt
    def image() -> types.ImageContent:
        return IMAGE

    @made.prompt
    def whole() -> types.GetPromptResult:
        return types.GetPromptResult(description="own", messages=[])

    @made.prompt
    def fails(why: str) -> Any:
        if why == "told":
            raise ToolError("no paper")
        if why == "coded":
            raise MCPError(-32050, "own", {"a": 1})
        if why == "odd":
            return 5
        raise ValueError("secret")

    return made


@pytest.mark.req("M-215", "M-218", "H-058")
@pytest.mark.parametrize("revision", ALL)
async def test_prompts_are_listed_with_their_arguments(revision: str) -> None:
    peer = await client(studio(), revision)
    listed = (await peer.result("prompts/list"))["prompts"]
    assert [entry["name"] for entry in listed] == ["simple", "with-arguments", "talk", "image", "whole", "fails"]
    assert listed[0] == {"name": "simple", "description": "A simple prompt."}
    assert listed[1] == {
        "name": "with-arguments",
        "description": "Repeats its arguments.",
        **({"title": "With arguments"} if revision >= "2025-06-18" else {}),
        "arguments": [
            {"name": "arg1", "description": "The first.", "required": True},
            {"name": "arg2", "description": "The second", "required": True},
            {"name": "count"},
            {"name": "size"},
        ],
    }


@pytest.mark.req("M-215", "M-217", "B-113", "B-115")
@pytest.mark.parametrize("revision", ALL)
async def test_prompts_give_messages(revision: str) -> None:
    peer = await client(studio(), revision)
    result = await peer.result("prompts/get", {"name": "simple"})
    assert result["messages"] == [user(said("This is a simple prompt for testing."))]
    assert result["description"] == "A simple prompt."
    arguments = {"arg1": "a", "arg2": "b", "count": "5"}
    result = await peer.result("prompts/get", {"name": "with-arguments", "arguments": arguments})
    assert result["messages"] == [user(said("arg1='a', arg2='b', count=5, size=s"))]
    result = await peer.result("prompts/get", {"name": "talk", "arguments": {}})
    assert result["messages"] == [
        {"role": "assistant", "content": said("How?")},
        user({"type": "image", "data": "AAAA", "mimeType": "image/png"}),
        user({"type": "resource", "resource": {"uri": "test://x", "mimeType": "text/plain", "text": "t"}}),
        user(said(f"In {revision}")),
    ]
    result = await peer.result("prompts/get", {"name": "image"})
    assert [message["content"]["type"] for message in result["messages"]] == ["image"]
    result = await peer.result("prompts/get", {"name": "whole"})
    assert (result["description"], result["messages"]) == ("own", [])


@pytest.mark.req("M-216", "B-114", "B-121")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize(
    ("arguments", "violation"),
    [
        ({"arg1": "a"}, {"pointer": "", "message": "missing 'arg2'"}),
        ({"arg1": "a", "arg2": "b", "c/d": "x"}, {"pointer": "/c~1d"}),
        ({"arg1": "a", "arg2": "b", "count": "many"}, {"pointer": "/count"}),
        ({"arg1": "a", "arg2": "b", "size": "xl"}, {"pointer": "/size"}),
    ],
)
async def test_arguments_that_do_not_fit_are_invalid(revision: str, arguments: Any, violation: dict[str, str]) -> None:
    peer = await client(studio(), revision)
    error = await peer.error("prompts/get", {"name": "with-arguments", "arguments": arguments})
    assert error["code"] == -32602
    (found,) = error["data"]["violations"]
    assert violation.items() <= found.items()


@pytest.mark.req("M-216")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("params", [{"name": "nope"}, {"name": ""}, {}, {"name": "simple", "arguments": {"a": 1}}])
async def test_unknown_prompts_and_malformed_calls_are_invalid(revision: str, params: Any) -> None:
    assert (await (await client(studio(), revision)).error("prompts/get", params))["code"] == -32602


@pytest.mark.req("M-025", "M-034")
async def test_a_prompt_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    peer = Client(studio())

    async def failing(why: str) -> Any:
        return await peer.error("prompts/get", {"name": "fails", "arguments": {"why": why}})

    assert await failing("told") == {"code": -32603, "message": "no paper"}
    assert await failing("coded") == {"code": -32050, "message": "own", "data": {"a": 1}}
    assert not caplog.records
    for why in ("x", "odd"):
        assert await failing(why) == {"code": -32603, "message": "The prompt cannot be made."}
    assert len(caplog.records) == 2


@pytest.mark.req("B-121")
async def test_constraints_on_arguments_hold() -> None:
    made = App("a")

    @made.prompt
    def short(word: Annotated[str, Meta(min_length=2)]) -> str:
        return word

    peer = Client(made)
    assert (await peer.error("prompts/get", {"name": "short", "arguments": {"word": "a"}}))["code"] == -32602
    assert await peer.result("prompts/get", {"name": "short", "arguments": {"word": "ab"}})


def test_what_is_no_prompt() -> None:
    made = App("a")

    def lists(values: list[str]) -> str:
        return ""

    with pytest.raises(UsageError, match="text"):
        made.prompt(lists)
    made.prompt(studio, name="x")
    with pytest.raises(UsageError, match="'x' already"):
        made.prompt(studio, name="x")
    assert made.prompt(studio, name="y") is studio
    assert made.remove_prompt("x") is True
    assert made.remove_prompt("x") is False


@pytest.mark.req("M-215", "M-064")
@pytest.mark.parametrize("revision", ALL)
async def test_without_prompts_there_is_no_such_feature(revision: str) -> None:
    peer = await client(App("a"), revision)
    for method in ("prompts/list", "prompts/get", "completion/complete"):
        assert (await peer.error(method))["code"] == -32601


@pytest.mark.req("H-058")
@pytest.mark.parametrize("revision", ALL)
async def test_icons_titles_and_meta(revision: str) -> None:
    made = App("a")
    made.prompt(studio, name="p", title="T", icons=[types.Icon(src="https://e.com/i")], meta={"com.e/x": 1})
    (entry,) = (await (await client(made, revision)).result("prompts/list"))["prompts"]
    assert ("title" in entry) is ("_meta" in entry) is (revision >= "2025-06-18")
    assert ("icons" in entry) is (revision >= "2025-11-25")


@pytest.mark.req("H-058", "M-217")
@pytest.mark.parametrize("revision", ALL)
async def test_content_of_every_kind_in_tools_and_prompts(revision: str) -> None:
    made = App("a")
    blocks = [
        types.TextContent(text="t", annotations=types.Annotations(audience=["user"])),
        IMAGE,
        AUDIO,
        LINK,
        EMBEDDED,
    ]

    @made.prompt
    def show() -> Any:
        return blocks

    @made.tool(title="T", icons=[types.Icon(src="https://e.com/i")], meta={"com.e/x": 1})
    def tool() -> Any:
        return blocks

    peer = await client(made, revision)
    (entry,) = (await peer.result("tools/list"))["tools"]
    assert ("icons" in entry) is (revision >= "2025-11-25")
    assert ("title" in entry) is ("_meta" in entry) is (revision >= "2025-06-18")
    shown = [message["content"] for message in (await peer.result("prompts/get", {"name": "show"}))["messages"]]
    assert shown == (await peer.call("tool"))["content"]
    assert shown[0] == {"type": "text", "text": "t", "annotations": {"audience": ["user"]}}
    audio = "audio" if revision >= "2025-03-26" else "text"
    link = "resource_link" if revision >= "2025-06-18" else "text"
    assert [block["type"] for block in shown] == ["text", "image", audio, link, "resource"]


async def test_a_context_makes_logging_a_feature() -> None:
    made = App("a")

    @made.prompt
    async def chatty(context: Context) -> str:
        await context.log("info", "x")
        return ""

    peer = Client(made, LATEST)
    assert (await peer.result("server/discover"))["capabilities"] == {
        "prompts": {"listChanged": True},
        "logging": {},
    }
