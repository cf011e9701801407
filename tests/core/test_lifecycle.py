"""What a message does to its lane: the order of the rules, and every phase."""

from datetime import UTC, datetime, timedelta

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.core.ids import LaneKey, SessionId
from segue.core.lifecycle import Continue, Decision, Lane, Phase, Reset, Resume, Start, decide, has_expired, interrupt
from segue.core.policy import NEVER, ResetMode, ResetPolicy, ResetReason

NOW = datetime(2025, 3, 5, 12, tzinfo=UTC)
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
IDLE_AFTER_AN_HOUR = ResetPolicy(ResetMode.IDLE, idle=HOUR)
RECENTLY, LONG_AGO = NOW - 30 * SECOND, NOW - 50 * HOUR
ACTIVE, INTERRUPTED, SUSPENDED = Phase


def lane(phase: Phase, last: datetime = RECENTLY, since: datetime | None = None, session: str | None = "s") -> Lane:
    return Lane(
        key=LaneKey("agent:main:telegram:dm:1"),
        session_id=None if session is None else SessionId(session),
        last_person_at=last,
        phase=phase,
        phase_since=since,
    )


@pytest.mark.parametrize(
    ("before", "busy", "decision"),
    [
        pytest.param(None, False, Start(), id="no lane yet"),
        pytest.param(None, True, Start(), id="no lane yet, whatever runs"),
        pytest.param(lane(ACTIVE, session=None), False, Start(), id="a lane without a session"),
        pytest.param(lane(SUSPENDED, session=None), False, Start(), id="suspended, with nothing to reset"),
        pytest.param(lane(ACTIVE), False, Continue(), id="active"),
        pytest.param(lane(ACTIVE, LONG_AGO), False, Reset(ResetReason.IDLE), id="active and expired"),
        pytest.param(lane(ACTIVE, LONG_AGO), True, Continue(), id="expired, but background work runs"),
        pytest.param(lane(SUSPENDED), False, Reset(ResetReason.SUSPENDED), id="suspended"),
        pytest.param(
            lane(SUSPENDED)._replace(phase_reason="crashed"),
            False,
            Reset(ResetReason.CRASHED),
            id="suspended by crashes",
        ),
        pytest.param(lane(SUSPENDED), True, Reset(ResetReason.SUSPENDED), id="suspended, whatever runs"),
        pytest.param(
            lane(SUSPENDED, LONG_AGO, LONG_AGO), False, Reset(ResetReason.SUSPENDED), id="suspended before expired"
        ),
        pytest.param(lane(INTERRUPTED, since=RECENTLY), False, Resume(), id="interrupted"),
        pytest.param(lane(INTERRUPTED, LONG_AGO, RECENTLY), False, Resume(), id="interrupted before expired"),
        pytest.param(lane(INTERRUPTED, since=NOW - HOUR), False, Resume(), id="interrupted, just fresh"),
        pytest.param(lane(INTERRUPTED, since=NOW - HOUR - SECOND), False, Continue(), id="interrupted too long ago"),
        pytest.param(lane(INTERRUPTED), False, Continue(), id="interrupted at an unknown time"),
        pytest.param(
            lane(INTERRUPTED, since=NOW + HOUR), False, Resume(), id="interrupted before the clock stepped back"
        ),
        pytest.param(
            lane(INTERRUPTED, LONG_AGO, LONG_AGO),
            False,
            Reset(ResetReason.IDLE),
            id="interrupted too long ago, expired",
        ),
        pytest.param(lane(INTERRUPTED, LONG_AGO, LONG_AGO), True, Continue(), id="the same while background work runs"),
    ],
)
def test_a_message_to_a_lane(before: Lane | None, busy: bool, decision: Decision) -> None:
    assert decide(before, IDLE_AFTER_AN_HOUR, NOW, busy=busy) == decision


@pytest.mark.parametrize(
    ("freshness", "decision"), [(29 * SECOND, Continue()), (30 * SECOND, Resume()), (timedelta(0), Continue())]
)
def test_how_long_an_interruption_is_fresh_is_a_setting(freshness: timedelta, decision: Decision) -> None:
    assert decide(lane(INTERRUPTED, since=RECENTLY), NEVER, NOW, freshness=freshness) == decision


moments = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - given a zone
policies = st.builds(ResetPolicy, st.sampled_from(ResetMode), st.integers(0, 23), st.timedeltas(HOUR, 99 * HOUR))
lanes = st.builds(lane, st.sampled_from(Phase), moments, st.none() | moments, st.none() | st.just("s"))


@given(lanes, policies, moments)
@settings(max_examples=50)
def test_a_busy_lane_never_expires(before: Lane, policy: ResetPolicy, now: datetime) -> None:
    decision = decide(before, policy, now, busy=True)
    assert not isinstance(decision, Reset) or decision.reason is ResetReason.SUSPENDED


@given(lanes, policies, moments, st.booleans(), st.timedeltas(timedelta(0), 99 * HOUR))
@examples(40, in_torture=500)
def test_the_rules_are_asked_in_their_order(
    before: Lane, policy: ResetPolicy, now: datetime, busy: bool, freshness: timedelta
) -> None:
    is_fresh = before.phase_since is not None and now - before.phase_since <= freshness
    rules: list[tuple[bool, type[Decision]]] = [
        (before.session_id is None, Start),
        (before.phase == "suspended", Reset),
        (before.phase == "interrupted" and is_fresh, Resume),
        (busy, Continue),
        (policy.expiry(before.last_person_at, now) is not None, Reset),
        (True, Continue),
    ]
    wanted = next(kind for holds, kind in rules if holds)
    assert isinstance(decide(before, policy, now, busy=busy, freshness=freshness), wanted)


@pytest.mark.parametrize(
    ("before", "busy", "is_over"),
    [
        pytest.param(lane(ACTIVE), False, False, id="active"),
        pytest.param(lane(ACTIVE, LONG_AGO), False, True, id="silent for long"),
        pytest.param(lane(ACTIVE, LONG_AGO), True, False, id="silent, but background work runs"),
        pytest.param(lane(ACTIVE, LONG_AGO, session=None), False, False, id="without a session"),
        pytest.param(lane(SUSPENDED), False, False, id="suspended, which is no matter of time"),
        pytest.param(lane(SUSPENDED, LONG_AGO, LONG_AGO), False, True, id="suspended and silent for long"),
        pytest.param(lane(INTERRUPTED, LONG_AGO, RECENTLY), False, False, id="cut off a moment ago"),
        pytest.param(lane(INTERRUPTED, LONG_AGO, LONG_AGO), False, True, id="cut off long ago"),
    ],
)
def test_whether_the_time_of_a_session_is_over(before: Lane, busy: bool, is_over: bool) -> None:
    assert has_expired(before, IDLE_AFTER_AN_HOUR, NOW, busy=busy) is is_over


@pytest.mark.parametrize(
    ("phase", "after"), [(ACTIVE, INTERRUPTED), (INTERRUPTED, INTERRUPTED), (SUSPENDED, SUSPENDED)]
)
def test_an_interruption_never_replaces_a_suspension(phase: Phase, after: Phase) -> None:
    assert interrupt(phase) is after


@pytest.mark.parametrize(
    ("reason", "word"), [("IDLE", "idle"), ("DAILY", "daily"), ("SUSPENDED", "suspended"), ("ASKED", "session_reset")]
)
def test_a_reset_ends_the_old_session_with(reason: str, word: str) -> None:
    assert ResetReason[reason].value == word
