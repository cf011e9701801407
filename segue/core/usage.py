"""What a conversation has cost. Unknown stays unknown: a sum with an unknown part is the known rest, never zero.

A session's sums are kept beside the entries they are made of, one for each model call. Sums that came from elsewhere
without entries get one entry, so that whatever is counted can be counted from the entries alone.
"""

from collections.abc import Iterable
from enum import StrEnum
from functools import reduce
from math import isclose
from typing import NamedTuple

from segue.core.sessions import Session

MOST_TOKENS = 10**15
MOST_DOLLARS = 1e12
"""What nothing uses and nothing costs; sums of less can be counted."""
OWN_PRICES = "config"
"""The cost source of an estimate with prices that somebody set themselves."""


class Usage(NamedTuple):
    """What one model call, or several, used."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    api_call_count: int = 0
    estimated_cost_usd: float | None = None
    actual_cost_usd: float | None = None

    def plus(self, other: "Usage") -> "Usage":
        """Both together."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.api_call_count + other.api_call_count,
            _sum(self.estimated_cost_usd, other.estimated_cost_usd),
            _sum(self.actual_cost_usd, other.actual_cost_usd),
        )

    def minus(self, other: "Usage") -> "Usage":
        """What this has more than the other; a cost that was not known before is all of it more."""
        return Usage(
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
            self.cache_read_tokens - other.cache_read_tokens,
            self.cache_write_tokens - other.cache_write_tokens,
            self.reasoning_tokens - other.reasoning_tokens,
            self.api_call_count - other.api_call_count,
            _difference(self.estimated_cost_usd, other.estimated_cost_usd),
            _difference(self.actual_cost_usd, other.actual_cost_usd),
        )

    @property
    def counters(self) -> tuple[int, ...]:
        return self[:6]

    @property
    def costs(self) -> tuple[float | None, float | None]:
        return self.estimated_cost_usd, self.actual_cost_usd

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens


def used_by(session: Session) -> Usage:
    """The sums of a session."""
    return Usage._make(getattr(session, name) for name in Usage._fields)


class Billing(NamedTuple):
    """Who charges for a session, and how the cost was found. None leaves what is known alone."""

    model: str | None = None
    billing_provider: str | None = None
    billing_base_url: str | None = None
    billing_mode: str | None = None
    cost_status: str | None = None
    cost_source: str | None = None
    pricing_version: str | None = None


class Purpose(StrEnum):
    """What a model was asked for."""

    ANSWER = "answer"
    SUMMARY = "summary"
    TITLE = "title"
    FLUSH = "flush"
    RECALL = "recall"
    REPORT = "report"
    """Sums that somebody else counted."""
    IMPORT = "import"

    @property
    def is_auxiliary(self) -> bool:
        """True for what is asked beside the conversation, maybe of another model than the one that answers."""
        return self in (Purpose.SUMMARY, Purpose.TITLE, Purpose.FLUSH, Purpose.RECALL)


class Spent(NamedTuple):
    """What was used at one moment: a row of the table `usage`."""

    session_id: str
    at: float
    purpose: str
    model: str | None
    provider: str | None
    api_call_count: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    estimated_cost_usd: float | None
    actual_cost_usd: float | None
    cost_source: str | None
    pricing_version: str | None


def spent(session_id: str, at: float, purpose: Purpose, usage: Usage, billing: Billing) -> Spent:
    return Spent(
        session_id=session_id,
        at=at,
        purpose=str(purpose),
        model=billing.model,
        provider=billing.billing_provider,
        cost_source=billing.cost_source,
        pricing_version=billing.pricing_version,
        **usage._asdict(),
    )


def entries_for(session: Session, entries: Iterable[Spent]) -> tuple[Spent, ...]:
    """The entries of a session, and one more for whatever its sums have beyond them, at its last activity."""
    known = tuple(entries)
    sums, noted = used_by(session), reduce(Usage.plus, map(used_in, known), Usage())
    missing = sums.minus(noted)
    is_told = zip(sums.costs, noted.costs, missing.costs, strict=True)
    if not any(missing.counters) and not any(
        more or (one is not None and other is None) for one, other, more in is_told
    ):
        return known
    billing = Billing(
        model=session.model,
        billing_provider=session.billing_provider,
        cost_source=session.cost_source,
        pricing_version=session.pricing_version,
    )
    return (*known, spent(session.id, session.last_active_at, Purpose.IMPORT, missing, billing))


def used_in(entry: Spent) -> Usage:
    return Usage._make(getattr(entry, name) for name in Usage._fields)


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None and other is None else (one or 0.0) + (other or 0.0)


def _difference(one: float | None, other: float | None) -> float | None:
    if one is None:
        return None
    # Sums of fractions depend on their order: a difference that comes from it alone is none.
    return one - (other or 0.0) if other is None or not isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) else 0.0
