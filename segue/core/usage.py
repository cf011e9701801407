"""What a conversation has cost. Unknown stays unknown: a sum with an unknown part is the known rest, never zero."""

from enum import StrEnum
from typing import NamedTuple

from segue.core.sessions import Session


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


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None and other is None else (one or 0.0) + (other or 0.0)


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None else one - (other or 0.0)
