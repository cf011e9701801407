"""Where a program's words belong: in a conversation that it names, behind an answer, or in a new conversation.

A client that sends its whole history back is recognised by it. What it sent the last time, and what it was answered,
is how its history begins; if both are so, the conversation goes on. Otherwise the history is stored first.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from segue.core.credentials import Credential
from segue.core.errors import NotFound
from segue.core.inbox import Entry
from segue.core.keys import DEFAULT_AGENT, parse_key
from segue.core.messages import draft
from segue.core.scope import Principal
from segue.core.sources import API_SERVER
from segue.platforms.api_server.inbound import source_of
from segue.ports.store import Transaction
from segue.sessions.calling import Call, calls_after, digest_of, is_news, keep_call, same_call
from segue.sessions.conversing import Footing, Room, footing_in, go_on_after, move_to, put_down, stand_in
from segue.sessions.responding import Outcome, find_outcome
from segue.web.openai.answers import answer_of
from segue.web.openai.errors import Wrong
from segue.web.openai.voice import joined
from segue.web.openai.wording import Given, draft_of

CONVERSATION = "conv_"
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")


class Wish(NamedTuple):
    """What a program says, to whom and where."""

    credential: Credential
    message_id: str
    digest: str
    given: Sequence[Given]
    model: str | None = None
    agent: str | None = None
    instructions: str = ""
    conversation: str | None = None
    name: str | None = None
    """Of a conversation, as the program calls it."""
    previous: str | None = None
    is_background: bool = False


class Placed(NamedTuple):
    call: Call
    started: Footing | None = None
    """A session that has begun for it."""


def place(tx: Transaction, wish: Wish, fresh_id: str, now: datetime) -> Placed:
    """Make ready where a program speaks, and write down that it does. A second time it is what it was."""
    if kept := same_call(tx, wish.message_id, wish.digest):
        return Placed(kept)
    if tx.inbox.from_program(wish.message_id):
        raise NotFound("What was said with this key has been removed.")
    footing, before = _footing(tx, wish, fresh_id, now)
    moment = now.timestamp()
    drafts = [draft_of(one, moment) for one in before]
    if wish.instructions and is_news(tx, footing.lane.key, wish.instructions):
        drafts.insert(0, draft("system", wish.instructions, moment, provider=API_SERVER))
    put_down(tx, footing, drafts)
    call = Call(
        mark=wish.digest,
        lane=footing.lane.key,
        chat=wish.conversation or wish.name or wish.message_id,
        model=wish.model or parse_key(footing.lane.key).agent,
        at=moment,
        conversation=wish.conversation,
        previous=wish.previous,
        is_background=wish.is_background,
        session_id=footing.session_id,
        history=None if _is_placed(wish) else _history(wish, wish.given),
    )
    keep_call(tx, wish.message_id, call)
    return Placed(call, footing if footing.is_new else None)


def session_named(conversation: str) -> str:
    """The session that a conversation begins with."""
    if not conversation.startswith(CONVERSATION):
        raise NotFound(f"There is no conversation {conversation!r}.")
    return conversation.removeprefix(CONVERSATION)


def checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise Wrong("A conversation's name has at most 200 printable characters.", code="invalid_value")
    return name


def room_named(wish: Wish) -> Room | None:
    """Where a program speaks that calls its conversation by a name of its own."""
    return None if wish.name is None else _room(wish, wish.name, wish.agent)


def _footing(tx: Transaction, wish: Wish, fresh_id: str, now: datetime) -> tuple[Footing, Sequence[Given]]:
    """Where it is said, and what is to be stored there first."""
    *before, _ = wish.given
    if wish.conversation is not None:
        return _in_conversation(tx, wish, wish.conversation, now), before
    if wish.previous is not None:
        return _behind(tx, wish, _entry(tx, wish.previous), fresh_id, now), before
    if room := room_named(wish):
        return stand_in(tx, room, fresh_id, now), before
    if found := _recognised(tx, wish):
        return _behind(tx, wish, found, fresh_id, now), behind_answers(before)
    return stand_in(tx, _room(wish, wish.message_id, wish.agent), fresh_id, now), before


def _in_conversation(tx: Transaction, wish: Wish, conversation: str, now: datetime) -> Footing:
    footing = footing_in(tx, session_named(conversation))
    agent = parse_key(footing.lane.key).agent
    if wish.agent in (None, agent):
        return footing
    moved = move_to(tx, footing, _room(wish, conversation, wish.agent), now)
    if moved is None:
        raise Wrong(f"This conversation is with the agent {agent}; begin another one for {wish.model}.", "model")
    return moved


def _behind(tx: Transaction, wish: Wish, entry: Entry, fresh_id: str, now: datetime) -> Footing:
    room = _room(wish, wish.message_id, wish.agent or parse_key(entry.lane_key).agent)
    return go_on_after(tx, entry, room, fresh_id, now)


def _room(wish: Wish, name: str, agent: str | None) -> Room:
    credential = wish.credential
    return Room(agent or DEFAULT_AGENT, source_of(credential.client, name), Principal(credential.principal))


def _entry(tx: Transaction, message_id: str) -> Entry:
    found = tx.inbox.from_program(message_id)
    if not found:
        sentence = f"Previous response with id '{message_id}' not found."
        raise Wrong(sentence, "previous_response_id", "previous_response_not_found", 404)
    return found[0]


def _is_placed(wish: Wish) -> bool:
    return not (wish.conversation is wish.name is None)


def _history(wish: Wish, given: Sequence[Given]) -> str:
    client, principal = wish.credential.client, wish.credential.principal
    return digest_of(principal, client, wish.agent or DEFAULT_AGENT, [one.mark for one in given])


def _recognised(tx: Transaction, wish: Wish) -> Entry | None:
    """What was said before the last answer in a history, if it was said here and that was the answer."""
    answered = [number for number, one in enumerate(wish.given) if one.role == "assistant"]
    if not answered:
        return None
    last = answered[-1]
    for name in reversed(calls_after(tx, _history(wish, wish.given[:last]))):
        for entry in tx.inbox.from_program(name):
            outcome = find_outcome(tx, entry.id)
            if outcome is not None and outcome.is_answered and _is_answer(outcome, wish.given[last]):
                return entry
    return None


def _is_answer(outcome: Outcome, given: Given) -> bool:
    """Whether a client means an answer of ours; some cut off the space around it."""
    return joined(answer_of(outcome)).strip() == given.text.strip()


def behind_answers(given: Sequence[Given]) -> list[Given]:
    """What stands behind the last answer."""
    answered = [number for number, one in enumerate(given) if one.role == "assistant"]
    return list(given[answered[-1] + 1 :] if answered else given)
