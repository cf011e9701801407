"""Undo: messages fall silent, and can speak again."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from segue.core.errors import MessageNotFound
from segue.core.messages import Message, State
from segue.ports.store import Transaction
from segue.sessions.finding import get_session


class Rewound(NamedTuple):
    """What an undo did: how many messages and turns fell silent, and what the first of them said."""

    messages: int
    turns: int
    target: Message | None


def rewind_to(tx: Transaction, session_id: str, message_id: int) -> Rewound:
    """Undo a user message and everything after it."""
    get_session(tx, session_id)
    target = tx.messages.find(message_id)
    if target is None or target.session_id != session_id or target.role != "user" or not target.is_live:
        raise MessageNotFound(f"Session {session_id} has no user message {message_id} that could be undone.")
    turns = sum(seq >= target.seq for seq in tx.messages.last_user_seqs(session_id))
    return _rewind(tx, session_id, target, turns)


def rewind_turns(tx: Transaction, session_id: str, turns: int) -> Rewound:
    """Undo the last turns, at most as many as there are."""
    get_session(tx, session_id)
    seqs = tx.messages.last_user_seqs(session_id, max(turns, 0))
    target = tx.messages.find_seq(session_id, seqs[-1]) if seqs else None
    return Rewound(0, 0, None) if target is None else _rewind(tx, session_id, target, len(seqs))


def rewind_to_seq(tx: Transaction, session_id: str, seq: int) -> None:
    """Undo every message from a place on."""
    tx.messages.mark(session_id, seq, State.LIVE, State.UNDONE)
    tx.sessions.recount(session_id)


def restore_rewound(tx: Transaction, session_id: str, message_id: int) -> int:
    """Let the undone messages from that one on speak again. Compacted ones stay where they are."""
    get_session(tx, session_id)
    target = tx.messages.find(message_id)
    if target is None or target.session_id != session_id:
        raise MessageNotFound(f"Session {session_id} has no message {message_id}.")
    restored = tx.messages.mark(session_id, target.seq, State.UNDONE, State.LIVE)
    tx.sessions.recount(session_id)
    return restored


def restore_seqs(tx: Transaction, session_id: str, seqs: Sequence[int]) -> int:
    """Let exactly these undone messages speak again, when none behind the first of them does; how many there were.

    What was undone before, and stands between them, stays silent.
    """
    get_session(tx, session_id)
    restored = 0
    for first, last in _runs(seqs):
        restored += tx.messages.mark(session_id, first, State.UNDONE, State.LIVE)
        restored -= tx.messages.mark(session_id, last + 1, State.LIVE, State.UNDONE)
    tx.sessions.recount(session_id)
    return restored


def _runs(seqs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The stretches without a gap, each by its first and last place."""
    first = last = seqs[0]
    for seq in seqs[1:]:
        if seq != last + 1:
            yield first, last
            first = seq
        last = seq
    yield first, last


def _rewind(tx: Transaction, session_id: str, target: Message, turns: int) -> Rewound:
    undone = tx.messages.mark(session_id, target.seq, State.LIVE, State.UNDONE)
    tx.sessions.recount(session_id)
    return Rewound(undone, turns, target)
