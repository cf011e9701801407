"""The wire to an endpoint: who speaks its format, over which connections."""

import ssl
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import httpx2
from pydantic_ai.models import Model
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings

from segue.agent.choosing import Endpoint
from segue.agent.providers.bounds import bound
from segue.core.json_text import parse_json

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from pydantic_ai.providers import Provider

CONNECT_SECONDS = 10.0
_KEEP_SECONDS = 60.0
_NO_KEY = "none"  # the libraries want one even where nobody asks for it
_VENDORS = {"gemini": "google", "mistral": "mistral", "xai": "x-ai"}
_LARGEST_ERROR = 100_000


class NotAStream(Exception):
    """The endpoint answered at once where it should have streamed."""

    def __init__(self, body: object) -> None:
        super().__init__()
        self.body = body


class Wire(NamedTuple):
    """Connections, and the one who speaks over them."""

    connections: httpx2.AsyncClient
    speaker: Callable[[str | None], Model[Any]]
    """Takes the field that the endpoint's reasoning comes in, where there is a choice."""


def wire(endpoint: Endpoint, name: str, silence: float) -> Wire:
    """A wire to an endpoint, not connected yet."""
    connections = _connections(endpoint, silence)
    if endpoint.kind == "anthropic":
        speaker = _anthropic(endpoint, name, connections)
        return Wire(connections, lambda _field: speaker)
    provider = _openai_provider(endpoint, connections)
    return Wire(connections, lru_cache(lambda field: _openai(provider, name, field)))


def settings(endpoint: Endpoint, effort: str | None) -> ModelSettings:
    """What is said beside the conversation."""
    said = ModelSettings()
    if endpoint.kind == "anthropic":
        said["cache"] = True
    match effort:
        case "none":
            said["thinking"] = False
        case "low" | "medium" | "high":
            said["thinking"] = effort
    return said


@lru_cache
def tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


def _connections(endpoint: Endpoint, silence: float) -> httpx2.AsyncClient:
    timeout = httpx2.Timeout(connect=CONNECT_SECONDS, read=silence, write=silence, pool=CONNECT_SECONDS)
    is_plain = urlsplit(endpoint.base_url).scheme == "http"
    return httpx2.AsyncClient(
        timeout=timeout,
        verify=False if is_plain else tls(),
        trust_env=not endpoint.is_local,  # no proxy stands between this machine and itself
        limits=httpx2.Limits(keepalive_expiry=_KEEP_SECONDS),
        headers={"Accept-Encoding": "identity"},  # what is packed can be a thousand times as long
        event_hooks={"response": [bound, _must_stream]},
    )


async def _must_stream(response: httpx2.Response) -> None:
    """Refuse a whole JSON document in place of a stream: the libraries would take it for an empty answer."""
    if response.status_code < 400 and "json" in response.headers.get("content-type", ""):
        said = b""
        async for piece in response.aiter_bytes():
            said += piece
            if len(said) > _LARGEST_ERROR:
                break
        await response.aclose()
        try:
            body = parse_json(said)
        except ValueError:
            body = said.decode("utf-8", "replace")
        raise NotAStream(body)


def _anthropic(endpoint: Endpoint, name: str, connections: httpx2.AsyncClient) -> Model[Any]:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(
        api_key=endpoint.key or _NO_KEY,
        base_url=endpoint.base_url.removesuffix("/").removesuffix("/v1"),
        http_client=connections,
        timeout=connections.timeout,
        max_retries=0,
    )
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))


def _openai(provider: "Provider[AsyncOpenAI]", name: str, field: str | None) -> Model[Any]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    if field is not None:
        # Left to itself, the library learns the field from the conversation and changes earlier messages.
        profile["openai_chat_send_back_thinking_parts"] = "field"
        profile["openai_chat_thinking_field"] = field
    return OpenAIChatModel(name, provider=provider, profile=profile)


def _openai_provider(endpoint: Endpoint, connections: httpx2.AsyncClient) -> "Provider[AsyncOpenAI]":
    from openai import AsyncOpenAI, Omit
    from pydantic_ai.providers.deepseek import DeepSeekProvider
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    is_openai = urlsplit(endpoint.base_url).hostname == "api.openai.com"
    client = AsyncOpenAI(
        api_key=endpoint.key or _NO_KEY,
        base_url=endpoint.base_url,
        http_client=connections,
        timeout=connections.timeout,
        max_retries=0,
        # Whose account it is at OpenAI is nobody else's business.
        default_headers={} if is_openai else {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()},  # type: ignore[dict-item]
    )
    client.chat.completions.create = _as_they_are(client.chat.completions.create)  # type: ignore[method-assign]
    if is_openai:
        return OpenAIProvider(openai_client=client)
    if endpoint.provider == "deepseek":
        return DeepSeekProvider(openai_client=client)
    return OpenAICompatibleProvider(endpoint.provider, openai_client=client, profile=_profile(endpoint.provider))


def _as_they_are(create: Callable[..., Awaitable[Any]]) -> Any:
    """Send the messages past the library's search for what it could convert, which costs 0.4 ms for each of them."""

    async def created(*, messages: list[Any], extra_body: dict[str, Any] | None = None, **said: Any) -> Any:
        return await create(messages=[], extra_body={**(extra_body or {}), "messages": messages}, **said)

    return created


def _profile(provider: str) -> Callable[[str], ModelProfile | None]:
    """What is known of a provider's models, by their names."""
    from pydantic_ai.providers.ollama import OllamaProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    if provider in ("ollama", "lmstudio"):
        return OllamaProvider.model_profile
    vendor = _VENDORS.get(provider)
    return lambda name: OpenAICompatibleProvider.model_profile(f"{vendor}/{name}" if vendor else name)
