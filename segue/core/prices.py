"""What somebody says of a model themselves: what it costs, and how much it can read."""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from segue.core.usage import Usage

_PER = 1_000_000  # tokens that a price is for
T = TypeVar("T")


class Price(NamedTuple):
    """US dollars for a million tokens of each sort. What is read from a cache, or written to one, is input too."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None

    def cost_of(self, usage: Usage) -> float | None:
        """What a call cost; unknown when it used something that has no price."""
        cached = usage.cache_read_tokens + usage.cache_write_tokens
        parts = [
            (max(usage.input_tokens - cached, 0), self.input),
            (usage.output_tokens, self.output),
            (usage.cache_read_tokens, self.input if self.cache_read is None else self.cache_read),
            (usage.cache_write_tokens, self.input if self.cache_write is None else self.cache_write),
        ]
        if any(tokens and price is None for tokens, price in parts):
            return None
        return sum(tokens * (price or 0.0) for tokens, price in parts) / _PER


class Terms(NamedTuple):
    """What is known of one model from whoever uses it."""

    price: Price | None = None
    window: int | None = None


UNKNOWN_TERMS = Terms()


def terms_of(provider: str, name: str, prices: Mapping[str, Price], windows: Mapping[str, int]) -> Terms:
    """What was said of a model of a provider, or else of every model of that name."""
    return Terms(_said(prices, provider, name), _said(windows, provider, name))


def _said(about: Mapping[str, T], provider: str, name: str) -> T | None:
    return about.get(f"{provider}/{name}", about.get(name))
