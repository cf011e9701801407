"""Batches: their lines are put down, followed to their end, and read again with what was answered."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from segue.core.batches import PLATFORM, STATES, Line, Result, inbound_of, refuse_another
from segue.core.errors import NotFound
from segue.core.inbound import kept
from segue.core.inbox import ERASED, OPEN, Entry, InboxState, Want
from segue.core.keys import DEFAULT_AGENT, KeyRules
from segue.core.queueing import QueueRules
from segue.ports.store import Transaction
from segue.sessions.accepting import Accepted, accept, entry_in_lane
from segue.sessions.requeueing import retry_messages

REMOVED = "Its conversation was removed."
_AGAIN = frozenset({InboxState.DEAD, InboxState.REFUSED, InboxState.CANCELLED})


class Summary(NamedTuple):
    """How a batch stands."""

    name: str
    asked: int
    done: int
    failed: int
    """Also those that somebody cancelled."""
    left: int
    """Those that wait or are being answered."""
    first_at: float
    last_at: float


def list_batches(tx: Transaction) -> list[Summary]:
    """Every batch that was ever run, the latest first."""
    found = []
    for one in tx.inbox.chats(PLATFORM):
        done, left = one.states.get(InboxState.DONE, 0), sum(one.states.get(state, 0) for state in OPEN)
        asked = sum(one.states.values())
        found.append(Summary(one.chat, asked, done, asked - done - left, left, one.first_at, one.last_at))
    return found


def known_lines(tx: Transaction, name: str) -> dict[str, Entry]:
    """What was asked of a batch, by the ids of its lines."""
    return {entry.message_id: entry for entry in tx.inbox.all_from(PLATFORM, "", name)}


def get_lines(tx: Transaction, name: str) -> dict[str, Entry]:
    found = known_lines(tx, name)
    if not found:
        raise NotFound(f"There is no batch {name!r}; `segue batch list` shows which there are.")
    return found


def is_missing(known: Entry | None) -> bool:
    """Whether a line has no answer, and nobody is about to give it one."""
    return known is None or (known.state in _AGAIN and known.origin != ERASED)


def put_down(tx: Transaction, name: str, lines: Sequence[Line], keys: KeyRules, now: float) -> list[Accepted]:
    """Let lines wait for their answers: what was never asked, and once more what was not answered."""
    return [_put_down(tx, name, line, keys, now) for line in lines]


def ended_among(tx: Transaction, entry_ids: Collection[int]) -> list[Entry]:
    """Those that have come to their end."""
    found = [entry for number in entry_ids if (entry := tx.inbox.find(number))]
    return [entry for entry in found if not entry.is_open]


def results_of(tx: Transaction, entries: Sequence[Entry]) -> list[Result]:
    """What became of lines, with what was answered."""
    return [_result(tx, entry) for entry in entries]


def _put_down(tx: Transaction, name: str, line: Line, keys: KeyRules, now: float) -> Accepted:
    entry = entry_in_lane(kept(inbound_of(name, line)), keys, DEFAULT_AGENT, Want.QUEUED, now)
    accepted = accept(tx, entry, QueueRules())
    if accepted.is_new:
        return accepted
    (known,) = tx.inbox.named(entry)
    refuse_another(line, known, name)
    if is_missing(known):
        (known,) = retry_messages(tx, [known.id], now)
    return accepted._replace(entry=known)


def _result(tx: Transaction, entry: Entry) -> Result:
    name, state = entry.message_id, STATES.get(InboxState(entry.state), entry.state)
    if entry.origin == ERASED:
        return Result(name, state, None, None, REMOVED)
    turn = tx.turns.find(entry.turn_id) if entry.turn_id else None
    if turn is None or turn.ended_at is None:
        is_gone = entry.state == InboxState.DONE
        return Result(name, state, None, entry.session_id, REMOVED if is_gone else entry.reason)
    said = tx.messages.of(turn.session_id, every_state=True, after=turn.first_seq - 1)
    answers = [one.content for one in said if one.role == "assistant" and one.timestamp <= turn.ended_at]
    answer = (answers[-1] or "") if answers and entry.state == InboxState.DONE else None
    return Result(name, state, answer, turn.session_id, entry.reason)
