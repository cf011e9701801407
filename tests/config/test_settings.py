"""What settings mean to the rules they steer."""

from dataclasses import FrozenInstanceError
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from segue.config import Settings, settings_from
from segue.core.errors import InvalidSettings
from segue.core.keys import KeyRules
from segue.core.policy import NEVER, ResetMode, ResetPolicy
from segue.core.prices import Price
from segue.core.sharing import DmScope

HOME = Path("/home/someone/.segue")
BERLIN = ZoneInfo("Europe/Berlin")
ENVIRON = {"TZ": "Europe/Berlin"}


def policy(
    mode: ResetMode, at_hour: int = 4, idle: int = 1440, zone: ZoneInfo = BERLIN, *, notify: bool = True
) -> ResetPolicy:
    return ResetPolicy(mode, at_hour, timedelta(minutes=idle), notify, zone)


def test_the_defaults_are_those_of_the_rules() -> None:
    settings = settings_from({}, HOME, ENVIRON)
    assert settings == Settings(HOME, "Europe/Berlin")
    assert settings.key_rules == KeyRules()
    assert settings.reset_policies.default == ResetPolicy(zone=BERLIN)
    assert (settings.database, settings.owners) == ("sqlite", ())
    assert (settings.session_store_max_age_days, settings.retention.trash_days) == (0, 7)
    assert settings.agent.auto_continue_freshness == 3600


def test_the_home_says_where_files_are() -> None:
    assert Settings(HOME).config_path == HOME / "config.yaml"
    assert Settings(HOME).database_path == HOME / "state.db"


def test_settings_never_change() -> None:
    settings = settings_from({"session": {"identity_links": {"alice": ["telegram:1"]}}}, HOME, {})
    with pytest.raises(FrozenInstanceError):
        settings.database = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        settings.session.identity_links["bob"] = ()  # type: ignore[index]


def test_key_rules_come_from_the_settings() -> None:
    raw = {
        "owners": ["telegram:1", "discord:2"],
        "group_sessions_per_user": False,
        "thread_sessions_per_user": True,
        "session": {
            "dm_scope": "main",
            "main_key": "home",
            "identity_links": {"alice": ["telegram:1", "matrix:@a:b.org"]},
        },
    }
    assert settings_from(raw, HOME, {}).key_rules == KeyRules(
        dm_scope=DmScope.MAIN,
        main_key="home",
        identity_links={"alice": ("telegram:1", "matrix:@a:b.org")},
        owners=frozenset({"telegram:1", "discord:2"}),
        group_sessions_per_user=False,
        thread_sessions_per_user=True,
    )


@pytest.mark.parametrize(
    ("reset", "expected"),
    [
        ({}, policy(ResetMode.BOTH)),
        ({"mode": "daily"}, policy(ResetMode.DAILY)),
        ({"mode": "daily", "idle_minutes": 120}, policy(ResetMode.BOTH, idle=120)),
        ({"mode": "idle"}, policy(ResetMode.IDLE)),
        ({"idle_minutes": 30}, policy(ResetMode.BOTH, idle=30)),
        ({"mode": "none"}, policy(ResetMode.NONE)),
        ({"at_hour": 0, "notify": False}, policy(ResetMode.BOTH, at_hour=0, notify=False)),
        ({"timezone": "Asia/Tokyo"}, policy(ResetMode.BOTH, zone=ZoneInfo("Asia/Tokyo"))),
        ({"timezone": "host"}, policy(ResetMode.BOTH)),
    ],
)
def test_what_a_reset_leaves_out_is_the_default(reset: dict[str, object], expected: ResetPolicy) -> None:
    assert settings_from({"session": {"reset": reset}}, HOME, ENVIRON).reset_policies.default == expected


@pytest.mark.parametrize(
    ("lane", "expected"),
    [
        (("telegram", "dm"), policy(ResetMode.IDLE, at_hour=6, idle=240)),
        (("telegram", "group"), policy(ResetMode.BOTH, at_hour=6, idle=90)),
        (("telegram", "channel"), policy(ResetMode.BOTH, at_hour=6, idle=90)),
        (("telegram", "group", "7"), policy(ResetMode.BOTH, at_hour=6, idle=60, zone=ZoneInfo("UTC"))),
        (("discord", "dm"), policy(ResetMode.IDLE, idle=10080)),
        (("slack", "group", "7"), policy(ResetMode.BOTH)),
        (("cli", "dm"), NEVER),
    ],
)
def test_each_lane_has_the_policy_of_its_platform_or_else_of_its_type(
    lane: tuple[str, ...], expected: ResetPolicy
) -> None:
    raw = {
        "session": {
            "reset": {"at_hour": 6, "idle_minutes": 60},
            "reset_by_type": {
                "dm": {"mode": "idle", "idle_minutes": 240},
                "group": {"idle_minutes": 90},
                "thread": {"timezone": "UTC"},
            },
            "reset_by_platform": {"discord": {"mode": "idle", "idle_minutes": 10080}, "slack": {}},
        }
    }
    assert settings_from(raw, HOME, ENVIRON).reset_policies.choose(*lane) == expected


def test_prices_and_windows_of_ones_own() -> None:
    said = {
        "models": {"prices": {"my-model": {"input": 0.5, "output": "2", "cache_read": 0}}, "windows": {"x/y": 32768}}
    }
    models = settings_from(said, HOME, ENVIRON).models
    assert models.prices == {"my-model": Price(0.5, 2.0, 0.0, None)}
    assert models.windows == {"x/y": 32768}
    assert settings_from({}, HOME, ENVIRON).models.prices == {}


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"prices": {"m": 5}}, "models.prices.m is 5, but must be a mapping with input, output"),
        ({"prices": {"m": {"input": -1}}}, "models.prices.m.input is -1, but must be a number from 0"),
        ({"prices": {"m": {"input": True}}}, "models.prices.m.input is true"),
        ({"prices": {"m": {"input": "cheap"}}}, "models.prices.m.input is 'cheap'"),
        ({"prices": {"m": {"input": float("nan")}}}, "models.prices.m.input is nan"),
        ({"prices": {"m": {"inputs": 1}}}, "models.prices.m.inputs is no setting"),
        ({"windows": {"m": 0}}, "models.windows.m is 0, but must be a whole number from 1"),
    ],
)
def test_prices_that_cannot_be_are_refused(said: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidSettings) as error:
        settings_from({"models": said}, HOME, ENVIRON)
    assert problem in str(error.value)
