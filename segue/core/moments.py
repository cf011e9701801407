"""Moments as people read them. Rows hold Unix seconds; days and hours belong to a time zone."""

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from segue.core.errors import Invalid

SLOT = 900
"""Seconds; every time zone in use differs from UTC by a multiple of them, so a slot is within one hour everywhere."""
DAY = 86400.0
_MINUTE, _HOUR = 60, 3600
_SPAN = re.compile(r"(\d{1,6})(m|h|d|w)", re.ASCII)
_SECONDS = {"m": 60.0, "h": 3600.0, "d": DAY, "w": 7 * DAY}
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMED = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*", re.ASCII)
_DAYS_AGO = {"today": 0, "yesterday": 1}
_FIRST, _LAST = -62_000_000_000, 253_000_000_000  # within the years 1 and 9999, whatever the zone


def is_moment(value: object) -> bool:
    """Whether a value can be a moment in Unix seconds that has a date."""
    return isinstance(value, int | float) and not isinstance(value, bool) and _FIRST <= value <= _LAST


def instant(epoch: float) -> datetime:
    """The moment a row means, as an aware UTC datetime."""
    return datetime.fromtimestamp(epoch, UTC)


def ago(then: float, now: float, zone: tzinfo | None = None) -> str:
    """How long ago, as a person would say it; past a week, the date. A moment in the future is "just now"."""
    passed = now - then
    if passed < _MINUTE:
        return "just now"
    if passed < _HOUR:
        return f"{int(passed // _MINUTE)}m ago"
    if passed < DAY:
        return f"{int(passed // _HOUR)}h ago"
    if passed < 2 * DAY:
        return "yesterday"
    if passed < 7 * DAY:
        return f"{int(passed // DAY)}d ago"
    return instant(then).astimezone(zone).strftime("%Y-%m-%d")


def parse_moment(said: str, now: float, zone: tzinfo) -> float:
    """Return the moment that somebody names: a date, a date with a time, a day, or how long ago it was.

    A day means its beginning in that zone. A span such as `7d` is counted back from now, a day being 24 hours.
    """
    words = said.strip()
    if (span := find_span(words)) is not None:
        return max(now - span, float(_FIRST))
    try:
        if (back := _DAYS_AGO.get(words.lower())) is not None:
            return _beginning_of(datetime.fromtimestamp(now, zone).date() - timedelta(days=back), zone)
        if _DATE.fullmatch(words):
            return _beginning_of(date.fromisoformat(words), zone)
        if _TIMED.fullmatch(words):
            moment = datetime.fromisoformat(words)
            return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError, OSError):
        pass
    raise Invalid(f"{said!r} is no date; write it like 2025-03-05, 2025-03-05T09:15, yesterday, 12h or 7d.")


def find_span(said: str) -> float | None:
    """Return the seconds of a span such as `90m`, `12h`, `7d` or `2w`."""
    span = _SPAN.fullmatch(said.strip().lower())
    return int(span[1]) * _SECONDS[span[2]] if span else None


def _beginning_of(day: date, zone: tzinfo) -> float:
    return datetime.combine(day, time.min, zone).timestamp()
