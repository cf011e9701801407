"""A program says something over /v1, and its call waits for the answer, follows it, or leaves it for later."""

import hashlib
import os
from datetime import UTC, datetime
from typing import Any

from starlette.background import BackgroundTask
from starlette.responses import Response

from segue import app
from segue.core.credentials import Credential
from segue.core.inbox import Entry
from segue.core.keys import DEFAULT_AGENT
from segue.core.scope import OWNER_AT_CONSOLE, Principal
from segue.gateway.onlookers import Onlooker
from segue.hookspecs import SessionStarted
from segue.platforms.api_server.inbound import inbound_of
from segue.sessions.calling import digest_of, has_arrived, retried
from segue.sessions.conversing import hand_over, is_anothers
from segue.web.openai.answers import RESPONSE, Standing, look_at
from segue.web.openai.door import Visit
from segue.web.openai.errors import Wrong
from segue.web.openai.placing import Placed, Wish, place, room_named
from segue.web.openai.wording import Given
from segue.web.premises import Premises
from segue.web.speaking import say, wait_for

ALIAS = "segue"
"""Another name of the main agent."""
RETRY = "x-stainless-retry-count"
_PASSING = frozenset({"stream", "stream_options", "background"})
"""What only says how the answer is to be told."""


def agents_of(premises: Premises) -> list[str]:
    """Everybody who can be asked, as models are named."""
    return list(dict.fromkeys([DEFAULT_AGENT, *premises.settings.agents]))


def agent_named(premises: Premises, model: str | None) -> str | None:
    if model is None:
        return None
    known = agents_of(premises)
    if model == ALIAS and ALIAS not in known:
        return DEFAULT_AGENT
    if model not in known:
        raise Wrong(
            f"The model '{model}' does not exist; there are {', '.join(known)}.", "model", "model_not_found", 404
        )
    return model


def check_said(given: list[Given], param: str) -> None:
    """The last thing is for the agent to answer."""
    if not given or given[-1].role != "user":
        raise Wrong("The last thing that is said must be a message of the user.", param, "invalid_value")
    if not given[-1].text:
        raise Wrong("The last message is empty.", param, "invalid_value")


async def named(visit: Visit, path: str, body: dict[str, Any], where: str) -> tuple[str, str]:
    """The name of what is said, and the digest of all that was asked: the same when the same is tried again."""
    credential, request = visit.credential, visit.request
    asked = {name: value for name, value in body.items() if name not in _PASSING}
    digest = digest_of(credential.principal, credential.client, path, where, asked)
    if key := visit.key:
        return _name(credential, key), digest
    if request.headers.get(RETRY, "0") not in ("", "0"):
        now = datetime.now(UTC).timestamp()
        if found := await visit.premises.read(visit.scope, retried, digest, now):
            return found, digest
    return RESPONSE + os.urandom(16).hex(), digest


async def spoken(visit: Visit, wish: Wish, placed: Placed) -> Entry:
    """Put down what a program says, where it belongs."""
    credential, said, call = visit.credential, wish.given[-1], placed.call
    inbound = inbound_of(
        credential.client,
        Principal(credential.principal),
        call.chat,
        wish.message_id,
        said.text,
        parts=said.content if isinstance(said.content, list) else None,
        lane=call.lane,
        is_verbatim=True,
    )
    return await say(visit.premises, inbound)


async def placed(visit: Visit, wish: Wish) -> Placed:
    """Make ready where it is said."""
    now, room = datetime.now(UTC), room_named(wish)
    if room is not None and await visit.premises.glance(is_anothers, room):
        await visit.premises.write(OWNER_AT_CONSOLE, hand_over, room, now)
    done = await visit.premises.write(visit.scope, place, wish, app.new_session_id(), now)
    if (footing := done.started) is not None:
        lane = footing.lane
        visit.premises.gateway.told(SessionStarted(lane.key, footing.session_id, lane.principal))
    return done


async def standing_of(visit: Visit, message_id: str) -> Standing:
    return await visit.premises.read(visit.scope, look_at, message_id)


async def answered(visit: Visit, entry: Entry, onlooker: Onlooker) -> Standing:
    """How a message stands in the end, for whoever may still be told."""
    await wait_for(visit.premises, entry, onlooker)
    await visit.check()
    return await standing_of(visit, entry.message_id)


async def arrived(visit: Visit, standing: Standing) -> None:
    """Note that the whole answer was given to whoever asked."""
    await visit.premises.write(visit.scope, has_arrived, standing.entry.message_id, standing.call.mark)


async def handed(visit: Visit, standing: Standing, answer: Response) -> Response:
    """Give an answer to whoever asked; those who have left may try again."""
    if not await visit.request.is_disconnected():
        answer.background = BackgroundTask(arrived, visit, standing)
    return answer


def _name(credential: Credential, key: str) -> str:
    said = "\0".join((credential.principal, credential.client, key))
    return RESPONSE + hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:32]
