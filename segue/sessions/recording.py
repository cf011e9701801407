"""What is said becomes rows, and the session's counters follow in the same transaction."""

from typing import NamedTuple

from segue.core.errors import Invalid, SessionNotFound
from segue.core.messages import Draft, State, count_calls, first_line_of
from segue.core.sessions import Session
from segue.core.text import storable
from segue.core.usage import MOST_DOLLARS, MOST_TOKENS, Billing, Purpose, Usage, spent, used_by
from segue.ports.store import Transaction
from segue.sessions.finding import get_session


class Appended(NamedTuple):
    id: int
    seq: int


def append_message(tx: Transaction, session_id: str, message: Draft) -> Appended:
    """Add one message at the end of a session."""
    if not _counted(tx, session_id, message):
        raise SessionNotFound(session_id)
    return Appended(*tx.messages.append(session_id, message))


def replace_messages(tx: Transaction, session_id: str, messages: list[Draft]) -> int:
    """Let a transcript say something else from now on. What it said before is kept as undone."""
    clear_messages(tx, session_id)
    for message in messages:
        append_message(tx, session_id, message)
    return len(messages)


def clear_messages(tx: Transaction, session_id: str) -> int:
    """Empty a session but keep its record. Its messages are kept as undone, its summary among them."""
    get_session(tx, session_id)
    cleared = tx.messages.mark(session_id, 0, State.LIVE, State.UNDONE)
    tx.sessions.recount(session_id)
    return cleared


def keep_system_prompt(tx: Transaction, session_id: str, prompt: str) -> None:
    """Note what the model is told before anything else."""
    if not tx.sessions.change(session_id, system_prompt=storable(prompt)):
        raise SessionNotFound(session_id)


def add_usage(
    tx: Transaction, session_id: str, usage: Usage, billing: Billing, now: float, purpose: Purpose = Purpose.ANSWER
) -> None:
    """Count what a model call used. An auxiliary call does not say which model and which provider a session has."""
    _check(usage)
    kept = Billing() if purpose.is_auxiliary else billing
    if not tx.sessions.add_usage(session_id, usage, kept, absolute=False):
        raise SessionNotFound(session_id)
    if usage != Usage():
        _note(tx, get_session(tx, session_id), usage, billing, now, purpose)


def set_usage(tx: Transaction, session_id: str, usage: Usage, billing: Billing, now: float) -> None:
    """Say what all model calls of a session used, as somebody else has counted it; the difference is noted."""
    _check(usage)
    before = used_by(get_session(tx, session_id))
    tx.sessions.add_usage(session_id, usage, billing, absolute=True)
    session = get_session(tx, session_id)
    if usage.actual_cost_usd is not None:  # the bill is for every call there was
        tx.ledger.settle(session_id)
    if used_by(session) != before:
        _note(tx, session, used_by(session).minus(before), billing, now, Purpose.REPORT)


def _note(tx: Transaction, session: Session, usage: Usage, billing: Billing, now: float, purpose: Purpose) -> None:
    """Keep an entry. A model and a provider that are not named are those of the session."""
    model = billing.model or session.model
    provider = billing.billing_provider or session.billing_provider
    named = billing._replace(model=model, billing_provider=provider)
    tx.ledger.add(spent(session.id, now, purpose, usage, named))


def _check(usage: Usage) -> None:
    if not all(abs(cost or 0.0) <= MOST_DOLLARS for cost in usage.costs):
        raise Invalid("A cost must be a number, and nothing costs that much.")
    if any(abs(number) > MOST_TOKENS for number in usage.counters):
        raise Invalid("Nothing uses that many tokens.")


def _counted(tx: Transaction, session_id: str, message: Draft) -> bool:
    line = first_line_of(message.content) if message.role == "user" else ""
    calls = count_calls(message.tool_calls)
    return tx.sessions.record(session_id, messages=1, tool_calls=calls, at=message.timestamp, first_line=line)
