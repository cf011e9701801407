"""The door that Telegram calls at when it is not asked: who knows the secret is Telegram, and gets its 200 when what it
brought is safe. Anything else it brings again."""

import asyncio
import hmac
import logging
import socket
import time
from collections.abc import Coroutine
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from segue.core.errors import StoreError
from segue.core.rates import Failures
from segue.core.text import one_line
from segue.listening.bodies import Refusal, read_body
from segue.listening.calls import OWN_NAMES, body_of, caller, check_name
from segue.listening.connections import prove
from segue.listening.server import bound
from segue.platforms.telegram.receiving import Receiving
from segue.platforms.telegram.settings import WebhookDoor

HEADER = "X-Telegram-Bot-Api-Secret-Token"
_AGAIN = {"Retry-After": "5"}

_log = logging.getLogger(__name__)


def door_of(settings: WebhookDoor) -> socket.socket:
    return bound(settings.host, settings.port, "Telegram", "platforms.telegram.webhook.port")


async def until_one_ends(*works: Coroutine[None, None, None]) -> None:
    """Do several things at once. When one comes to its end the others do, too; what it raises is raised."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in done:
        task.result()


def _read(body: bytes) -> Any:
    """An update; None for what is none. It comes from Telegram, which would bring it again before all others."""
    try:
        return read_body(body)
    except Refusal as refusal:
        _log.warning("What Telegram brought cannot be read, and is left aside: %s", refusal)
        return None


class Listening:
    """Answers the calls of Telegram."""

    def __init__(self, settings: WebhookDoor, receiving: Receiving) -> None:
        self._settings = settings
        self._receiving = receiving
        self._names = OWN_NAMES | settings.names
        self._failures = Failures()
        self._alone = asyncio.Lock()

    def app(self) -> Starlette:
        async def called(request: Request) -> JSONResponse:
            try:
                return await self._called(request)
            except Refusal as refusal:
                return JSONResponse({"error": str(refusal)}, refusal.status, refusal.headers)
            except StoreError as error:
                _log.warning("What Telegram brought was not taken, and comes again: %s", error)
                return JSONResponse({"error": "Nothing is taken in at the moment; call again."}, 503, _AGAIN)

        return Starlette(routes=[Route(self._settings.path, called, methods=["POST"])])

    async def _called(self, request: Request) -> JSONResponse:
        check_name(request, self._names, "platforms.telegram.webhook.hosts")
        self._check_secret(request)
        update = _read(await body_of(request))
        async with self._alone:  # in the order in which they come
            await self._receiving.take_one(update)
        return JSONResponse({})

    def _check_secret(self, request: Request) -> None:
        """Whoever knows it is never kept waiting by those who do not, though they may come the same way."""
        given = request.headers.get(HEADER, "").encode("latin-1", "replace")
        if hmac.compare_digest(given, self._settings.secret.encode()):
            prove(request, "telegram")
            return
        who, now = caller(request), time.time()
        if seconds := self._failures.wait(who, now):
            raise Refusal(429, "Too many calls from there did not know the secret; call again later.", seconds)
        self._failures.add(who, now)
        _log.warning("A call from %s did not know the secret of Telegram.", one_line(who))
        raise Refusal(401, "The secret is missing or wrong.")
