"""Real server processes: what reaches their output, what their children inherit, how they end."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from transport_fakes import Inbox, call

from typedmcp.transports.stdio import StdioClientTransport

SERVERS = Path(__file__).parent / "servers"
SERVE = str(SERVERS / "serve.py")


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more}


def line(request_id: int, method: str = "echo", **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


@contextlib.contextmanager
def served(**more: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env=environment(**more),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def ask(process: subprocess.Popen[bytes], data: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(data)
    assert select.select([process.stdout], [], [], 20)[0], "no answer"
    return process.stdout.readline()


@pytest.mark.req("M-074", "M-076", "A-288")
@pytest.mark.parametrize("flush", [True, False])
def test_only_messages_reach_the_output(flush: bool) -> None:
    """F013: a print goes to standard error while serving; afterwards the output is the process's own again."""
    with served() as process:
        assert ask(process, line(1, "print", flush=flush)) == b'{"jsonrpc":"2.0","id":1,"result":{"flush":%s}}\n' % (
            b"true" if flush else b"false"
        )
        out, err = process.communicate(timeout=20)
    assert out == b"after serving\n"
    assert err == b"stray\n"
    assert process.returncode == 0


@pytest.mark.req("M-074")
def test_a_child_of_a_tool_gets_neither_pipe() -> None:
    """F013: the child finds an empty input, and what it prints goes to standard error."""
    with served() as process:
        assert json.loads(ask(process, line(1, "child")))["result"] == {"code": 0}
        assert json.loads(ask(process, line(2)))["id"] == 2
        out, err = process.communicate(timeout=20)
    assert (out, err) == (b"after serving\n", b"from the child\n")


@pytest.mark.req("M-073", "A-304")
@pytest.mark.parametrize("encoding", ["gbk", "ascii", "utf-16"])
def test_the_locale_does_not_matter(encoding: str) -> None:
    """F015: UTF-8 and exactly LF, whatever the environment says (F008)."""
    text = "\u00a0 中文 🙂"
    with served(PYTHONIOENCODING=encoding, LC_ALL="C", PYTHONUTF8="0") as process:
        assert ask(process, line(1, text=text)) == (
            '{"jsonrpc":"2.0","id":1,"result":{"text": "' + text + '"}}\n'
        ).encode().replace(b'": "', b'":"')


@pytest.mark.req("M-079")
def test_end_of_input_ends_the_process() -> None:
    """F016: with a request still running."""
    with served() as process:
        assert process.stdin is not None
        ask(process, line(1))
        process.stdin.write(line(2, "wait"))
        began = time.monotonic()
        out, _ = process.communicate(timeout=20)
        assert process.returncode == 0
        assert time.monotonic() - began < 5
    assert out == b"after serving\n"


def test_an_interrupt_gives_the_streams_back() -> None:
    with served() as process:
        ask(process, line(1))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert b"KeyboardInterrupt" in err
    assert b"Task was destroyed" not in err


def test_requests_from_a_file(tmp_path: Path) -> None:
    """``server < requests > answers``: neither can be watched."""
    (tmp_path / "in").write_bytes(line(1) + line(2).rstrip())
    with open(tmp_path / "in", "rb") as given, open(tmp_path / "out", "wb") as out:
        subprocess.run([sys.executable, SERVE], stdin=given, stdout=out, env=environment(), timeout=20, check=True)
    answers = (tmp_path / "out").read_bytes().splitlines()
    assert [json.loads(answer)["id"] for answer in answers[:2]] == [1, 2]
    assert answers[2:] == [b"after serving"]


def test_without_standard_error() -> None:
    """A process started without descriptor 2."""
    command = f"exec {sys.executable} {SERVE} 2>&-"
    found = subprocess.run(
        ["sh", "-c", command], input=line(1, "print", flush=True) + line(2), capture_output=True,
        env=environment(), timeout=20, check=False,
    )  # fmt: skip
    assert [json.loads(each)["id"] for each in found.stdout.splitlines()[:2]] == [1, 2], found


def test_on_a_terminal() -> None:
    """By hand: input and output are one terminal, whose mode the shell must find as it was."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, SERVE], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=environment()
    ) as process:
        os.write(ours, line(1))
        seen = b""
        while seen.count(b"\n") < 2:  # its echo, and the answer
            assert select.select([ours], [], [], 20)[0], seen
            seen += os.read(ours, 4096)
        assert json.loads(seen.splitlines()[1]) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert os.get_blocking(theirs)
        os.write(ours, b"\x04")
        assert process.wait(20) == 0
    os.close(ours)
    os.close(theirs)


def test_setting_streams_aside_twice_is_refused() -> None:
    code = """
import asyncio
from transport_fakes import FakeServer
from typedmcp.core.errors import UsageError
from typedmcp.transports.stdio import create_stdio_server
async def main():
    first, second = create_stdio_server(FakeServer()), create_stdio_server(FakeServer())
    await first.start()
    try:
        await second.start()
    except UsageError as error:
        text = str(error)
    await first.stop()
    print(text)
    print("once more")
asyncio.run(main())
"""
    env = environment(PYTHONPATH=os.pathsep.join([*sys.path, str(SERVERS)]))
    found = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, capture_output=True, env=env, timeout=20, check=True
    )
    assert found.stdout.splitlines()[1] == b"once more"
    assert b"input= and output=" in found.stdout


@pytest.mark.req("A-287", "A-293", "A-289", "A-297", "M-083")
async def test_client_and_server() -> None:
    transport = StdioClientTransport(sys.executable, [SERVE], environment(), stderr="capture")
    inbox = Inbox(transport)
    await transport.start()
    await transport.send([call(n, text="🙂" * n) for n in range(200)])
    assert [(await inbox.message()).id for _ in range(200)] == list(range(200))
    await transport.send(call(1, "wait"))
    await transport.close()
    event, _ = await inbox.next()
    while event == "error":
        event, _ = await inbox.next()
    assert event == "close"


@pytest.mark.req("A-294")
def test_a_server_loads_nothing_of_the_client() -> None:
    """F106: no web stack, nothing that runs processes beyond what asyncio itself loads."""
    code = """
import sys
import typedmcp.transports.stdio.server
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"aiohttp", "jsonschema", "cryptography", "click", "jinja2"}))
print([name for name in sys.modules if name.startswith("typedmcp.transports.stdio.c")])
"""
    found = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, timeout=20, check=True)
    assert found.stdout == b"[]\n[]\n"
