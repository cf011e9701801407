"""Conversations and their items, as the official client and its agents have them."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import openai
import pytest
from agents import Agent, OpenAIConversationsSession, OpenAIResponsesModel, RunConfig, Runner
from wordy_door import WordyDoor, entries, transcripts, wordy_door
from wordy_model import Wordy

from segue.core.credentials import Level
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.scope import Principal, Scope
from segue.sessions.discarding import purge_conversation
from segue.web.openai import items

AGENTS = {"helper": {"prompt": "You help."}}
ITEMS: list[dict[str, Any]] = [
    {
        "type": "message",
        "role": "user",
        "status": "completed",
        "content": [
            {"type": "input_text", "text": "What is this?"},
            {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "low", "file_id": None},
        ],
    },
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "x"},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": 1}', "status": "completed"},
    {"type": "function_call_output", "call_id": "c1", "output": "A cat.", "status": "completed"},
    {
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "A cat.", "annotations": []}],
    },
]


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WordyDoor]:
    with wordy_door(tmp_path, monkeypatch, agents=AGENTS) as opened:
        yield opened


def message(words: str, role: str = "user") -> Any:
    return {"type": "message", "role": role, "content": words}


async def words(client: openai.AsyncOpenAI, conversation: str, **more: Any) -> list[str]:
    found = client.conversations.items.list(conversation, **({"order": "asc"} | more))
    return [one.content[0].text async for one in found]  # type: ignore[union-attr, index]


def test_a_conversation_is_begun_described_and_removed(door: WordyDoor) -> None:
    token, writer = door.token(), door.token("writer", Level.WRITE)

    async def work() -> None:
        client = door.client(token)
        begun = await client.conversations.create(metadata={"topic": "cats"}, items=[message("hi")])
        assert begun.id.startswith("conv_")
        assert await client.conversations.retrieve(begun.id) == begun
        changed = await client.conversations.update(begun.id, metadata={"topic": "dogs"})
        assert changed.metadata == {"topic": "dogs"}
        with pytest.raises(openai.PermissionDeniedError):
            await door.client(writer).conversations.delete(begun.id)
        assert (await client.conversations.delete(begun.id)).deleted
        for call in (client.conversations.retrieve(begun.id), client.conversations.items.list(begun.id)):
            with pytest.raises(openai.NotFoundError):
                await call
        with pytest.raises(openai.NotFoundError):
            await client.responses.create(model="main", input="hi", conversation=begun.id)
        trash = await door.ask(token, "sessions.list", every=True)
        assert trash["sessions"] == []

    door.serve(work)


def test_what_is_given_comes_back_equal(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        begun = await client.conversations.create()
        created = await client.conversations.items.create(begun.id, items=ITEMS)  # type: ignore[arg-type]
        listed = [one async for one in client.conversations.items.list(begun.id, order="asc")]
        for found in (created.data, listed):
            assert [one.model_dump(exclude={"id"}, exclude_unset=True) for one in found] == ITEMS
        assert [one.id for one in listed] == [one.id for one in created.data]
        one = await client.conversations.items.retrieve(listed[2].id or "", conversation_id=begun.id)
        assert one == listed[2]
        await client.responses.create(model="main", input="nice", conversation=begun.id)
        told = Wordy.asked[-1].conversation
        assert [entry["role"] for entry in told] == ["user", "assistant", "tool", "assistant", "user"]
        assert told[0]["content"][1]["image_url"] == {"url": "https://example.org/a.png", "detail": "low"}
        assert set(told[0]) == {"role", "content"}  # no provider is shown what only we keep

    door.serve(work)


@pytest.mark.parametrize(("at_once", "longest"), [(100, 100_000), (2, 100_000), (2, 500)])
def test_items_are_told_page_by_page_in_both_directions(
    door: WordyDoor, monkeypatch: pytest.MonkeyPatch, at_once: int, longest: int
) -> None:
    token = door.token()
    monkeypatch.setattr(items, "_AT_ONCE", at_once)
    monkeypatch.setattr(items, "LONGEST_PAGE", longest)

    async def work() -> None:
        client = door.client(token)
        begun = await client.conversations.create(items=[message(str(number)) for number in range(20)])
        await client.conversations.items.create(begun.id, items=[message(str(number)) for number in range(20, 25)])
        rising = [str(number) for number in range(25)]
        assert await words(client, begun.id) == rising
        assert await words(client, begun.id, limit=7) == rising
        assert await words(client, begun.id, limit=7, order="desc") == rising[::-1]
        page = await client.conversations.items.list(begun.id, limit=2)
        assert [one.content[0].text for one in page.data] == ["24", "23"]  # type: ignore[union-attr, index]
        assert (page.has_more, page.last_id) == (True, page.data[-1].id)
        whole = await client.conversations.items.list(begun.id, limit=25, order="asc")
        assert (len(whole.data), whole.has_more) == ((25, False) if longest > 500 else (len(whole.data), True))

    door.serve(work)


NO_PAGES: list[tuple[dict[str, Any], str]] = [
    ({"limit": 0}, "limit"),
    ({"limit": 101}, "limit"),
    ({"order": "sideways"}, "order"),
    ({"after": "x"}, "after"),
    ({"after": "msg_x_1"}, "after"),
]


def test_a_page_that_cannot_be_is_refused(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        begun = await client.conversations.create()
        for query, param in NO_PAGES:
            with pytest.raises(openai.BadRequestError) as raised:
                await client.conversations.items.list(begun.id, extra_query=query)
            assert raised.value.param == param, query
        with pytest.raises(openai.BadRequestError):
            await client.conversations.items.create(begun.id, items=[message("x")] * 21)

    door.serve(work)


def test_responses_are_written_into_a_conversation(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        begun = await client.conversations.create(items=[message("I am Ada."), message("Hello.", "assistant")])
        first = await client.responses.create(model="helper", input="one", conversation=begun.id)
        assert first.conversation is not None
        assert first.conversation.id == begun.id
        assert "You help." in Wordy.asked[-1].system
        await client.responses.create(input="two", conversation={"id": begun.id})
        expected = ["I am Ada.", "Hello.", "one", "You said: one", "two", "You said: two"]
        assert await words(client, begun.id) == expected
        assert [one["content"] for one in Wordy.asked[-1].conversation] == expected[:-1]
        with pytest.raises(openai.BadRequestError, match="helper"):
            await client.responses.create(model="main", input="three", conversation=begun.id)
        named = {"X-Segue-Conversation": begun.id}
        answer = await client.chat.completions.create(
            model="helper", messages=[{"role": "user", "content": "three"}], extra_headers=named
        )
        assert answer.choices[0].message.content == "You said: three"
        assert (await words(client, begun.id))[-2:] == ["three", "You said: three"]

    door.serve(work)
    assert len(transcripts(door.store)) == 1


def test_what_the_agent_does_with_its_own_tools_is_not_for_the_client_to_answer(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        begun = await client.conversations.create()
        found = await client.responses.create(model="main", input="look", conversation=begun.id)
        assert [one.type for one in found.output] == ["message"]
        assert await words(client, begun.id) == ["look", "Let me look.", "There it is."]

    door.serve(work)


def test_nothing_is_put_between_a_question_and_its_answer(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        begun = await client.conversations.create(items=[message("first")])
        first = (await client.conversations.items.list(begun.id)).data[0].id or ""
        await client.responses.create(model="main", input="held please", conversation=begun.id, background=True)
        with pytest.raises(openai.ConflictError) as raised:
            await client.conversations.items.create(begun.id, items=[message("x")])
        assert raised.value.code == "conversation_locked"
        for call in (
            client.conversations.items.delete(first, conversation_id=begun.id),
            client.conversations.delete(begun.id),
        ):
            with pytest.raises(openai.ConflictError):
                await call
        Wordy.go_on.set()
        await door.quiet()
        await client.conversations.items.create(begun.id, items=[message("x")])
        assert await words(client, begun.id) == ["first", "held please", "You said: held please", "x"]

    door.serve(work)


def test_what_was_put_down_behind_an_answer_is_no_part_of_it(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        begun = await client.conversations.create()
        found = await client.responses.create(model="main", input="hi", conversation=begun.id)
        await client.conversations.items.create(begun.id, items=[message("Not mine.", "assistant")])
        assert (await client.responses.retrieve(found.id)).output_text == "You said: hi"
        await client.responses.create(input="elsewhere", previous_response_id=found.id)
        told = [one["content"] for one in Wordy.asked[-1].conversation]
        assert told == ["hi", "You said: hi", "elsewhere"]

    door.serve(work)


def test_an_item_that_is_deleted_is_told_no_more(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        begun = await client.conversations.create(items=[message("a"), message("b"), message("c")])
        items = (await client.conversations.items.list(begun.id, order="asc")).data
        left = await client.conversations.items.delete(items[1].id or "", conversation_id=begun.id)
        assert left.id == begun.id
        assert await words(client, begun.id) == ["a", "c"]
        for call in (
            client.conversations.items.retrieve(items[1].id or "", conversation_id=begun.id),
            client.conversations.items.delete(items[1].id or "", conversation_id=begun.id),
        ):
            with pytest.raises(openai.NotFoundError):
                await call
        await client.responses.create(model="main", input="d", conversation=begun.id)
        assert [one["content"] for one in Wordy.asked[-1].conversation] == ["a", "c", "d"]

    door.serve(work)


def test_what_is_put_down_with_a_key_is_put_down_once(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        key, other, longest = ({"Idempotency-Key": one} for one in ("k1", "k2", "x" * 255))
        begun = [await client.conversations.create(items=[message("a")], extra_headers=key) for _ in range(2)]
        assert begun[0] == begun[1]
        talk = begun[0].id
        put = [await client.conversations.items.create(talk, items=[message("b")], extra_headers=other) for _ in "ab"]
        assert put[0].data == put[1].data
        assert await words(client, talk) == ["a", "b"]
        with pytest.raises(openai.UnprocessableEntityError):
            await client.conversations.items.create(talk, items=[message("c")], extra_headers=other)
        for body in ({"items": [message("b")]}, {"items": [message("a")], "metadata": {"a": "b"}}, {}):
            with pytest.raises(openai.UnprocessableEntityError):
                await client.conversations.create(**body, extra_headers=key)
        at_once = {"Idempotency-Key": "k3"}
        both = await asyncio.gather(*(client.conversations.create(extra_headers=at_once) for _ in range(4)))
        assert len({one.id for one in both}) == 1
        with pytest.raises(openai.BadRequestError, match="255"):
            await client.conversations.create(extra_headers={"Idempotency-Key": "x" * 256})
        with pytest.raises(openai.BadRequestError, match="255"):
            await client.conversations.items.create(
                talk, items=[message("d")], extra_headers={"Idempotency-Key": "x" * 256}
            )
        await client.conversations.items.create(talk, items=[message("e")], extra_headers=longest)
        await client.conversations.items.create(talk, items=[message("e")], extra_headers=longest)

    door.serve(work)
    assert [len(talk) for talk in transcripts(door.store)] == [3, 0]


def test_what_was_purged_is_not_said_again(door: WordyDoor) -> None:
    token = door.token("bot", Level.WRITE, "telegram:5")
    mine = Scope(Principal("telegram:5"))

    async def work() -> None:
        client = door.client(token)
        key = {"Idempotency-Key": "k1"}
        begun = await client.conversations.create(metadata={"a": "b"}, extra_headers=key)
        ask = partial(client.responses.create, model="main", input="hi", instructions="Be brief.", extra_headers=key)
        await ask(conversation=begun.id)
        await door.quiet()
        door.store.write(OWNER, purge_conversation, begun.id.removeprefix("conv_"))
        for scope in (mine, OWNER):
            assert door.store.read(scope, lambda tx: tx.meta.beginning("api:")) == []
        with pytest.raises(openai.NotFoundError):
            await ask()
        assert door.store.read(OWNER, lambda tx: list(tx.sessions.in_order())) == []

    door.serve(work)


def test_a_session_of_the_agents_sdk_lasts_here(door: WordyDoor) -> None:
    """The SDK keeps what it says here, whoever answers; here the same gateway does."""
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        session = OpenAIConversationsSession(openai_client=client)
        model = OpenAIResponsesModel(model="main", openai_client=client)
        agent, quietly = Agent(name="Ada", instructions="Be brief.", model=model), RunConfig(tracing_disabled=True)
        first = await Runner.run(agent, "one", session=session, run_config=quietly)
        assert first.final_output == "You said: one"
        second = await Runner.run(agent, "two", session=session, run_config=quietly)
        assert second.final_output == "You said: two"
        assert [one["content"] for one in Wordy.asked[-1].conversation] == ["Be brief.", "one", "You said: one", "two"]
        expected = ["one", "You said: one", "two", "You said: two"]
        assert _words_of(await session.get_items()) == expected
        assert _words_of(await session.get_items(limit=2)) == expected[-2:]
        popped = await session.pop_item()
        assert _words_of([popped]) == expected[-1:]
        assert _words_of(await session.get_items()) == expected[:-1]
        await session.clear_session()
        assert await session.get_items() == []

    door.serve(work)
    assert [text for text, _ in entries(door.store)] == ["one", "two"]


def _words_of(items: Any) -> list[str]:
    return [one["content"][0]["text"] for one in items]


def test_two_who_speak_at_once_in_a_conversation_are_both_answered(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        begun = await client.conversations.create()
        answers = await asyncio.gather(
            *(client.responses.create(model="main", input=str(n), conversation=begun.id) for n in range(5))
        )
        assert [one.output_text for one in answers] == [f"You said: {n}" for n in range(5)]
        assert len(await words(client, begun.id)) == 10

    door.serve(work)
    assert sorted(state for _, state in entries(door.store)) == ["done"] * 5
