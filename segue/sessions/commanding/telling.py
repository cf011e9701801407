"""`/status` and `/usage`: how things stand, and what they have cost."""

from functools import reduce

from segue.core.insights import Group, Spending, cost_words, dollars
from segue.core.lifecycle import Phase
from segue.core.moments import ago
from segue.core.preferences import Preferences
from segue.core.sessions import Session
from segue.core.text import count, one_line, shorten
from segue.core.turns import ANSWER, TurnState
from segue.core.usage import Usage, used_by
from segue.ports.store import Entries, Transaction
from segue.sessions.commanding.acts import Answer, Linked, Situation, chosen_in, session_of
from segue.sessions.commanding.choosing import queue_mode, sending, thinking, verbosity
from segue.sessions.commanding.wording import table
from segue.sessions.finding import find_ancestors
from segue.sessions.lane_status import LaneStatus

_UNKNOWN = "unknown"
_NAME = 40


def status(tx: Transaction, _argument: str, situation: Situation) -> Answer:
    session = session_of(tx, situation)
    chosen = chosen_in(session, situation)
    rows = [
        ("Model", one_line(situation.model_named)),
        ("Agent", _agent(tx, session, situation)),
        ("Context", _context(session)),
        ("Thinking", thinking(chosen)),
        ("Verbose", verbosity(chosen)),
    ]
    if situation.lane is not None:
        rows += _lane_rows(chosen, situation, situation.lane)
    if situation.cwd:
        rows.append(("Folder", one_line(situation.cwd)))
    if situation.links:
        rows.append(("Platforms", "; ".join(_linked(one, situation.now) for one in situation.links)))
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


def _lane_rows(chosen: Preferences, situation: Situation, lane: LaneStatus) -> list[tuple[str, str]]:
    return [
        ("Sending", sending(chosen, situation)),
        ("Queue", f"{queue_mode(chosen, situation)}; {count(situation.waiting, 'message')} waiting"),
        ("Phase", lane.phase),
        ("Next reset", _next_reset(lane, situation)),
    ]


def _next_reset(lane: LaneStatus, situation: Situation) -> str:
    is_due = lane.next_reset is not None and lane.next_reset.timestamp() <= situation.now
    if lane.phase is Phase.SUSPENDED or (is_due and not lane.process_count):
        return "with the next message"
    if lane.next_reset is None:
        return "none"
    if is_due:
        return f"when {count(lane.process_count, 'background process')} ended"
    return f"{lane.next_reset.astimezone(situation.zone):%Y-%m-%d %H:%M}, unless somebody writes before"


def _linked(one: Linked, now: float) -> str:
    name = one_line(one.platform)
    return f"{name}, not connected" if one.since is None else f"{name}, connected {ago(one.since, now)}"


def usage(tx: Transaction, _argument: str, situation: Situation) -> Answer:
    session = session_of(tx, situation)
    if session is None:
        return Answer("Nothing has been used yet.")
    parts = [*find_ancestors(tx, session), session]
    subagents = tx.sessions.spawned_by([part.id for part in parts])
    wanted = Entries(session_ids=(*(part.id for part in parts), *subagents))
    total, prices = tx.ledger.total(wanted), tx.ledger.prices(wanted)
    rows = [
        ("Tokens in", f"{total.input_tokens:,}"),
        ("Tokens out", f"{total.output_tokens:,}"),
        ("Cache read", f"{total.cache_read_tokens:,}"),
        ("Cache write", f"{total.cache_write_tokens:,}"),
        ("Reasoning", f"{total.reasoning_tokens:,}"),
        ("Model calls", f"{total.api_calls:,}"),
        ("Cost", _cost(total, is_estimated=bool(prices))),
    ]
    if prices:
        rows.append(("Prices", ", ".join(one.label for one in prices)))
    if len(parts) > 1:
        rows.append(("Parts", f"{len(parts)}, all of them counted"))
    if subagents:
        rows.append(("Subagents", f"{len(subagents)}, all of them counted"))
    groups = [(column, tx.ledger.spending_by(column, wanted)) for column in ("model", "purpose")]
    return Answer(table(rows) + "".join(f"\n\nBy {column}\n{_grouped(group)}" for column, group in groups if group))


def _grouped(groups: list[Group]) -> str:
    return table((shorten(one_line(one.name or ""), _NAME) or _UNKNOWN, _spent(one.spending)) for one in groups)


def _spent(one: Spending) -> str:
    cached = f" ({one.cache_read_tokens:,} from a cache)" if one.cache_read_tokens else ""
    cost = cost_words(one.cost_usd, is_partly_unknown=one.is_partly_unknown)
    price = f"cost {cost}" if one.cost_usd is None else cost
    return f"{count(one.api_calls, 'call')}, {one.input_tokens:,} in{cached}, {one.output_tokens:,} out, {price}"


def _agent(tx: Transaction, session: Session | None, situation: Situation) -> str:
    """Whether the agent can be reached, as far as its last answer tells: nobody is asked for this alone."""
    turn = tx.turns.latest(session.id, ANSWER) if session else None
    if turn is None:
        return "not asked yet"
    when = ago(turn.ended_at or turn.begun_at, situation.now, situation.zone)
    match turn.state:
        case TurnState.RUNNING:
            return "is answering"
        case TurnState.FAILED:
            reason = f": {one_line(turn.reason or _UNKNOWN)}" if situation.is_for_owner_alone else ""
            return f"did not answer, {when}{reason}"
        case TurnState.STOPPED:
            return f"was stopped, {when}"
    return f"answered, {when}"


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


def _total(parts: list[Session]) -> Usage:
    return reduce(Usage.plus, map(used_by, parts))


def _cost(total: Spending, *, is_estimated: bool) -> str:
    """What all parts cost as far as it is known: what was charged, else what was estimated."""
    if total.cost_usd is None:
        return _UNKNOWN if total.is_partly_unknown else dollars(0.0)
    notes = ["estimated"] * is_estimated + ["a part of it unknown"] * total.is_partly_unknown
    return dollars(total.cost_usd) + (f" ({', '.join(notes)})" if notes else "")
