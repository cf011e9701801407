"""What whoever looks after the inbox does to messages in it: answer them after all, or answer them no more."""

from collections.abc import Iterable, Sequence

from segue.core.errors import NotFound, WrongState
from segue.core.inbox import ERASED, UNANSWERED, Entry, InboxState
from segue.core.leases import Run, lane_lease, session_lease
from segue.core.messages import Spot
from segue.core.outbox import Letter
from segue.core.turns import Turn, TurnState
from segue.ports.store import Transaction
from segue.sessions.accepting import cancel
from segue.sessions.answering import drop_answer
from segue.sessions.leasing import IsGone, find_holder
from segue.sessions.rewinding import rewind_from
from segue.sessions.turning import Outcome

CANCELLED_HERE = "It was cancelled at the console."
RETRIED_HERE = "It was retried at the console."

_RETRIED = frozenset({InboxState.DEAD, InboxState.REFUSED, InboxState.CANCELLED})
_CANCELLED = frozenset({InboxState.WAITING, *UNANSWERED})
_WHY_NOT = {
    InboxState.WAITING: "waits already",
    InboxState.RUNNING: "is being answered",
    InboxState.DONE: "was answered",
    InboxState.CANCELLED: "is cancelled already",
}


def _nobody_is_gone(_run: Run) -> bool:
    """Take every process at its word: what it has not released and what has not expired is its own."""
    return False


def retry_messages(tx: Transaction, ids: Iterable[int], now: float, is_gone: IsGone = _nobody_is_gone) -> list[Entry]:
    """Let messages wait again that nobody answered: all of them, or none when one cannot.

    A turn that was cut off ends, together with all that it answers, and what it had said is undone.
    """
    entries = retryable(tx, ids, is_gone)
    for turn in _cut_off_turns(tx, entries):
        first = turn.first_seq
        _end_cut_off(tx, turn, RETRIED_HERE, now)
        rewind_from(tx, turn.session_id, Spot(turn.session_id, first))
    _wait_again(tx, entries, now)
    return _named(tx, [entry.id for entry in entries])


def with_full_reason(tx: Transaction, entry: Entry) -> Entry:
    """A message with the reason of its turn, which people who are not owners are told without details."""
    turn = tx.turns.find(entry.turn_id) if entry.turn_id and entry.state == InboxState.DEAD else None
    return entry._replace(reason=turn.reason or entry.reason) if turn is not None else entry


def dead_messages(tx: Transaction) -> list[Entry]:
    """Everything whose answer failed, and that can be answered after all."""
    return [entry for entry in tx.inbox.listed((InboxState.DEAD,)) if entry.origin != ERASED]


def retryable(tx: Transaction, ids: Iterable[int], is_gone: IsGone = _nobody_is_gone) -> list[Entry]:
    """The messages of these numbers, in the order in which they were accepted; all of them can be answered."""
    entries = _with_their_turns(tx, _named(tx, ids), is_gone)
    for entry in entries:
        if entry.state not in _RETRIED and not _is_cut_off(tx, entry, is_gone):
            raise WrongState(f"Message {entry.id} {_WHY_NOT[InboxState(entry.state)]}; nothing was changed.")
        if entry.origin == ERASED:
            raise WrongState(f"The words of message {entry.id} were removed for good; nothing was changed.")
    return entries


def cancel_messages(tx: Transaction, ids: Iterable[int], now: float, is_gone: IsGone = _nobody_is_gone) -> list[Entry]:
    """Answer these no more: all of them, or none when one cannot be cancelled. A turn that was cut off ends whole."""
    entries = cancellable(tx, ids, is_gone)
    for turn in _cut_off_turns(tx, entries):
        _end_cut_off(tx, turn, CANCELLED_HERE, now)
    return _cancel(tx, entries, now)


def cancel_waiting(tx: Transaction, ids: Iterable[int], now: float) -> list[Entry]:
    """Answer those of these no more that nobody has begun to answer."""
    return _cancel(tx, [entry for entry in _named(tx, ids) if entry.state == InboxState.WAITING], now)


def cancellable(tx: Transaction, ids: Iterable[int], is_gone: IsGone = _nobody_is_gone) -> list[Entry]:
    """The messages of these numbers, in the order in which they were accepted; all of them can be cancelled."""
    entries = _with_their_turns(tx, _named(tx, ids), is_gone)
    for entry in entries:
        if entry.state not in _CANCELLED and not _is_cut_off(tx, entry, is_gone):
            raise WrongState(f"Message {entry.id} {_WHY_NOT[InboxState(entry.state)]}; nothing was changed.")
    return entries


def is_unattended(tx: Transaction, entry: Entry, is_gone: IsGone) -> bool:
    """Return whether no living process works in the lane of a message, or in the session that it is in."""
    names = [lane_lease(entry.lane_key), *([session_lease(entry.session_id)] if entry.session_id else [])]
    return all(find_holder(tx, name, is_gone) is None for name in names)


def _is_cut_off(tx: Transaction, entry: Entry, is_gone: IsGone) -> bool:
    return entry.state == InboxState.RUNNING and is_unattended(tx, entry, is_gone)


def _with_their_turns(tx: Transaction, entries: Sequence[Entry], is_gone: IsGone) -> list[Entry]:
    """Add what was being answered by the same turn as one of these, when that turn was cut off."""
    cut_off = [entry for entry in entries if entry.turn_id and _is_cut_off(tx, entry, is_gone)]
    beside = [one for entry in cut_off for one in tx.inbox.of_turn(entry.turn_id or "") if one.is_open]
    return sorted({entry.id: entry for entry in [*entries, *beside]}.values(), key=lambda entry: entry.id)


def _cut_off_turns(tx: Transaction, entries: Sequence[Entry]) -> list[Turn]:
    ids = dict.fromkeys(entry.turn_id for entry in entries if entry.state == InboxState.RUNNING and entry.turn_id)
    turns = [tx.turns.find(turn_id) for turn_id in ids]
    return [turn for turn in turns if turn is not None and turn.state == TurnState.RUNNING]


def _end_cut_off(tx: Transaction, turn: Turn, reason: str, now: float) -> None:
    tx.turns.change(turn.id, state=str(TurnState.STOPPED), ended_at=now, reason=reason)
    drop_answer(tx, Outcome(turn, TurnState.STOPPED, "", now, reason))


def _cancel(tx: Transaction, entries: Sequence[Entry], now: float) -> list[Entry]:
    return _named(tx, [entry.id for entry in cancel(tx, entries, CANCELLED_HERE, now)])


def _wait_again(tx: Transaction, entries: Sequence[Entry], now: float) -> None:
    """A new attempt at its old place in line. It belongs to no turn, so that the end of an old one cannot end it.

    It counts as said now: a lane's clock must not be set back by what was said long ago. Which session it was in stays
    known until it is in another, so that whoever removes that for good removes this, too.
    """
    tx.inbox.change(entries, state=str(InboxState.WAITING), turn_id=None, reason=None, ended_at=None, admitted_at=now)


def look_at_message(tx: Transaction, number: int) -> tuple[Entry, list[Letter]]:
    """A message, and what was sent because of it."""
    (entry,) = _named(tx, [number])
    return with_full_reason(tx, entry), tx.outbox.of_turn(entry.turn_id) if entry.turn_id else []


def _named(tx: Transaction, ids: Iterable[int]) -> list[Entry]:
    entries = []
    for number in sorted(set(ids)):
        entry = tx.inbox.find(number)
        if entry is None:
            raise NotFound(f"There is no message {number} in the inbox; `segue inbox list --all` shows what is there.")
        entries.append(entry)
    return entries
