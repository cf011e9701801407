"""Waiting for others by the clock, not by a number of tries."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from segue.core.errors import StoreBusy, StoreConflict

T = TypeVar("T")

PATIENCE = 30.0
SHORTEST_WAIT, LONGEST_WAIT = 0.020, 0.150


def patiently(attempt: Callable[[float], T], patience: float = PATIENCE) -> T:
    """Try until it works or patience is over; `attempt` is told how many seconds are left."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return attempt(deadline - time.monotonic())
        except StoreBusy as error:
            if time.monotonic() >= deadline:
                raise
            # Chance keeps waiting writers from coming back all at once. Who lost a race has waited already.
            shortest, longest = (
                (0.0, SHORTEST_WAIT) if isinstance(error, StoreConflict) else (SHORTEST_WAIT, LONGEST_WAIT)
            )
            time.sleep(random.uniform(shortest, longest))
