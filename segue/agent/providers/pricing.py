"""What an answer cost and how much a model can read: as somebody said themselves, or from the libraries' price table.

The table comes with the program and is never fetched. It is named by its version and by the newest day on which a price
in it came into force.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import genai_prices
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import StartDateConstraint
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model

from segue.agent.choosing import Endpoint
from segue.core.prices import Terms
from segue.core.usage import OWN_PRICES, Billing, Usage

_MOST_TOKENS = 2**53
_TABLE = "genai-prices"


class Cost(NamedTuple):
    """What a call cost, and whose prices say so."""

    usd: float | None
    status: str
    source: str | None = None
    version: str | None = None


def usage_of(response: ModelResponse) -> Usage:
    """The tokens of one call. What a provider says in a form that no count has is left out."""
    said = response.usage
    return Usage(
        _count(said.input_tokens),
        _count(said.output_tokens),
        _count(said.cache_read_tokens),
        _count(said.cache_write_tokens),
        _count(said.output_reasoning_tokens) or _count(said.details.get("reasoning_tokens")),
        1,
    )


def cost_of(response: ModelResponse, endpoint: Endpoint, name: str, terms: Terms) -> Cost:
    """What a call cost. A price of somebody's own is before that of the table."""
    unknown = Cost(None, "local" if endpoint.is_local else "unknown")
    if response.usage.unmeasured_requests:
        return unknown
    if terms.price:
        usd = terms.price.cost_of(usage_of(response))
        return unknown if usd is None else Cost(usd, "estimated", OWN_PRICES)
    if endpoint.is_local:
        return unknown
    try:
        found = genai_prices.calc_price(response.usage, name, provider_api_url=_bare(endpoint.base_url))
    except (LookupError, ValueError, ArithmeticError, TypeError):
        return unknown
    is_known = found.total_price.is_finite() and found.total_price >= 0
    return Cost(float(found.total_price), "estimated", _TABLE, _version()) if is_known else unknown


def billing_of(endpoint: Endpoint, name: str, cost: Cost) -> Billing:
    return Billing(
        model=name,
        billing_provider=endpoint.provider,
        billing_base_url=_bare(endpoint.base_url),
        billing_mode="api",
        cost_status=cost.status,
        cost_source=cost.source,
        pricing_version=cost.version,
    )


def _version() -> str:
    """Which price table there is: its version, and how new its prices are."""
    return f"{genai_prices.__version__} ({newest_price(datetime.now(UTC).date())})"


@cache
def newest_price(today: date) -> date | None:
    """The newest day, up to today, on which a price of the table came into force."""
    return max((day for day in _first_days() if day <= today), default=None)


def _first_days() -> Iterator[date]:
    for provider in get_snapshot().providers:
        for model in provider.models:
            for price in model.prices if isinstance(model.prices, list) else ():
                if isinstance(price.constraint, StartDateConstraint):
                    yield price.constraint.start_date


def window(speaker: Model[Any]) -> int | None:
    """How many tokens a model can read, if anybody knows."""
    known = speaker.profile.get("context_window")
    return known if isinstance(known, int) and known > 0 else None


def _bare(base_url: str) -> str:
    """An address without the name, password and query that somebody may have put into it."""
    parts = urlsplit(base_url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _count(said: object) -> int:
    return said if isinstance(said, int) and not isinstance(said, bool) and 0 <= said <= _MOST_TOKENS else 0
