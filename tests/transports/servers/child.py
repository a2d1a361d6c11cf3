"""A child process of the client's tests; its first argument says how it behaves.  Standard library only."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

# Sleeps where a test ends the process: long, but not for ever if something goes wrong.
LONG = 60


def put(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def answer(request_id: object, result: object) -> None:
    put(json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}).encode() + b"\n")


def mirror() -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        assert line.endswith(b"\n")
        answer(message["id"], message.get("params"))


def bad() -> None:
    put(b"\xff\xfe\n")
    put(b'loading...{"jsonrpc":"2.0","id":0,"result":{}}\r\n\n')
    put(b'{"id":1,"result":{}}\n[]\n')
    mirror()


def chatty() -> None:
    os.write(2, b"x" * 2_000_000 + "\nletzte Wörter\n".encode())
    mirror()


def slow() -> None:
    answer(0, "ready")
    sys.stdin.buffer.read()
    time.sleep(0.3)
    with open(sys.argv[2], "w") as file:
        file.write("done")


def stubborn() -> None:
    """Takes neither the end of input nor SIGTERM for an answer."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    answer(0, os.getpid())
    time.sleep(LONG)


def deaf() -> None:
    """Never reads; SIGTERM ends it, and it says so."""

    def end(*_: object) -> None:
        answer(1, "terminated")
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    answer(0, os.getpid())
    time.sleep(LONG)


def early() -> None:
    """Fails after a last message without a line end."""
    os.write(2, b"cannot open the database\n")
    put(b'{"jsonrpc":"2.0","id":9,"result":{}}')
    sys.exit(3)


def orphan() -> None:
    """Ends at once and leaves a process that holds the pipes."""
    process = subprocess.Popen([sys.executable, "-S", "-c", f"import time; time.sleep({LONG})"])
    answer(0, process.pid)
    sys.exit(4)


def wrapper() -> None:
    """Waits for a process that does not care about the end of input."""
    process = subprocess.Popen([sys.executable, "-S", "-c", f"import time; time.sleep({LONG})"])
    answer(0, [os.getpid(), process.pid])
    process.wait()


def mute() -> None:
    """Closes its output and stays."""
    os.close(1)
    time.sleep(LONG)


def environment() -> None:
    answer(0, {"env": dict(os.environ), "cwd": os.getcwd(), "args": sys.argv[2:]})
    mirror()


def large() -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        answer(message["id"], {"size": len(message["params"]["text"]), "text": "y" * message["params"]["size"]})


globals()[sys.argv[1]]()
