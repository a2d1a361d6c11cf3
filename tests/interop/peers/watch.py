"""Run a server, pass its input and output through, and write down what was said and how it ended.

    python watch.py FILE -- COMMAND...

The file gets one JSON object a line: `{"from": "client" | "server", "message": ...}`, and at last `{"end": ...}`.
"""

import json
import os
import signal
import subprocess
import sys
import threading


def main() -> int:
    path, _, *command = sys.argv[1:]
    signals: list[int] = []
    unreadable: list[str] = []
    writing = threading.Lock()
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def caught(number: int, _: object) -> None:
        signals.append(number)
        child.send_signal(number)

    signal.signal(signal.SIGTERM, caught)
    signal.signal(signal.SIGINT, caught)

    with open(path, "a", encoding="utf-8") as log:

        def note(**entry: object) -> None:
            with writing:
                log.write(json.dumps(entry) + "\n")
                log.flush()

        def pump(sender: str, source: int, target: int) -> None:
            kept = b""
            while chunk := os.read(source, 65536):
                # Noted before it is passed on: whoever reacts to a message finds it in the file.
                *lines, kept = (kept + chunk).split(b"\n")
                for line in lines:
                    try:
                        note(**{"from": sender, "message": json.loads(line)})
                    except ValueError:
                        unreadable.append(f"{sender}: {line!r}")
                try:
                    while chunk:
                        chunk = chunk[os.write(target, chunk) :]
                except BrokenPipeError:
                    break
            if kept:
                unreadable.append(f"{sender}, unfinished: {kept!r}")

        def inward() -> None:
            assert child.stdin is not None
            pump("client", 0, child.stdin.fileno())
            child.stdin.close()

        assert child.stdout is not None
        threading.Thread(target=inward, daemon=True).start()
        outward = threading.Thread(target=pump, args=("server", child.stdout.fileno(), 1), daemon=True)
        outward.start()
        returncode = child.wait()
        outward.join(2)
        note(end={"returncode": returncode, "signals": signals, "unreadable": unreadable})
    return returncode


if __name__ == "__main__":
    sys.exit(main())
