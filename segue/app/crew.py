"""Who answers: a model that was chosen or found, somebody's own agent, or the one that needs no model."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from segue.agent.callables import CallableAgent
from segue.agent.choosing import Endpoint, ModelName, NotChosen, choose, endpoints_from, local_endpoints
from segue.agent.loop import Loop
from segue.agent.offline import OfflineAgent
from segue.agent.providers.model import ProviderModel, warm_up
from segue.agent.trying import Trying
from segue.config import Settings
from segue.core.errors import Invalid, UnknownModel
from segue.core.preferences import Preferences
from segue.core.prices import terms_of
from segue.ports.agent import Agent
from segue.ports.model import Model
from segue.ports.tool import Tool

OFFLINE = "offline"


class Crew:
    """Finds out what can answer, beside whatever else goes on, and makes agents of it."""

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        tools: Sequence[Tool],
        offline: OfflineAgent,
        tell: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._tools = tools
        self._offline = offline
        self._tell = tell
        self._endpoints = endpoints_from(environ, _configured(settings))
        self._models: dict[tuple[str, str], ProviderModel] = {}
        self._looking = threading.Thread(target=self._look, daemon=True)
        self._looking.start()

    async def agent_for(self, chosen: Preferences) -> Agent:
        """The agent that answers now."""
        if self._settings.agent.entry:
            return CallableAgent(_loaded(self._settings.agent.entry))
        await asyncio.to_thread(self._looking.join)
        first = self._choose(chosen.model)
        if isinstance(first, NotChosen):
            if chosen.model or self._settings.model:
                raise UnknownModel(first.sentence)
            return self._offline
        others = [self._choose(name) for name in self._settings.models.fallback]
        named = dict.fromkeys([first, *(one for one in others if isinstance(one, ModelName))])
        return Loop([Trying(self._model(one), self._tell) for one in named], self._tools)

    async def auxiliary(self, chosen: Preferences) -> tuple[Model, int | None] | None:
        """The model that summarises and names, and what it can read; nothing when there is none."""
        await asyncio.to_thread(self._looking.join)
        found = self._choose(self._settings.auxiliary.model or chosen.model)
        if isinstance(found, NotChosen):
            return None
        return self._model(found), self._settings.models.windows.get(found.name)

    def named(self, chosen: Preferences) -> str:
        """What answers now, as people call it; nothing while that is being found out."""
        if self._settings.agent.entry:
            return self._settings.agent.entry
        if self._looking.is_alive():
            return ""
        found = self._choose(chosen.model)
        return OFFLINE if isinstance(found, NotChosen) else f"{found.endpoint.provider}/{found.name}"

    def resolve(self, name: str) -> str:
        """The model that a name means."""
        self._looking.join()
        found = self._choose(name)
        if isinstance(found, NotChosen):
            raise UnknownModel(found.sentence)
        return f"{found.endpoint.provider}/{found.name}"

    async def close(self) -> None:
        for model in self._models.values():
            await model.aclose()

    def _look(self) -> None:
        """A server on this machine counts only when nothing else was said; then what is used is loaded."""
        if not self._endpoints or self._settings.model.partition("/")[0] in ("ollama", "lmstudio"):
            self._endpoints += local_endpoints()
        found = self._choose(None)
        if isinstance(found, ModelName):
            try:
                warm_up(found.endpoint.kind)
            except ImportError:
                return  # told by whoever asks

    def _choose(self, name: str | None) -> ModelName | NotChosen:
        return choose(name or self._settings.model or None, self._settings.models.aliases, self._endpoints)

    def _model(self, chosen: ModelName) -> ProviderModel:
        key = (chosen.endpoint.provider, chosen.name)
        if key not in self._models:
            known = self._settings.models
            terms = terms_of(chosen.endpoint.provider, chosen.name, known.prices, known.windows)
            self._models[key] = ProviderModel(chosen.endpoint, chosen.name, terms=terms)
        return self._models[key]


def _configured(settings: Settings) -> list[Endpoint]:
    return [
        Endpoint(name, one.kind.value, one.base_url, one.api_key, f"providers.{name}.api_key")
        for name, one in settings.providers.items()
    ]


def _loaded(entry: str) -> Callable[..., object]:
    module, _, name = entry.partition(":")
    try:
        found: object = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise Invalid(f"agent.entry is {entry}, which cannot be loaded: {error}.") from error
    if not callable(found):
        raise Invalid(f"agent.entry is {entry}, which is no function.")
    return found
