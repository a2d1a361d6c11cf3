"""Functions as tools and resources: schemas, checks both ways, failures, threads."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import json
import logging
import math
import threading
from typing import Annotated, Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from msgspec import Meta
from referencing import Registry
from tests.core.wired import LIMIT, Wired, call
from tests.server.app_types import BAD, GOOD, MISFITS, RETURNED, Colour, Point, Tree, User
from tests.server.client import ALL, LATEST, Client, client, modern_meta, text_of

from typedmcp import App, Context, MCPError, ToolError, types
from typedmcp.core.errors import UsageError

VAR: contextvars.ContextVar[str] = contextvars.ContextVar("VAR", default="unset")


def app(*functions: Any, **options: Any) -> App:
    made = App("app", "1.0.0", **options)
    for function in functions:
        made.tool(function)
    return made


async def listed(made: App, revision: str = LATEST) -> list[Any]:
    return list((await (await client(made, revision)).result("tools/list"))["tools"])


def validator(schema: Any) -> Draft202012Validator:
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, registry=Registry())


def with_annotations(parameter: Any = None, returned: Any = None, value: Any = None) -> Any:
    """A function annotated at run time."""
    seen: list[Any] = []

    async def tool(value: Any) -> Any:
        seen.append(value)

    async def returning() -> Any:
        return value

    if parameter is not None or returned is None:
        tool.__annotations__ = {"value": parameter}
        return tool, seen
    returning.__annotations__ = {"return": returned}
    returning.__name__ = "tool"
    return returning, seen


# -- what a signature says -------------------------------------------------------------------------------------------


@pytest.mark.req("A-117", "M-194")
@pytest.mark.parametrize(("annotation", "value", "seen_as"), GOOD, ids=map(str, range(len(GOOD))))
async def test_arguments_of_every_type_family(annotation: Any, value: Any, seen_as: Any) -> None:  # F079
    function, seen = with_annotations(annotation)
    made = app(function)
    (descriptor,) = await listed(made)
    schema = descriptor["inputSchema"]
    assert schema["type"] == "object"
    assert list(validator(schema).iter_errors({"value": value})) == []
    result = await Client(made).call("tool", {"value": value})
    assert "isError" not in result, result
    assert seen == [seen_as]
    assert type(seen[0]) is type(seen_as)


@pytest.mark.req("M-200", "M-206")
@pytest.mark.parametrize(("annotation", "value"), BAD, ids=map(str, range(len(BAD))))
async def test_misfits_of_every_type_family(annotation: Any, value: Any) -> None:  # F080
    function, seen = with_annotations(annotation)
    result = await Client(app(function)).call("tool", {"value": value})
    assert result["isError"] is True
    assert "/value" in text_of(result) or "value" in text_of(result)
    assert seen == []


@pytest.mark.req("A-117", "M-066", "M-194")
async def test_the_whole_descriptor() -> None:
    def search(
        query: Annotated[str, "What to look for."],
        limit: Annotated[int, Meta(ge=1, le=50, description="How many.")] = 10,
        *,
        colour: Colour | None = None,
        exact: bool = False,
    ) -> list[str]:
        """Find things.

        More about finding.
        """
        return []

    (descriptor,) = await listed(app(search))
    assert (descriptor["name"], descriptor["description"]) == ("search", "Find things.\n\nMore about finding.")
    schema = descriptor["inputSchema"]
    assert schema["type"] == "object"
    assert schema["required"] == ["query"]
    assert schema["additionalProperties"] is False
    assert list(schema["properties"]) == ["query", "limit", "colour", "exact"]
    assert schema["properties"]["query"] == {"type": "string", "description": "What to look for."}
    assert schema["properties"]["limit"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 50,
        "description": "How many.",
        "default": 10,
    }
    assert schema["properties"]["exact"]["default"] is False
    assert descriptor["outputSchema"]["properties"]["result"] == {"type": "array", "items": {"type": "string"}}


def google(a: int, b: str = "x") -> None:
    """Short.

    Long.

    Args:
        a: The first,
            continued.
        b (str): The second: with a colon.

    Returns:
        Nothing: at all.
    """


def numpy_style(a: int, b: str = "x") -> None:
    """Short.

    Long.

    Parameters
    ----------
    a : int
        The first,
        continued.
    b : str, optional
        The second: with a colon.

    Returns
    -------
    None
        Nothing: at all.
    """


def rest(a: int, b: str = "x") -> None:
    """Short.

    Long.

    :param a: The first,
        continued.
    :param str b: The second: with a colon.
    :returns: Nothing: at all.
    """


@pytest.mark.parametrize("function", [google, numpy_style, rest])
async def test_docstrings_of_three_styles(function: Any) -> None:
    (descriptor,) = await listed(app(function))
    assert descriptor["description"] == "Short.\n\nLong."
    properties = descriptor["inputSchema"]["properties"]
    assert properties["a"]["description"] == "The first, continued."
    assert properties["b"]["description"] == "The second: with a colon."


async def test_the_annotation_speaks_before_the_docstring() -> None:
    def f(a: Annotated[int, "Annotated."], b: Annotated[int, Meta(ge=1)]) -> None:
        """F.

        Args:
            a: Documented.
            b: Documented too.
        """

    (descriptor,) = await listed(app(f))
    assert descriptor["inputSchema"]["properties"]["a"]["description"] == "Annotated."
    assert descriptor["inputSchema"]["properties"]["b"] == {
        "type": "integer",
        "minimum": 1,
        "description": "Documented too.",
    }


async def test_without_docstring_there_is_no_description() -> None:
    (descriptor,) = await listed(app(with_annotations(int)[0]))
    assert "description" not in descriptor


@pytest.mark.parametrize("default", [[1, 2], {"a": 1}, {3}, [], None, 5, "x", Colour.RED, Point(1, 2)])
async def test_defaults_apply_and_are_not_shared_between_calls(default: Any) -> None:
    seen: list[Any] = []

    async def tool(value: Any = default) -> None:
        seen.append(value if not isinstance(value, (list, dict, set)) else type(value)(value))
        if isinstance(value, list):
            value.append(99)
        elif isinstance(value, dict):
            value["z"] = 99
        elif isinstance(value, set):
            value.add(99)

    made = app(tool)
    await listed(made)
    for _ in range(2):
        assert "isError" not in await Client(made).call("tool", {})
    assert "isError" not in await Client(made).call("tool"), "absent arguments are an empty object"
    assert seen == [default] * 3


@pytest.mark.req("M-200")
async def test_unknown_arguments_are_named_with_the_known_ones() -> None:  # F081
    async def walk(max_depth: int = 3, start: str = "") -> str:
        raise AssertionError("must not run")

    text = text_of(await Client(app(walk)).call("walk", {"depth": 5, "b": 1}))
    for name in ("'depth'", "'b'", "'max_depth'", "'start'"):
        assert name in text
    none = text_of(await Client(app(with_annotations(int)[0])).call("tool", {"value": 1, "x/y": 2}))
    assert "'x/y'" in none


@pytest.mark.req("M-200", "M-034")
async def test_every_violation_is_named_and_their_number_bounded() -> None:
    async def many(a: int, b: list[int], c: Point, d: str = "") -> None: ...

    peer = Client(app(many))
    result = await peer.call("many", {"a": "x", "b": [1, "x", 2, None], "c": {"y": "z"}})
    text = text_of(result)
    for pointer in ("/a", "/b/1", "/b/3", "/c"):
        assert f"{pointer}:" in text
    assert "'x'" in text
    flood = await peer.call("many", {"a": 1, "b": ["x"] * 10_000, "c": {"x": 1}})
    assert len(text_of(flood)) < 10_000
    long = await peer.call("many", {"a": "y" * 1_000_000, "b": [], "c": {"x": 1}})
    assert len(text_of(long)) < 10_000


@pytest.mark.req("H-057", "M-200")
@pytest.mark.parametrize("revision", ALL)
async def test_how_a_misfit_is_told_depends_on_the_revision(revision: str) -> None:
    async def f(a: int) -> None: ...

    peer = await client(app(f), revision)
    answer = await peer.ask("tools/call", {"name": "f", "arguments": {"a": "x"}})
    if revision >= "2025-11-25":
        assert answer["result"]["isError"] is True
        return
    assert answer["error"]["code"] == -32602
    assert answer["error"]["data"]["violations"] == [{"pointer": "/a", "message": "expected integer, got string"}]
    assert len(answer["error"]["message"]) < 100


@pytest.mark.req("M-200", "A-051")
@pytest.mark.parametrize("arguments", [[], "x", "{}", 5, True])
async def test_a_malformed_call_is_a_protocol_error(arguments: Any) -> None:
    async def f() -> None: ...

    assert (await Client(app(f)).error("tools/call", {"name": "f", "arguments": arguments}))["code"] == -32602


@pytest.mark.req("M-199", "A-047")
@pytest.mark.parametrize("revision", ALL)
async def test_an_unknown_tool_is_invalid_params(revision: str) -> None:
    async def f() -> None: ...

    error = await (await client(app(f), revision)).error("tools/call", {"name": "nope"})
    assert error["code"] == -32602
    assert "nope" in error["message"]


async def test_arguments_nested_too_deeply() -> None:
    async def f(a: Any) -> None: ...

    wired = Wired(app(f).server)
    meta = json.dumps(modern_meta())
    for depth in (500, 100_000):
        deep = "[" * depth + "]" * depth
        wired.receive(
            f'{{"jsonrpc":"2.0","id":{depth},"method":"tools/call",'
            f'"params":{{"name":"f","arguments":{{"a":{deep}}},"_meta":{meta}}}}}'
        )
    answers = await wired.until(2)
    assert {answer.get("id") for answer in answers} <= {500, 100_000, None}
    assert all("result" in answer or answer["error"]["code"] in (-32700, -32602) for answer in answers)


# -- what cannot be a tool -------------------------------------------------------------------------------------------


def positional_only(a: int, /) -> None: ...
def variadic(*a: int) -> None: ...
def keywords(**a: int) -> None: ...
def context_by_position(context: Context, /) -> None: ...
def two_contexts(one: Context, two: Context) -> None: ...
def impossible(a: threading.Lock) -> None: ...
def impossible_result() -> threading.Lock: ...
def unresolved(a: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.req("M-203")
@pytest.mark.parametrize(
    "function",
    [
        positional_only,
        variadic,
        keywords,
        context_by_position,
        two_contexts,
        impossible,
        impossible_result,
        unresolved,
    ],
    ids=lambda f: f.__name__,
)
def test_signatures_that_cannot_be_tools(function: Any) -> None:
    with pytest.raises(UsageError, match=function.__name__):
        app(function)


@pytest.mark.req("M-203")
@pytest.mark.parametrize("name", ["a b", "a/b", "ä", "x" * 129, "a\n", "a,b"])
def test_names_that_are_not_allowed(name: str) -> None:
    with pytest.raises(UsageError, match="name"):
        App("a").tool(google, name=name)


@pytest.mark.req("M-203", "A-122", "M-193")
async def test_names_are_unique_case_sensitive_and_listed_in_order() -> None:
    made = App("a")
    for name in ("z", "a", "Z", "x" * 128, "a.b-c_d.9"):
        made.tool(google, name=name)
    with pytest.raises(UsageError, match="'z'"):
        made.tool(rest, name="z")
    for _ in range(2):
        assert [tool["name"] for tool in await listed(made)] == ["z", "a", "Z", "x" * 128, "a.b-c_d.9"]


def test_the_decorator_returns_the_function_itself() -> None:
    made = App("a")

    @made.tool
    def one() -> int:
        return 1

    @made.tool(name="second", description="D")
    def two() -> int:
        return 2

    @made.resource("docs://three")
    def three() -> str:
        return "3"

    assert (one(), two(), three()) == (1, 2, "3")


@pytest.mark.req("H-058")
async def test_options_of_a_tool() -> None:
    made = App("a")
    made.tool(
        google,
        name="n",
        title="T",
        description="D",
        annotations=types.ToolAnnotations(read_only_hint=True),
        meta={"com.example/x": 1},
    )
    (descriptor,) = await listed(made)
    assert (descriptor["title"], descriptor["description"]) == ("T", "D")
    assert (descriptor["annotations"], descriptor["_meta"]) == ({"readOnlyHint": True}, {"com.example/x": 1})


class Greeter:
    """Greets."""

    def __init__(self, word: str) -> None:
        self.word = word

    async def greet(self, name: str) -> str:
        return f"{self.word} {name}"

    def shout(self, name: str) -> str:
        return f"{self.word} {name}".upper()

    @staticmethod
    def still(name: str) -> str:
        return name

    async def __call__(self, name: str) -> str:
        return f"called {name}"


async def power(base: int, exponent: int) -> int:
    return int(base**exponent)


@pytest.mark.parametrize(
    ("function", "arguments", "text"),
    [
        (Greeter("hi").greet, {"name": "A"}, "hi A"),
        (Greeter("hi").shout, {"name": "A"}, "HI A"),
        (Greeter.still, {"name": "A"}, "A"),
        (Greeter("hi"), {"name": "A"}, "called A"),
        (functools.partial(power, exponent=2), {"base": 3}, "9"),
    ],
    ids=["method", "plain method", "static method", "callable", "partial"],
)
async def test_callables_of_every_kind(function: Any, arguments: Any, text: str) -> None:
    made = App("a")
    made.tool(function, name="t")
    peer = Client(made)
    assert (await listed(made))[0].get("description") in (None, "Greets.")
    assert text_of(await peer.call("t", arguments)) == text
    assert "expected" in text_of(await peer.call("t", {key: [] for key in arguments})), "its types are known"


# -- context ---------------------------------------------------------------------------------------------------------


async def test_the_context_is_given_and_is_no_argument() -> None:
    async def later(a: int, context: Context) -> str:
        return f"{context.method} {context.request_id} {a}"

    def first(ctx: Context, a: int = 1) -> str:
        return f"{ctx.revision} {a}"

    made = app(later, first)
    peer = Client(made)
    assert [list(tool["inputSchema"]["properties"]) for tool in await listed(made)] == [["a"], ["a"]]
    assert text_of(await peer.call("later", {"a": 2})).startswith("tools/call ")
    assert text_of(await peer.call("first", {})) == f"{LATEST} 1"
    assert (await peer.call("first", {"ctx": {}}))["isError"] is True


# -- results ---------------------------------------------------------------------------------------------------------


@pytest.mark.req("M-195", "M-197", "M-198", "M-066")
@pytest.mark.parametrize(("annotation", "value", "structured"), RETURNED, ids=map(str, range(len(RETURNED))))
@pytest.mark.parametrize("revision", ["2025-06-18", LATEST])
async def test_results_of_every_type_family(
    annotation: Any, value: Any, structured: Any, revision: str
) -> None:  # F090
    made = app(with_annotations(returned=annotation, value=value)[0])
    (descriptor,) = await listed(made, revision)
    assert descriptor["outputSchema"]["type"] == "object"
    result = await (await client(made, revision)).call("tool", {})
    assert "isError" not in result, result
    assert result["structuredContent"] == structured
    assert list(validator(descriptor["outputSchema"]).iter_errors(structured)) == []
    shown = text_of(result)
    inner = structured["result"] if set(structured) == {"result"} else structured
    assert shown == inner or json.loads(shown) == inner


@pytest.mark.req("M-195", "M-201")
@pytest.mark.parametrize(("annotation", "value"), MISFITS, ids=map(str, range(len(MISFITS))))
async def test_a_result_that_does_not_fit_its_annotation_never_leaves(
    annotation: Any, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    result = await Client(app(with_annotations(returned=annotation, value=value)[0])).call("tool", {})
    assert result["isError"] is True
    assert "structuredContent" not in result
    assert text_of(result) == "Tool failed"
    assert caplog.records


@pytest.mark.req("M-066", "M-067", "M-195")
@pytest.mark.parametrize("annotation", [Tree, list[Tree], dict[str, Tree], Tree | None])
async def test_recursive_types_have_one_definition_that_resolves(annotation: Any) -> None:
    async def tool(value: Any) -> Any:
        return value

    tool.__annotations__ = {"value": annotation, "return": annotation}
    (descriptor,) = await listed(app(tool))
    good = {"label": "a", "children": [{"label": "b", "children": []}]}
    bad = {"label": "a", "children": [{"label": 5, "children": []}]}

    def dress(value: Any) -> Any:
        return [value] if annotation == list[Tree] else {"k": value} if annotation == dict[str, Tree] else value

    for schema, wrap in (
        (descriptor["inputSchema"], "value"),
        (descriptor["outputSchema"], None if annotation in (Tree, dict[str, Tree]) else "result"),
    ):
        assert json.dumps(schema).count('"$defs"') == 1
        assert list(schema["$defs"]) == ["Tree"]
        check = validator(schema)
        assert not list(check.iter_errors(dress(good) if wrap is None else {wrap: dress(good)}))
        assert list(check.iter_errors(dress(bad) if wrap is None else {wrap: dress(bad)}))


@pytest.mark.req("M-198", "A-030")
@pytest.mark.parametrize(
    ("value", "content"),
    [
        (None, []),
        ("plain", [{"type": "text", "text": "plain"}]),
        (7, [{"type": "text", "text": "7"}]),
        ({"a": 1}, [{"type": "text", "text": '{"a":1}'}]),
        (b"\xff\x00", [{"type": "text", "text": '"/wA="'}]),
        ([], [{"type": "text", "text": "[]"}]),
        (types.TextContent(text="t"), [{"type": "text", "text": "t"}]),
        (
            [types.TextContent(text="t"), types.ImageContent(data="AAAA", mime_type="image/png")],
            [{"type": "text", "text": "t"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}],
        ),
        (types.CallToolResult(content=[], is_error=True), []),
    ],
    ids=str,
)
async def test_without_an_annotation_nothing_is_promised(value: Any, content: Any) -> None:
    async def tool():  # type: ignore[no-untyped-def]
        return value

    made = app(tool)
    assert "outputSchema" not in (await listed(made))[0]
    result = await Client(made).call("tool", {})
    assert result["content"] == content
    assert "structuredContent" not in result


async def blocks() -> list[types.TextContent | types.ImageContent]:
    return [types.TextContent(text="t")]


async def one_block() -> types.TextContent:
    return types.TextContent(text="t")


async def whole() -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text="t")], structured_content=[1], meta={"com.example/a": 1}
    )


async def maybe_block() -> types.TextContent | None:
    return types.TextContent(text="t")


@pytest.mark.req("M-197")
@pytest.mark.parametrize("function", [blocks, one_block, whole, maybe_block])
async def test_content_passes_through(function: Any) -> None:  # F091
    made = app(function)
    assert "outputSchema" not in (await listed(made))[0]
    result = await Client(made).call(function.__name__, {})
    assert text_of(result) == "t"
    if function is whole:
        assert result["structuredContent"] == [1]
        assert result["_meta"]["com.example/a"] == 1


NO_JSON: dict[str, tuple[Any, str]] = {
    "NaN": (math.nan, "top"),
    "inf inside": ({"mean": [1, math.inf]}, "/mean/1"),
    "escaped key": ({"a/b": {"~": -math.inf}}, "/a~1b/~0"),
    "half a pair": ("\ud800", ""),
    "half a pair inside": ({"a": ["\ud800"]}, ""),
    "block": (types.TextContent(text="\ud800"), ""),
    "blocks": ([types.TextContent(text="a"), types.TextContent(text="\ud800")], ""),
    "structured": (types.CallToolResult(content=[], structured_content={"x": math.nan}), "/structured"),
    "object": (object(), ""),
}


@pytest.mark.req("M-201", "A-034", "M-008")
@pytest.mark.parametrize("name", NO_JSON)
@pytest.mark.parametrize("annotation", [None, Any])
async def test_a_result_without_json_form_is_a_failed_tool(name: str, annotation: Any) -> None:  # F027, F088, F089
    value, where = NO_JSON[name]

    async def tool():  # type: ignore[no-untyped-def]
        return value

    if annotation is not None:
        tool.__annotations__ = {"return": annotation}
    result = await Client(app(tool)).call("tool", {})
    assert result["isError"] is True
    assert text_of(result).startswith("Tool failed")
    assert where in text_of(result)


@pytest.mark.req("M-195", "M-201")
@pytest.mark.parametrize(
    ("annotation", "value", "where"),
    [
        (float, math.nan, ""),
        (list[float], [1.0, math.inf], "/1"),
        (dict[str, float], {"a/b": math.nan}, "/a~1b"),
        (str, "\ud800", ""),
        (list[str], ["\ud800"], ""),
        (Tree, Tree("\ud800"), ""),
    ],
    ids=["NaN", "inf", "NaN in a dict", "half a pair", "half a pair in a list", "half a pair in an object"],
)
async def test_a_typed_result_without_json_form_is_a_failed_tool(annotation: Any, value: Any, where: str) -> None:
    result = await Client(app(with_annotations(returned=annotation, value=value)[0])).call("tool", {})
    assert result["isError"] is True
    assert text_of(result).startswith("Tool failed")
    assert where in text_of(result)
    assert "structuredContent" not in result


# -- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.req("M-201", "A-034", "A-050")
@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_tool_error_passes_and_other_errors_do_not_leak(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async def told() -> int:
        raise ToolError("the file is locked")

    async def leaked() -> int:
        raise ValueError("secret at /etc/passwd")

    def told_plainly() -> int:
        raise ToolError("the file is locked")

    def leaked_plainly() -> int:
        raise ValueError("secret at /etc/passwd")

    suffix = "" if kind == "async" else "_plainly"
    peer = Client(app(told, leaked, told_plainly, leaked_plainly))
    result = await peer.call("told" + suffix, {})
    assert (result["isError"], text_of(result)) == (True, "the file is locked")
    assert caplog.records == [], "what is told on purpose is no fault"
    result = await peer.call("leaked" + suffix, {})
    assert (result["isError"], text_of(result)) == (True, "Tool failed")
    assert all(b"secret" not in frame for frame in peer.wired.frames)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("typedmcp", logging.ERROR)
    assert record.exc_info
    assert "secret" in caplog.text


@pytest.mark.req("M-195", "M-201")
async def test_a_tool_error_may_bring_content() -> None:  # F092
    async def fails() -> int:
        raise ToolError(
            "x",
            content=[types.TextContent(text="a"), types.TextContent(text="b")],
            structured_content={"code": "X"},
            meta={"com.example/a": 1},
        )

    result = await Client(app(fails)).call("fails", {})
    assert [block["text"] for block in result["content"]] == ["a", "b"]
    assert (result["isError"], result["structuredContent"]) == (True, {"code": "X"})
    assert result["_meta"]["com.example/a"] == 1


@pytest.mark.req("M-002")
async def test_a_tool_error_with_half_a_surrogate_pair_is_told() -> None:
    async def fails() -> int:
        raise ToolError("bad \ud800 luck")

    result = await Client(app(fails)).call("fails", {})
    assert result["isError"] is True
    assert text_of(result).startswith("bad ")


@pytest.mark.req("M-029", "M-201")
async def test_a_protocol_error_raised_on_purpose_passes() -> None:
    async def fails() -> int:
        raise MCPError(-1000, "not now", {"retry": 5})

    assert await Client(app(fails)).error("tools/call", {"name": "fails"}) == {
        "code": -1000,
        "message": "not now",
        "data": {"retry": 5},
    }


@pytest.mark.parametrize("kind", [StopIteration, SystemExit, KeyboardInterrupt, GeneratorExit])
async def test_a_thread_cannot_end_the_process(kind: type[BaseException]) -> None:
    def fails() -> int:
        raise kind

    result = await Client(app(fails)).call("fails", {})
    assert (result["isError"], text_of(result)) == (True, "Tool failed")


# -- resources -------------------------------------------------------------------------------------------------------


def library() -> App:
    made = App("library", "1.0.0")

    @made.resource("docs://text", mime_type="text/markdown", title="Text")
    def text() -> str:
        """A text."""
        return "é\u2028"

    @made.resource("docs://bytes", name="raw")
    async def raw(context: Context) -> bytes:
        return b"\xff\x00"

    @made.resource("docs://fails")
    async def fails() -> str:
        raise ValueError("secret")

    @made.resource("docs://told")
    def told() -> str:
        raise ToolError("it is being printed")

    @made.resource("docs://odd")
    def odd() -> Any:
        return 5

    @made.resource("docs://half")
    def half() -> str:
        return "\ud800"

    return made


@pytest.mark.req("M-209", "M-212", "M-211")
@pytest.mark.parametrize("revision", ALL)
async def test_resources_are_listed_and_read(revision: str) -> None:  # F090
    peer = await client(library(), revision)
    resources = (await peer.result("resources/list"))["resources"]
    assert [entry["uri"] for entry in resources][:2] == ["docs://text", "docs://bytes"]
    title = {"title": "Text"} if revision >= "2025-06-18" else {}
    described = {"name": "text", "uri": "docs://text", "description": "A text.", "mimeType": "text/markdown"}
    assert resources[0] == {**described, **title}
    assert resources[1] == {"name": "raw", "uri": "docs://bytes"}
    (content,) = (await peer.result("resources/read", {"uri": "docs://text"}))["contents"]
    assert content == {"uri": "docs://text", "mimeType": "text/markdown", "text": "é\u2028"}
    (content,) = (await peer.result("resources/read", {"uri": "docs://bytes"}))["contents"]
    assert content == {"uri": "docs://bytes", "blob": "/wA="}


@pytest.mark.req("M-210", "M-211", "H-053", "M-030")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("uri", ["docs://nope", "", "docs://text/", "DOCS://text", "file:///etc/passwd"])
async def test_a_resource_that_is_not_there(revision: str, uri: str) -> None:
    error = await (await client(library(), revision)).error("resources/read", {"uri": uri})
    assert error["code"] == (-32602 if revision == LATEST else -32002)
    assert error["data"] == {"uri": uri}


@pytest.mark.req("M-210", "H-053")
@pytest.mark.parametrize(
    ("uri", "message"),
    [("docs://fails", None), ("docs://told", "it is being printed"), ("docs://odd", None), ("docs://half", None)],
)
async def test_a_resource_that_cannot_be_read(uri: str, message: str | None, caplog: pytest.LogCaptureFixture) -> None:
    peer = Client(library())
    error = await peer.error("resources/read", {"uri": uri})
    assert error["code"] == -32603
    if message:
        assert error["message"] == message
    else:
        assert caplog.records
    assert all(b"secret" not in frame for frame in peer.wired.frames)


@pytest.mark.req("M-212")
@pytest.mark.parametrize("uri", ["", "text", "/a/b", "docs: //x", "1docs://x", "docs://a b", "docs://\n"])
def test_an_address_without_a_scheme_is_refused(uri: str) -> None:
    with pytest.raises(UsageError):
        App("a").resource(uri)(lambda: "x")


def test_resources_take_no_arguments_and_have_one_address_each() -> None:
    made = library()
    with pytest.raises(UsageError, match="argument"):
        made.resource("docs://x")(google)
    with pytest.raises(UsageError, match="docs://text"):
        made.resource("docs://text")(lambda: "x")


@pytest.mark.req("M-232")
@pytest.mark.parametrize("cursor", ["", "x"])
async def test_a_cursor_that_is_none_of_ours_is_invalid(cursor: str) -> None:
    made = library()
    made.tool(google)
    peer = Client(made)
    for method in ("tools/list", "resources/list", "resources/templates/list"):
        assert (await peer.error(method, {"cursor": cursor}))["code"] == -32602


# -- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.req("H-018", "M-022")
async def test_a_blocking_tool_does_not_stop_a_ping() -> None:  # F103
    release = threading.Event()

    def block() -> str:
        assert release.wait(LIMIT)
        return threading.current_thread().name

    peer = await client(app(block), "2025-11-25")
    peer.wired.receive(peer.message("tools/call", {"name": "block"}, id="b"))
    assert await peer.result("ping") == {}
    assert all(answer.get("id") != "b" for answer in peer.wired.sent)
    release.set()
    last = (await peer.wired.until(3))[-1]
    assert "worker" in text_of(last["result"])


async def test_context_variables_reach_the_thread() -> None:
    def read() -> str:
        value = VAR.get()
        VAR.set("changed in the thread")
        return value

    VAR.set("set by the caller")
    assert text_of(await Client(app(read)).call("read", {})) == "set by the caller"
    assert VAR.get() == "set by the caller"


async def test_blocking_tools_that_call_back_do_not_starve() -> None:  # F104
    """As many as there are threads, each waiting for an answer of the same server."""
    count = 41
    barrier = threading.Barrier(count)
    loop = asyncio.get_running_loop()

    def outer(number: int) -> int:
        barrier.wait(LIMIT)
        inner = peer.server.dispatch(
            call(number, "tools/call", name="inner", arguments={"number": number}, _meta=modern_meta())
        )
        return int(asyncio.run_coroutine_threadsafe(inner, loop).result(LIMIT).result.structured_content["result"])

    async def inner(number: int) -> int:
        return number * 2

    peer = Client(app(outer, inner, max_workers=count))
    answers = await asyncio.gather(*(peer.call("outer", {"number": number}) for number in range(count)))
    assert [answer["structuredContent"]["result"] for answer in answers] == [number * 2 for number in range(count)]


async def test_more_plain_calls_than_threads_wait_their_turn() -> None:
    running, most = 0, 0
    lock = threading.Lock()

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.002)
        with lock:
            running -= 1

    peer = Client(app(work, max_workers=3))
    results = await asyncio.gather(*(peer.call("work", {}) for _ in range(30)))
    assert len(results) == 30
    assert 1 < most <= 3


async def test_threads_that_end_when_idle_lose_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typedmcp.server.threads._IDLE_SECONDS", 0.001)
    peer = Client(app(still_served, max_workers=2))
    for number in range(100):
        if number % 4 == 0:
            await asyncio.sleep(0.002)  # about as long as a thread waits for work
        assert text_of(await asyncio.wait_for(peer.call("still_served"), LIMIT)) == "still served"


def test_max_workers_is_at_least_one() -> None:
    with pytest.raises(UsageError):
        App("a", max_workers=0)


async def test_progress_from_a_thread_comes_in_order_and_before_the_result() -> None:
    def work(context: Context) -> str:
        for step in range(20):
            context.report_progress(step)
        return "done"

    peer = Client(app(work))
    await peer.call("work", {}, {"progressToken": "t"})
    steps = [message["params"]["progress"] for message in peer.notifications()]
    assert steps == list(range(20))
    assert "result" in peer.wired.sent[-1]


def test_two_event_loops_in_two_threads_serve_one_app() -> None:  # F108
    def plain(number: int) -> int:
        return number

    async def eager(number: int) -> int:
        await asyncio.sleep(0)
        return number

    made = app(plain, eager)
    barrier = threading.Barrier(2)
    outcomes: list[Any] = []

    async def serve(base: int) -> None:
        peer = await client(made, ALL[base % len(ALL)])
        for number in range(base, base + 20):
            for name in ("plain", "eager"):
                assert text_of(await peer.call(name, {"number": number})) == str(number)

    def run(base: int) -> None:
        try:
            barrier.wait(LIMIT)
            asyncio.run(serve(base))
            outcomes.append("served")
        except BaseException as error:  # noqa: BLE001 - told to the main thread
            outcomes.append(error)

    threads = [threading.Thread(target=run, args=(base,)) for base in (3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert outcomes == ["served", "served"]


@pytest.mark.req("M-139", "M-140")
async def test_what_a_cancelled_plain_tool_returns_is_dropped() -> None:
    entered, release, left = threading.Event(), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def work() -> str:
        entered.set()
        release.wait(LIMIT)
        loop.call_soon_threadsafe(left.set)
        return "late"

    peer = Client(app(work))
    peer.wired.receive(peer.message("tools/call", {"name": "work"}, id="w"))
    await loop.run_in_executor(None, entered.wait, LIMIT)
    peer.wired.receive({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "w"}})
    release.set()
    await asyncio.wait_for(left.wait(), LIMIT)
    assert await peer.wired.idle() == []
    assert text_of(await Client(app(still_served)).call("still_served", {})) == "still served"


def still_served() -> str:
    return "still served"


# -- types of the arguments struct never leak ------------------------------------------------------------------------


async def test_an_object_argument_sent_as_text_is_refused() -> None:  # F080
    async def f(user: User) -> str:
        raise AssertionError("must not run")

    text = text_of(await Client(app(f)).call("f", {"user": '{"firstName":"x"}'}))
    assert "expected object, got string" in text


@pytest.mark.req("M-008")
async def test_integers_are_exact_both_ways() -> None:  # F025
    async def f(n: int, m: Any) -> list[int]:
        return [n, m]

    for number in (2**53 + 1, 2**64, 2**64 + 10**18 + 2):
        result = await Client(app(f)).call("f", {"n": number, "m": number})
        assert result["structuredContent"] == {"result": [number, number]}
        assert text_of(result) == f"[{number},{number}]"
    assert msgspec.json.encode(2**64) == b"18446744073709551616"
