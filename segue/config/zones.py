"""Time zones by name. A zone here always knows its clock changes: a fixed offset would be wrong half of the year."""

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from pathlib import Path

HOST = "host"
_LOCALTIME = Path("/etc/localtime")
_DATABASE = "/zoneinfo/"


class SystemZone(tzinfo):
    """The host's clock as its C library keeps it, for hosts whose zone has neither a name nor a file."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, moment: datetime | None) -> timedelta | None:  # noqa: ARG002 - the signature of tzinfo
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, moment: datetime) -> datetime:
        local = moment.replace(tzinfo=UTC).astimezone()
        wall = local.replace(tzinfo=self, fold=0)
        return wall if wall.utcoffset() == local.utcoffset() else wall.replace(fold=1)


@lru_cache
def zone_of(name: str, tz: str | None) -> tzinfo:
    """The zone called `name`; for `host` the one that the variable TZ says or, without it, `/etc/localtime`."""
    return host_zone(tz) if name == HOST else named_zone(name)


def named_zone(name: str) -> tzinfo:
    """The zone of an IANA name; ValueError when this system does not know it."""
    from zoneinfo import ZoneInfo  # costs milliseconds, and most commands ask for no zone

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # unknown, no possible name, or a folder of names
        raise ValueError(f"{name!r} is no time zone here") from error


def is_known(name: str) -> bool:
    """Whether the name stands for a zone here."""
    try:
        return name == HOST or named_zone(name) is not None
    except ValueError:
        return False


def host_zone(tz: str | None, localtime: Path = _LOCALTIME) -> tzinfo:
    """The zone that the host's own programs use."""
    if tz == "":  # as the C library reads it
        return UTC
    name = (tz or "").removeprefix(":")
    try:
        if tz is None:
            return _zone_in(localtime)
        return _zone_in(Path(name)) if name.startswith("/") else named_zone(name)
    except (ValueError, OSError):
        return SystemZone()


def _zone_in(file: Path) -> tzinfo:
    from zoneinfo import ZoneInfo

    _, _, name = str(file.resolve()).rpartition(_DATABASE)
    with file.open("rb") as data:
        return ZoneInfo.from_file(data, key=name or None)
