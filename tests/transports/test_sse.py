"""Event streams as text: every rule of the format, however the bytes are cut."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from typedmcp.core.errors import UsageError
from typedmcp.core.jsonrpc import JSONRPCRequest, JSONRPCResponse
from typedmcp.transports.sse import (
    Event,
    EventParser,
    EventTooLong,
    Item,
    decode_event,
    encode_comment,
    encode_event,
    read_event_stream,
)

ANSWER = '{"jsonrpc":"2.0","id":1,"result":{}}'


def parse(stream: bytes, size: int | None = None, **options: Any) -> list[Item]:
    parser = EventParser(**options)
    if size is None:
        return parser.feed(stream)
    return [item for start in range(0, len(stream), size) for item in parser.feed(stream[start : start + size])]


CASES: list[tuple[str, bytes, list[Event]]] = [
    ("LF", b"event: message\ndata: a\n\n", [Event("a", "message")]),
    ("CR", b"event: message\rdata: a\r\r", [Event("a", "message")]),
    ("CRLF", b"event: message\r\ndata: a\r\n\r\n", [Event("a", "message")]),
    ("all three", b"data: a\r\ndata: b\rdata: c\n\rdata: d\n\n", [Event("a\nb\nc"), Event("d")]),
    ("mark", b"\xef\xbb\xbfdata: a\n\n", [Event("a")]),
    ("two marks", b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", [Event("b")]),
    ("mark later", b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [Event("a")]),
    ("part of a mark", b"\xef\xbb\ndata: a\n\n", [Event("a")]),
    ("comments", b": ping\n\n:\n:data: x\ndata: a\n: more\n\n: end\n\n", [Event("a")]),
    ("no space", b"data:a\n\n", [Event("a")]),
    ("two spaces", b"data:  a\n\n", [Event(" a")]),
    ("a tab", b"data:\ta\n\n", [Event("\ta")]),
    ("several lines", b'data:{"jsonrpc":"2.0",\ndata: "id":1}\n\n', [Event('{"jsonrpc":"2.0",\n"id":1}')]),
    ("empty lines of data", b"data\ndata:\ndata\n\n", [Event("\n\n")]),
    ("colons", b"data: a:b: c\n\n", [Event("a:b: c")]),
    ("primed", b"id: a1\nretry: 500\ndata:\n\ndata: a\n\n", [Event("", "", "a1", 500), Event("a")]),
    ("id only", b"id: a1\n\n", [Event("", "", "a1")]),
    ("retry only", b"retry: 7\n\n", [Event("", "", None, 7)]),
    ("id empty", b"id: 7\nid\ndata: a\n\n", [Event("a", "", "")]),
    ("id with NUL", b"id: a\0b\ndata: a\n\n", [Event("a")]),
    ("bad retry", b"retry: 5s\nretry: -1\nretry: \xd9\xa3\nretry:\ndata: a\n\n", [Event("a")]),
    ("retry with zeros", b"retry: 00012\n\n", [Event("", "", None, 12)]),
    ("endless retry", b"retry: " + b"9" * 5000 + b"\n\n", [Event("", "", None, 10**18 - 1)]),
    ("name only", b"event: ping\n\ndata: a\n\n", [Event("a")]),
    ("other fields", b"dat: x\nData: y\n data: z\ndata a\ndata: a\n\n", [Event("a")]),
    ("cut off", b"data: a\n\ndata: b\n", [Event("a")]),
    ("blank lines", b"\n\n\r\n\r\ndata: a\n\n\n\n", [Event("a")]),
    ("others", "data: a\u2028b\u2029c\x85d\ve\ff\x1cg\n\n".encode(), [Event("a\u2028b\u2029c\x85d\ve\ff\x1cg")]),
    ("characters", "data: zwölf 🙂\nevent: ünï\nid: 天\n\n".encode(), [Event("zwölf 🙂", "ünï", "天")]),
    ("no UTF-8", b"data: a\xffb\xe2\x80\n\n", [Event("a\ufffdb\ufffd")]),
    ("NUL in data", b"data: a\0b\n\n", [Event("a\0b")]),
]  # fmt: skip


@pytest.mark.req("A-234", "M-136")
@pytest.mark.parametrize(("stream", "events"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_every_rule_of_the_format(stream: bytes, events: list[Event]) -> None:
    assert parse(stream) == events
    assert parse(stream, 1) == events
    assert parse(stream, 2) == events
    assert parse(stream, 3) == events


FRAGMENTS = st.sampled_from(
    [
        *(b"data", b"id", b"event", b"retry", b":", b" ", b"a", b"7", b"\n", b"\r", b"\r\n", b"\n\n", b"\0", b"\xff"),
        *("ö".encode(), b"\xe2\x80\xa8", b"\xef\xbb\xbf", b": c\n", b"data: x\n", b"id: 1\r\n"),
    ]
)


@pytest.mark.req("A-234")
@given(st.lists(FRAGMENTS, max_size=40), st.data(), st.sampled_from([5, 12, 1000]))
def test_where_the_stream_is_cut_makes_no_difference(fragments: list[bytes], data: st.DataObject, limit: int) -> None:
    stream = b"".join(fragments)
    whole = parse(stream, limit=limit)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    parser = EventParser(limit)
    parts = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    found = [item for part in parts for item in parser.feed(part)]
    assert [_plain(item) for item in found] == [_plain(item) for item in whole]


def _plain(item: Item) -> object:
    return item if isinstance(item, Event) else EventTooLong


def test_the_id_and_the_wait_to_resume_with() -> None:
    parser = EventParser(last_event_id="before")
    parser.feed(b"data: a\n\nretry: 250\n")
    assert (parser.last_event_id, parser.retry) == ("before", 250)
    parser.feed(b"id: 1\n")
    assert parser.last_event_id == "before", "an event that may never be complete has not been received"
    parser.feed(b"\ndata: b\n\n")
    assert parser.last_event_id == "1"
    parser.feed(b"id:\n\n")
    assert parser.last_event_id == ""


# -- bounds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [None, 1, 7])
def test_an_event_too_long_is_told_once_and_skipped(size: int | None) -> None:
    stream = b"data: ok\n\nid: 5\ndata: " + b"x" * 60 + b"\ndata: more\nretry: 9\n\ndata: next\n\n"
    parser = EventParser(limit=50)
    items = [
        item
        for start in range(0, len(stream), size or 999)
        for item in parser.feed(stream[start : start + (size or 999)])
    ]
    assert [_plain(item) for item in items] == [Event("ok"), EventTooLong, Event("next")]
    error = items[1]
    assert isinstance(error, EventTooLong)
    assert str(error).startswith("The event is longer than 50 bytes. It begins with 'xxx")
    assert (parser.last_event_id, parser.retry) == ("5", 9), "or the same event would come again"


def test_an_event_of_exactly_the_limit_passes() -> None:
    line = b"data: " + b"x" * 14
    assert parse(line + b"\n\n", limit=len(line)) == [Event("x" * 14)]
    assert [_plain(item) for item in parse(b"data: " + b"x" * 15 + b"\n\n", limit=len(line))] == [EventTooLong]


def test_many_short_lines_count_together() -> None:
    parser = EventParser(limit=1000)
    found = [item for _ in range(10_000) for item in parser.feed(b"data:\n")]
    assert [_plain(item) for item in found] == [EventTooLong]
    assert parser.feed(b"\ndata: a\n\n") == [Event("a")]


def test_a_comment_has_no_limit_and_costs_nothing() -> None:
    parser = EventParser(limit=100)
    found = parser.feed(b"data: a\n: ")
    for _ in range(1000):
        found += parser.feed(b"x" * 1000)
    found += parser.feed(b"\n\n")
    assert found == [Event("a")]


def test_single_bytes_and_huge_events_take_time_in_proportion() -> None:
    data = b"data: " + b"x" * 400_000 + b"\n\n"

    def seconds(stream: bytes) -> float:
        parser = EventParser()
        began = time.process_time()
        for index in range(len(stream)):
            parser.feed(stream[index : index + 1])
        return time.process_time() - began

    small = min(seconds(data[:50_000]) for _ in range(2))
    assert seconds(data) < 40 * small
    began = time.process_time()
    [big] = parse(b"data: " + b"y" * 50_000_000 + b"\n\n", 65536)
    assert isinstance(big, Event)
    assert len(big.data) == 50_000_000
    assert time.process_time() - began < 5


# -- writing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"data": ANSWER}, f"data: {ANSWER}\n\n"),
        ({"data": ANSWER.encode(), "id": "a1"}, f"id: a1\ndata: {ANSWER}\n\n"),
        ({"data": "", "id": "a1", "retry": 500}, "id: a1\nretry: 500\ndata: \n\n"),
        ({"data": "a\nb\r\nc\rd", "event": "message"}, "event: message\ndata: a\ndata: b\ndata: c\ndata: d\n\n"),
        ({"data": " a\u2028", "retry": 0}, "retry: 0\ndata:  a\u2028\n\n"),
    ],
)
def test_writing_events(fields: dict[str, Any], text: str) -> None:
    assert encode_event(**fields) == text.encode()


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.none() | st.text("abc 1é:", max_size=5),
    st.none() | st.text("abc 1é:", max_size=5),
    st.none() | st.integers(0, 10**9),
)
def test_what_is_written_is_read_back(data: str, id: str | None, event: str | None, retry: int | None) -> None:  # noqa: A002
    text = encode_event(data, id=id, event=event, retry=retry)
    lines = data.replace("\r\n", "\n").replace("\r", "\n")
    assert parse(encode_comment("x\ny") + text + encode_comment()) == [Event(lines, event or "", id, retry)]


@pytest.mark.parametrize("fields", [{"id": "a\nb"}, {"id": "a\0"}, {"event": "a\rb"}, {"retry": -1}])
def test_fields_that_would_break_the_stream_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        encode_event("a", **fields)


def test_writing_comments() -> None:
    assert encode_comment("keep-alive") == b": keep-alive\n\n"
    assert encode_comment("a\nb") == b": a\n: b\n\n"
    assert parse(encode_comment() + encode_comment("data: a\rdata: b")) == []


# -- messages ----------------------------------------------------------------------------------------------------------


@pytest.mark.req("A-235")
def test_the_message_of_an_event() -> None:
    message = decode_event(ANSWER)
    assert isinstance(message, JSONRPCResponse)
    assert message.id == 1
    assert isinstance(decode_event('{"jsonrpc":"2.0","method":"ping","id":"a"}'), JSONRPCRequest)


@pytest.mark.req("A-235")
@pytest.mark.parametrize(
    "data",
    [
        *(
            "",
            " ",
            "2026-01-01",
            "[]",
            f"[{ANSWER}]",
            "{}",
            "null",
            "[" * 100_000,
            '{"jsonrpc":"2.0","id":1}',
            "\ud800",
        ),
        *(None, 5, object(), {}, ["a"], b"\xff"),
    ],
    ids=range(16),
)
def test_no_message_is_none_and_never_an_error(data: Any) -> None:
    assert decode_event(data) is None


class Body:
    """A response of which only the body counts."""

    def __init__(self, *parts: bytes | Exception) -> None:
        self.parts = parts
        self.content = self

    async def iter_any(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            if isinstance(part, Exception):
                raise part
            yield part


@pytest.mark.req("A-233", "A-234")
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
async def test_the_messages_of_a_body(size: int) -> None:
    text = json.encode({"jsonrpc": "2.0", "id": 2, "result": {"text": "zwölf\u2028🙂"}})
    stream = b"".join(
        [
            encode_event("", id="1", retry=500),
            encode_event(ANSWER, id="2"),
            encode_event("2026-01-01", event="ping"),
            encode_event(ANSWER, event="endpoint"),
            encode_comment("ping"),
            encode_event("no message"),
            encode_event(text, event="message"),
            b"data: cut",
        ]
    )
    parts = [stream[start : start + size] for start in range(0, len(stream), size)]
    first, second = await read_event_stream(Body(*parts))
    assert isinstance(first, JSONRPCResponse)
    assert isinstance(second, JSONRPCResponse)
    assert (first.id, second.id) == (1, 2)
    assert json.decode(second.result) == {"text": "zwölf\u2028🙂"}


@pytest.mark.req("A-233")
async def test_a_body_that_breaks_off_keeps_what_came() -> None:
    assert len(await read_event_stream(Body(encode_event(ANSWER), ConnectionResetError("gone")))) == 1
    assert await read_event_stream(Body(RuntimeError("anything"))) == []
    assert await read_event_stream(None) == []  # type: ignore[arg-type]
