"""When a lane expires, checked against a clock on the wall that is read minute by minute."""

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

from segue.core.policy import (
    NEVER,
    ResetMode,
    ResetPolicies,
    ResetPolicy,
    ResetReason,
    ResetRule,
    first_instant,
    next_boundary,
)

ZONES = (
    *("UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Kiritimati", "Pacific/Apia"),
    *("Asia/Kathmandu", "America/St_Johns", "Africa/Casablanca"),
)
YEARS = (1985, 1994, 2010, 2011, 2025)  # between them these zones change their clocks in every way there is
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def utc(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


def wall_clock(instant: datetime, zone: str) -> datetime:
    return instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


# The oracle. It only ever asks what the clock on the wall shows at an instant of UTC.


@cache
def minutes_of(day: datetime, zone: str) -> tuple[tuple[datetime, datetime], ...]:
    """Every minute of a UTC day, and what the clock on the wall shows then."""
    return tuple((instant, wall_clock(instant, zone)) for instant in (day + MINUTE * n for n in range(1440)))


@cache
def boundaries_of(day: datetime, zone: str) -> dict[int, list[datetime]]:
    """The instants of a UTC day at which the wall clock first shows each hour, or has just jumped over it."""
    seen = max(wall for _, wall in minutes_of(day - DAY, zone))
    next_hour = seen.replace(minute=0) + HOUR
    found: dict[int, list[datetime]] = {hour: [] for hour in range(24)}
    for instant, wall in minutes_of(day, zone):
        while next_hour <= wall:
            found[next_hour.hour].append(instant)
            next_hour += HOUR
    return found


def boundaries(since: datetime, until: datetime, at_hour: int, zone: str) -> list[datetime]:
    """Every boundary of the days around the span, in order."""
    day = since.replace(hour=0, minute=0, second=0, microsecond=0) - 2 * DAY
    found: list[datetime] = []
    while day <= until:
        found += boundaries_of(day, zone)[at_hour]
        day += DAY
    return found


def expected(policy: ResetPolicy, zone: str, last: datetime, now: datetime) -> ResetReason | None:
    """The reset that the rules ask for: idle: now - last > idle; daily: last < newest boundary <= now."""
    passed = boundaries(min(last, now), now, policy.at_hour, zone)
    passed = passed[: bisect_right(passed, now)]
    is_idle = policy.mode in ("idle", "both") and now - last > policy.idle
    is_daily = policy.mode in ("daily", "both") and last < passed[-1]
    if is_idle and is_daily:
        first_missed = passed[bisect_right(passed, last)]
        return ResetReason.IDLE if last + policy.idle <= first_missed else ResetReason.DAILY
    if is_idle:
        return ResetReason.IDLE
    return ResetReason.DAILY if is_daily else None


@cache
def clock_changes(zone: str) -> tuple[datetime, ...]:
    """UTC days of the chosen years on which the offset of a zone changes, and one on which nothing happens."""
    days = [utc(year, 1, 1) + DAY * n for year in YEARS for n in range(365)]
    offset = {
        day: (day.astimezone(ZoneInfo(zone)).utcoffset(), (day + DAY).astimezone(ZoneInfo(zone)).utcoffset())
        for day in days
    }
    return (*(day for day, (before, after) in offset.items() if before != after), utc(2024, 6, 15))


class Wait(NamedTuple):
    """A person spoke last at `last` in a lane, and it is now `now`."""

    policy: ResetPolicy
    zone: str
    last: datetime
    now: datetime


@st.composite
def waits(draw: st.DrawFn) -> Wait:
    zone = draw(st.sampled_from(ZONES))
    day = draw(st.sampled_from(clock_changes(zone)))
    at_hour = draw(st.sampled_from([0, 1, 2, 3, 4, 23]) | st.integers(0, 23))
    idle = timedelta(minutes=draw(st.sampled_from([1, 30, 60, 720, 1380, 1440, 1500, 2880]) | st.integers(1, 5000)))
    mode = draw(st.sampled_from(ResetMode))
    around = [day + HOUR * 6, *boundaries(day - DAY, day + DAY, at_hour, zone)]
    nudge = st.sampled_from([timedelta(0), timedelta(microseconds=1), -timedelta(microseconds=1), MINUTE, HOUR])
    wander = st.timedeltas(-2 * DAY, 2 * DAY)
    last = draw(st.sampled_from(around)) + draw(nudge | wander)
    now = draw(st.sampled_from([last + idle, last, *around])) + draw(nudge | wander)
    return Wait(ResetPolicy(mode, at_hour, idle, zone=ZoneInfo(zone)), zone, last, now)


@given(waits())
@examples(50, in_torture=1000)
def test_a_lane_expires_exactly_when_the_rules_say_so(wait: Wait) -> None:
    assert wait.policy.expiry(wait.last, wait.now) == expected(wait.policy, wait.zone, wait.last, wait.now)


@given(waits())
@examples(40, in_torture=500)
def test_the_announced_moment_is_when_the_lane_expires(wait: Wait) -> None:
    moment = wait.policy.expires_at(wait.last)
    if wait.policy.mode is ResetMode.NONE:
        assert moment is None
    else:
        assert moment is not None
        assert wait.policy.expiry(wait.last, moment - timedelta(microseconds=1)) is None
        assert wait.policy.expiry(wait.last, moment + timedelta(microseconds=1)) is not None


@given(waits(), st.timedeltas(timedelta(0), 3 * DAY))
@examples(40, in_torture=500)
def test_a_clock_that_steps_back_resets_nothing(wait: Wait, step: timedelta) -> None:
    assert wait.policy.expiry(wait.last, wait.last - step) is None


@given(waits(), st.timedeltas(timedelta(0), 3 * DAY))
@examples(40, in_torture=500)
def test_a_clock_that_stepped_back_delays_a_reset_by_no_more_than_the_step(wait: Wait, step: timedelta) -> None:
    usual, after_step = wait.policy.expires_at(wait.last - step), wait.policy.expires_at(wait.last)
    if usual is not None and after_step is not None and wait.policy.mode is ResetMode.IDLE:
        assert after_step - usual == step
    if after_step is not None:
        longest_day = 25 * HOUR  # when the clock on the wall is put back by an hour
        assert after_step - (wait.last - step) <= step + max(longest_day, wait.policy.idle)


@given(waits())
@examples(40, in_torture=500)
def test_once_expired_a_lane_stays_expired_for_the_same_reason(wait: Wait) -> None:
    reason = wait.policy.expiry(wait.last, wait.now)
    if reason is not None:
        for later in (timedelta(microseconds=1), HOUR, DAY, 40 * DAY):
            assert wait.policy.expiry(wait.last, wait.now + later) is not None
        tie = wait.policy.expires_at(wait.last) == wait.now
        assert tie or wait.policy.expiry(wait.last, wait.now + 40 * DAY) == reason


LAST = utc(2025, 3, 5, 12)
FOUR = utc(2025, 3, 6, 4)
TICK = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("mode", "idle", "now", "reason"),
    [
        ("none", 16 * HOUR, FOUR + 99 * DAY, None),
        ("idle", 16 * HOUR, FOUR - TICK, None),
        ("idle", 16 * HOUR, FOUR, None),
        ("idle", 16 * HOUR, FOUR + TICK, "idle"),
        ("daily", 1 * HOUR, FOUR - TICK, None),
        ("daily", 1 * HOUR, FOUR, "daily"),
        ("daily", 1 * HOUR, FOUR + 9 * DAY, "daily"),
        ("both", 15 * HOUR, FOUR + DAY, "idle"),
        ("both", 17 * HOUR, FOUR + DAY, "daily"),
        ("both", 17 * HOUR, FOUR + TICK, "daily"),
        ("both", 15 * HOUR, FOUR - HOUR, None),
        ("both", 15 * HOUR, FOUR - HOUR + TICK, "idle"),
        ("both", 16 * HOUR, FOUR + TICK, "idle"),
        ("both", 16 * HOUR, FOUR, "daily"),
        ("both", 40 * HOUR, FOUR + 9 * DAY, "daily"),
    ],
)
def test_why_a_lane_that_was_left_at_noon_has_expired(
    mode: str, idle: timedelta, now: datetime, reason: str | None
) -> None:
    assert ResetPolicy(ResetMode(mode), 4, idle).expiry(LAST, now) == reason


def test_a_message_at_the_very_boundary_belongs_to_the_new_day() -> None:
    daily = ResetPolicy(ResetMode.DAILY)
    assert daily.expiry(FOUR, FOUR + DAY - TICK) is None
    assert daily.expiry(FOUR - TICK, FOUR) is ResetReason.DAILY


@pytest.mark.parametrize(
    ("zone", "at_hour", "last", "boundary"),
    [
        pytest.param("UTC", 4, utc(2025, 1, 1, 3), utc(2025, 1, 1, 4), id="an ordinary night"),
        pytest.param("America/New_York", 2, utc(2025, 3, 9, 1), utc(2025, 3, 9, 7), id="the gap of spring"),
        pytest.param("America/New_York", 3, utc(2025, 3, 9, 1), utc(2025, 3, 9, 7), id="the end of the gap"),
        pytest.param("America/New_York", 1, utc(2025, 11, 2, 1), utc(2025, 11, 2, 5), id="the first of two hours"),
        pytest.param("America/New_York", 1, utc(2025, 11, 2, 5), utc(2025, 11, 3, 6), id="not the second of them"),
        pytest.param("Europe/Berlin", 2, utc(2025, 3, 30, 0), utc(2025, 3, 30, 1), id="the gap in Berlin"),
        pytest.param("Europe/Berlin", 2, utc(2025, 10, 25, 23), utc(2025, 10, 26, 0), id="the overlap in Berlin"),
        pytest.param(
            "Australia/Lord_Howe", 2, utc(2025, 10, 4, 15), utc(2025, 10, 4, 15, 30), id="half an hour of gap"
        ),
        pytest.param("Asia/Kathmandu", 0, utc(1985, 12, 31, 18), utc(1985, 12, 31, 18, 30), id="a quarter hour of gap"),
        pytest.param(
            "America/St_Johns", 0, utc(2010, 11, 7, 2), utc(2010, 11, 7, 2, 30), id="midnight, for the first time"
        ),
        pytest.param("America/St_Johns", 0, utc(2010, 11, 7, 3), utc(2010, 11, 8, 3, 30), id="midnight comes back"),
        pytest.param("Pacific/Apia", 4, utc(2011, 12, 29, 20), utc(2011, 12, 30, 10), id="the day that was skipped"),
        pytest.param("Pacific/Apia", 4, utc(2011, 12, 30, 10), utc(2011, 12, 30, 14), id="the day after it"),
        pytest.param(
            "Pacific/Kiritimati", 4, utc(1994, 12, 30, 20), utc(1994, 12, 31, 10), id="a skipped last of December"
        ),
    ],
)
def test_the_next_boundary(zone: str, at_hour: int, last: datetime, boundary: datetime) -> None:
    assert next_boundary(last, at_hour, ZoneInfo(zone)) == boundary
    assert boundary in boundaries(last, boundary, at_hour, zone)


@given(st.sampled_from(ZONES), st.data())
@examples(40, in_torture=500)
@example("Pacific/Apia", None)
def test_the_first_instant_of_a_wall_time(zone: str, data: st.DataObject | None) -> None:
    around = utc(2011, 12, 30) if data is None else data.draw(st.sampled_from(clock_changes(zone)))
    minutes = 720 if data is None else data.draw(st.integers(-1500, 1500))
    wall = around.replace(tzinfo=None) + MINUTE * minutes
    instant = first_instant(wall, ZoneInfo(zone))
    assert instant.tzinfo is UTC
    assert wall_clock(instant, zone) >= wall
    assert all(wall_clock(instant - MINUTE * back, zone) < wall for back in range(1, 1600))
    assert wall_clock(instant - TICK, zone) < wall


DAILY_AT_SIX = ResetPolicy(ResetMode.DAILY, 6, timedelta(minutes=90), notify=False, zone=ZoneInfo("Europe/Berlin"))
RULES = ResetPolicies(
    default=DAILY_AT_SIX,
    by_type={
        "dm": ResetRule(mode=ResetMode.IDLE, idle_minutes=240),
        "group": ResetRule(at_hour=2),
        "thread": ResetRule(mode=ResetMode.NONE, notify=True),
    },
    by_platform={"discord": ResetRule(mode=ResetMode.IDLE, idle_minutes=10080), "matrix": ResetRule()},
)
BERLIN = ZoneInfo("Europe/Berlin")
IN_DM = ResetPolicy(ResetMode.IDLE, 6, timedelta(minutes=240), notify=False, zone=BERLIN)
IN_GROUP = ResetPolicy(ResetMode.DAILY, 2, timedelta(minutes=90), notify=False, zone=BERLIN)
IN_THREAD = ResetPolicy(ResetMode.NONE, 6, timedelta(minutes=90), notify=True, zone=BERLIN)
ON_DISCORD = ResetPolicy(ResetMode.IDLE, 4, timedelta(minutes=10080), notify=True, zone=BERLIN)
BUILT_IN = ResetPolicy(ResetMode.BOTH, 4, timedelta(minutes=1440), notify=True, zone=BERLIN)


@pytest.mark.parametrize(
    ("platform", "chat_type", "thread", "policy"),
    [
        pytest.param("telegram", "dm", "", IN_DM, id="a type refines field by field"),
        pytest.param("telegram", "group", "", IN_GROUP, id="a group"),
        pytest.param("slack", "channel", "", IN_GROUP, id="a channel counts as a group"),
        pytest.param("telegram", "dm", "5", IN_THREAD, id="a thread wins over a direct message"),
        pytest.param("telegram", "group", "5", IN_THREAD, id="a thread wins over a group"),
        pytest.param("slack", "channel", "5", IN_THREAD, id="a thread wins over a channel"),
        pytest.param("discord", "dm", "", ON_DISCORD, id="a platform replaces all"),
        pytest.param("discord", "group", "5", ON_DISCORD, id="a platform replaces all in threads too"),
        pytest.param("matrix", "dm", "", BUILT_IN, id="a platform that says nothing replaces all with the built-in"),
        *(
            pytest.param(origin, "dm", "", NEVER, id=f"{origin} never")
            for origin in ("cron", "hook", "node", "api", "api_server", "acp", "batch", "cli", "subagent")
        ),
    ],
)
def test_the_policy_of_a_lane(platform: str, chat_type: str, thread: str, policy: ResetPolicy) -> None:
    assert RULES.choose(platform, chat_type, thread) == policy


def test_without_any_rules_a_lane_resets_daily_at_four_and_after_a_day_of_silence() -> None:
    for chat_type in ("dm", "group", "channel"):
        assert ResetPolicies().choose("telegram", chat_type) == ResetPolicy(
            ResetMode.BOTH, 4, DAY, notify=True, zone=UTC
        )
    assert ResetPolicies(default=DAILY_AT_SIX).choose("telegram", "dm", "5") == DAILY_AT_SIX


def test_even_a_rule_for_it_does_not_reset_the_terminal() -> None:
    assert ResetPolicies(by_platform={"cli": ResetRule(mode=ResetMode.DAILY)}).choose("cli", "dm") == NEVER


DAILY, IDLE, BOTH, NONE = ResetMode.DAILY, ResetMode.IDLE, ResetMode.BOTH, ResetMode.NONE


@pytest.mark.parametrize(
    ("rule", "base", "mode", "idle_minutes"),
    [
        pytest.param(ResetRule(), ResetPolicy(), BOTH, 1440, id="nothing said"),
        pytest.param(ResetRule(mode=DAILY), ResetPolicy(IDLE), DAILY, 1440, id="daily"),
        pytest.param(
            ResetRule(mode=DAILY, idle_minutes=120), ResetPolicy(IDLE), BOTH, 120, id="daily and idle minutes"
        ),
        pytest.param(ResetRule(mode=IDLE, idle_minutes=120), ResetPolicy(DAILY), IDLE, 120, id="idle"),
        pytest.param(ResetRule(mode=BOTH, idle_minutes=120), ResetPolicy(NONE), BOTH, 120, id="both"),
        pytest.param(ResetRule(mode=NONE, idle_minutes=120), ResetPolicy(BOTH), NONE, 120, id="none stays none"),
        pytest.param(ResetRule(idle_minutes=30), ResetPolicy(BOTH), BOTH, 30, id="another idle time"),
        pytest.param(ResetRule(idle_minutes=30), ResetPolicy(IDLE), IDLE, 30, id="another idle time of idle"),
        pytest.param(
            ResetRule(idle_minutes=30), ResetPolicy(DAILY), BOTH, 30, id="idle minutes beside an inherited daily"
        ),
    ],
)
def test_a_rule_over_another(rule: ResetRule, base: ResetPolicy, mode: ResetMode, idle_minutes: int) -> None:
    policy = rule.over(base)
    assert (policy.mode, policy.idle) == (mode, timedelta(minutes=idle_minutes))
