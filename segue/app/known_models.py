"""Which models can be asked: those of providers with a key, of the settings, and of servers on this machine."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from segue.agent.choosing import (
    LOCAL,
    Endpoint,
    ModelName,
    NotChosen,
    choose,
    endpoints_from,
    local_endpoints,
    provider_in,
    with_listed_models,
)
from segue.app.checking import configured
from segue.config import Settings


class KnownModel(NamedTuple):
    """A model that can be named with `-m` or `/model`."""

    name: str
    """With its provider, as it can always be called."""
    aliases: tuple[str, ...]
    is_default: bool
    origin: str
    """The variable or setting that its key comes from; where it is, when it needs none."""


class KnownModels(NamedTuple):
    models: list[KnownModel]
    default: str | None
    troubles: list[str]
    """A sentence for each name in the settings that means no model, and why there is no default."""


def find_models(settings: Settings, environ: Mapping[str, str]) -> KnownModels:
    """Look for models, also on this machine, which takes a moment."""
    endpoints = [with_listed_models(one) for one in endpoints_from(environ, configured(settings))]
    there = {endpoint.provider for endpoint in endpoints}
    return known_models(settings, endpoints, [one for one in local_endpoints() if one.provider not in there])


def known_models(settings: Settings, endpoints: Sequence[Endpoint], local: Sequence[Endpoint]) -> KnownModels:
    """Judge what was found. A server on this machine is the default only when it is named or nothing else is there."""
    aliases = settings.models.aliases
    every = [*endpoints, *local]
    is_local = provider_in(aliases.get(settings.model, settings.model)) in dict(LOCAL)
    chosen = choose(settings.model or None, aliases, every if is_local else endpoints or local)
    meant = {alias: choose(alias, aliases, every) for alias in aliases}
    troubles = [f"models.aliases.{alias}: {one.sentence}" for alias, one in meant.items() if isinstance(one, NotChosen)]
    if isinstance(chosen, NotChosen):
        troubles.insert(0, chosen.sentence)
    default = chosen if isinstance(chosen, ModelName) else None
    named = {alias: _full(one) for alias, one in meant.items() if isinstance(one, ModelName)}
    wanted = [one for one in (default, *meant.values()) if isinstance(one, ModelName)]
    models = [
        KnownModel(
            name=_full(one),
            aliases=tuple(alias for alias, name in named.items() if name == _full(one)),
            is_default=default is not None and _full(one) == _full(default),
            origin=one.endpoint.key_name if one.endpoint.key else one.endpoint.address,
        )
        for one in _each(every, wanted)
    ]
    return KnownModels(models, _full(default) if default else None, troubles)


def _each(endpoints: Sequence[Endpoint], wanted: Sequence[ModelName]) -> Iterator[ModelName]:
    """Every model once, by provider; what the settings name comes even if its provider did not list it."""
    for endpoint in endpoints:
        extra = [one.name for one in wanted if one.endpoint == endpoint]
        for name in dict.fromkeys([*endpoint.known, *extra]):
            yield ModelName(endpoint, name)


def _full(model: ModelName) -> str:
    return f"{model.endpoint.provider}/{model.name}"
