"""The wired pair, and a server in process."""

from __future__ import annotations

import asyncio

import pytest
from transport_fakes import FakeServer, Inbox, call

from typedmcp.core.errors import ConnectionClosed, MessageError, NotConnected
from typedmcp.core.jsonrpc import JSONRPCRequest, JSONRPCResponse
from typedmcp.core.transport import ClientTransportInterface
from typedmcp.transports.memory import MemoryTransport, create_memory_pair, serve_memory


@pytest.mark.req("A-155", "A-156", "A-158", "A-160")
async def test_messages_cross_as_bytes_and_in_order() -> None:
    one, other = create_memory_pair()
    inbox = Inbox(other)
    await one.start()
    params = {"text": "a\u2028b"}
    await one.send(JSONRPCRequest(id=1, method="echo", params=params))
    await one.send([call(2), call(3)])
    await asyncio.sleep(0)
    assert inbox.queue.empty(), "nothing arrives before the other end has started"
    await other.start()
    messages = [await inbox.message() for _ in range(3)]
    assert [message.id for message in messages] == [1, 2, 3]
    assert bytes(messages[0].params) == b'{"text":"a\\u2028b"}'
    assert one.session is None
    await one.close()


async def test_delivery_is_never_inside_send() -> None:
    one, other = create_memory_pair()
    seen: list[object] = []
    other.emitter.on("message", seen.append)
    await one.start()
    await other.start()
    await one.send(call(1))
    assert seen == []
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(seen) == 1
    await one.close()


@pytest.mark.req("A-157")
async def test_closing_one_end_closes_the_other_after_what_was_sent() -> None:
    one, other = create_memory_pair()
    mine, theirs = Inbox(one), Inbox(other)
    await one.start()
    await other.start()
    await one.send(call(1))
    await one.close()
    await one.close()
    assert (await theirs.message()).id == 1
    assert await theirs.next() == ("close", None)
    assert await mine.next() == ("close", None)
    for end in (one, other):
        with pytest.raises(ConnectionClosed):
            await end.send(call(2))
    with pytest.raises(NotConnected, match="new pair"):
        await one.start()
    assert mine.queue.empty()
    assert theirs.queue.empty()


async def test_send_waits_while_the_other_end_does_not_read() -> None:
    one, other = create_memory_pair(limit=2)
    inbox = Inbox(other)
    await one.start()
    sending = asyncio.create_task(one.send([call(n) for n in range(5)]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not sending.done()
    await other.start()
    assert [(await inbox.message()).id for _ in range(5)] == [0, 1, 2, 3, 4]
    await sending
    held = asyncio.create_task(other.send([call(n) for n in range(5)]))
    one.emitter.on("message", lambda _: None)
    await held
    await other.close()


async def test_a_close_frees_who_waits_to_send() -> None:
    one, other = create_memory_pair(limit=1)
    await one.start()
    sending = asyncio.create_task(one.send([call(1), call(2)]))
    await asyncio.sleep(0)
    await other.close()
    with pytest.raises(ConnectionClosed):
        await sending


async def test_send_before_start() -> None:
    one, _ = create_memory_pair()
    with pytest.raises(NotConnected, match="start"):
        await one.send(call(1))


async def test_a_server_answers_and_its_faults_are_events() -> None:
    server = FakeServer()
    served = serve_memory(server)
    inbox, faults = Inbox(served.client), Inbox(served.transport)
    await served.client.start()
    await served.client.send([call(1, text="hi"), JSONRPCRequest(method="note"), call(2, "fault")])
    answer = await inbox.message()
    assert (answer.id, bytes(answer.result)) == (1, b'{"text":"hi"}')
    failed = await inbox.message()
    assert (failed.id, failed.error.code, failed.error.message) == (2, -32603, "Internal error")
    assert server.notes == ["note"]
    events = [await faults.next() for _ in range(4)]
    assert [event for event, _ in events] == ["message", "message", "message", "error"]
    assert isinstance(events[3][1], RuntimeError)
    await served.client.close()


async def test_what_is_no_message_is_answered() -> None:
    served = serve_memory(FakeServer())
    inbox, faults = Inbox(served.client), Inbox(served.transport)
    await served.client.start()
    await served.client.send(JSONRPCRequest(id=True, method="echo"))
    answer = await inbox.message()
    assert isinstance(answer, JSONRPCResponse)
    assert answer.error is not None
    assert (await faults.next())[0] == "error"
    await served.stop()


@pytest.mark.req("M-140")
async def test_closing_the_client_cancels_the_handlers() -> None:
    server = FakeServer()
    served = serve_memory(server)
    await served.client.start()
    await served.client.send(call(7, "wait"))
    await server.begun.wait()
    await served.client.close()
    assert server.cancelled == [7]
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.req("M-140")
async def test_stopping_the_server_closes_the_client() -> None:
    server = FakeServer()
    served = serve_memory(server)
    inbox = Inbox(served.client)
    await served.client.start()
    await served.client.send(call(7, "wait"))
    await server.begun.wait()
    await served.stop()
    assert server.cancelled == [7]
    assert await inbox.next() == ("close", None)


def test_two_loops_one_server() -> None:
    """F108: nothing belongs to a loop before it is used there."""
    server = FakeServer()

    async def main() -> object:
        served = serve_memory(server)
        inbox = Inbox(served.client)
        await served.client.start()
        await served.client.send(call(1))
        answer = await inbox.message()
        await served.client.close()
        return answer.id

    assert [asyncio.run(main()), asyncio.run(main())] == [1, 1]


@pytest.mark.req("A-311", "A-159")
def test_exactly_the_interface() -> None:
    public = {name for name in dir(MemoryTransport) if not name.startswith("_")}
    assert public | {"emitter"} == {name for name in dir(ClientTransportInterface) if not name.startswith("_")}


async def test_malformed_bytes_on_the_plain_pair_are_an_error() -> None:
    one, other = create_memory_pair()
    inbox = Inbox(other)
    await one.start()
    await other.start()
    await one.send(JSONRPCRequest(id=None, method="echo"))  # type: ignore[arg-type]
    event, error = await inbox.next()
    assert event == "error"
    assert isinstance(error, MessageError)
    await other.close()
