"""Resets on machines whose clock is put forward or back, sleeps, or changes with the season.

People speak at real moments; a machine reads them off its own clock, which is not always right. What is decided is
compared with an oracle that has walked through every minute of the calendar and knows nothing of the policy.
"""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate, pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest

from segue.core.ids import LaneKey, SessionId
from segue.core.lifecycle import Lane, Reset, decide
from segue.core.policy import ResetMode, ResetPolicy

DAYS = {
    "America/New_York": ((2025, 3, 9), (2025, 11, 2)),
    "Australia/Lord_Howe": ((2025, 4, 6), (2025, 10, 5)),
    "Pacific/Kiritimati": ((2025, 3, 9), (2024, 12, 31)),
    "UTC": ((2025, 3, 30), (2024, 2, 29)),
}
"""The days on which the clock changes, and where it does not, days like others."""
SPAN = 14 * 1440
"""Minutes of a calendar around such a day."""
HOURS = (0, 1, 2, 3, 4, 23)
SCENES = 250
MESSAGES = 6
STEP, SLEEP = 120, 480


class Calendar:
    """Every minute around a day, read off the wall one after another."""

    def __init__(self, zone: str, day: tuple[int, int, int]) -> None:
        self.zone = ZoneInfo(zone)
        self.begin = datetime(*day, tzinfo=UTC) - timedelta(minutes=SPAN // 2)
        walls = [self.at(minute).astimezone(self.zone).replace(tzinfo=None) for minute in range(SPAN)]
        self._begun = {hour: list(accumulate(_days_begun(walls, hour))) for hour in HOURS}

    def next_day(self, hour: int, after: int) -> int:
        """The minute in which the next day begins at an hour."""
        begun = self._begun[hour]
        return next(minute for minute in range(after + 1, SPAN) if begun[minute] > begun[after])

    def at(self, minute: int) -> datetime:
        return self.begin + timedelta(minutes=minute)

    def days_begun(self, hour: int, after: int, until: int) -> int:
        """How many days have begun, at an hour, after one minute and until another."""
        return self._begun[hour][until] - self._begun[hour][after]


def _days_begun(walls: list[datetime], hour: int) -> list[int]:
    """For each minute, how many days begin in it: on each day only once, however often the clock shows the hour."""
    latest = walls[0].date() - timedelta(days=1)
    counted = []
    for wall in walls:
        day = wall.date() if wall.hour >= hour else wall.date() - timedelta(days=1)
        counted.append(max((day - latest).days, 0))
        latest = max(latest, day)
    return counted


@cache
def calendar(zone: str, day: tuple[int, int, int]) -> Calendar:
    return Calendar(zone, day)


class Scene(NamedTuple):
    """A policy, a clock, and the real minutes at which somebody speaks."""

    policy: ResetPolicy
    clock: Callable[[int], int]
    spoken: list[int]


def scene(dice: random.Random, days: Calendar, clock: str) -> Scene:
    idle = dice.choice([1, 59, 60, 119, 120, 121, 479, 480, 720, 1380, 1440, 1500])
    mode = dice.choice([ResetMode.IDLE, ResetMode.DAILY, ResetMode.BOTH])
    policy = ResetPolicy(mode, dice.choice(HOURS), timedelta(minutes=idle), zone=days.zone)
    moment = SPAN // 2 + dice.randrange(-1440, 1440)
    spoken = [SPAN // 2 - 2000 + dice.randrange(600)]
    for _ in range(MESSAGES - 1):
        last = spoken[-1]
        near = days.next_day(policy.at_hour, last) + dice.choice([-61, -31, -1, 0, 1, 29, 59, 60])
        spoken.append(max(last, dice.choice([last, last + idle - 1, last + idle, last + idle + 1, near, near])))
    if clock == "sleeps":  # nobody is heard meanwhile; what was said is read when the machine wakes
        spoken = [moment + SLEEP if moment < minute < moment + SLEEP else minute for minute in spoken]
    shift = {"put back": -STEP, "put forward": STEP}.get(clock, 0)
    return Scene(policy, lambda minute: minute + shift if minute >= moment else minute, sorted(spoken))


def expected(days: Calendar, policy: ResetPolicy, last: int, now: int) -> bool:
    """Whether a reset is due, by the readings of a clock."""
    is_idle = policy.mode is not ResetMode.DAILY and timedelta(minutes=now - last) > policy.idle
    is_daily = policy.mode is not ResetMode.IDLE and days.days_begun(policy.at_hour, last, now) > 0
    return is_idle or is_daily


def is_reset(days: Calendar, policy: ResetPolicy, last: int, now: int) -> bool:
    lane = Lane(LaneKey("k"), SessionId("s"), days.at(last))
    return isinstance(decide(lane, policy, days.at(now)), Reset)


def put_back(minute: int) -> int:
    return minute - STEP


@pytest.mark.parametrize("clock", ["is right", "put back", "put forward", "sleeps"])
@pytest.mark.parametrize("zone", DAYS)
def test_no_reset_is_wrong(zone: str, clock: str) -> None:
    dice, wrong = random.Random(f"{zone} {clock}"), []
    cases = resets = 0
    for day in DAYS[zone]:
        days = calendar(zone, day)
        for _ in range(SCENES // 2):
            policy, reading, spoken = scene(dice, days, clock)
            for before, after in pairwise(spoken):
                last, now = reading(before), reading(after)
                due = expected(days, policy, last, now)
                if is_reset(days, policy, last, now) is not due:
                    wrong.append((policy, days.at(last), days.at(now), due))
                cases, resets = cases + 1, resets + due
    assert wrong == []
    assert cases == SCENES // 2 * 2 * (MESSAGES - 1)
    assert cases // 5 < resets < cases * 4 // 5, "both happen often"


@pytest.mark.parametrize("zone", DAYS)
def test_a_clock_that_is_put_back_neither_fires_a_reset_nor_keeps_one_back_for_longer_than_the_step(zone: str) -> None:
    dice, days = random.Random(zone), [calendar(zone, day) for day in DAYS[zone]]
    delayed = 0
    for number in range(SCENES):
        here = days[number % 2]
        policy, _, spoken = scene(dice, here, "is right")
        for last, now in pairwise(spoken):  # and after the last word the clock is put back
            is_due, has_fired = expected(here, policy, last, now), is_reset(here, policy, last, put_back(now))
            assert is_due or not has_fired, "fired too early"
            assert is_reset(here, policy, last, put_back(now + STEP)) or not is_due, "kept back for too long"
            assert not is_reset(here, policy, last, put_back(last)), "before the last word nothing is over"
            delayed += is_due and not has_fired
    assert delayed > 20


def test_the_oracle_notices_a_policy_that_forgets_the_seasons() -> None:
    """The same questions, and a policy that takes every day for 24 hours: it must be found out."""
    zone, dice = "America/New_York", random.Random(1)
    days = calendar(zone, DAYS[zone][0])
    standing = days.at(0).astimezone(days.zone).utcoffset()
    assert standing is not None
    wrong = 0
    for _ in range(SCENES):
        policy, _, spoken = scene(dice, days, "is right")
        shifted = policy._replace(zone=UTC, at_hour=int((policy.at_hour - standing.total_seconds() // 3600) % 24))
        for last, now in pairwise(spoken):
            wrong += is_reset(days, shifted, last, now) is not expected(days, policy, last, now)
    assert wrong > 20
