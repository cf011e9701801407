"""How often somebody may fail."""

from math import ceil
from typing import NamedTuple


class _Span(NamedTuple):
    first_at: float
    failures: int


class Failures:
    """How often each of many has failed since their first failure; who has too often waits until the span is over."""

    def __init__(self, most: int = 10, seconds: float = 60.0, remembered: int = 10_000) -> None:
        self._most = most
        self._seconds = seconds
        self._remembered = remembered
        self._spans: dict[str, _Span] = {}

    def add(self, who: str, now: float) -> None:
        span = self._span(who, now)
        if who not in self._spans and len(self._spans) >= self._remembered:
            del self._spans[next(iter(self._spans))]  # whoever began first
        self._spans[who] = span._replace(failures=span.failures + 1)

    def wait(self, who: str, now: float) -> int:
        """For how many seconds somebody is not listened to; 0 when they are."""
        span = self._span(who, now)
        return ceil(span.first_at + self._seconds - now) if span.failures >= self._most else 0

    def _span(self, who: str, now: float) -> _Span:
        span = self._spans.get(who)
        if span is not None and not 0 <= now - span.first_at < self._seconds:  # over, or the clock was set back
            del self._spans[who]
            span = None
        return span or _Span(now, 0)
