"""From what somebody typed to the session that is meant: by id, by the beginning of one, by name and real links."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from segue.core.errors import Ambiguous, InvalidSession, SegueError, SessionNotFound, SessionTrashed
from segue.core.messages import draft
from segue.core.portable import from_mapping
from segue.core.scope import OWNER_AT_CONSOLE, Audience, Principal, Scope
from segue.core.sessions import Session
from segue.ports.store import Store
from segue.sessions.compressing import compress_session
from segue.sessions.discarding import discard_conversation, restore_conversation
from segue.sessions.finding import (
    find_ancestors,
    find_conversation,
    find_id,
    find_tip,
    find_titled,
    get_id,
    get_named,
    get_session,
)
from segue.sessions.importing import OnConflict, import_session
from segue.sessions.starting import create_session
from segue.sessions.titling import set_title

ME = OWNER_AT_CONSOLE
BOB, CAROL = Scope(Principal("telegram:1")), Scope(Principal("telegram:2"))
ROOM = Audience("room")
BOB_IN_THE_ROOM, THE_ROOM = Scope(Principal("telegram:1"), ROOM), Scope(Principal(ROOM), ROOM)


def begin(store: Store, name: str, title: str | None = None, scope: Scope = ME, **columns: Any) -> None:
    store.write(scope, create_session, Session(name, "cli", started_at=1.0)._replace(**columns))
    if title:
        store.write(scope, set_title, name, title)


def compress(store: Store, parent: str, child: str, now: float = 5.0) -> None:
    summary = draft("user", "so far", now)
    store.write(ME, compress_session, parent, child_id=child, summary=summary, kept=None, now=now)


# By id


@pytest.fixture
def ids(store: Store) -> Store:
    for name in ("20250305_091523_a1b2c3d4", "20250305_091523_a1ffffff", "20250306", "20250306_1", "100%_x", "语言"):
        begin(store, name)
    return store


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        pytest.param("20250305_091523_a1b2c3d4", "20250305_091523_a1b2c3d4", id="the whole id"),
        pytest.param("20250305_091523_a1b", "20250305_091523_a1b2c3d4", id="the beginning of one"),
        pytest.param("20250306", "20250306", id="the whole id, although another begins so"),
        pytest.param("20250306_", "20250306_1", id="longer than the shorter one"),
        pytest.param("语", "语言", id="in any script"),
        pytest.param("100%", "100%_x", id="with a per cent sign"),
        pytest.param("a1b2c3d4", None, id="never the middle"),
        pytest.param("%", None, id="no wildcard"),
        pytest.param("_", None, id="no other wildcard"),
        pytest.param("2025030_", None, id="no wildcard inside"),
        pytest.param("20250306_12", None, id="longer than any"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_an_id_is_found_whole_or_by_its_beginning(ids: Store, wanted: str, found: str | None) -> None:
    assert ids.read(ME, find_id, wanted) == found


def test_the_beginning_of_several_lists_them(ids: Store) -> None:
    with pytest.raises(Ambiguous) as refusal:
        ids.read(ME, find_id, "20250305_")
    assert refusal.value.candidates == ("20250305_091523_a1b2c3d4", "20250305_091523_a1ffffff")
    assert "20250305_091523_a1ffffff" in str(refusal.value)


def test_an_id_of_somebody_else_is_neither_found_nor_in_the_way(store: Store) -> None:
    begin(store, "abc-mine")
    begin(store, "abc-bob", scope=BOB)
    assert store.read(BOB, find_id, "abc") == "abc-bob"
    assert store.read(BOB, find_id, "abc-mine") is None
    assert store.read(CAROL, find_id, "abc-bob") is None


# By title


@pytest.fixture
def lineage(store: Store) -> Store:
    """`my project` in three parts, and strangers whose names look alike."""
    begin(store, "a", "my project")
    begin(store, "stranger", "my project #77", last_active_at=99.0)
    compress(store, "a", "b", 5.0)
    compress(store, "b", "c", 6.0)
    begin(store, "other", "my project and more")
    return store


def test_a_name_leads_to_the_newest_part_from_every_part(lineage: Store) -> None:
    parts = [lineage.read(ME, get_session, name).title for name in "abc"]
    assert [lineage.read(ME, find_titled, title or "") for title in parts] == ["c", "c", "c"]


def test_a_name_never_leads_to_a_stranger_that_looks_alike(lineage: Store) -> None:
    assert lineage.read(ME, find_titled, "my project") == "c"
    assert lineage.read(ME, find_titled, "my project #77") == "stranger"


@pytest.mark.parametrize("title", ["my", "my projec", "MY PROJECT", "my project #4", "my project%", "", " "])
def test_a_name_that_nobody_has_leads_nowhere(lineage: Store, title: str) -> None:
    assert lineage.read(ME, find_titled, title) is None


@pytest.mark.parametrize("typed", ["  my   project\n", "my\u200b project", "my project\x00"])
def test_a_name_is_cleaned_before_it_is_looked_up(lineage: Store, typed: str) -> None:
    assert lineage.read(ME, find_titled, typed) == "c"


def test_of_a_lineage_that_forked_the_newest_end_is_meant(store: Store) -> None:
    begin(store, "a", "my project")
    begin(store, "older child", parent_session_id="a", started_at=2.0)
    begin(store, "younger child", parent_session_id="a", started_at=3.0)
    begin(store, "grandchild", parent_session_id="older child", started_at=4.0)
    assert store.read(ME, find_titled, "my project") == "grandchild"


def test_a_persons_own_comes_before_anybody_elses(store: Store) -> None:
    begin(store, "mine", "p")
    begin(store, "bob's", "p", BOB)
    begin(store, "carol's", "p", CAROL)
    assert store.read(ME, find_titled, "p") == "mine"
    assert store.read(BOB, find_titled, "p") == "bob's"


def test_a_name_that_only_others_have_lists_whose_it_is(store: Store) -> None:
    begin(store, "bob's", "p", BOB)
    assert store.read(ME, find_titled, "p") == "bob's"
    begin(store, "carol's", "p", CAROL)
    with pytest.raises(Ambiguous, match="telegram:1"):
        store.read(ME, find_titled, "p")


@pytest.mark.parametrize("scope", [CAROL, BOB_IN_THE_ROOM, THE_ROOM], ids=["another", "in a room", "the room"])
def test_a_name_is_not_found_where_its_session_may_not_be_seen(store: Store, scope: Scope) -> None:
    begin(store, "bob's", "p", BOB)
    assert store.read(scope, find_titled, "p") is None


def test_a_room_finds_what_was_named_in_it(store: Store) -> None:
    begin(store, "room's", "p", THE_ROOM)
    begin(store, "bob's there", "q", BOB_IN_THE_ROOM)
    assert store.read(THE_ROOM, find_titled, "p") == "room's"
    assert store.read(BOB_IN_THE_ROOM, find_titled, "p") == "room's"
    assert store.read(BOB_IN_THE_ROOM, find_titled, "q") == "bob's there"
    assert store.read(THE_ROOM, find_titled, "q") is None


# By anything


def test_an_id_goes_before_a_title_and_a_title_before_a_beginning(store: Store) -> None:
    begin(store, "x")
    begin(store, "named x", "x")
    begin(store, "yes")
    begin(store, "named y", "y")
    begin(store, "zebra")
    assert [store.read(ME, get_id, wanted) for wanted in "xyz"] == ["x", "named y", "zebra"]


@pytest.mark.parametrize("wanted", ["", "nobody", "\x00", "../..", "'"])
def test_what_means_nothing_is_an_error_that_says_so(store: Store, wanted: str) -> None:
    begin(store, "a")
    for get in (get_id, get_session):
        with pytest.raises(SessionNotFound):
            store.read(ME, get, wanted)


@pytest.mark.parametrize("typed", ["MY PROJECT", "My Project", " my   PROJECT  "])
def test_a_title_is_found_in_other_letters_and_leads_to_the_newest_part(lineage: Store, typed: str) -> None:
    assert lineage.read(ME, get_id, typed) == "c"
    assert lineage.read(ME, get_named, typed) == "a"


@pytest.mark.parametrize(
    ("title", "typed"), [("Straße", "STRASSE"), ("Überblick", "überBLICK"), ("ΣΊΣΥΦΟΣ", "σίσυφος")]
)
def test_letters_of_every_script_have_two_cases(store: Store, title: str, typed: str) -> None:
    begin(store, "a", title)
    assert store.read(ME, get_id, typed) == "a"


def test_a_title_goes_before_the_same_in_other_letters_and_both_before_a_beginning(store: Store) -> None:
    begin(store, "soup-1")
    begin(store, "a", "Soup")
    assert store.read(ME, get_id, "soup") == "a"
    begin(store, "b", "SOUP")
    assert [store.read(ME, get_id, typed) for typed in ("Soup", "SOUP")] == ["a", "b"]
    with pytest.raises(Ambiguous, match=r"a \('Soup'\), b \('SOUP'\)|b \('SOUP'\), a \('Soup'\)"):
        store.read(ME, get_id, "soup")


def test_what_is_nearly_a_title_is_asked_about(store: Store) -> None:
    begin(store, "a", "My project")
    begin(store, "b", "A week in Lisbon")
    begin(store, "c", "Lisbon", BOB)
    for typed, near in [("my projec", "'My project'"), ("lisbn week", None), ("week", "'A week in Lisbon'")]:
        with pytest.raises(SessionNotFound) as refusal:
            store.read(BOB_IN_THE_ROOM if near is None else ME, get_id, typed)
        assert ("did you mean" in str(refusal.value)) == (near is not None)
        assert near is None or f"did you mean {near}?" in str(refusal.value)


@pytest.mark.parametrize("typed", ["my PROJECT", "A"])
def test_what_is_in_the_trash_is_said_to_be_there_in_other_letters_too(store: Store, typed: str) -> None:
    begin(store, "A", "My project")
    store.write(ME, discard_conversation, "A", 9.0)
    with pytest.raises(SessionTrashed):
        store.read(ME, get_id, typed)
    assert store.write(ME, restore_conversation, typed).session_ids == ["A"]


@pytest.mark.parametrize("wanted", ["", " ", "\x00"])
def test_what_means_nothing_is_not_an_untitled_one_in_the_trash(store: Store, wanted: str) -> None:
    begin(store, "a")
    store.write(ME, discard_conversation, "a", 9.0)
    with pytest.raises(SessionNotFound) as refusal:
        store.read(ME, get_id, wanted)
    assert not isinstance(refusal.value, SessionTrashed)


def test_exactly_the_named_part_can_be_had(lineage: Store) -> None:
    second = lineage.read(ME, get_session, "b").title or ""
    assert [lineage.read(ME, get_named, typed) for typed in ("my project", second, "b")] == ["a", "b", "b"]


# Relatives


def test_the_parts_before_a_session_come_oldest_first(lineage: Store) -> None:
    assert [one.id for one in lineage.read(ME, lambda tx: find_ancestors(tx, get_session(tx, "c")))] == ["a", "b"]
    assert lineage.read(ME, lambda tx: find_ancestors(tx, get_session(tx, "a"))) == []


def test_the_tip_is_found_from_every_part(lineage: Store) -> None:
    assert [lineage.read(ME, find_tip, name) for name in ("a", "b", "c", "stranger")] == ["c", "c", "c", "stranger"]


@pytest.mark.parametrize("part", ["a", "b", "c"])
def test_a_conversation_is_all_its_parts_and_subagents_and_nobody_else(lineage: Store, part: str) -> None:
    begin(lineage, "sub of a", spawned_by="a", kind="subagent")
    begin(lineage, "sub of c", spawned_by="c", kind="subagent")
    begin(lineage, "sub of sub", spawned_by="sub of c", kind="subagent")
    begin(lineage, "branch", branched_from="b")
    begin(lineage, "after a reset", reset_from="b")
    compress(lineage, "sub of sub", "sub of sub, continued", 7.0)
    found = lineage.read(ME, find_conversation, part)
    assert found[:3] == ["a", "b", "c"]
    assert sorted(found[3:]) == ["sub of a", "sub of c", "sub of sub", "sub of sub, continued"]


@pytest.mark.parametrize("owner", [ME, CAROL], ids=["the owner's", "a person's"])
def test_nobody_becomes_a_relative_by_saying_so(store: Store, owner: Scope) -> None:
    begin(store, "a", "my project", owner)
    for claim in ({"parent_session_id": "a"}, {"spawned_by": "a"}):
        with suppress(SegueError):
            begin(store, f"claimed {claim}", scope=BOB, **claim)
    for scope in (owner, ME):
        assert store.read(scope, find_titled, "my project") == "a"
        assert store.read(scope, find_tip, "a") == "a"
        assert store.read(scope, find_conversation, "a") == ["a"]


def test_a_subagent_alone_is_a_conversation_too(store: Store) -> None:
    begin(store, "a")
    begin(store, "sub", spawned_by="a", kind="subagent")
    assert store.read(ME, find_conversation, "sub") == ["sub"]


@pytest.mark.parametrize(
    "links",
    [
        pytest.param({"a": "a"}, id="its own parent"),
        pytest.param({"a": "b", "b": "a"}, id="each the other's parent"),
        pytest.param({"a": "c", "b": "a", "c": "b"}, id="a circle of three"),
        pytest.param({"a": "gone"}, id="a parent that is not there"),
    ],
)
def test_links_of_any_shape_come_to_an_end(store: Store, links: dict[str, str]) -> None:
    for child, parent in links.items():
        session = Session(child, "cli", started_at=1.0, parent_session_id=parent)
        store.write(ME, lambda tx, session=session: tx.sessions.insert(session))  # type: ignore[misc]
    assert sorted(store.read(ME, find_conversation, "a")) == sorted(links)
    assert store.read(ME, find_tip, "a") in links
    assert store.read(ME, lambda tx: len(find_ancestors(tx, get_session(tx, "a")))) == len(links) - 1


def test_no_link_closes_a_circle(store: Store) -> None:
    begin(store, "a", parent_session_id="b")
    for session in (
        Session("b", "cli", parent_session_id="a"),
        Session("c", "cli", parent_session_id="c"),
        Session("c", "cli", spawned_by="c"),
    ):
        with pytest.raises(InvalidSession):
            store.write(ME, create_session, session)
    looped = from_mapping({"id": "b", "source": "cli", "parent_session_id": "a"})
    done = store.write(ME, import_session, looped, on_conflict=OnConflict.SKIP, now=1.0)
    assert "link was left out" in done.notes[0]
    assert store.read(ME, find_tip, "b") == "a"


Find = Callable[..., object]


@pytest.mark.parametrize("find", [get_session, find_conversation, get_id])
def test_what_is_somebody_elses_is_not_there(store: Store, find: Find) -> None:
    begin(store, "mine", "p")
    for scope in (BOB, BOB_IN_THE_ROOM, THE_ROOM):
        with pytest.raises(SessionNotFound):
            store.read(scope, find, "mine")
