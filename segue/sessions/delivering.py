"""What is said to people becomes rows, in the transaction that decides it; later it is sent, and marked."""

import json
from collections.abc import Callable
from typing import NamedTuple

from segue.core.chunks import MEASURES, chunks
from segue.core.ids import LaneKey
from segue.core.inbox import Entry, chat_of
from segue.core.outbox import MARK, UNSENT, Letter, OutboxState, What
from segue.core.sending import Delivery, SendPolicy, Suppression, suppress
from segue.core.sources import SessionSource
from segue.core.text import one_line, shorten, storable
from segue.ports.platform import Traits
from segue.ports.store import Transaction

MOST_ATTEMPTS = 8
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
LONGEST_REASON = 500
"""Characters of what a platform says of its failure."""


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

    def key(self, number: int) -> str:
        """Of one of its pieces."""
        return f"{self.name}:{number}"


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
    """Write down what is to be sent, once, in pieces that fit; how many there are.

    What is shown already in part goes on where it began, and that message is completed even if nothing is sent there
    any more.
    """
    draft = draft_of(tx, envelope.turn_id)
    if draft is not None and draft.key == envelope.key(0):
        envelope = envelope._replace(source=draft.source)
    else:
        draft = None
    source = envelope.source
    traits = posting.traits(source.platform, source.account or "")
    if traits is not None and not traits.can_send:
        return 0
    pieces = chunks(text, room_on(traits), MEASURES[traits.units]) if traits else [text]
    held = held_back(posting, envelope, what, override)
    for number, piece in enumerate(pieces):
        letter = letter_of(envelope, number, piece, what, now)
        if number == 0 and draft is not None:
            _complete(tx, draft, letter)
        elif held is None:
            tx.outbox.add(letter)
        else:
            tx.outbox.add(letter._replace(state=OutboxState.SUPPRESSED, reason=held.sentence, ended_at=now))
    return len(pieces)


def held_back(posting: Posting, envelope: Envelope, what: What, override: str | None) -> Suppression | None:
    """Why this is not sent; None when it is."""
    is_control = what is What.ANSWER
    return suppress(Delivery(envelope.source, LaneKey(envelope.lane_key), is_control), posting.policy, override)


def letter_of(envelope: Envelope, number: int, text: str, what: What, now: float) -> Letter:
    """One piece of what is to be sent."""
    source = envelope.source
    return Letter(
        id=0,
        key=envelope.key(number),
        lane_key=envelope.lane_key,
        principal=envelope.principal,
        audience=envelope.audience,
        turn_id=envelope.turn_id,
        session_id=envelope.session_id,
        platform=source.platform,
        account=source.account or "",
        chat=chat_of(source),
        route=json.dumps(source.to_dict(), ensure_ascii=False),
        text=storable(text),
        what=what,
        state=OutboxState.PENDING,
        created_at=now,
        reply_to=envelope.reply_to if number == 0 else None,
    )


def room_on(traits: Traits) -> int:
    """How long a piece may be: where it may have to be sent again with a mark, there is room for that, too."""
    room = traits.longest - MEASURES[traits.units](MARK)
    return traits.longest if traits.has_key or room < traits.longest // 2 else room


def marked(text: str, traits: Traits) -> str:
    """A piece that may be there twice. One that would become too long says nothing of it: it would not arrive."""
    return MARK + text if MEASURES[traits.units](MARK + text) <= traits.longest else text


def draft_of(tx: Transaction, turn_id: str | None) -> Letter | None:
    """The answer of a turn that is shown, or may be, before it is complete."""
    letters = tx.outbox.of_turn(turn_id) if turn_id else []
    return next((letter for letter in letters if letter.state == OutboxState.DRAFT), None)


def _complete(tx: Transaction, draft: Letter, letter: Letter) -> None:
    """The message that was shown is to say this. Without its name nobody knows whether it is there."""
    state = OutboxState.UNKNOWN if draft.message_id is None else OutboxState.PENDING
    tx.outbox.change(draft.id, text=letter.text, what=str(letter.what), state=str(state), session_id=letter.session_id)


class Leaving(NamedTuple):
    """Something that is being sent, and the state that it was in."""

    letter: Letter
    was: str


def begin_sending(tx: Transaction, letter_id: int, *, has_key: bool) -> Leaving | None:
    """It may leave this machine from now on; None when there is nothing to be sent any more.

    What may have arrived is marked, unless its key or its name keeps it single. It may have arrived, too, when the end
    of an earlier attempt could not be noted.
    """
    letter = tx.outbox.find(letter_id)
    if letter is None or letter.state not in UNSENT:
        return None
    was = OutboxState.PENDING if letter.state == OutboxState.PENDING else OutboxState.UNKNOWN
    is_repeat = int(was is OutboxState.UNKNOWN and letter.message_id is None and not has_key)
    sent = letter._replace(
        state=OutboxState.SENDING, attempts=letter.attempts + 1, is_repeat=max(letter.is_repeat, is_repeat)
    )
    tx.outbox.change(letter.id, state=str(sent.state), attempts=sent.attempts, is_repeat=sent.is_repeat)
    return Leaving(sent, was)


def send_anew(tx: Transaction, letter: Letter) -> Letter:
    """The message that showed its beginning cannot be edited any more: all of it is another message."""
    anew = letter._replace(key=f"{letter.key}:anew", state=OutboxState.PENDING, message_id=None, is_shown=0)
    tx.outbox.change(letter.id, key=anew.key, state=str(anew.state), message_id=None, is_shown=0)
    return anew


def end_sending(tx: Transaction, letter: Letter, message_id: str | None, now: float) -> None:
    tx.outbox.change(letter.id, state=str(OutboxState.DELIVERED), message_id=message_id, ended_at=now, reason=None)


def doubt(tx: Transaction, letter: Letter, reason: str, not_before: float) -> None:
    """Nobody knows whether it arrived."""
    tx.outbox.change(letter.id, state=str(OutboxState.UNKNOWN), reason=_kept(reason), not_before=not_before)


def put_back(tx: Transaction, letter: Letter, state: str, reason: str, not_before: float) -> None:
    """It has certainly not arrived by this attempt: it stands as it did before."""
    tx.outbox.change(letter.id, state=state, reason=_kept(reason), not_before=not_before)


def give_up_letter(tx: Transaction, letter: Letter, reason: str, now: float) -> None:
    tx.outbox.change(letter.id, state=str(OutboxState.DEAD), reason=_kept(reason), ended_at=now)


def pause_after(attempts: int) -> float:
    """How many seconds to wait after so many attempts."""
    return float(min(FIRST_PAUSE * 2 ** max(attempts - 1, 0), LONGEST_PAUSE))


def _kept(reason: str) -> str:
    """What a platform says may be anything; the row has a line of it."""
    return shorten(one_line(reason), LONGEST_REASON)
