"""When a job is due. Nothing here reads a clock: moments are arguments, and given in Unix seconds.

A schedule is read in the job's time zone as Debian's cron reads it. What is due at a certain hour runs once on a day on
which clocks are changed, also when that hour is skipped or comes twice; what is due every so many minutes goes by the
time that really passes.
"""

from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from segue.core.errors import Invalid
from segue.core.jobs import Job
from segue.core.routes import parse_route

_FIELDS = 5
_WELL_KNOWN = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


def checked_schedule(text: str) -> str:
    """The schedule that somebody wrote, as it is kept."""
    schedule = _WELL_KNOWN.get(text.strip().lower(), " ".join(text.split()))
    if len(schedule.split()) != _FIELDS:
        raise _no_schedule(text, "it has not five fields")
    try:
        next(CronSim(schedule, datetime(2024, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise _no_schedule(text, str(error).lower()) from None
    except StopIteration:
        raise _no_schedule(text, "no day is like that") from None
    return schedule


def check(job: Job) -> None:
    """Raise what keeps a job from ever being due, whoever put it down."""
    checked_schedule(job.schedule)
    zone_named(job.zone)
    if job.deliver is not None:
        parse_route(job.deliver)


@lru_cache
def zone_named(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise Invalid(f"{name!r} is no time zone here: write a name such as Europe/Berlin or UTC.") from None


def next_due(job: Job, after: float) -> float:
    """The first moment of a job behind another."""
    # Where an hour comes twice, the moments of its second time are those of the first, which are over.
    return next(due for moment in _moments(job, after) if (due := moment.timestamp()) > after)


def missed(job: Job, now: float) -> float | None:
    """The latest moment that has come and has not run. Those before it are left out: their time is over."""
    due = next(_moments(job, int(now) + 1, reverse=True), None)
    return due.timestamp() if due is not None and job.ran_until < due.timestamp() <= now else None


def _no_schedule(text: str, why: str) -> Invalid:
    return Invalid(
        f"{text!r} is no schedule ({why}): write minute, hour, day of the month, month and day of the week, as in"
        " '30 7 * * 1-5' for half past seven on weekdays."
    )


def _moments(job: Job, since: float, *, reverse: bool = False) -> CronSim:
    return CronSim(job.schedule, datetime.fromtimestamp(since, zone_named(job.zone)), reverse=reverse)
