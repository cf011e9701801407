"""The door for other programs: `POST /hooks/NAME`, signed, on this machine unless the settings say otherwise."""

import asyncio
import logging
import time
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from segue.core.errors import StoreError
from segue.core.inbound import Receipt
from segue.core.rates import Failures
from segue.core.routes import Places
from segue.core.routes import Route as Destination
from segue.core.sources import SessionSource
from segue.core.text import one_line
from segue.listening.bodies import Refusal
from segue.listening.calls import OWN_NAMES, body_of, caller, check_name
from segue.listening.connections import prove
from segue.listening.server import CannotListen, bound, serve
from segue.platforms.webhook import inbound, outbound
from segue.platforms.webhook.inbound import PLATFORM, NotSigned
from segue.platforms.webhook.settings import Hook, WebhookSettings
from segue.ports.platform import Arriving, Intake, Post, Sent, Traits

TRAITS = Traits(Arriving.ACK_GATED, longest=1_000_000, can_send=False, is_listener=True)
_AGAIN = {"Retry-After": "5"}
_ANSWERS = {Receipt.ACCEPTED: "accepted", Receipt.KNOWN: "known", Receipt.IGNORED: "ignored"}

_log = logging.getLogger(__name__)


async def no_places(_route: Destination) -> SessionSource | None:
    return None


class WebhookPlatform:
    """Passes on what programs say. Nothing can be sent there."""

    def __init__(
        self, settings: WebhookSettings, places: Places = no_places, now: Callable[[], float] = time.time
    ) -> None:
        self.name = PLATFORM
        self.account = ""
        self.traits = TRAITS
        self.port = settings.port
        """Where it listens; when any port that is free was wanted, the one that it was."""
        self.is_listening = asyncio.Event()
        self._settings = settings
        self._places = places
        self._now = now
        self._failures = Failures()
        self._names = OWN_NAMES | set(settings.hosts)

    async def run(self, intake: Intake) -> None:
        with bound(self._settings.host, self._settings.port, "webhooks", "platforms.webhook.port") as door:
            self.port = door.getsockname()[1]
            _log.info("Hooks are called at http://%s:%d/hooks/NAME.", self._settings.host, self.port)
            self.is_listening.set()
            intake.connected()
            try:
                await serve(self._app(intake), door, proxies=self._settings.trusted_proxies)
            finally:
                self.is_listening.clear()
        raise CannotListen("Nothing listens for webhooks any more; it is tried again.")

    async def send(self, post: Post) -> Sent:
        raise outbound.refusal(post)

    async def edit(self, post: Post, message_id: str) -> None:  # noqa: ARG002 - as the port has it
        raise outbound.refusal(post)

    async def typing(self, route: SessionSource) -> None: ...

    def _app(self, intake: Intake) -> Starlette:
        async def called(request: Request) -> JSONResponse:
            try:
                return await self._receive(request, intake)
            except Refusal as refusal:
                return JSONResponse({"error": str(refusal)}, refusal.status, refusal.headers)
            except StoreError as error:
                _log.warning("A call of the hook %s was not taken: %s", request.path_params["name"], error)
                return JSONResponse({"error": "Nothing is taken in at the moment; call again."}, 503, _AGAIN)

        return Starlette(routes=[Route("/hooks/{name}", called, methods=["POST"])])

    async def _receive(self, request: Request, intake: Intake) -> JSONResponse:
        self._check_caller(request)
        hook = self._settings.hooks.get(request.path_params["name"])
        if hook is None:
            raise Refusal(404, "There is no such hook.")
        try:
            call = inbound.believed(hook, await body_of(request), request.headers.get, self._now())
        except NotSigned:
            self._note_failure(hook, caller(request))
            raise
        prove(request, hook.name)
        route = await self._places(hook.deliver) if hook.deliver else None
        said = inbound.inbound_from(call, route)
        if hook.deliver and route is None:
            _log.warning("%s has no home channel; the answer to the hook %s is not sent.", hook.deliver, hook.name)
        receipt = await intake.receive(said)
        if receipt is Receipt.REFUSED:
            return JSONResponse({"error": "Too many calls are waiting; call again."}, 503, _AGAIN)
        return JSONResponse({"status": _ANSWERS[receipt]})

    def _note_failure(self, hook: Hook, who: str) -> None:
        """Only those whose calls are not signed are kept waiting, though others may call from the same address."""
        if seconds := self._failures.wait(who, self._now()):
            raise Refusal(429, "Too many calls from there were not signed; call again later.", seconds)
        self._failures.add(who, self._now())
        _log.warning("A call of the hook %s from %s was not signed with its secret.", hook.name, one_line(who))

    def _check_caller(self, request: Request) -> None:
        """Nobody is led here by a name that is not ours, and no page in a browser calls."""
        check_name(request, self._names, "platforms.webhook.hosts")
        if "origin" in request.headers:
            raise Refusal(403, "Pages in a browser do not call hooks.")
