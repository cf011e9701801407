"""Who is let in at the gateway's door: programs that show a token, called by a name of ours, and no pages in browsers.

Who shows wrong ones too often is not listened to for a while. That holds for the address alone: whoever else calls with
a token that is good is let in all the same.
"""

import asyncio
import hmac
import logging
import time
from collections.abc import Callable, Collection

from starlette.requests import HTTPConnection

from segue.core.credentials import Credential, Level, bearer
from segue.core.errors import StoreError
from segue.core.rates import Failures
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import one_line
from segue.gateway.readiness import STORE_DOWN
from segue.listening.bodies import Refusal
from segue.listening.calls import OWN_NAMES, caller, check_name
from segue.listening.connections import doubt, prove
from segue.sessions.tokens import find_bearer, is_news, note_use
from segue.web.premises import Premises

_BUSY_SECONDS = 5

_log = logging.getLogger(__name__)


class NotLetIn(Refusal):
    """No token, or a wrong one."""

    def __init__(self) -> None:
        super().__init__(401, "Show a token that is good: `Authorization: Bearer …`; `segue tokens add` makes one.")

    @property
    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": "Bearer"}


class StoreAway(Refusal):
    """Nobody can say at the moment whether a token is good."""

    def __init__(self) -> None:
        super().__init__(503, STORE_DOWN)


class Guard:
    def __init__(self, premises: Premises, hosts: Collection[str], now: Callable[[], float] = time.time) -> None:
        self._premises = premises
        self._names = OWN_NAMES | {name.lower() for name in hosts}
        self._now = now
        self._failures = Failures()
        self._noting: dict[str, asyncio.Task[None]] = {}
        self._known: dict[str, Credential] = {}
        """Tokens that were good when they were last shown here, by their ids."""

    def check_caller(self, call: HTTPConnection) -> None:
        """Nobody is led here by a foreign name, and no page in a browser calls."""
        check_name(call, self._names, "gateway.hosts")
        if "origin" in call.headers:
            raise Refusal(403, "Pages in a browser do not call the gateway.")

    async def let_in(self, call: HTTPConnection, wanted: Level = Level.READ) -> Credential:
        """Whose token a call shows, if it is good for what is wanted."""
        self.check_caller(call)
        shown, now, who = bearer(call.headers.get), self._now(), caller(call)
        found = await self._premises.glance(find_bearer, shown, now) if shown else None
        if found is None:
            doubt(call)
            if shown:
                self._known.pop(shown.key_id, None)
            if seconds := self._failures.wait(who, now):
                raise Refusal(429, "Too many calls from there showed no good token; call again later.", seconds)
            self._failures.add(who, now)
            _log.warning("A call from %s showed no token that is good.", one_line(who) or "nowhere")
            raise NotLetIn
        if not found.allows(wanted):
            raise Refusal(403, f"The token {found.name} may {found.level}; this needs {wanted}.")
        if not prove(call, found.key_id):
            raise Refusal(503, f"Programs with the token {found.name} have too many connections open.", _BUSY_SECONDS)
        self._known[found.key_id] = found
        if is_news(found, now):
            self._note(found, now)
        return found

    async def let_in_within(self, call: HTTPConnection, seconds: float) -> Credential:
        """Do as `let_in`, but in time: when the store does not answer, a token counts that was good before."""
        looking = asyncio.create_task(self.let_in(call))
        await asyncio.wait({looking}, timeout=seconds)
        if not looking.done():
            looking.add_done_callback(_pass_over)
        elif not isinstance(looking.exception(), StoreError):
            return looking.result()
        return self.recall(call)

    def recall(self, call: HTTPConnection) -> Credential:
        """Return whose token a call shows, without the store: one that was good when it was last shown here."""
        self.check_caller(call)
        shown = bearer(call.headers.get)
        known = self._known.get(shown.key_id) if shown else None
        if shown is None or known is None or not (known.fits(shown.secret) and known.is_good(self._now())):
            raise StoreAway
        return known

    def _note(self, credential: Credential, now: float) -> None:
        """That a token is in use is noted when there is time; nobody waits for it."""
        if credential.key_id not in self._noting:
            noting = self._noting[credential.key_id] = asyncio.create_task(self._noted(credential, now))
            noting.add_done_callback(lambda _: self._noting.pop(credential.key_id, None))

    async def _noted(self, credential: Credential, now: float) -> None:
        try:
            await self._premises.write(OWNER_AT_CONSOLE, note_use, credential, now)
        except StoreError as error:
            _log.warning("That a token is in use could not be noted: %s", error)

    async def is_still_good(self, credential: Credential) -> bool:
        """Whether a token has not been taken back since."""
        kept = await self._premises.glance(lambda tx: tx.tokens.find(credential.key_id))
        if kept is None or not hmac.compare_digest(kept.digest.encode(), credential.digest.encode()):
            return False
        return kept.is_good(self._now())


def _pass_over(looking: "asyncio.Task[Credential]") -> None:
    """Nobody waits any more for what came of it."""
    if not looking.cancelled():
        looking.exception()
