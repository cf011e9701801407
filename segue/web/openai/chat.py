"""`/v1/chat/completions`: a client says everything that was said, and the agent answers what is new of it."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from segue.web.openai.answers import COMPLETION, RESPONSE, Standing, completion_of, trouble_with
from segue.web.openai.door import Visit, told
from segue.web.openai.placing import CONVERSATION, Wish, behind_answers, checked_name
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
from segue.web.openai.shapes import ChatRequest
from segue.web.openai.streaming import Stream, chat_events, tell
from segue.web.openai.wording import Given, given_message

PATH = "/v1/chat/completions"
NAMES = ("x-segue-conversation", "x-session-id")


async def create(visit: Visit) -> Response:
    """Answer the last message of a chat."""
    asked = await visit.body(ChatRequest)
    asked.check()
    wish = await _wish(visit, asked)
    ready = await placed(visit, wish)
    with ExitStack() as stack:
        onlooker = stack.enter_context(visit.premises.onlookers.watching(ready.call.lane))
        entry = await spoken(visit, wish, ready)
        if asked.stream:
            standing = await standing_of(visit, entry.message_id)
            with_usage = bool(asked.stream_options and asked.stream_options.include_usage)
            telling = tell(visit, standing, onlooker)
            events = chat_events(standing, telling, with_usage=with_usage)
            return Stream(events, stack.pop_all(), partial(arrived, visit, standing))
        standing = await answered(visit, entry, onlooker)
        return await handed(visit, standing, _told(standing))


async def retrieve(visit: Visit) -> Response:
    """An answer that was given, also if whoever asked had left before."""
    name = visit.path("completion_id").removeprefix(COMPLETION)
    return _told(await standing_of(visit, RESPONSE + name))


def _told(standing: Standing) -> Response:
    trouble = trouble_with(standing)
    return trouble.answer if trouble else told(completion_of(standing))


async def _wish(visit: Visit, asked: ChatRequest) -> Wish:
    given = [
        given_message(one.model_dump(), f"messages[{number}].content") for number, one in enumerate(asked.messages)
    ]
    check_said(given, "messages")
    agent, name = agent_named(visit.premises, asked.model), _conversation(visit.request)
    body = asked.model_dump(exclude_unset=True)
    message_id, digest = await named(visit, PATH, body, name or "")
    wish = Wish(visit.credential, message_id, digest, given, asked.model, agent)
    if name is None:
        return wish
    instructions = "\n\n".join(one.text for one in given if one.role == "system")
    wish = wish._replace(given=_new(given), instructions=instructions)
    return wish._replace(conversation=name) if name.startswith(CONVERSATION) else wish._replace(name=name)


def _conversation(request: Request) -> str | None:
    """The conversation that a client names."""
    found = next((request.headers[name] for name in NAMES if request.headers.get(name)), None)
    return None if found is None else checked_name(found)


def _new(given: Sequence[Given]) -> list[Given]:
    """What a client says that names its conversation: nothing of what was answered, and instructions are told apart."""
    return [one for one in behind_answers(given) if one.role != "system"]
