"""`/undo`, `/redo` and `/retry`: what was said last falls silent, speaks again, or is said again."""

from segue.core.errors import InUse
from segue.core.messages import SUMMARY_SEQ, Message, Spot, first_line_of
from segue.core.sessions import Session
from segue.core.text import count, one_line, shorten
from segue.ports.store import Transaction
from segue.sessions.commanding.acts import Again, Answer, Redone, Situation, Undone, session_of
from segue.sessions.commanding.wording import how_many
from segue.sessions.rewinding import Rewound, has_gone_on, last_spoken, restore_spots, rewind_turns

_QUOTED = 80


def undo(tx: Transaction, argument: str, situation: Situation) -> Answer:
    turns = how_many(argument, 1, "/undo")
    session = session_of(tx, situation)
    done = _rewind(tx, session, turns, situation)
    if session is None or done.target is None:
        return Answer(_nothing(tx, session, "undo"))
    name, seq = one_line(done.target.session_id), done.target.seq
    fewer = " There were no more." if done.turns < turns else ""
    shown = f", and `segue sessions show {name} --around {seq}` shows it at any time" if situation.in_terminal else ""
    return Answer(
        f"Undone: {count(done.turns, 'turn')}, {count(done.messages, 'message')}, from “{_quoted(done.target)}” on."
        f"{fewer}\nNothing is lost: /redo brings it back, until something else is said{shown}.",
        Undone(done.spots),
    )


def redo(tx: Transaction, _argument: str, situation: Situation) -> Answer:
    session = session_of(tx, situation)
    spots = situation.undone
    if session is None or not spots or has_gone_on(tx, session.id, spots[0]):
        return Answer("There is nothing to bring back: nothing was undone here, or something else was said since.")
    _refuse_while_answering(situation)
    restored = restore_spots(tx, spots)
    first = tx.messages.find_seq(*spots[0])
    said = f", from “{_quoted(first)}” on" if first else ""
    return Answer(f"Back again: {count(restored, 'message')}{said}.", Redone())


def retry(tx: Transaction, _argument: str, situation: Situation) -> Answer:
    session = session_of(tx, situation)
    last = _last_said(tx, session, situation)
    if last is None:
        return Answer(_nothing(tx, session, "try again"))
    again = Again(last.content or "", last.original, undo_from=Spot(last.session_id, last.seq))
    return Answer(f"Once more: “{_quoted(last)}”.", again)


def _last_said(tx: Transaction, session: Session | None, situation: Situation) -> Message | None:
    """What a person said last; it falls silent when it is said again, and not before."""
    if session is None:
        return None
    _refuse_while_answering(situation)
    spoken = last_spoken(tx, session.id, 1)
    return tx.messages.find_seq(*spoken[0]) if spoken else None


def _rewind(tx: Transaction, session: Session | None, turns: int, situation: Situation) -> Rewound:
    if session is None:
        return Rewound(0, 0, None)
    _refuse_while_answering(situation)
    return rewind_turns(tx, session.id, turns)


def _refuse_while_answering(situation: Situation) -> None:
    if situation.is_answering:
        raise InUse("An answer is still being written; /stop ends it.")


def _quoted(said: Message) -> str:
    return shorten(one_line(first_line_of(said.content)), _QUOTED) or "(no words)"


def _nothing(tx: Transaction, session: Session | None, what: str) -> str:
    if session and tx.messages.find_seq(session.id, SUMMARY_SEQ):
        return f"There is nothing to {what}: what you said last is part of what was compressed."
    return f"There is nothing to {what}: nothing has been said yet."
