"""What is known of the place of a lane."""

from dataclasses import replace

import pytest

from segue.core.origins import known_now, origin_of, renamed
from segue.core.sources import SessionSource

DM = SessionSource(platform="telegram", chat_id="7", user_id="42", user_name="Alice")
GROUP = SessionSource(platform="whatsapp", chat_id="g1", chat_type="group", chat_name="Family", user_id="42")
CHANNEL = SessionSource(
    platform="acme_chat",
    chat_id="c9",
    chat_type="channel",
    chat_name="#general",
    user_id="u1",
    guild_id="s1",
    space="Acme",
    thread_id="t3",
    account="work",
)


@pytest.mark.parametrize(
    ("source", "label"),
    [
        (DM, "Alice"),
        (replace(DM, label="Alice at work"), "Alice at work"),
        (replace(DM, user_name=None), "42"),
        (GROUP, "Family"),
        (replace(GROUP, subject="Holidays", label="Family"), "Family · Holidays"),
        (replace(GROUP, chat_name=None), "g1"),
        (CHANNEL, "#general · t3"),
    ],
)
def test_a_place_is_called_as_people_call_it(source: SessionSource, label: str) -> None:
    assert origin_of(source).label == label


def test_ids_are_those_of_the_platform() -> None:
    said = origin_of(DM).to_dict()
    assert (said["from"], said["to"]) == ("42", "7")
    assert "account" not in said


def test_a_channel_of_somebody_elses_platform_says_all_that_it_knows() -> None:
    assert origin_of(CHANNEL).to_dict() == {
        "label": "#general · t3",
        "provider": "acme_chat",
        "from": "u1",
        "to": "c9",
        "account": "work",
        "thread": "t3",
        "display_name": "#general",
        "room": "#general",
        "space": "Acme",
    }


def test_a_group_has_a_subject() -> None:
    said = origin_of(GROUP)
    assert (said.display_name, said.subject, said.room) == ("Family", "Family", None)


def test_what_is_not_said_this_time_is_as_it_was() -> None:
    later = SessionSource(platform="whatsapp", chat_id="g1", chat_type="group", user_id="43")
    assert known_now(GROUP, later) == replace(later, chat_name="Family")
    assert known_now(GROUP, replace(later, chat_id="g2")).chat_name is None
    assert known_now(None, later) == later


def test_a_new_name_of_a_place_leaves_who_spoke_there() -> None:
    told = SessionSource(platform="whatsapp", chat_id="g1", chat_type="group", subject="Trip", user_name="Nobody")
    assert renamed(GROUP, told) == replace(GROUP, subject="Trip")
