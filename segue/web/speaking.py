"""Programs speak to the agent: what they say is put down like any other message, and they wait for the answer."""

import hashlib
import os
from collections.abc import AsyncIterator
from typing import NamedTuple

from segue.core.credentials import Credential
from segue.core.errors import NotFound
from segue.core.events import Event
from segue.core.inbound import Inbound, Receipt
from segue.core.inbox import Entry
from segue.core.keys import build_key, place_of
from segue.core.scope import Audience, Principal, Scope
from segue.gateway.onlookers import Onlooker
from segue.listening.bodies import Refusal
from segue.platforms.api_server.inbound import inbound_of, source_of
from segue.ports.store import Transaction
from segue.sessions.responding import Outcome, find_outcome
from segue.web.premises import Premises

FIRST_LOOK, LAST_LOOK = 0.02, 0.5
"""Seconds after which the rows are looked at: commands show nothing, and another gateway may answer."""
TRY_AGAIN_SECONDS = 5
OUTSIDE = "rpc"
"""The conversation under which what programs say in other lanes than their own comes in."""


class Speech(NamedTuple):
    """What a program says, and where."""

    conversation: str
    text: str
    parts: list[dict[str, object]] | None = None
    agent: str | None = None
    lane: str | None = None
    """A lane that is there, in place of one of the program's own."""
    key: str | None = None
    """The same when the same is said again."""
    kind: str = "msg"
    """What its name begins with."""

    def name(self, credential: Credential) -> str:
        """What names it for ever: the same for the same key of the same program, and otherwise never again."""
        if self.key is None:
            return f"{self.kind}_{os.urandom(16).hex()}"
        said = "\0".join((credential.principal, credential.client, self.lane or "", self.conversation, self.key))
        return f"{self.kind}_{hashlib.sha256(said.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def inbound_from(credential: Credential, speech: Speech) -> Inbound:
    return inbound_of(
        credential.client,
        Principal(credential.principal),
        speech.conversation,
        speech.name(credential),
        speech.text,
        parts=speech.parts,
        agent=speech.agent,
        lane=speech.lane,
    )


def lane_of(premises: Premises, client: str, conversation: str, agent: str = "main") -> str:
    """The lane in which a program has a conversation."""
    return build_key(place_of(source_of(client, conversation), premises.settings.key_rules, agent))


async def say(premises: Premises, inbound: Inbound) -> Entry:
    """Put down what a program says; it is safe when this returns. Said again with the same key, it is what it was."""
    receipt = await premises.gateway.desk.receive(inbound)
    if receipt is Receipt.REFUSED:
        raise Refusal(503, "Too many messages are waiting there; try again.", TRY_AGAIN_SECONDS)
    if receipt is Receipt.IGNORED:
        raise Refusal(403, "This was not taken: it is a command of owners, or its place is gone.")
    found = await premises.glance(lambda tx: tx.inbox.from_program(inbound.message_id))
    if not found:
        raise NotFound("What was said is not there any more.")
    return found[0]


async def outcome_of(premises: Premises, entry: Entry) -> Outcome:
    """How a message stands now."""
    scope = Scope(Principal(entry.principal), Audience(entry.audience))
    found = await premises.read(scope, find_outcome, entry.id)
    if found is None:
        raise NotFound("What was said is not there any more.")
    return found


async def events_of(premises: Premises, entry: Entry, onlooker: Onlooker) -> AsyncIterator[Event | Outcome]:
    """What happens in the turn that answers a message, and at last what became of it."""
    others: set[str] = set()
    pause = FIRST_LOOK
    while True:
        outcome = await outcome_of(premises, entry)
        if outcome.is_over:
            yield outcome
            return
        pause = min(pause * 2, LAST_LOOK)
        for seen in await onlooker.wait(pause):
            if seen.turn_id != entry.turn_id and seen.turn_id not in others:
                entry = await premises.glance(_again, entry)
                if seen.turn_id != entry.turn_id:
                    others.add(seen.turn_id)
            if seen.turn_id == entry.turn_id and seen.event is not None:
                yield seen.event


def _again(tx: Transaction, entry: Entry) -> Entry:
    """A message as it is now."""
    return tx.inbox.find(entry.id) or entry


async def wait_for(premises: Premises, entry: Entry, onlooker: Onlooker) -> Outcome:
    """What became of a message, when it has come to its end."""
    async for one in events_of(premises, entry, onlooker):
        if isinstance(one, Outcome):
            return one
    raise NotFound("What was said is not there any more.")
