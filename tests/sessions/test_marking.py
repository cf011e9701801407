"""Archived, pinned and tagged: what a mark does, and that it holds for every part of a conversation."""

import pytest

from segue.core.errors import Invalid, SessionNotFound
from segue.core.messages import draft
from segue.core.scope import OWNER_AT_CONSOLE as ME
from segue.core.scope import Principal, Scope
from segue.core.sessions import Session
from segue.ports.store import Filter, Store
from segue.sessions.compressing import compress_session
from segue.sessions.listing import list_sessions
from segue.sessions.marking import archive_conversation, clean_tag, pin_conversation, tag_conversation
from segue.sessions.starting import create_session

BOB = Scope(Principal("telegram:bob"))


@pytest.fixture
def story(store: Store) -> Store:
    """A conversation in two parts, and another one."""
    for name in ("one", "other"):
        store.write(ME, create_session, Session(name, "cli", started_at=1.0))
    summary = draft("user", "so far", 2.0)
    store.write(ME, compress_session, "one", child_id="two", summary=summary, kept=None, now=2.0)
    return store


def listed(store: Store, wanted: Filter) -> list[str]:
    return [session.id for session in store.read(ME, list_sessions, wanted)]


@pytest.mark.parametrize("part", ["one", "two"])
def test_an_archived_conversation_leaves_the_lists_whole_and_comes_back(story: Store, part: str) -> None:
    assert set(story.write(ME, archive_conversation, part, archived=True)) == {"one", "two"}
    assert listed(story, Filter()) == ["other"]
    assert listed(story, Filter(archived=True)) == ["two"]
    story.write(ME, archive_conversation, part, archived=False)
    assert listed(story, Filter()) == ["two", "other"]


def test_a_pin_is_on_every_part(story: Store) -> None:
    story.write(ME, pin_conversation, "two", pinned=True)
    assert set(listed(story, Filter(pinned=True, tips_only=False))) == {"one", "two"}
    story.write(ME, pin_conversation, "one", pinned=False)
    assert listed(story, Filter(pinned=True, tips_only=False)) == []


def test_tags_are_added_once_taken_away_and_found(story: Store) -> None:
    assert story.write(ME, tag_conversation, "one", add=["work", " deep \t thought ", "work"]) == [
        "deep thought",
        "work",
    ]
    assert listed(story, Filter(tag="deep thought")) == ["two"]
    assert story.write(ME, tag_conversation, "two", remove=["work", "never there"]) == ["deep thought"]


@pytest.mark.parametrize("raw", ["", "  ", "\u200b", "\x1b", "x" * 51, "x" * 10_000])
def test_a_tag_must_be_visible_and_short(raw: str) -> None:
    with pytest.raises(Invalid):
        clean_tag(raw)


def test_nobody_marks_somebody_elses_conversation(story: Store) -> None:
    for work in (
        lambda tx: archive_conversation(tx, "one", archived=True),
        lambda tx: pin_conversation(tx, "one", pinned=True),
        lambda tx: tag_conversation(tx, "one", add=["mine"]),
    ):
        with pytest.raises(SessionNotFound):
            story.write(BOB, work)
    assert listed(story, Filter(archived=True)) == listed(story, Filter(tag="mine")) == []
