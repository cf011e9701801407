"""Rows that do not fit together, put right without losing any."""

from segue.core.sessions import Kind, Session
from segue.core.usage import entries_for
from segue.ports.store import Transaction
from segue.sessions.finding import get_session

RECOVERED = "recovered"
"""The source of a session that was made anew for messages which had lost theirs."""


def adopt_orphans(tx: Transaction) -> list[str]:
    """Give messages without a session one of the same id again."""
    adopted = tx.health.orphans()
    for one in adopted:
        tx.sessions.insert(
            Session(
                one.session_id,
                RECOVERED,
                kind=Kind.INTERACTIVE,
                started_at=one.first_at,
                ended_at=one.last_at,
                end_reason=RECOVERED,
                last_active_at=one.last_at,
            )
        )
        tx.sessions.recount(one.session_id)
    return [one.session_id for one in adopted]


def recount_sessions(tx: Transaction) -> list[str]:
    """Make every counter say what is live."""
    wrong = tx.health.miscounts()
    for one in wrong:
        tx.sessions.change(one.session_id, message_count=one.message_count, tool_call_count=one.tool_call_count)
    return [one.session_id for one in wrong]


def note_usage(tx: Transaction) -> list[str]:
    """Give every session an entry for what its sums have beyond the entries there are."""
    unnoted = tx.health.unnoted()
    for session_id in unnoted:
        known = tx.ledger.of(session_id)
        tx.ledger.add(*entries_for(get_session(tx, session_id), known)[len(known) :])
    return unnoted
