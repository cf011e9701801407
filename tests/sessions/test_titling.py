"""Names for conversations: one holder for each person, and a refusal says who it is."""

from typing import Any

import pytest

from segue.core.errors import SessionNotFound, TitleTaken, TitleTooLong
from segue.core.messages import draft
from segue.core.scope import OWNER, OWNER_AT_CONSOLE, Audience, Principal, Scope
from segue.core.sessions import Session, TitleSource
from segue.ports.store import Store
from segue.sessions.compressing import compress_session
from segue.sessions.finding import get_session
from segue.sessions.starting import create_session
from segue.sessions.titling import free_title, set_title

ME = OWNER_AT_CONSOLE
BOB, CAROL = Scope(Principal("telegram:1")), Scope(Principal("telegram:2"))
ROOM = Audience("room")
BOB_IN_THE_ROOM = Scope(Principal("telegram:1"), ROOM)


def begin(store: Store, name: str, scope: Scope = ME, **columns: Any) -> str:
    return store.write(scope, create_session, Session(name, "cli", started_at=1.0)._replace(**columns))


def name(store: Store, session: str, title: str | None, scope: Scope = ME) -> str | None:
    return store.write(scope, set_title, session, title)


def title_of(store: Store, session: str) -> tuple[str | None, str | None]:
    found = store.read(ME, get_session, session)
    return found.title, found.title_source


def compress(store: Store, parent: str, child: str) -> None:
    summary = draft("user", "so far", 2.0)
    store.write(ME, compress_session, parent, child_id=child, summary=summary, kept=None, now=2.0)


@pytest.mark.parametrize(
    ("raw", "title"),
    [
        ("my project", "my project"),
        ("  two \n lines\t", "two lines"),
        ("pay\u200bpal \x1b[0m", "paypal [0m"),
        ("Café 東京 👨\u200d👩\u200d👧", "Café 東京 👨\u200d👩\u200d👧"),
        ("x" * 100, "x" * 100),
        (" " * 50 + "y" * 100 + "\u200b" * 50, "y" * 100),
    ],
)
def test_a_title_is_kept_as_one_visible_line(store: Store, raw: str, title: str) -> None:
    begin(store, "a")
    assert name(store, "a", raw) == title
    assert title_of(store, "a") == (title, "user")


def test_a_title_remembers_who_gave_it(store: Store) -> None:
    begin(store, "a")
    for source in TitleSource:
        store.write(ME, set_title, "a", f"by {source}", source)
        assert title_of(store, "a") == (f"by {source}", source)


@pytest.mark.parametrize("nothing", [None, "", " \n", "\u200b\x00"])
def test_a_title_can_be_taken_away(store: Store, nothing: str | None) -> None:
    begin(store, "a")
    name(store, "a", "my project")
    assert name(store, "a", nothing) is None
    assert title_of(store, "a") == (None, None)
    begin(store, "b")
    assert name(store, "b", "my project") == "my project"


def test_any_number_of_sessions_have_no_title(store: Store) -> None:
    for session in "abc":
        begin(store, session)
        name(store, session, "")


def test_an_over_long_title_is_refused_and_the_old_one_stays(store: Store) -> None:
    begin(store, "a")
    name(store, "a", "short")
    with pytest.raises(TitleTooLong, match="101"):
        name(store, "a", "x" * 101)
    assert title_of(store, "a") == ("short", "user")


def test_the_holder_may_have_its_title_again(store: Store) -> None:
    begin(store, "a")
    store.write(ME, set_title, "a", "my project", TitleSource.MODEL)
    assert name(store, "a", " my  project ") == "my project"
    assert title_of(store, "a") == ("my project", "user")


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        ({}, "open"),
        ({"ended_at": 2.0, "end_reason": "user_exit"}, "ended: user_exit"),
        ({"ended_at": 2.0}, "ended: no reason given"),
        ({"archived": 1}, "archived"),
        ({"archived": 1, "ended_at": 2.0, "end_reason": "user_exit"}, "archived"),
    ],
)
def test_a_taken_title_names_its_holder_and_its_state(store: Store, columns: dict[str, Any], state: str) -> None:
    begin(store, "the-holder", **columns)
    name(store, "the-holder", "my project")
    begin(store, "b")
    name(store, "b", "before")
    with pytest.raises(TitleTaken) as refusal:
        name(store, "b", "my\tproject")
    assert refusal.value.holder == "the-holder"
    assert "the-holder" in str(refusal.value)
    assert f"({state})" in str(refusal.value)
    assert (title_of(store, "the-holder"), title_of(store, "b")) == (("my project", "user"), ("before", "user"))


def test_titles_that_differ_in_case_or_accents_are_different(store: Store) -> None:
    for number, title in enumerate(["resume", "Resume", "résumé", "re\u0301sume\u0301"]):
        begin(store, str(number))
        assert name(store, str(number), title) == title


def test_each_person_has_the_title_once(store: Store) -> None:
    for session, scope in (("mine", ME), ("bob's", BOB), ("carol's", CAROL)):
        begin(store, session, scope)
        assert name(store, session, "my project", scope) == "my project"
    begin(store, "bob's second", BOB)
    with pytest.raises(TitleTaken, match="bob's"):
        name(store, "bob's second", "my project", BOB)


def test_the_owner_names_a_persons_session_among_that_persons(store: Store) -> None:
    begin(store, "mine")
    name(store, "mine", "my project")
    begin(store, "bob's", BOB)
    assert name(store, "bob's", "my project") == "my project"
    begin(store, "bob's second", BOB)
    with pytest.raises(TitleTaken, match="bob's"):
        name(store, "bob's second", "my project")


@pytest.mark.parametrize(("first", "second"), [(BOB, BOB_IN_THE_ROOM), (BOB_IN_THE_ROOM, BOB)])
def test_a_title_is_one_persons_in_private_and_in_a_room(store: Store, first: Scope, second: Scope) -> None:
    begin(store, "a", first)
    name(store, "a", "my project", first)
    begin(store, "b", second)
    with pytest.raises(TitleTaken):
        name(store, "b", "my project", second)
    assert title_of(store, "b") == (None, None)


@pytest.mark.parametrize("scope", [BOB, CAROL, Scope(Principal(ROOM), ROOM)])
def test_nobody_names_what_is_not_theirs(store: Store, scope: Scope) -> None:
    begin(store, "mine")
    for session in ("mine", "nobody"):
        with pytest.raises(SessionNotFound):
            name(store, session, "stolen", scope)
    assert title_of(store, "mine") == (None, None)


# Lineages


def test_an_ancestor_gives_its_title_up(store: Store) -> None:
    begin(store, "a")
    name(store, "a", "my project")
    compress(store, "a", "b")
    compress(store, "b", "c")
    assert name(store, "c", "my project") == "my project"
    assert [title_of(store, one)[0] for one in "abc"] == [None, "my project #2", "my project"]
    assert title_of(store, "a") == (None, None)


def test_a_descendant_keeps_its_title(store: Store) -> None:
    begin(store, "a")
    name(store, "a", "my project")
    compress(store, "a", "b")
    with pytest.raises(TitleTaken, match="b"):
        name(store, "a", "my project #2")
    assert title_of(store, "b") == ("my project #2", "lineage")


def test_a_stranger_keeps_its_title_however_alike(store: Store) -> None:
    begin(store, "stranger")
    name(store, "stranger", "my project #2")
    begin(store, "a")
    name(store, "a", "my project")
    compress(store, "a", "b")
    with pytest.raises(TitleTaken, match="stranger"):
        name(store, "b", "my project #2")


# The next free one


@pytest.mark.parametrize(
    ("taken", "wanted", "free"),
    [
        ([], "p", "p #2"),
        (["p"], "p", "p #2"),
        (["p", "p #2"], "p", "p #3"),
        (["p", "p #2"], "p #2", "p #3"),
        (["p #9"], "p", "p #10"),
        (["p #10", "p #9"], "p", "p #11"),
        (["p #10"], "p #3", "p #11"),
        (["p#2", "pp #7", "p # 8", "p #9x", "P #9"], "p", "p #2"),
        (["C# #2"], "C#", "C# #3"),
        (["x" * 97 + " #2"], "x" * 100, "x" * 97 + " #3"),
        (["100%", "100_ #8"], "100%", "100% #2"),
        (["語 #2"], "語", "語 #3"),
        (["\U0010ffff #2"], "\U0010ffff", "\U0010ffff #3"),
    ],
)
def test_the_next_free_title(store: Store, taken: list[str], wanted: str, free: str) -> None:
    for number, title in enumerate(taken):
        begin(store, str(number))
        name(store, str(number), title)
    assert store.read(ME, free_title, OWNER, wanted) == free


def test_a_free_title_is_free_for_that_person(store: Store) -> None:
    begin(store, "bob's", BOB)
    name(store, "bob's", "p #2", BOB)
    assert store.read(ME, free_title, OWNER, "p") == "p #2"
    assert store.read(ME, free_title, "telegram:1", "p") == "p #3"
    assert store.read(BOB, free_title, "telegram:1", "p") == "p #3"
