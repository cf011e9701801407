"""Pictures of a disk without its power, taken at changes of chance."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import NamedTuple

from power import Disk, Image
from told_files import Change, Kind

LATER = 40
"""So many changes at most happen before the log is taken in beside them."""


class Moment(NamedTuple):
    """What the disk was left with, and what was about to be done to it."""

    image: Image
    at: str

    def __repr__(self) -> str:
        return f"<{self.at}>"


class _Choice:
    """One of the changes that come along, each as likely as any other."""

    def __init__(self, kinds: set[Kind]) -> None:
        self._kinds = kinds
        self._seen = 0
        self.moment: Moment | None = None

    def offer(self, change: Change, disk: Disk, chance: random.Random) -> None:
        if change.kind in self._kinds:
            self._seen += 1
            if chance.random() < 1 / self._seen:
                self.moment = Moment(disk.without_power(chance), f"{change.kind} of {change.name}")


class Camera:
    """Takes pictures of a disk while it is on; and hands on what happens to it."""

    def __init__(self, disk: Disk, chance: random.Random) -> None:
        self._disk = disk
        self._chance = chance
        self._choices: list[_Choice] = []
        self._waiting: Callable[[], object] | None = None
        self._changes_left = 0
        self._lock = threading.Lock()

    def told(self, change: Change) -> None:
        with self._lock:
            for choice in self._choices:
                choice.offer(change, self._disk, self._chance)
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
        """What was taken is in the list as soon as it is off."""
        taken: list[Moment] = []
        choices = [_Choice(set(Kind)), _Choice(set(Kind)), _Choice(set(Kind) - {Kind.WRITE})]
        with self._lock:
            self._choices = choices
        yield taken
        with self._lock:
            self._choices = []
        taken += [choice.moment for choice in choices if choice.moment]

    def now(self) -> Moment:
        with self._lock:
            return Moment(self._disk.without_power(self._chance), "moment of rest")
