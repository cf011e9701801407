"""Time zones follow the clock changes of their place."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

import pytest

from segue.config.zones import HOST, SystemZone, host_zone, is_known, named_zone, zone_of

BERLIN = ZoneInfo("Europe/Berlin")
SUMMER, WINTER = datetime(2025, 7, 1, 12), datetime(2025, 1, 1, 12)  # noqa: DTZ001 - wall clock
POSIX_BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"


def berlin_file() -> Path:
    for folder in TZPATH:
        if (file := Path(folder, "Europe/Berlin")).exists():
            return file
    pytest.skip("this system keeps no time zone files")


@pytest.fixture
def berlin_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The C library believes to be in Berlin, by a rule that has no name."""
    monkeypatch.setenv("TZ", POSIX_BERLIN)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("tz", ["Europe/Berlin", ":Europe/Berlin"])
def test_the_host_zone_is_the_one_that_tz_names(tz: str) -> None:
    assert host_zone(tz) is BERLIN
    assert zone_of(HOST, tz) is BERLIN


def test_an_empty_tz_is_utc() -> None:
    assert host_zone("") is UTC


def test_tz_may_be_a_file() -> None:
    zone = host_zone(str(berlin_file()))
    assert [zone.utcoffset(SUMMER), zone.utcoffset(WINTER)] == [timedelta(hours=2), timedelta(hours=1)]


def test_without_tz_the_host_zone_is_that_of_localtime(tmp_path: Path) -> None:
    link = tmp_path / "localtime"
    link.symlink_to(berlin_file())
    zone = host_zone(None, link)
    assert str(zone) == "Europe/Berlin"
    assert [zone.utcoffset(SUMMER), zone.utcoffset(WINTER)] == [timedelta(hours=2), timedelta(hours=1)]


def test_localtime_may_be_a_copy(tmp_path: Path) -> None:
    copy = tmp_path / "localtime"
    copy.write_bytes(berlin_file().read_bytes())
    assert host_zone(None, copy).utcoffset(SUMMER) == timedelta(hours=2)


@pytest.mark.parametrize("content", [None, b"", b"no zone"])
def test_without_any_zone_the_c_library_is_asked(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "localtime").write_bytes(content)
    assert isinstance(host_zone(None, tmp_path / "localtime"), SystemZone)


@pytest.mark.usefixtures("berlin_clock")
def test_a_rule_without_a_name_follows_clock_changes_too() -> None:
    zone = host_zone(POSIX_BERLIN)
    assert isinstance(zone, SystemZone)
    assert [zone.utcoffset(SUMMER), zone.utcoffset(WINTER)] == [timedelta(hours=2), timedelta(hours=1)]


@pytest.mark.usefixtures("berlin_clock")
@pytest.mark.parametrize("change", [datetime(2025, 3, 30, 1, tzinfo=UTC), datetime(2025, 10, 26, 1, tzinfo=UTC)])
def test_the_c_library_agrees_with_the_named_zone_around_a_clock_change(change: datetime) -> None:
    zone = SystemZone()
    for quarters in range(-20, 21):
        moment = change + timedelta(minutes=15 * quarters, microseconds=7)
        ours, theirs = moment.astimezone(zone), moment.astimezone(BERLIN)
        assert (ours.replace(tzinfo=None), ours.fold) == (theirs.replace(tzinfo=None), theirs.fold)
        assert ours.utcoffset() == theirs.utcoffset()
        assert ours.astimezone(UTC) == moment


@pytest.mark.usefixtures("berlin_clock")
def test_the_c_library_names_its_zone() -> None:
    assert SUMMER.replace(tzinfo=SystemZone()).tzname() == "CEST"
    assert SUMMER.replace(tzinfo=SystemZone()).dst() is None
    assert SystemZone().utcoffset(None) is None
    assert SystemZone().tzname(None) is None


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "host"])
def test_names_that_exist_are_known(name: str) -> None:
    assert is_known(name)


@pytest.mark.parametrize("name", ["", "Mars/Base", "Europe", "/etc/passwd", "../zone", "a\0b", "\ud800", "x" * 5000])
def test_names_that_do_not_exist_are_not_known(name: str) -> None:
    assert not is_known(name)
    with pytest.raises(ValueError, match="is no time zone here"):
        named_zone(name)
