"""Waiting for others by the clock, not by a number of tries."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from segue.core.errors import StoreBusy, StoreConflict, StoreTaken

T = TypeVar("T")

PATIENCE = 30.0
MOMENT = 0.005
"""As long may somebody wait who has other things to do."""
MOST_CLASHES = 5
"""Somebody who was first by a moment is seen the next time; who is still in the way then will stay there."""
PAUSES = (0.020, 0.150)
"""The shortest and the longest, in seconds."""


def patiently(attempt: Callable[[float], T], patience: float = PATIENCE, pauses: tuple[float, float] = PAUSES) -> T:
    """Try until it works or patience is over; `attempt` is told how many seconds are left."""
    deadline = time.monotonic() + patience
    clashes = 0
    while True:
        try:
            return attempt(deadline - time.monotonic())
        except StoreBusy as error:
            clashes += isinstance(error, StoreTaken)
            if time.monotonic() >= deadline or clashes == MOST_CLASHES:
                raise
            # Chance keeps waiting writers from coming back all at once. Who lost a race has waited already.
            time.sleep(random.uniform(*(0.0, PAUSES[0]) if isinstance(error, StoreConflict) else pauses))
