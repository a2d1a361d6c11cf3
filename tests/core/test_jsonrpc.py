"""Envelopes between bytes and structs: what is read, what is refused and how, what is written."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw, Struct

from typedmcp.core.errors import MessageError
from typedmcp.core.jsonrpc import (
    JSONRPCErrorData,
    JSONRPCRequest,
    JSONRPCResponse,
    NonFiniteNumber,
    decode_message,
    decode_response,
    encode_message,
    encode_response,
    is_array,
    split_batch,
)

DEEP = 100_000
BIG = [2**53 + 1, 2**63, 2**64, 2**64 + 10**18 + 2, -(2**64), 19933688932870350000]


def request(id_text: str = "1", params: str = "{}") -> str:
    return f'{{"jsonrpc":"2.0","id":{id_text},"method":"m","params":{params}}}'


# -- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.req("M-004", "A-026", "A-068", "A-088", "M-006")
@pytest.mark.parametrize("id_", [0, "", 7, "7", -1, "007", "+7", " 7 ", "1_0", "中文", 2**53 + 1, -(2**53) - 1])
def test_ids_keep_type_and_value(id_: int | str) -> None:
    message = decode_message(request(json.dumps(id_)))
    assert isinstance(message, JSONRPCRequest)
    assert (type(message.id), message.id) == (type(id_), id_)
    assert not message.is_notification
    answer = json.loads(encode_message(JSONRPCResponse(id=message.id, result={})))["id"]
    assert (type(answer), answer) == (type(id_), id_)


@pytest.mark.req("M-004", "A-070", "A-019")
@pytest.mark.parametrize("id_text", ["null", "true", "false", "1.5", "[]", "{}", "[1]"])
@pytest.mark.parametrize("member", ['"method":"m"', '"method":"m","params":{}'])
def test_other_ids_are_refused_and_not_echoed(id_text: str, member: str) -> None:
    with pytest.raises(MessageError) as caught:
        decode_message(f'{{"jsonrpc":"2.0","id":{id_text},{member}}}')
    error = caught.value
    assert (error.code, error.id, error.answer) == (-32600, None, True)


@pytest.mark.req("A-022", "A-069", "A-088", "M-009")
def test_a_request_without_an_id_is_a_notification() -> None:
    message = decode_message('{"jsonrpc":"2.0","method":"notifications/foo"}')
    assert isinstance(message, JSONRPCRequest)
    assert message.is_notification
    assert message.id is UNSET
    assert message.params is UNSET


UNREADABLE: dict[str, str | bytes] = {
    "nothing": "",
    "white space": " \n",
    "truncated": '{"jsonrpc":"2.0","id":1',
    "trailing text": request() + "x",
    "two messages": request() + request(),
    "comment": "/* */" + request(),
    "single quotes": "{'jsonrpc':'2.0'}",
    "NaN": request("NaN"),
    "NaN in params": request(params='{"a":NaN}'),
    "Infinity in params": request(params='{"a":-Infinity}'),
    "leading zero": request("01"),
    "bare invalid byte": b"\xff",
    "invalid byte in the method": b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
    "overlong byte sequence": b'{"jsonrpc":"2.0","id":1,"method":"\xc0\xaf"}',
    "UTF-16": request().encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + request().encode(),
    "lone surrogate escape": r'{"jsonrpc":"2.0","id":1,"method":"\ud800"}',
    "lone surrogate": '{"jsonrpc":"2.0","id":1,"method":"\ud800"}',
    "raw line break in a text": '{"jsonrpc":"2.0","id":1,"method":"a\nb"}',
    "deep array": "[" * DEEP + "]" * DEEP,
    "deep array, unfinished": "[" * DEEP,
    "deep object": '{"a":' * DEEP + "1" + "}" * DEEP,
    "deep params": request(params='{"a":' + "[" * DEEP + "]" * DEEP + "}"),
    "deep id": request("[" * DEEP + "]" * DEEP),
    "deep result": '{"jsonrpc":"2.0","id":1,"result":' + "[" * DEEP + "]" * DEEP + "}",
    "deep unknown member": '{"jsonrpc":"2.0","id":1,"method":"m","x":' + "[" * DEEP + "]" * DEEP + "}",
}


@pytest.mark.req("A-018", "A-060", "M-002", "M-025")
@pytest.mark.parametrize("read", [decode_message, decode_response])
@pytest.mark.parametrize("name", UNREADABLE)
def test_text_that_is_not_json_is_a_parse_error(name: str, read: Any) -> None:
    with pytest.raises(MessageError) as caught:
        read(UNREADABLE[name])
    error = caught.value
    assert (error.code, error.id, error.answer) == (-32700, None, True)
    assert len(str(error)) < 1000
    assert len(error.message) < 100, "one short sentence"


NO_MESSAGES: dict[str, tuple[str, int | str | None, bool]] = {
    "array": ("[]", None, True),
    "batch": (f"[{request()}]", None, True),
    "number": ("1", None, True),
    "text": ('"x"', None, True),
    "null": ("null", None, True),
    "true": ("true", None, True),
    "empty object": ("{}", None, True),
    "foreign object": ('{"hello":"world"}', None, True),
    "no version": ('{"id":99,"method":"tools/list","params":{}}', 99, True),
    "no version, text id": ('{"id":"","method":"tools/list"}', "", True),
    "version 1.0": ('{"jsonrpc":"1.0","id":0,"method":"m"}', 0, True),
    "version as a number": ('{"jsonrpc":2.0,"id":1,"method":"m"}', 1, True),
    "no method": ('{"jsonrpc":"2.0","id":5}', 5, True),
    "method is no text": ('{"jsonrpc":"2.0","id":5,"method":5}', 5, True),
    "method is null": ('{"jsonrpc":"2.0","id":5,"method":null}', 5, True),
    "notification without version": ('{"method":"notifications/foo"}', None, False),
    "notification of version 1.0": ('{"jsonrpc":"1.0","method":"notifications/foo"}', None, False),
    "result and error": ('{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}', 1, False),
    "result without id": ('{"jsonrpc":"2.0","result":{}}', None, False),
    "result with null id": ('{"jsonrpc":"2.0","id":null,"result":{}}', None, False),
    "error is no object": ('{"jsonrpc":"2.0","id":1,"error":"x"}', 1, False),
    "error without code": ('{"jsonrpc":"2.0","id":1,"error":{"message":"m"}}', 1, False),
    "error code is a text": ('{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"m"}}', 1, False),
    "error without message": ('{"jsonrpc":"2.0","id":1,"error":{"code":1}}', 1, False),
    "response of another version": ('{"id":1,"result":{}}', 1, False),
}


@pytest.mark.req("A-019", "A-061", "A-072", "A-074", "M-001", "M-008", "M-010", "M-018", "M-025", "M-026")
@pytest.mark.parametrize("read", [decode_message, decode_response])
@pytest.mark.parametrize("name", NO_MESSAGES)
def test_json_that_is_no_message_is_an_invalid_request(name: str, read: Any) -> None:
    text, id_, answer = NO_MESSAGES[name]
    with pytest.raises(MessageError) as caught:
        read(text)
    error = caught.value
    assert (error.code, error.id, error.answer) == (-32600, id_, answer)
    assert error.frame == text.encode()


@pytest.mark.req("A-072", "A-089", "A-090", "A-091", "M-008", "M-007")
@pytest.mark.parametrize("read", [decode_message, decode_response])
@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ('{"jsonrpc":"2.0","id":1,"result":{}}', 1),
        ('{"jsonrpc":"2.0","id":"a","result":{"x":[1]}}', "a"),
        ('{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"m","data":null}}', 0),
        ('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}', None),
        ('{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}', UNSET),
        ('{"error":{"message":"m","code":1},"id":7,"extra":{"deep":[{}]},"jsonrpc":"2.0"}', 7),
    ],
)
def test_responses(read: Any, text: str, id_: object) -> None:
    message = read(text)
    assert isinstance(message, JSONRPCResponse)
    assert message.id == id_
    assert (message.result is UNSET) != (message.error is UNSET)


@pytest.mark.req("A-089")
def test_error_data_may_be_null_or_absent() -> None:
    with_null = decode_message('{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":"m","data":null}}')
    without = decode_message('{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":"m"}}')
    assert isinstance(with_null, JSONRPCResponse)
    assert isinstance(without, JSONRPCResponse)
    assert isinstance(with_null.error, JSONRPCErrorData)
    assert isinstance(without.error, JSONRPCErrorData)
    assert with_null.error.data is None
    assert without.error.data is UNSET


@pytest.mark.req("A-017")
@pytest.mark.parametrize("read", [decode_message, decode_response])
def test_a_request_is_a_request_for_both_readers(read: Any) -> None:
    message = read(request())
    assert isinstance(message, JSONRPCRequest)
    assert bytes(message.params) == b"{}"


@pytest.mark.req("A-088")
@pytest.mark.parametrize(
    ("text", "id_", "method"),
    [
        ('{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}', 2, "m"),
        ('{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}', 1, "b"),
        ('{"jsonrpc":"1.0","jsonrpc":"2.0","id":1,"method":"m"}', None, None),
    ],
)
def test_of_a_key_given_twice_every_reader_sees_the_same(text: str, id_: int | None, method: str | None) -> None:
    """The last one counts, as for most parsers; a wrong first one may be refused, never taken for another message."""
    if id_ is None:
        with pytest.raises(MessageError):
            decode_message(text)
        return
    message = decode_message(text)
    assert isinstance(message, JSONRPCRequest)
    assert (message.id, message.method) == (id_, method)


@pytest.mark.parametrize("number", BIG)
def test_integers_are_exact_in_params(number: int) -> None:  # F025
    message = decode_message(request(params=f'{{"n":{number}}}'))
    assert isinstance(message, JSONRPCRequest)
    assert json.loads(encode_message(message))["params"] == {"n": number}
    assert json.loads(encode_message(JSONRPCResponse(id=1, result={"n": number})))["result"] == {"n": number}


@pytest.mark.req("M-006")
@pytest.mark.parametrize("number", BIG)
def test_integers_are_exact_as_ids(number: int) -> None:
    try:
        message = decode_message(request(str(number)))
    except MessageError as error:
        # Refusing is right, folding never would be.
        assert (error.code, error.answer) == (-32600, True)  # noqa: PT017
        assert error.id in (None, number)  # noqa: PT017
    else:
        assert message.id == number


@pytest.mark.req("M-026")
@pytest.mark.parametrize(
    "number", ["1e400", "-1e400", "9" * 5000, "1" * 100_000], ids=["1e400", "-1e400", "5000 digits", "100000 digits"]
)
@pytest.mark.parametrize("place", ["id", "params", "bare", "version"])
def test_huge_numbers_have_one_error_type(number: str, place: str) -> None:  # F026
    texts = {
        "id": request(number),
        "params": request(params=f'{{"n":{number}}}'),
        "bare": number,
        "version": f'{{"jsonrpc":{number},"id":1,"method":"m"}}',
    }
    try:
        message = decode_message(texts[place])
    except MessageError as error:
        assert error.code in (-32700, -32600)  # noqa: PT017
    else:
        assert place == "params"
        assert isinstance(message.params, Raw)  # type: ignore[union-attr]


@pytest.mark.req("M-026")
@given(st.one_of(st.binary(), st.text(), st.text(alphabet='{}[]":,0123456789.eE-+ntfulrasmhodjcp ')))
def test_reading_ends_in_a_message_or_in_message_error(data: bytes | str) -> None:
    for read in (decode_message, decode_response):
        try:
            assert isinstance(read(data), (JSONRPCRequest, JSONRPCResponse))
        except MessageError as error:
            assert error.code in (-32700, -32600)  # noqa: PT017


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), children, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.req("M-026", "A-077")
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.sampled_from(["2.0", "1.0", 2, None]),
            "id": st.sampled_from([0, "", 7, None, True, 1.5, [], {}]),
            "method": st.sampled_from(["m", 5, None]),
            "params": JSON,
            "result": JSON,
            "error": st.sampled_from([None, {}, {"code": 1, "message": "m"}, {"code": 1.5, "message": "m"}, "x"]),
        },
    )
)
def test_every_mixture_of_members_is_judged(members: dict[str, Any]) -> None:
    text = json.dumps(members)
    try:
        message = decode_message(text)
    except MessageError as error:
        valid_id = type(members.get("id")) in (int, str)
        assert error.code == -32600  # noqa: PT017
        assert error.id == (members["id"] if valid_id else None)  # noqa: PT017
        looks_like_notification = isinstance(members.get("method"), str) and "id" not in members
        if looks_like_notification:
            assert not error.answer  # noqa: PT017
        elif "method" in members:
            assert error.answer, "what may be a request is answered"  # noqa: PT017
    else:
        assert members["jsonrpc"] == "2.0"
        if isinstance(message, JSONRPCRequest):
            assert message.method == members["method"]
            assert message.id == members.get("id", UNSET)
        else:
            assert ("result" in members) != ("error" in members)


# -- batches ---------------------------------------------------------------------------------------------------------


@pytest.mark.req("H-014")
def test_a_batch_is_split_undecoded() -> None:
    members = split_batch(f'[{request()}, 1 ,[],{{"a":"\\u2028"}}]')
    assert members == [request().encode(), b"1", b"[]", b'{"a":"\\u2028"}']


@pytest.mark.req("H-014", "M-026")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        ("[]", -32600),
        (" [ ] ", -32600),
        ("{}", -32600),
        ("1", -32600),
        ("[1", -32700),
        ("[" * DEEP, -32700),
        (b"[\xff]", -32700),
    ],
)
def test_what_is_no_batch(data: str | bytes, code: int) -> None:
    with pytest.raises(MessageError) as caught:
        split_batch(data)
    assert caught.value.code == code


@pytest.mark.req("H-014")
@pytest.mark.parametrize(
    ("data", "verdict"),
    [("[]", True), (b" \r\n\t[1]", True), (b" " * 1000 + b"[]", True), ("{}", False), ("", False), (b'"["', False)],
)
def test_what_begins_like_a_batch(data: str | bytes, verdict: bool) -> None:
    assert is_array(data) is verdict


# -- writing ---------------------------------------------------------------------------------------------------------


class Point(Struct):
    x: float
    tags: dict[str, Any] = {}


@pytest.mark.req("A-028", "A-080", "M-001")
@pytest.mark.parametrize(
    ("message", "text"),
    [
        (JSONRPCResponse(id=1, result={"a": [1, 2]}), '{"jsonrpc":"2.0","id":1,"result":{"a":[1,2]}}'),
        (JSONRPCResponse(id="ü", result={"中": "🙂"}), '{"jsonrpc":"2.0","id":"ü","result":{"中":"🙂"}}'),
        (JSONRPCResponse(id=1, result=None), '{"jsonrpc":"2.0","id":1,"result":null}'),
        (
            JSONRPCResponse(id=None, error=JSONRPCErrorData(1, "m")),
            '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}',
        ),
        (
            JSONRPCResponse(error=JSONRPCErrorData(1, "m", None)),
            '{"jsonrpc":"2.0","error":{"code":1,"message":"m","data":null}}',
        ),
        (JSONRPCRequest(id=0, method="ping"), '{"jsonrpc":"2.0","id":0,"method":"ping"}'),
        (JSONRPCRequest(method="n", params={"a": None}), '{"jsonrpc":"2.0","method":"n","params":{"a":null}}'),
    ],
)
def test_text_is_compact_and_in_the_usual_order(message: Any, text: str) -> None:
    assert encode_message(message) == text.encode()


@pytest.mark.req("M-073", "M-002")
@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\n", "\r", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_text_has_no_line_break_of_any_kind(character: str) -> None:
    value = f"a{character}b\u00a0 中文 🙂"
    data = encode_message(JSONRPCResponse(id=value, result={value: [value]}))
    assert len(data.decode().splitlines()) == 1
    assert json.loads(data) == {"jsonrpc": "2.0", "id": value, "result": {value: [value]}}
    raw = Raw(json.dumps({"a": value}, ensure_ascii=False).encode())
    assert json.loads(encode_message(JSONRPCResponse(id=1, result=raw)))["result"] == {"a": value}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("build", "pointer"),
    [
        (lambda n: {"mean": n}, "/result/mean"),
        (lambda n: {"a/b": {"c~d": [None, 1, n]}}, "/result/a~1b/c~0d/2"),
        (Point, "/result/x"),
        (lambda n: [Point(1.0, {"t": (n,)})], "/result/0/tags/t/0"),
    ],
)
def test_numbers_json_lacks_are_refused_with_their_place(number: float, build: Any, pointer: str) -> None:  # F088, F089
    with pytest.raises(NonFiniteNumber, match=pointer + "$"):
        encode_message(JSONRPCResponse(id=1, result=build(number)))


def test_null_beside_finite_numbers_is_no_fault() -> None:
    assert encode_message(JSONRPCResponse(id=1, result={"a": None, "b": 1.5})).endswith(b'{"a":null,"b":1.5}}')


@pytest.mark.req("M-002")
@pytest.mark.parametrize("value", ["\ud800", "a\udfffb", ["\ud800"], {"\ud800": 1}], ids=["high", "low", "list", "key"])
def test_half_a_surrogate_pair_is_refused(value: Any) -> None:  # F027
    with pytest.raises(ValueError, match="surrogate"):
        encode_message(JSONRPCResponse(id=1, result={"a": value}))


@pytest.mark.req("A-034", "A-062")
@pytest.mark.parametrize(
    "value",
    [math.nan, "\ud800", object(), 10**5000, {("a", "b"): 1}],
    ids=["NaN", "half a pair", "object", "5000 digits", "odd key"],
)
def test_a_result_without_json_form_becomes_an_internal_error(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    data = encode_response(JSONRPCResponse(id=7, result={"a": value}))
    assert json.loads(data) == {"jsonrpc": "2.0", "id": 7, "error": {"code": -32603, "message": "Internal error"}}
    assert "7" in caplog.text
    assert caplog.records[0].exc_info


def test_a_result_that_contains_itself_becomes_an_internal_error() -> None:
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    assert json.loads(encode_response(JSONRPCResponse(id=7, result=cycle)))["error"]["code"] == -32603


@pytest.mark.req("A-028", "M-073")
@given(st.integers() | st.text(st.characters(codec="utf-8")), JSON)
def test_what_is_written_is_read_again(id_: int | str, value: Any) -> None:
    data = encode_message(JSONRPCRequest(id=id_, method="m", params={"v": value}))
    assert len(data.decode().splitlines()) == 1
    assert json.loads(data) == {"jsonrpc": "2.0", "id": id_, "method": "m", "params": {"v": value}}
    if isinstance(id_, str) or abs(id_) < 2**63:
        message = decode_message(data)
        assert isinstance(message, JSONRPCRequest)
        assert message.id == id_
        assert json.loads(bytes(message.params)) == {"v": value}
