"""How much a store was used in a period, for whoever may see it."""

from datetime import tzinfo

from segue.core.insights import Insights, activity_of, count_tools, total_of
from segue.ports.store import Filter, Transaction


def insights(tx: Transaction, since: float, sources: tuple[str, ...] = (), zone: tzinfo | None = None) -> Insights:
    """What the sessions that were active since a moment add up to, and when something was said in them since then."""
    active = Filter(sources=sources, archived=None, tips_only=False, active_since=since)
    by_model = tx.sessions.sums_by("model", active)
    return Insights(
        total=total_of(by_model),
        models=by_model,
        sources=tx.sessions.sums_by("source", active),
        tools=count_tools(tx.messages.calls_since(since, sources)),
        activity=activity_of(tx.messages.per_slot_since(since, sources), zone),
        longest=tx.sessions.longest(active._replace(tips_only=True)),
    )
