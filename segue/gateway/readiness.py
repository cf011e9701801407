"""Whether a gateway is alive, and whether it should be given work: judged from what is known, in sentences.

Alive is whoever answers at all. Ready is whoever can put down what arrives and is not about to leave; a platform that
is down is told, and only when nothing can arrive any more is that a reason. Whoever has begun has opened the store, and
with that brought it up to date.
"""

from collections.abc import Sequence
from typing import NamedTuple

from segue.core.links import called
from segue.core.redaction import redact
from segue.core.sources import API_SERVER, BATCH, CRON
from segue.core.text import one_line, shorten

_LONGEST = 200
_ALWAYS_UP = frozenset({API_SERVER, BATCH, CRON})
"""What needs no connection, and tells nothing about those that do."""


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


class Readiness(NamedTuple):
    """Whether work can be given to a gateway, and what speaks against it."""

    is_ready: bool
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What is not well, and no reason."""


def health(began_at: float, now: float) -> Health:
    """Whoever can ask this has been answered by the event loop."""
    return Health(True, max(now - began_at, 0.0))


def readiness(links: Sequence[LinkState], *, store_trouble: str | None, is_begun: bool, is_draining: bool) -> Readiness:
    reasons = []
    if not is_begun:
        reasons.append("The gateway is just beginning.")
    if is_draining:
        reasons.append("The gateway takes nothing more in: it is about to end.")
    if store_trouble is not None:
        reasons.append(f"The store cannot be used: {_shown(store_trouble)}")
    down = [
        f"{called(link.platform, link.account)} is not connected: {_shown(link.trouble or 'not yet')}"
        for link in links
        if not link.is_up
    ]
    doors = [link for link in links if link.platform not in _ALWAYS_UP] or links
    if doors and not any(link.is_up for link in doors):
        reasons += ["No platform is connected.", *down]
        down = []
    return Readiness(not reasons, tuple(reasons), tuple(down))


def _shown(sentence: str) -> str:
    """What others say of their failures may hold a secret of ours."""
    whole = shorten(redact(one_line(sentence)), _LONGEST)
    return whole if whole.endswith((".", "…")) else f"{whole}."
