"""``typedmcp run``, as a client sees it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from typedmcp import connect

Start = Callable[..., subprocess.Popen[str]]

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
}


def request(method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META, **params}}) + "\n"


def test_nothing_but_messages_on_the_output_and_an_end_with_the_input(start: Start, servers: Path) -> None:
    process = start("run", str(servers / "tools.py"))
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(request("tools/call", name="echo", arguments={"text": "hello"}))
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    assert answer["result"]["structuredContent"] == {"result": "hello"}
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "")
    assert "printed while imported" in err
    assert "printed while called" in err


async def test_a_client_connects(servers: Path, child_environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "typedmcp", "run", "pack/served.py"]
    async with connect(command, env=child_environment, cwd=str(servers)) as client:
        assert client.server_info is not None
        assert client.server_info.name == "packed"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_signals_end_it_cleanly(start: Start, servers: Path, number: int, code: int) -> None:
    process = start("run", str(servers / "tools.py"))
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(request("server/discover"))
    process.stdin.flush()
    assert process.stdout.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (code, "")
    assert "Traceback" not in err
