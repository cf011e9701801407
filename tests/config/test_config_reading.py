"""From what was written to settings, or to one sentence about what is wrong."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.config import (
    Settings,
    check,
    from_environment,
    home_from,
    load,
    notes_from_environment,
    settings_from,
    wants_colour,
)
from segue.config.aliases import ALIASES
from segue.config.documenting import shown
from segue.core.errors import InvalidSettings
from segue.core.policy import ResetMode

HOME = Path("/home/someone/.segue")


def nested(name: str, value: object) -> dict[str, object]:
    """`{"session": {"main_key": value}}` for `session.main_key`."""
    first, _, rest = name.partition(".")
    return {first: nested(rest, value) if rest else value}


def look_up(settings: Settings, name: str) -> object:
    value: Any = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize(
    ("name", "written", "meant"),
    [
        ("database", "sqlite", "sqlite"),
        ("owners", ["telegram:1", "matrix:@a:b.org"], ("telegram:1", "matrix:@a:b.org")),
        ("owners", [], ()),
        ("owners", None, ()),
        ("session", None, None),
        ("session.main_key", "home-2", "home-2"),
        ("session.dm_scope", "per-peer", "per-peer"),
        ("session.reset.mode", "none", ResetMode.NONE),
        ("session.reset.at_hour", 0, 0),
        ("session.reset.at_hour", "23", 23),
        ("session.reset.at_hour", " 08 ", 8),
        ("session.reset.notify", False, False),
        ("session.reset.notify", "Yes", True),
        ("session.reset.notify", "off", False),
        ("session.reset.notify", 1, True),
        ("session.reset.notify", "0", False),
        ("group_sessions_per_user", "FALSE", False),
        ("session_store_max_age_days", 90, 90),
        ("agent.auto_continue_freshness", "60", 60),
        ("retention.trash_days", 0, 0),
    ],
)
def test_a_value_of_the_right_kind_is_taken(name: str, written: object, meant: object) -> None:
    settings = settings_from(nested(name, written), HOME, {})
    assert settings == Settings(HOME) if meant is None else look_up(settings, name) == meant


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (
            nested("session.reset.at_hour", 24),
            "session.reset.at_hour is 24, but must be a whole number from 0 to 23.",
        ),
        (
            nested("session.reset.at_hour", "soon"),
            "session.reset.at_hour is 'soon', but must be a whole number from 0 to 23.",
        ),
        (
            nested("session.reset.at_hour", True),
            "session.reset.at_hour is true, but must be a whole number from 0 to 23.",
        ),
        (
            nested("session.reset.at_hour", 4.5),
            "session.reset.at_hour is 4.5, but must be a whole number from 0 to 23.",
        ),
        (
            nested("session.reset.idle_minutes", 0),
            "session.reset.idle_minutes is 0, but must be a whole number from 1 to 10000000.",
        ),
        (
            nested("session.reset.mode", "weekly"),
            "session.reset.mode is 'weekly', but must be none, idle, daily or both.",
        ),
        (nested("session.reset.mode", False), "session.reset.mode is false, but must be none, idle, daily or both."),
        (nested("session.reset.notify", 2), "session.reset.notify is 2, but must be true or false."),
        (nested("session.reset.notify", "maybe"), "session.reset.notify is 'maybe', but must be true or false."),
        (
            nested("session.reset.timezone", "Mars"),
            "session.reset.timezone is 'Mars', but must be host, or a time zone this system knows, like Europe/Berlin.",
        ),
        (
            nested("session.dm_scope", "everyone"),
            "session.dm_scope is 'everyone', but must be main, per-peer, per-channel-peer or per-account-channel-peer.",
        ),
        (
            nested("session.main_key", "cron"),
            "session.main_key is 'cron', but must be small letters and digits, and no reserved word like cron or dm.",
        ),
        (nested("session.reset", 5), "session.reset is 5, but must be a mapping."),
        (
            nested("session.reset_by_platform", 5),
            "session.reset_by_platform is 5, but must be a mapping from a platform to settings as in session.reset.",
        ),
        (nested("session", ["reset"]), "session is a list, but must be a mapping."),
        (
            nested("session.reset_by_type.channel", {}),
            "session.reset_by_type has the name 'channel', but a name there must be dm or group or thread.",
        ),
        (
            nested("session.reset_by_platform.Tele gram", {}),
            "session.reset_by_platform has the name 'Tele gram', but a name there must be that of a platform.",
        ),
        (
            nested("session.reset_by_platform.slack.mode", "x"),
            "session.reset_by_platform.slack.mode is 'x', but must be none, idle, daily or both.",
        ),
        (
            nested("session.identity_links.a:b", []),
            "session.identity_links has the name 'a:b', but a name there must be without a colon.",
        ),
        (
            nested("session.identity_links.alice", ["123"]),
            "session.identity_links.alice[0] is '123', but must be a person as platform:id, like telegram:123456.",
        ),
        (
            nested("session.identity_links", {"alice": ["x:1"], "bob": ["x:1"]}),
            "session.identity_links gives x:1 to both alice and bob.",
        ),
        (
            nested("owners", "telegram:1"),
            "owners is 'telegram:1', but must be a list, each item a person as platform:id, like telegram:123456.",
        ),
        (
            nested("owners", ["telegram:1", 5]),
            "owners[1] is 5, but must be a person as platform:id, like telegram:123456.",
        ),
        (
            nested("database", "mysql://bob:secret@db/x"),
            "database is 'mysql://bob:***@db/x', but must be sqlite or an address that begins with postgresql://.",
        ),
    ],
)
def test_a_bad_value_is_refused_with_its_key_and_what_is_allowed(raw: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        settings_from(raw, HOME, {})
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sesion", "did you mean session?"),
        ("session.rest", "did you mean session.reset?"),
        ("session.reset.atHours", "did you mean session.reset.at_hour?"),
        ("session.mainkey", "did you mean session.main_key?"),
        ("session_rest", "did you mean session.reset?"),
        ("dm_scope", "did you mean session.dm_scope?"),
        ("session.owners", "did you mean owners?"),
        ("colour", "known there: database, model, "),
        ("agent.zzz", "known there: approvals, entry, auto_continue_freshness, turn_timeout, drain_timeout."),
        ("web.backend", "`segue config show` lists them all."),
        ("zzz.telegram.token", "`segue config show` lists them all."),
    ],
)
def test_an_unknown_key_is_refused_with_a_suggestion(name: str, hint: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        settings_from(nested(name, "hunter2"), HOME, {})
    assert str(caught.value).startswith(f"{name} is no setting; {hint}")
    assert "hunter2" not in str(caught.value)


def test_dots_do_not_stand_for_sections() -> None:
    with pytest.raises(
        InvalidSettings, match=r"^'session\.reset\.mode' is no setting; write sections inside each other"
    ):
        settings_from({"session.reset.mode": "idle"}, HOME, {})


def test_an_error_names_the_key_as_it_was_written() -> None:
    with pytest.raises(InvalidSettings, match=r"^platforms\.slack\.session_reset\.atHour is 99"):
        settings_from({"platforms": {"slack": {"session_reset": {"atHour": 99}}}}, HOME, {})
    with pytest.raises(InvalidSettings, match=r"^session_reset\.color is no setting"):
        settings_from({"session_reset": {"color": 1}}, HOME, {})


def test_variables_work_for_every_kind_of_value() -> None:
    raw = {
        "owners": ["telegram:${ID}", "${PLATFORM:-discord}:${ID}"],
        "thread_sessions_per_user": "${SHARED:-true}",
        "session": {"reset": {"at_hour": "${HOUR:-4}", "mode": "${MODE}"}},
    }
    settings = settings_from(raw, HOME, {"ID": "7", "HOUR": "21", "MODE": "idle"})
    assert settings.owners == ("telegram:7", "discord:7")
    assert settings.thread_sessions_per_user is True
    assert (settings.session.reset.at_hour, settings.session.reset.mode) == (21, ResetMode.IDLE)


def test_an_unset_variable_is_an_error_naming_key_and_variable() -> None:
    with pytest.raises(InvalidSettings) as caught:
        settings_from({"session_reset": {"at_hour": "${HOUR}"}}, HOME, {})
    assert str(caught.value) == ("session_reset.at_hour needs the environment variable HOUR, which is not set.")


@pytest.mark.parametrize(
    ("environ", "home"),
    [
        ({"HOME": "/home/alice"}, "/home/alice/.segue"),
        ({"HOME": "/home/alice", "SEGUE_HOME": ""}, "/home/alice/.segue"),
        ({"HOME": "/home/alice", "SEGUE_HOME": "/srv/segue"}, "/srv/segue"),
        ({"HOME": "/home/alice", "SEGUE_HOME": "~/talks"}, "/home/alice/talks"),
        ({"HOME": "/home/alice", "SEGUE_HOME": "~"}, "/home/alice"),
        ({"SEGUE_HOME": "talks"}, str(Path.cwd() / "talks")),
        ({}, str(Path.home() / ".segue")),
    ],
)
def test_the_home_is_an_absolute_path(environ: dict[str, str], home: str) -> None:
    assert str(home_from(environ)) == home


def test_a_home_of_nobody_is_refused() -> None:
    with pytest.raises(InvalidSettings, match="SEGUE_HOME"):
        home_from({"SEGUE_HOME": "~nobody-of-that-name/segue"})


def test_the_environment_says_which_settings_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.yaml").write_text("owners: ['telegram:${OWNER_ID}']")
    monkeypatch.setenv("SEGUE_HOME", str(tmp_path))
    monkeypatch.setenv("OWNER_ID", "42")
    assert from_environment().owners == ("telegram:42",)
    assert from_environment().home == tmp_path
    assert notes_from_environment() == []


@pytest.mark.parametrize(
    ("no_colour", "terminal", "wanted"),
    [(None, "xterm", True), ("", "xterm", True), ("1", "xterm", False), (None, "dumb", False), (None, None, True)],
)
def test_colour_is_left_out_where_the_environment_says_so(
    no_colour: str | None, terminal: str | None, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"NO_COLOR": no_colour, "TERM": terminal}.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert wants_colour() is wanted


def test_a_check_reports_aliases_and_settings_without_effect(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        """
        session_reset: {mode: daily}
        session: {dmScope: main, store: x, reset_by_platform: {cli: {mode: daily}, slack: {mode: idle}}}
        """
    )
    assert check(tmp_path, {}) == [
        "session_reset is read as session.reset.",
        "session.dmScope is read as session.dm_scope.",
        "session.store has no effect in Segue.",
        "session.reset_by_platform.cli has no effect: cli never resets by itself.",
        "session.dm_scope is main but owners is empty, so nobody's direct messages go to the main lane.",
    ]


def test_a_check_of_nothing_finds_nothing(tmp_path: Path) -> None:
    assert check(tmp_path, {}) == []


def test_a_file_of_another_gateway_is_understood(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        """{
          session: {
            scope: "per-sender",
            dmScope: "main",
            identityLinks: { alice: ["telegram:123456789", "discord:987654321012345678"] },
            reset: { mode: "daily", atHour: 4, idleMinutes: 120 },
            resetByType: {
              thread: { mode: "daily", atHour: 4 },
              dm: { mode: "idle", idleMinutes: 240 },
              group: { mode: "idle", idleMinutes: 120 }
            },
            resetByChannel: { discord: { mode: "idle", idleMinutes: 10080 } },
            store: "~/.clawdbot/agents/{agentId}/sessions/sessions.json",
            mainKey: "main",
          }
        }"""
    )
    settings = load(tmp_path, {})
    assert settings.key_rules.linked_name("discord", "987654321012345678") == "alice"
    policies = settings.reset_policies
    lanes = [("slack", "dm"), ("slack", "group"), ("slack", "group", "7"), ("discord", "dm")]
    found = [policies.choose(*lane) for lane in lanes]
    assert [(one.mode.value, one.idle.total_seconds() // 60) for one in found] == [
        ("idle", 240), ("idle", 120), ("daily", 120), ("idle", 10080),
    ]  # fmt: skip


def names() -> st.SearchStrategy[str]:
    parts = {part for name in (*ALIASES, *ALIASES.values()) for part in name.split(".")} - {"*"}
    known = [
        *parts,
        "mode",
        "timezone",
        "notify",
        "owners",
        "database",
        "retention",
        "trash_days",
        "dm",
        "slack",
        "scope",
    ]
    return st.one_of(st.sampled_from(sorted(known)), st.text(max_size=8))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["idle", "daily", "host", "Europe", "telegram:1", "${X}", "${X:-4}", "$${", "sqlite", "main", 4, 60]
    )
    | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names() | st.integers(), inner, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(names(), VALUES, max_size=6), st.dictionaries(st.just("X") | st.just("TZ"), st.text(max_size=8)))
def test_anything_else_is_refused_in_one_sentence(raw: dict[str, object], environ: dict[str, str]) -> None:
    sentence = refusal(raw, environ)
    if sentence is None:
        settings = settings_from(raw, HOME, environ)
        again = settings_from(literal(shown(settings)), HOME, environ)
        assert again.key_rules == settings.key_rules
        assert again.reset_policies == settings.reset_policies
    else:
        assert sentence[-1] in ".?"
        assert sentence.isprintable()


RULES = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(list(ResetMode)),
        "at_hour": st.integers(0, 23),
        "idle_minutes": st.integers(1, 10_000_000),
        "notify": st.booleans(),
        "timezone": st.sampled_from(["host", "UTC", "Europe/Berlin"]),
    },
)


@given(
    RULES, st.dictionaries(st.sampled_from(["dm", "group", "thread"]), RULES), st.dictionaries(st.just("slack"), RULES)
)
def test_what_is_shown_means_the_same_when_it_is_written_down(
    reset: dict[str, object], by_type: dict[str, object], by_platform: dict[str, object]
) -> None:
    raw = {"session": {"reset": reset, "reset_by_type": by_type, "reset_by_platform": by_platform}}
    settings = settings_from(raw, HOME, {"TZ": "Asia/Tokyo"})
    again = settings_from(shown(settings), HOME, {"TZ": "Asia/Tokyo"})
    assert again.reset_policies == settings.reset_policies
    assert shown(again) == shown(settings)


def refusal(raw: dict[str, object], environ: dict[str, str]) -> str | None:
    try:
        settings_from(raw, HOME, environ)
    except InvalidSettings as error:
        return str(error)
    return None


def literal(plain: dict[str, Any]) -> dict[str, Any]:
    """The same, to be written down: nothing in it refers to a variable."""
    return dict(json.loads(json.dumps(plain).replace("${", "$${")))


@pytest.mark.parametrize("slow", ["yaml", "zoneinfo", "difflib"])
def test_reading_a_home_without_settings_of_its_own_imports_nothing_slow(slow: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("# nothing but\n\n  # comments\n")
    program = "import pathlib, sys, segue.config; segue.config.load(pathlib.Path(sys.argv[1]), {}); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program, tmp_path], check=True, capture_output=True, text=True)
    assert "segue.config" in ran.stdout.split()
    assert slow not in ran.stdout.split()
