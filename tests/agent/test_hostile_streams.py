"""Streams that no provider should send: each comes to a reply or to an error in one sentence, and neither hangs."""

import asyncio
import json
from collections.abc import Iterator, Sequence

import pytest
from places import Place, on_sqlite, run
from raw_model_server import Play, RawModelServer
from streamed_answers import KEY, KINDS, ask, call_delta, delta, sse, text_of, user
from waiting import DEADLINE

from segue.agent.choosing import Endpoint, Kind
from segue.agent.loop import Loop
from segue.agent.providers.model import ProviderModel, warm_up
from segue.core.errors import ModelError, ModelUnavailable, RateLimited, StreamBroken
from segue.core.events import Done, Failed, Reasoning, Reply, Text
from segue.ports.model import Request
from segue.storage.store import SqlStore

JSON_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[RawModelServer]:
    for kind in KINDS:
        warm_up(kind)
    running = RawModelServer(Play([b""]))
    yield running
    running.close()


USAGE = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "some-model", "choices": []} | {
    "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
}
OPENAI = [
    sse(delta(role="assistant", content="")),
    sse(delta(reasoning_content="Hmm, ")),
    sse(delta(reasoning_content="yes.")),
    sse(delta(content="Grüße, ")),
    sse(delta(content="Welt 🌍.")),
    sse(call_delta(0, "look", "", id="call_1")),
    sse(call_delta(0, arguments='{"path":')),
    sse(call_delta(0, arguments='"/tmp"}')),
    sse(delta("tool_calls")),
    sse(USAGE),
    sse("[DONE]"),
]
ANTHROPIC = [
    sse(
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "content": [],
                "model": "some-model",
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 3},
            },
        },
        event=True,
    ),
    *(
        sse(chunk, event=True)
        for chunk in (
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "thinking", "thinking": "", "signature": ""},
            },
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hmm, yes."}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "signed"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "ping"},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Grüße, "}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Welt 🌍."}},
            {"type": "content_block_stop", "index": 1},
            {
                "type": "content_block_start",
                "index": 2,
                "content_block": {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
            },
            {
                "type": "content_block_delta",
                "index": 2,
                "delta": {"type": "input_json_delta", "partial_json": '{"path":'},
            },
            {
                "type": "content_block_delta",
                "index": 2,
                "delta": {"type": "input_json_delta", "partial_json": '"/tmp"}'},
            },
            {"type": "content_block_stop", "index": 2},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "tool_use", "stop_sequence": None},
                "usage": {"output_tokens": 5},
            },
            {"type": "message_stop"},
        )
    ),
]
WHOLE = {"openai": OPENAI, "anthropic": ANTHROPIC}
FINISHED = {"openai": OPENAI.index(sse(delta("tool_calls"))), "anthropic": len(ANTHROPIC) - 2}
"""The piece that says that the answer has come to its end."""


def assert_is_a_sentence(error: ModelError | None) -> None:
    assert error is not None
    said = str(error)
    assert said.isprintable()
    assert said.endswith(".")
    assert len(said) < 400
    assert "Traceback" not in said
    assert KEY not in said


def assert_is_whole(shown: Sequence[Text | Reasoning], reply: Reply | None) -> None:
    assert reply is not None
    assert reply.text == text_of(shown) == "Grüße, Welt 🌍."
    assert reply.reasoning == "Hmm, yes."
    assert [(call.name, call.parsed()) for call in reply.calls] == [("look", {"path": "/tmp"})]
    assert reply.finish_reason == "tool_calls"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_chunked", [True, False])
def test_a_whole_stream_is_a_reply(server: RawModelServer, kind: Kind, is_chunked: bool) -> None:
    shown, reply, error = ask(server, kind, Play(WHOLE[kind], is_chunked=is_chunked))
    assert error is None
    assert_is_whole(shown, reply)
    assert reply is not None
    assert reply.usage[:2] == ((10, 5) if kind == "openai" else (13, 5))
    assert reply.usage.api_call_count == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["end", "cut", "chunked cut"])
def test_a_stream_that_stops_anywhere_is_told_from_a_whole_one(server: RawModelServer, kind: Kind, ending: str) -> None:
    for length in range(len(WHOLE[kind])):
        play = Play(WHOLE[kind][:length], is_chunked=ending == "chunked cut", cuts=ending != "end")
        shown, reply, error = ask(server, kind, play)
        if reply is None:
            assert isinstance(error, StreamBroken), (length, error)
            assert_is_a_sentence(error)
        else:
            assert length > FINISHED[kind], length
            assert_is_whole(shown, reply)


@pytest.mark.parametrize("kind", KINDS)
def test_every_byte_may_come_alone(server: RawModelServer, kind: Kind) -> None:
    stream = b"".join(WHOLE[kind])
    shown, reply, error = ask(server, kind, Play([stream[at : at + 1] for at in range(len(stream))], is_chunked=True))
    assert error is None
    assert_is_whole(shown, reply)


@pytest.mark.parametrize("kind", KINDS)
def test_comments_and_empty_lines_say_nothing(server: RawModelServer, kind: Kind) -> None:
    pieces = [piece for one in WHOLE[kind] for piece in (b": waiting\n\n", b"\n", one)]
    shown, reply, error = ask(server, kind, Play(pieces))
    assert error is None
    assert_is_whole(shown, reply)


@pytest.mark.parametrize("kind", KINDS)
def test_lines_may_end_as_on_windows(server: RawModelServer, kind: Kind) -> None:
    shown, reply, error = ask(server, kind, Play([piece.replace(b"\n", b"\r\n") for piece in WHOLE[kind]]))
    assert error is None
    assert_is_whole(shown, reply)


def test_a_stream_needs_no_usage_and_no_done(server: RawModelServer) -> None:
    shown, reply, error = ask(server, "openai", Play(OPENAI[:-2]))
    assert error is None
    assert_is_whole(shown, reply)
    assert reply is not None
    assert reply.usage.counters == (0, 0, 0, 0, 0, 1)
    assert reply.usage.estimated_cost_usd is None


def test_chunks_without_choices_are_passed_over(server: RawModelServer) -> None:
    empty = sse(USAGE | {"usage": None}, USAGE | {"usage": None, "choices": None})
    shown, reply, error = ask(server, "openai", Play([piece for one in OPENAI for piece in (empty, one)]))
    assert error is None
    assert_is_whole(shown, reply)


def test_halves_of_a_character_become_one(server: RawModelServer) -> None:
    pieces = [
        b'data: {"choices":[{"index":0,"delta":{"content":"a\\ud83c"}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":"\\udf0d b \\udc00"}}]}\n\n',
        sse(delta("stop"), "[DONE]"),
    ]
    shown, reply, error = ask(server, "openai", Play(pieces))
    assert error is None
    assert reply is not None
    assert reply.text == text_of(shown) == "a🌍 b \ufffd"


def test_calls_may_be_told_in_turns(server: RawModelServer) -> None:
    pieces = [
        call_delta(1, "second", '{"b"', id="call_b"),
        call_delta(0, "first", '{"a"', id="call_a"),
        call_delta(1, arguments=":2}"),
        call_delta(0, arguments=":1}"),
        delta("tool_calls"),
    ]
    _, reply, error = ask(server, "openai", Play([sse(*pieces)]))
    assert error is None
    assert reply is not None
    assert {call.id: (call.name, call.parsed()) for call in reply.calls} == {
        "call_a": ("first", {"a": 1}),
        "call_b": ("second", {"b": 2}),
    }


def test_a_call_without_a_name_of_its_own_is_given_one(server: RawModelServer) -> None:
    pieces = [
        call_delta(0, "look", "{}"),
        call_delta(1, "look", "{}", id=""),
        call_delta(2, "look", "{}", id="call_1"),
        call_delta(3, "look", "{}", id="call_1"),
        delta("stop"),
    ]
    _, reply, error = ask(server, "openai", Play([sse(*pieces)]))
    assert error is None
    assert reply is not None
    assert len({call.id for call in reply.calls}) == 4
    assert all(call.id for call in reply.calls)
    assert reply.finish_reason == "tool_calls"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("body", [b'{"error": {"message": "Out of \\u001b[31mluck", "code": 500}}', b"[1, 2", b""])
def test_a_document_in_place_of_a_stream_is_no_answer(server: RawModelServer, kind: Kind, body: bytes) -> None:
    head = f"{JSON_HEAD}Content-Length: {len(body)}\r\n"
    shown, reply, error = ask(server, kind, Play([body], head=head))
    assert (shown, reply) == ([], None)
    assert isinstance(error, StreamBroken)
    assert_is_a_sentence(error)
    assert ("Out of luck" in str(error)) == (b"luck" in body)


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_in_place_of_a_stream_is_no_answer(server: RawModelServer, kind: Kind) -> None:
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
    _, reply, error = ask(server, kind, Play([b"<html><body>Log in to the network</body></html>"], head=head))
    assert reply is None
    assert isinstance(error, StreamBroken)
    assert_is_a_sentence(error)


ERRORS = {
    "openai": sse({"error": {"message": "The server is overloaded", "type": "server_error", "code": "overloaded"}}),
    "anthropic": sse(
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        event=True,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", [0, 5, 8])
def test_an_error_within_the_stream_is_told(server: RawModelServer, kind: Kind, after: int) -> None:
    shown, reply, error = ask(server, kind, Play([*WHOLE[kind][:after], ERRORS[kind]]))
    assert reply is None
    assert isinstance(error, ModelUnavailable)
    assert_is_a_sentence(error)
    assert bool(shown) == (after > 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "chunk",
    [
        "{not json",
        "null",
        "[]",
        "17",
        '"text"',
        '{"choices": "all of them"}',
        '{"choices": [null]}',
        '{"choices": [{"delta": {"tool_calls": [{"index": "x", "function": 3}]}}]}',
        '{"choices": [{"delta": {"content": {"deep": 1}}}]}',
        '{"choices": [], "usage": {"prompt_tokens": "many", "completion_tokens": -5}}',
        '{"type": "content_block_delta", "index": 99, "delta": {"type": "text_delta", "text": 7}}',
        '{"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{"}}',
        '{"type": "message_start", "message": null}',
        "[" * 100_000,
    ],
)
def test_nonsense_within_the_stream_is_survived(server: RawModelServer, kind: Kind, chunk: str) -> None:
    for at in (0, 4, len(WHOLE[kind]) - 1):
        event = "event: content_block_delta\n" if kind == "anthropic" else ""
        pieces = [*WHOLE[kind][:at], f"{event}data: {chunk}\n\n".encode(), *WHOLE[kind][at:]]
        _, reply, error = ask(server, kind, Play(pieces))
        if reply is None:
            assert_is_a_sentence(error)
        else:
            assert all(count >= 0 for count in reply.usage.counters)
            assert reply.text or reply.calls


def test_odd_counts_of_tokens_are_no_reason_to_lose_an_answer(server: RawModelServer) -> None:
    odd = sse(USAGE | {"usage": {"prompt_tokens": "many", "completion_tokens": -5, "total_tokens": None}})
    shown, reply, error = ask(server, "openai", Play([*OPENAI[:-2], odd, OPENAI[-1]]))
    assert error is None
    assert_is_whole(shown, reply)
    assert reply is not None
    assert reply.usage.counters == (0, 0, 0, 0, 0, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", [0, 6])
def test_silence_comes_to_an_end(server: RawModelServer, kind: Kind, after: int) -> None:
    for silence in (0.3, 3.0, 30.0):
        shown, reply, error = ask(server, kind, Play(WHOLE[kind][:after], is_endless=True), silence=silence)
        assert reply is None
        assert isinstance(error, StreamBroken)
        assert f"{silence:g} seconds" in str(error)
        if bool(shown) == (after > 0):
            return  # otherwise this machine was too busy to say anything in time
    pytest.fail("What was said before the silence was not shown.")


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_of_nothing_is_none(server: RawModelServer, kind: Kind) -> None:
    empty = {
        "openai": [sse(delta(content="")), sse(delta("stop"), "[DONE]")],
        "anthropic": [ANTHROPIC[0], *ANTHROPIC[-2:]],
    }
    _, reply, error = ask(server, kind, Play(empty[kind]))
    assert reply is None
    assert isinstance(error, StreamBroken)
    assert "answered nothing" in str(error)


def test_an_answer_that_was_withheld_is_told(server: RawModelServer) -> None:
    _, reply, error = ask(server, "openai", Play([sse(delta("content_filter"))]))
    assert reply is None
    assert "withheld" in str(error)
    _, reply, error = ask(server, "openai", Play([sse(delta(refusal="I will not."), delta("stop"))]))
    assert error is None
    assert reply is not None
    assert (reply.text, reply.finish_reason) == ("I will not.", "content_filter")


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_error_is_quoted_in_part_and_without_the_key(server: RawModelServer, kind: Kind) -> None:
    message = f"\x1b]0;title\x07Wrong {KEY} " + "é" * 5000
    body = json.dumps({"error": {"type": "invalid_request_error", "message": message}}).encode()
    head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    _, reply, error = ask(server, kind, Play([body], head=head))
    assert reply is None
    assert_is_a_sentence(error)
    assert "Wrong" in str(error)
    assert KEY not in "".join(map(str, (error, *(error.args if error else ()))))


@pytest.mark.parametrize("kind", KINDS)
def test_a_wait_that_is_asked_for_is_kept(server: RawModelServer, kind: Kind) -> None:
    head = "HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
    _, _, error = ask(server, kind, Play([b"{}"], head=head))
    assert isinstance(error, RateLimited)
    assert error.retry_after == 7
    assert_is_a_sentence(error)


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_tries_again_behind_our_back(server: RawModelServer, kind: Kind) -> None:
    before = len(server.asked)
    head = "HTTP/1.1 500 Broken\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n"
    _, _, error = ask(server, kind, Play([b"oops"], head=head))
    assert isinstance(error, ModelUnavailable)
    assert len(server.asked) == before + 1


@pytest.mark.parametrize("kind", KINDS)
def test_whoever_stops_listening_leaves_nothing_open(server: RawModelServer, kind: Kind) -> None:
    async def listen() -> str:
        before = asyncio.all_tasks()
        model = ProviderModel(Endpoint(kind, kind, server.url, KEY, "SOME_API_KEY"), "some-model")
        stream = model.stream(Request("", [user("hello")]))
        first = await anext(stream)
        await stream.aclose()
        await model.aclose()
        assert asyncio.all_tasks() == before
        return type(first).__name__

    server.play(Play(WHOLE[kind], is_endless=True))
    assert asyncio.run(asyncio.wait_for(listen(), DEADLINE)) == "Reasoning"


# In a conversation


FINE = {
    "openai": [sse(delta(role="assistant", content="Fine.")), sse(delta("stop")), sse(USAGE), sse("[DONE]")],
    "anthropic": [
        ANTHROPIC[0],
        *(
            sse(chunk, event=True)
            for chunk in (
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Fine."}},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
                {"type": "message_stop"},
            )
        ),
    ],
}


@on_sqlite
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", range(1, len(OPENAI) - 3))
def test_after_a_cut_the_conversation_is_valid_and_goes_on(
    server: RawModelServer, store: SqlStore, kind: Kind, length: int
) -> None:
    base_url = server.url + ("/v1" if kind == "openai" else "")
    model = ProviderModel(Endpoint(kind, kind, base_url, KEY, "SOME_API_KEY"), "some-model")
    place = Place(store, Loop([model], []))

    async def work() -> None:
        server.play(Play(WHOLE[kind][:length], cuts=True))
        failures = [event for event in await place.say("hello") if isinstance(event, Failed)]
        assert len(failures) == 1
        server.play(Play(FINE[kind]))
        assert Done() in await place.say("and now?")
        await model.aclose()

    run(place, work)
    assert place.rows()[-1] == ("assistant", "Fine.")
    assert [role for role, _ in place.rows() if role == "user"] == ["user", "user"]
    asked = json.loads(server.asked[-1])["messages"]
    assert not any(message.get("tool_calls") for message in asked), "half a call is none"
    assert [message["role"] for message in asked if message["role"] != "system"][-1] == "user"
