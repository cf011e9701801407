"""Chat completions, as the official client makes them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI
from waiting import DEADLINE, until
from wordy_door import WordyDoor, entries, transcripts, wordy_door
from wordy_model import Wordy

from segue.core.credentials import Level
from segue.core.errors import StoreBusy
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.web.openai import saying, streaming

HI: list[Any] = [{"role": "user", "content": "hi"}]
AGAIN = {"x-stainless-retry-count": "1"}
AGENTS = {"helper": {"prompt": "You help."}}


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WordyDoor]:
    with wordy_door(tmp_path, monkeypatch, agents=AGENTS) as opened:
        yield opened


async def said(client: AsyncOpenAI, messages: list[Any], **more: Any) -> str:
    answer = await client.chat.completions.create(model="main", messages=messages, **more)
    return answer.choices[0].message.content or ""


async def streamed(client: AsyncOpenAI, messages: list[Any], **more: Any) -> list[Any]:
    stream = await client.chat.completions.create(model="main", messages=messages, stream=True, **more)
    return [chunk async for chunk in stream]


def pieces(chunks: list[Any]) -> list[str]:
    return [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]


def test_a_chat_is_answered(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        answer = await client.chat.completions.create(model="segue", messages=HI)
        assert answer.id.startswith("chatcmpl-")
        assert (answer.model, answer.choices[0].finish_reason) == ("segue", "stop")
        assert answer.choices[0].message.content == "You said: hi"
        assert answer.usage is not None
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (7, 3)
        again = await client.chat.completions.retrieve(answer.id)
        assert again == answer
        (stored,) = (await door.ask(token, "sessions.list"))["sessions"]
        assert (stored["source"], stored["first_line"], stored["message_count"]) == ("api_server", "hi", 2)

    door.serve(work)
    assert entries(door.store) == [("hi", "done")]


def test_a_chat_is_told_word_by_word_and_what_is_told_is_the_answer(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        chunks = await streamed(client, HI, stream_options={"include_usage": True})
        assert chunks[0].choices[0].delta.role == "assistant"
        assert pieces(chunks) == ["You", " said:", " hi"]
        assert [one.choices[0].finish_reason for one in chunks if one.choices][-1] == "stop"
        assert chunks[-1].usage.total_tokens == 10
        looked = await streamed(client, [{"role": "user", "content": "look it up"}])
        assert "".join(pieces(looked)) == "Let me look.\n\nThere it is."
        stored = await client.chat.completions.retrieve(looked[0].id)
        assert stored.choices[0].message.content == "Let me look.\n\nThere it is."

    door.serve(work)


def test_a_client_that_sends_its_history_back_goes_on_in_its_conversation(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        history: list[Any] = [{"role": "system", "content": "Be brief."}]
        for words in ("one", "two", "three"):
            history.append({"role": "user", "content": words})
            history.append({"role": "assistant", "content": await said(client, history)})
        told = [(one["role"], one["content"]) for one in Wordy.asked[-1].conversation]
        assert told == [(one["role"], one["content"]) for one in history[:-1]]

    door.serve(work)
    talks = [talk for talk in transcripts(door.store) if talk]
    assert len(talks) == 1
    assert len(talks[0]) == 7


def test_a_history_that_was_not_said_here_is_stored_first(door: WordyDoor) -> None:
    token = door.token()
    elsewhere: list[Any] = [
        {"role": "user", "content": "What is up?"},
        {"role": "assistant", "content": None, "tool_calls": [_call()]},
        {"role": "tool", "tool_call_id": "c1", "content": "All is well."},
        {"role": "assistant", "content": "Nothing."},
        {"role": "user", "content": "good"},
    ]

    async def work() -> None:
        client = door.client(token)
        assert await said(client, elsewhere) == "You said: good"
        told = Wordy.asked[-1].conversation
        assert [one["role"] for one in told] == ["user", "assistant", "tool", "assistant", "user"]
        assert told[1]["tool_calls"] == [_call()]
        assert await said(client, elsewhere) == "You said: good"  # asked again, it is another conversation

    door.serve(work)
    assert [len(talk) for talk in transcripts(door.store)] == [6, 6]


def _call() -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def test_an_answer_that_is_asked_for_again_begins_a_branch(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        history: list[Any] = [*HI, {"role": "assistant", "content": await said(client, list(HI))}]
        await said(client, [*history, {"role": "user", "content": "left"}])
        await said(client, [*history, {"role": "user", "content": "right"}])
        told = [one["content"] for one in Wordy.asked[-1].conversation]
        assert told == ["hi", "You said: hi", "right"]

    door.serve(work)
    ends = sorted(talk[-1][1] or "" for talk in transcripts(door.store))
    assert ends == ["You said: left", "You said: right"]


def test_a_conversation_that_is_named_needs_no_history(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token, default_headers={"X-Segue-Conversation": "trip"})
        system = {"role": "system", "content": "Be brief."}
        await said(client, [system, *HI])
        await said(client, [system, {"role": "user", "content": "and again"}])
        await said(client, [system, *HI, {"role": "assistant", "content": "?"}, {"role": "user", "content": "third"}])
        told = [one["content"] for one in Wordy.asked[-1].conversation]
        assert told == ["Be brief.", "hi", "You said: hi", "and again", "You said: and again", "third"]

    door.serve(work)
    assert len(transcripts(door.store)) == 1


def test_what_looks_like_a_command_is_words(door: WordyDoor) -> None:
    token = door.token(level=Level.WRITE, principal="telegram:5")

    async def work() -> None:
        assert await said(door.client(token), [{"role": "user", "content": "/new"}]) == "You said: /new"

    door.serve(work)


def test_a_client_that_leaves_finds_its_answer_later(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        stream = await client.chat.completions.create(
            model="main", messages=[{"role": "user", "content": "held please"}], stream=True
        )
        telling = aiter(stream)
        first = await anext(telling)
        assert (await anext(telling)).choices[0].delta.content == "You"
        await stream.close()
        assert entries(door.store) == [("held please", "running")]
        Wordy.go_on.set()
        await door.quiet()
        found = await client.chat.completions.retrieve(first.id)
        assert found.choices[0].message.content == "You said: held please"
        response = await client.responses.retrieve(first.id.replace("chatcmpl-", "resp_"))
        assert response.output_text == "You said: held please"

    door.serve(work)
    assert entries(door.store) == [("held please", "done")]


def test_the_same_call_made_again_is_one_turn(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        key = {"Idempotency-Key": "k1"}
        slowly: list[Any] = [{"role": "user", "content": "slowly please"}]
        both = await asyncio.gather(
            client.chat.completions.create(model="main", messages=slowly, extra_headers=key),
            client.chat.completions.create(model="main", messages=slowly, extra_headers=key),
        )
        assert both[0] == both[1]
        chunks = await streamed(client, slowly, extra_headers=key)
        assert "".join(pieces(chunks)) == "You said: slowly please"
        assert chunks[0].id == both[0].id
        with pytest.raises(openai.UnprocessableEntityError, match="another body"):
            await client.chat.completions.create(model="main", messages=HI, extra_headers=key)

    door.serve(work)
    assert entries(door.store) == [("slowly please", "done")]


def test_a_call_that_was_not_put_down_is_made_ready_once(
    door: WordyDoor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its conversation is there already; whoever tries again speaks in that one."""
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        with monkeypatch.context() as broken:
            broken.setattr(saying, "say", not_now)
            with pytest.raises(openai.InternalServerError) as raised:
                await said(client, list(HI), extra_headers={"Idempotency-Key": "k1"})
            assert (raised.value.status_code, raised.value.response.headers["retry-after"]) == (503, "5")
            assert "state.db" not in raised.value.response.text
            assert "state.db" in caplog.text
        assert await said(client, list(HI), extra_headers={"Idempotency-Key": "k1"}) == "You said: hi"

    door.serve(work)
    assert [len(talk) for talk in transcripts(door.store)] == [2]


async def not_now(*_: object) -> None:
    raise StoreBusy("The database /home/somebody/state.db is locked.")


@pytest.mark.parametrize(("before", "after"), [("telegram:1", "telegram:2"), ("owner", "telegram:2"), ("x:1", "owner")])
def test_a_name_of_a_program_that_goes_to_somebody_else_takes_no_conversation_along(
    door: WordyDoor, before: str, after: str
) -> None:
    first = door.token("bot", Level.WRITE, before)

    async def work() -> None:
        named = {"extra_headers": {"X-Segue-Conversation": "trip"}}
        assert await said(door.client(first), list(HI), **named) == "You said: hi"
        door.revoke("bot")
        second = door.token("bot", Level.WRITE, after)
        for words in ("one", "two"):
            assert (
                await said(door.client(second), [{"role": "user", "content": words}], **named) == f"You said: {words}"
            )
        told = [one["content"] for one in Wordy.asked[-1].conversation]
        assert told == ["one", "You said: one", "two"]

    door.serve(work)
    assert [len(talk) for talk in transcripts(door.store)] == [2, 4]


def test_whoever_comes_late_to_a_stream_is_told_it_from_the_start(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token)
        key = {"Idempotency-Key": "k1"}
        held: list[Any] = [{"role": "user", "content": "held one two three"}]
        first = await client.chat.completions.create(model="main", messages=held, stream=True, extra_headers=key)
        telling = aiter(first)
        heard = [await anext(telling) for _ in range(2)]
        assert pieces(heard) == ["You"]
        second = asyncio.create_task(streamed(client, held, extra_headers=key))
        await until(lambda: watching(door) == 2)
        Wordy.go_on.set()
        await collect(telling, heard)
        assert "".join(pieces(await second)) == "".join(pieces(heard)) == "You said: held one two three"

    door.serve(work)
    assert entries(door.store) == [("held one two three", "done")]


def watching(door: WordyDoor) -> int:
    """How many follow an answer that is being written."""
    assert door.premises is not None
    return sum(map(len, door.premises.onlookers._by_lane.values()))


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_client_that_tries_again_by_itself_is_recognised(door: WordyDoor, is_streamed: bool) -> None:
    """It left before it had its answer, which is written meanwhile."""
    token = door.token()
    held: list[Any] = [{"role": "user", "content": "held one two three"}]

    async def work() -> None:
        client = door.client(token)
        if is_streamed:
            stream = await client.chat.completions.create(model="main", messages=held, stream=True)
            await anext(aiter(stream))
            await stream.close()
        else:
            asking = asyncio.create_task(said(client, held))
            await until(lambda: entries(door.store) == [("held one two three", "running")])
            asking.cancel()
            await asyncio.wait({asking})
        Wordy.go_on.set()
        await door.quiet()
        await until(lambda: watching(door) == 0)
        assert await said(client, held, extra_headers=AGAIN) == "You said: held one two three"

    door.serve(work)
    assert entries(door.store) == [("held one two three", "done")]


@pytest.mark.parametrize("is_streamed", [False, True])
def test_whoever_has_the_answer_and_says_the_same_again_says_something_new(door: WordyDoor, is_streamed: bool) -> None:
    """Also when that is tried twice, because it did not come through the first time."""
    token = door.token()
    named = {"X-Segue-Conversation": "trip"}

    async def work() -> None:
        client = door.client(token, default_headers=named)
        if is_streamed:
            await streamed(client, HI)
        else:
            await said(client, HI)
        await until(lambda: not door.store.read(OWNER, lambda tx: tx.meta.beginning("api:body:")))
        await said(client, HI, extra_headers=AGAIN)

    door.serve(work)
    assert entries(door.store) == [("hi", "done")] * 2


def test_nothing_is_told_to_a_token_that_was_taken_back(door: WordyDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    token, other = door.token(), door.token("other")
    monkeypatch.setattr(streaming, "CHECK_SECONDS", 0.05)
    held: list[Any] = [{"role": "user", "content": "held " * 12}]

    async def work() -> None:
        client = door.client(token)
        waiting = asyncio.create_task(said(client, held))
        stream = await client.chat.completions.create(model="main", messages=held, stream=True)
        following = await client.responses.create(model="main", input="held " * 13, stream=True)
        kept_on = asyncio.create_task(streamed(door.client(other), held))
        async for _ in following:
            break
        telling = aiter(stream)
        heard = [await anext(telling) for _ in range(2)]
        assert pieces(heard) == ["You"]
        await until(lambda: len(entries(door.store)) == 4)
        door.revoke("laptop")
        with pytest.raises(openai.APIError, match="good"):
            await collect(telling, heard)
        assert pieces(heard) == ["You"]
        events = [event async for event in following]
        assert (events[-1].type, getattr(events[-1], "code", "")) == ("error", "invalid_api_key")
        Wordy.go_on.set()
        with pytest.raises(openai.AuthenticationError):
            await waiting
        assert "".join(pieces(await kept_on)).startswith("You said: held")

    door.serve(work)
    assert [state for _, state in entries(door.store)] == ["done"] * 4


async def collect(telling: AsyncIterator[Any], heard: list[Any]) -> None:
    async for one in telling:
        heard.append(one)  # noqa: PERF401 - what comes before an error counts


def test_an_answer_that_was_stopped_is_no_answer(door: WordyDoor) -> None:
    token = door.token()
    held: list[Any] = [{"role": "user", "content": "held please"}]

    async def work() -> None:
        client = door.client(token, max_retries=2)
        running = asyncio.create_task(said(client, held))
        stream = await client.chat.completions.create(model="main", messages=held, stream=True)
        told = aiter(stream)
        name = (await anext(told)).id
        await anext(told)
        await until(lambda: len(entries(door.store)) == 2)
        with pytest.raises(openai.ConflictError, match="being written") as raised:
            await client.with_options(max_retries=0).chat.completions.retrieve(name)
        assert raised.value.code == "in_progress"
        for entry in door.store.read(OWNER, lambda tx: tx.inbox.listed(("waiting", "running"))):
            assert (await client.responses.cancel(entry.message_id)).status == "cancelled"
        with pytest.raises(openai.ConflictError) as stopped:
            await running
        assert stopped.value.code == "cancelled"
        with pytest.raises(openai.APIError, match="cancelled"):
            await collect(told, [])
        with pytest.raises(openai.ConflictError, match="cancelled"):
            await client.chat.completions.retrieve(name)

    door.serve(work)
    assert [state for _, state in entries(door.store)] == ["cancelled"] * 2


def test_whoever_has_an_answer_watches_no_longer(door: WordyDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    token = door.token()
    begun: list[AbstractContextManager[Any]] = []
    ended: list[AbstractContextManager[Any]] = []

    class Watching(AbstractContextManager[Any]):
        """Is not ended by being forgotten."""

        def __init__(self, watching: AbstractContextManager[Any]) -> None:
            self._watching = watching
            begun.append(self)

        def __enter__(self) -> Any:
            return self._watching.__enter__()

        def __exit__(self, *error: Any) -> None:
            ended.append(self)
            self._watching.__exit__(*error)

    async def work() -> None:
        assert door.premises is not None
        watching, client = door.premises.onlookers.watching, door.client(token)
        monkeypatch.setattr(door.premises.onlookers, "watching", lambda lane: Watching(watching(lane)))
        await said(client, HI)
        await streamed(client, HI)
        answer = await client.responses.create(model="main", input="hi")
        await client.responses.create(model="main", input="hi", background=True)
        async for _ in await client.responses.retrieve(answer.id, stream=True):
            pass
        await until(lambda: set(begun) == set(ended))

    door.serve(work)
    assert len(begun) == 5
    assert set(begun) == set(ended)


def test_an_answer_that_fails_is_an_error_in_both_ways(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        client = door.client(token, max_retries=2)
        with pytest.raises(openai.InternalServerError, match="accept"):
            await said(client, [{"role": "user", "content": "fail"}])
        with pytest.raises(openai.APIError, match="accept"):
            await streamed(client, [{"role": "user", "content": "fail"}])

    door.serve(work)
    assert [state for _, state in entries(door.store)] == ["dead", "dead"]


def test_what_the_send_policy_holds_back_is_not_told_piece_by_piece_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = {"rules": [{"action": "deny", "match": {"platform": "api_server"}}]}
    with wordy_door(tmp_path, monkeypatch, session={"send_policy": policy}) as door:
        token = door.token()

        async def work() -> None:
            chunks = await streamed(door.client(token), HI)
            assert pieces(chunks) == ["The answer was written and is held back by the send policy."]

        door.serve(work)
    assert len(Wordy.asked) >= 1


WRONG: list[tuple[dict[str, Any], type[openai.APIStatusError], str, str | None]] = [
    ({"model": "gpt-4"}, openai.NotFoundError, "model", "model_not_found"),
    ({"extra_body": {"colour": "red"}}, openai.BadRequestError, "colour", "unknown_parameter"),
    ({"tools": [{"type": "function"}]}, openai.BadRequestError, "tools", "unsupported_parameter"),
    ({"response_format": {"type": "json_object"}}, openai.BadRequestError, "response_format", None),
    ({"n": 2}, openai.BadRequestError, "n", "invalid_value"),
    ({"messages": []}, openai.BadRequestError, "messages", "invalid_value"),
    ({"messages": [{"role": "assistant", "content": "?"}]}, openai.BadRequestError, "messages", "invalid_value"),
    ({"messages": [{"role": "user", "content": ""}]}, openai.BadRequestError, "messages", "invalid_value"),
    (
        {"messages": [{"role": "user", "content": [{"type": "hologram"}]}]},
        openai.BadRequestError,
        "messages[0].content[0]",
        "invalid_value",
    ),
]


def test_what_is_wrong_with_a_call_is_said(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        for body, error, param, code in WRONG:
            with pytest.raises(error) as raised:
                await door.client(token).chat.completions.create(**({"model": "main", "messages": HI} | body))
            assert raised.value.param == param, body
            assert code is None or raised.value.code == code, body

    door.serve(work)
    assert entries(door.store) == []


def test_what_clients_send_by_habit_is_ignored(door: WordyDoor) -> None:
    token = door.token()
    habits: dict[str, Any] = {
        "temperature": 0.5,
        "top_p": 1,
        "max_tokens": 10,
        "max_completion_tokens": 10,
        "user": "me",
        "store": False,
        "metadata": {"a": "b"},
        "n": 1,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "seed": 1,
        "service_tier": "auto",
        "parallel_tool_calls": False,
        "tools": [],
        "logprobs": False,
        "safety_identifier": "x",
        "prompt_cache_key": "x",
        "response_format": {"type": "text"},
        "reasoning_effort": "low",
    }

    async def work() -> None:
        assert await said(door.client(token), list(HI), **habits) == "You said: hi"

    door.serve(work)


def test_tokens_open_as_far_as_they_go(door: WordyDoor) -> None:
    reader = door.token("reader", Level.READ)

    async def work() -> None:
        client = door.client(reader)
        assert [one.id async for one in await client.models.list()] == ["main", "helper"]
        assert (await client.models.retrieve("helper")).owned_by == "segue"
        with pytest.raises(openai.PermissionDeniedError):
            await said(client, list(HI))
        with pytest.raises(openai.AuthenticationError) as raised:
            await door.client("segue_wrong").models.list()
        assert raised.value.code == "invalid_api_key"
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("gpt-4")
        with pytest.raises(openai.NotFoundError) as raised_too:
            await client.embeddings.create(model="main", input="x")
        assert raised_too.value.code == "unknown_url"

    door.serve(work)


def test_another_agent_answers_by_its_name(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        answer = await door.client(token).chat.completions.create(model="helper", messages=HI)
        assert answer.model == "helper"
        assert "You help." in Wordy.asked[-1].system

    door.serve(work)


def test_a_stream_shows_that_it_lives_and_leaves_nothing_behind(
    door: WordyDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = door.token()
    monkeypatch.setattr(streaming, "KEEP_ALIVE_SECONDS", 0.02)

    async def work() -> None:
        client = door.client(token)
        body: dict[str, Any] = {
            "model": "main",
            "messages": [{"role": "user", "content": "held please"}],
            "stream": True,
        }
        url, headers = f"{door.url}/v1/chat/completions", {"Authorization": f"Bearer {token}"}
        lines: list[str] = []
        async with (
            httpx2.AsyncClient(timeout=DEADLINE, verify=False) as plain,
            plain.stream("POST", url, json=body, headers=headers) as told,
        ):
            async for line in told.aiter_lines():
                lines += [line] if line else []
                if line == ": still here":
                    Wordy.go_on.set()
        assert told.headers["content-type"].startswith("text/event-stream")
        assert ": still here" in lines
        assert lines[-1] == "data: [DONE]"
        Wordy.go_on.clear()
        for _ in range(3):
            stream = await client.chat.completions.create(**body)
            await anext(aiter(stream))
            await stream.close()
        Wordy.go_on.set()
        await door.quiet()
        await until(lambda: watching(door) == 0)

    door.serve(work)
    assert [state for _, state in entries(door.store)] == ["done"] * 4


UNREADABLE = [
    (b"{", 400, "The body is not JSON."),
    (b"[]", 400, "The body must be a JSON object."),
    (b"\xff", 400, "The body is not UTF-8."),
    (b"[" * 70 + b"]" * 70, 400, "The body is nested more than 64 levels deep."),
    (b" " * 1_048_577, 413, "The body is longer than 1048576 bytes."),
    (b"", 400, "Missing required parameter: 'model'."),
]


def test_a_body_that_cannot_be_read_is_refused(door: WordyDoor) -> None:
    token = door.token()

    async def work() -> None:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(timeout=DEADLINE, verify=False) as client:
            for body, status, sentence in UNREADABLE:
                found = await client.post(f"{door.url}/v1/chat/completions", content=body, headers=headers)
                assert (found.status_code, found.json()["error"]["message"]) == (status, sentence)

    door.serve(work)


def test_with_too_many_before_it_a_message_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with wordy_door(tmp_path, monkeypatch, queue={"debounce": 0, "cap": 1}) as door:
        token = door.token()

        async def work() -> None:
            named = {"X-Segue-Conversation": "trip"}
            client = door.client(token, default_headers=named)
            slow: list[Any] = [{"role": "user", "content": "held please"}]
            running = asyncio.create_task(said(client, slow))
            await until(lambda: entries(door.store) == [("held please", "running")])
            waiting = asyncio.create_task(said(client, list(HI)))
            await until(lambda: len(entries(door.store)) == 2)
            with pytest.raises(openai.InternalServerError) as raised:
                await said(client, list(HI))
            assert (raised.value.status_code, raised.value.response.headers["retry-after"]) == (503, "5")
            Wordy.go_on.set()
            await running
            assert await waiting == "You said: hi"

        door.serve(work)
        assert [state for _, state in entries(door.store)] == ["done", "done"]
