"""What of the settings cannot work, as far as that can be told without asking anybody."""

from collections.abc import Iterator, Mapping

from segue.agent.choosing import LOCAL, Endpoint, NotChosen, choose, endpoints_from, provider_in
from segue.app.entry import load_entry
from segue.config import Settings
from segue.core.errors import Invalid, SegueError


def troubles(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    """A sentence for each: the agent that cannot be loaded, and every name of a model that means none."""
    parts = (_of_the_entry(settings), _of_the_models(settings, environ), _of_the_platforms(settings))
    return [*(one for part in parts for one in part), *_of_the_owners(settings)]


def _of_the_platforms(settings: Settings) -> Iterator[str]:
    if not settings.platforms:
        return
    from segue.app.connecting import check_platform  # slow to load, and many connect none

    for name, said in settings.platforms.items():
        if said.enabled:
            try:
                check_platform(settings, name)
            except SegueError as error:
                yield str(error)


def _of_the_owners(settings: Settings) -> Iterator[str]:
    if not settings.owners:
        return
    from segue.app.manifests import unlikely_owners  # reads files, and few need them

    for owner in unlikely_owners(settings.owners):
        yield f"owners names {owner!r}, which is nobody's id there: see docs/platforms/{owner.partition(':')[0]}.md."


def _of_the_entry(settings: Settings) -> Iterator[str]:
    if settings.agent.entry:
        try:
            load_entry(settings.agent.entry, settings.home)
        except Invalid as error:
            yield str(error)


def _of_the_models(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    endpoints = endpoints_from(environ, configured(settings))
    for where, name in named_models(settings).items():
        if provider_in(settings.models.aliases.get(name, name)) in dict(LOCAL):
            continue  # whether it runs is seen when it is asked
        found = choose(name, settings.models.aliases, endpoints)
        if isinstance(found, NotChosen):
            yield f"{where} is {name}: {found.sentence}"


def model_by_settings(settings: Settings, environ: Mapping[str, str]) -> str | None:
    """Return what answers by the settings, or that it is not available; None if nothing is chosen and no key is set."""
    if settings.agent.entry:
        return settings.agent.entry
    endpoints = endpoints_from(environ, configured(settings))
    wanted = settings.models.aliases.get(settings.model, settings.model)
    if provider_in(wanted) in dict(LOCAL):
        return wanted  # whether it runs is seen when it is asked
    found = choose(settings.model or None, settings.models.aliases, endpoints)
    if isinstance(found, NotChosen):
        return f"{settings.model}, which is not available: {found.sentence}" if settings.model else None
    return f"{found.endpoint.provider}/{found.name}"


def named_models(settings: Settings) -> dict[str, str]:
    """Every model that the settings name, by where it stands."""
    named = {"model": settings.model} if settings.model else {}
    named |= {f"models.aliases.{alias}": name for alias, name in settings.models.aliases.items()}
    named |= {f"agents.{name}.model": said.model for name, said in settings.agents.items() if said.model}
    return named | {f"models.fallback[{at}]": name for at, name in enumerate(settings.models.fallback)}


def configured(settings: Settings) -> list[Endpoint]:
    """Return the endpoints of `providers`, each with the models of it that the settings name anywhere."""
    names = [name.partition("/")[::2] for name in dict.fromkeys(named_models(settings).values())]
    return [
        Endpoint(
            provider=name,
            kind=one.kind.value,
            base_url=one.base_url,
            key=one.api_key,
            key_name=f"providers.{name}.api_key",
            models=one.models,
            named=tuple(model for provider, model in names if model and provider.lower() == name.lower()),
        )
        for name, one in settings.providers.items()
    ]
