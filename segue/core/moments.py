"""Moments as people read them. Rows hold Unix seconds; days and hours belong to a time zone."""

from datetime import UTC, datetime, tzinfo

SLOT = 900
"""Seconds; every time zone in use differs from UTC by a multiple of them, so a slot is within one hour everywhere."""
DAY = 86400.0
_MINUTE, _HOUR = 60, 3600
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
