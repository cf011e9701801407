"""SIGTERM and SIGHUP: a chat is left as by /quit, then the process ends by the signal.

The answer that is being written is left open, so that whoever resumes the session gets the rest of it.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Termination:
    """Cancels the task that it was entered in when a signal arrives, and raises the signal again on leaving."""

    def __init__(self) -> None:
        self._received: signal.Signals | None = None
        self._first: list[Callable[[], None]] = []
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}

    def __enter__(self) -> Self:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        for number in self._heeded():
            loop.add_signal_handler(number, self._receive, number, task)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        loop = asyncio.get_running_loop()
        for number in self._heeded():
            loop.remove_signal_handler(number)
            signal.signal(number, self._before[number])
        if self._received is not None:
            with suppress(OSError):  # the terminal is gone
                sys.stdout.flush()
            os.kill(os.getpid(), self._received)

    def call_first(self, act: Callable[[], None]) -> None:
        """Do this when a signal arrives, before the task is cancelled."""
        self._first.append(act)

    def _heeded(self) -> list[signal.Signals]:
        return [number for number in _SIGNALS if self._before[number] is not signal.SIG_IGN]  # as nohup has it

    def _receive(self, number: signal.Signals, task: "asyncio.Task[object]") -> None:
        if self._received is not None:
            return  # a closed window sends SIGHUP twice
        self._received = number
        for act in self._first:
            act()
        task.cancel()
