"""A branch begins with all that was said, and neither side knows of the other's later life."""

from typing import Any

import pytest

from segue.core.errors import InvalidSession, SessionNotFound, TitleTaken
from segue.core.messages import Said, Spot, draft
from segue.core.scope import OWNER_AT_CONSOLE, Audience, Principal, Scope
from segue.core.sessions import Session
from segue.ports.store import Store
from segue.sessions.branching import branch_session
from segue.sessions.compressing import compress_session
from segue.sessions.discarding import purge_conversation
from segue.sessions.exporting import export_session
from segue.sessions.finding import find_parts, find_titled, get_session
from segue.sessions.reading import conversation, view_of
from segue.sessions.recording import append_message
from segue.sessions.rewinding import rewind_turns
from segue.sessions.starting import create_session
from segue.sessions.titling import set_title

ME = OWNER_AT_CONSOLE
BOB = Scope(Principal("telegram:1"))
EVE = Scope(Principal("telegram:2"))
BOB_IN_A_ROOM = Scope(Principal("telegram:1"), Audience("room"))
CALLS = [{"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}]
PROMPT = "You are a helper.\n\n  Be kind. é"


def begin(store: Store, name: str = "a", title: str | None = None, scope: Scope = ME, **columns: Any) -> None:
    store.write(scope, create_session, Session(name, "cli", started_at=1.0)._replace(**columns))
    if title:
        store.write(scope, set_title, name, title)


def say(store: Store, name: str, text: Any, role: str = "user", scope: Scope = ME, **fields: Any) -> int:
    return store.write(scope, append_message, name, draft(role, text, 10.0, **fields)).seq


def compress(store: Store, parent: str, child: str, kept: Spot | None, scope: Scope = ME) -> None:
    summary = draft("user", f"summary of {parent}", 50.0)
    store.write(scope, compress_session, parent, child_id=child, summary=summary, kept=kept, now=50.0)


def branch(store: Store, name: str, fresh: str = "b", scope: Scope = ME, **how: Any) -> Session:
    return store.write(scope, branch_session, name, branch_id=fresh, source="cli", now=100.0, **how)


def view(store: Store, name: str, scope: Scope = ME) -> list[Said]:
    return store.read(scope, view_of, name)


def words(store: Store, name: str) -> list[str | None]:
    return [message.content for message in view(store, name)]


def chat(store: Store, name: str, scope: Scope = ME) -> list[Any]:
    return store.read(scope, conversation, name)


@pytest.fixture
def talk(store: Store) -> Store:
    """Two exchanges, one with a tool, an image and an author, and one that was undone between them."""
    begin(store, "a", "Lisbon", system_prompt=PROMPT, model="m", model_config='{"effort":"high"}', cwd="/tmp")
    say(store, "a", "hotels?")
    say(store, "a", None, "assistant", tool_calls=CALLS, reasoning="hm", provider="openai", token_count=7)
    say(store, "a", "a\nb", "tool", tool_call_id="c1", tool_name="terminal")
    say(store, "a", "two", "assistant", finish_reason="stop")
    say(store, "a", "never mind")
    store.write(ME, rewind_turns, "a", 1)
    say(store, "a", [{"type": "text", "text": "see"}, {"type": "image_url"}], author="Ann", extra={"x": 1})
    say(store, "a", "nice", "assistant")
    return store


def test_a_model_is_told_the_same(talk: Store) -> None:
    made = branch(talk, "a")
    assert view(talk, "b") == view(talk, "a")
    assert chat(talk, "b") == chat(talk, "a")
    assert (made.system_prompt, made.model, made.model_config) == (PROMPT, "m", '{"effort":"high"}')
    assert (made.message_count, made.tool_call_count, made.first_line) == (6, 1, "hotels?")


def test_every_column_of_a_message_is_there(talk: Store) -> None:
    branch(talk, "a")
    old = talk.read(ME, lambda tx: tx.messages.of("a"))
    new = talk.read(ME, lambda tx: tx.messages.of("b"))
    assert [row[2:] for row in new] == [row[2:] for row in old]
    assert [row.seq for row in new] == [1, 2, 3, 4, 6, 7]


def test_a_branch_knows_where_it_comes_from_and_counts_anew(talk: Store) -> None:
    talk.write(ME, lambda tx: tx.sessions.change("a", input_tokens=9, context_tokens=5, context_window=10, pinned=1))
    talk.write(ME, lambda tx: tx.sessions.tag("a", ["trip"]))
    made = branch(talk, "a")
    assert (made.branched_from, made.parent_session_id, made.start_reason) == ("a", None, "branch")
    assert (made.input_tokens, made.context_tokens, made.context_window, made.pinned) == (0, 5, 10, 0)
    assert (made.started_at, made.last_active_at, made.is_open, made.cwd) == (100.0, 100.0, True, "/tmp")
    assert talk.read(ME, lambda tx: tx.sessions.tags(["b"])) == {"b": ["trip"]}


def test_where_it_comes_from_stays_as_it_is(talk: Store) -> None:
    before = talk.read(ME, export_session, "a")
    branch(talk, "a")
    say(talk, "b", "by train?")
    talk.write(ME, rewind_turns, "b", 3)
    assert talk.read(ME, export_session, "a") == before
    assert words(talk, "b") == []


def test_a_branch_outlives_where_it_comes_from(talk: Store) -> None:
    before = view(talk, "a")
    branch(talk, "a")
    talk.write(ME, purge_conversation, "a")
    assert view(talk, "b") == before


def test_both_go_on_alone(talk: Store) -> None:
    branch(talk, "a")
    assert say(talk, "a", "by plane") == 8
    assert say(talk, "b", "by train") == 8
    assert (words(talk, "a")[-1], words(talk, "b")[-1]) == ("by plane", "by train")
    assert [part.id for part in talk.read(ME, find_parts, "a")] == ["a"]


def test_titles(talk: Store) -> None:
    assert branch(talk, "a", "b").title == "Lisbon #2"
    assert branch(talk, "a", "c", title=" by  train ").title == "by train"
    assert branch(talk, "b", "d").title == "Lisbon #3"
    assert branch(talk, "a", "e", title="\u200b").title == "Lisbon #4"
    found = [talk.read(ME, get_session, name).title_source for name in "bcd"]
    assert found == ["lineage", "user", "lineage"]
    assert talk.read(ME, find_titled, "Lisbon") == "a"


def test_a_title_that_is_taken_leaves_no_branch(talk: Store) -> None:
    with pytest.raises(TitleTaken):
        branch(talk, "a", title="Lisbon")
    with pytest.raises(SessionNotFound):
        talk.read(ME, get_session, "b")


def test_a_conversation_without_title_has_branches_without_title(store: Store) -> None:
    begin(store)
    say(store, "a", "hello")
    assert branch(store, "a").title is None


def test_nothing_said_is_nothing_to_branch_from(store: Store) -> None:
    begin(store)
    with pytest.raises(InvalidSession, match="nothing to branch from"):
        branch(store, "a")
    with pytest.raises(SessionNotFound):
        branch(store, "nowhere")


# Compressed conversations


@pytest.fixture
def compressed(talk: Store) -> Store:
    """`a` was compressed into `a2`, that into `a3`; the tail begins in `a` and goes through `a2`."""
    compress(talk, "a", "a2", Spot("a", 6))
    say(talk, "a2", "trams?")
    say(talk, "a2", "28", "assistant")
    compress(talk, "a2", "a3", Spot("a", 7))
    say(talk, "a3", "and then?")
    return talk


def test_a_branch_of_a_compressed_conversation_has_summary_tail_and_rest(compressed: Store) -> None:
    branch(compressed, "a3")
    assert words(compressed, "b") == ["summary of a2", "nice", "trams?", "28", "and then?"]
    assert chat(compressed, "b") == chat(compressed, "a3")
    assert [message.seq for message in view(compressed, "b")] == [0, 7, 8, 9, 10]
    assert say(compressed, "b", "more") == 11
    assert compressed.read(ME, get_session, "b").first_line == "hotels?"


def test_a_part_in_the_middle_can_be_branched_from(compressed: Store) -> None:
    branch(compressed, "a2")
    assert chat(compressed, "b") == chat(compressed, "a2")
    assert next(message.seq for message in view(compressed, "b")) == 0
    branch(compressed, "a", "c")
    assert chat(compressed, "c") == chat(compressed, "a")


def test_a_summary_without_a_tail(talk: Store) -> None:
    compress(talk, "a", "a2", None)
    say(talk, "a2", "trams?")
    branch(talk, "a2")
    assert view(talk, "b") == view(talk, "a2")


def test_a_branch_can_be_branched_and_compressed(compressed: Store) -> None:
    branch(compressed, "a3")
    branch(compressed, "b", "c")
    assert view(compressed, "c") == view(compressed, "b")
    compress(compressed, "b", "b2", Spot("b", 9))
    assert words(compressed, "b2") == ["summary of b", "28", "and then?"]
    assert words(compressed, "a3") == ["summary of a2", "nice", "trams?", "28", "and then?"]


# Whose it is


def test_a_branch_belongs_to_whoever_asks_for_it(store: Store) -> None:
    begin(store, "his", "Porto", scope=BOB)
    say(store, "his", "hello", scope=BOB)
    assert branch(store, "his", "b", BOB).principal == "telegram:1"
    mine = branch(store, "his", "c")
    assert (mine.principal, mine.audience, mine.title) == ("owner", "", "Porto #2")
    with pytest.raises(SessionNotFound):
        store.read(BOB, get_session, "c")


def test_a_branch_in_a_room_stays_there(store: Store) -> None:
    begin(store, "there", scope=BOB_IN_A_ROOM)
    say(store, "there", "hello", scope=BOB_IN_A_ROOM)
    made = branch(store, "there", "b", BOB_IN_A_ROOM)
    assert (made.principal, made.audience) == ("telegram:1", "room")
    assert branch(store, "there", "c", BOB).audience == ""


@pytest.mark.parametrize("scope", [EVE, BOB_IN_A_ROOM])
def test_nobody_branches_from_what_they_may_not_see(store: Store, scope: Scope) -> None:
    begin(store, "his", scope=BOB)
    say(store, "his", "hello", scope=BOB)
    with pytest.raises(SessionNotFound):
        branch(store, "his", "b", scope)
    with pytest.raises(SessionNotFound):
        store.read(ME, get_session, "b")
