"""Who answers: a model that was chosen or found, somebody's own agent, or the one that needs no model."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence

from segue.agent.callables import CallableAgent
from segue.agent.choosing import (
    LOCAL,
    ModelName,
    NotChosen,
    choose,
    endpoints_from,
    local_endpoints,
    meant,
    provider_in,
    with_listed_models,
)
from segue.agent.loop import Loop
from segue.agent.providers.model import ProviderModel, warm_up
from segue.agent.trying import Trying
from segue.app.checking import configured, named_models
from segue.app.entry import load_entry
from segue.config import Settings
from segue.core.errors import UnknownModel
from segue.core.preferences import Preferences
from segue.core.prices import Terms, terms_of
from segue.ports.agent import Agent
from segue.ports.model import Model
from segue.ports.tool import Tool
from segue.upkeep.crashes import record_agent_error

OFFLINE = "offline"
MAX_WAIT = 10.0
"""Seconds for which somebody waits until it is known what answers."""


def _nobody_waits() -> None: ...


class Crew:
    """Finds out what can answer, beside whatever else goes on, and makes agents of it."""

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        tell: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._tell = tell
        self._endpoints = endpoints_from(environ, configured(settings))
        self._models: dict[tuple[str, str], ProviderModel] = {}
        self._has_looked_here = False
        self._is_fallback_told = False
        self._is_known = threading.Event()
        self._now_known = _nobody_waits
        self._looking = threading.Thread(target=self._look, daemon=True)
        self._looking.start()

    async def agent_for(self, chosen: Preferences, tools: Sequence[Tool], offline: Agent) -> Agent:
        """The agent that answers now, with these tools if it is ours; `offline` when there is no model."""
        if self._settings.agent.entry:
            function = load_entry(self._settings.agent.entry, self._settings.home)
            return CallableAgent(function, lambda error: str(record_agent_error(self._settings.home, error)))
        await asyncio.to_thread(self._looking.join)
        await asyncio.to_thread(self._look_here_for, chosen.model or "")
        first = self._choose(chosen.model)
        if isinstance(first, NotChosen):
            if chosen.model or self._settings.model:
                raise UnknownModel(self._unknown(chosen.model, first))
            return offline
        named = list(dict.fromkeys([first, *self._stand_ins()]))
        last = len(named) - 1
        trying = [Trying(self._model(one), self._tell, has_other=at < last) for at, one in enumerate(named)]
        return Loop(trying, tools)

    def when_known(self, call: Callable[[], None]) -> None:
        """Have something called, in any thread, as soon as it is known what answers."""
        self._now_known = call
        if self._is_known.is_set():
            call()

    async def auxiliary(self, chosen: Preferences) -> tuple[Model, int | None] | None:
        """The model that summarises and names, and what it can read; nothing when there is none."""
        await asyncio.to_thread(self._looking.join)
        found = self._choose(self._settings.auxiliary.model or chosen.model)
        if isinstance(found, NotChosen):
            return None
        return self._model(found), self._terms(found).window

    def named(self, chosen: Preferences) -> str:
        """What answers now, as people call it; nothing while that is being found out."""
        if self._settings.agent.entry:
            return self._settings.agent.entry
        if not self._is_known.is_set():
            return ""
        found = self._choose(chosen.model)
        if isinstance(found, ModelName):
            return f"{found.endpoint.provider}/{found.name}"
        wanted = chosen.model or self._settings.model
        return f"{wanted} (not there)" if wanted else OFFLINE

    def public_name(self, chosen: Preferences) -> str:
        """Return what answers now for people who are not owners: without a provider or a path."""
        if self._settings.agent.entry:
            return "a custom agent"
        if not self._is_known.is_set():
            return ""
        found = self._choose(chosen.model)
        if isinstance(found, ModelName):
            return found.name.rpartition("/")[2]
        return "not available" if chosen.model or self._settings.model else OFFLINE

    async def is_offline(self, chosen: Preferences) -> bool:
        """Whether there is no model that would answer."""
        await asyncio.to_thread(self._looking.join)
        return self.named(chosen) == OFFLINE

    async def until_known(self) -> None:
        """Wait until it is known what answers, for a limited time."""
        await asyncio.to_thread(self._is_known.wait, MAX_WAIT)

    def can_greet(self, chosen: Preferences, max_wait: float = 0.0) -> bool:
        """True if the settings want it and it is known that a model of ours answers."""
        if not self._settings.session.greet or self._settings.agent.entry:
            return False
        return self._is_known.wait(max_wait) and isinstance(self._choose(chosen.model), ModelName)

    def resolve(self, name: str) -> str:
        """The model that a name means."""
        self._is_known.wait()
        self._look_here_for(name)
        found = self._choose(name)
        if isinstance(found, NotChosen):
            raise UnknownModel(found.sentence)
        return f"{found.endpoint.provider}/{found.name}"

    def meant(self, word: str) -> str | None:
        """The model that a word names for certain, as far as it is known who answers."""
        return meant(word, self._settings.models.aliases, self._endpoints) if self._is_known.is_set() else None

    async def close(self) -> None:
        for model in self._models.values():
            await model.aclose()

    def _look(self) -> None:
        """A server on this machine counts when nothing else is there or somebody named it; what is used is loaded."""
        self._endpoints = [with_listed_models(one) for one in self._endpoints]
        if not self._endpoints:
            self._look_here()
        for name in named_models(self._settings).values():
            self._look_here_for(name)
        self._is_known.set()
        self._now_known()
        if self._settings.agent.entry:
            return
        found = self._choose(None)
        if isinstance(found, ModelName):
            try:
                warm_up(found.endpoint.kind)
            except ImportError:
                return  # told by whoever asks

    def _look_here_for(self, name: str) -> None:
        if provider_in(self._settings.models.aliases.get(name, name)) in dict(LOCAL):
            self._look_here()

    def _look_here(self) -> None:
        if not self._has_looked_here:
            self._has_looked_here = True
            there = {endpoint.provider for endpoint in self._endpoints}
            self._endpoints += [endpoint for endpoint in local_endpoints() if endpoint.provider not in there]

    def _stand_ins(self) -> list[ModelName]:
        """The models that are asked when the first does not answer; of those that cannot be, people are told once."""
        found = {name: self._choose(name) for name in self._settings.models.fallback}
        if not self._is_fallback_told:
            for name, one in found.items():
                if isinstance(one, NotChosen):
                    self._tell(f"models.fallback names {name}, which is left out: {one.sentence}")
            self._is_fallback_told = True
        return [one for one in found.values() if isinstance(one, ModelName)]

    def _unknown(self, chosen: str | None, why: NotChosen) -> str:
        return why.sentence if chosen else f"In config.yaml, model is {self._settings.model}: {why.sentence}"

    def _choose(self, name: str | None) -> ModelName | NotChosen:
        return choose(name or self._settings.model or None, self._settings.models.aliases, self._endpoints)

    def _model(self, chosen: ModelName) -> ProviderModel:
        key = (chosen.endpoint.provider, chosen.name)
        if key not in self._models:
            self._models[key] = ProviderModel(chosen.endpoint, chosen.name, terms=self._terms(chosen))
        return self._models[key]

    def _terms(self, chosen: ModelName) -> Terms:
        known = self._settings.models
        return terms_of(chosen.endpoint.provider, chosen.name, known.prices, known.windows)
