"""Settings of platforms: told when they cannot work, and in nobody's way who needs no platform."""

from pathlib import Path
from typing import Any

import pytest

from segue.app.checking import troubles
from segue.app.connecting import check_platform
from segue.config import settings_from
from segue.core.errors import Invalid, SegueError

SECRET = "0123456789abcdef0123456789abcdef"


def webhook(**hook: Any) -> dict[str, Any]:
    return {"platforms": {"webhook": {"hooks": {"a": {"secret": SECRET, **hook}}}}}


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (webhook(templat="x"), "unknown key 'templat'"),
        (webhook(agent="nobody"), "agent is 'nobody', and `agents` names no such agent"),
        (webhook(secret="short"), "no secret of at least"),
        ({"platforms": {"webhok": {}}}, "no platform that is installed here"),
        ({"platforms": {"webhook": {"port": "abc", "hooks": {"a": {"secret": SECRET}}}}}, "port must be a number"),
        ({"agents": {"other": {"model": "nosuch"}}}, "agents.other.model is nosuch"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_gateway_would_refuse_is_told_before(tmp_path: Path, raw: dict[str, Any], says: str) -> None:
    told = troubles(settings_from(raw, tmp_path, {}), {})
    assert len(told) == 1
    assert says in told[0]


def test_what_can_work_is_in_order(tmp_path: Path) -> None:
    agents = {"agents": {"porter": {"tools": ["session_search"]}}}
    assert troubles(settings_from({**webhook(agent="porter"), **agents}, tmp_path, {}), {}) == []


def test_a_secret_that_is_not_set_is_missed_only_by_who_connects(tmp_path: Path) -> None:
    settings = settings_from(webhook(secret="${HOOK_SECRET}"), tmp_path, {})
    with pytest.raises(Invalid, match=r"platforms\.webhook needs the environment variable HOOK_SECRET"):
        check_platform(settings, "webhook")
    check_platform(settings_from(webhook(secret="${HOOK_SECRET}"), tmp_path, {"HOOK_SECRET": SECRET}), "webhook")


def test_a_name_of_a_variable_that_is_meant_as_it_is_stays(tmp_path: Path) -> None:
    settings = settings_from(webhook(secret="$${HOOK_SECRET}" + SECRET), tmp_path, {})
    check_platform(settings, "webhook")


def test_elsewhere_a_variable_that_is_not_set_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SegueError, match="model needs the environment variable MY_MODEL"):
        settings_from({"model": "${MY_MODEL}"}, tmp_path, {})
