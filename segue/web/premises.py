"""What stands behind the gateway's door: the store, asked beside everything else, and the gateway itself."""

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

from segue.app.connecting import files_of
from segue.app.crew import OFFLINE
from segue.app.serving import Serving
from segue.config import Settings
from segue.core.preferences import Preferences
from segue.core.scope import OWNER_AT_CONSOLE, Scope
from segue.ports.store import Transaction
from segue.sessions.overseeing import Sight
from segue.storage.store import SqlStore
from segue.upkeep.living import is_gone
from segue.upkeep.sweeping import sweep
from segue.web.budgets import AnswerBudget

READERS = 4
"""So many questions are looked up at the same time; the gateway's own work has other hands."""

P = ParamSpec("P")
T = TypeVar("T")


class Premises:
    """A gateway and its store, for those who call."""

    def __init__(self, settings: Settings, store: SqlStore, serving: Serving) -> None:
        self.settings = settings
        self.store = store
        self.gateway = serving.gateway
        self.onlookers = serving.onlookers
        self.probe = serving.probe
        self.sight = Sight(settings.session.main_key, settings.reset_policies, is_gone)
        self._crew = serving.crew
        self.answers = AnswerBudget()
        self._readers = ThreadPoolExecutor(READERS, "segue-reader")

    @property
    def model(self) -> str | None:
        """What answers where nothing else is chosen; None if no model does, or while that is being found out."""
        named = self._crew.named(Preferences())
        return None if named in ("", OFFLINE) else named

    async def read(
        self, scope: Scope, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What is looked up, on one snapshot."""
        return await self.beside(partial(self.store.read, scope, work, *args, **kwargs))

    async def beside(self, work: Callable[[], T]) -> T:
        """Something that takes its time, done by another hand."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def write(
        self, scope: Scope, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self.gateway.door.under(scope).write(work, *args, **kwargs)

    async def glance(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What the program asks for itself, and takes no time."""
        return await self.gateway.door.under(OWNER_AT_CONSOLE).glance(work, *args, **kwargs)

    def sweep(self, files: Collection[str]) -> int:
        """Remove files of what was removed, unless something else needs them."""
        return sweep(self.store, files_of(self.settings), files)

    def close(self) -> None:
        self._readers.shutdown(wait=False, cancel_futures=True)
