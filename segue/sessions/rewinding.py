"""Undo: messages fall silent, and can speak again."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from segue.core.errors import MessageNotFound
from segue.core.messages import SUMMARY_SEQ, Message, Spot, State
from segue.ports.store import Transaction
from segue.sessions.finding import get_session
from segue.sessions.reading import kept_stretches


class Rewound(NamedTuple):
    """What an undo did: how many messages and turns fell silent, what the first of them said, and where all are."""

    messages: int
    turns: int
    target: Message | None
    spots: tuple[Spot, ...] = ()


def rewind_to(tx: Transaction, session_id: str, message_id: int) -> Rewound:
    """Undo a user message and everything after it."""
    get_session(tx, session_id)
    target = tx.messages.find(message_id)
    if target is None or target.session_id != session_id or target.role != "user" or not target.is_live:
        raise MessageNotFound(f"Session {session_id} has no user message {message_id} that could be undone.")
    turns = sum(seq >= target.seq for seq in tx.messages.last_user_seqs(session_id))
    return _rewind(tx, session_id, target, turns)


def rewind_turns(tx: Transaction, session_id: str, turns: int) -> Rewound:
    """Undo the last turns, at most as many as are still there word for word, also before a compression."""
    spoken = last_spoken(tx, session_id, max(turns, 0))
    target = tx.messages.find_seq(*spoken[-1]) if spoken else None
    return Rewound(0, 0, None) if target is None else _rewind(tx, session_id, target, len(spoken))


def last_spoken(tx: Transaction, session_id: str, most: int) -> list[Spot]:
    """Where a person said something last, the newest first: in the session, then in what it reads through."""
    session = get_session(tx, session_id)
    stretches = [*kept_stretches(tx, session), (session_id, SUMMARY_SEQ)]
    spots: list[Spot] = []
    for name, after in reversed(stretches):
        seqs = tx.messages.last_user_seqs(name, most - len(spots))
        spots += [Spot(name, seq) for seq in seqs if seq > after]
    return spots


def rewind_from(tx: Transaction, session_id: str, first: Spot) -> tuple[Spot, ...]:
    """Undo every message of a conversation from one on; which these were."""
    undone: list[Spot] = []
    for name, seq in _stretches_from(tx, session_id, first):
        undone += [Spot(name, message.seq) for message in tx.messages.of(name, after=seq - 1)]
        tx.messages.mark(name, seq, State.LIVE, State.UNDONE)
        tx.sessions.recount(name)
    return tuple(undone)


def restore_rewound(tx: Transaction, session_id: str, message_id: int) -> int:
    """Let the undone messages from that one on speak again. Compacted ones stay where they are."""
    get_session(tx, session_id)
    target = tx.messages.find(message_id)
    if target is None or target.session_id != session_id:
        raise MessageNotFound(f"Session {session_id} has no message {message_id}.")
    restored = tx.messages.mark(session_id, target.seq, State.UNDONE, State.LIVE)
    tx.sessions.recount(session_id)
    return restored


def restore_spots(tx: Transaction, spots: Sequence[Spot]) -> int:
    """Let exactly these undone messages speak again, when none behind them does; how many there were.

    What was undone before, and stands between them, stays silent.
    """
    restored = 0
    for name, group in groupby(spots, key=lambda spot: spot.session_id):
        get_session(tx, name)
        for first, last in _runs([spot.seq for spot in group]):
            restored += tx.messages.mark(name, first, State.UNDONE, State.LIVE)
            restored -= tx.messages.mark(name, last + 1, State.LIVE, State.UNDONE)
        tx.sessions.recount(name)
    return restored


def has_gone_on(tx: Transaction, session_id: str, first: Spot) -> bool:
    """Whether anything speaks from a message of a conversation on."""
    return any(tx.messages.of(name, after=seq - 1, limit=1) for name, seq in _stretches_from(tx, session_id, first))


def _stretches_from(tx: Transaction, session_id: str, first: Spot) -> list[Spot]:
    """Where a conversation goes on from a message: that one, and the first of each session after its own."""
    names = [*(name for name, _ in kept_stretches(tx, get_session(tx, session_id))), session_id]
    if first.session_id not in names:
        raise MessageNotFound(f"Message {first.seq} of session {first.session_id} is part of what was compressed.")
    return [first, *(Spot(name, SUMMARY_SEQ + 1) for name in names[names.index(first.session_id) + 1 :])]


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
    spots = rewind_from(tx, session_id, Spot(target.session_id, target.seq))
    return Rewound(len(spots), turns, target, spots)
