"""A file on its way to whoever is being answered: noted like any other piece of an answer, once for each answer."""

import hashlib

from segue.core.attachments import Attachment
from segue.core.errors import Invalid, LeaseLost
from segue.core.leases import lane_lease, platform_lease
from segue.core.messages import encode
from segue.core.outbox import OutboxState, What
from segue.core.preferences import decode
from segue.core.text import storable
from segue.ports.store import Transaction
from segue.sessions.delivering import Posting, envelope_of, held_back, letter_of


def enclose(
    tx: Transaction, posting: Posting, run_id: str, session_id: str, file: Attachment, text: str, now: float
) -> None:
    """Send a file to the chat whose message a session is just answering; the same file twice is one.

    Only whoever answers in the lane may, and only if it is also who sends there: nobody else has the file.
    """
    session = tx.sessions.find(session_id)
    key = session.lane_key if session is not None else None
    answered = tx.inbox.running(key) if key else []
    if session is None or key is None or not answered:
        raise Invalid("Nobody is being answered here, so there is no chat that a file could be sent to.")
    entry = answered[-1]
    if not _is_held(tx, lane_lease(key), run_id):
        raise LeaseLost("Another process answers here now; the file was not sent.")
    named = hashlib.sha256(f"{file.sha256}\n{file.name}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    envelope = envelope_of(entry, f"{entry.turn_id}:file:{named}", session_id, entry.turn_id)
    traits = posting.traits(envelope.source.platform, envelope.source.account or "")
    if traits is None or not (traits.can_send and traits.can_attach):
        raise Invalid(f"No files can be sent on {envelope.source.platform}.")
    if not _is_held(tx, platform_lease(envelope.source.platform, envelope.source.account or ""), run_id):
        raise Invalid(f"{envelope.source.platform} is connected elsewhere, where the file is not; try again later.")
    letter = letter_of(envelope, 0, storable(text), What.REPLY, now)._replace(file=encode([file.as_item()]))
    held = held_back(posting, envelope, What.REPLY, decode(session.model_config).send)
    if held is not None:
        letter = letter._replace(state=OutboxState.SUPPRESSED, reason=held.sentence, ended_at=now)
    tx.outbox.add(letter)


def _is_held(tx: Transaction, name: str, run_id: str) -> bool:
    held = tx.leases.find(name)
    return held is not None and held.owner == run_id and held.expires_at > tx.leases.now()
