"""A source says where a message came from, and comes back from a dictionary as it was."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.core.errors import InvalidSource
from segue.core.sources import SessionSource

OPTIONAL_TEXT = (
    *("chat_name", "user_id", "user_name", "thread_id", "chat_topic", "user_id_alt", "chat_id_alt"),
    *("guild_id", "parent_chat_id", "message_id", "account"),
)
something = st.text(min_size=1, max_size=10)
sources = st.builds(
    SessionSource,
    platform=something,
    chat_id=st.text(max_size=10),
    chat_type=st.sampled_from(["dm", "group", "channel", "thread"]),
    is_bot=st.booleans(),
    role_authorized=st.booleans(),
    **{name: st.none() | something for name in OPTIONAL_TEXT},
)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (SessionSource(platform="cli"), "terminal"),
        (SessionSource(platform="telegram", chat_id="1", user_id="7", user_name="Alice"), "DM with Alice"),
        (SessionSource(platform="telegram", chat_id="1", user_id="7"), "DM with 7"),
        (SessionSource(platform="telegram"), "DM with someone"),
        (SessionSource(platform="telegram", chat_id="-1", chat_type="group", chat_name="My Group"), "group: My Group"),
        (SessionSource(platform="telegram", chat_id="-1", chat_type="group"), "group: -1"),
        (SessionSource(platform="slack", chat_id="C1", chat_type="channel", chat_name="ops"), "channel: ops"),
        (
            SessionSource(
                platform="telegram", chat_id="-1", chat_type="group", chat_name="My Group", thread_id="12345"
            ),
            "group: My Group, thread: 12345",
        ),
    ],
)
def test_described_as(source: SessionSource, words: str) -> None:
    assert source.description == words


@pytest.mark.parametrize(
    ("user_id", "user_id_alt", "participant"),
    [
        ("u", None, "u"),
        ("u", "stable", "stable"),
        (None, "stable", "stable"),
        (None, None, ""),
        ("u", "", "u"),
        ("", "", ""),
    ],
)
def test_the_participant_is_the_id_that_stays(user_id: str | None, user_id_alt: str | None, participant: str) -> None:
    assert SessionSource(platform="signal", user_id=user_id, user_id_alt=user_id_alt).participant == participant


@given(sources)
@settings(max_examples=50)
def test_a_source_comes_back_from_its_dictionary(source: SessionSource) -> None:
    assert SessionSource.from_dict(source.to_dict()) == source
    assert SessionSource.from_dict(json.loads(json.dumps(source.to_dict()))) == source


def test_the_dictionary_holds_only_what_says_something() -> None:
    source = SessionSource(platform="telegram", chat_id="", user_name="", user_id="7", is_bot=False)
    assert source.to_dict() == {"platform": "telegram", "chat_type": "dm", "user_id": "7"}


def test_every_field_is_carried() -> None:
    fields = {field.name: field.name for field in dataclasses.fields(SessionSource)}
    source = SessionSource.from_dict({**fields, "is_bot": True, "role_authorized": True})
    assert source.to_dict() == {**fields, "is_bot": True, "role_authorized": True}


def test_a_source_cannot_be_changed() -> None:
    source = SessionSource(platform="slack")
    for field in dataclasses.fields(source):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(source, field.name, "another")


def test_fields_of_a_newer_program_are_left_aside() -> None:
    assert SessionSource.from_dict({"platform": "slack", "mood": "good"}) == SessionSource(platform="slack")


@pytest.mark.parametrize("data", [{}, {"platform": None}, {"platform": 7}, {"chat_id": "1"}])
def test_a_source_without_a_platform_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(InvalidSource):
        SessionSource.from_dict(data)


def test_null_means_absent() -> None:
    nothing = {field.name: None for field in dataclasses.fields(SessionSource)}
    assert SessionSource.from_dict({**nothing, "platform": "slack"}) == SessionSource(platform="slack")


@pytest.mark.parametrize("field", ["chat_id", "user_id", "thread_id", "account"])
def test_a_number_for_an_id_is_made_text_or_refused(field: str) -> None:
    try:
        source = SessionSource.from_dict({"platform": "telegram", field: 12345})
    except InvalidSource:
        return
    assert getattr(source, field) == "12345"
