"""How much a store was used in a period, for whoever may see it."""

from datetime import tzinfo

from segue.core.insights import Group, Insights, activity_of, count_tools, days_of, joined, talk_of
from segue.ports.store import Entries, Filter, Transaction


def insights(tx: Transaction, since: float, sources: tuple[str, ...] = (), zone: tzinfo | None = None) -> Insights:
    """What was used and said since a moment, and how many sessions were active since then."""
    active = Filter(sources=sources, archived=None, tips_only=False, active_since=since)
    period = Entries(since, sources)
    talk = tx.sessions.talk_by("source", active)
    return Insights(
        total=Group(None, talk_of(talk), tx.ledger.total(period)),
        models=joined(tx.sessions.talk_by("model", active), tx.ledger.spending_by("model", period)),
        sources=joined(talk, tx.ledger.spending_by("source", period)),
        purposes=tx.ledger.spending_by("purpose", period),
        prices=tx.ledger.prices(period),
        days=days_of(tx.ledger.per_slot(period), zone),
        tools=count_tools(tx.messages.calls_since(since, sources)),
        activity=activity_of(tx.messages.per_slot_since(since, sources), zone),
        longest=tx.sessions.longest(active._replace(tips_only=True)),
    )
