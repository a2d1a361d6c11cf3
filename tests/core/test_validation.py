"""validate and validate_message: the verdict, the exact pointer, and no exception whatever is given."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.codegen.hostile_values import hostile_values

from typedmcp import validate, validate_message
from typedmcp.core.errors import TypedMCPError, UsageError
from typedmcp.core.validation import explain_data
from typedmcp_wire.methods import METHODS
from typedmcp_wire.revisions import HANDSHAKE_REVISIONS, REVISIONS

LATEST = REVISIONS[-1]
META = {
    "io.modelcontextprotocol/protocolVersion": LATEST,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def pointers(found: Any) -> list[str]:
    return sorted(entry.pointer for entry in found)


def tools_list(revision: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "tools": [
            {"name": "a", "inputSchema": {"type": "object"}},
            {
                "name": "b",
                "inputSchema": {"type": "object", "properties": {"a/b": {"type": "string"}, "c~d": {}}},
                "_meta": {"x/y": 1},
            },
        ]
    }
    if revision == LATEST:
        result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    return {"jsonrpc": "2.0", "id": 1, "result": result}


@pytest.mark.req("A-007", "M-194")
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_valid_list_of_tools_has_no_violations(revision: str) -> None:
    assert validate_message(tools_list(revision), revision, "server", "tools/list") == ()


@pytest.mark.req("A-007", "A-077", "M-194")
@pytest.mark.parametrize("revision", REVISIONS)
def test_two_faults_deep_inside_have_their_exact_pointers(revision: str) -> None:
    message = tools_list(revision)
    tool = message["result"]["tools"][1]
    tool["name"] = 7
    tool["inputSchema"]["type"] = "array"
    found = validate_message(message, revision, "server", "tools/list")
    assert pointers(found) == ["/result/tools/1/inputSchema/type", "/result/tools/1/name"]
    assert all(entry.expected and entry.found and entry.message for entry in found)


@pytest.mark.req("A-007", "A-077", "M-194")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_mapping_keys_stay_in_pointers_and_are_escaped(revision: str) -> None:
    """Where msgspec's own path would lose them."""
    message = tools_list(revision)
    message["result"]["tools"][1]["inputSchema"]["properties"] |= {"a/b": 5, "c~d": "x"}
    assert pointers(validate_message(message, revision, "server", "tools/list")) == [
        "/result/tools/1/inputSchema/properties/a~1b",
        "/result/tools/1/inputSchema/properties/c~0d",
    ]


@pytest.mark.req("A-077")
def test_keys_of_input_requests_are_escaped_in_pointers() -> None:
    value = {"inputRequests": {"a/b": {"method": "roots/list"}, "c~d": 5}, "resultType": "input_required"}
    found = pointers(validate(value, "InputRequiredResult", LATEST))
    assert "/inputRequests/c~0d" in found
    value["inputRequests"] = {"a/b": {"method": "elicitation/create", "params": {"message": 1}}}
    found = pointers(validate(value, "InputRequiredResult", LATEST))
    assert found
    assert all(pointer.startswith("/inputRequests/a~1b") for pointer in found)


@pytest.mark.req("A-007")
def test_the_default_revision_is_the_latest() -> None:
    assert validate({"name": "x", "inputSchema": {"type": "object"}}, "Tool") == ()
    (found,) = validate({"name": "x"}, "Tool")
    assert "inputSchema" in found.message


@pytest.mark.req("A-007")
@pytest.mark.parametrize(
    ("definition", "revision"),
    [("Toool", LATEST), ("AudioContent", "2024-11-05"), ("Tool", "2023-01-01"), ("InitializeResult", LATEST)],
)
def test_a_name_that_does_not_exist_is_the_callers_mistake(definition: str, revision: str) -> None:
    with pytest.raises(UsageError, match=r"\w"):
        validate({}, definition, revision)


@pytest.mark.parametrize(
    ("revision", "sender", "method"),
    [("2023-01-01", "client", None), (LATEST, "nobody", None), (LATEST, "server", "tools/lists")],
)
def test_questions_that_make_no_sense_are_the_callers_mistake(revision: str, sender: Any, method: Any) -> None:
    with pytest.raises(UsageError):
        validate_message({}, revision, sender, method)


def request(method: str, params: Any = None, id_: Any = 1) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": id_, "method": method}
    return message if params is None else {**message, "params": params}


@pytest.mark.req("M-001", "M-004", "M-008", "M-009", "M-018")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("message", "where"),
    [
        (5, ""),
        (None, ""),
        ("x", ""),
        ({}, ""),
        ({"jsonrpc": "2.0", "id": 1}, ""),
        (request("ping", id_=None), "/id"),
        (request("ping", id_=1.5), "/id"),
        (request("ping", id_=True), "/id"),
        ({"id": 1, "method": "ping"}, "/jsonrpc"),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, "/jsonrpc"),
        (request("tools/list", []), "/params"),
        ({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "m"}}, ""),
        ({"jsonrpc": "2.0", "id": 1, "result": 5}, "/result"),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": 1.5, "message": "m"}}, "/error/code"),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}, "/error/message"),
        (request("tools/call", {"_meta": META}), "/params/name"),
        (request("notifications/cancelled", {"requestId": 1}), "/id"),
        ({"jsonrpc": "2.0", "method": "tools/list", "params": {"_meta": META}}, ""),
    ],
)
def test_messages_nobody_may_send(revision: str, message: Any, where: str) -> None:
    sender: Any = "server" if isinstance(message, dict) and "method" not in message else "client"
    found = validate_message(message, revision, sender)
    assert found
    assert where in pointers(found)


@pytest.mark.req("H-014", "H-015", "M-018")
@pytest.mark.parametrize("revision", REVISIONS)
def test_batches_exist_in_one_revision(revision: str) -> None:
    found = validate_message([request("ping")], revision, "client")
    assert bool(found) is (revision != "2025-03-26")


@pytest.mark.req("H-014", "H-015")
@pytest.mark.parametrize(
    ("members", "where"),
    [
        ([], [""]),
        ([[]], ["/0"]),
        ([5], ["/0"]),
        ([request("ping"), request("tools/call", {"name": 5}, 2)], ["/1/params/name"]),
        ([request("initialize")], ["/0/method"]),
    ],
)
def test_faults_in_a_batch_have_their_place(members: Any, where: list[str]) -> None:
    assert pointers(validate_message(members, "2025-03-26", "client")) == where


@pytest.mark.req("M-015", "M-016", "H-009")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("sender", ["client", "server"])
def test_every_method_has_its_sender(revision: str, sender: Any) -> None:
    for method in METHODS.values():
        message = {"jsonrpc": "2.0", "method": method.name, "params": {"_meta": META}}
        if method.kind == "request":
            message["id"] = 1
        found = pointers(validate_message(message, revision, sender))
        allowed = revision in (method.client if sender == "client" else method.server)
        assert ("/method" in found) is (not allowed), (method.name, found)


@pytest.mark.req("M-015")
@pytest.mark.parametrize("method", ["sampling/createMessage", "roots/list", "elicitation/create", "ping"])
def test_a_modern_server_sends_no_requests(method: str) -> None:
    assert validate_message(request(method, {}), LATEST, "server")


@pytest.mark.req("M-016")
@pytest.mark.parametrize(
    "answer", [{"result": {"resultType": "complete"}}, {"error": {"code": -32601, "message": "m"}}]
)
@pytest.mark.parametrize("method", [None, "roots/list"])
def test_a_modern_client_sends_no_responses(answer: dict[str, Any], method: str | None) -> None:
    assert validate_message({"jsonrpc": "2.0", "id": 1, **answer}, LATEST, "client", method)


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_a_client_of_the_handshake_era_may_answer(revision: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "result": {"roots": []}}
    assert validate_message(message, revision, "client", "roots/list") == ()
    assert pointers(validate_message({**message, "result": {"roots": 1}}, revision, "client", "roots/list")) == [
        "/result/roots"
    ]
    assert validate_message({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "m"}}, revision, "client") == ()


@pytest.mark.req("M-011", "M-063")
def test_a_response_is_judged_by_the_method_it_answers() -> None:
    bare = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert validate_message(bare, "2025-11-25", "server", "ping") == ()
    assert validate_message(bare, "2025-11-25", "server", "tools/list")
    assert "resultType" in str([entry.message for entry in validate_message(bare, LATEST, "server", "server/discover")])
    assert validate_message(bare, LATEST, "server", "ping"), "there is no ping to answer"


@pytest.mark.req("M-039", "M-040")
@pytest.mark.parametrize("method", ["tools/list", "server/discover", "subscriptions/listen"])
def test_a_modern_request_carries_its_envelope(method: str) -> None:
    params: dict[str, Any] = {"notifications": {}} if method == "subscriptions/listen" else {}
    assert validate_message(request(method, {**params, "_meta": META}), LATEST, "client") == ()
    assert validate_message(request(method, {**params, "_meta": {}}), LATEST, "client")
    assert validate_message(request(method, params), LATEST, "client")
    assert validate_message(request(method), LATEST, "client")


@pytest.mark.req("M-061")
def test_unknown_methods_are_nobodys_business_here() -> None:
    assert validate_message(request("com.example/thing", {"x": math.pi}), LATEST, "client") == ()


@pytest.mark.req("A-077")
@pytest.mark.parametrize("name", hostile_values())
@pytest.mark.parametrize("member", [None, "jsonrpc", "id", "method", "params", "result", "error"])
def test_hostile_messages_raise_nothing(name: str, member: str | None) -> None:
    intruder = hostile_values()[name]
    for base in (
        request("tools/list", {}),
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {}},
    ):
        value = intruder if member is None else {**base, member: intruder}
        for revision, method in ((LATEST, "tools/list"), ("2025-03-26", None)):
            for side in ("client", "server"):
                for message in (value, [value]):
                    found = validate_message(message, revision, side, method)  # type: ignore[arg-type]
                    assert all(isinstance(entry.message, str) for entry in found)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=10,
)


@pytest.mark.req("A-077")
@given(
    st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0")},
        optional={
            "id": JSON,
            "method": st.sampled_from(sorted(METHODS)),
            "params": JSON,
            "result": JSON,
            "error": JSON,
        },
    ),
    st.sampled_from(REVISIONS),
    st.sampled_from(["client", "server"]),
    st.sampled_from([None, *sorted(METHODS)]),
)
def test_random_messages_raise_nothing_and_pointers_lead_somewhere(
    message: Any, revision: str, sender: Any, method: str | None
) -> None:
    for entry in validate_message(message, revision, sender, method):
        *way, last = ["", *entry.pointer.split("/")[1:]]
        target = {"": message}
        for token in way:
            target = member(target, token)
        # The pointer of something missing names the member that should be there.
        assert member(target, last) is not ABSENT or entry.found == "nothing"


ABSENT = object()


def member(value: Any, token: str) -> Any:
    key = token.replace("~1", "/").replace("~0", "~")
    return value[int(key)] if isinstance(value, list) else value.get(key, ABSENT)


@pytest.mark.req("M-034")
def test_violations_as_the_data_of_an_error_are_bounded() -> None:
    data = explain_data({"tools": [5] * 1000}, "ListToolsResult", "2025-11-25", "/result")
    assert 0 < len(data["violations"]) <= 20
    assert data["violations"][0] == {"pointer": "/result/tools/0", "message": data["violations"][0]["message"]}


def test_every_exception_of_the_library_has_one_root() -> None:
    assert issubclass(UsageError, TypedMCPError)
