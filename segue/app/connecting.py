"""Which platforms a gateway connects to: those that the settings name, ours and those of others."""

from collections.abc import Callable, Collection, Mapping
from importlib.metadata import entry_points
from typing import Any

from segue.agent.door import Door
from segue.config import Settings
from segue.config.substitution import unset_in
from segue.core.errors import Invalid
from segue.core.keys import DEFAULT_AGENT
from segue.core.routes import Places, Route
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sources import WEBHOOK, SessionSource
from segue.platforms.webhook.settings import read_settings
from segue.ports.platform import Platform
from segue.sessions.handing import find_place
from segue.storage.store import SqlStore

GROUP = "segue.platforms"

Connect = Callable[[Mapping[str, Any], Places], Platform]


def platforms_of(settings: Settings, store: SqlStore) -> list[Platform]:
    """Every platform that is enabled, ready to be connected; jobs, batches and programs always are."""
    places = places_of(settings, store)
    named = [_made(settings, name, places) for name, said in settings.platforms.items() if said.enabled]
    return [*named, _jobs(store, places), _batches(), _programs()]


def check_platform(settings: Settings, name: str) -> None:
    """Whether a platform could be connected, as far as its settings say; raises when it could not."""

    async def nowhere(_route: Route) -> SessionSource | None:
        return None

    _made(settings, name, nowhere)


def _made(settings: Settings, name: str, places: Places) -> Platform:
    own = settings.platforms[name].own
    if unset := unset_in(own):
        raise Invalid(f"platforms.{name} needs the environment variable {unset}, which is not set.")
    if name == WEBHOOK:
        for hook in read_settings(own).hooks.values():
            if hook.agent and hook.agent != DEFAULT_AGENT and hook.agent not in settings.agents:
                raise Invalid(
                    f"platforms.webhook.hooks.{hook.name}.agent is {hook.agent!r}, and `agents` names no such agent."
                )
    return _connect(name)(own, places)


def places_of(settings: Settings, store: SqlStore) -> Places:
    """Where routes lead. The store is asked in a thread of its own: it may not answer for a while."""
    door = Door(store, OWNER_AT_CONSOLE)

    async def place(route: Route) -> SessionSource | None:
        return await door.read(find_place, route, settings.homes)

    return place


def tools_of_hooks(settings: Settings) -> Mapping[str, Collection[str]]:
    """Which tools of the owner the settings give to hooks, by the name of the hook; the others have none."""
    said = settings.platforms.get(WEBHOOK)
    if said is None or not said.enabled:
        return {}
    return {name: hook.tools for name, hook in read_settings(said.own).hooks.items() if hook.tools is not None}


def _jobs(store: SqlStore, places: Places) -> Platform:
    from segue.gateway.timetable import StoredTimetable  # slow to load, as platforms are
    from segue.platforms.cron.platform import CronPlatform

    return CronPlatform(StoredTimetable(store), places)


def _batches() -> Platform:
    from segue.platforms.batch.platform import BatchPlatform

    return BatchPlatform()


def _programs() -> Platform:
    from segue.platforms.api_server.platform import ApiPlatform

    return ApiPlatform()


def _webhook(own: Mapping[str, Any], places: Places) -> Platform:
    from segue.platforms.webhook.platform import WebhookPlatform

    return WebhookPlatform(read_settings(own), places)


_OURS: Mapping[str, Connect] = {WEBHOOK: _webhook}


def _connect(name: str) -> Connect:
    if name in _OURS:
        return _OURS[name]
    for found in entry_points(group=GROUP, name=name):
        connect: Callable[[Mapping[str, Any]], Platform] = found.load()
        return lambda own, _places: connect(own)
    known = ", ".join(sorted({*_OURS, *(one.name for one in entry_points(group=GROUP))})) or "none"
    raise Invalid(f"platforms.{name} in config.yaml is no platform that is installed here; there are: {known}.")
