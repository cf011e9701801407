"""Whether a gateway is alive, and whether it should be given work: judged from what is known, in sentences.

Alive is whoever answers at all. Ready is whoever can put down what arrives and is not about to leave; a platform that
is down is told, and only when nothing can arrive any more is that a reason. Whoever stands by for another gateway is
ready: it takes calls, and takes over when that one is gone. Whoever has begun has opened the store, and
with that brought it up to date.
"""

from collections.abc import Sequence
from typing import NamedTuple

from segue.core.links import called
from segue.core.redaction import redact
from segue.core.sources import API_SERVER, BATCH, CRON
from segue.core.text import count, one_line, shorten

_LONGEST = 200
_ALWAYS_UP = frozenset({API_SERVER, BATCH, CRON})
"""What needs no connection, and tells nothing about those that do."""
STORE_DOWN = "The database does not answer, or takes nothing in."
"""What everybody may know of a store's trouble."""
MAX_UNATTENDED_SECONDS = 10.0
"""How long a message may wait in a lane that no process works in before it is told."""


class Health(NamedTuple):
    """That the process answers, and since when it runs."""

    is_alive: bool
    seconds: float


class LinkState(NamedTuple):
    """How a platform stands here."""

    platform: str
    account: str
    is_up: bool
    trouble: str | None = None
    held_by: str | None = None
    """The gateway that is connected while this one stands by."""
    is_listener: bool = False
    """True if every gateway listens there."""


class StoreState(NamedTuple):
    """What was found when the store was last asked."""

    trouble: str | None = None
    """Why it cannot be used."""
    unattended: int = 0
    """Messages in lanes that no living process works in."""
    unattended_seconds: float = 0.0
    """Since the oldest of them was accepted."""
    is_answering: bool = True
    """False if it has said nothing for seconds, not even that something is wrong."""


class Readiness(NamedTuple):
    """Whether work can be given to a gateway, and what speaks against it."""

    is_ready: bool
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What is not well, and no reason."""
    store: StoreState = StoreState()
    is_standby: bool = False
    """True if other gateways hold every connection that only one of them can have."""


def health(began_at: float, now: float) -> Health:
    """Whoever can ask this has been answered by the event loop."""
    return Health(True, max(now - began_at, 0.0))


def readiness(links: Sequence[LinkState], *, store: StoreState, is_begun: bool, is_draining: bool) -> Readiness:
    reasons = []
    if not is_begun:
        reasons.append("The gateway is just beginning.")
    if is_draining:
        reasons.append("The gateway takes nothing more in: it is about to end.")
    if store.trouble is not None:
        reasons.append(f"The store cannot be used: {_shown(store.trouble)}")
    down = [
        f"{called(link.platform, link.account)} is not connected: {_shown(link.trouble or 'not yet')}"
        for link in links
        if not (link.is_up or link.held_by)
    ]
    doors = [link for link in links if link.platform not in _ALWAYS_UP] or links
    if doors and not any(link.is_up or link.held_by for link in doors):
        reasons += ["No platform is connected.", *down]
        down = []
    notes = (*down, *_standby_notes(links), *_unattended_notes(store))
    return Readiness(not reasons, tuple(reasons), notes, store, _is_standby(links))


def _is_standby(links: Sequence[LinkState]) -> bool:
    exclusive = [link for link in links if not link.is_listener]
    return any(link.held_by for link in exclusive) and not any(link.is_up for link in exclusive)


def _standby_notes(links: Sequence[LinkState]) -> list[str]:
    return [
        f"Standby for {called(link.platform, link.account)}: the gateway in {one_line(link.held_by)} holds it."
        for link in links
        if link.held_by and link.platform != BATCH
    ]


def _unattended_notes(store: StoreState) -> list[str]:
    if store.unattended_seconds <= MAX_UNATTENDED_SECONDS:
        return []
    waiting, seconds = count(store.unattended, "message"), store.unattended_seconds
    return [f"No process works on {waiting}, the oldest accepted {seconds:.0f} s ago; `segue doctor` names the lanes."]


def _shown(sentence: str) -> str:
    """What others say of their failures may hold a secret of ours."""
    whole = shorten(redact(one_line(sentence)), _LONGEST)
    return whole if whole.endswith((".", "…")) else f"{whole}."
