"""The client's side of stdio, with real child processes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import json
from transport_fakes import Inbox, call

from typedmcp.core.errors import ConnectionClosed, NotConnected, ProcessExited, TransportError, UsageError
from typedmcp.core.jsonrpc import JSONRPCRequest
from typedmcp.core.transport import ClientTransportInterface
from typedmcp.transports.lines import BadLine, LineTooLong
from typedmcp.transports.stdio import StdioClientTransport, create_stdio_client_transport
from typedmcp.transports.stdio.child import STDERR_TAIL, watch_exit

CHILD = str(Path(__file__).parent / "servers" / "child.py")


def child(how: str, *args: str, **options: Any) -> StdioClientTransport:
    return StdioClientTransport(sys.executable, ["-S", CHILD, how, *args], **options)


@contextlib.asynccontextmanager
async def running(transport: StdioClientTransport) -> AsyncIterator[Inbox]:
    inbox = Inbox(transport)
    await transport.start()
    try:
        yield inbox
    finally:
        await transport.close()


async def told(inbox: Inbox) -> Any:
    """The result of the next message."""
    return json.decode((await inbox.message()).result)


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead but not reaped by whoever adopted it does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def gone(pid: int) -> bool:
    for _ in range(200):
        if not alive(pid):
            return True
        await asyncio.sleep(0.02)
    return False


@pytest.mark.req("A-293", "A-294", "A-296", "A-297", "A-300", "A-156", "A-160", "M-075", "M-083")
async def test_driven_by_hand() -> None:
    transport = create_stdio_client_transport(sys.executable, args=["-S", CHILD, "mirror"])
    inbox = Inbox(transport)
    await transport.start()
    await transport.send(call(1, text="zwölf 🙂\u2028\n"))
    assert await told(inbox) == {"text": "zwölf 🙂\u2028\n"}
    await transport.send([call(2), call(3)])
    assert [(await inbox.message()).id, (await inbox.message()).id] == [2, 3]
    assert transport.session is None
    await transport.close()
    await inbox.close()
    await transport.close()
    assert inbox.queue.empty()


@pytest.mark.req("A-297", "A-305")
async def test_bad_lines_are_reported_and_survived() -> None:
    """F007, F009: bytes that are no UTF-8, text glued in front, an envelope without its version, a batch."""
    async with running(child("bad")) as inbox:
        errors = [await inbox.error() for _ in range(4)]
        assert all(isinstance(error, BadLine) for error in errors)
        assert [error.number for error in errors] == [1, 2, 4, 5]
        assert "Line 2: " in str(errors[1])
        assert "'loading...{" in str(errors[1])


async def test_a_call_completes_after_a_bad_line() -> None:
    """F007: the pending call completes with the next line."""
    transport = child("bad")
    async with running(transport) as inbox:
        await transport.send(call(5))
        for _ in range(4):
            await inbox.error()
        assert (await inbox.message()).id == 5


@pytest.mark.req("A-308")
async def test_large_messages_both_ways() -> None:
    """F011: 70,000 bytes, 1 MiB, 32 MiB."""
    transport = child("large")
    async with running(transport) as inbox:
        for size in (70_000, 1 << 20, 32 << 20):
            await transport.send(call(size, text="x" * size, size=size))
            assert await told(inbox) == {"size": size, "text": "y" * size}


async def test_a_line_beyond_the_limit_is_skipped() -> None:
    """F012: reported once, and the stream survives."""
    transport = child("large", limit=1000)
    async with running(transport) as inbox:
        await transport.send([call(1, text="", size=200_000), call(2, text="", size=1)])
        error = await inbox.error()
        assert isinstance(error.__cause__ or error, (LineTooLong, BadLine))
        assert "longer than 1000 bytes" in str(error)
        assert (await inbox.message()).id == 2


@pytest.mark.req("M-077")
async def test_a_chatty_standard_error_does_not_block(capfd: pytest.CaptureFixture[str]) -> None:
    """F014: 2 MiB on standard error before the first answer, captured."""
    transport = child("chatty", stderr="capture")
    async with running(transport) as inbox:
        await transport.send(call(1))
        assert (await inbox.message()).id == 1
    assert capfd.readouterr().err == ""


@pytest.mark.req("A-294", "M-077")
@pytest.mark.parametrize("where", [None, "null", "file"])
async def test_standard_error_goes_where_it_is_told(
    where: str | None, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with open(tmp_path / "log", "wb") as log:  # noqa: ASYNC230
        transport = child("early", stderr=log if where == "file" else where)
        async with running(transport) as inbox:
            assert (await inbox.message()).id == 9
            assert (await inbox.error()).stderr == ""
    said = "cannot open the database\n"
    assert capfd.readouterr().err == (said if where is None else "")
    assert (tmp_path / "log").read_text() == (said if where == "file" else "")


@pytest.mark.req("A-298")
async def test_an_early_exit_is_an_error_and_then_close() -> None:
    transport = child("early", stderr="capture")
    async with running(transport) as inbox:
        assert (await inbox.message()).id == 9, "what it wrote last is delivered, without a line end too"
        error = await inbox.error()
        assert isinstance(error, ProcessExited)
        assert (error.returncode, error.stderr) == (3, "cannot open the database\n")
        assert str(error) == "the server process exited with code 3; it last said: cannot open the database"
        await inbox.close()
        with pytest.raises(ConnectionClosed):
            await transport.send(call(1))
    assert inbox.queue.empty()


async def test_a_signal_that_ends_it_is_named() -> None:
    async with running(child("deaf")) as inbox:
        os.kill(await told(inbox), signal.SIGKILL)
        error = await inbox.error()
        assert (error.returncode, str(error)) == (-9, "the server process was ended by signal 9")


async def test_the_tail_of_standard_error_is_bounded() -> None:
    """F014: a bounded tail."""
    code = "import os; os.write(2, b'a' * 1_000_000 + b'\\xff the end')"
    transport = StdioClientTransport(sys.executable, ["-S", "-c", code], stderr="capture")
    async with running(transport) as inbox:
        error = await inbox.error()
        assert len(error.stderr) == STDERR_TAIL + 3
        assert error.stderr.endswith("a\\xff the end")


@pytest.mark.req("M-080")
async def test_start_again_after_an_exit() -> None:
    transport = child("early", stderr="null")
    inbox = Inbox(transport)
    for _ in range(2):
        await transport.start()
        assert (await inbox.message()).id == 9
        assert isinstance(await inbox.error(), ProcessExited)
        await inbox.close()
        await transport.close()
    assert inbox.queue.empty()


@pytest.mark.req("A-299", "M-078")
async def test_close_lets_the_child_finish(tmp_path: Path) -> None:
    """F017: a child that needs 300 ms after the end of input to write a file."""
    path = tmp_path / "written"
    async with running(child("slow", str(path))) as inbox:
        await inbox.message()
    assert path.read_text() == "done"


@pytest.mark.req("A-299", "M-078")
async def test_close_terminates_and_then_kills() -> None:
    """F017: closing input, SIGTERM, SIGKILL, with waits that can be set."""
    inbox_of: list[Inbox] = []
    async with running(child("deaf", shutdown_timeouts=(0.05, 5.0))) as inbox:
        pid = await told(inbox)
        inbox_of.append(inbox)
    assert await told(inbox_of[0]) == "terminated", "messages are delivered until the end"
    await inbox_of[0].close()
    assert not alive(pid)
    began = time.monotonic()
    async with running(child("stubborn", shutdown_timeouts=(0.05, 0.2))) as inbox:
        pid = await told(inbox)
    assert 0.25 <= time.monotonic() - began < 10
    assert not alive(pid)
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # noqa: ASYNC222


@pytest.mark.req("M-078")
async def test_the_whole_group_ends() -> None:
    """F018: a wrapper whose real server does not care about the end of input."""
    async with running(child("wrapper", shutdown_timeouts=(0.1, 5.0))) as inbox:
        pids = await told(inbox)
    assert [await gone(pid) for pid in pids] == [True, True]


@pytest.mark.req("M-078")
async def test_a_shell_wrapper_ends_with_its_child() -> None:
    """F018: ``sh -c 'sleep 1000 & wait'``."""
    transport = StdioClientTransport("sh", ["-c", "sleep 1000 & echo $!; wait"], shutdown_timeouts=(0.1, 5.0))
    async with running(transport) as inbox:
        pid = int((await inbox.error()).frame)
        assert alive(pid)
    assert await gone(pid)


@pytest.mark.req("M-078", "A-298")
async def test_what_outlives_the_child_and_holds_the_pipes_is_ended() -> None:
    """F018: the child exits by itself, its own child keeps the pipes open."""
    async with running(child("orphan", shutdown_timeouts=(0.1, 5.0))) as inbox:
        pid = await told(inbox)
        error = await inbox.error()
        assert (type(error), error.returncode) == (ProcessExited, 4)
        await inbox.close()
    assert await gone(pid)


async def test_a_child_that_closes_its_output_is_lost() -> None:
    async with running(child("mute", shutdown_timeouts=(0.1, 5.0))) as inbox:
        error = await inbox.error()
        assert isinstance(error, ProcessExited)
        assert "closed its end" in str(error)
        await inbox.close()


async def test_send_waits_for_a_child_that_does_not_read() -> None:
    transport = child("deaf", shutdown_timeouts=(0.1, 5.0))
    async with running(transport) as inbox:
        pid = await told(inbox)
        sending = asyncio.create_task(transport.send(call(1, text="x" * (2 << 20))))
        done, _ = await asyncio.wait([sending], timeout=0.1)
        assert not done
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ConnectionClosed):
            await sending


@pytest.mark.req("A-295", "A-306")
async def test_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TYPEDMCP_SECRET", "s")
    cases: list[tuple[dict[str, Any], Callable[[dict[str, str]], bool]]] = [
        ({}, lambda env: env["TYPEDMCP_SECRET"] == "s"),
        ({"env": {"A": "1"}}, lambda env: {k: v for k, v in env.items() if k != "LC_CTYPE"} == {"A": "1"}),
        ({"env": {"A": "1"}, "env_mode": "merge"}, lambda env: (env["A"], env["TYPEDMCP_SECRET"]) == ("1", "s")),
        ({"env": {"A": "1"}, "env_mode": "minimal"}, lambda env: "PATH" in env and "TYPEDMCP_SECRET" not in env),
    ]
    for options, holds in cases:
        async with running(child("environment", "ü", cwd=tmp_path, **options)) as inbox:
            seen = await told(inbox)
            assert holds(seen["env"]), seen
            assert (seen["cwd"], seen["args"]) == (str(tmp_path), ["ü"])


async def test_what_cannot_be_run_says_why(tmp_path: Path) -> None:
    """F048: one documented type, its cause chained, advice in the text."""
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    plain.chmod(stat.S_IRUSR)
    cases: list[tuple[StdioClientTransport, str]] = [
        (StdioClientTransport("no-such-program"), "full path"),
        (StdioClientTransport("no-such-program", env={}), "env_mode='merge'"),
        (StdioClientTransport(sys.executable, cwd=tmp_path / "no"), "correct cwd="),
        (StdioClientTransport(str(plain)), "not executable"),
        (StdioClientTransport("a\0b"), "cannot run"),
    ]
    before = len(os.listdir("/proc/self/fd"))
    for transport, advice in cases:
        with pytest.raises(TransportError, match=advice) as caught:
            await transport.start()
        assert caught.value.__cause__ is not None
        await transport.close()
    assert len(os.listdir("/proc/self/fd")) == before


async def test_misuse_says_what_to_do() -> None:
    for arguments in ((["python", "x.py"],), ("python", "x.py")):
        with pytest.raises(UsageError, match="args a list"):
            StdioClientTransport(*arguments)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="env_mode"):
        child("mirror", env_mode="all")
    with pytest.raises(UsageError, match="stderr"):
        child("mirror", stderr="pipe")
    transport = child("mirror")
    with pytest.raises(NotConnected):
        await transport.send(call(1))
    await transport.close()
    async with running(transport):
        with pytest.raises(UsageError, match="close"):
            await transport.start()


async def test_close_from_another_task_and_during_cancellation() -> None:
    """F045: opened in one task, closed in another, which is cancelled meanwhile."""
    transport = child("stubborn", shutdown_timeouts=(0.05, 0.3))
    inbox = Inbox(transport)
    await asyncio.create_task(transport.start())
    pid = await told(inbox)
    closing = asyncio.create_task(transport.close())
    await asyncio.sleep(0.01)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await asyncio.gather(transport.close(), transport.close())
    assert not alive(pid)
    await inbox.close()
    assert inbox.queue.empty()


def test_no_child_outlives_its_loop() -> None:
    pids: list[int] = []

    async def forgetful() -> None:
        transport = child("stubborn")
        inbox = Inbox(transport)
        await transport.start()
        pids.append(await told(inbox))

    asyncio.run(forgetful())
    assert not alive(pids[0]), "asyncio.run ends its tasks, and so the child"


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_child_dies_with_a_loop_that_ends_abruptly() -> None:
    async def forgetful() -> int:
        transport = child("stubborn")
        inbox = Inbox(transport)
        await transport.start()
        pid: int = await told(inbox)
        return pid

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    pid = loop.run_until_complete(forgetful())
    loop.close()
    del loop
    gc.collect()
    assert not alive(pid)


def test_a_child_dies_with_the_interpreter() -> None:
    script = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(CHILD).parent)!r})
from typedmcp.transports.stdio import StdioClientTransport
from transport_fakes import Inbox
transport = StdioClientTransport(sys.executable, ["-S", {CHILD!r}, "stubborn"])
inbox = Inbox(transport)
loop = asyncio.new_event_loop()
loop.run_until_complete(transport.start())
print(bytes(loop.run_until_complete(inbox.message()).result).decode(), flush=True)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, timeout=30, check=True)
    assert not alive(int(found.stdout))


async def test_nothing_is_left() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        async with running(child("mirror", stderr="capture")):
            pass
    assert len(os.listdir("/proc/self/fd")) == before
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_exit_is_seen_without_pidfd(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> int:
        raise OSError

    monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    async with running(child("early", stderr="null")) as inbox:
        assert (await inbox.message()).id == 9
        assert (await inbox.error()).returncode == 3
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])  # noqa: ASYNC220
    exited = asyncio.Event()
    watch_exit(process, exited.set)
    await asyncio.wait_for(exited.wait(), 20)
    assert process.wait() == 0


@pytest.mark.req("A-155", "A-157", "A-158", "A-159", "A-285", "A-307", "A-311")
def test_exactly_the_interface() -> None:
    transport: ClientTransportInterface = child("mirror")
    public = {name for name in {*dir(transport), *vars(transport)} if not name.startswith("_")}
    assert public == {name for name in dir(ClientTransportInterface) if not name.startswith("_")}


async def test_a_notification_is_one_line() -> None:
    transport = StdioClientTransport("cat")
    async with running(transport) as inbox:
        await transport.send(JSONRPCRequest(method="notifications/initialized"))
        assert (await inbox.message()).method == "notifications/initialized"
