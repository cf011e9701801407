"""What whoever looks after the outbox does to what was not delivered: send it again."""

from collections.abc import Iterable

from segue.core.errors import NotFound, WrongState
from segue.core.outbox import Letter, OutboxState
from segue.ports.store import Transaction
from segue.sessions.delivering import MOST_ATTEMPTS

_WHY_NOT = {
    OutboxState.DRAFT: "is still being written",
    OutboxState.PENDING: "is to be sent already",
    OutboxState.SENDING: "is on its way",
    OutboxState.UNKNOWN: "is sent again by itself",
    OutboxState.DELIVERED: "was delivered",
    OutboxState.SUPPRESSED: "was held back by the send policy",
}


def dead_letters(tx: Transaction) -> list[Letter]:
    """Everything that could not be delivered."""
    return tx.outbox.listed((OutboxState.DEAD,))


def resendable(tx: Transaction, ids: Iterable[int]) -> list[Letter]:
    """The pieces of these numbers, in the order in which they were decided; all of them can be sent again."""
    letters = [_named(tx, number) for number in sorted(set(ids))]
    for letter in letters:
        if letter.state != OutboxState.DEAD:
            raise WrongState(f"Piece {letter.id} {_WHY_NOT[OutboxState(letter.state)]}; nothing was changed.")
    return letters


def resend(tx: Transaction, ids: Iterable[int]) -> list[Letter]:
    """Let pieces be sent again, with as many attempts as anything: all of them, or none when one cannot.

    One that was given up after many attempts may have arrived by any of them, so it is sent as such.
    """
    letters = resendable(tx, ids)
    for letter in letters:
        state = OutboxState.UNKNOWN if letter.attempts >= MOST_ATTEMPTS else OutboxState.PENDING
        tx.outbox.change(letter.id, state=str(state), attempts=0, not_before=0.0, reason=None, ended_at=None)
    return [_named(tx, letter.id) for letter in letters]


def _named(tx: Transaction, number: int) -> Letter:
    letter = tx.outbox.find(number)
    if letter is None:
        raise NotFound(f"There is no piece {number} in the outbox; `segue outbox list --all` shows what is there.")
    return letter
