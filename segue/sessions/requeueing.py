"""What whoever looks after the inbox does to messages in it: answer them after all, or answer them no more."""

from collections.abc import Iterable, Sequence

from segue.core.errors import Invalid, NotFound
from segue.core.inbox import ERASED, UNANSWERED, Entry, InboxState
from segue.core.outbox import Letter
from segue.ports.store import Transaction
from segue.sessions.accepting import cancel

CANCELLED_HERE = "It was cancelled at the console."

_RETRIED = frozenset({InboxState.DEAD, InboxState.REFUSED, InboxState.CANCELLED})
_CANCELLED = frozenset({InboxState.WAITING, *UNANSWERED})
_WHY_NOT = {
    InboxState.WAITING: "waits already",
    InboxState.RUNNING: "is being answered",
    InboxState.DONE: "was answered",
    InboxState.CANCELLED: "is cancelled already",
}


def retry_messages(tx: Transaction, ids: Iterable[int], now: float) -> list[Entry]:
    """Let messages wait again that nobody answered: all of them, or none when one cannot."""
    entries = retryable(tx, ids)
    _wait_again(tx, entries, now)
    return _named(tx, [entry.id for entry in entries])


def dead_messages(tx: Transaction) -> list[Entry]:
    """Everything whose answer failed, and that can be answered after all."""
    return [entry for entry in tx.inbox.listed((InboxState.DEAD,)) if entry.origin != ERASED]


def retryable(tx: Transaction, ids: Iterable[int]) -> list[Entry]:
    """The messages of these numbers, in the order in which they were accepted; all of them can be answered."""
    entries = _named(tx, ids)
    for entry in entries:
        if entry.state not in _RETRIED:
            raise Invalid(f"Message {entry.id} {_WHY_NOT[InboxState(entry.state)]}; nothing was changed.")
        if entry.origin == ERASED:
            raise Invalid(f"The words of message {entry.id} were removed for good; nothing was changed.")
    return entries


def cancel_messages(tx: Transaction, ids: Iterable[int], now: float) -> list[Entry]:
    """Answer these no more: all of them, or none when one cannot be cancelled."""
    return _cancel(tx, cancellable(tx, ids), now)


def cancel_waiting(tx: Transaction, ids: Iterable[int], now: float) -> list[Entry]:
    """Answer those of these no more that nobody has begun to answer."""
    return _cancel(tx, [entry for entry in _named(tx, ids) if entry.state == InboxState.WAITING], now)


def cancellable(tx: Transaction, ids: Iterable[int]) -> list[Entry]:
    """The messages of these numbers, in the order in which they were accepted; all of them can be cancelled."""
    entries = _named(tx, ids)
    for entry in entries:
        if entry.state not in _CANCELLED:
            raise Invalid(f"Message {entry.id} {_WHY_NOT[InboxState(entry.state)]}; nothing was changed.")
    return entries


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
    return entry, tx.outbox.of_turn(entry.turn_id) if entry.turn_id else []


def _named(tx: Transaction, ids: Iterable[int]) -> list[Entry]:
    entries = []
    for number in sorted(set(ids)):
        entry = tx.inbox.find(number)
        if entry is None:
            raise NotFound(f"There is no message {number} in the inbox; `segue inbox list --all` shows what is there.")
        entries.append(entry)
    return entries
