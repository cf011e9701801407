"""Which model is asked: what the environment has, what runs here, and what somebody meant by a name."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from waiting import DEADLINE

from segue.agent import choosing
from segue.agent.choosing import (
    LOCAL,
    NO_MODEL,
    PROVIDERS,
    Endpoint,
    ModelName,
    NotChosen,
    choose,
    endpoints_from,
    local_endpoints,
    meant,
    with_listed_models,
)

ANTHROPIC = Endpoint("anthropic", "anthropic", "https://a", "k", "K", ("claude-sonnet-5-5", "claude-haiku-5-5"))
OPENAI = Endpoint("openai", "openai", "https://o", "k", "K", ("gpt-5.5", "gpt-5.4-mini"))
OPENROUTER = Endpoint("openrouter", "openai", "https://r", "k", "K", ("anthropic/claude-sonnet-5.5",))
OLLAMA = Endpoint("ollama", "openai", "http://127.0.0.1:11434/v1", models=("qwen3:8b", "hf.co/some/model:latest"))
EMPTY = Endpoint("mine", "openai", "http://127.0.0.1:1/v1")
NAMED = Endpoint("mine", "openai", "http://127.0.0.1:1/v1", named=("granite-4-tiny",))
LISTED = Endpoint("Work", "openai", "https://w/v1", models=("glm-4.6-air",))
ALL = (ANTHROPIC, OPENAI, OLLAMA)
ALIASES = {"fast": "openai/gpt-5.4-mini", "home": "ollama", "odd": " gpt-5.5 "}

CHOICES = [
    # wanted, endpoints → provider and model, or a part of the sentence
    (None, ALL, ("anthropic", "claude-sonnet-5-5")),
    ("", (OLLAMA, OPENAI), ("ollama", "qwen3:8b")),
    (None, (EMPTY, OPENAI), ("openai", "gpt-5.5")),
    (None, (EMPTY,), "No model of mine is known: name one as mine/MODEL"),
    (None, (NAMED, OPENAI), ("openai", "gpt-5.5")),  # what is only named is not taken by itself
    (None, (LISTED, OPENAI), ("Work", "glm-4.6-air")),
    ("work", (OPENAI, LISTED), ("Work", "glm-4.6-air")),
    ("mine", (OPENAI, NAMED), ("mine", "granite-4-tiny")),
    ("granite", (OPENAI, NAMED), ("mine", "granite-4-tiny")),
    ("GLM 4.6 A", (OPENAI, LISTED), ("Work", "glm-4.6-air")),
    ("WORK/other", (OPENAI, LISTED), ("Work", "other")),
    (None, (), NO_MODEL),
    ("openai", (), "set OPENAI_API_KEY"),
    ("fast", ALL, ("openai", "gpt-5.4-mini")),
    ("home", ALL, ("ollama", "qwen3:8b")),
    ("odd", ALL, ("openai", "gpt-5.5")),
    ("openai", ALL, ("openai", "gpt-5.5")),
    ("OpenAI", ALL, ("openai", "gpt-5.5")),
    ("openai/gpt-6-brand-new", ALL, ("openai", "gpt-6-brand-new")),
    ("gpt-5.4-mini", ALL, ("openai", "gpt-5.4-mini")),
    ("hf.co/some/model:latest", ALL, ("ollama", "hf.co/some/model:latest")),
    ("haiku-5", ALL, ("anthropic", "claude-haiku-5-5")),
    ("Sonnet", ALL, ("anthropic", "claude-sonnet-5-5")),
    ("qwen3:8b", ALL, ("ollama", "qwen3:8b")),
    ("QWEN3 8B", ALL, ("ollama", "qwen3:8b")),
    ("haiku", ALL, "write it as PROVIDER/MODEL"),  # five characters could be anything
    ("claude-opus-9", ALL, ("anthropic", "claude-opus-9")),
    ("gpt-9", ALL, ("openai", "gpt-9")),
    ("groq/openai/gpt-oss-120b", ALL, "set GROQ_API_KEY"),
    ("groq", ALL, "set GROQ_API_KEY"),
    ("lmstudio", ALL, "start it"),
    ("anthropic/claude-opus-4.5", (OPENROUTER,), ("openrouter", "anthropic/claude-opus-4.5")),
    ("openrouter/anthropic/claude-opus-4.5", (OPENROUTER,), ("openrouter", "anthropic/claude-opus-4.5")),
    ("anthropic/claude-opus-4.5", (ANTHROPIC, OPENROUTER), ("anthropic", "claude-opus-4.5")),
    ("whatever", (OLLAMA,), ("ollama", "whatever")),
    ("whatever", ALL, "one of anthropic, openai, ollama"),
]


@pytest.mark.parametrize(("wanted", "endpoints", "chosen"), CHOICES)
def test_what_is_meant_by_a_name(
    wanted: str | None, endpoints: tuple[Endpoint, ...], chosen: tuple[str, str] | str
) -> None:
    found = choose(wanted, ALIASES, endpoints)
    if isinstance(chosen, str):
        assert isinstance(found, NotChosen)
        assert chosen in found.sentence
        assert found.sentence.endswith(".")
    else:
        assert isinstance(found, ModelName)
        assert (found.endpoint.provider, found.name) == chosen


def test_keys_in_the_environment_are_endpoints() -> None:
    environ = {known.key_name: f"key-{known.provider}" for known in PROVIDERS} | {"GROQ_API_KEY": "  "}
    found = endpoints_from(environ, [])
    assert [one.provider for one in found] == [one.provider for one in PROVIDERS if one.provider != "groq"]
    assert all(one.key == f"key-{one.provider}" and one.models for one in found)
    assert {one.provider for one in found if one.kind == "anthropic"} == {"anthropic"}
    assert endpoints_from({}) == []


def test_an_address_in_the_environment_takes_the_place_of_the_known_one() -> None:
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://proxy.example/v1", "ANTHROPIC_BASE_URL": "https://no"}
    (found,) = endpoints_from(environ)
    assert found.base_url == "https://proxy.example/v1"


def test_the_configuration_comes_before_the_environment() -> None:
    mine = Endpoint("openai", "openai", "https://mine/v1", "k", "MY_KEY", ("m",))
    other = Endpoint("other", "openai", "https://other/v1")
    found = endpoints_from({"OPENAI_API_KEY": "k", "XAI_API_KEY": "x"}, [mine, other])
    assert [(one.provider, one.base_url) for one in found][:2] == [
        ("openai", "https://mine/v1"),
        ("other", "https://other/v1"),
    ]
    assert [one.provider for one in found] == ["openai", "other", "xai"]


def test_names_that_are_chosen_by_themselves_exist() -> None:
    from pydantic_ai.models import KnownModelName

    known = set(KnownModelName.__value__.__args__)
    names = {"gemini": "google"}
    for provider in PROVIDERS:
        for model in provider.models:
            if provider.provider != "openrouter":
                assert f"{names.get(provider.provider, provider.provider)}:{model}" in known


class Listing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert self.path == "/v1/models"
        names = ["qwen3:8b", "nomic-embed-text", "llama3"]
        body = json.dumps({"data": [{"id": name} for name in names] + [{"id": 7}, None]}).encode()
        self.server.may_answer.wait(DEADLINE)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - its name there


@pytest.fixture
def listing() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Listing)
    server.daemon_threads = True
    server.may_answer = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.may_answer.set()  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join()


def place(server: ThreadingHTTPServer) -> tuple[str, str]:
    return "ollama", f"http://127.0.0.1:{server.server_port}/v1"


def test_a_server_on_this_machine_is_found_with_what_it_offers(
    listing: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "_LOOK_SECONDS", DEADLINE)
    listing.may_answer.set()  # type: ignore[attr-defined]
    (found,) = local_endpoints([("lmstudio", "http://127.0.0.1:9/v1"), place(listing)])
    assert (found.provider, found.models, found.key) == ("ollama", ("qwen3:8b", "llama3"), "")
    assert found.is_local


def test_models_that_a_configured_server_on_this_machine_lists_can_be_named(listing: ThreadingHTTPServer) -> None:
    listing.may_answer.set()  # type: ignore[attr-defined]
    mine = with_listed_models(EMPTY._replace(base_url=place(listing)[1]))
    assert meant("qwen3:8b", {}, [mine, OPENAI]) == "qwen3:8b"
    assert choose("mine", {}, [OPENAI, mine]) == ModelName(mine._replace(models=mine.known), "qwen3:8b")
    assert choose(None, {}, [mine, OPENAI]) == ModelName(OPENAI, "gpt-5.5")


def test_one_that_dawdles_is_not_waited_for(listing: ThreadingHTTPServer) -> None:
    assert local_endpoints([place(listing), ("lmstudio", "http://127.0.0.1:9/v1")]) == []
    assert not listing.may_answer.is_set()  # type: ignore[attr-defined]


def test_the_places_that_are_looked_at_are_on_this_machine() -> None:
    assert all(Endpoint(name, "openai", url).is_local for name, url in LOCAL)


@pytest.mark.parametrize(
    ("word", "is_model"),
    [("fast", True), ("openai", True), ("openai/anything", True), ("sonnet", True), ("please", False), ("gpt", False)],
)
def test_a_word_is_a_model_only_when_that_is_certain(word: str, is_model: bool) -> None:
    endpoints = [
        Endpoint("openai", "openai", "http://x", models=("gpt-5-mini",)),
        Endpoint("anthropic", "anthropic", "http://y", models=("claude-sonnet-4-5",)),
    ]
    assert (meant(word, {"fast": "openai/gpt-5-mini"}, endpoints) is not None) is is_model
