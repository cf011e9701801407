"""The end of a session whose time is over: its agent writes down what it wants to remember, and that is noted, once.

The rows decide. `lanes.finalised_at` says of a lane that it was done. A turn of the kind `farewell` without an end says
of a session that it is to be done: it was begun and cut off, or a message came first and began the next session. What
such a turn has seen of its session stands in `first_seq`, so that nothing is gone through twice. Crashes of its own and
answers that failed are its blame; it is given up as other turns are.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from segue.core.crash_recovery import is_given_up
from segue.core.errors import InvalidKey
from segue.core.events import Reply
from segue.core.keys import parse_key
from segue.core.leases import Lease
from segue.core.lifecycle import Continue, Lane, Reset, has_expired
from segue.core.messages import SUMMARY_SEQ, Said
from segue.core.moments import instant
from segue.core.policy import ResetReason
from segue.core.preferences import Preferences, decode
from segue.core.sessions import Session
from segue.core.turns import FAREWELL, Turn, TurnState
from segue.core.usage import Purpose
from segue.ports.store import Transaction
from segue.sessions.backgrounding import has_background_work
from segue.sessions.leasing import hold
from segue.sessions.opening import Opened, Rules, policy_of, save_lane
from segue.sessions.reading import view_of
from segue.sessions.recording import add_usage

_NOBODY = ""
"""Whose a farewell is that waits for its next try: a process that crashes meanwhile did not crash of it."""
CUT_OFF = "It was cut off too often."
LANE_GONE = "Its lane is there no more."

Claim = Callable[[Transaction, str, str], Lease]


class Try(NamedTuple):
    """One attempt to bring a session to its end."""

    turn_id: str
    run_id: str
    now: float
    can_take_notes: bool = True


class Farewell(NamedTuple):
    """A session that is being brought to its end."""

    opened: Opened
    lease: Lease
    preferences: Preferences
    view: Sequence[Said] = ()
    turn: Turn | None = None
    """In which the agent remembers; nothing when all is done."""
    seen: int = 0
    """The last of its messages."""


def find_due(tx: Transaction, rules: Rules, now: float) -> list[str]:
    """Sessions whose time is over: those that were left owing, and those of lanes that have expired."""
    left = [session for turn in tx.turns.owed() if (session := tx.sessions.find(turn.session_id))]
    owing = [session.id for session in left if not session.is_open]
    expired = [lane.session_id for lane in tx.lanes.unfinalised() if _is_over(tx, lane, rules, instant(now))]
    return list(dict.fromkeys([*owing, *(name for name in expired if name)]))


def find_left(tx: Transaction) -> list[str]:
    """Sessions that a message has just ended, and that nobody has tried to bring to their end."""
    return [turn.session_id for turn in tx.turns.owed() if turn.attempt == 0]


def ended_among(tx: Transaction, session_ids: Sequence[str]) -> list[str]:
    """Those that nothing more is said in."""
    return [name for name in session_ids if not ((session := tx.sessions.find(name)) and session.is_open)]


def owe_farewell(tx: Transaction, before: Lane | None, opened: Opened, turn_id: str, run_id: str, now: float) -> None:
    """A message came before anybody had finalised the session that it ends by its time: that is done afterwards."""
    decision, old = opened.decision, opened.session.reset_from
    is_by_time = isinstance(decision, Reset) and decision.reason in (ResetReason.IDLE, ResetReason.DAILY)
    if not is_by_time or old is None or before is None or before.finalised_at is not None:
        return
    latest = tx.turns.latest(old, FAREWELL)
    if latest is None or latest.ended_at is not None:
        seen = latest.first_seq if latest else SUMMARY_SEQ
        tx.turns.insert(Turn(turn_id, old, run_id, TurnState.DONE, 0, seen, now, kind=FAREWELL))


def take_leave(tx: Transaction, session_id: str, attempt: Try, rules: Rules, claim: Claim) -> Farewell | None:
    """Begin to bring a session to its end, or do so when there is nothing to remember; nothing if it is not due."""
    session = tx.sessions.find(session_id)
    if session is None:
        return None
    latest = tx.turns.latest(session_id, FAREWELL)
    owed = latest if latest and latest.ended_at is None else None
    lane = tx.lanes.find(session.lane_key or "")
    if lane is None:
        _end(tx, owed, TurnState.STOPPED, attempt.now, LANE_GONE)
        return None
    if not (_is_due(tx, lane, session, rules, attempt.now) if session.is_open else owed):
        return None
    lease = claim(tx, session.id, session.principal)
    last = tx.messages.last(session_id, 1)
    farewell = Farewell(Opened(lane, session, Continue()), lease, decode(session.model_config))
    farewell = farewell._replace(seen=last[-1].seq if last else SUMMARY_SEQ)
    is_new = farewell.seen > (latest.first_seq if latest else SUMMARY_SEQ)
    if owed is not None and is_given_up(owed.blame):
        _end(tx, owed, TurnState.FAILED, attempt.now, CUT_OFF, farewell.seen)
    elif is_new and attempt.can_take_notes:
        return farewell._replace(view=view_of(tx, session_id), turn=_begun(tx, session_id, attempt, latest))
    else:
        _end(tx, owed, TurnState.DONE, attempt.now)
    _finalise(tx, session, attempt.now)
    return farewell


def end_farewell(
    tx: Transaction, farewell: Farewell, replies: Sequence[Reply], trouble: str | None, now: float
) -> bool:
    """The agent has remembered, or could not; whether that was the end of it, or it is tried again."""
    hold(tx, farewell.lease)
    session, turn = farewell.opened.session, farewell.turn
    assert turn is not None
    for reply in replies:
        add_usage(tx, session.id, reply.usage, reply.billing, now, Purpose.FLUSH)
    blame = turn.blame + (1.0 if trouble else 0.0)
    if trouble and not is_given_up(blame):
        tx.turns.change(turn.id, reason=trouble, blame=blame, run_id=_NOBODY)
        return False
    _end(tx, turn, TurnState.FAILED if trouble else TurnState.DONE, now, trouble, farewell.seen)
    _finalise(tx, session, now)
    return True


def _is_over(tx: Transaction, lane: Lane, rules: Rules, now: datetime) -> bool:
    """Whether a lane has expired, and nothing is going on in it."""
    if lane.session_id is None or lane.origin is None:
        return False
    try:
        place = parse_key(lane.key, rules.keys.main_key)
    except InvalidKey:
        return False  # by other settings; no message reaches it now
    policy = policy_of(place, lane.origin, rules.policies)
    if not has_expired(lane, policy, now, freshness=rules.freshness):
        return False
    is_quiet = not any(tx.inbox.standing(lane.key)) and tx.turns.running_in(lane.session_id) is None
    return is_quiet and not has_background_work(tx, lane)


def _is_due(tx: Transaction, lane: Lane, session: Session, rules: Rules, now: float) -> bool:
    is_its_own = lane.session_id == session.id and lane.finalised_at is None
    return is_its_own and _is_over(tx, lane, rules, instant(now))


def _begun(tx: Transaction, session_id: str, attempt: Try, latest: Turn | None) -> Turn:
    """The turn in which the agent remembers: one that is owed, or a new one. The try counts before it is made."""
    if latest is not None and latest.ended_at is None:
        begun = latest._replace(run_id=attempt.run_id, attempt=latest.attempt + 1)
        tx.turns.change(begun.id, run_id=begun.run_id, attempt=begun.attempt)
        return begun
    seen = latest.first_seq if latest else SUMMARY_SEQ
    begun = Turn(attempt.turn_id, session_id, attempt.run_id, TurnState.DONE, 1, seen, attempt.now, kind=FAREWELL)
    tx.turns.insert(begun)
    return begun


def _end(
    tx: Transaction, turn: Turn | None, state: TurnState, now: float, reason: str | None = None, seen: int | None = None
) -> None:
    if turn is not None:
        first_seq = turn.first_seq if seen is None else seen
        tx.turns.change(turn.id, state=str(state), ended_at=now, reason=reason, first_seq=first_seq)


def _finalise(tx: Transaction, session: Session, now: float) -> None:
    """Say so of the lane, if it is still in the session."""
    lane = tx.lanes.find(session.lane_key or "")
    if lane is not None and lane.session_id == session.id:
        save_lane(tx, lane._replace(finalised_at=instant(now)))
