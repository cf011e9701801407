"""The gateway's door: what is called where. Whoever is not let in is told so in one sentence, as JSON."""

import logging
from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from segue.core.errors import StoreError
from segue.listening.bodies import Refusal, read_body
from segue.listening.calls import body_of
from segue.web import openai
from segue.web.document import document
from segue.web.guarding import Guard, NotLetIn
from segue.web.openai.errors import Trouble
from segue.web.premises import Premises
from segue.web.rpc.catalogue import METHODS
from segue.web.rpc.dispatching import answered, failed
from segue.web.rpc.method import Caller
from segue.web.rpc.troubles import STORE_SAYS, trouble_of
from segue.web.socket import Socket
from segue.web.spelling import spelled

_log = logging.getLogger(__name__)
_STORE_AGAIN = 5


def front(premises: Premises, guard: Guard, others: Sequence[BaseRoute] = ()) -> Starlette:
    """Everything that can be called."""

    async def rpc(request: Request) -> Response:
        try:
            credential = await guard.let_in(request)
            said = read_body(await body_of(request))
        except Refusal as refusal:
            return JSONResponse(failed(None, trouble_of(refusal)), refusal.status, refusal.headers)
        except StoreError as error:
            return JSONResponse(failed(None, trouble_of(error)), 503, {"Retry-After": str(_STORE_AGAIN)})
        answer = await answered(Caller(credential, premises), METHODS, said)
        if not await guard.is_still_good(credential):  # which may have been long ago
            return JSONResponse(failed(None, trouble_of(NotLetIn())), 401)
        if answer is None:
            return Response(status_code=204)
        return Response(await spelled(premises, answer), media_type="application/json")

    async def rpc_socket(socket: WebSocket) -> None:
        try:
            credential = await guard.let_in(socket)
        except Refusal as refusal:
            told = JSONResponse(failed(None, trouble_of(refusal)), refusal.status, refusal.headers)
            await socket.send_denial_response(told)
            return
        except StoreError as error:
            _log.warning("A connection was not taken: %s", error)
            await socket.send_denial_response(JSONResponse(failed(None, trouble_of(error)), 503))
            return
        await socket.accept()
        await Socket(premises, guard, socket, credential).run()

    async def openapi(request: Request) -> Response:
        await guard.let_in(request)
        return JSONResponse(document())

    async def health(request: Request) -> Response:
        guard.check_caller(request)
        return JSONResponse({"status": "alive", "seconds": premises.probe.health().seconds})

    async def ready(request: Request) -> Response:
        """Whether the gateway should be given work; why not is told to those who have a token."""
        guard.check_caller(request)
        found = await premises.probe.readiness()
        told: dict[str, object] = {"status": "ready" if found.is_ready else "not ready"}
        if "authorization" in request.headers and (await guard.let_in(request)).scope.sees_all:
            told |= {"reasons": found.reasons, "notes": found.notes}
        return JSONResponse(told, 200 if found.is_ready else 503)

    async def metrics(request: Request) -> Response:
        if not (await guard.let_in(request)).scope.sees_all:
            raise Refusal(403, "Figures are about everybody, so only a token of the owner reads them.")
        body, kind = await premises.probe.exposition()
        return Response(body, media_type=kind)

    routes: list[BaseRoute] = [
        Route("/rpc", rpc, methods=["POST"]),
        WebSocketRoute("/rpc", rpc_socket),
        Route("/openapi.json", openapi),
        Route("/health", health),
        Route("/ready", ready),
        Route("/metrics", metrics),
        *openai.routes(premises, guard),
        *others,
    ]
    handlers = {Refusal: _refused, HTTPException: _not_so, StoreError: _store, Exception: _ours}
    return Starlette(routes=routes, exception_handlers=handlers)


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
