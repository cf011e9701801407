"""Waiting for a condition: every wait of the tests ends when the condition holds, or fails after `DEADLINE`.

A deadline says that something is broken, never that the machine is slow: it is far longer than any of these waits
takes on a busy machine with one core.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

DEADLINE = 120.0
"""Seconds after which a condition that does not hold counts as one that never will."""
POLL_INTERVAL = 0.01


async def until(
    condition: Callable[[], object | Awaitable[object]], what: str = "the condition", seconds: float = DEADLINE
) -> None:
    """Return as soon as the condition is true; raise TimeoutError, which names `what`, when it never becomes so."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if (await found) if inspect.isawaitable(found) else found:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} was not reached within {seconds:g} s")
        await asyncio.sleep(POLL_INTERVAL)


def wait_until(condition: Callable[[], object], what: str = "the condition", seconds: float = DEADLINE) -> None:
    """As `until`, for tests without an event loop."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} was not reached within {seconds:g} s")
        time.sleep(POLL_INTERVAL)
