"""An answer that is shown before it is complete, as a row: written before anybody can see it.

The row is the one of the answer's first piece. So whenever a program is killed, the next one knows that a message may
be there, and the answer is not sent beside it.
"""

from enum import StrEnum
from typing import NamedTuple

from segue.core.leases import Lease
from segue.core.outbox import Letter, OutboxState, What
from segue.core.preferences import decode
from segue.core.turns import TurnState
from segue.ports.store import Transaction
from segue.sessions.delivering import Envelope, Posting, draft_of, held_back, letter_of
from segue.sessions.leasing import hold, is_ours


class Unshown(StrEnum):
    """Why a beginning is not to be shown."""

    YET = "yet"
    """Something older waits to be sent there."""
    EVER = "ever"


class Drafted(NamedTuple):
    """What may be seen from now on."""

    letter: Letter
    is_new: bool
    """Whether it certainly is not there yet."""


def begin_draft(
    tx: Transaction, lease: Lease, posting: Posting, envelope: Envelope, text: str, now: float, *, has_key: bool
) -> Drafted | Unshown:
    """Note that the beginning of a turn's answer is about to be shown; what was noted before is taken up again."""
    hold(tx, lease)
    turn = tx.turns.find(envelope.turn_id or "")
    if turn is None or turn.state != TurnState.RUNNING:
        return Unshown.EVER
    letter = letter_of(envelope, 0, text, What.REPLY, now)
    letter = letter._replace(session_id=turn.session_id, state=OutboxState.DRAFT, is_shown=1)
    left = draft_of(tx, turn.id)
    if left is not None and (_chat(left) != _chat(letter) or (left.message_id is None and not has_key)):
        return Unshown.EVER
    session = tx.sessions.find(turn.session_id)
    if held_back(posting, envelope, What.REPLY, decode(session.model_config if session else None).send):
        return Unshown.EVER
    if tx.outbox.is_awaited(*_chat(letter)):
        return Unshown.YET
    is_new = tx.outbox.add(letter)
    drafted = draft_of(tx, turn.id)
    return Drafted(drafted, is_new) if drafted is not None else Unshown.EVER


def note_shown(tx: Transaction, letter_id: int, message_id: str | None) -> None:
    """It is there, and this is what the platform calls it."""
    tx.outbox.change(letter_id, message_id=message_id)


def note_unshown(tx: Transaction, lease: Lease, letter_id: int) -> None:
    """It is certainly not there: what was written meanwhile is sent like anything else.

    That is known only of what nobody else has tried: neither who answers in that lane now nor who delivers.
    """
    letter = tx.outbox.find(letter_id)
    if letter is None or letter.message_id is not None:
        return
    if letter.state == OutboxState.DRAFT and is_ours(tx, lease):
        tx.outbox.remove(letter_id)
    elif letter.state == OutboxState.UNKNOWN and letter.attempts == 0:
        tx.outbox.change(letter_id, state=str(OutboxState.PENDING), is_shown=0)


def may_show_more(tx: Transaction, lease: Lease, letter_id: int) -> bool:
    """Whether an answer is not complete yet, and still ours."""
    letter = tx.outbox.find(letter_id)
    return letter is not None and letter.state == OutboxState.DRAFT and is_ours(tx, lease)


def _chat(letter: Letter) -> tuple[str, str, str]:
    return letter.platform, letter.account, letter.chat
