"""`/v1/responses`: the agent answers, in a conversation, behind an earlier answer, or in a new one."""

import time
from contextlib import ExitStack
from functools import partial

from starlette.responses import Response

from segue.core.inbox import Entry, InboxState
from segue.gateway.onlookers import Onlooker
from segue.ports.store import Transaction
from segue.sessions.accepting import cancel as cancel_entries
from segue.web.openai.answers import RESPONSE, Standing, response_of
from segue.web.openai.door import Visit, told
from segue.web.openai.errors import Wrong
from segue.web.openai.placing import Wish
from segue.web.openai.saying import (
    agent_named,
    answered,
    arrived,
    check_said,
    handed,
    named,
    placed,
    spoken,
    standing_of,
)
from segue.web.openai.shapes import ItemList, ResponseRequest
from segue.web.openai.streaming import Stream, response_events, tell
from segue.web.openai.wording import Given, given_item
from segue.web.rpc.commands import carried_out
from segue.web.rpc.method import Caller

PATH = "/v1/responses"
CANCELLED = "It was cancelled by the program that had asked."


async def create(visit: Visit) -> Response:
    """Answer what is said."""
    asked = await visit.body(ResponseRequest)
    asked.check()
    wish = await _wish(visit, asked)
    ready = await placed(visit, wish)
    with ExitStack() as stack:
        onlooker = stack.enter_context(visit.premises.onlookers.watching(ready.call.lane))
        entry = await spoken(visit, wish, ready)
        if asked.stream:
            standing = await standing_of(visit, entry.message_id)
            return _streamed(visit, standing, onlooker, stack.pop_all())
        standing = (
            await standing_of(visit, entry.message_id) if asked.background else await answered(visit, entry, onlooker)
        )
        return await handed(visit, standing, told(response_of(standing)))


async def retrieve(visit: Visit) -> Response:
    """A response as it stands; as a stream from its beginning."""
    is_streamed = _is_streamed(visit)
    standing = await standing_of(visit, _name(visit))
    if not is_streamed:
        return told(response_of(standing))
    with ExitStack() as stack:
        onlooker = stack.enter_context(visit.premises.onlookers.watching(standing.entry.lane_key))
        standing = await standing_of(visit, _name(visit))
        return _streamed(visit, standing, onlooker, stack.pop_all())


def _streamed(visit: Visit, standing: Standing, onlooker: Onlooker, stack: ExitStack) -> Stream:
    events = response_events(standing, tell(visit, standing, onlooker))
    return Stream(events, stack, partial(arrived, visit, standing))


async def cancel(visit: Visit) -> Response:
    """Stop an answer; what was written of it is kept. One that is there stays."""
    entry = (await standing_of(visit, _name(visit))).entry
    with visit.premises.onlookers.watching(entry.lane_key) as onlooker:
        if entry.is_open and not await visit.premises.write(visit.scope, _cancel, entry, time.time()):
            await _stop(visit, entry)
        return told(response_of(await answered(visit, entry, onlooker)))


async def input_items(visit: Visit) -> Response:
    """What was said."""
    entry = (await standing_of(visit, _name(visit))).entry
    name = f"msg_{entry.message_id.removeprefix(RESPONSE)}_in"
    parts = [{"type": "text", "text": entry.text}] if entry.parts is None else entry.content
    shown = given_item({"role": "user", "content": parts}, "input").item or {}
    words = [{**one, "type": "input_text"} if one.get("type") == "text" else one for one in shown["content"]]
    item = {**shown, "content": words, "id": name}
    return told(ItemList(data=[item], first_id=name, last_id=name, has_more=False))


async def _wish(visit: Visit, asked: ResponseRequest) -> Wish:
    given = _given(asked.input)
    check_said(given, "input")
    agent = agent_named(visit.premises, asked.model)
    message_id, digest = await named(visit, PATH, asked.model_dump(exclude_unset=True), "")
    return Wish(
        visit.credential,
        message_id,
        digest,
        given,
        asked.model,
        agent,
        instructions=asked.instructions or "",
        conversation=asked.conversation_id,
        previous=asked.previous_response_id,
        is_background=bool(asked.background),
    )


def _given(said: str | list[dict[str, object]]) -> list[Given]:
    if isinstance(said, str):
        return [Given("user", said)]
    return [given_item(one, f"input[{number}]") for number, one in enumerate(said)]


def _name(visit: Visit) -> str:
    name = visit.path("response_id")
    if not name.startswith(RESPONSE):
        raise Wrong(f"Response with id '{name}' not found.", code="not_found", status=404)
    return name


def _is_streamed(visit: Visit) -> bool:
    asked = visit.request.query_params
    if asked.get("starting_after"):
        raise Wrong("A stream is told from its beginning: leave this out.", "starting_after", "unsupported_parameter")
    if (said := asked.get("stream", "false")) not in ("true", "false"):
        raise Wrong("'stream' must be true or false.", "stream", "invalid_value")
    return said == "true"


def _cancel(tx: Transaction, entry: Entry, now: float) -> bool:
    """Cross off what still waits; whether it did."""
    found = tx.inbox.find(entry.id)
    if found is None or found.state != InboxState.WAITING:
        return False
    return bool(cancel_entries(tx, [found], CANCELLED, now))


async def _stop(visit: Visit, entry: Entry) -> None:
    """End the turn that answers a message, wherever it runs, and no other."""
    office = visit.premises.gateway.office
    now = (await standing_of(visit, entry.message_id)).entry
    running = office.running_in(entry.lane_key)
    if running is not None and running.turn_id == now.turn_id:
        office.stop(entry.lane_key, CANCELLED)
    elif now.state == InboxState.RUNNING:
        await carried_out(Caller(visit.credential, visit.premises), entry.lane_key, "/stop")
