"""Which model is asked: the endpoints there are, and what somebody meant by a name.

Everything but `local_endpoints` is a function of its arguments; the environment is one of them.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from threading import Thread
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from segue.core.json_text import parse_json

Kind = Literal["openai", "anthropic"]
SHORTEST_FUZZY = 6
"""Characters of a name that may stand for a longer one."""
_LOOK_SECONDS = 0.3
_LARGEST_LIST = 1_000_000
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


SHORTEST_PART = 6
"""Characters of a model's name that mean it where anything may be said."""


class Endpoint(NamedTuple):
    """A place where models answer, and the way they are spoken to."""

    provider: str
    kind: Kind
    base_url: str
    key: str = ""
    key_name: str = ""
    """The variable that the key came from; empty when none is needed."""
    models: tuple[str, ...] = ()
    """What it offers, as far as it is known; the first is what it answers with by itself."""
    named: tuple[str, ...] = ()
    """Further models of it that the settings name. They are recognised; none is taken while nothing is asked for."""

    @property
    def known(self) -> tuple[str, ...]:
        """Every model of it that a name may mean."""
        return tuple(dict.fromkeys((*self.models, *self.named)))

    def __repr__(self) -> str:
        return f"Endpoint({self.provider!r}, {self.kind!r}, {self.address!r})"

    @property
    def is_local(self) -> bool:
        return urlsplit(self.base_url).hostname in _LOOPBACK

    @property
    def called(self) -> str:
        """What people are told of it: its name, and where it is when that does not go without saying."""
        own = any(known.provider == self.provider and known.base_url == self.base_url for known in PROVIDERS)
        return self.provider if own else f"{self.provider} at {self.address}"

    @property
    def address(self) -> str:
        """The host and the port, without anything that somebody may have put beside them."""
        parts = urlsplit(self.base_url)
        host = parts.hostname or "?"
        return f"{f'[{host}]' if ':' in host else host}:{_port(self.base_url)}"


class ModelName(NamedTuple):
    """A model of an endpoint."""

    endpoint: Endpoint
    name: str


class NotChosen(NamedTuple):
    """Why no model was chosen, and what to do about it."""

    sentence: str


class _Known(NamedTuple):
    provider: str
    kind: Kind
    key_name: str
    base_url: str
    url_name: str
    models: tuple[str, ...]


_ANTHROPIC = ("claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5")
_OPENAI = ("gpt-5.5", "gpt-5.4-mini", "gpt-5.4-nano", "gpt-5.5-pro")
_OPENROUTER = ("anthropic/claude-sonnet-5.5", "openai/gpt-5.5", "google/gemini-3.8-flash")
_GROQ = ("openai/gpt-oss-120b", "openai/gpt-oss-20b", "llama-3.3-70b-versatile")
_GEMINI = ("gemini-flash-latest", "gemini-3.8-flash", "gemini-flash-lite-latest")
_GOOGLE_URL = "https://generativelanguage.googleapis.com/v1beta/openai"
PROVIDERS = (
    _Known(
        "anthropic", "anthropic", "ANTHROPIC_API_KEY", "https://api.anthropic.com", "ANTHROPIC_BASE_URL", _ANTHROPIC
    ),
    _Known("openai", "openai", "OPENAI_API_KEY", "https://api.openai.com/v1", "OPENAI_BASE_URL", _OPENAI),
    _Known("openrouter", "openai", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1", "", _OPENROUTER),
    _Known("gemini", "openai", "GEMINI_API_KEY", _GOOGLE_URL, "", _GEMINI),
    _Known("groq", "openai", "GROQ_API_KEY", "https://api.groq.com/openai/v1", "", _GROQ),
    _Known(
        "mistral",
        "openai",
        "MISTRAL_API_KEY",
        "https://api.mistral.ai/v1",
        "",
        ("mistral-large-latest", "codestral-latest"),
    ),
    _Known(
        "deepseek", "openai", "DEEPSEEK_API_KEY", "https://api.deepseek.com", "", ("deepseek-chat", "deepseek-reasoner")
    ),
    _Known("xai", "openai", "XAI_API_KEY", "https://api.x.ai/v1", "", ("grok-4.7", "grok-code-fast-1")),
)
"""Whose keys are looked for, in the order in which they are preferred; each with the model it answers with first."""
LOCAL = (("ollama", "http://127.0.0.1:11434/v1"), ("lmstudio", "http://127.0.0.1:1234/v1"))
_GET_ONE = (
    "set ANTHROPIC_API_KEY, OPENAI_API_KEY or another provider's key, or start Ollama or LM Studio on this machine."
)
NO_MODEL = f"There is no model to ask: {_GET_ONE}"


def endpoints_from(environ: Mapping[str, str], extra: Sequence[Endpoint] = ()) -> list[Endpoint]:
    """Those that the configuration names, then those whose keys are in the environment."""
    found = {endpoint.provider: endpoint for endpoint in reversed(extra)}
    endpoints = list(reversed(found.values()))
    for known in PROVIDERS:
        key = environ.get(known.key_name, "").strip()
        if not key or known.provider in found:
            continue
        base_url = environ.get(known.url_name, "").strip() or known.base_url
        endpoints.append(Endpoint(known.provider, known.kind, base_url, key, known.key_name, known.models))
    return endpoints


def choose(wanted: str | None, aliases: Mapping[str, str], endpoints: Sequence[Endpoint]) -> ModelName | NotChosen:
    """The model that is meant; nothing said means the first endpoint's own."""
    wanted = (wanted or "").strip()
    wanted = aliases.get(wanted, wanted).strip()
    if not endpoints:
        return NotChosen(
            _missing_key(wanted)
            or (f"Nobody can be asked for the model {wanted!r}: {_GET_ONE}" if wanted else NO_MODEL)
        )
    if not wanted:
        return _default(endpoints)
    return _named(wanted, endpoints) or _fuzzy(wanted, endpoints)


def meant(word: str, aliases: Mapping[str, str], endpoints: Sequence[Endpoint]) -> str | None:
    """The model that a word names for certain; nothing when it may as well be a word of a sentence.

    That is an alias, a provider, a model with its provider, or a part of a model's name that is long enough.
    """
    if word in aliases:
        return word
    if isinstance(_named(word, endpoints), ModelName):
        return word
    fits = list(_fits(word, endpoints)) if len(word) >= SHORTEST_PART else []
    return word if fits else None


def _default(endpoints: Sequence[Endpoint]) -> ModelName | NotChosen:
    for endpoint in endpoints:
        if endpoint.models:
            return ModelName(endpoint, endpoint.models[0])
    provider = endpoints[0].provider
    return NotChosen(
        f"No model of {provider} is known: name one as {provider}/MODEL, or list them with `models:` in config.yaml."
    )


def _named(wanted: str, endpoints: Sequence[Endpoint]) -> ModelName | NotChosen | None:
    """What is said in full: a model, a provider, or both."""
    for endpoint in endpoints:
        if wanted in endpoint.known:
            return ModelName(endpoint, wanted)
    for endpoint in endpoints:
        if wanted.lower() == endpoint.provider.lower():
            return _default([endpoint._replace(models=endpoint.known)])
    provider, slash, name = wanted.partition("/")
    for endpoint in endpoints:
        if slash and name and provider.lower() == endpoint.provider.lower():
            return ModelName(endpoint, name)
    missing = _missing_key(wanted)
    return NotChosen(missing) if missing and not _routes(endpoints, wanted) else None


def _fuzzy(wanted: str, endpoints: Sequence[Endpoint]) -> ModelName | NotChosen:
    """What is said in part; a name that nobody knows is left to the provider to judge, if there is but one."""
    if fits := list(_fits(wanted, endpoints)):
        exact = [fit for fit in fits if _plain(fit.name) == _plain(wanted)]
        return (exact or sorted(fits, key=lambda fit: len(fit.name)))[0]
    if router := _routes(endpoints, wanted):
        return ModelName(router, wanted)
    if maker := _maker(wanted, endpoints):
        return ModelName(maker, wanted)
    if len(endpoints) == 1:
        return ModelName(endpoints[0], wanted)
    names = ", ".join(endpoint.provider for endpoint in endpoints)
    return NotChosen(f"Nobody is known to have a model {wanted!r}: write it as PROVIDER/MODEL, with one of {names}.")


def _fits(wanted: str, endpoints: Sequence[Endpoint]) -> Iterator[ModelName]:
    part = _plain(wanted)
    for endpoint in endpoints:
        for name in endpoint.known:
            if _plain(name) == part or (len(part) >= SHORTEST_FUZZY and part in _plain(name)):
                yield ModelName(endpoint, name)


def _routes(endpoints: Sequence[Endpoint], wanted: str) -> Endpoint | None:
    """An endpoint that passes questions on to whoever made a model, when the name says who."""
    return next((one for one in endpoints if one.provider == "openrouter" and "/" in wanted), None)


def _maker(wanted: str, endpoints: Sequence[Endpoint]) -> Endpoint | None:
    """The endpoint of whoever gives such names to models."""
    begins = {"claude": "anthropic", "gpt": "openai", "o3": "openai", "o4": "openai", "gemini": "gemini"}
    begins |= {"grok": "xai", "deepseek": "deepseek", "mistral": "mistral", "codestral": "mistral"}
    maker = next((name for beginning, name in begins.items() if wanted.lower().startswith(beginning)), None)
    return next((one for one in endpoints if one.provider == maker), None)


def provider_in(name: str) -> str:
    """The provider that a name of a model begins with, if it begins with one."""
    return name.strip().partition("/")[0].lower()


def _missing_key(wanted: str) -> str | None:
    """What to do when a provider is named that there is no key for."""
    provider = provider_in(wanted)
    for known in PROVIDERS:
        if known.provider == provider:
            return f"There is no key for {provider}, so {wanted!r} cannot be asked: set {known.key_name}."
    for name, base_url in LOCAL:
        if name == provider:
            return f"There is no {name} at {base_url} to ask for {wanted!r}: start it, or choose another model."
    return None


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def _port(base_url: str) -> int:
    parts = urlsplit(base_url)
    try:
        return parts.port or (80 if parts.scheme == "http" else 443)
    except ValueError:
        return 0


# What runs on this machine


def local_endpoints(places: Sequence[tuple[str, str]] = LOCAL) -> list[Endpoint]:
    """The model servers that answer on this machine, with what they offer; asked all at once, and briefly."""
    found: dict[int, Endpoint] = {}

    def look(number: int, provider: str, base_url: str) -> None:
        if endpoint := _look(provider, base_url):
            found[number] = endpoint

    until = time.monotonic() + _LOOK_SECONDS
    threads = [Thread(target=look, args=(number, *place), daemon=True) for number, place in enumerate(places)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))  # one that dawdles is left behind
    return [endpoint for _, endpoint in sorted(found.items())]


def _look(provider: str, base_url: str) -> Endpoint | None:
    parts = urlsplit(base_url)
    connection = HTTPConnection(parts.hostname or "", _port(base_url), timeout=_LOOK_SECONDS)
    try:
        connection.request("GET", f"{parts.path}/models", headers={"Connection": "close"})
        response = connection.getresponse()
        listed = parse_json(response.read(_LARGEST_LIST)) if response.status == 200 else None
    except (OSError, HTTPException, ValueError):
        return None
    finally:
        connection.close()
    models = _listed(listed)
    return Endpoint(provider, "openai", base_url, models=models) if models else None


def with_listed_models(endpoint: Endpoint) -> Endpoint:
    """Add what a server on this machine lists to an endpoint of the settings that names no models itself."""
    if endpoint.models or not endpoint.is_local or endpoint.kind != "openai":
        return endpoint
    listed = [model for one in local_endpoints([(endpoint.provider, endpoint.base_url)]) for model in one.models]
    return endpoint._replace(named=(*endpoint.named, *listed))


def _listed(answer: Any) -> tuple[str, ...]:
    """The names in a list of models, those that only make vectors left out."""
    data = answer.get("data") if isinstance(answer, dict) else None
    names = [one.get("id") for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    return tuple(name for name in names if isinstance(name, str) and name and "embed" not in name.lower())
