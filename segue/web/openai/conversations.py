"""`/v1/conversations`: begun, described, and moved into the trash."""

import json
from datetime import UTC, datetime
from typing import NamedTuple

from starlette.responses import Response

from segue import app
from segue.core.credentials import Credential
from segue.core.keys import DEFAULT_AGENT
from segue.core.scope import Principal
from segue.hookspecs import SessionStarted
from segue.platforms.api_server.inbound import source_of
from segue.ports.store import Transaction
from segue.sessions.calling import METADATA, digest_of, find_done, keep_done
from segue.sessions.conversing import Footing, Room, put_down, remove, stand_in
from segue.sessions.finding import get_session
from segue.web.openai.door import Visit, told
from segue.web.openai.placing import CONVERSATION, session_named
from segue.web.openai.shapes import Closed, Conversation, ConversationChange, DeletedConversation, NewConversation
from segue.web.openai.wording import Given, draft_of, given_item

PATH = "/v1/conversations"
ONE = PATH + "/{conversation_id}"


class Once(NamedTuple):
    """What is done once, however often it is asked for: a key, and what was asked."""

    key: str
    digest: str


class _Wish(NamedTuple):
    credential: Credential
    given: list[Given]
    metadata: dict[str, str]
    once: Once | None


class _Begun(NamedTuple):
    conversation: Conversation
    footing: Footing | None = None


def once_of(visit: Visit, path: str, asked: Closed) -> Once | None:
    """That a call is made once, if it has a key."""
    if visit.key is None:
        return None
    return Once(digest_of(visit.credential.client, visit.key), digest_of(path, asked.model_dump(mode="json")))


async def create(visit: Visit) -> Response:
    """Begin a conversation, with what was said in it before."""
    asked = await visit.body(NewConversation)
    given = [given_item(one, f"items[{number}]") for number, one in enumerate(asked.items or [])]
    wish = _Wish(visit.credential, given, asked.metadata or {}, once_of(visit, PATH, asked))
    begun = await visit.premises.write(visit.scope, _begin, wish, app.new_session_id(), datetime.now(UTC))
    if footing := begun.footing:
        lane = footing.lane
        visit.premises.gateway.told(SessionStarted(lane.key, footing.session_id, lane.principal))
    return told(begun.conversation)


async def retrieve(visit: Visit) -> Response:
    """A conversation, without what was said in it."""
    return told(await visit.premises.read(visit.scope, _shown, visit.path("conversation_id")))


async def update(visit: Visit) -> Response:
    """Describe a conversation otherwise."""
    asked = await visit.body(ConversationChange)

    def work(tx: Transaction) -> Conversation:
        session_id = get_session(tx, session_named(visit.path("conversation_id"))).id
        tx.meta.set(METADATA + session_id, json.dumps(asked.metadata or {}))
        return _shown(tx, visit.path("conversation_id"))

    return told(await visit.premises.write(visit.scope, work))


async def delete(visit: Visit) -> Response:
    """Move a conversation into the trash, from where the owner can bring it back."""
    name = visit.path("conversation_id")
    now = datetime.now(UTC).timestamp()
    await visit.premises.write(visit.scope, remove, session_named(name), now)
    return told(DeletedConversation(id=name))


def _begin(tx: Transaction, wish: _Wish, fresh_id: str, now: datetime) -> _Begun:
    if wish.once and (kept := find_done(tx, *wish.once)):
        return _Begun(_shown(tx, kept[0]))
    name, credential = CONVERSATION + fresh_id, wish.credential
    room = Room(DEFAULT_AGENT, source_of(credential.client, name), Principal(credential.principal))
    footing = stand_in(tx, room, fresh_id, now)
    put_down(tx, footing, [draft_of(one, now.timestamp()) for one in wish.given])
    if wish.metadata:
        tx.meta.set(METADATA + fresh_id, json.dumps(wish.metadata))
    if wish.once:
        keep_done(tx, fresh_id, *wish.once, [name])
    return _Begun(_shown(tx, name), footing)


def _shown(tx: Transaction, name: str) -> Conversation:
    session = get_session(tx, session_named(name))
    metadata = json.loads(tx.meta.get(METADATA + session.id) or "{}")
    return Conversation(id=name, created_at=int(session.started_at), metadata=metadata)
