"""One client's message stream: order, cancellation and its races, batches, calls to the client, the end."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from tests.core.wired import LIMIT, StubServer, Wired, call, cancel, note

from typedmcp.core.connection import Handshake
from typedmcp.core.errors import ConnectionClosed, InvalidResult, MCPError, NotConnected, RequestTimeout, TransportError
from typedmcp_wire.methods import METHODS
from typedmcp_wire.types.base import ClientCapabilities, Implementation

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
ERAS = {"handshake": {}, "modern": {"_meta": MODERN}}
ROOTS = METHODS["roots/list"]


def handshake(revision: str) -> Handshake:
    return Handshake(
        revision=revision, client_info=Implementation(name="c", version="1"), capabilities=ClientCapabilities()
    )


class Gate:
    """A handler that waits until it is let go, and notes what became of it."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.ended = asyncio.Event()
        self.outcome: str | None = None

    async def __call__(self, request: Any, peer: Any) -> Any:
        self.entered.set()
        try:
            await self.release.wait()
            self.outcome = "finished"
        except asyncio.CancelledError:
            self.outcome = "cancelled"
            raise
        finally:
            self.ended.set()
        return {"done": True}


async def pong(request: Any, peer: Any) -> Any:
    return {}


async def within(awaitable: Any) -> Any:
    return await asyncio.wait_for(awaitable, LIMIT)


# -- order and concurrency -------------------------------------------------------------------------------------------


@pytest.mark.req("M-022", "H-018", "A-315", "A-015")
async def test_a_slow_request_holds_up_no_other() -> None:
    gate = Gate()
    wired = Wired(StubServer(tools_call=gate, ping=pong))
    wired.receive(call(1))
    await within(gate.entered.wait())
    assert await wired.ask(call("ping", "ping")) == {"jsonrpc": "2.0", "id": "ping", "result": {}}
    gate.release.set()
    assert (await wired.until(2))[1] == {"jsonrpc": "2.0", "id": 1, "result": {"done": True}}


async def test_messages_begin_in_the_order_in_which_they_came() -> None:  # F029
    server = StubServer(a=pong, b=pong)
    wired = Wired(server)
    wired.receive(call(1, "a"), note("n1"), call(2, "b"), note("n2"), call("3", "a"))
    await wired.idle()
    assert server.began == [1, "n1", 2, "n2", "3"]
    assert [answer["id"] for answer in wired.sent] == [1, 2, "3"]


@pytest.mark.req("M-004", "M-006", "A-026")
async def test_ids_that_look_alike_are_different_requests() -> None:  # F019, F020
    ids = [7, "7", "07", " 7 ", "+7", 0, "", "0"]
    gates: dict[Any, Gate] = {}

    async def handler(request: Any, peer: Any) -> Any:
        gate = gates[type(request.id), request.id] = Gate()
        return await gate(request, peer)

    wired = Wired(StubServer(tools_call=handler))
    wired.receive(*map(call, ids))
    await wired.begun()
    assert len(gates) == len(ids)
    for gate in gates.values():
        gate.release.set()
    answers = await wired.until(len(ids))
    assert [answer["id"] for answer in answers] == ids
    assert all("result" in answer for answer in answers)


@pytest.mark.req("M-010", "A-022")
@pytest.mark.parametrize("fault", [ValueError("secret"), MCPError(-32602, "secret")])
async def test_nothing_is_sent_for_a_notification(fault: Exception) -> None:  # F023
    async def handler(request: Any, peer: Any) -> Any:
        raise fault

    wired = Wired(StubServer(notifications_foo=handler))
    wired.receive(note("notifications/foo"), note("tools/call", name="x"), '{"method":"notifications/bad"}')
    assert await wired.idle() == []


@pytest.mark.req("M-026")
async def test_a_server_that_fails_without_an_answer_is_answered_for(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(request: Any, peer: Any) -> Any:
        raise ValueError("secret")

    wired = Wired(StubServer(tools_call=handler, ping=pong))
    answer = await wired.ask(call(1))
    assert answer["error"]["code"] == -32603
    assert "secret" not in json.dumps(answer)
    assert "secret" in caplog.text
    assert "result" in await wired.ask(call(1, "ping")), "the id is free again"


# -- unreadable messages ---------------------------------------------------------------------------------------------


@pytest.mark.req("M-026", "M-007", "H-013", "A-018", "A-019")
@pytest.mark.parametrize(
    ("revision", "has_id"),
    [("2024-11-05", True), ("2025-03-26", True), ("2025-06-18", True), ("2025-11-25", False)],
)
@pytest.mark.parametrize(("text", "code"), [("{", -32700), ('{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600)])
async def test_an_unreadable_id_is_null_or_absent_by_revision(
    revision: str, has_id: bool, text: str, code: int
) -> None:
    wired = Wired(StubServer(ping=pong))
    wired.connection.handshake = handshake(revision)
    answer = await wired.ask(text)
    assert answer["error"]["code"] == code
    assert ("id" in answer, answer.get("id")) == (has_id, None)
    assert "result" in await wired.ask(call(1, "ping")), "the connection goes on"


@pytest.mark.req("M-007", "M-026")
async def test_without_a_handshake_an_unreadable_id_is_left_out() -> None:
    answer = await Wired(StubServer()).ask("{")
    assert answer["error"]["code"] == -32700
    assert "id" not in answer


@pytest.mark.req("M-026")
async def test_a_readable_id_comes_back_with_the_refusal() -> None:  # F010
    answer = await Wired(StubServer()).ask('{"id":99,"method":"tools/list","params":{}}')
    assert (answer["id"], answer["error"]["code"]) == (99, -32600)


@pytest.mark.req("M-010", "M-144")
@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"1.0","method":"notifications/foo"}',
        '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}',
        '{"jsonrpc":"2.0","id":99,"result":{}}',
        '{"jsonrpc":"2.0","id":"1","error":{"code":1,"message":"m"}}',
        '{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}',
    ],
)
async def test_what_asks_for_no_answer_gets_none(text: str) -> None:
    wired = Wired(StubServer(ping=pong))
    wired.receive(text)
    await wired.idle()
    assert await wired.ask(call(1, "ping")) == wired.sent[0]


# -- ids in flight ---------------------------------------------------------------------------------------------------


@pytest.mark.req("M-005", "H-010")
@pytest.mark.parametrize("id_", [1, 0, "", "1"])
async def test_an_id_in_flight_is_refused_and_free_again_after_completion(id_: Any) -> None:  # F022
    gate = Gate()
    wired = Wired(StubServer(tools_call=gate, ping=pong))
    wired.receive(call(id_))
    await within(gate.entered.wait())
    refused = await wired.ask(call(id_, "ping"))
    assert (refused["id"], refused["error"]["code"]) == (id_, -32600)
    gate.release.set()
    assert (await wired.until(2))[1]["result"] == {"done": True}
    await wired.idle()
    assert await wired.ask(call(id_, "ping")) == {"jsonrpc": "2.0", "id": id_, "result": {}}


async def test_two_requests_with_one_id_in_one_read() -> None:
    wired = Wired(StubServer(ping=pong, tools_call=Gate()))
    wired.receive(call(1), call(1, "ping"))
    answers = await wired.until(1)
    assert answers[0]["error"]["code"] == -32600


async def test_requests_in_flight_are_bounded() -> None:
    gate = Gate()
    wired = Wired(StubServer(tools_call=gate, ping=pong), max_in_flight=2)
    wired.receive(call(1), call(2), call(3))
    refused = (await wired.until(1))[0]
    assert (refused["id"], refused["error"]["code"]) == (3, -32603)
    assert refused["error"]["data"] == {"limit": 2}
    gate.release.set()
    await wired.until(3)
    await wired.idle()
    assert "result" in await wired.ask(call(3, "ping"))


# -- cancellation ----------------------------------------------------------------------------------------------------


@pytest.mark.req("M-139", "M-140", "M-145", "H-050", "H-051")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("id_", [1, 0, "", "1_0"])
async def test_a_cancelled_request_stops_and_is_not_answered(  # F021, F043
    era: str, id_: Any, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()
    wired = Wired(StubServer(tools_call=gate, ping=pong))
    wired.receive(call(id_, **ERAS[era]))
    await within(gate.entered.wait())
    with caplog.at_level(logging.INFO, "typedmcp"):
        wired.receive(cancel(id_, reason="changed my mind", **ERAS[era]))
    await within(gate.ended.wait())
    assert gate.outcome == "cancelled"
    assert await wired.idle() == []
    assert "changed my mind" in caplog.text
    assert "result" in await wired.ask(call(id_, "ping")), "the id is free again"


@pytest.mark.req("M-139", "M-143")
async def test_a_request_cancelled_before_it_began() -> None:
    gate = Gate()
    wired = Wired(StubServer(tools_call=gate, ping=pong))
    wired.receive(call(1), cancel(1))
    assert await wired.idle() == []
    assert gate.outcome in (None, "cancelled")
    assert await wired.ask(call(1, "ping")) == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.req("M-139", "M-143")
async def test_a_request_cancelled_while_its_answer_is_ready() -> None:
    gate = Gate()
    wired = Wired(StubServer(tools_call=gate, ping=pong))
    wired.receive(call(1))
    await within(gate.entered.wait())
    gate.release.set()
    wired.receive(cancel(1))
    assert await wired.idle() == []
    assert "result" in await wired.ask(call(1, "ping"))


@pytest.mark.req("M-143", "M-144")
async def test_a_request_cancelled_after_its_answer() -> None:
    wired = Wired(StubServer(ping=pong))
    await wired.ask(call(1, "ping"))
    wired.receive(cancel(1))
    assert len(await wired.idle()) == 1
    assert "result" in await wired.ask(call(1, "ping")), "a late cancellation does not wait for the next request"


@pytest.mark.req("M-144")
@pytest.mark.parametrize(
    "message",
    [
        cancel(99),
        cancel("1"),
        cancel("10"),
        cancel("1_0"),
        cancel(True),
        cancel(1.5),
        cancel(None),
        cancel([1]),
        note("notifications/cancelled"),
        {"jsonrpc": "2.0", "method": "notifications/cancelled"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]},
        note("notifications/cancelled", requestId=1, reason=5),
        {"jsonrpc": "1.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
    ],
    ids=str,
)
async def test_a_cancellation_that_names_no_request_in_flight_is_ignored(message: Any) -> None:
    gate = Gate()
    wired = Wired(StubServer(tools_call=gate))
    wired.receive(call(1))
    await within(gate.entered.wait())
    wired.receive(message)
    await asyncio.sleep(0)
    gate.release.set()
    assert [answer["id"] for answer in await wired.until(1)] == [1]
    assert len(await wired.idle()) == 1


async def test_cancelling_one_of_two_ids_that_look_alike() -> None:  # F020
    gates = {10: Gate(), "1_0": Gate()}

    async def handler(request: Any, peer: Any) -> Any:
        return await gates[request.id](request, peer)

    wired = Wired(StubServer(tools_call=handler))
    wired.receive(call(10), call("1_0"))
    await within(gates["1_0"].entered.wait())
    wired.receive(cancel("1_0"))
    await within(gates["1_0"].ended.wait())
    gates[10].release.set()
    await wired.until(1)
    assert [answer["id"] for answer in await wired.idle()] == [10]


@pytest.mark.req("M-139")
@pytest.mark.parametrize("ending", ["returns", "raises"])
async def test_a_handler_that_swallows_its_cancellation_is_not_heard(ending: str) -> None:
    entered = asyncio.Event()

    async def stubborn(request: Any, peer: Any) -> Any:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if ending == "raises":
                raise ValueError("secret") from None
        return {}

    wired = Wired(StubServer(tools_call=stubborn, ping=pong))
    wired.receive(call(1))
    await within(entered.wait())
    wired.receive(cancel(1))
    assert await wired.idle() == []
    assert "result" in await wired.ask(call(1, "ping"))


@pytest.mark.req("M-139", "M-143")
async def test_a_request_winding_down_still_holds_its_id() -> None:
    entered, tidied, tidy = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow_end(request: Any, peer: Any) -> Any:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            tidied.set()
            await tidy.wait()

    wired = Wired(StubServer(tools_call=slow_end, ping=pong))
    wired.receive(call(1))
    await within(entered.wait())
    wired.receive(cancel(1))
    await within(tidied.wait())
    assert wired.connection.is_cancelled(1)
    assert (await wired.ask(call(1, "ping")))["error"]["code"] == -32600
    wired.receive(cancel(1), cancel(1))
    tidy.set()
    assert len(await wired.idle()) == 1
    assert not wired.connection.is_cancelled(1)
    assert "result" in await wired.ask(call(1, "ping"))


@pytest.mark.req("M-143")
async def test_an_id_used_again_in_the_very_turn_its_cancelled_request_ended() -> None:
    """The new request belongs to nobody's past: it is in flight, can be refused twice and cancelled."""
    second = Gate()
    entered = asyncio.Event()

    async def first(request: Any, peer: Any) -> Any:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            asyncio.get_running_loop().call_soon(wired.receive, call(1, "second"))

    wired = Wired(StubServer(first=first, second=second, ping=pong))
    wired.receive(call(1, "first"))
    await within(entered.wait())
    wired.receive(cancel(1))
    await within(second.entered.wait())
    assert (await wired.ask(call(1, "ping")))["error"]["code"] == -32600, "the second is in flight"
    second.release.set()
    assert (await wired.until(2))[1] == {"jsonrpc": "2.0", "id": 1, "result": {"done": True}}


@pytest.mark.req("H-049")
async def test_initialize_is_not_cancelled() -> None:
    wired = Wired(StubServer(initialize=pong))
    wired.receive(call(1, "initialize"), cancel(1))
    assert [answer["id"] for answer in await wired.until(1)] == [1]
    gate = Gate()
    wired = Wired(StubServer(initialize=gate))
    wired.receive(call(1, "initialize"))
    await within(gate.entered.wait())
    wired.receive(cancel(1))
    await asyncio.sleep(0)
    gate.release.set()
    assert "result" in (await wired.until(1))[0]


@pytest.mark.req("M-143")
async def test_cancelling_everything_in_a_storm() -> None:
    async def handler(request: Any, peer: Any) -> Any:
        for _ in range(request.id % 4):
            await asyncio.sleep(0)
        return {"n": request.id}

    wired = Wired(StubServer(tools_call=handler))
    cancelled = {number for number in range(200) if number % 3 == 0}
    for number in range(200):
        wired.receive(call(number))
        if number in cancelled:
            wired.receive(cancel(number))
        if number % 5 == 0:
            await asyncio.sleep(0)
    await wired.idle()
    answered = [answer["id"] for answer in wired.sent]
    assert len(answered) == len(set(answered))
    assert set(range(200)) - cancelled <= set(answered)


# -- batches ---------------------------------------------------------------------------------------------------------


@pytest.mark.req("H-014", "M-018")
@pytest.mark.parametrize("revision", [None, "2024-11-05", "2025-06-18", "2025-11-25"])
async def test_a_batch_is_refused_outside_its_revision(revision: str | None) -> None:  # F024
    wired = Wired(StubServer(ping=pong))
    wired.connection.handshake = None if revision is None else handshake(revision)
    answer = await wired.ask([call(1, "ping"), note("n")])
    assert answer["error"]["code"] == -32600
    assert answer.get("id") is None
    assert len(await wired.idle()) == 1


def batching(**handlers: Any) -> Wired:
    wired = Wired(StubServer(**handlers))
    wired.connection.handshake = handshake("2025-03-26")
    return wired


@pytest.mark.req("H-014", "H-017")
async def test_the_requests_of_a_batch_are_answered_together() -> None:
    wired = batching(ping=pong)
    answer = await wired.ask([call(2, "ping"), cancel(9), call("2", "ping"), call(3, "no/such")])
    assert [(member["id"], "result" in member) for member in answer] == [(2, True), ("2", True), (3, False)]
    assert answer[2]["error"]["code"] == -32601


@pytest.mark.req("H-014", "M-010")
async def test_a_batch_of_notifications_is_not_answered() -> None:
    server = StubServer()
    wired = Wired(server)
    wired.connection.handshake = handshake("2025-03-26")
    wired.receive([note("n1"), note("n2")], note("n3"))
    assert await wired.idle() == []
    assert server.began == ["n1", "n2", "n3"]


@pytest.mark.req("H-014", "M-026")
async def test_members_that_cannot_be_read_have_their_error_in_the_answer() -> None:
    wired = batching(ping=pong)
    answer = await wired.ask([5, call(None, "ping"), {"id": 7, "method": "x"}, [], {"method": "n"}, call(1, "ping")])
    assert [(member["id"], member.get("error", {}).get("code")) for member in answer] == [
        (None, -32600),
        (None, -32600),
        (7, -32600),
        (None, -32600),
        (1, None),
    ]


@pytest.mark.req("H-014", "M-026")
@pytest.mark.parametrize(("text", "code"), [("[]", -32600), ("[1", -32700), ("[" * 100_000, -32700)])
async def test_an_empty_or_broken_batch_has_one_answer(text: str, code: int) -> None:
    answer = await batching().ask(text)
    assert (answer["id"], answer["error"]["code"]) == (None, code)


@pytest.mark.req("H-015")
async def test_a_batch_never_holds_initialize() -> None:
    async def initialize(request: Any, peer: Any) -> Any:
        raise AssertionError("must not run")

    answer = await batching(initialize=initialize, ping=pong).ask([call(1, "initialize"), call(2, "ping")])
    assert answer[0]["error"]["code"] == -32600
    assert "result" in answer[1]


@pytest.mark.req("H-014", "M-005")
async def test_ids_are_unique_across_batches_and_single_requests() -> None:
    gate = Gate()
    wired = batching(tools_call=gate, ping=pong)
    wired.receive([call(1), call(1, "ping")], call(1, "ping"))
    assert (await wired.until(1))[0]["error"]["code"] == -32600
    gate.release.set()
    (batch,) = (await wired.until(2))[1:]
    assert sorted("result" in member for member in batch) == [False, True]
    await wired.idle()
    assert "result" in (await wired.ask([call(1, "ping")]))[0]


@pytest.mark.req("H-014", "M-139")
@pytest.mark.parametrize("at_once", [True, False])
async def test_a_cancelled_member_is_left_out(at_once: bool) -> None:
    gate = Gate()
    wired = batching(tools_call=gate, ping=pong)
    wired.receive([call(1), call(2, "ping")])
    if not at_once:
        await within(gate.entered.wait())
    wired.receive(cancel(1))
    answer = (await wired.until(1))[0]
    assert [member["id"] for member in answer] == [2]
    wired.receive([call(1)])
    wired.receive(cancel(1))
    assert len(await wired.idle()) == 1, "a batch without an answer left is not answered"
    assert "result" in await wired.ask(call(1, "ping"))


async def test_the_bound_on_requests_in_flight_holds_for_batches() -> None:
    wired = Wired(StubServer(tools_call=(gate := Gate())), max_in_flight=2)
    wired.connection.handshake = handshake("2025-03-26")
    wired.receive([call(number) for number in range(5)])
    await within(gate.entered.wait())
    gate.release.set()
    answer = (await wired.until(1))[0]
    assert ["result" in member for member in answer] == [True, True, False, False, False]
    assert {member["error"]["code"] for member in answer[2:]} == {-32603}


@pytest.mark.req("H-014")
async def test_a_batch_behind_the_handshake_in_one_read() -> None:
    async def initialize(request: Any, peer: Any) -> Any:
        peer.handshake = handshake("2025-03-26")
        return {}

    wired = Wired(StubServer(initialize=initialize, ping=pong))
    wired.receive(call(1, "initialize"), note("notifications/initialized"), [call(2, "ping")])
    answers = await wired.until(2)
    assert answers[0]["id"] == 1
    assert answers[1] == [{"jsonrpc": "2.0", "id": 2, "result": {}}]


@pytest.mark.req("H-014", "H-016")
async def test_responses_arrive_in_a_batch_too() -> None:
    wired = batching()
    asking = asyncio.ensure_future(wired.connection.request(ROOTS, {}, timeout=LIMIT))
    (sent,) = await wired.until(1)
    wired.receive([{"jsonrpc": "2.0", "id": sent["id"], "result": {"roots": []}}])
    assert (await within(asking)).roots == []


# -- calls to the client ---------------------------------------------------------------------------------------------


async def asked(wired: Wired, **options: Any) -> tuple[asyncio.Future[Any], Any]:
    """A call to the client under way, and the id it was sent with."""
    before = len(wired.frames)
    asking = asyncio.ensure_future(wired.connection.request(ROOTS, {}, **options))
    sent = (await wired.until(before + 1))[before]
    assert sent == {"jsonrpc": "2.0", "id": sent["id"], "method": "roots/list", "params": {}}
    return asking, sent["id"]


@pytest.mark.req("M-006", "H-010", "M-142")
async def test_answers_find_their_calls_in_any_order() -> None:
    wired = Wired(StubServer())
    calls = [await asked(wired) for _ in range(3)]
    assert len({number for _, number in calls}) == 3
    for position, (_, number) in reversed(list(enumerate(calls))):
        roots = [{"uri": f"file:///{position}"}]
        wired.receive({"jsonrpc": "2.0", "id": number, "result": {"roots": roots}})
    assert [(await within(asking)).roots[0].uri for asking, _ in calls] == ["file:///0", "file:///1", "file:///2"]


@pytest.mark.req("M-006", "M-033", "M-144")
async def test_answers_under_another_id_or_twice_are_dropped() -> None:
    wired = Wired(StubServer())
    asking, number = await asked(wired)
    good = {"jsonrpc": "2.0", "id": number, "result": {"roots": []}}
    wired.receive({**good, "id": str(number)}, {**good, "id": number + 1}, {**good, "id": ""})
    await asyncio.sleep(0)
    assert not asking.done()
    wired.receive(good, good, {"jsonrpc": "2.0", "id": number, "error": {"code": 1, "message": "late"}})
    assert (await within(asking)).roots == []
    assert len(wired.frames) == 1


@pytest.mark.req("M-033", "M-028")
async def test_the_clients_error_is_raised_with_its_parts() -> None:
    wired = Wired(StubServer())
    asking, number = await asked(wired)
    wired.receive({"jsonrpc": "2.0", "id": number, "error": {"code": -1, "message": "no", "data": {"why": None}}})
    with pytest.raises(MCPError, match="no") as caught:
        await within(asking)
    assert (caught.value.code, caught.value.message, caught.value.data) == (-1, "no", {"why": None})


@pytest.mark.req("M-033", "M-008")
@pytest.mark.parametrize("result", [{}, {"roots": 5}, [], None, "x", {"roots": [{"uri": 1}]}])
async def test_an_answer_of_another_shape_is_the_clients_fault(result: Any) -> None:
    wired = Wired(StubServer())
    asking, number = await asked(wired)
    wired.receive({"jsonrpc": "2.0", "id": number, "result": result})
    with pytest.raises(InvalidResult, match="roots/list"):
        await within(asking)


@pytest.mark.req("M-146", "M-147", "M-033", "M-141")
async def test_a_call_times_out_and_is_cancelled() -> None:
    wired = Wired(StubServer())
    asking, number = await asked(wired, timeout=0.01)
    with pytest.raises(RequestTimeout, match=r"roots/list timed out after 0\.01 s") as caught:
        await within(asking)
    assert isinstance(caught.value, TimeoutError)
    (_, cancelled) = wired.sent
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"]["requestId"] == number
    wired.receive({"jsonrpc": "2.0", "id": number, "result": {"roots": []}})
    assert len(await wired.idle()) == 2


@pytest.mark.req("M-141", "H-050")
async def test_a_call_given_up_is_cancelled_once() -> None:
    wired = Wired(StubServer())
    asking, number = await asked(wired)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert [message["params"] for message in wired.sent[1:]] == [{"requestId": number, "reason": "no longer needed"}]


async def test_the_clients_cancellation_names_its_own_requests_only() -> None:
    wired = Wired(StubServer())
    asking, number = await asked(wired)
    wired.receive(cancel(number))
    wired.receive({"jsonrpc": "2.0", "id": number, "result": {"roots": []}})
    assert (await within(asking)).roots == []


async def test_a_request_and_a_call_may_have_the_same_id() -> None:
    async def nested(request: Any, peer: Any) -> Any:
        return {"roots": len((await peer.request(ROOTS, {}, timeout=LIMIT)).roots)}

    wired = Wired(StubServer(tools_call=nested))
    wired.receive(call(1))
    (sent,) = await wired.until(1)
    assert sent["id"] == 1
    wired.receive({"jsonrpc": "2.0", "id": 1, "result": {"roots": []}})
    assert (await wired.until(2))[1] == {"jsonrpc": "2.0", "id": 1, "result": {"roots": 0}}


# -- the end ---------------------------------------------------------------------------------------------------------


@pytest.mark.req("M-140", "M-033")
async def test_the_end_cancels_what_runs_and_fails_what_waits() -> None:
    gates = [Gate(), Gate(), Gate()]

    async def handler(request: Any, peer: Any) -> Any:
        return await gates[request.id](request, peer)

    async def noted(request: Any, peer: Any) -> Any:
        await gates[2](request, peer)

    wired = batching(tools_call=handler, notifications_foo=noted)
    asking, _ = await asked(wired)
    wired.receive(call(0), [call(1)], note("notifications/foo"))
    for gate in gates:
        await within(gate.entered.wait())
    wired.connection.close()
    wired.connection.close()
    await within(wired.connection.wait_closed())
    assert [gate.outcome for gate in gates] == ["cancelled"] * 3
    with pytest.raises(ConnectionClosed) as caught:
        await within(asking)
    assert isinstance(caught.value, TransportError)
    assert len(wired.frames) == 1, "nothing is written to a closed stream"


async def test_after_the_end_nothing_is_taken_or_sent() -> None:
    server = StubServer(ping=pong)
    wired = Wired(server)
    wired.connection.close()
    wired.receive(call(1, "ping"), "{", note("n"), [call(2, "ping")])
    wired.connection.notify("notifications/message", {})
    with pytest.raises((ConnectionClosed, NotConnected)):
        await wired.connection.request(ROOTS, {})
    assert await wired.idle() == []
    assert server.began == []


async def test_a_handler_that_ignores_the_end_sends_nothing() -> None:
    entered = asyncio.Event()

    async def stubborn(request: Any, peer: Any) -> Any:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            peer.notify("notifications/progress", {"progressToken": 1, "progress": 1})
        return {}

    wired = Wired(StubServer(tools_call=stubborn))
    wired.receive(call(1))
    await within(entered.wait())
    wired.connection.close()
    assert await wired.idle() == []


async def test_waiting_for_the_end_has_a_limit() -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    async def slow_end(request: Any, peer: Any) -> Any:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()

    wired = Wired(StubServer(tools_call=slow_end))
    wired.receive(call(1))
    await within(entered.wait())
    wired.connection.close()
    await within(wired.connection.wait_closed(0.01))
    release.set()
    await wired.idle()


@pytest.mark.req("M-034", "A-012")
async def test_notifications_to_the_client() -> None:
    wired = Wired(StubServer())
    wired.connection.notify("notifications/tools/list_changed")
    wired.connection.notify("notifications/message", {"level": "info", "data": "a\u2028b"})
    assert wired.sent == [
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
        note("notifications/message", level="info", data="a\u2028b"),
    ]
    assert all(len(frame.decode().splitlines()) == 1 for frame in wired.frames)


@pytest.mark.req("A-034")
async def test_a_result_without_json_form_is_an_internal_error_and_frees_the_id() -> None:
    async def odd(request: Any, peer: Any) -> Any:
        return {"x": float("nan")}

    wired = Wired(StubServer(tools_call=odd, ping=pong))
    assert (await wired.ask(call(1)))["error"]["code"] == -32603
    assert "result" in await wired.ask(call(1, "ping"))
