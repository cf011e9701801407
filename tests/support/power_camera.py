"""Pictures of a disk without its power, taken at changes of chance."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import NamedTuple

from power import Disk, Image
from told_files import Change

CUTS_AT_ONCE = 3
LATER = 40
"""So many changes at most happen before the log is taken in beside them."""


class Moment(NamedTuple):
    """What the disk was left with, and at which change."""

    image: Image
    change: Change

    def __str__(self) -> str:
        return f"{self.change.kind} of {self.change.name}"


class Camera:
    """Takes pictures of a disk at a few of its changes, each as likely as any other."""

    def __init__(self, disk: Disk, chance: random.Random) -> None:
        self._disk = disk
        self._chance = chance
        self._changes = 0
        self._taken: list[Moment] | None = None
        self._waiting: Callable[[], object] | None = None
        self._changes_left = 0

    @property
    def has_work_waiting(self) -> bool:
        return self._waiting is not None

    def told(self, change: Change) -> None:
        self._picture(change)
        self._disk.take(change)
        self._changes_left -= 1
        if self._changes_left <= 0:
            self.do_what_waits()

    def later(self, *, target: Callable[[], object], **_how: object) -> SimpleNamespace:
        """As a thread, whose work is done in the middle of some later change."""

        def start() -> None:
            self._waiting, self._changes_left = target, self._chance.randrange(LATER)

        return SimpleNamespace(start=start)

    def do_what_waits(self) -> None:
        work, self._waiting = self._waiting, None
        if work is not None:
            work()

    @contextmanager
    def on(self) -> Iterator[list[Moment]]:
        self._changes, self._taken = 0, []
        try:
            yield self._taken
        finally:
            self._taken = None

    def _picture(self, change: Change) -> None:
        if self._taken is None:
            return
        self._changes += 1
        for number in range(CUTS_AT_ONCE):
            if self._changes == 1:
                self._taken.append(Moment(self._disk.without_power(self._chance), change))
            elif self._chance.random() < 1 / self._changes:
                self._taken[number] = Moment(self._disk.without_power(self._chance), change)
