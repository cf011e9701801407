"""The gateway listens for programs, once there is a token that lets one of them in, and for as long as it runs."""

import asyncio
import logging
import time
from collections.abc import Sequence

from starlette.routing import BaseRoute

from segue.config.gateway_settings import GatewaySettings
from segue.core.errors import StoreError
from segue.core.scope import OWNER_AT_CONSOLE
from segue.gateway.outages import log_store_error
from segue.listening.room import Limits
from segue.listening.server import CannotListen, bound, serve
from segue.ports.store import Transaction
from segue.sessions.watching import note_address
from segue.web.front import front
from segue.web.guarding import Guard
from segue.web.premises import Premises

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what to call that by
LOOK_SECONDS = 1.0
LONGEST_PAUSE = 60.0
LIMITS = Limits()

_log = logging.getLogger(__name__)


async def listen(premises: Premises, others: Sequence[BaseRoute] = ()) -> None:
    """Answer programs until cancelled, whatever happens."""
    pause = LOOK_SECONDS
    await _until_there_is_a_token(premises)
    guard = Guard(premises, _names(premises.settings.gateway))
    while True:
        try:
            await _serve(premises, guard, others)
        except CannotListen as error:
            _log.warning("%s", error)
        except Exception:  # noqa: BLE001 - whatever it was, programs want to call
            _log.exception("The door for programs fell shut; it is opened again.")
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


async def _serve(premises: Premises, guard: Guard, others: Sequence[BaseRoute]) -> None:
    chosen = premises.settings.gateway
    with bound(chosen.host, chosen.port, "programs", "gateway.port") as door:
        address = f"http://{_host(chosen.host)}:{door.getsockname()[1]}"
        await _note_address(premises, address)
        _log.info("Programs call %s, with a token.", address)
        app = front(premises, guard, others)
        await serve(app, door, limits=LIMITS, proxies=chosen.trusted_proxies, takes_websockets=True)


async def _until_there_is_a_token(premises: Premises) -> None:
    """Without one nobody could tell who calls, so nothing listens."""
    is_told = False
    while True:
        try:
            if await premises.glance(_has_token, time.time()):
                return
        except StoreError as error:
            log_store_error(_log, "Tokens not read, retrying", error)
        else:
            if not is_told:
                _log.info("Programs cannot call: there is no token. `segue tokens add NAME` makes one.")
                is_told = True
        await asyncio.sleep(LOOK_SECONDS)


def _has_token(tx: Transaction, now: float) -> bool:
    return any(one.is_good(now) for one in tx.tokens.listed())


async def _note_address(premises: Premises, address: str) -> None:
    try:
        await premises.write(OWNER_AT_CONSOLE, note_address, premises.gateway.presence.run.id, address)
    except StoreError as error:
        _log.warning("Address of the HTTP server not stored, so that other commands do not find it: %s", error)


def _names(chosen: GatewaySettings) -> set[str]:
    """The names by which programs may call, beside those of this machine to itself."""
    own = set() if chosen.host in _EVERYWHERE else {_host(chosen.host)}
    return {*chosen.hosts, *own}


def _host(host: str) -> str:
    """A host as it stands in an address; what listens everywhere is called here."""
    host = _EVERYWHERE.get(host, host)
    return f"[{host}]" if ":" in host else host
