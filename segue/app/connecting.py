"""Which platforms a gateway connects to: those that the settings name, ours and those of others."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from importlib.metadata import entry_points
from typing import Any

from segue.config import Settings
from segue.core.errors import Invalid
from segue.core.routes import Homes
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sources import WEBHOOK, SessionSource
from segue.platforms.webhook.settings import read_settings
from segue.ports.platform import Platform
from segue.sessions.handing import find_home
from segue.storage.store import SqlStore

GROUP = "segue.platforms"

Connect = Callable[[Mapping[str, Any], Homes], Platform]


def platforms_of(settings: Settings, store: SqlStore) -> list[Platform]:
    """Every platform that is enabled, ready to be connected; jobs always are."""
    homes = partial(_home, settings, store)
    named = [_connect(name)(said.own, homes) for name, said in settings.platforms.items() if said.enabled]
    return [*named, _jobs(store, homes)]


def tools_of_hooks(settings: Settings) -> Mapping[str, Collection[str]]:
    """Which tools of the owner the settings give to hooks, by the name of the hook; the others have none."""
    said = settings.platforms.get(WEBHOOK)
    if said is None or not said.enabled:
        return {}
    return {name: hook.tools for name, hook in read_settings(said.own).hooks.items() if hook.tools is not None}


def _home(settings: Settings, store: SqlStore, platform: str) -> SessionSource | None:
    return store.read(OWNER_AT_CONSOLE, find_home, platform, settings.homes)


def _jobs(store: SqlStore, homes: Homes) -> Platform:
    from segue.gateway.timetable import StoredTimetable  # slow to load, as platforms are
    from segue.platforms.cron.platform import CronPlatform

    return CronPlatform(StoredTimetable(store), homes)


def _webhook(own: Mapping[str, Any], homes: Homes) -> Platform:
    from segue.platforms.webhook.platform import WebhookPlatform

    return WebhookPlatform(read_settings(own), homes)


_OURS: Mapping[str, Connect] = {WEBHOOK: _webhook}


def _connect(name: str) -> Connect:
    if name in _OURS:
        return _OURS[name]
    for found in entry_points(group=GROUP, name=name):
        connect: Callable[[Mapping[str, Any]], Platform] = found.load()
        return lambda own, _homes: connect(own)
    known = ", ".join(sorted({*_OURS, *(one.name for one in entry_points(group=GROUP))})) or "none"
    raise Invalid(f"platforms.{name} in config.yaml is no platform that is installed here; there are: {known}.")
