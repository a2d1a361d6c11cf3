"""The event stream a client of the handshake era gets by GET: what it missed, then what comes."""

from __future__ import annotations

from typedmcp.core.errors import ConnectionClosed
from typedmcp.transports.http.live import LiveSession
from typedmcp.transports.http.outgoing import STREAM_HEADERS, OutgoingStream, Responder
from typedmcp.transports.http.replies import Headers
from typedmcp.transports.http.sessions import STANDALONE, MCPSession


async def stream_session(
    session: MCPSession, cursor: str | None, responder: Responder, headers: Headers, *, keep_alive: float | None
) -> None:
    """Write what a client missed after the event `cursor`, then what comes, until it goes away.

    A cursor of a request's stream resumes that stream, which ends when the request has been answered.
    """
    stream = OutgoingStream(keep_alive=keep_alive)
    name = (session.stream_of(cursor) if cursor else None) or STANDALONE
    live = session.live
    try:
        await responder.begin((*STREAM_HEADERS, *headers))
        for entry in session.replay(cursor) if cursor else ():
            stream.send_event(entry.id, entry.message)
        if isinstance(live, LiveSession):
            if not cursor:
                live.prime(stream, name)
            live.attach(stream, name)
        await stream.pump(responder)
    except ConnectionClosed:
        pass
    finally:
        if isinstance(live, LiveSession):
            live.detach(stream, name)
