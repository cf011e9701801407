"""Whether a message is for us, and whose lane it belongs to: decided in the transaction that puts it down."""

import os
from collections.abc import Callable
from typing import NamedTuple

from segue.core.access import Access, AccessRules, Allowed, AskToPair, Reason, Role, can_be_known, decide, is_withheld
from segue.core.inbound import Inbound, kept, worded
from segue.core.inbox import Entry, Want
from segue.core.keys import KeyRules
from segue.core.outbox import What
from segue.core.pairing import CHANCE, invitation
from segue.core.queueing import QueueRules
from segue.core.reading import Reading
from segue.core.scope import OWNER
from segue.core.sources import SessionSource, kept_source
from segue.ports.store import Transaction
from segue.sessions.accepting import Accepted, accept, entry_in_lane, entry_in_named_lane, with_route_known
from segue.sessions.delivering import Posting, envelope_of, post
from segue.sessions.lane_chat import show_speech
from segue.sessions.over_cap import tell_over_cap
from segue.sessions.pairing import Asked, ask_to_pair, known_as, rules_with_owners
from segue.sessions.strangers import is_stranger, tell_owner_of_stranger

COMMAND_OF_OWNERS = "it is a command of owners"


class Routing(NamedTuple):
    """The rules by which a message finds its lane."""

    keys: KeyRules
    access: Callable[[str], AccessRules | None]
    """Who may speak on a platform; nothing where only those speak who may."""
    queue: Callable[[str], QueueRules]
    """Of a platform."""
    agent: Callable[[Inbound], str]
    """Who answers it."""
    read: Callable[[Inbound], Reading]
    posting: Posting


class Ignored(NamedTuple):
    """A message that is not for us."""

    reason: str


def admit_all(tx: Transaction, arrived: "list[tuple[Inbound, float]]", routing: Routing) -> list[Accepted | Ignored]:
    """Many at once: one commit confirms all of them."""
    keys = rules_with_owners(tx, routing.keys)
    return [admit(tx, inbound, routing, keys, now) for inbound, now in arrived]


def admit(tx: Transaction, inbound: Inbound, routing: Routing, keys: KeyRules, now: float) -> Accepted | Ignored:
    """Put a message down if its sender may speak; a stranger may get a code instead."""
    inbound = kept(inbound)
    ignored = _ignored(tx, inbound, routing, keys, now)
    if ignored is not None:
        if inbound.cursor is not None:
            source = inbound.source
            tx.inbox.move_cursor(source.platform, source.account or "", *inbound.cursor)
        return ignored
    is_read = inbound.is_person and not inbound.is_verbatim
    reading = routing.read(inbound) if is_read else Reading(Want.PLAIN, inbound.text)
    known = with_route_known(tx, inbound)
    text = reading.text if reading.want is Want.COMMAND else worded(inbound, reading.text)
    entry = entry_in_lane(known, keys, routing.agent(inbound), reading.want, now)._replace(text=text)
    if inbound.lane is not None:
        lane = tx.lanes.find(inbound.lane)
        if lane is None:
            return Ignored("its lane is gone")
        entry = entry_in_named_lane(entry, lane)
    accepted = accept(
        tx,
        entry,
        routing.queue(inbound.source.platform),
        inbound.cursor,
        reading.is_clearing,
        reading.is_steering,
        is_offered=inbound.is_offered,
        is_asking=lambda one: routing.read(Inbound(one.source, one.message_id, one.text)).is_asking,
    )
    if accepted.is_new and not inbound.is_offered:
        tell_over_cap(tx, accepted, routing.posting, now)
    is_taken = accepted.is_new and not accepted.is_refused
    if is_taken and entry.want != Want.COMMAND:
        accepted = accepted._replace(is_shown=show_speech(tx, routing.posting, accepted.entry, now))
    if is_taken and is_stranger(entry, keys) and tx.lanes.find(entry.lane_key) is None:
        tell_owner_of_stranger(tx, entry, keys, routing.agent(inbound), routing.posting, now)
    return accepted


def _ignored(tx: Transaction, inbound: Inbound, routing: Routing, keys: KeyRules, now: float) -> Ignored | None:
    if inbound.is_own:  # whoever may speak there: we would never stop answering ourselves
        return Ignored(Reason.OWN)
    if inbound.principal is not None:
        role = Role.OWNER if inbound.principal == OWNER else Role.PERSON
        is_held = not inbound.is_verbatim and is_withheld(inbound.text, role)
        return Ignored(COMMAND_OF_OWNERS) if is_held else None
    rules = routing.access(inbound.source.platform)
    if rules is None:
        return None
    known = known_as(tx, inbound.source, keys)
    access = decide(inbound.source, rules, known, is_mention=inbound.is_mention)
    match access:
        case Allowed(role):
            is_held = is_withheld(inbound.text, role, is_person=inbound.is_person)
            return Ignored(COMMAND_OF_OWNERS) if is_held else None
        case AskToPair():
            _invite(tx, inbound, routing, keys, now)
            return Ignored("its sender was asked to pair")
    return Ignored(access.reason)


def is_heard(tx: Transaction, source: SessionSource, routing: Routing, *, is_mention: bool = True) -> bool:
    """Whether what somebody says is answered, if it is addressed to us or if it is not."""
    return isinstance(_access(tx, source, routing, is_mention=is_mention), Allowed)


def is_welcome(tx: Transaction, source: SessionSource, routing: Routing) -> bool:
    """Whether somebody may bring us into a chat: they would be heard there, or told how to be."""
    return isinstance(_access(tx, source, routing, is_mention=True), Allowed | AskToPair)


def _access(tx: Transaction, source: SessionSource, routing: Routing, *, is_mention: bool) -> Access:
    """What becomes of something that is said."""
    source, rules = kept_source(source), routing.access(source.platform)
    if rules is None:
        return Allowed(Role.PERSON)
    known = known_as(tx, source, rules_with_owners(tx, routing.keys))
    return decide(source, rules, known, is_mention=is_mention)


def may_still_speak(tx: Transaction, entry: Entry, routing: Routing) -> bool:
    """Whether whoever said something that was taken in would be heard today."""
    return is_heard(tx, entry.source, routing)  # it was addressed to us then


def _invite(tx: Transaction, inbound: Inbound, routing: Routing, keys: KeyRules, now: float) -> None:
    if not can_be_known(inbound.source.peer):
        return
    asked = ask_to_pair(tx, inbound.source, os.urandom(CHANCE), now)
    if isinstance(asked, Asked):
        entry = entry_in_lane(inbound, keys, routing.agent(inbound), Want.PLAIN, now)
        envelope = envelope_of(entry, f"pairing:{inbound.source.platform}:{inbound.source.peer}:{asked.expires_at}")
        post(tx, routing.posting, envelope, invitation(asked.code), What.NOTICE, now)
