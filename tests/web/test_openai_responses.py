"""Responses, as the official client asks for them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.responses import Response
from waiting import until
from wordy_door import WordyDoor, entries, transcripts, wordy_door
from wordy_model import Wordy

from segue.core.credentials import Level

AGENTS = {"helper": {"prompt": "You help."}}
ORDER = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WordyDoor]:
    with wordy_door(tmp_path, monkeypatch, agents=AGENTS) as opened:
        yield opened


def told() -> list[tuple[str, Any]]:
    """What the model was told last."""
    return [(one["role"], one["content"]) for one in Wordy.asked[-1].conversation]


async def over(client: openai.AsyncOpenAI, response_id: str) -> Response:
    async def is_over() -> bool:
        return (await client.responses.retrieve(response_id)).status not in ("queued", "in_progress")

    await until(is_over)
    return await client.responses.retrieve(response_id)


def test_a_response_follows_another(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        first = await client.responses.create(model="main", input="one", instructions="Be brief.")
        assert (first.status, first.output_text, first.conversation) == ("completed", "You said: one", None)
        assert first.usage is not None
        assert first.usage.total_tokens == 10
        second = await client.responses.create(
            input="two", previous_response_id=first.id, instructions="Be brief.", store=False
        )
        assert (second.model, second.output_text, second.previous_response_id) == ("main", "You said: two", first.id)
        assert told() == [
            ("system", "Be brief."),
            ("user", "one"),
            ("assistant", "You said: one"),
            ("user", "two"),
        ]
        assert await client.responses.retrieve(second.id) == second
        shown = [one async for one in client.responses.input_items.list(second.id)]
        assert [one.content[0].text for one in shown] == ["two"]  # type: ignore[union-attr, index]

    door.serve(work)
    assert len(transcripts(door.store)) == 1


def test_an_earlier_response_is_where_a_branch_begins(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        first = await client.responses.create(model="main", input="one")
        second = await client.responses.create(input="two", previous_response_id=first.id)
        other = await client.responses.create(input="other", previous_response_id=first.id)
        assert told() == [("user", "one"), ("assistant", "You said: one"), ("user", "other")]
        await client.responses.create(input="three", previous_response_id=second.id)
        assert [content for _, content in told()][::2] == ["one", "two", "three"]
        await client.responses.create(input="more", previous_response_id=other.id)
        assert [content for _, content in told()][::2] == ["one", "other", "more"]
        helped = await client.responses.create(model="helper", input="help", previous_response_id=first.id)
        assert helped.model == "helper"
        assert "You help." in Wordy.asked[-1].system
        assert told() == [("user", "one"), ("assistant", "You said: one"), ("user", "help")]

    door.serve(work)
    assert sorted(len(talk) for talk in transcripts(door.store)) == [4, 6, 6]


def test_a_response_is_told_event_by_event(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        events = [one async for one in await client.responses.create(model="main", input="look", stream=True)]
        kinds = [one.type for one in events]
        assert list(dict.fromkeys(kinds)) == ORDER
        assert [one.sequence_number for one in events] == list(range(len(events)))
        deltas = "".join(one.delta for one in events if one.type == "response.output_text.delta")
        last = events[-1]
        assert last.type == "response.completed"
        assert deltas == last.response.output_text == "Let me look.\n\nThere it is."
        assert await client.responses.retrieve(last.response.id) == last.response
        with pytest.raises(openai.BadRequestError, match="beginning"):
            await client.responses.retrieve(last.response.id, stream=True, starting_after=3)
        again = [one async for one in await client.responses.retrieve(last.response.id, stream=True)]
        assert [one.type for one in again] == ORDER
        assert again[-1] == last.model_copy(update={"sequence_number": len(ORDER) - 1})

    door.serve(work)
    assert entries(door.store) == [("look", "done")]


def test_a_stream_ends_with_what_is_fetched_later_whoever_asks(door: WordyDoor) -> None:
    token = door.token("alice", principal="telegram:1")

    async def work() -> None:
        client = door.client(token)
        talk = await client.conversations.create()
        first = await client.responses.create(model="segue", input="one", conversation=talk.id, stream=True)
        *_, last = [one async for one in first]
        assert last.type == "response.completed"
        assert last.response == await client.responses.retrieve(last.response.id)
        assert (last.response.model, last.response.conversation and last.response.conversation.id) == ("segue", talk.id)
        second = await client.responses.create(input="two", previous_response_id=last.response.id, stream=True)
        *_, end = [one async for one in second]
        assert end.type == "response.completed"
        assert end.response.previous_response_id == last.response.id

    door.serve(work)


def test_a_stream_of_the_client_gathers_the_same(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        async with door.client(token).responses.stream(model="main", input="hi") as stream:
            async for _ in stream:
                pass
            final = await stream.get_final_response()
        assert final.output_text == "You said: hi"

    door.serve(work)


def test_a_client_that_leaves_finds_its_response_later(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        stream = await client.responses.create(model="main", input="held please", stream=True)
        created = await anext(aiter(stream))
        assert created.type == "response.created"
        await stream.close()
        Wordy.go_on.set()
        found = await over(client, created.response.id)
        assert (found.status, found.output_text) == ("completed", "You said: held please")

    door.serve(work)
    assert entries(door.store) == [("held please", "done")]


def test_a_response_in_the_background_is_fetched_or_cancelled(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        first = await client.responses.create(model="main", input="held one", background=True)
        assert first.status in ("queued", "in_progress")
        assert first.background
        waiting = await client.responses.create(input="two", previous_response_id=first.id, background=True)
        gone = await client.responses.cancel(waiting.id)
        assert gone.status == "cancelled"
        Wordy.go_on.set()
        done = await over(client, first.id)
        assert (done.status, done.output_text) == ("completed", "You said: held one")
        assert (await client.responses.cancel(first.id)).status == "completed"
        Wordy.go_on.clear()
        long = await client.responses.create(model="main", input="held for long", background=True)

        async def is_begun() -> bool:
            return (await client.responses.retrieve(long.id)).status == "in_progress"

        await until(is_begun)
        stopped = await client.responses.cancel(long.id)
        assert stopped.status == "cancelled"

    door.serve(work)
    assert [state for _, state in entries(door.store)] == ["done", "cancelled", "cancelled"]


def test_a_retry_with_the_same_key_is_the_same_response(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        key = {"Idempotency-Key": "k1"}
        both = await asyncio.gather(
            *(client.responses.create(model="main", input="slowly hi", extra_headers=key) for _ in range(2))
        )
        assert both[0] == both[1]
        events = [
            one
            async for one in await client.responses.create(
                model="main", input="slowly hi", extra_headers=key, stream=True
            )
        ]
        assert events[-1].type == "response.completed"
        assert events[-1].response == both[0]
        with pytest.raises(openai.UnprocessableEntityError):
            await client.responses.create(model="main", input="something else", extra_headers=key)

    door.serve(work)
    assert entries(door.store) == [("slowly hi", "done")]


def test_a_list_of_items_is_a_history(door: WordyDoor) -> None:
    token = door.token()
    items: list[Any] = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "input_text", "text": "What is up?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "All is well."},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Nothing.", "annotations": []}]},
        {"role": "user", "content": "good"},
    ]

    async def work() -> None:
        client = door.client(token)
        first = await client.responses.create(model="main", input=items)
        assert [role for role, _ in told()] == ["system", "user", "assistant", "tool", "assistant", "user"]
        further = [*items, *(one.model_dump() for one in first.output), {"role": "user", "content": "more"}]
        await client.responses.create(model="main", input=further)
        assert [content for _, content in told()][-3:] == ["good", "You said: good", "more"]

    door.serve(work)
    assert len(transcripts(door.store)) == 1


def test_a_response_that_fails_says_why(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        found = await client.responses.create(model="main", input="fail")
        assert found.status == "failed"
        assert found.error is not None
        assert "accept" in found.error.message
        events = [one async for one in await client.responses.create(model="main", input="fail", stream=True)]
        assert events[-1].type == "response.failed"

    door.serve(work)


WRONG: list[tuple[dict[str, Any], type[openai.APIStatusError], str | None]] = [
    ({"model": "gpt-4"}, openai.NotFoundError, "model"),
    ({"previous_response_id": "resp_none"}, openai.NotFoundError, "previous_response_id"),
    ({"conversation": "conv_none"}, openai.NotFoundError, None),
    ({"conversation": "none"}, openai.NotFoundError, None),
    ({"conversation": "conv_a", "previous_response_id": "resp_b"}, openai.BadRequestError, "previous_response_id"),
    ({"extra_body": {"colour": 1}}, openai.BadRequestError, "colour"),
    ({"tools": [{"type": "web_search"}]}, openai.BadRequestError, "tools"),
    ({"text": {"format": {"type": "json_object"}}}, openai.BadRequestError, "text.format"),
    ({"input": []}, openai.BadRequestError, "input"),
    ({"input": [{"type": "function_call_output", "call_id": "x", "output": "y"}]}, openai.BadRequestError, "input"),
    ({"input": [{"role": "king", "content": "y"}]}, openai.BadRequestError, "input[0].role"),
    ({"input": [{"content": "y"}]}, openai.BadRequestError, "input[0].type"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, openai.BadRequestError, "input[0]"),
]


def test_what_is_wrong_with_a_call_is_said(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        for body, error, param in WRONG:
            with pytest.raises(error) as raised:
                await door.client(token).responses.create(**({"model": "main", "input": "hi"} | body))
            assert raised.value.param == param, body

    door.serve(work)
    assert entries(door.store) == []


def test_nobody_else_finds_anything(door: WordyDoor) -> None:
    alice = door.token("alice", principal="telegram:1")
    bob = door.token("bob", principal="telegram:2")
    reader = door.token("reader", Level.READ, principal="telegram:1")

    async def work() -> None:
        hers, his = door.client(alice), door.client(bob)
        talk = await hers.conversations.create(items=[{"type": "message", "role": "user", "content": "secret"}])
        item = (await hers.conversations.items.list(talk.id)).data[0].id
        assert item is not None
        found = await hers.responses.create(model="main", input="hi", conversation=talk.id)
        chat = found.id.replace("resp_", "chatcmpl-")
        calls: list[Any] = [
            his.responses.retrieve(found.id),
            his.responses.cancel(found.id),
            his.responses.input_items.list(found.id),
            his.responses.create(model="main", input="hi", previous_response_id=found.id),
            his.responses.create(model="main", input="hi", conversation=talk.id),
            his.chat.completions.retrieve(chat),
            his.conversations.retrieve(talk.id),
            his.conversations.update(talk.id, metadata={}),
            his.conversations.delete(talk.id),
            his.conversations.items.list(talk.id),
            his.conversations.items.create(talk.id, items=[{"type": "message", "role": "user", "content": "x"}]),
            his.conversations.items.retrieve(item, conversation_id=talk.id),
            his.conversations.items.delete(item, conversation_id=talk.id),
        ]
        for call in calls:
            with pytest.raises(openai.NotFoundError):
                await call
        own = await his.conversations.create()
        with pytest.raises(openai.NotFoundError):  # nor by way of something of his own
            await his.conversations.items.retrieve(item, conversation_id=own.id)
        same_key = {"Idempotency-Key": "k"}
        answers = [await one.responses.create(model="main", input="hi", extra_headers=same_key) for one in (hers, his)]
        assert answers[0].id != answers[1].id
        assert (await door.client(reader).responses.retrieve(found.id)).output_text == "You said: hi"
        with pytest.raises(openai.PermissionDeniedError):
            await door.client(reader).responses.cancel(found.id)

    door.serve(work)
