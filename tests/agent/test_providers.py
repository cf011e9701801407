"""Models of providers, asked over both wire formats; the server at the other end answers by script."""

import asyncio
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from model_server import ModelServer
from raw_model_server import Play, RawModelServer
from waiting import DEADLINE

from segue.agent.choosing import Endpoint, Kind
from segue.agent.providers.model import ProviderModel, warm_up
from segue.core.errors import (
    BadKey,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    NoModel,
    RateLimited,
    UnknownModel,
)
from segue.core.events import Chat, Reasoning, Reply, Text, ToolCall
from segue.core.messages import said
from segue.core.prices import UNKNOWN_TERMS, Price, Terms
from segue.core.transcript import Eye, as_chat
from segue.core.turns import reply_draft
from segue.ports.model import Request
from segue.ports.tool import ToolSpec

KINDS: tuple[Kind, ...] = ("openai", "anthropic")
KEY = "sk-not-a-real-key-0123456789abcdef"
LOOK = ToolSpec("look", "Look at a folder.", {"type": "object", "properties": {"path": {"type": "string"}}})
ANSWER = "Bonjour, voilà une réponse assez longue pour être coupée en morceaux."
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def failing(word: str, status: int, **error: Any) -> dict[str, Any]:
    return {"match": {"userMessage": word}, "response": {"error": error, "status": status}}


FIXTURES: list[dict[str, Any]] = [
    {
        "match": {"userMessage": "bonjour"},
        "response": {"content": ANSWER, "usage": {"prompt_tokens": 21, "completion_tokens": 8}},
    },
    {
        "match": {"userMessage": "think"},
        "response": {"content": "Four.", "reasoning": "Two and two…", "reasoningSignature": "c2lnbmVk"},
    },
    {
        "match": {"userMessage": "folder", "hasToolResult": False},
        "response": {
            "content": "I look.",
            "toolCalls": [{"id": "call_1", "name": "look", "arguments": {"path": "/tmp"}}],
        },
    },
    {"match": {"userMessage": "folder", "hasToolResult": True}, "response": {"content": "It is empty."}},
    {"match": {"userMessage": "thanks"}, "response": {"content": "You are welcome."}},
    failing(
        "badkey", 401, message=f"Incorrect API key provided: {KEY}", type="authentication_error", code="invalid_api_key"
    ),
    failing("nomodel", 404, message="model: gpt-none", type="not_found_error", code="model_not_found"),
    failing("limited", 429, message="Slow down", type="rate_limit_error"),
    failing("broken", 500, message="Internal", type="api_error"),
    failing("busy", 529, message="Overloaded", type="overloaded_error"),
    failing("refused", 400, message="temperature is deprecated", type="invalid_request_error"),
    failing(
        "overflow",
        400,
        message="prompt is too long: 300000 tokens > 200000 maximum",
        type="invalid_request_error",
        code="context_length_exceeded",
    ),
    failing("poor", 402, message="Your credit balance is too low", type="billing_error", code="insufficient_quota"),
]


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Loading takes seconds, which no test of something else should count."""
    for kind in KINDS:
        warm_up(kind)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    running = ModelServer(tmp_path_factory.mktemp("model-server"), FIXTURES)
    yield running
    running.close()


@pytest.fixture(scope="module", params=KINDS)
def endpoint(request: pytest.FixtureRequest, server: ModelServer) -> Endpoint:
    return endpoint_at(server.url, request.param)


def endpoint_at(url: str, kind: Kind, provider: str | None = None) -> Endpoint:
    return Endpoint(provider or kind, kind, f"{url}/v1", KEY, "SOME_API_KEY")


def ask(
    endpoint: Endpoint, request: Request, name: str = "some-model", terms: Terms = UNKNOWN_TERMS
) -> list[Text | Reasoning | Reply]:
    async def pieces() -> list[Text | Reasoning | Reply]:
        model = ProviderModel(endpoint, name, terms=terms)
        try:
            return [piece async for piece in model.stream(request)]
        finally:
            await model.aclose()

    return asyncio.run(asyncio.wait_for(pieces(), DEADLINE))


def answer(endpoint: Endpoint, request: Request) -> Reply:
    last = ask(endpoint, request)[-1]
    assert isinstance(last, Reply)
    return last


def user(content: Any) -> Chat:
    return {"role": "user", "content": content}


def stored(reply: Reply, provider: str) -> Chat:
    """An answer as it is asked with after it was stored and read back."""
    return as_chat([said(reply_draft(reply, 1.0), 1)], Eye(provider))[0]


def test_an_answer_comes_in_pieces_and_then_whole(endpoint: Endpoint) -> None:
    *pieces, reply = ask(endpoint, Request("Be brief.", [user("bonjour")]))
    assert isinstance(reply, Reply)
    assert len(pieces) > 3
    assert all(isinstance(piece, Text) for piece in pieces)
    assert "".join(piece.text for piece in pieces if isinstance(piece, Text)) == reply.text == ANSWER
    assert (reply.model, reply.provider, reply.finish_reason) == ("some-model", endpoint.provider, "stop")
    assert (reply.calls, reply.reasoning, reply.details) == ((), None, {})


def test_usage_and_billing_are_told(endpoint: Endpoint) -> None:
    reply = answer(endpoint, Request("", [user("bonjour")]))
    assert reply.usage[:2] == (21, 8)
    assert reply.usage.api_call_count == 1
    assert reply.usage.estimated_cost_usd is None
    assert reply.billing.billing_base_url == endpoint.base_url
    assert (reply.billing.model, reply.billing.billing_provider) == ("some-model", endpoint.provider)
    assert (reply.billing.billing_mode, reply.billing.cost_status) == ("api", "local")


def test_reasoning_is_shown_kept_and_sent_back_as_it_was(server: ModelServer, endpoint: Endpoint) -> None:
    first = Request("", [user("think")])
    *pieces, reply = ask(endpoint, first)
    assert isinstance(reply, Reply)
    assert "".join(piece.text for piece in pieces if isinstance(piece, Reasoning)) == "Two and two…"
    assert reply.reasoning == reply.details["reasoning_content"] == "Two and two…"
    json.dumps(reply.details)
    ask(endpoint, Request("", [*first.conversation, stored(reply, endpoint.provider), user("thanks")]))
    sent = json.dumps(server.journal()[-1]["body"], ensure_ascii=False)
    if endpoint.kind == "openai":
        assert '"reasoning_content": "Two and two…"' in sent
    else:  # the journal leaves it out; what is sent is looked at below
        assert {"type": "thinking", "text": "Two and two…", "signature": "c2lnbmVk", "at": [0, 0]} in reply.details[
            "reasoning_details"
        ]


def test_reasoning_of_another_provider_stays_away(endpoint: Endpoint) -> None:
    reply = answer(endpoint, Request("", [user("think")]))
    assert "reasoning_details" not in stored(reply, "another")


def test_a_call_is_answered_and_the_model_goes_on(server: ModelServer, endpoint: Endpoint) -> None:
    question = Request("Be brief.", [user("what is in the folder?")], [LOOK])
    reply = answer(endpoint, question)
    assert reply.calls == (ToolCall("call_1", "look", '{"path":"/tmp"}'),)
    assert (reply.text, reply.finish_reason) == ("I look.", "tool_calls")
    result = {"role": "tool", "tool_call_id": "call_1", "name": "look", "content": "nothing"}
    going_on = [*question.conversation, stored(reply, endpoint.provider), result]
    assert answer(endpoint, question._replace(conversation=going_on)).text == "It is empty."
    first, second = (entry["body"] for entry in server.journal()[-2:])
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert second["tools"] == first["tools"]
    assert second["messages"][-1] == {"role": "tool", "tool_call_id": "call_1", "content": "nothing"}


ERRORS = [
    ("badkey", BadKey, "SOME_API_KEY"),
    ("nomodel", UnknownModel, "'some-model'"),
    ("limited", RateLimited, "takes no more questions for 1 seconds"),
    ("broken", ModelUnavailable, "error 500"),
    ("busy", ModelUnavailable, "too busy"),
    ("refused", ModelError, "temperature is deprecated"),
    ("overflow", ContextOverflow, "say it in smaller pieces"),
    ("poor", RateLimited, "has nothing left"),
]


@pytest.mark.parametrize(("word", "kind", "told"), ERRORS)
def test_what_goes_wrong_is_one_sentence(endpoint: Endpoint, word: str, kind: type[ModelError], told: str) -> None:
    with pytest.raises(ModelError) as caught:
        ask(endpoint, Request("", [user(word)]))
    assert type(caught.value) is kind
    sentence = str(caught.value)
    assert told in sentence
    assert sentence.endswith(".")
    assert KEY not in repr(caught.value) + sentence


def test_an_empty_account_is_not_waited_for(endpoint: Endpoint) -> None:
    with pytest.raises(RateLimited) as caught:
        ask(endpoint, Request("", [user("poor")]))
    assert caught.value.retry_after == math.inf


@pytest.mark.parametrize("kind", KINDS)
def test_who_cannot_be_reached_is_named(kind: Kind) -> None:
    endpoint = Endpoint("ollama", kind, "http://user:word@127.0.0.1:9/v1?key=1")
    with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1:9 cannot be reached: start it") as caught:
        ask(endpoint, Request("", [user("hello")]))
    assert "word" not in str(caught.value)


def test_without_a_key_nobody_is_asked() -> None:
    endpoint = Endpoint("openai", "openai", "https://api.openai.com/v1", "", "OPENAI_API_KEY")
    with pytest.raises(NoModel, match="set OPENAI_API_KEY"):
        ask(endpoint, Request("", [user("hello")]))


def test_a_key_is_in_no_description() -> None:
    assert KEY not in repr(endpoint_at("http://127.0.0.1:9", "openai"))


# What is sent, byte by byte

CHUNKS: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": "m",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Yes."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]
PLAIN = {
    "openai": b'data: {"choices":[{"index":0,"delta":{"content":"Yes."},"finish_reason":"stop"}]}\n\n',
    "anthropic": "".join(f"event: {chunk['type']}\ndata: {json.dumps(chunk)}\n\n" for chunk in CHUNKS).encode(),
}
GROWN: list[Chat] = [
    user("What is in the folder? 🌍"),
    {
        "role": "assistant",
        "content": "I look.",
        "reasoning": "Hmm.",
        "reasoning_content": "Hmm.",
        "reasoning_details": [
            {"type": "thinking", "text": "Hmm.", "id": "reasoning_content", "signature": "signed", "at": [0, 0]},
            {"type": "thinking", "text": "And?", "id": "reasoning_content", "signature": "signed too", "at": [7, 1]},
            {"type": "call", "id": "call_2", "details": {"extra_content": {"google": {"thought_signature": "abc"}}}},
        ],
        "tool_calls": [
            ToolCall("call_1", "look", '{"path": "/tmp",  "é": 1}').as_chat(),
            ToolCall("call_2", "look", "not json").as_chat(),
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "name": "look", "content": "nothing"},
    {"role": "tool", "tool_call_id": "call_2", "name": "look", "content": "Bad arguments.", "is_error": True},
    {"role": "assistant", "content": None, "tool_calls": [ToolCall("functions.look:3", "look").as_chat()]},
    {
        "role": "tool",
        "tool_call_id": "functions.look:3",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    },
    {"role": "assistant", "content": "It is empty."},
    {"role": "system", "content": "The user is away."},
    user(
        [
            {"type": "text", "text": "And this?"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        ]
    ),
    {"role": "assistant", "content": "A dot."},
    user(
        [
            {"type": "text", "text": "And that?"},
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            {"type": "input_audio"},
        ]
    ),
]


@pytest.fixture(scope="module")
def raw() -> Iterator[RawModelServer]:
    running = RawModelServer(Play([b""]))
    yield running
    running.close()


def sent(raw: RawModelServer, endpoint: Endpoint, conversation: list[Chat]) -> bytes:
    raw.play(Play([PLAIN[endpoint.kind]]))
    answer(endpoint, Request("Be brief.", conversation, [LOOK]))
    return raw.asked[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_conversation_that_grows_begins_with_the_same_bytes(raw: RawModelServer, kind: Kind) -> None:
    endpoint = endpoint_at(raw.url, kind)
    ends = [
        at
        for at, chat in enumerate(GROWN, 1)
        if chat["role"] != "assistant" and GROWN[at - 1 : at + 1][-1]["role"] != "tool"
    ]
    earlier = b""
    for end in ends:
        body = sent(raw, endpoint, GROWN[:end])
        at = body.index(b'"messages":[') + len(b'"messages":[')
        messages = body[at : _end_of_list(body, at)]
        assert messages.startswith(earlier)
        assert len(messages) > len(earlier)
        earlier = messages
    assert len(ends) >= 5


def test_another_process_sends_the_same_bytes(raw: RawModelServer) -> None:
    endpoints = [endpoint_at(raw.url, kind) for kind in KINDS]
    here = [sent(raw, endpoint, GROWN) for endpoint in endpoints]
    raw.play(*(Play([PLAIN[kind]]) for kind in KINDS))
    program = (
        "import asyncio, json, sys\n"
        "from segue.agent.choosing import Endpoint\n"
        "from segue.agent.providers.model import ProviderModel\n"
        "from segue.ports.model import Request\n"
        "from segue.ports.tool import ToolSpec\n"
        "endpoints, conversation, tool = json.load(sys.stdin)\n"
        "async def ask(endpoint):\n"
        "    model = ProviderModel(Endpoint(*endpoint), 'some-model')\n"
        "    async for _ in model.stream(Request('Be brief.', conversation, [ToolSpec(*tool)])): pass\n"
        "for endpoint in endpoints:\n"
        "    asyncio.run(ask(endpoint))\n"
    )
    subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps([endpoints, GROWN, LOOK]),
        text=True,
        check=True,
        timeout=DEADLINE,
    )
    assert raw.asked[-2:] == here


def _end_of_list(body: bytes, at: int) -> int:
    _, end = json.JSONDecoder().raw_decode(body[at - 1 :].decode())
    return at - 2 + len(body[at - 1 :].decode()[:end].encode())


def test_openai_is_told_everything_in_its_format(raw: RawModelServer) -> None:
    messages = json.loads(sent(raw, endpoint_at(raw.url, "openai"), GROWN))["messages"]
    assert messages[0] == {"role": "system", "content": "Be brief."}
    looked = messages[2]
    assert (looked["content"], looked["reasoning_content"]) == ("I look.", "Hmm.\n\nAnd?")
    assert [call["id"] for call in looked["tool_calls"]] == ["call_1", "call_2"]
    assert json.loads(looked["tool_calls"][0]["function"]["arguments"]) == {"path": "/tmp", "é": 1}
    assert looked["tool_calls"][1]["extra_content"] == {"google": {"thought_signature": "abc"}}
    assert messages[4] == {"role": "tool", "tool_call_id": "call_2", "content": "Bad arguments."}
    assert messages[5]["tool_calls"][0]["id"] == messages[6]["tool_call_id"] != "functions.look:3"
    assert messages[6]["content"] == "a\nb"
    assert messages[8]["content"] == "<system>\nThe user is away.\n</system>"
    assert messages[9]["content"][1]["image_url"]["url"] == f"data:image/png;base64,{PNG}"
    assert messages[11]["content"][1:] == [
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "text", "text": "[audio]"},
    ]


def test_anthropic_is_told_everything_in_its_format(raw: RawModelServer) -> None:
    body = json.loads(sent(raw, endpoint_at(raw.url, "anthropic"), GROWN))
    messages = body["messages"]
    assert body["system"][0]["text"] == "Be brief."
    looked = messages[1]["content"]
    assert [block["type"] for block in looked] == ["thinking", "text", "tool_use", "thinking", "tool_use"]
    assert (looked[0]["signature"], looked[3]["signature"]) == ("signed", "signed too")
    assert looked[4]["input"] == {"INVALID_JSON": "not json"}
    assert [block["is_error"] for block in messages[2]["content"]] == [False, True]
    assert messages[3]["content"][0]["id"] == messages[4]["content"][0]["tool_use_id"]
    pictures = [
        block["source"] for message in messages[-3:] for block in message["content"] if block["type"] == "image"
    ]
    assert [picture["type"] for picture in pictures] == ["base64", "url"]
    assert pictures[0]["data"] == PNG


@pytest.mark.parametrize(
    ("effort", "openai", "anthropic"),
    [(None, None, None), ("none", "none", {"type": "between_tools"}), ("low", "low", "low"), ("high", "high", "high")],
)
def test_effort_is_told_to_those_who_can_think(
    raw: RawModelServer, effort: str | None, openai: str | None, anthropic: Any
) -> None:
    raw.play(Play([PLAIN["openai"]]))
    ask(endpoint_at(raw.url, "openai"), Request("", [user("hello")], effort=effort), "gpt-5.4")
    assert json.loads(raw.asked[-1]).get("reasoning_effort") == openai
    raw.play(Play([PLAIN["anthropic"]]))
    ask(endpoint_at(raw.url, "anthropic"), Request("", [user("hello")], effort=effort), "claude-sonnet-5-5")
    body = json.loads(raw.asked[-1])
    told = body.get("output_config", {}).get("effort") if isinstance(anthropic, str) else body.get("thinking")
    assert told == anthropic


def test_a_known_price_is_estimated() -> None:
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.usage import RequestUsage

    from segue.agent.providers.converting import reply_from

    endpoint = Endpoint("anthropic", "anthropic", "https://u:p@api.anthropic.com/v1?k=1", KEY, "ANTHROPIC_API_KEY")
    used = RequestUsage(input_tokens=1000, output_tokens=100, cache_read_tokens=500, cache_write_tokens=200)
    reply = reply_from(ModelResponse([TextPart("Yes.")], usage=used), endpoint, "claude-opus-4-5", 200_000)
    assert reply.usage[:6] == (1000, 100, 500, 200, 0, 1)
    assert reply.usage.estimated_cost_usd is not None
    assert 0.001 < reply.usage.estimated_cost_usd < 0.1
    assert (reply.billing.cost_status, reply.billing.cost_source) == ("estimated", "genai-prices")
    assert reply.billing.billing_base_url == "https://api.anthropic.com/v1"
    assert reply.billing.pricing_version
    unknown = reply_from(ModelResponse([TextPart("Yes.")], usage=used), endpoint, "nobody-knows", None)
    assert (unknown.usage.estimated_cost_usd, unknown.billing.cost_status) == (None, "unknown")


def test_an_estimate_says_of_when_its_prices_are() -> None:
    from datetime import date

    import genai_prices
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.usage import RequestUsage

    from segue.agent.providers.converting import reply_from
    from segue.agent.providers.pricing import newest_price

    endpoint = Endpoint("anthropic", "anthropic", "https://api.anthropic.com/v1", KEY, "ANTHROPIC_API_KEY")
    used = ModelResponse([TextPart("Yes.")], usage=RequestUsage(input_tokens=1000, output_tokens=100))
    version = reply_from(used, endpoint, "claude-opus-4-5", None).billing.pricing_version
    number, _, day = (version or "").partition(" ")
    assert number == genai_prices.__version__
    assert date(2025, 1, 1) < date.fromisoformat(day.strip("()")) <= date.today()  # noqa: DTZ011
    assert newest_price(date(1990, 1, 1)) is None
    assert newest_price(date(2025, 6, 1)) <= date(2025, 6, 1)  # type: ignore[operator]


def test_a_price_of_ones_own_is_before_that_of_the_table() -> None:
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.usage import RequestUsage

    from segue.agent.providers.converting import reply_from

    used = ModelResponse([TextPart("Yes.")], usage=RequestUsage(input_tokens=1_000_000, output_tokens=100_000))
    mine = Terms(Price(1.0, 10.0), 4096)
    for url, name in (("https://api.anthropic.com/v1", "claude-opus-4-5"), ("http://127.0.0.1:9/v1", "nobody-knows")):
        endpoint = Endpoint("anthropic", "anthropic", url, KEY, "ANTHROPIC_API_KEY")
        reply = reply_from(used, endpoint, name, 200_000, mine)
        assert (reply.usage.estimated_cost_usd, reply.context_window) == (2.0, 4096)
        assert (reply.billing.cost_status, reply.billing.cost_source) == ("estimated", "config")
        assert reply.billing.pricing_version is None
        partly = reply_from(used, endpoint, name, None, Terms(Price(1.0)))
        assert (partly.usage.estimated_cost_usd, partly.billing.cost_source) == (None, None)


def test_what_was_said_of_a_model_reaches_its_answers(endpoint: Endpoint) -> None:
    reply = ask(endpoint, Request("Be brief.", [user("bonjour")]), terms=Terms(Price(1.0, 1.0), 4096))[-1]
    assert isinstance(reply, Reply)
    assert (reply.context_window, reply.billing.cost_source) == (4096, "config")
    assert reply.usage.estimated_cost_usd == pytest.approx(29e-6)


@pytest.mark.parametrize(("kind", "name"), [("openai", "gpt-5.4"), ("anthropic", "claude-opus-4-5")])
def test_how_much_a_model_can_read_is_known_of_some(raw: RawModelServer, kind: Kind, name: str) -> None:
    raw.play(Play([PLAIN[kind]]))
    replies = [
        ask(endpoint_at(raw.url, kind), Request("", [user("hello")]), model)[-1] for model in (name, "nobody-knows")
    ]
    known, unknown = (reply.context_window for reply in replies if isinstance(reply, Reply))
    assert known is not None
    assert known >= 100_000
    assert unknown is None


def test_nothing_heavy_is_loaded_before_it_is_needed() -> None:
    program = (
        "import sys, segue.agent.providers.model, segue.agent.choosing, segue.agent.trying\n"
        "heavy = {'pydantic_ai', 'pydantic', 'openai', 'anthropic', 'httpx2', 'genai_prices'} & sys.modules.keys()\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=DEADLINE)


def test_without_the_libraries_it_is_told_how_to_get_them() -> None:
    program = (
        "import asyncio, sys\n"
        "sys.modules['pydantic_ai'] = None\n"
        "from segue.agent.choosing import Endpoint\n"
        "from segue.agent.providers.model import ProviderModel\n"
        "from segue.ports.model import Request\n"
        "async def ask():\n"
        "    model = ProviderModel(Endpoint('a', 'openai', 'http://127.0.0.1:9'), 'm')\n"
        "    await anext(model.stream(Request('', [])))\n"
        "asyncio.run(ask())\n"
    )
    failed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE)
    assert "NoModel: What models are asked with is not installed: run pip install 'segue[models]'." in failed.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_warming_up_loads_what_is_needed(kind: Kind) -> None:
    warm_up(kind)
    assert kind in sys.modules


def test_one_model_may_be_asked_from_several_event_loops(raw: RawModelServer) -> None:
    model = ProviderModel(endpoint_at(raw.url, "openai"), "some-model")

    async def once() -> None:
        pieces = [piece async for piece in model.stream(Request("", [user("hello")]))]
        assert isinstance(pieces[-1], Reply)
        await model.aclose()

    raw.play(Play([PLAIN["openai"]]))
    asyncio.run(once())
    asyncio.run(once())
