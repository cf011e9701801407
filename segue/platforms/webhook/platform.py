"""The door for other programs: `POST /hooks/NAME`, signed, on this machine unless the settings say otherwise."""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable, Iterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from segue.core.errors import SegueError, StoreError
from segue.core.inbound import Receipt
from segue.core.rates import Failures
from segue.core.routes import Places
from segue.core.routes import Route as Destination
from segue.core.sources import SessionSource
from segue.core.text import one_line
from segue.platforms.webhook import inbound, outbound
from segue.platforms.webhook.inbound import MOST_BYTES, PLATFORM, NotSigned, Refusal
from segue.platforms.webhook.settings import WebhookSettings
from segue.ports.platform import Arriving, Intake, Post, Sent, Traits

TRAITS = Traits(Arriving.ACK_GATED, longest=1_000_000, can_send=False)
READING_SECONDS = 10.0
LEAVING_SECONDS = 2
MOST_CALLS = 64
_AGAIN = {"Retry-After": "5"}
_THIS_MACHINE = frozenset({"127.0.0.1", "::1"})
_LONGEST_ADDRESS = 64
_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_ANSWERS = {Receipt.ACCEPTED: "accepted", Receipt.KNOWN: "known", Receipt.IGNORED: "ignored"}

_log = logging.getLogger(__name__)


class CannotListen(SegueError):
    """Nobody can call."""


class _Server(uvicorn.Server):
    """Ends when it is told to by us; signals are the gateway's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


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
        self._names = _OWN_NAMES | set(settings.hosts)

    async def run(self, intake: Intake) -> None:
        with _bound(self._settings.host, self._settings.port) as door:
            self.port = door.getsockname()[1]
            server = _Server(_config(self._app(intake)))
            serving = asyncio.create_task(server.serve(sockets=[door]))
            self.is_listening.set()
            _log.info("Hooks are called at http://%s:%d/hooks/NAME.", self._settings.host, self.port)
            try:
                await asyncio.shield(serving)
            except asyncio.CancelledError:
                server.should_exit = True
                await asyncio.wait({serving})
                raise
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
                return JSONResponse({"error": str(refusal)}, refusal.status)
            except StoreError as error:
                _log.warning("A call of the hook %s was not taken: %s", request.path_params["name"], error)
                return JSONResponse({"error": "Nothing is taken in at the moment; call again."}, 503, _AGAIN)

        return Starlette(routes=[Route("/hooks/{name}", called, methods=["POST"])])

    async def _receive(self, request: Request, intake: Intake) -> JSONResponse:
        self._check_caller(request)
        hook = self._settings.hooks.get(request.path_params["name"])
        if hook is None:
            raise Refusal(404, "There is no such hook.")
        caller = _caller(request)
        if seconds := self._failures.wait(caller, self._now()):
            sentence = "Too many calls from there were not signed; call again later."
            return JSONResponse({"error": sentence}, 429, {"Retry-After": str(seconds)})
        try:
            call = inbound.believed(hook, await _body(request), request.headers.get, self._now())
        except NotSigned:
            self._failures.add(caller, self._now())
            _log.warning("A call of the hook %s from %s was not signed with its secret.", hook.name, one_line(caller))
            raise
        route = await self._places(hook.deliver) if hook.deliver else None
        said = inbound.inbound_from(call, route)
        if hook.deliver and route is None:
            _log.warning("%s has no home channel; the answer to the hook %s is not sent.", hook.deliver, hook.name)
        receipt = await intake.receive(said)
        if receipt is Receipt.REFUSED:
            return JSONResponse({"error": "Too many calls are waiting; call again."}, 503, _AGAIN)
        return JSONResponse({"status": _ANSWERS[receipt]})

    def _check_caller(self, request: Request) -> None:
        """Nobody is led here by a name that is not ours, and no page in a browser calls."""
        if _without_port(request.headers.get("host", "")) not in self._names:
            raise Refusal(403, "This is not called so; platforms.webhook.hosts says which names it has.")
        if "origin" in request.headers:
            raise Refusal(403, "Pages in a browser do not call hooks.")


def _caller(request: Request) -> str:
    """Who calls: what a server on this machine that stands before us says last, otherwise the address."""
    address = request.client.host if request.client else ""
    forwarded = request.headers.getlist("x-forwarded-for")
    if forwarded and address in _THIS_MACHINE:
        return forwarded[-1].rpartition(",")[2].strip()[:_LONGEST_ADDRESS]
    return address


async def _body(request: Request) -> bytes:
    """The body as it was sent, if it is not too long and does not take too long."""
    body = bytearray()
    try:
        async with asyncio.timeout(READING_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > MOST_BYTES:
                    raise Refusal(413, f"The body is longer than {MOST_BYTES} bytes.")
    except TimeoutError:
        raise Refusal(408, f"The body did not come within {READING_SECONDS:g} seconds.") from None
    except ClientDisconnect:
        raise Refusal(400, "The body broke off.") from None
    return bytes(body)


def _without_port(host: str) -> str:
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() else host.lower()


def _bound(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise CannotListen(
            f"Nothing can listen for webhooks at {host} port {port}: {error.strerror or error}; choose another"
            " platforms.webhook.port."
        ) from None


def _config(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        lifespan="off",
        http="h11",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CALLS,
        timeout_graceful_shutdown=LEAVING_SECONDS,
    )
