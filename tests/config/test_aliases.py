"""Settings under the names that other programs give them."""

import pytest

from segue.config.aliases import ALIASES, translate
from segue.config.kinds import Problem

RULE = {"mode": "idle", "idle_minutes": 60}
CAMEL_RULE = {"mode": "idle", "idleMinutes": 60}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"session_reset": RULE}, {"session": {"reset": RULE}}),
        ({"platforms": {"slack": {"session_reset": RULE}}}, {"session": {"reset_by_platform": {"slack": RULE}}}),
        ({"channels": {"slack": {"session_reset": RULE}}}, {"session": {"reset_by_platform": {"slack": RULE}}}),
        ({"session": {"mainKey": "m"}}, {"session": {"main_key": "m"}}),
        ({"session": {"dmScope": "main"}}, {"session": {"dm_scope": "main"}}),
        ({"session": {"identityLinks": {"a": ["x:1"]}}}, {"session": {"identity_links": {"a": ["x:1"]}}}),
        ({"session": {"reset": {"atHour": 5}}}, {"session": {"reset": {"at_hour": 5}}}),
        ({"session": {"resetByType": {"dm": CAMEL_RULE}}}, {"session": {"reset_by_type": {"dm": RULE}}}),
        (
            {"session": {"resetByChannel": {"discord": CAMEL_RULE}}},
            {"session": {"reset_by_platform": {"discord": RULE}}},
        ),
        ({"session": {"reset_by_channel": {"discord": RULE}}}, {"session": {"reset_by_platform": {"discord": RULE}}}),
        ({"session": {"group_sessions_per_user": False}}, {"group_sessions_per_user": False}),
        ({"session": {"thread_sessions_per_user": True}}, {"thread_sessions_per_user": True}),
        ({"agent": {"gateway_auto_continue_freshness": 60}}, {"agent": {"auto_continue_freshness": 60}}),
        ({"agent": {"gateway_timeout": 60}}, {"agent": {"turn_timeout": 60}}),
        ({"session": {"resetTriggers": ["/new"]}}, {"session": {"reset_triggers": ["/new"]}}),
        ({"channels": {"slack": {"enabled": False}}}, {"platforms": {"slack": {"enabled": False}}}),
        ({"session": {"scope": "per-sender", "store": "~/x/{agentId}.json"}}, {}),
    ],
)
def test_an_alias_is_read_as_the_setting_it_means(written: dict[str, object], read: dict[str, object]) -> None:
    translation = translate(written)
    assert translation.settings == read
    assert translation.notes


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"idleMinutes": 60}, RULE),
        ({"idle_minutes": 60}, RULE),
        ({"idleMinutes": 60, "reset": None}, RULE),
        ({"idleMinutes": 60, "reset": {"mode": "daily"}}, {"mode": "daily", "idle_minutes": 60}),
        ({"idleMinutes": 60, "resetByType": {"dm": {"mode": "none"}}}, {"idle_minutes": 60}),
        ({"idleMinutes": 60, "resetByChannel": {"slack": {"mode": "none"}}}, RULE),
        ({"reset": {"idleMinutes": 60}}, {"idle_minutes": 60}),
    ],
)
def test_a_lone_idle_time_means_the_mode_idle(written: dict[str, object], read: dict[str, object]) -> None:
    session = translate({"session": written}).settings["session"]
    assert isinstance(session, dict)
    assert session["reset"] == read


@pytest.mark.parametrize(
    ("written", "names"),
    [
        (
            {"session_reset": {"mode": "idle"}, "session": {"reset": {"mode": "none"}}},
            ("session_reset.mode", "session.reset.mode"),
        ),
        ({"session": {"mainKey": "a", "main_key": "a"}}, ("session.mainKey", "session.main_key")),
        ({"session": {"reset": {"atHour": 4, "at_hour": 4}}}, ("session.reset.atHour", "session.reset.at_hour")),
        ({"session_reset": 5, "session": {"reset": {"mode": "idle"}}}, ("session_reset", "session.reset.mode")),
        ({"session": {"reset": {"mode": "idle"}}, "session_reset": 5}, ("session_reset", "session.reset.mode")),
        (
            {"session": {"idleMinutes": 5, "reset": {"idle_minutes": 6}}},
            ("session.idleMinutes", "session.reset.idle_minutes"),
        ),
        (
            {"platforms": {"x": {"session_reset": RULE}}, "session": {"resetByChannel": {"x": RULE}}},
            ("platforms.x.session_reset.mode", "session.resetByChannel.x.mode"),
        ),
    ],
)
def test_a_setting_given_twice_is_refused_under_both_names(written: dict[str, object], names: tuple[str, str]) -> None:
    with pytest.raises(Problem) as caught:
        translate(written)
    said = f"{'.'.join(caught.value.key)} {caught.value.says}"
    assert all(name in said for name in names)
    assert "same setting" in said


def test_fields_of_one_rule_may_come_under_two_names() -> None:
    written = {"session_reset": {"mode": "idle"}, "session": {"reset": {"idle_minutes": 60}}}
    assert translate(written).settings == {"session": {"reset": RULE}}


@pytest.mark.parametrize("empty", [None, {}])
def test_an_empty_section_is_no_second_setting(empty: object) -> None:
    said: dict[str, object] = {"session": {"reset": {"mode": "idle"}}}
    assert translate({"session_reset": empty, **said}).settings == said
    assert translate({**said, "session_reset": empty}).settings == said


def test_an_empty_rule_of_a_platform_is_kept() -> None:
    written: dict[str, object] = {"platforms": {"slack": {"session_reset": {}}}}
    assert translate(written).settings == {"session": {"reset_by_platform": {"slack": {}}}}


def test_our_own_names_are_left_alone_and_not_reported() -> None:
    written = {
        "owners": ["telegram:1"],
        "session": {"reset": RULE, "identity_links": {"resetByType": []}},
        "other": [{}],
    }
    translation = translate(written)
    assert translation.settings == written
    assert translation.notes == []


def test_each_alias_is_reported_once_with_what_it_means() -> None:
    written = {"session": {"resetByChannel": {"slack": {"mode": "idle", "idleMinutes": 1}}, "store": "x"}}
    assert translate(written).notes == [
        "session.resetByChannel is read as session.reset_by_platform.",
        "session.resetByChannel.slack.idleMinutes is read as session.reset_by_platform.slack.idle_minutes.",
        "session.store has no effect in Segue.",
    ]


@pytest.mark.parametrize("name", ALIASES)
def test_every_alias_is_known_by_its_own_name(name: str) -> None:
    written = name.replace("*", "slack").split(".")
    value: dict[str, object] = {}
    at = value
    for part in written[:-1]:
        at[part] = at = {}
    at[written[-1]] = {}
    assert any(note.startswith(".".join(written) + " is read as ") for note in translate(value).notes)


def test_translating_changes_nothing_in_what_was_written() -> None:
    written: dict[str, object] = {"session_reset": {}, "session": {"reset": {"mode": "idle"}}}
    translate(written)
    assert written == {"session_reset": {}, "session": {"reset": {"mode": "idle"}}}


def test_another_scope_than_per_sender_is_refused() -> None:
    with pytest.raises(Problem, match="only per-sender"):
        translate({"session": {"scope": "global"}})


def test_a_name_must_be_text() -> None:
    with pytest.raises(Problem, match="must be text"):
        translate({"session": {5: "x"}})
