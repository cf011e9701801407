"""The gateway's door: what is called where. Whoever is not let in is told so in one sentence, as JSON."""

import logging
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from segue.core.credentials import Credential
from segue.core.errors import StoreError
from segue.gateway.readiness import STORE_DOWN, StoreState
from segue.listening.bodies import Refusal, read_body
from segue.listening.calls import body_of
from segue.web import openai
from segue.web.document import document
from segue.web.guarding import Guard, NotLetIn, StoreAway
from segue.web.openai.errors import Trouble
from segue.web.premises import Premises
from segue.web.rpc.catalogue import METHODS
from segue.web.rpc.dispatching import answering, failed
from segue.web.rpc.method import Caller
from segue.web.rpc.troubles import STORE_SAYS, trouble_of
from segue.web.socket import Socket

_log = logging.getLogger(__name__)
_STORE_AGAIN = 5
_PIECE_BYTES = 128 * 1024
ANSWER_SECONDS = 1.6
"""Within which `/ready` and `/metrics` answer, also while the store does not: those who probe give up after a few."""


def front(premises: Premises, guard: Guard, others: Sequence[BaseRoute] = ()) -> Starlette:
    """Everything that can be called."""
    here = Front(premises, guard)
    routes: list[BaseRoute] = [
        Route("/rpc", here.rpc, methods=["POST"]),
        WebSocketRoute("/rpc", here.rpc_socket),
        Route("/openapi.json", here.openapi),
        Route("/health", here.health),
        Route("/ready", here.ready),
        Route("/metrics", here.metrics),
        *openai.routes(premises, guard),
        *others,
    ]
    handlers = {Refusal: _refused, HTTPException: _not_so, StoreError: _store, Exception: _ours}
    return Starlette(routes=routes, exception_handlers=handlers)


class Front:
    """What answers beside `/v1`."""

    def __init__(self, premises: Premises, guard: Guard) -> None:
        self._premises = premises
        self._guard = guard

    async def rpc(self, request: Request) -> Response:
        try:
            credential = await self._guard.let_in(request)
            said = read_body(await body_of(request))
        except (Refusal, StoreError) as error:
            return _not_taken(error)
        async with AsyncExitStack() as stack:
            text = await stack.enter_async_context(answering(Caller(credential, self._premises), METHODS, said))
            if not await self._guard.is_still_good(credential):  # which may have been long ago
                return _not_taken(NotLetIn())
            if text is None:
                return Response(status_code=204)
            return HeldResponse(text, stack.pop_all())

    async def rpc_socket(self, socket: WebSocket) -> None:
        try:
            credential = await self._guard.let_in(socket)
        except (Refusal, StoreError) as error:
            await socket.send_denial_response(_not_taken(error))
            return
        await socket.accept()
        await Socket(self._premises, self._guard, socket, credential).run()

    async def openapi(self, request: Request) -> Response:
        await self._guard.let_in(request)
        return JSONResponse(document())

    async def health(self, request: Request) -> Response:
        self._guard.check_caller(request)
        return JSONResponse({"status": "alive", "seconds": self._premises.probe.health().seconds})

    async def ready(self, request: Request) -> Response:
        """Whether the gateway should be given work; why not is told to those who have a token of the owner."""
        self._guard.check_caller(request)
        deadline = time.monotonic() + ANSWER_SECONDS
        found = await self._premises.probe.readiness()
        told: dict[str, object] = {"status": "ready" if found.is_ready else "not ready"}
        if found.is_standby:
            told["standby"] = True
        if found.store.trouble is not None:
            told["error"] = STORE_DOWN
        if "authorization" in request.headers and await self._is_owner(request, found.store, deadline):
            told |= {"reasons": found.reasons, "notes": found.notes}
        return JSONResponse(told, 200 if found.is_ready else 503)

    async def metrics(self, request: Request) -> Response:
        self._guard.check_caller(request)
        deadline, probe = time.monotonic() + ANSWER_SECONDS, self._premises.probe
        credential = await self._let_in(request, await probe.store(), deadline)
        if not credential.scope.sees_all:
            raise Refusal(403, "Figures are about everybody, so only a token of the owner reads them.")
        body, kind = await probe.exposition(_left(deadline))
        return Response(body, media_type=kind)

    async def _is_owner(self, request: Request, store: StoreState, deadline: float) -> bool:
        """True if a call shows a token of the owner; while the store is away, one that is not known says nothing."""
        try:
            return (await self._let_in(request, store, deadline)).scope.sees_all
        except StoreAway:
            return False

    async def _let_in(self, request: Request, store: StoreState, deadline: float) -> Credential:
        if not store.is_answering:
            return self._guard.recall(request)
        return await self._guard.let_in_within(request, _left(deadline))


class HeldResponse(Response):
    """A JSON answer that is sent in pieces, so that it is held until nearly all of it was read."""

    def __init__(self, text: bytes, held: AsyncExitStack) -> None:
        super().__init__(text, media_type="application/json")
        self._held = held

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        async with self._held:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            for begin in range(0, len(self.body), _PIECE_BYTES):
                piece = self.body[begin : begin + _PIECE_BYTES]
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.0)


def _not_taken(error: Refusal | StoreError) -> JSONResponse:
    """Why a request is not even read, as JSON-RPC says it."""
    told = failed(None, trouble_of(error))
    if isinstance(error, Refusal):
        return JSONResponse(told, error.status, error.headers)
    _log.warning("A call was not taken: %s", error)
    return JSONResponse(told, 503, {"Retry-After": str(_STORE_AGAIN)})


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return JSONResponse({"error": str(error)}, error.status, error.headers)


async def _not_so(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if openai.is_ours(request):
        sentence = f"{error.detail}: {request.method} {request.url.path}."
        return Trouble(error.status_code, sentence, code="unknown_url", headers=error.headers or {}).answer
    return JSONResponse({"error": f"{error.detail}."}, error.status_code, error.headers)


async def _store(_request: Request, error: Exception) -> Response:
    _log.warning("A call was not answered: %s", error)
    return JSONResponse({"error": STORE_SAYS}, 503, {"Retry-After": str(_STORE_AGAIN)})


async def _ours(_request: Request, _error: Exception) -> Response:
    return JSONResponse({"error": "That was a mistake of Segue's; its log says more."}, 500)
