"""Which platforms a gateway connects to: those that the settings name, ours and those of others."""

import sys
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from importlib.metadata import entry_points
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from segue.agent.door import Door
from segue.config import Settings
from segue.config.substitution import unset_in
from segue.core.errors import Invalid, SegueError
from segue.core.keys import DEFAULT_AGENT
from segue.core.routes import Places, Route
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sources import ALWAYS_CONNECTED, API_SERVER, BATCH, CRON, WEBHOOK, SessionSource
from segue.platforms.api_server.settings import read_settings as read_api_settings
from segue.platforms.batch.settings import read_settings as read_batch_settings
from segue.platforms.cron.settings import read_settings as read_cron_settings
from segue.platforms.webhook.settings import read_settings
from segue.ports.platform import Equipment, Platform
from segue.sessions.handing import find_place
from segue.storage.attachments import AttachmentFolder
from segue.storage.store import SqlStore

GROUP = "segue.platforms"
_MOST_FOLDERS = 8

Connect = Callable[[Mapping[str, Any], Equipment], Platform]


class Cast(NamedTuple):
    """The platforms that a gateway connects to, and why it does not connect to others."""

    platforms: list[Platform]
    missing: dict[str, str]
    """A sentence for each that is named and cannot be made."""


def cast_of(settings: Settings, store: SqlStore) -> Cast:
    """Every platform that is enabled, ready to be connected; jobs, batches and programs always are."""
    places = places_of(settings, store)
    named: list[Platform] = []
    missing: dict[str, str] = {}
    for name, said in settings.platforms.items():
        if name in ALWAYS_CONNECTED:
            check_platform(settings, name)
        elif said.enabled:
            try:
                named.append(_made(settings, name, places))
            except Invalid as error:
                missing[name] = str(error)
    return Cast([*named, _jobs(store, places), _batches(), _programs()], missing)


def platforms_of(settings: Settings, store: SqlStore) -> list[Platform]:
    """The same, where all have to be there."""
    found = cast_of(settings, store)
    for sentence in found.missing.values():
        raise Invalid(sentence)
    return found.platforms


def check_platform(settings: Settings, name: str) -> None:
    """Whether a platform could be connected, as far as its settings say; raises when it could not."""

    async def nowhere(_route: Route) -> SessionSource | None:
        return None

    if name in ALWAYS_CONNECTED:
        _ALWAYS_THERE[name](settings.platforms[name].own)
    else:
        _made(settings, name, nowhere)


def files_of(settings: Settings) -> AttachmentFolder:
    """Where what people send along is kept."""
    caps = settings.attachments
    return _folder(settings.home / "attachments", caps.largest_mb * 1_000_000, caps.total_mb * 1_000_000)


@lru_cache(_MOST_FOLDERS)
def _folder(path: Path, largest: int, most: int) -> AttachmentFolder:
    """One for everybody in this process: it knows how much there is."""
    return AttachmentFolder(path, largest, most)


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
    equipment = Equipment(places, files_of(settings), settings.home / "platforms" / name)
    try:
        return _connect(name)(own, equipment)
    except SegueError:
        raise
    except ImportError as error:
        raise Invalid(_not_installed(name, error)) from error
    except Exception as error:  # of an adapter of others anything may come, and the rest begins
        raise Invalid(
            f"platforms.{name} cannot be made by what is installed for it: {type(error).__name__}: {error}."
        ) from error


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
    try:
        hooks = read_settings(said.own).hooks
    except Invalid:
        return {}  # the platform is left out, and the log says why
    return {name: hook.tools for name, hook in hooks.items() if hook.tools is not None}


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


def _webhook(own: Mapping[str, Any], equipment: Equipment) -> Platform:
    from segue.platforms.webhook.platform import WebhookPlatform

    return WebhookPlatform(read_settings(own), equipment.places)


def _telegram(own: Mapping[str, Any], equipment: Equipment) -> Platform:
    from segue.platforms.telegram.platform import TelegramPlatform
    from segue.platforms.telegram.settings import read_settings

    return TelegramPlatform(read_settings(own), equipment.files)


def _matrix(own: Mapping[str, Any], equipment: Equipment) -> Platform:
    from segue.platforms.matrix.platform import MatrixPlatform
    from segue.platforms.matrix.settings import read_settings

    return MatrixPlatform(read_settings(own), equipment)


_ALWAYS_THERE: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    API_SERVER: read_api_settings,
    BATCH: read_batch_settings,
    CRON: read_cron_settings,
}
_OURS: Mapping[str, Connect] = {"matrix": _matrix, "telegram": _telegram, WEBHOOK: _webhook}


def _connect(name: str) -> Connect:
    if name in _OURS:
        return _OURS[name]
    for found in entry_points(group=GROUP, name=name):
        return _of_others(found.load())
    known = ", ".join(sorted({*_OURS, *_ALWAYS_THERE, *(one.name for one in entry_points(group=GROUP))})) or "none"
    raise Invalid(f"platforms.{name} in config.yaml is no platform that is installed here; there are: {known}.")


def _of_others(connect: Callable[..., Platform]) -> Connect:
    """What somebody else's function makes; it may want the equipment, too."""
    takes_equipment = len(signature(connect).parameters) > 1
    return connect if takes_equipment else lambda own, _equipment: connect(own)


def _not_installed(name: str, error: ImportError) -> str:
    """What is missing, and how to get it if it is part of an extra."""
    what, extra = error.name or str(error), f"'segue[{name}]'"
    advice = f": install Segue as {extra}, into the Python that runs it, {sys.executable}" if name in _OURS else ""
    return f"platforms.{name} needs what is not installed here ({what}){advice}."
