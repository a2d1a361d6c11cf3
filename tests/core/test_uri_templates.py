"""URI templates: what is one, what it makes, what it matches, and which two share an address."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from typedmcp.core.errors import UsageError
from typedmcp.core.uri_templates import MAX_URI, URITemplate, decode, normal_form, overlap

MATCHES: list[tuple[str, str, dict[str, str] | None]] = [
    # one segment
    ("docs://{path}", "docs://a", {"path": "a"}),
    ("docs://{path}", "docs://a/b", None),
    ("docs://{path}", "docs://", None),
    ("docs://{path}", "docs://a?b", None),
    ("docs://{path}", "docs://a#b", None),
    ("docs://{path}", "docs://a%2Fb", {"path": "a/b"}),
    ("docs://{path}", "docs://London,UK", {"path": "London,UK"}),
    ("docs://{path}", "docs://a%20b+c", {"path": "a b+c"}),
    ("test://template/{id}/data", "test://template/123/data", {"id": "123"}),
    ("test://template/{id}/data", "test://template/123/date", None),
    ("test://template/{id}/data", "test://template//data", None),
    ("test://template/{id}/data", "test://template/1/2/data", None),
    ("x://{a}/{b}", "x://1/2", {"a": "1", "b": "2"}),
    ("x://{a}.{b}", "x://1.2.3", {"a": "1.2", "b": "3"}),
    ("x://{a}-{b}/{c}", "x://1-2-3/4", {"a": "1-2", "b": "3", "c": "4"}),
    # over segments
    ("docs://{+path}", "docs://a/b", {"path": "a/b"}),
    ("docs://{+path}", "docs://a/b?c#d", {"path": "a/b?c#d"}),
    ("docs://{path*}", "docs://a/b", {"path": "a/b"}),
    ("docs://{path*}", "docs://a/b?c", None),
    ("docs://{+path}", "docs://", None),
    ("docs://{+dir}/{name}", "docs://a/b/c", {"dir": "a/b", "name": "c"}),
    ("docs://{dir*}/x/{rest*}", "docs://x/x/x/x", {"dir": "x/x", "rest": "x"}),
    ("docs://{+path}.md", "docs://a/b.md", {"path": "a/b"}),
    # literals are literal
    ("data://.well-known/{n}", "data://.well-known/a", {"n": "a"}),
    ("data://.well-known/{n}", "data://Xwell-known/a", None),
    ("s://find?q={q}", "s://find?q=x", {"q": "x"}),
    ("s://find?q={q}", "s://finq=x", None),
    ("s://(a|b)+/{q}", "s://(a|b)+/x", {"q": "x"}),
    ("s://(a|b)+/{q}", "s://a/x", None),
    ("s://^$[x]*/{q}", "s://^$[x]*/x", {"q": "x"}),
    # one normal form
    ("file:///docs/café/{n}", "file:///docs/café/a", {"n": "a"}),
    ("file:///docs/café/{n}", "file:///docs/caf%C3%A9/a", {"n": "a"}),
    ("file:///docs/caf%c3%a9/{n}", "file:///docs/caf%C3%A9/a", {"n": "a"}),
    ("file:///docs/caf%C3%A9/{n}", "file:///docs/café/é", {"n": "é"}),
    ("x://{n}/%7Euser", "x://%61/~user", {"n": "a"}),
    ("x://{n}", "x://日本/", None),
    ("x://{n}", "x://日本", {"n": "日本"}),
    ("x://{n}", "x://%F0%9F%98%80", {"n": "😀"}),
    # a literal that begins like a code is no part of one
    ("x://{n}9", "x://%C3%A9", None),
    ("x://{n}9", "x://%C3%A99", {"n": "é"}),
    # values that are none
    ("x://{n}", "x://%FF", None),
    ("x://{n}", "x://%C3", None),
    ("x://{n}", "x://50%", None),
    ("x://{n}", "x://a%zz", None),
    ("x://{n}", "x://a%00", None),
    ("x://{n}", "x://..", None),
    ("x://{n}", "x://%2e%2E", None),
    ("x://{n}", "x://..%2f..%2Fetc", None),
    ("x://{n}", "x://a%5C..", None),
    ("x://{+n}", "x://a/../b", None),
    ("x://{n*}", "x://a/..", None),
    ("x://{+n}", "x://a/..b/c..", {"n": "a/..b/c.."}),
    ("x://{n}", "x://main..dev", {"n": "main..dev"}),
    ("x://{n}", "x://\ud800", None),
    ("x://{n}", "x://a\nb", {"n": "a\nb"}),
    ("x://{n}", "X://a", None),
    ("x://plain", "x://plain", {}),
    ("x://plain", "x://plain/", None),
    ("x://{n}", "", None),
    ("x://ab/{n}/b", "x://ab/b", None),
]


@pytest.mark.req("M-212", "M-213", "B-105")
@pytest.mark.parametrize(("template", "uri", "values"), MATCHES)
def test_what_a_template_matches(template: str, uri: str, values: Any) -> None:  # F109, F110, F111
    assert URITemplate(template).match(uri) == values


@pytest.mark.parametrize(
    ("template", "values", "uri"),
    [
        ("docs://{path}", {"path": "a/b"}, "docs://a%2Fb"),
        ("docs://{path*}", {"path": "a/b c"}, "docs://a/b%20c"),
        ("docs://{+path}", {"path": "a/b?c=é"}, "docs://a/b?c=%C3%A9"),
        ("docs://{+path}", {"path": "50%"}, "docs://50%25"),
        ("docs://{+path}", {"path": "%41"}, "docs://%2541"),
        ("file:///docs/café/{n}", {"n": "é"}, "file:///docs/caf%C3%A9/%C3%A9"),
        ("x://plain", {}, "x://plain"),
    ],
)
def test_what_a_template_makes(template: str, values: dict[str, str], uri: str) -> None:  # F111
    assert URITemplate(template).expand(values) == uri
    assert URITemplate(template).match(uri) == values


@pytest.mark.parametrize("values", [{}, {"path": ""}, {"other": "x"}])
def test_every_variable_needs_a_value(values: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="path"):
        URITemplate("docs://{path}").expand(values)


@pytest.mark.parametrize(
    "template",
    [
        "",
        "{x}",
        "{scheme}://x",
        "docs/{x}",
        "docs://{x",
        "docs://x}",
        "docs://{}",
        "docs://{{x}}",
        "docs://{x}{y}",
        "docs://{x}/{x}",
        "docs://{x,y}",
        "docs://{x:3}",
        "docs://{?x}",
        "docs://{/x}",
        "docs://{#x}",
        "docs://{.x}",
        "docs://{;x}",
        "docs://{&x}",
        "docs://{+x*}",
        "docs://{x y}",
        "docs://{é}",
        "docs://a b/{x}",
        "docs://a\n/{x}",
        "docs://%zz/{x}",
        "docs://100%/{x}",
    ],
)
def test_what_is_no_template(template: str) -> None:
    with pytest.raises(UsageError):
        URITemplate(template)


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ("x://{a}", "x://{b}", True),
        ("x://{a}", "x://{b}/c", False),
        ("x://{a}", "y://{b}", False),
        ("x://{+a}", "x://{b}/c", True),
        ("x://{a*}", "x://{b}/c", True),
        ("x://{a*}", "x://{b}?c={d}", False),
        ("x://{+a}", "x://{b}?c={d}", True),
        ("x://{a}/b", "x://c/{d}", True),
        ("x://{a}/b", "x://c/{d}/e", False),
        ("x://{a}.md", "x://{b}.txt", False),
        ("x://{a}.md", "x://read{b}", True),
        ("x://{a}.md", "x://read{b}me", False),
        ("x://a{a}a", "x://aa", False),
        ("x://a{a}a", "x://aaa", True),
        ("x://{a}", "x://static", True),
        ("x://{a}", "x://sta/tic", False),
        ("x://café/{a}", "x://caf%c3%a9/b", True),
        ("x://.a/{b}", "x://ba/{b}", False),
        ("x://{a}-{b}", "x://{c}_{d}", True),
        ("x://{a}/{+b}", "x://{+c}/{d}", True),
    ],
)
def test_templates_with_a_common_address(one: str, other: str, common: bool) -> None:
    first, second = URITemplate(one), URITemplate(other)
    assert overlap(first, second) is common
    assert overlap(second, first) is common


PIECES = st.sampled_from(["{a}", "{b*}", "{+c}", "/", "x", "?", "xx", "."])


@given(st.lists(PIECES, max_size=5), st.lists(PIECES, max_size=5))
def test_a_common_address_is_never_overlooked(one: list[str], other: list[str]) -> None:
    try:
        first, second = URITemplate("s:" + "".join(one)), URITemplate("s:" + "".join(other))
    except UsageError:
        return
    found = any(
        first.match("s:" + "".join(text)) is not None and second.match("s:" + "".join(text)) is not None
        for size in range(5)
        for text in itertools.product("/x?y", repeat=size)
    )
    if found:
        assert overlap(first, second)
    if overlap(first, first):
        assert overlap(second, first) is overlap(first, second)


@given(st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"])), st.sampled_from(["", "*", "+"]))
def test_what_is_expanded_is_matched_again(value: str, kind: str) -> None:
    template = URITemplate("s:é/{+v}" if kind == "+" else f"s:é/{{v{kind}}}")
    upwards = "\0" in value or ".." in value.replace("\\", "/").split("/")
    assert template.match(template.expand({"v": value})) == (None if upwards else {"v": value})


@given(st.text())
def test_the_normal_form_is_one(text: str) -> None:
    once = normal_form(text)
    assert normal_form(once) == once
    assert once.isascii()


def test_codes_that_are_no_text_have_no_value() -> None:
    assert decode("%C3%A9%20a") == "é a"
    assert decode("%C3") is None
    assert decode("100%") == "100%"


@pytest.mark.req("M-072")
def test_a_hostile_address_costs_no_more_than_its_length() -> None:
    template = URITemplate("x://{a}-{b}-{c}-{d}.json")
    many = URITemplate("x://{+a}/{+b}/{+c}/{+d}.json")
    began = time.process_time()
    assert template.match("x://" + "-" * (MAX_URI - 20) + ".txt.jso") is None
    assert template.match("x://" + "-" * (MAX_URI - 20) + "/.json") is None
    assert many.match("x://" + "/" * (MAX_URI - 20) + "?json") is None
    assert template.match("x://" + "-" * MAX_URI + ".json") is None, "too long"
    assert time.process_time() - began < 1
