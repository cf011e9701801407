"""Which turns run at once, and which lanes wait in line for one.

Whoever has the fewest turns is next, so that nobody waits for everything that another person has asked.
"""

from collections import Counter, deque
from collections.abc import Collection
from typing import NamedTuple


class TurnLimits(NamedTuple):
    """How many turns run at once."""

    in_all: int = 64
    per_person: int = 4


USUAL_LIMITS = TurnLimits()


class TurnSlots:
    """The turns of one gateway, by lane."""

    def __init__(self, limits: TurnLimits, exempt: Collection[str] = ()) -> None:
        """Those who are exempt have no limit of their own."""
        self._limits = limits
        self._exempt = frozenset(exempt)
        self._taken: dict[str, str] = {}
        """Whose turn runs in each lane, or may begin there."""
        self._reserved: set[str] = set()
        """Lanes in which a turn may begin that has not begun yet."""
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, str] = {}
        """Whose turn waits in each lane."""
        self._line: dict[str, dict[str, None]] = {}
        """The lanes of each person that wait, in order."""
        self._persons: deque[str] = deque()
        """Those who wait; of several with as few turns, the first is next."""

    def __len__(self) -> int:
        return len(self._taken)

    def is_waiting(self, lane: str) -> bool:
        """Whether a lane waits in line."""
        return lane in self._waiting

    def begin(self, lane: str, person: str) -> bool:
        """Begin a turn, or wait in line if there are too many; whether it may begin now."""
        if lane not in self._taken:
            if len(self._taken) >= self._limits.in_all or not self._has_room(person):
                self._wait(lane, person)
                return False
            self._leave_line(lane)
            self._take(lane, person)
        self._reserved.discard(lane)
        return True

    def end(self, lane: str) -> list[str]:
        """End the turn of a lane; in which lanes turns may begin now."""
        self._leave_line(lane)
        self._reserved.discard(lane)
        if (person := self._taken.pop(lane, None)) is not None:
            self._running[person] -= 1
            if not self._running[person]:
                del self._running[person]
        return self._admit()

    def release(self, lane: str) -> list[str]:
        """Give up what was reserved for a lane in which nothing is to be answered after all."""
        return self.end(lane) if lane in self._reserved else []

    def _admit(self) -> list[str]:
        """Reserve what is free for lanes that wait."""
        admitted: list[str] = []
        while len(self._taken) < self._limits.in_all:
            persons = [one for one in self._persons if self._has_room(one)]
            if not persons:
                break
            person = min(persons, key=lambda one: self._running[one])
            self._persons.remove(person)
            self._persons.append(person)
            lane = next(iter(self._line[person]))
            self._leave_line(lane)
            self._take(lane, person)
            self._reserved.add(lane)
            admitted.append(lane)
        return admitted

    def _has_room(self, person: str) -> bool:
        return person in self._exempt or self._running[person] < self._limits.per_person

    def _take(self, lane: str, person: str) -> None:
        self._taken[lane] = person
        self._running[person] += 1

    def _wait(self, lane: str, person: str) -> None:
        if lane in self._waiting:
            return
        self._waiting[lane] = person
        if person not in self._line:
            self._line[person] = {}
            self._persons.append(person)
        self._line[person][lane] = None

    def _leave_line(self, lane: str) -> None:
        person = self._waiting.pop(lane, None)
        if person is None:
            return
        lanes = self._line[person]
        del lanes[lane]
        if not lanes:
            del self._line[person]
            self._persons.remove(person)
