"""`/status` and `/usage`: how things stand, and what they have cost."""

from functools import reduce

from segue.core.sessions import Session
from segue.core.text import count, one_line
from segue.core.usage import Usage
from segue.ports.store import Transaction
from segue.sessions.commanding.acts import Answer, Situation, chosen_in, session_of
from segue.sessions.commanding.choosing import thinking, verbosity
from segue.sessions.commanding.wording import table
from segue.sessions.finding import find_ancestors

_UNKNOWN = "unknown"


def status(tx: Transaction, _argument: str, situation: Situation) -> Answer:
    session = session_of(tx, situation)
    chosen = chosen_in(session, situation)
    rows = [
        ("Model", one_line(situation.model) or "none"),
        ("Context", _context(session)),
        ("Thinking", thinking(chosen)),
        ("Verbose", verbosity(chosen)),
    ]
    if situation.cwd:
        rows.append(("Folder", one_line(situation.cwd)))
    if session is None:
        return Answer(table([*rows, ("Session", "none yet: it begins with the first message")]))
    parts = [*find_ancestors(tx, session), session]
    rows += [
        ("Session", one_line(session.id)),
        ("Title", one_line(session.title or "") or "none"),
        ("Messages", _messages(parts)),
        ("Tokens", f"{_total(parts).total_tokens:,}"),
    ]
    return Answer(table(rows))


def usage(tx: Transaction, _argument: str, situation: Situation) -> Answer:
    session = session_of(tx, situation)
    if session is None:
        return Answer("Nothing has been used yet.")
    parts = [*find_ancestors(tx, session), session]
    total = _total(parts)
    rows = [
        ("Tokens in", f"{total.input_tokens:,}"),
        ("Tokens out", f"{total.output_tokens:,}"),
        ("Cache read", f"{total.cache_read_tokens:,}"),
        ("Cache write", f"{total.cache_write_tokens:,}"),
        ("Reasoning", f"{total.reasoning_tokens:,}"),
        ("Model calls", f"{total.api_call_count:,}"),
        ("Cost", _cost(parts)),
    ]
    if len(parts) > 1:
        rows.append(("Parts", f"{len(parts)}, all of them counted"))
    return Answer(table(rows))


def _context(session: Session | None) -> str:
    used = session.context_tokens if session else None
    window = session.context_window if session else None
    if used is None:
        return _UNKNOWN if window is None else f"{_UNKNOWN} of {window:,} tokens"
    share = f" ({used * 100 // window}%)" if window else ""
    return f"{used:,} of {_UNKNOWN if window is None else f'{window:,}'} tokens{share}"


def _messages(parts: list[Session]) -> str:
    own = f"{parts[-1].message_count:,}"
    earlier = sum(part.message_count for part in parts[:-1])
    return own if not earlier else f"{own}, and {earlier:,} in {count(len(parts) - 1, 'earlier part')}"


def _used(session: Session) -> Usage:
    return Usage._make(getattr(session, name) for name in Usage._fields)


def _total(parts: list[Session]) -> Usage:
    return reduce(Usage.plus, map(_used, parts))


def _cost(parts: list[Session]) -> str:
    """What all parts cost as far as it is known: what was charged, else what was estimated."""
    asked = [part for part in parts if part.api_call_count or part.input_tokens or part.output_tokens]
    known = [cost for part in parts if (cost := _cost_of(part)) is not None]
    if not known:
        return _UNKNOWN if asked else _dollars(0.0)
    is_estimated = any(part.actual_cost_usd is None for part in parts if _cost_of(part) is not None)
    notes = ["estimated"] * is_estimated + ["a part of it unknown"] * any(_cost_of(part) is None for part in asked)
    return _dollars(sum(known)) + (f" ({', '.join(notes)})" if notes else "")


def _cost_of(part: Session) -> float | None:
    return part.estimated_cost_usd if part.actual_cost_usd is None else part.actual_cost_usd


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 0.01 or amount == 0 else f"${amount:.4f}"
