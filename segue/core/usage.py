"""What a conversation has cost. Unknown stays unknown: a sum with an unknown part is the known rest, never zero."""

from typing import NamedTuple


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

    @property
    def counters(self) -> tuple[int, ...]:
        return self[:6]

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Billing(NamedTuple):
    """Who charges for a session, and how the cost was found. None leaves what is known alone."""

    model: str | None = None
    billing_provider: str | None = None
    billing_base_url: str | None = None
    billing_mode: str | None = None
    cost_status: str | None = None
    cost_source: str | None = None
    pricing_version: str | None = None


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None and other is None else (one or 0.0) + (other or 0.0)
