"""A file on its way to whoever is being answered: noted like any other piece of an answer, once for each answer."""

import hashlib

from segue.core.attachments import Attachment
from segue.core.errors import Invalid
from segue.core.messages import encode
from segue.core.outbox import OutboxState, What
from segue.core.preferences import decode
from segue.core.text import storable
from segue.ports.store import Transaction
from segue.sessions.delivering import Posting, envelope_of, held_back, letter_of


def enclose(tx: Transaction, posting: Posting, session_id: str, file: Attachment, text: str, now: float) -> None:
    """Send a file to the chat whose message a session is just answering; the same file twice is one."""
    session = tx.sessions.find(session_id)
    answered = tx.inbox.running(session.lane_key) if session is not None and session.lane_key else []
    if session is None or not answered:
        raise Invalid("Nobody is being answered here, so there is no chat that a file could be sent to.")
    entry = answered[-1]
    named = hashlib.sha256(f"{file.sha256}\n{file.name}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    envelope = envelope_of(entry, f"{entry.turn_id}:file:{named}", session_id, entry.turn_id)
    traits = posting.traits(envelope.source.platform, envelope.source.account or "")
    if traits is None or not (traits.can_send and traits.can_attach):
        raise Invalid(f"No files can be sent on {envelope.source.platform}.")
    letter = letter_of(envelope, 0, storable(text), What.REPLY, now)._replace(file=encode([file.as_item()]))
    held = held_back(posting, envelope, What.REPLY, decode(session.model_config).send)
    if held is not None:
        letter = letter._replace(state=OutboxState.SUPPRESSED, reason=held.sentence, ended_at=now)
    tx.outbox.add(letter)
