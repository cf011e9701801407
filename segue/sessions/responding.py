"""What became of a message, for whoever waits for the answer at a door."""

from typing import NamedTuple

from segue.core.inbox import Entry, InboxState
from segue.core.messages import Message
from segue.core.outbox import OutboxState, What
from segue.core.turns import Turn
from segue.ports.store import Transaction

HELD_BACK = "The answer was written and is held back by the send policy."

_NAMES = ("answer", "unbegun", "forgotten")
"""What is said to a message beside the answer of its turn."""


class Outcome(NamedTuple):
    """How a message stands: what was answered, what was told beside it, and what the turn added."""

    entry: Entry
    text: str
    notices: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    """What its turn has added so far, without what was said to it."""

    @property
    def is_over(self) -> bool:
        return not self.entry.is_open

    @property
    def is_answered(self) -> bool:
        return self.entry.state == InboxState.DONE


def find_outcome(tx: Transaction, entry_id: int) -> Outcome | None:
    """How a message stands; nothing when it is not there, or not for whoever asks."""
    entry = tx.inbox.find(entry_id)
    if entry is None:
        return None
    answers, notices = _told(tx, entry)
    messages = _added(tx, entry)
    spoken = [one.content for one in messages if one.role == "assistant" and one.content and not one.calls]
    text = "\n\n".join(answers) or ("" if notices == [HELD_BACK] else (spoken[-1] if spoken else ""))
    return Outcome(entry, text or "", tuple(notices), tuple(messages))


def _added(tx: Transaction, entry: Entry) -> list[Message]:
    """What a turn has added to its session."""
    turn = tx.turns.find(entry.turn_id) if entry.turn_id else None
    if turn is None:
        return []
    after = tx.turns.next_after(turn)
    rows = tx.messages.of(turn.session_id, after=turn.first_seq - 1)
    return [row for row in rows if row.role != "user" and is_within(turn, after, row)]


def is_within(turn: Turn, after: Turn | None, row: Message) -> bool:
    """Whether a message was said in a turn, and not put down behind it by somebody else."""
    is_before = after is None or row.seq < after.first_seq
    return turn.first_seq <= row.seq and is_before and (turn.ended_at is None or row.timestamp <= turn.ended_at)


def _told(tx: Transaction, entry: Entry) -> tuple[list[str], list[str]]:
    """What was answered to a command, and what was told beside an answer."""
    letters = tx.outbox.keyed([f"{entry.id}:{name}:0" for name in _NAMES])
    letters += tx.outbox.of_turn(entry.turn_id) if entry.turn_id else []
    answers = [one.text for one in letters if one.what == What.ANSWER]
    notices = [one.text for one in letters if one.what == What.NOTICE]
    if any(one.what == What.REPLY and one.state == OutboxState.SUPPRESSED for one in letters):
        notices = [HELD_BACK]
    return answers, notices
