"""What an answer cost and how much a model can read, from the price list that comes with the libraries."""

from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import genai_prices
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model

from segue.agent.choosing import Endpoint
from segue.core.usage import Billing, Usage

_MOST_TOKENS = 2**53


class Cost(NamedTuple):
    usd: float | None
    status: str


def usage_of(response: ModelResponse, cost: Cost) -> Usage:
    """The tokens of one call. What a provider says in a form that no count has is left out."""
    said = response.usage
    return Usage(
        _count(said.input_tokens),
        _count(said.output_tokens),
        _count(said.cache_read_tokens),
        _count(said.cache_write_tokens),
        _count(said.output_reasoning_tokens) or _count(said.details.get("reasoning_tokens")),
        1,
        cost.usd,
    )


def cost_of(response: ModelResponse, endpoint: Endpoint, name: str) -> Cost:
    if endpoint.is_local:
        return Cost(None, "local")
    if response.usage.unmeasured_requests:
        return Cost(None, "unknown")
    try:
        found = genai_prices.calc_price(response.usage, name, provider_api_url=_bare(endpoint.base_url))
    except (LookupError, ValueError, ArithmeticError, TypeError):
        return Cost(None, "unknown")
    is_known = found.total_price.is_finite() and found.total_price >= 0
    return Cost(float(found.total_price), "estimated") if is_known else Cost(None, "unknown")


def billing_of(endpoint: Endpoint, name: str, cost: Cost) -> Billing:
    is_estimated = cost.status == "estimated"
    return Billing(
        model=name,
        billing_provider=endpoint.provider,
        billing_base_url=_bare(endpoint.base_url),
        billing_mode="api",
        cost_status=cost.status,
        cost_source="genai-prices" if is_estimated else None,
        pricing_version=genai_prices.__version__ if is_estimated else None,
    )


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
