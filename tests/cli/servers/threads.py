"""A server whose tool receives the Ctrl-C in its own thread, as a system may let any thread do."""

import signal
import threading
import time

from typedmcp import App

app = App("threads")


@app.tool
def catch(seconds: float) -> str:
    """Send a Ctrl-C to this thread when the event loop has nothing to do, and sleep."""
    time.sleep(0.5)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    time.sleep(seconds)
    return "woke"
