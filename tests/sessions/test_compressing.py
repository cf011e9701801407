"""A conversation that outgrew its session goes on in a child: linked, named, and with nothing copied."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from segue.core.errors import InvalidSession, SegueError, SessionNotFound
from segue.core.keys import KeyRules
from segue.core.messages import Spot, draft
from segue.core.policy import ResetPolicies
from segue.core.scope import OWNER_AT_CONSOLE, Audience, Principal, Scope
from segue.core.sessions import Session
from segue.core.sources import SessionSource
from segue.ports.store import Store
from segue.sessions.compressing import compress_session
from segue.sessions.exporting import export_lines
from segue.sessions.finding import find_titled, get_session
from segue.sessions.opening import Arrival, Rules, open_session
from segue.sessions.recording import append_message
from segue.sessions.rewinding import rewind_turns
from segue.sessions.starting import create_session
from segue.sessions.titling import set_title

ME = OWNER_AT_CONSOLE
BOB = Scope(Principal("telegram:1"))
BOB_IN_THE_ROOM = Scope(Principal("telegram:1"), Audience("room"))
NOON = datetime(2025, 3, 5, 12, tzinfo=UTC)


def begin(store: Store, name: str = "a", title: str | None = None, scope: Scope = ME, **columns: Any) -> None:
    store.write(scope, create_session, Session(name, "cli", started_at=1.0)._replace(**columns))
    if title:
        store.write(scope, set_title, name, title)


def compress(store: Store, parent: str, child: str, scope: Scope = ME, now: float = 50.0) -> Session:
    summary = draft("user", "so far", now)
    return store.write(scope, compress_session, parent, child_id=child, summary=summary, kept=Spot(parent, 1), now=now)


def found(store: Store, name: str) -> Session:
    return store.read(ME, get_session, name)


def everything(store: Store) -> str:
    pieces: list[str] = []
    store.read(ME, export_lines, pieces.append)
    return "".join(pieces)


def test_the_parent_ends_and_the_child_goes_on(store: Store) -> None:
    begin(store)
    child = compress(store, "a", "b")
    parent = found(store, "a")
    assert (parent.ended_at, parent.end_reason) == (50.0, "compression")
    assert child == found(store, "b")
    assert (child.parent_session_id, child.kept_session_id, child.kept_seq) == ("a", "a", 1)
    assert (child.is_open, child.started_at, child.last_active_at) == (True, 50.0, 50.0)
    assert child.start_reason == "compression"


def test_nothing_is_copied(store: Store) -> None:
    begin(store)
    for text in ("one", "two", "three"):
        store.write(ME, append_message, "a", draft("user", text, 2.0))
    before = store.read(ME, lambda tx: tx.messages.of("a", every_state=True))
    compress(store, "a", "b")
    assert store.read(ME, lambda tx: tx.messages.of("a", every_state=True)) == before
    (summary,) = store.read(ME, lambda tx: tx.messages.of("b", every_state=True))
    assert (summary.seq, summary.content) == (0, "so far")
    assert store.write(ME, append_message, "b", draft("user", "four", 60.0)).seq == 1


def test_the_child_counts_anew(store: Store) -> None:
    used: dict[str, Any] = dict.fromkeys(
        ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"), 9
    )
    begin(store, **used, api_call_count=9, estimated_cost_usd=1.0, actual_cost_usd=1.0, context_tokens=9)
    store.write(ME, append_message, "a", draft("assistant", None, 2.0, tool_calls=[{"id": "c"}]))
    child = compress(store, "a", "b")
    assert {name: getattr(child, name) for name in used} == dict.fromkeys(used, 0)
    assert (child.api_call_count, child.tool_call_count, child.message_count) == (0, 0, 1)
    assert (child.estimated_cost_usd, child.actual_cost_usd, child.context_tokens) == (None, None, None)
    assert found(store, "a").input_tokens == 9


def test_the_child_is_the_same_conversation(store: Store) -> None:
    same: dict[str, Any] = {
        "source": "telegram",
        "user_id": "u",
        "model": "m",
        "model_config": "{}",
        "system_prompt": "be good",
        "kind": "automation",
        "agent": "helper",
        "lane_key": "agent:helper:telegram:dm:1",
        "principal": "telegram:1",
        "audience": "room",
        "archived": 1,
        "pinned": 1,
        "cwd": "/tmp",
        "spawned_by": "somebody",
        "context_window": 100,
        "billing_provider": "p",
    }
    begin(store, **same)
    store.write(ME, lambda tx: tx.sessions.tag("a", ["work", "été"]))
    child = compress(store, "a", "b")
    assert {name: getattr(child, name) for name in same} == same
    assert store.read(ME, lambda tx: tx.sessions.tags(["b"])) == {"b": ["work", "été"]}


def test_where_a_parent_came_from_is_not_where_its_child_came_from(store: Store) -> None:
    begin(store, branched_from="x", reset_from="y")
    child = compress(store, "a", "b")
    assert (child.branched_from, child.reset_from) == (None, None)


def test_the_parts_of_a_named_conversation_are_numbered(store: Store) -> None:
    begin(store, "a", "my project")
    children = [compress(store, parent, child) for parent, child in ("ab", "bc", "cd")]
    assert [child.title for child in children] == ["my project #2", "my project #3", "my project #4"]
    assert {child.title_source for child in children} == {"lineage"}
    assert found(store, "a").title == "my project"


def test_ten_comes_after_nine(store: Store) -> None:
    begin(store, "p1", "my project")
    titles = [compress(store, f"p{n}", f"p{n + 1}", now=50.0 + n).title for n in range(1, 12)]
    assert titles[7:] == ["my project #9", "my project #10", "my project #11", "my project #12"]
    assert store.read(ME, find_titled, "my project #9") == "p12"


@pytest.mark.parametrize(
    ("title", "next_title"),
    [
        ("x" * 100, "x" * 97 + " #2"),
        ("x" * 96 + " #99", "x" * 95 + " #100"),
        ("C#", "C# #2"),
        ("issue #41", "issue #42"),
        (None, None),
    ],
)
def test_the_name_of_a_child(store: Store, title: str | None, next_title: str | None) -> None:
    begin(store, "a", title)
    child = compress(store, "a", "b")
    assert child.title == next_title
    assert child.title_source == (None if title is None else "lineage")


def test_a_number_that_a_stranger_has_is_passed_over(store: Store) -> None:
    begin(store, "a", "my project")
    begin(store, "stranger", "my project #2")
    child = compress(store, "a", "b")
    assert child.title not in (None, "my project", "my project #2")
    assert store.read(ME, find_titled, "my project #2") == "stranger"


def test_the_same_name_of_another_person_changes_no_number(store: Store) -> None:
    begin(store, "a", "my project")
    begin(store, "bob's", "my project #2", BOB)
    assert compress(store, "a", "b").title == "my project #2"


def test_a_name_that_a_person_has_elsewhere_is_passed_over_in_a_room(store: Store) -> None:
    begin(store, "private", "p #2", BOB)
    begin(store, "a", "p", BOB_IN_THE_ROOM)
    child = compress(store, "a", "b", BOB_IN_THE_ROOM)
    assert child.title not in (None, "p", "p #2")


@pytest.mark.parametrize("child", ["c", "b"], ids=["into another child", "into the same child"])
def test_a_second_compression_of_the_same_parent_is_refused(store: Store, child: str) -> None:
    begin(store, "a", "my project")
    compress(store, "a", "b")
    before = everything(store)
    with pytest.raises(InvalidSession):
        compress(store, "a", child)
    assert everything(store) == before


@pytest.mark.parametrize("taken", ["a", "other"], ids=["by the parent", "by a stranger"])
def test_a_child_needs_an_id_of_its_own(store: Store, taken: str) -> None:
    begin(store, "a")
    begin(store, "other")
    before = everything(store)
    with pytest.raises(InvalidSession):
        compress(store, "a", taken)
    assert everything(store) == before


def test_of_many_at_once_one_wins(store: Store) -> None:
    begin(store, "a", "my project")

    def attempt(number: int) -> str | None:
        try:
            return compress(store, "a", f"child {number}").id
        except InvalidSession:
            return None

    with ThreadPoolExecutor(8) as pool:
        winners = [name for name in pool.map(attempt, range(8)) if name]
    assert len(winners) == 1
    assert [link.id for link in store.read(ME, lambda tx: tx.sessions.children(["a"]))] == winners


@pytest.mark.parametrize("name", ["nobody", "a"], ids=["not there", "somebody else's"])
def test_only_what_one_can_see_can_be_compressed(store: Store, name: str) -> None:
    begin(store, "a")
    before = everything(store)
    with pytest.raises(SessionNotFound):
        compress(store, name, "b", BOB)
    assert everything(store) == before


def test_a_child_that_somebody_else_claims_is_no_compression(store: Store) -> None:
    begin(store, "a")
    with suppress(SegueError):
        begin(store, "claimed", scope=BOB, parent_session_id="a")
    assert compress(store, "a", "b").parent_session_id == "a"


def test_the_preview_of_a_conversation_is_how_it_began_in_every_part(store: Store) -> None:
    begin(store, "a")
    store.write(ME, append_message, "a", draft("user", "how it began", 2.0))
    assert compress(store, "a", "b").first_line == "how it began"
    store.write(ME, append_message, "b", draft("user", "how it went on", 60.0))
    assert found(store, "b").first_line == "how it began"
    store.write(ME, rewind_turns, "b", 1)
    assert found(store, "b").first_line == "how it began"


def in_lane(store: Store, at: datetime, fresh_id: str) -> str:
    rules = Rules(KeyRules(), ResetPolicies(), timedelta(hours=1))
    source = SessionSource(platform="telegram", chat_id="1", user_id="1")
    return store.write(ME, open_session, Arrival(source, at, fresh_id), rules).session.id


@pytest.mark.parametrize(
    "after", [timedelta(minutes=1), timedelta(days=3)], ids=["the next message", "a message after it expired"]
)
def test_a_lane_goes_on_in_the_child(store: Store, after: timedelta) -> None:
    in_lane(store, NOON, "a")
    compress(store, "a", "b", now=NOON.timestamp())
    lane = store.read(ME, lambda tx: tx.lanes.find_by_session("b"))
    assert lane is not None
    now = in_lane(store, NOON + after, "fresh")
    assert now == ("b" if after < timedelta(days=1) else "fresh")
    assert found(store, now).is_open


def test_compressing_an_earlier_session_leaves_its_lane_where_it_is(store: Store) -> None:
    in_lane(store, NOON, "earlier")
    in_lane(store, NOON + timedelta(days=3), "current")
    with suppress(InvalidSession):
        compress(store, "earlier", "child", now=NOON.timestamp())
    assert in_lane(store, NOON + timedelta(days=3, minutes=1), "fresh") == "current"
    assert found(store, "current").is_open
