"""A server's faults fail the call they belong to, or are reported; they never end the client, and never hang it."""

from __future__ import annotations

import asyncio
import re

import pytest
from tests.client.helpers import CHANGED, SEED, Events, method_of, talking, text_result, turns

from typedmcp.core.errors import ConnectionClosed, InvalidResult, MessageError, ProcessExited, TransportError

UNREADABLE: dict[str, bytes] = {
    "lone surrogate": rb'{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"\ud800"}]}}',
    "lone surrogate, id last": rb'{"result":{"content":[{"type":"text","text":"\udfff"}]},"jsonrpc":"2.0","id":2}',
    "NaN": b'{"jsonrpc":"2.0","id":2,"result":{"content":[],"structuredContent":NaN}}',
    "bad UTF-8": b'{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"\xff"}]}}',
    "too deep": b'{"jsonrpc":"2.0","id":2,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "cut short": b'{"jsonrpc":"2.0","id":2,"result":{"content":[',
    "spaced, cut": b' { "jsonrpc" : "2.0" , "id" : 2 , "error" : {"code"',
    "both arms": b'{"jsonrpc":"2.0","id":2,"result":{},"error":{"code":1,"message":"m"}}',
    "no arm": b'{"jsonrpc":"2.0","id":2}',
    "no version": b'{"id":2,"result":{}}',
    "wrong version": b'{"jsonrpc":"1.0","id":2,"result":{}}',
    "error without code": b'{"jsonrpc":"2.0","id":2,"error":{"message":"m"}}',
    "error with a text code": b'{"jsonrpc":"2.0","id":2,"error":{"code":"1","message":"m"}}',
    "error is null": b'{"jsonrpc":"2.0","id":2,"error":null}',
    "id with a fraction of zero": b'{"jsonrpc":"2.0","id":2.0,"result":{}}',
}


@pytest.mark.req("M-002", "M-004", "M-008")
@pytest.mark.parametrize("frame", UNREADABLE.values(), ids=list(UNREADABLE))
async def test_an_unreadable_answer_fails_its_call(frame: bytes) -> None:
    """F027, F044: whoever waits is told at once, and the next call works."""
    events = Events()
    async with talking(on=events.on, timeout=None) as (client, server):
        call = asyncio.create_task(client.call("f"))
        await server.frame("tools/call")
        server.send(frame)
        with pytest.raises(InvalidResult):
            await asyncio.wait_for(call, 5)
        again = asyncio.create_task(client.call("f"))
        await server.reply("tools/call", text_result("7"))
        assert await again == 7
        assert events.of("error") == []


async def test_half_a_surrogate_pair_is_called_by_its_name() -> None:
    """F027: the decoder calls it truncated input, which helps nobody."""
    async with talking() as (client, server):
        call = asyncio.create_task(client.call("f"))
        await server.frame("tools/call")
        server.send(UNREADABLE["lone surrogate"])
        with pytest.raises(InvalidResult, match="surrogate") as caught:
            await call
        assert isinstance(caught.value.__cause__, MessageError)


NO_ANSWER: dict[str, bytes] = {
    "not JSON": b"Starting server ...",
    "empty": b"",
    "cut short": b'{"jsonrpc":"2.0","result":{',
    "a number": b"5",
    "null": b"null",
    "an array": b'[{"jsonrpc":"2.0","id":2,"result":{}}]',
    "an object": b"{}",
    "bad UTF-8": b"\xff\xfe",
    "null id": b'{"jsonrpc":"2.0","id":null,"result":{}}',
    "true as id": b'{"jsonrpc":"2.0","id":true,"result":{}}',
    "a fraction as id": b'{"jsonrpc":"2.0","id":2.5,"result":{}}',
    "a list as id": b'{"jsonrpc":"2.0","id":[2],"result":{}}',
    "text as id": b'{"jsonrpc":"1.0","id":"2","result":{}}',
    "a broken request with our id": b'{"jsonrpc":"1.0","id":2,"method":"roots/list"}',
    "a broken request with our id, cut": b'{"jsonrpc":"2.0","id":2,"method":"roots/list","params":{',
    "method is no text": b'{"jsonrpc":"2.0","id":2,"method":5}',
    "somebody else's": rb'{"jsonrpc":"2.0","id":99,"result":{"x":"\ud800"}}',
    "deep": b"[" * 100_000,
}


@pytest.mark.req("M-009", "M-018", "A-151")
@pytest.mark.parametrize("frame", NO_ANSWER.values(), ids=list(NO_ANSWER))
async def test_an_unreadable_frame_is_an_error_event_and_no_more(frame: bytes) -> None:
    """F009, F018: nothing is sent back, nothing pending is touched, the client goes on."""
    events = Events()
    async with talking(on=events.on) as (client, server):
        call = asyncio.create_task(client.call("f"))
        asked = await server.frame("tools/call")
        server.send(frame)
        server.send(CHANGED)
        await server.silence()
        assert not call.done()
        (error,) = events.of("error")
        assert isinstance(error, MessageError)
        assert [method_of(note) for note in events.of("notification")] == [CHANGED["method"]]
        server.answer(asked, text_result("7"))
        assert await call == 7


@pytest.mark.parametrize(
    ("result", "pointers"),
    [
        ({}, ["/content"]),
        ({"content": "text"}, ["/content"]),
        ({"content": [{"type": "text"}]}, ["/content/0/text"]),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": 5}]}, ["/content/1/text"]),
        ({"content": [], "isError": "no"}, ["/isError"]),
        ({"content": [], "_meta": []}, ["/_meta"]),
        ([], [""]),
        ("text", [""]),
        (None, [""]),
    ],
)
async def test_a_malformed_result_tells_where(result: object, pointers: list[str]) -> None:
    async with talking() as (client, server):
        call = asyncio.create_task(client.call("f"))
        await server.reply("tools/call", result)
        with pytest.raises(InvalidResult) as caught:
            await call
        assert [violation.pointer for violation in caught.value.violations] == pointers
        assert str(caught.value).startswith("the result of tools/call is malformed: ")
        assert caught.value.violations[0].message in str(caught.value)


@pytest.mark.parametrize("kind", [5, "video", None])
async def test_a_block_of_an_unknown_kind_is_a_malformed_result(kind: object) -> None:
    async with talking() as (client, server):
        call = asyncio.create_task(client.call("f"))
        await server.reply("tools/call", {"content": [{"type": kind, "text": "a"}]})
        with pytest.raises(InvalidResult) as caught:
            await call
        assert caught.value.violations[0].pointer.startswith("/content/0")


async def test_unknown_members_do_no_harm() -> None:
    async with talking() as (client, server):
        call = asyncio.create_task(client.call("f"))
        frame = await server.frame("tools/call")
        result = {**text_result("7"), "x-new": {"a": [1]}}
        server.send({"jsonrpc": "2.0", "id": frame["id"], "result": result, "x-more": 1})
        assert await call == 7


# --- the end of a connection


@pytest.mark.req("A-128", "M-033")
async def test_a_close_while_waiting_fails_every_call() -> None:
    """F044: at once, as a lost connection."""
    events = Events()
    async with talking(on=events.on, timeout=None) as (client, server):
        calls = [asyncio.create_task(client.ping()) for _ in range(3)]
        for _ in calls:
            await server.frame("ping")
        await server.close()
        for call in calls:
            with pytest.raises(ConnectionClosed, match="waiting for ping"):
                await asyncio.wait_for(call, 5)
        assert events.names() == ["connect", "disconnect"]


@pytest.mark.parametrize(
    "cause", [ProcessExited("the server ended with exit code 3", 3, "boom"), TransportError("reset"), OSError("reset")]
)
async def test_the_cause_of_the_end_is_chained(cause: Exception) -> None:
    """F048: one documented type, the cause in its text and chained, no group."""
    events = Events()
    async with talking(on=events.on) as (client, server):
        call = asyncio.create_task(client.ping())
        await server.frame("ping")
        server.fault(cause)
        await server.close()
        with pytest.raises(ConnectionClosed, match=re.escape(str(cause))) as caught:
            await call
        assert caught.value.__cause__ is cause
        assert events.of("error") == [cause]


@pytest.mark.parametrize("passed", [b"not json", "a fault long past"])
async def test_a_fault_the_connection_survived_is_no_cause(passed: bytes | str) -> None:
    async with talking() as (client, server):
        call = asyncio.create_task(client.ping())
        await server.frame("ping")
        if isinstance(passed, bytes):
            server.send(passed)
        else:
            server.fault(TransportError(passed))
            server.send(CHANGED)
        await turns()
        await server.close()
        with pytest.raises(ConnectionClosed) as caught:
            await call
        assert caught.value.__cause__ is None


async def test_a_request_stuck_in_sending_ends_with_the_connection() -> None:
    """Nobody takes the messages; the server goes away: the caller hears of it, and no exception is left untaken."""
    async with talking(SEED) as (client, server):
        send = server.client.send
        gate = asyncio.Event()

        async def stuck(message: object) -> None:
            await gate.wait()
            await send(message)  # type: ignore[arg-type]

        server.client.send = stuck  # type: ignore[method-assign]
        call = asyncio.create_task(client.ping())
        await turns()
        await server.close()
        gate.set()
        with pytest.raises(ConnectionClosed):
            await call
        server.client.send = send  # type: ignore[method-assign]
