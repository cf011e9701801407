"""Ctrl-C while an agent works."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def calling(on_interrupt: Callable[[], None]) -> Iterator[None]:
    """SIGINT calls a function in the event loop, and afterwards does what it did before."""
    before = signal.getsignal(signal.SIGINT)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
