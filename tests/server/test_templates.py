"""Resource templates: variables as parameters, contents of every kind, conflicts refused."""

from __future__ import annotations

import datetime
import enum
import json
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta
from tests.server.client import ALL, LATEST, Client, client

from typedmcp import App, Context, ToolError, types
from typedmcp.core.errors import UsageError


class Colour(enum.Enum):
    RED = "red"


def library() -> App:
    made = App("library", "1.0.0")

    @made.resource("test://template/{id}/data", mime_type="application/json")
    def by_id(id: str) -> str:  # noqa: A002
        """Data of one id.

        Args:
            id: Which.
        """
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})

    @made.resource("file:///docs/café/{name}", name="cafe")
    async def cafe(name: str, context: Context) -> str:
        return f"{name} in {context.revision}"

    @made.resource("tree://{+path}")
    def tree(path: str) -> bytes:
        return path.encode()

    @made.resource("days://{day}/{number}/{flag}/{colour}/{size}")
    def days(day: datetime.date, number: int, flag: bool, colour: Colour, size: Literal["s", "m"]) -> str:
        return repr((day, number, flag, colour, size))

    @made.resource("bounded://{n}")
    def bounded(n: Annotated[int, Meta(le=9)]) -> str:
        return str(n)

    @made.resource("many://{n}")
    def many(n: int) -> Any:
        return [
            "text",
            b"\x00",
            types.TextResourceContents(uri=f"many://{n}/inner", text="own"),
            types.BlobResourceContents(uri=f"many://{n}/blob", blob="AAA=", mime_type="image/png"),
        ]

    @made.resource("fails://{why}")
    def fails(why: str) -> Any:
        if why == "told":
            raise ToolError("it is being printed")
        if why == "odd":
            return 5
        raise ValueError("secret")

    return made


async def read(peer: Client, uri: str) -> Any:
    return (await peer.result("resources/read", {"uri": uri}))["contents"]


@pytest.mark.req("M-209", "H-058")
@pytest.mark.parametrize("revision", ALL)
async def test_templates_are_listed_apart_from_resources(revision: str) -> None:
    peer = await client(library(), revision)
    assert (await peer.result("resources/list"))["resources"] == []
    listed = (await peer.result("resources/templates/list"))["resourceTemplates"]
    assert listed[0] == {
        "name": "by_id",
        "uriTemplate": "test://template/{id}/data",
        "description": "Data of one id.",
        "mimeType": "application/json",
    }
    assert listed[1] == {"name": "cafe", "uriTemplate": "file:///docs/café/{name}"}


@pytest.mark.req("M-209", "M-212", "B-103", "B-104")
@pytest.mark.parametrize("revision", ALL)
async def test_a_template_is_read_by_its_addresses(revision: str) -> None:  # F109, F111
    peer = await client(library(), revision)
    (content,) = await read(peer, "test://template/123/data")
    assert (content["uri"], content["mimeType"]) == ("test://template/123/data", "application/json")
    assert json.loads(content["text"]) == {"id": "123", "templateTest": True, "data": "Data for ID: 123"}
    for uri in ("file:///docs/café/a%20b", "file:///docs/caf%C3%A9/a%20b"):
        assert await read(peer, uri) == [{"uri": uri, "text": f"a b in {revision}"}]
    (content,) = await read(peer, "tree://a/b/c")
    assert content == {"uri": "tree://a/b/c", "blob": "YS9iL2M="}
    (content,) = await read(peer, "days://2026-07-28/5/true/red/m")
    assert content["text"] == repr((datetime.date(2026, 7, 28), 5, True, Colour.RED, "m"))


@pytest.mark.req("M-212")
async def test_contents_of_every_kind() -> None:
    assert await read(Client(library()), "many://1") == [
        {"uri": "many://1", "text": "text"},
        {"uri": "many://1", "blob": "AA=="},
        {"uri": "many://1/inner", "text": "own"},
        {"uri": "many://1/blob", "blob": "AAA=", "mimeType": "image/png"},
    ]


@pytest.mark.req("M-179", "M-180")
async def test_a_whole_result_keeps_what_it_says() -> None:
    made = App("a")

    @made.resource("x://{n}")
    def whole(n: str) -> types.ReadResourceResult:
        return types.ReadResourceResult(contents=[], ttl_ms=5, cache_scope="public")

    result = await Client(made).result("resources/read", {"uri": "x://1"})
    assert (result["contents"], result["ttlMs"], result["cacheScope"]) == ([], 5, "public")


@pytest.mark.req("M-210", "M-211", "M-213", "H-053")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("uri", ["test://template//data", "test://template/../data", "tree://a/%2e%2e/b", "tree://%FF"])
async def test_addresses_no_template_makes_are_not_found(revision: str, uri: str) -> None:
    error = await (await client(library(), revision)).error("resources/read", {"uri": uri})
    assert error == {
        "code": -32602 if revision == LATEST else -32002,
        "message": "Resource not found",
        "data": {"uri": uri},
    }


@pytest.mark.req("M-212")
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize(
    ("uri", "pointer"),
    [
        ("days://2026-07-28/x/true/red/m", "/number"),
        ("days://yesterday/5/true/red/m", "/day"),
        ("days://2026-07-28/5/true/blue/m", "/colour"),
        ("days://2026-07-28/5/true/red/xl", "/size"),
        ("bounded://10", "/n"),
    ],
)
async def test_values_their_parameters_do_not_take_are_invalid(revision: str, uri: str, pointer: str) -> None:
    error = await (await client(library(), revision)).error("resources/read", {"uri": uri})
    assert error["code"] == -32602
    assert error["data"]["uri"] == uri
    (violation,) = error["data"]["violations"]
    assert violation["pointer"] == pointer
    assert violation["message"]


@pytest.mark.req("M-210", "H-053", "M-206")
async def test_a_template_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    peer = Client(library())
    for uri in ("fails://x", "fails://odd"):
        error = await peer.error("resources/read", {"uri": uri})
        assert error["code"] == -32603
        assert "secret" not in error["message"]
    assert len(caplog.records) == 2
    assert (await peer.error("resources/read", {"uri": "fails://told"}))["message"] == "it is being printed"


@pytest.mark.req("M-212", "B-104")
async def test_a_fixed_address_outside_ascii_is_read_in_either_form() -> None:  # F111
    made = App("a")
    made.resource("docs://café")(lambda: "x")
    for uri in ("docs://café", "docs://caf%C3%A9", "docs://caf%c3%a9"):
        assert await read(Client(made), uri) == [{"uri": "docs://café", "text": "x"}]
    with pytest.raises(UsageError, match="already"):
        made.resource("docs://caf%c3%a9")(lambda: "y")


def takes(*names: str) -> Any:
    space: dict[str, Any] = {}
    exec(f"def function({', '.join(names)}): return ''", space)
    return space["function"]


@pytest.mark.req("B-107")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("x://{a}", "x://{b}"),
        ("x://{a}", "x://static"),
        ("x://static", "x://{a}"),
        ("x://{+a}", "x://b/{c}"),
        ("x://{a}/b", "x://c/{d}"),
        ("x://é/{a}", "x://%C3%A9/b"),
    ],
)
def test_two_that_answer_for_one_address_are_refused(first: str, second: str) -> None:
    made = App("a")

    def add(uri: str) -> None:
        made.resource(uri)(takes(*(name for name in "abcd" if f"{name}}}" in uri)))

    add(first)
    with pytest.raises(UsageError) as refused:
        add(second)
    assert first in str(refused.value)
    assert second in str(refused.value)
    assert made.remove_resource(first) is True
    assert made.remove_resource(first) is False
    add(second)


@pytest.mark.parametrize(
    ("uri", "names"),
    [
        ("x://{a}", ()),
        ("x://{a}", ("b",)),
        ("x://{a}", ("a", "b")),
        ("x://{a}/{b}", ("a",)),
        ("x://{a.b}", ("a",)),
    ],
)
def test_parameters_are_the_variables(uri: str, names: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="variables"):
        App("a").resource(uri)(takes(*names))


async def test_a_parameter_may_have_a_default_of_its_own() -> None:
    made = App("a")
    made.resource("x://{a}")(takes("a", "b=5"))
    assert await read(Client(made), "x://1") == [{"uri": "x://1", "text": ""}]


@pytest.mark.parametrize("annotation", [list[str], dict[str, int], types.TextContent, "list[int] | None"])
def test_a_parameter_that_no_text_makes_is_refused(annotation: Any) -> None:
    def function(a: Any) -> str:
        return ""

    function.__annotations__ = {"a": annotation, "return": str}
    with pytest.raises(UsageError, match="text"):
        App("a").resource("x://{a}")(function)


@pytest.mark.req("H-058")
@pytest.mark.parametrize("revision", ALL)
async def test_what_is_said_about_resources_and_templates(revision: str) -> None:
    made = App("a")
    icon = types.Icon(src="https://example.com/i.png")
    said: dict[str, Any] = {
        "title": "T",
        "description": "D",
        "annotations": types.Annotations(priority=1),
        "icons": [icon],
        "meta": {"com.example/x": 1},
    }
    made.resource("x://a", **said)(takes())
    made.resource("y://{a}", **said)(takes("a"))
    peer = await client(made, revision)
    (one,) = (await peer.result("resources/list"))["resources"]
    (other,) = (await peer.result("resources/templates/list"))["resourceTemplates"]
    for entry in (one, other):
        assert entry["description"] == "D"
        assert entry["annotations"] == {"priority": 1}
        assert ("title" in entry) is ("_meta" in entry) is (revision >= "2025-06-18")
        assert ("icons" in entry) is (revision >= "2025-11-25")


def test_options_that_are_none_are_refused() -> None:
    made = App("a")
    with pytest.raises(TypeError, match="nmae"):
        made.resource("x://a", nmae="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="nmae"):
        made.tool(takes(), nmae="x")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="nmae"):
        made.prompt(takes(), nmae="x")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="complete"):
        made.resource("x://a", complete={"a": lambda value: []})


@pytest.mark.req("M-191", "M-209")
async def test_a_feature_stays_when_its_last_entry_goes() -> None:
    made = App("a")
    made.resource("x://{a}")(takes("a"))
    assert made.remove_resource("x://{a}")
    peer = Client(made)
    assert (await peer.result("resources/templates/list"))["resourceTemplates"] == []
    assert (await peer.error("resources/read", {"uri": "x://1"}))["code"] == -32602
