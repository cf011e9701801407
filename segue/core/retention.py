"""When something that has served its time may go: never before it was announced, and a day given to object."""

from typing import NamedTuple

from segue.core.moments import DAY


class Announcement(NamedTuple):
    """Somebody was told at a moment that everything older than another moment would go."""

    at: float
    before: float

    @property
    def due_at(self) -> float:
        return self.at + DAY


class Wait(NamedTuple):
    """Nothing has served its time, or the day is not over."""


class Announce(NamedTuple):
    """Tell that everything older than a moment goes in a day."""

    announcement: Announcement


class Remove(NamedTuple):
    """The day is over: everything older than a moment goes."""

    before: float


Decision = Wait | Announce | Remove


def decide(oldest: float | None, days: float, now: float, announced: Announcement | None) -> Decision:
    """What to do about things that are kept for a number of days, the oldest of which dates from a moment."""
    expired = now - days * DAY
    if announced is not None:
        return Remove(min(announced.before, expired)) if now >= announced.due_at else Wait()
    if oldest is not None and oldest < expired + DAY:  # by the time the day is over, it will have served its time
        return Announce(Announcement(now, min(expired + DAY, now)))
    return Wait()
