"""What is said to people becomes rows, in the transaction that decides it; later it is sent, and marked."""

import json
from collections.abc import Callable
from typing import NamedTuple

from segue.core.chunks import MEASURES, chunks
from segue.core.ids import LaneKey
from segue.core.inbox import Entry, chat_of
from segue.core.outbox import Letter, OutboxState, What
from segue.core.sending import Delivery, SendPolicy, suppress
from segue.core.sources import SessionSource
from segue.ports.platform import Traits
from segue.ports.store import Transaction

MOST_ATTEMPTS = 8
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0


class Posting(NamedTuple):
    """How what is said gets to people: how long a piece may be on each platform, and what is not sent."""

    traits: Callable[[str, str], Traits | None]
    """Of a platform and an account; nothing when it is not there."""
    policy: SendPolicy = SendPolicy()


class Envelope(NamedTuple):
    """Where something goes, and whose it is."""

    lane_key: str
    principal: str
    audience: str
    source: SessionSource
    name: str
    """What it is about: the same for the same, so that it is written once."""
    turn_id: str | None = None
    session_id: str | None = None
    reply_to: str | None = None


def envelope_of(entry: Entry, name: str, session_id: str | None = None, turn_id: str | None = None) -> Envelope:
    """Back to where a message came from, or to where its answer is to go."""
    return Envelope(
        lane_key=entry.lane_key,
        principal=entry.principal,
        audience=entry.audience,
        source=entry.destination,
        name=name,
        turn_id=turn_id,
        session_id=session_id,
        reply_to=entry.message_id if entry.route is None else None,
    )


def post(
    tx: Transaction,
    posting: Posting,
    envelope: Envelope,
    text: str,
    what: What,
    now: float,
    override: str | None = None,
) -> int:
    """Write down what is to be sent, once, in pieces that fit; how many there are."""
    source = envelope.source
    traits = posting.traits(source.platform, source.account or "")
    if traits is not None and not traits.can_send:
        return 0
    pieces = chunks(text, traits.longest, MEASURES[traits.units]) if traits else [text]
    is_control = what is not What.REPLY
    held = suppress(Delivery(source, LaneKey(envelope.lane_key), is_control), posting.policy, override)
    for number, piece in enumerate(pieces):
        tx.outbox.add(
            Letter(
                id=0,
                key=f"{envelope.name}:{number}",
                lane_key=envelope.lane_key,
                principal=envelope.principal,
                audience=envelope.audience,
                turn_id=envelope.turn_id,
                session_id=envelope.session_id,
                platform=source.platform,
                account=source.account or "",
                chat=chat_of(source),
                route=json.dumps(source.to_dict(), ensure_ascii=False),
                text=piece,
                what=what,
                state=OutboxState.SUPPRESSED if held else OutboxState.PENDING,
                created_at=now,
                reply_to=envelope.reply_to if number == 0 else None,
                reason=held.sentence if held else None,
                ended_at=now if held else None,
            )
        )
    return len(pieces)


def begin_sending(tx: Transaction, letter: Letter, *, has_key: bool) -> Letter | None:
    """It may leave this machine from now on. What may have arrived is marked, unless its key keeps it single.

    Nothing when there is nothing to be sent any more: it was looked up before somebody dealt with it.
    """
    found = tx.outbox.find(letter.id)
    if found is None or found.state not in (OutboxState.PENDING, OutboxState.UNKNOWN):
        return None
    letter = found
    is_repeat = int(letter.state == OutboxState.UNKNOWN and not has_key)
    sent = letter._replace(
        state=OutboxState.SENDING, attempts=letter.attempts + 1, is_repeat=max(letter.is_repeat, is_repeat)
    )
    tx.outbox.change(letter.id, state=str(sent.state), attempts=sent.attempts, is_repeat=sent.is_repeat)
    return sent


def end_sending(tx: Transaction, letter: Letter, message_id: str | None, now: float) -> None:
    tx.outbox.change(letter.id, state=str(OutboxState.DELIVERED), message_id=message_id, ended_at=now, reason=None)


def doubt(tx: Transaction, letter: Letter, reason: str, not_before: float) -> None:
    """Nobody knows whether it arrived."""
    tx.outbox.change(letter.id, state=str(OutboxState.UNKNOWN), reason=reason, not_before=not_before)


def put_back(tx: Transaction, letter: Letter, state: str, reason: str, not_before: float) -> None:
    """It has certainly not arrived by this attempt: it stands as it did before."""
    tx.outbox.change(letter.id, state=state, reason=reason, not_before=not_before)


def give_up_letter(tx: Transaction, letter: Letter, reason: str, now: float) -> None:
    tx.outbox.change(letter.id, state=str(OutboxState.DEAD), reason=reason, ended_at=now)


def pause_after(attempts: int) -> float:
    """How many seconds to wait after so many attempts."""
    return float(min(FIRST_PAUSE * 2 ** max(attempts - 1, 0), LONGEST_PAUSE))
