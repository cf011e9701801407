"""Waiting for others by the clock, not by a number of tries."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from segue.core.errors import StoreBusy, StoreConflict, StoreTaken
from segue.storage.waiting import A_WRITER, NOTICE_SECONDS, tell_wait

T = TypeVar("T")

PATIENCE = 30.0
MOMENT = 0.005
"""As long may somebody wait who has other things to do."""
MOST_CLASHES = 5
"""Somebody who was first by a moment is seen the next time; who is still in the way then will stay there."""
PAUSES = (0.020, 0.150)
"""The shortest and the longest, in seconds."""


def patiently(
    attempt: Callable[[float], T],
    patience: float = PATIENCE,
    pauses: tuple[float, float] = PAUSES,
    awaited: str = A_WRITER,
) -> T:
    """Try until it works or patience is over; `attempt` is told how many seconds are left.

    What is `awaited` is told after a second.
    """
    began = time.monotonic()
    deadline = began + patience
    clashes, is_told = 0, False
    while True:
        try:
            return attempt(deadline - time.monotonic())
        except StoreBusy as error:
            clashes += isinstance(error, StoreTaken)
            if time.monotonic() >= deadline or clashes == MOST_CLASHES:
                raise
            if not is_told and time.monotonic() - began >= NOTICE_SECONDS:
                is_told = True
                tell_wait(awaited)
            # Chance keeps waiting writers from coming back all at once. Who lost a race has waited already.
            time.sleep(random.uniform(*(0.0, PAUSES[0]) if isinstance(error, StoreConflict) else pauses))
