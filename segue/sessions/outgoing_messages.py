"""A message that an agent sends to another chat than the one that it answers."""

import hashlib
from collections.abc import Mapping

from segue.core.errors import Invalid, LeaseLost
from segue.core.ids import LaneKey
from segue.core.inbox import chat_of
from segue.core.keys import KeyRules, build_key, place_of
from segue.core.leases import lane_lease
from segue.core.outbox import What
from segue.core.preferences import decode
from segue.core.principals import principal_of, scope_in
from segue.core.routes import Route, as_last_seen
from segue.core.sources import SessionSource
from segue.core.text import one_line, storable
from segue.ports.store import Transaction
from segue.sessions.delivering import Envelope, Posting, held_back, post
from segue.sessions.handing import find_place
from segue.sessions.pairing import rules_with_owners


def send_message(
    tx: Transaction,
    posting: Posting,
    keys: KeyRules,
    homes: Mapping[str, SessionSource],
    run_id: str,
    session_id: str,
    route: Route,
    text: str,
    now: float,
) -> str:
    """Queue a text of the session's running turn for another chat; the same text to the same chat once a turn.

    Only the process that answers in the session's lane may. The send policy is that of the chat it goes to.
    """
    turn_id, keys = _running_turn(tx, session_id, run_id), rules_with_owners(tx, keys)
    target = _chat(tx, route, homes)
    traits = posting.traits(target.platform, target.account or "")
    if traits is None or not traits.can_send:
        raise Invalid(f"Nothing can be sent to {one_line(route.platform)}: it is not connected, or takes no messages.")
    place = place_of(target, keys)
    scope, key = scope_in(place, principal_of(target, keys)), build_key(place)
    named = hashlib.sha256(f"{route}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    name = f"{turn_id}:message:{named}"
    envelope = Envelope(key, scope.principal, scope.room or "", target, name, session_id=session_id)
    override = _send_override(tx, key)
    held = held_back(posting, envelope, What.REPLY, override)
    post(tx, posting, envelope, storable(text), What.REPLY, now, override)
    if held is not None:  # no error: that would undo the row that shows it
        return f"The message to {route} was not sent: {held.sentence}"
    return f"The message to {route} is queued; it is sent as soon as the platform takes it."


def _running_turn(tx: Transaction, session_id: str, run_id: str) -> str:
    session = tx.sessions.find(session_id)
    key = session.lane_key if session is not None else None
    answered = tx.inbox.running(key) if key else []
    if key is None or not answered or answered[-1].turn_id is None:
        raise Invalid("No message is being answered in this session, so it cannot send one.")
    lease = tx.leases.find(lane_lease(key))
    if lease is None or lease.owner != run_id or lease.expires_at <= tx.leases.now():
        raise LeaseLost("Another process answers in this lane now; the message was not sent.")
    return answered[-1].turn_id


def _chat(tx: Transaction, route: Route, homes: Mapping[str, SessionSource]) -> SessionSource:
    """The chat that a route means, with what its last message told of it."""
    target = find_place(tx, route, homes)
    if target is None:
        raise Invalid(
            f"{one_line(route.platform)} has no home channel: an owner sets it with /sethome in a chat there."
        )
    if not route.chat_id:
        return target
    last = tx.inbox.last_from(target.platform, target.account or "", storable(chat_of(target)))
    return as_last_seen(target, last.source if last else None)


def _send_override(tx: Transaction, key: LaneKey) -> str | None:
    """What was chosen with /send in the conversation there."""
    lane = tx.lanes.find(key)
    session = tx.sessions.find(lane.session_id or "") if lane else None
    return decode(session.model_config).send if session else None
