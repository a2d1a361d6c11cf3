"""Guards and builders of JSON-RPC envelopes: they judge everything and raise at nothing."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from tests.codegen.hostile_values import deep, hostile_values

from typedmcp.core import guards
from typedmcp.core.errors import MessageError
from typedmcp.core.guards import (
    is_initialize_request,
    is_jsonrpc_message,
    is_jsonrpc_request,
    is_jsonrpc_response,
    is_request_id,
    jsonrpc_error,
    jsonrpc_result,
    parse_jsonrpc_message,
)
from typedmcp.core.jsonrpc import JSONRPCErrorData, JSONRPCRequest, JSONRPCResponse, decode_message, encode_message

GUARDS = (is_request_id, is_jsonrpc_request, is_jsonrpc_response, is_jsonrpc_message, is_initialize_request)


@pytest.mark.req("A-068")
@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        *[(value, True) for value in (0, 1, -1, 2**70, "", "7", 1.0, UNSET)],
        *[(value, False) for value in (None, True, False, 1.5, float("nan"), float("inf"), [], {}, b"1", 1j, object())],
    ],
)
def test_request_ids(value: object, verdict: bool) -> None:
    assert is_request_id(value) is verdict


REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.mark.req("A-069", "A-070", "A-071", "A-088")
@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (REQUEST, True),
        ({**REQUEST, "id": 0}, True),
        ({**REQUEST, "id": ""}, True),
        ({**REQUEST, "params": {}}, True),
        ({**REQUEST, "method": ""}, True),
        ({**REQUEST, "extra": [1]}, True),
        ({"jsonrpc": "2.0", "method": "notifications/foo"}, True),
        ({**REQUEST, "id": None}, False),
        ({**REQUEST, "id": True}, False),
        ({**REQUEST, "id": 1.5}, False),
        ({**REQUEST, "params": []}, False),
        ({**REQUEST, "params": None}, False),
        ({**REQUEST, "params": "x"}, False),
        ({**REQUEST, "method": None}, False),
        ({**REQUEST, "method": 1}, False),
        ({**REQUEST, "jsonrpc": "1.0"}, False),
        ({**REQUEST, "jsonrpc": 2.0}, False),
        ({"id": 1, "method": "ping"}, False),
        ({"jsonrpc": "2.0", "id": 1}, False),
        ([REQUEST], False),
        (None, False),
        ("ping", False),
    ],
)
def test_requests(value: object, verdict: bool) -> None:
    assert is_jsonrpc_request(value) is verdict
    assert is_jsonrpc_message(value) is verdict
    assert not is_jsonrpc_response(value)
    assert not is_initialize_request(value)


RESULT = {"jsonrpc": "2.0", "id": 1, "result": {}}
ERROR = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": "m"}}


@pytest.mark.req("A-072", "A-073", "A-074", "A-089", "A-090")
@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (RESULT, True),
        ({**RESULT, "result": None}, True),
        ({**RESULT, "result": 0}, True),
        ({**RESULT, "id": ""}, True),
        ({**RESULT, "id": None}, True),
        (ERROR, True),
        ({**ERROR, "id": None}, True),
        ({**ERROR, "error": {"code": 1, "message": "", "data": None}}, True),
        ({**RESULT, **ERROR}, False),
        ({"jsonrpc": "2.0", "id": 1}, False),
        ({"jsonrpc": "2.0", "result": {}}, False),
        ({**RESULT, "id": True}, False),
        ({**RESULT, "id": []}, False),
        ({**RESULT, "jsonrpc": "1.0"}, False),
        ({"id": 1, "result": {}}, False),
        ({**ERROR, "error": None}, False),
        ({**ERROR, "error": {}}, False),
        ({**ERROR, "error": {"code": "1", "message": "m"}}, False),
        ({**ERROR, "error": {"code": True, "message": "m"}}, False),
        ({**ERROR, "error": {"code": 1}}, False),
        ({**ERROR, "error": {"code": 1, "message": None}}, False),
        ([RESULT], False),
    ],
)
def test_responses(value: object, verdict: bool) -> None:
    assert is_jsonrpc_response(value) is verdict
    assert is_jsonrpc_message(value) is verdict
    assert not is_jsonrpc_request(value)


@pytest.mark.req("A-076")
def test_initialize_requests() -> None:
    assert is_initialize_request({**REQUEST, "method": "initialize"})
    assert is_initialize_request({"jsonrpc": "2.0", "method": "initialize"})
    assert is_initialize_request(JSONRPCRequest(id=1, method="initialize"))
    assert not is_initialize_request(REQUEST)
    assert not is_initialize_request({"method": "initialize"})
    assert not is_initialize_request({**RESULT, "method": "initialize", "jsonrpc": "1.0"})


@pytest.mark.req("A-075")
def test_a_message_is_a_request_or_a_response() -> None:
    for value in (REQUEST, RESULT, ERROR):
        assert is_jsonrpc_message(value) == (is_jsonrpc_request(value) or is_jsonrpc_response(value))


@pytest.mark.req("A-075", "A-079", "A-091")
@pytest.mark.parametrize("value", [REQUEST, RESULT, ERROR, {"jsonrpc": "2.0", "method": "n", "params": {"a": 1}}])
def test_structs_are_judged_like_what_they_stand_for(value: dict[str, Any]) -> None:
    struct = decode_message(json.dumps(value))
    for guard in GUARDS[1:]:
        assert guard(struct) is guard(value)
    assert parse_jsonrpc_message(struct) is struct


# -- totality --------------------------------------------------------------------------------------------------------


class Fickle(dict[str, Any]):
    """A dictionary that raises from the nth look on."""

    def __init__(self, members: dict[str, Any], patience: int) -> None:
        super().__init__(members)
        self.patience = patience

    def get(self, key: Any, default: Any = None) -> Any:
        self.patience -= 1
        if self.patience < 0:
            raise RuntimeError("hostile")
        return super().get(key, default)


@pytest.mark.req("A-077", "A-007", "A-078", "A-021")
@pytest.mark.parametrize("name", hostile_values())
@pytest.mark.parametrize("member", [None, "jsonrpc", "id", "method", "params", "result", "error"])
def test_hostile_values_raise_nothing(name: str, member: str | None) -> None:
    intruder = hostile_values()[name]
    for base in (REQUEST, RESULT, ERROR):
        value = intruder if member is None else {**base, member: intruder}
        for guard in GUARDS:
            assert type(guard(value)) is bool
        assert parse_jsonrpc_message(value) is (value if is_jsonrpc_message(value) else None)


@pytest.mark.req("A-077")
@pytest.mark.parametrize("patience", range(12))
def test_values_that_change_their_mind_raise_nothing(patience: int) -> None:
    for guard in GUARDS:
        guard(Fickle({**REQUEST, "method": "initialize"}, patience))
        guard(Fickle(ERROR, patience))
    parse_jsonrpc_message(Fickle(REQUEST, patience))


@pytest.mark.req("A-077")
def test_odd_mappings_and_deep_values_raise_nothing() -> None:
    assert not is_jsonrpc_message(MappingProxyType({**REQUEST, "id": None}))
    inner = deep(lambda value: [value], 50_000)
    assert is_jsonrpc_request({**REQUEST, "params": {"a": inner}})
    assert not is_jsonrpc_request({**REQUEST, "id": inner})
    assert is_jsonrpc_response({**RESULT, "result": inner})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=10,
)
NEARLY = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | VALUES,
        "id": st.integers() | st.text() | VALUES,
        "method": st.sampled_from(["initialize", "ping"]) | VALUES,
        "params": st.dictionaries(st.text(), VALUES, max_size=2) | VALUES,
        "result": VALUES,
        "error": st.fixed_dictionaries({"code": st.integers() | VALUES, "message": st.text() | VALUES}) | VALUES,
    },
)


@pytest.mark.req("A-077", "A-078", "A-079")
@given(st.one_of(VALUES, NEARLY))
def test_parse_is_sound_with_the_guard(value: Any) -> None:
    parsed = parse_jsonrpc_message(value)
    if is_jsonrpc_message(value):
        assert parsed is value
        assert is_jsonrpc_message(parsed)
        assert is_jsonrpc_request(value) != is_jsonrpc_response(value)
    else:
        assert parsed is None
    assert not is_initialize_request(value) or is_jsonrpc_request(value)


@pytest.mark.req("A-017", "A-078")
@given(NEARLY)
def test_what_the_decoder_reads_the_guards_take(value: dict[str, Any]) -> None:
    try:
        message = decode_message(json.dumps(value))
    except MessageError:
        return
    if isinstance(message, JSONRPCResponse) and message.id is UNSET:
        assert not is_jsonrpc_message(message), "for the seed a response has an id"
    else:
        assert parse_jsonrpc_message(message) is message


# -- builders --------------------------------------------------------------------------------------------------------


@pytest.mark.req("A-080", "A-086", "A-087")
@pytest.mark.parametrize("id_", [0, "", 7, "7"])
def test_results(id_: int | str) -> None:
    built = jsonrpc_result(id_, {"a": 1})
    assert is_jsonrpc_message(built)
    assert is_jsonrpc_response(built)
    assert json.loads(encode_message(built)) == {"jsonrpc": "2.0", "id": id_, "result": {"a": 1}}


@pytest.mark.req("A-081", "A-086", "A-087")
@pytest.mark.parametrize("id_", [0, "", 7, "7", None])
def test_errors(id_: int | str | None) -> None:
    built = jsonrpc_error(id_, -32601, "no")
    assert is_jsonrpc_response(built)
    assert json.loads(encode_message(built)) == {
        "jsonrpc": "2.0",
        "id": id_,
        "error": {"code": -32601, "message": "no"},
    }
    for data in (None, 0, {"a": 1}):
        assert json.loads(encode_message(jsonrpc_error(id_, 1, "no", data)))["error"]["data"] == data


@pytest.mark.req("A-087", "A-088", "A-089", "A-090")
def test_builders_and_types_are_public() -> None:
    assert guards.jsonrpc_result is jsonrpc_result
    struct = JSONRPCRequest(method="m")
    assert (struct.jsonrpc, struct.id, struct.params) == ("2.0", UNSET, UNSET)
    assert JSONRPCErrorData(code=1, message="m").data is UNSET
    response = JSONRPCResponse(id=None)
    assert (response.jsonrpc, response.result, response.error) == ("2.0", UNSET, UNSET)
