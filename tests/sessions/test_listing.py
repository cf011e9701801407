"""What there is: a conversation is one row, the most recently active first, and a scope shows only its own."""

from contextlib import suppress
from typing import Any

import pytest

from segue.core.errors import SegueError
from segue.core.messages import draft
from segue.core.scope import OWNER_AT_CONSOLE, Audience, Principal, Scope
from segue.core.sessions import Session
from segue.ports.store import Filter, SourceCount, Store
from segue.sessions.compressing import compress_session
from segue.sessions.listing import Stats, count_sessions, list_rows, list_sessions, stats
from segue.sessions.recording import append_message
from segue.sessions.starting import create_session

ME = OWNER_AT_CONSOLE
BOB, CAROL = Scope(Principal("telegram:1")), Scope(Principal("telegram:2"))
ROOM, OTHER_ROOM = Audience("room"), Audience("other room")
ANY = Filter()
BOB_IN_THE_ROOM, THE_ROOM = Scope(Principal("telegram:1"), ROOM), Scope(Principal(ROOM), ROOM)


def begin(store: Store, name: str, at: float = 1.0, scope: Scope = ME, **columns: Any) -> None:
    store.write(scope, create_session, Session(name, "cli", started_at=at)._replace(**columns))


def say(store: Store, name: str, at: float, times: int = 1) -> None:
    for _ in range(times):
        store.write(ME, append_message, name, draft("user", "hello", at))


def compress(store: Store, parent: str, child: str, now: float) -> None:
    summary = draft("user", "so far", now)
    store.write(ME, compress_session, parent, child_id=child, summary=summary, kept=None, now=now)


def listed(store: Store, wanted: Filter = ANY, scope: Scope = ME, limit: int = 20, offset: int = 0) -> list[str]:
    return [one.id for one in store.read(scope, list_sessions, wanted, limit, offset)]


# One row for a conversation


def test_a_lineage_is_one_row_its_tip(store: Store) -> None:
    begin(store, "alone", 1.0)
    begin(store, "a", 2.0)
    compress(store, "a", "b", 3.0)
    compress(store, "b", "c", 4.0)
    assert listed(store) == ["c", "alone"]
    assert listed(store, Filter(tips_only=False)) == ["c", "b", "a", "alone"]
    assert store.read(ME, count_sessions, Filter()) == 2


def test_the_row_of_a_lineage_shows_the_newest_part(store: Store) -> None:
    begin(store, "a", 2.0)
    say(store, "a", 2.5)
    compress(store, "a", "b", 3.0)
    say(store, "b", 9.0)
    (row,) = store.read(ME, list_sessions, Filter())
    assert (row.id, row.last_active_at, row.message_count, row.parent_session_id) == ("b", 9.0, 2, "a")


@pytest.mark.parametrize("owner", [ME, CAROL], ids=["the owner's", "a person's"])
def test_a_child_that_somebody_else_claims_hides_nothing(store: Store, owner: Scope) -> None:
    begin(store, "a", scope=owner)
    with suppress(SegueError):
        begin(store, "claimed", scope=BOB, parent_session_id="a")
    assert "a" in listed(store, scope=owner)


# Filters


@pytest.fixture
def population(store: Store) -> Store:
    begin(store, "plain", 10.0)
    begin(store, "telegram", 20.0, source="telegram", agent="helper")
    begin(store, "cron", 30.0, source="cron", kind="automation")
    begin(store, "sub", 40.0, source="subagent", kind="subagent", spawned_by="plain")
    begin(store, "archived", 50.0, archived=1)
    begin(store, "ended", 60.0, ended_at=61.0, end_reason="user_exit")
    begin(store, "pinned", 70.0, pinned=1)
    begin(store, "tagged", 80.0)
    begin(store, "talkative", 90.0)
    say(store, "talkative", 95.0, times=3)
    store.write(ME, lambda tx: tx.sessions.tag("tagged", ["work", "été"]))
    store.write(ME, lambda tx: tx.sessions.tag("archived", ["work"]))
    return store


EVERY = ["talkative", "tagged", "pinned", "ended", "archived", "sub", "cron", "telegram", "plain"]


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        pytest.param(Filter(), [name for name in EVERY if name != "archived"], id="by default"),
        pytest.param(Filter(archived=None), EVERY, id="archived or not"),
        pytest.param(Filter(archived=True), ["archived"], id="archived"),
        pytest.param(
            Filter(kinds=("interactive",)), ["talkative", "tagged", "pinned", "ended", "telegram", "plain"], id="kind"
        ),
        pytest.param(Filter(kinds=("automation", "subagent")), ["sub", "cron"], id="kinds"),
        pytest.param(Filter(sources=("telegram",)), ["telegram"], id="source"),
        pytest.param(Filter(sources=("telegram", "cron")), ["cron", "telegram"], id="sources"),
        pytest.param(Filter(exclude_sources=("cli", "subagent")), ["cron", "telegram"], id="excluded sources"),
        pytest.param(Filter(sources=("cron", "telegram"), exclude_sources=("cron",)), ["telegram"], id="both"),
        pytest.param(Filter(sources=("nowhere",)), [], id="a source that does not occur"),
        pytest.param(Filter(tag="work"), ["tagged"], id="tag"),
        pytest.param(Filter(tag="work", archived=None), ["tagged", "archived"], id="tag, archived or not"),
        pytest.param(Filter(tag="été"), ["tagged"], id="tag in any script"),
        pytest.param(Filter(tag="wor"), [], id="never half a tag"),
        pytest.param(Filter(agent="helper"), ["telegram"], id="agent"),
        pytest.param(Filter(active_since=80.0), ["talkative", "tagged"], id="active since"),
        pytest.param(Filter(active_since=95.0), ["talkative"], id="active at that moment"),
        pytest.param(Filter(active_since=95.5), [], id="active later than any"),
        pytest.param(Filter(inactive_since=20.0), ["plain"], id="inactive since"),
        pytest.param(Filter(active_since=20.0, inactive_since=40.0), ["cron", "telegram"], id="between"),
        pytest.param(Filter(ended=True), ["ended"], id="ended"),
        pytest.param(Filter(ended=False, sources=("cli",)), ["talkative", "tagged", "pinned", "plain"], id="open"),
        pytest.param(Filter(pinned=True), ["pinned"], id="pinned"),
        pytest.param(Filter(pinned=False, active_since=60.0), ["talkative", "tagged", "ended"], id="not pinned"),
        pytest.param(Filter(min_messages=3), ["talkative"], id="with messages"),
        pytest.param(Filter(min_messages=4), [], id="with more messages than any"),
    ],
)
def test_a_filter_only_narrows(population: Store, wanted: Filter, shown: list[str]) -> None:
    assert listed(population, wanted) == shown
    assert population.read(ME, count_sessions, wanted) == len(shown)


# Order and pages


def test_the_most_recently_active_comes_first(store: Store) -> None:
    for number, name in enumerate("abc"):
        begin(store, name, float(number))
    assert listed(store) == ["c", "b", "a"]
    say(store, "a", 50.0)
    assert listed(store) == ["a", "c", "b"]
    say(store, "c", 1.0)  # a message that was sent long before it arrived
    assert listed(store) == ["a", "c", "b"]


def test_pages_show_everything_once(store: Store) -> None:
    for name in "abcdefg":
        begin(store, name, at=5.0)  # all at once, so that only the id decides
    pages = [listed(store, limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert pages == [["g", "f", "e"], ["d", "c", "b"], ["a"], []]


def test_rows_carry_their_tags(population: Store) -> None:
    tags = {row["id"]: row["tags"] for row in population.read(ME, list_rows, Filter(archived=None))}
    assert tags == {name: [] for name in EVERY} | {"tagged": ["work", "été"], "archived": ["work"]}


def test_a_tag_is_given_once_and_taken_away(store: Store) -> None:
    begin(store, "a")
    store.write(ME, lambda tx: tx.sessions.tag("a", ["x", "y", "x"]))
    store.write(ME, lambda tx: tx.sessions.tag("a", ["x"]))
    store.write(ME, lambda tx: tx.sessions.untag("a", ["y", "never there"]))
    assert store.read(ME, lambda tx: tx.sessions.tags(["a", "nobody"])) == {"a": ["x"]}


# Who sees what


@pytest.fixture
def people(store: Store) -> Store:
    begin(store, "mine", 1.0)
    begin(store, "bob's", 2.0, BOB)
    begin(store, "carol's", 3.0, CAROL)
    begin(store, "bob's in the room", 4.0, BOB_IN_THE_ROOM)
    begin(store, "carol's in the room", 5.0, Scope(CAROL.principal, ROOM))
    begin(store, "the room's", 6.0, THE_ROOM)
    begin(store, "bob's in another room", 7.0, Scope(BOB.principal, OTHER_ROOM))
    begin(store, "my own in the room", 8.0, principal="owner", audience=ROOM)
    for scope in (BOB, CAROL):
        store.write(scope, lambda tx: tx.sessions.tag(f"{'bob' if tx.scope == BOB else 'carol'}'s", ["secret"]))
    return store


@pytest.mark.parametrize(
    ("scope", "shown"),
    [
        pytest.param(BOB, ["bob's in another room", "bob's in the room", "bob's"], id="a person in private"),
        pytest.param(CAROL, ["carol's in the room", "carol's"], id="another person in private"),
        pytest.param(BOB_IN_THE_ROOM, ["the room's", "bob's in the room"], id="a person in the room"),
        pytest.param(THE_ROOM, ["the room's"], id="the room"),
        pytest.param(Scope(Principal(OTHER_ROOM), OTHER_ROOM), [], id="another room"),
        pytest.param(Scope(ME.principal), ["my own in the room", "mine"], id="the owner in a direct message"),
        pytest.param(Scope(ME.principal, ROOM), ["my own in the room", "the room's"], id="the owner in the room"),
        pytest.param(Scope(Principal("nobody")), [], id="a stranger"),
        pytest.param(Scope(Principal("")), [], id="nobody in particular"),
        pytest.param(Scope(Principal("%")), [], id="no wildcard"),
    ],
)
def test_a_scope_shows_only_its_own(people: Store, scope: Scope, shown: list[str]) -> None:
    assert listed(people, scope=scope) == shown
    assert people.read(scope, count_sessions, Filter()) == len(shown)
    assert people.read(scope, stats).sessions == len(shown)
    assert [one.id for one in people.read(scope, lambda tx: list(tx.sessions.in_order()))] == shown[::-1]
    assert set(people.read(scope, lambda tx: tx.sessions.tags(["bob's", "carol's"]))) <= set(shown)


def test_the_owner_at_the_terminal_sees_all(people: Store) -> None:
    assert len(listed(people)) == 8


def test_nobody_tags_what_is_not_theirs(people: Store) -> None:
    for scope in (BOB, THE_ROOM):
        people.write(scope, lambda tx: tx.sessions.tag("mine", ["stolen"]))
        people.write(scope, lambda tx: tx.sessions.untag("carol's", ["secret"]))
    assert people.read(ME, lambda tx: tx.sessions.tags(["mine", "carol's"])) == {"carol's": ["secret"]}


# Totals


def test_totals_come_with_one_line_for_each_source(population: Store) -> None:
    lines = [
        SourceCount("cli", 6, 3),
        SourceCount("cron", 1, 0),
        SourceCount("subagent", 1, 0),
        SourceCount("telegram", 1, 0),
    ]
    assert population.read(ME, stats) == Stats(9, 3, lines)


def test_an_empty_store_has_totals_too(store: Store) -> None:
    assert store.read(ME, stats) == Stats(0, 0, [])
    assert store.read(ME, list_rows, Filter()) == []
