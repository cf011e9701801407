"""Asking again: a model that was too busy or out of reach is asked once more, as long as nothing was shown."""

import asyncio
import copy
import random
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import NamedTuple

from segue.core.errors import ModelError, ModelUnavailable, RateLimited, StreamBroken, Unreachable
from segue.core.events import Reasoning, Reply, Text
from segue.core.text import count
from segue.ports.model import Model, Request

MOST_TRIES = 4
LONGEST_SECONDS = 60.0
"""Of all tries together, the waiting between them included."""
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 20.0
_PASSING = (RateLimited, ModelUnavailable, StreamBroken)


class Wait(NamedTuple):
    """Ask again after so many seconds."""

    seconds: float


class GiveUp(NamedTuple):
    """What went wrong stays so, for all that waiting could do."""


def decide(
    error: ModelError, tries: int, elapsed: float, chance: float, *, has_begun: bool = False, has_other: bool = False
) -> Wait | GiveUp:
    """What is done about an error after so many tries and seconds; `chance`, from 0 to 1, spreads those who wait.

    With another model to ask, nobody waits for one that is not there at all.
    """
    if has_begun or not isinstance(error, _PASSING) or tries >= MOST_TRIES:
        return GiveUp()
    if has_other and isinstance(error, Unreachable):
        return GiveUp()
    pause = min(_FIRST_PAUSE * 2 ** (tries - 1), _LONGEST_PAUSE) * (0.5 + chance / 2)
    asked = error.retry_after if isinstance(error, RateLimited) else None
    seconds = pause if asked is None else max(asked, 0.0) + pause / 10
    return Wait(seconds) if elapsed + seconds <= LONGEST_SECONDS else GiveUp()


class Trying:
    """A model that is asked again when asking again may help; `has_other` says that another stands in for it."""

    def __init__(self, model: Model, tell: Callable[[str], None], *, has_other: bool = False) -> None:
        self.name = model.name
        self.provider = model.provider
        self._model = model
        self._tell = tell
        self._has_other = has_other

    async def stream(self, request: Request) -> AsyncGenerator[Text | Reasoning | Reply]:
        began, tries, told = time.monotonic(), 0, set[str]()
        while True:
            tries += 1
            has_begun = False
            try:
                async with aclosing(self._model.stream(request)) as pieces:
                    async for piece in pieces:
                        has_begun = True
                        yield piece
            except ModelError as error:
                elapsed, chance = time.monotonic() - began, random.random()
                decision = decide(error, tries, elapsed, chance, has_begun=has_begun, has_other=self._has_other)
                if isinstance(decision, GiveUp):
                    if tries == 1:
                        raise
                    raise _counted(error, tries) from error
                if str(error) not in told:
                    told.add(str(error))
                    seconds = count(round(decision.seconds) or 1, "second")
                    self._tell(f"{error} Asking again in {seconds}, and at most {MOST_TRIES} times in all.")
                await asyncio.sleep(decision.seconds)
            else:
                return


def _counted(error: ModelError, tries: int) -> ModelError:
    """The same error, with how often it came."""
    counted = copy.copy(error)
    counted.args = (f"{error} It was asked {tries} times.",)
    return counted
