"""Batches of 2025-03-26 over HTTP: several messages in one POST, answered on one stream or in one array.

Rules:
- Members begin in their order and run side by side.  A member that cannot be read has its error in the answer;
  `initialize` is never part of a batch.
- On a stream each answer is an event, sent when it is there; as JSON all of them are one array.
- Like any request of the era, members run on when the client goes away.
"""

from __future__ import annotations

import asyncio

from msgspec import UNSET

from typedmcp.core.errors import MessageError
from typedmcp.core.jsonrpc import (
    JSONRPCErrorData,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    encode_response,
)
from typedmcp.transports.http.handshake import HandshakePosts
from typedmcp.transports.http.incoming import read_batch
from typedmcp.transports.http.live import LiveSession
from typedmcp.transports.http.mirror import Get
from typedmcp.transports.http.outgoing import Responder
from typedmcp.transports.http.peer import Send
from typedmcp.transports.http.replies import JSON_HEADERS, Reply, failed, refuse
from typedmcp_wire.revisions import INVALID_REQUEST


async def serve_batch(
    posts: HandshakePosts,
    get: Get,
    frame: bytes,
    revision: str,
    responder: Responder,
    session: LiveSession | None,
    principal: object,
) -> Reply | None:
    """Serve a batch; None when the answer was streamed."""
    try:
        members = read_batch(frame)
    except MessageError as error:
        return refuse(400, error.message, code=error.code, null_id=True)
    streamed = posts.streams(get) and any(isinstance(m, JSONRPCRequest) and m.id is not UNSET for m in members)
    if not streamed:
        batch = _Batch(posts, None, revision, session, principal)
        for member in members:
            await batch.take(member)
        answers = await batch.complete()  # whoever leaves here leaves the members running
        written = [encode_response(answer) for answer in answers]
        return Reply(200, b"[" + b",".join(written) + b"]", JSON_HEADERS) if written else Reply(202)
    stream, send, name = posts.open(session)
    batch = _Batch(posts, send, revision, session, principal)
    try:
        for member in members:
            await batch.take(member)
        batch.complete().add_done_callback(lambda _: posts.close(stream, name, session))
        await posts.write(stream, responder, session)
    finally:
        posts.leave(stream, name, session)
    return None


class _Batch:
    """The members of a batch that still run, and the answers there are."""

    def __init__(
        self, posts: HandshakePosts, send: Send | None, revision: str, session: LiveSession | None, principal: object
    ) -> None:
        self._posts = posts
        self._send = send
        self._revision = revision
        self._session = session
        self._principal = principal
        self._answers: list[JSONRPCResponse] = []
        self._left = 1  # the members have not all been taken
        self._complete: asyncio.Future[list[JSONRPCResponse]] = asyncio.get_running_loop().create_future()

    async def take(self, member: JSONRPCMessage | MessageError) -> None:
        """Begin a member."""
        if isinstance(member, MessageError):
            if member.answer:
                data = JSONRPCErrorData(code=member.code, message=member.message)
                self._answer(JSONRPCResponse(id=member.id, error=data))
        elif isinstance(member, JSONRPCResponse):
            self._posts.answered(member, None, self._session)
        elif member.id is UNSET:
            await self._posts.notified(member, None, self._session, self._principal)
        else:
            await self._request(member)

    def complete(self) -> asyncio.Future[list[JSONRPCResponse]]:
        """All members have been taken: the answers, when they are all there."""
        self._ended(None)
        return self._complete

    async def _request(self, request: JSONRPCRequest) -> None:
        refusal = (
            failed(request, INVALID_REQUEST, "A batch never holds initialize.")
            if request.method == "initialize"
            else self._posts.not_now(request, self._session)
        )
        if refusal is not None:
            self._answer(refusal)
            return
        self._left += 1
        peer = self._posts.peer(self._send, self._revision, self._session, self._principal)
        await self._posts.begin(request, peer, self._session, self._ended)

    def _ended(self, response: JSONRPCResponse | None) -> None:
        if response is not None:
            self._answer(response)
        self._left -= 1
        if self._left == 0 and not self._complete.done():
            self._complete.set_result(self._answers)

    def _answer(self, response: JSONRPCResponse) -> None:
        if self._send is None:
            self._answers.append(response)
        else:
            self._send(encode_response(response))
