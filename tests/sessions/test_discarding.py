"""The trash: a conversation goes whole, comes back whole, and is forgotten only when somebody says so."""

from typing import Any

import pytest

from segue.core.errors import Ambiguous, NotFound, SessionNotFound
from segue.core.messages import Spot, draft
from segue.core.portable import from_mapping
from segue.core.scope import OWNER_AT_CONSOLE, Audience, Principal, Scope
from segue.core.sessions import Session
from segue.ports.store import Filter, Store, Transaction, TrashEntry
from segue.sessions.compressing import compress_session
from segue.sessions.discarding import (
    Restored,
    discard_conversation,
    empty_trash,
    find_prunable,
    find_trashed,
    prune,
    prune_conversation,
    purge_conversation,
    restore_conversation,
    trash_before,
)
from segue.sessions.exporting import export_lines, export_session
from segue.sessions.finding import find_titled, get_session
from segue.sessions.importing import OnConflict, import_session
from segue.sessions.recording import append_message
from segue.sessions.rewinding import rewind_turns
from segue.sessions.starting import create_session, end_session, reopen_session
from segue.sessions.titling import set_title

ME = OWNER_AT_CONSOLE
BOB, CAROL = Scope(Principal("telegram:1")), Scope(Principal("telegram:2"))
BOB_IN_THE_ROOM = Scope(Principal("telegram:1"), Audience("room"))
THE_ROOM = Scope(Principal("room"), Audience("room"))
CALLS = [{"id": "c1", "function": {"name": "terminal", "arguments": "{}"}}]


def begin(store: Store, name: str, title: str | None = None, scope: Scope = ME, **columns: Any) -> None:
    store.write(scope, create_session, Session(name, "cli", started_at=1.0)._replace(**columns))
    if title:
        store.write(scope, set_title, name, title)


def say(store: Store, name: str, text: Any = "hello", at: float = 5.0, **fields: Any) -> None:
    store.write(ME, append_message, name, draft("user", text, at, **fields))


def compress(store: Store, parent: str, child: str, now: float) -> None:
    summary = draft("user", f"summary \x00 in {child}", now)
    store.write(ME, compress_session, parent, child_id=child, summary=summary, kept=Spot(parent, 2), now=now)


def everything(store: Store) -> str:
    pieces: list[str] = []
    store.read(ME, export_lines, pieces.append)
    return "".join(pieces)


def ids(store: Store) -> set[str]:
    return {one.id for one in store.read(ME, lambda tx: tx.sessions.listed(EVERY, None, 0))}


def discard(store: Store, name: str, now: float = 100.0, scope: Scope = ME) -> list[str]:
    return [entry.session_id for entry in store.write(scope, discard_conversation, name, now)]


def restore(store: Store, name: str, scope: Scope = ME) -> Restored:
    return store.write(scope, restore_conversation, name)


def trash(store: Store, scope: Scope = ME) -> list[TrashEntry]:
    return store.read(scope, trash_before)


EVERY = Filter(archived=None, tips_only=False)


@pytest.fixture
def conversation(store: Store) -> Store:
    """Three parts with a title, tags, undone and odd rows, subagents below them, and a stranger beside them."""
    begin(store, "a", "my project", model="m", model_config="{}", cwd="/tmp", pinned=1)
    say(store, "a", "how it began")
    say(store, "a", [{"type": "text", "text": "look \x00"}, {"type": "image_url", "image_url": {"url": "u"}}])
    say(store, "a", "é語🙂\u202e", tool_calls=CALLS, reasoning="hm", extra={"unheard of": [None]})
    store.write(ME, rewind_turns, "a", 1)
    store.write(ME, lambda tx: tx.sessions.tag("a", ["work", "été"]))
    compress(store, "a", "b", 10.0)
    say(store, "b", "more", 11.0)
    compress(store, "b", "c", 12.0)
    begin(store, "sub", spawned_by="b", kind="subagent", source="subagent")
    say(store, "sub", "do it", 11.5)
    begin(store, "sub of sub", spawned_by="sub", kind="subagent", source="subagent")
    begin(store, "stranger", "my project #77")
    return store


PARTS = {"a", "b", "c", "sub", "sub of sub"}


@pytest.mark.parametrize("part", ["a", "b", "c"])
def test_a_conversation_goes_with_all_its_parts_and_subagents(conversation: Store, part: str) -> None:
    assert set(discard(conversation, part)) == PARTS
    assert ids(conversation) == {"stranger"}
    assert conversation.read(ME, lambda tx: tx.messages.count()) == 0
    assert conversation.read(ME, lambda tx: tx.sessions.tags(["a", "b", "c"])) == {}


@pytest.mark.parametrize("part", ["a", "b", "c", "sub", "sub of sub", "sub o"])
def test_a_conversation_comes_back_to_the_byte_by_any_part(conversation: Store, part: str) -> None:
    before = everything(conversation)
    discard(conversation, "b")
    assert everything(conversation) != before
    restored = restore(conversation, part)
    assert set(restored.session_ids) == PARTS
    assert restored.notes == []
    assert everything(conversation) == before
    assert trash(conversation) == []


def test_what_comes_back_can_be_carried_on_and_go_again(conversation: Store) -> None:
    discard(conversation, "c")
    restore(conversation, "c")
    say(conversation, "c", "going on", 200.0)
    before = everything(conversation)
    assert len(discard(conversation, "c", 300.0)) == len(PARTS)
    restore(conversation, "c")
    assert everything(conversation) == before


def test_a_subagent_goes_alone(conversation: Store) -> None:
    before = everything(conversation)
    assert discard(conversation, "sub of sub") == ["sub of sub"]
    restore(conversation, "sub of sub")
    assert everything(conversation) == before


def test_the_trash_says_what_is_in_it(conversation: Store) -> None:
    discard(conversation, "a", 100.0)
    begin(conversation, "later", "later", BOB)
    discard(conversation, "later", 101.0)
    entries = [entry._replace(id=0) for entry in trash(conversation)]
    assert entries[0] == TrashEntry(0, "later", "later", "later", "", "cli", "telegram:1", "", 0, 101.0)
    first = next(entry for entry in entries if entry.session_id == "a")
    assert first == TrashEntry(0, "a", "a", "my project", "how it began", "cli", "owner", "", 2, 100.0)
    assert {entry.conversation for entry in entries} == {"a", "later"}


def test_what_is_not_there_cannot_go_or_come_back(store: Store) -> None:
    begin(store, "a")
    for work in (
        lambda tx: discard_conversation(tx, "nobody", 1.0),
        lambda tx: restore_conversation(tx, "nobody"),
        lambda tx: restore_conversation(tx, "a"),
        lambda tx: restore_conversation(tx, ""),
        lambda tx: purge_conversation(tx, "nobody"),
    ):
        with pytest.raises(NotFound):
            store.write(ME, work)


def test_the_beginning_of_an_id_must_mean_one_conversation(store: Store) -> None:
    for name in ("abc1", "abc2", "abc"):
        begin(store, name)
        discard(store, name)
    with pytest.raises(Ambiguous, match="abc1"):
        restore(store, "ab")
    assert restore(store, "abc").session_ids == ["abc"]
    assert restore(store, "abc1").session_ids == ["abc1"]
    assert restore(store, "ab").session_ids == ["abc2"]


def test_a_conversation_comes_back_by_its_title(conversation: Store) -> None:
    discard(conversation, "a")
    begin(conversation, "my project", "other")
    discard(conversation, "my project")
    assert restore(conversation, "my project").session_ids == ["my project"]
    assert set(restore(conversation, "my project").session_ids) == PARTS


# Titles


def test_the_title_is_free_meanwhile(conversation: Store) -> None:
    discard(conversation, "a")
    assert conversation.read(ME, find_titled, "my project") is None
    begin(conversation, "new", "my project")
    assert conversation.read(ME, find_titled, "my project") == "new"


def test_a_title_that_was_taken_comes_back_with_a_number(store: Store) -> None:
    begin(store, "a", "my project")
    discard(store, "a")
    begin(store, "new", "my project")
    restored = restore(store, "a")
    assert store.read(ME, get_session, "a").title == "my project #2"
    assert store.read(ME, get_session, "new").title == "my project"
    (note,) = restored.notes
    assert "my project" in note
    assert "my project #2" in note


def test_the_titles_of_a_whole_lineage_come_back_with_numbers_of_their_own(conversation: Store) -> None:
    discard(conversation, "a")
    begin(conversation, "new", "my project")
    begin(conversation, "newer", "my project #78")
    restore(conversation, "a")
    titles = [one.title for one in conversation.read(ME, lambda tx: tx.sessions.listed(EVERY, None, 0)) if one.title]
    assert len(titles) == len(set(titles)) == 6
    assert conversation.read(ME, find_titled, "my project") == "new"


def test_a_title_that_another_person_took_is_free(store: Store) -> None:
    begin(store, "a", "my project")
    discard(store, "a")
    begin(store, "bob's", "my project", BOB)
    assert restore(store, "a").notes == []
    assert store.read(ME, get_session, "a").title == "my project"


# Ids


def test_a_session_whose_id_was_taken_meanwhile_stays_in_the_trash(store: Store) -> None:
    begin(store, "a", "old")
    discard(store, "a")
    begin(store, "a", "new")
    restored = restore(store, "a")
    assert restored.session_ids == []
    assert len(restored.notes) == 1
    assert store.read(ME, get_session, "a").title == "new"
    assert [entry.title for entry in trash(store)] == ["old"]


def test_an_id_that_somebody_has_in_the_trash_can_be_used_and_discarded_by_another(store: Store) -> None:
    begin(store, "a", "mine")
    discard(store, "a")
    begin(store, "a", "bob's", BOB)
    assert discard(store, "a", scope=BOB) == ["a"]
    assert {entry.title for entry in trash(store)} == {"mine", "bob's"}


def test_of_several_copies_in_the_trash_the_latest_comes_back(conversation: Store) -> None:
    data = conversation.read(ME, export_session, "b") | {"model": "changed"}
    conversation.write(ME, import_session, from_mapping(data), on_conflict=OnConflict.REPLACE, now=50.0)
    before = everything(conversation)
    discard(conversation, "a", 100.0)
    assert set(restore(conversation, "b").session_ids) == PARTS
    assert everything(conversation) == before


# Who


@pytest.mark.parametrize("scope", [CAROL, BOB_IN_THE_ROOM, THE_ROOM], ids=["another", "in a room", "a room"])
def test_nobody_sees_or_empties_or_restores_another_persons_trash(store: Store, scope: Scope) -> None:
    begin(store, "a", scope=BOB)
    with pytest.raises(SessionNotFound):
        discard(store, "a", scope=scope)
    discard(store, "a", scope=BOB)
    assert trash(store, scope) == []
    assert store.write(scope, empty_trash) == []
    for work in (find_trashed, restore_conversation, purge_conversation):
        with pytest.raises(NotFound):
            store.write(scope, work, "a")
    assert len(trash(store, BOB)) == len(trash(store)) == 1
    assert restore(store, "a", BOB).session_ids == ["a"]


# Emptying and purging


def test_the_trash_is_emptied_of_what_is_old(store: Store) -> None:
    for name, at in (("old", 10.0), ("young", 20.0)):
        begin(store, name)
        discard(store, name, at)
    assert store.write(ME, empty_trash, 10.0) == []
    assert [entry.session_id for entry in store.read(ME, trash_before, 15.0)] == ["old"]
    assert [entry.session_id for entry in store.write(ME, empty_trash, 15.0)] == ["old"]
    assert [entry.session_id for entry in trash(store)] == ["young"]
    assert [entry.session_id for entry in store.write(ME, empty_trash)] == ["young"]
    assert trash(store) == store.write(ME, empty_trash) == []
    with pytest.raises(NotFound):
        restore(store, "young")


def test_a_purged_conversation_leaves_nothing_in_the_tables(conversation: Store) -> None:
    assert conversation.write(ME, purge_conversation, "c") == len(PARTS)
    assert ids(conversation) == {"stranger"}
    assert trash(conversation) == []


def test_what_is_in_the_trash_can_be_purged(conversation: Store) -> None:
    discard(conversation, "a")
    assert conversation.write(ME, purge_conversation, "b") == len(PARTS)
    assert trash(conversation) == []


def test_a_purge_reaches_every_copy(store: Store) -> None:
    begin(store, "a")
    say(store, "a", "the first version")
    data = store.read(ME, export_session, "a") | {"messages": [{"role": "user", "content": "the second version"}]}
    store.write(ME, import_session, from_mapping(data), on_conflict=OnConflict.REPLACE, now=1.0)
    assert len(trash(store)) == 1
    store.write(ME, purge_conversation, "a")
    assert ids(store) == set()
    assert trash(store) == []


# Pruning


def pruned(store: Store, before: float = 50.0, sources: tuple[str, ...] = (), scope: Scope = ME) -> set[str]:
    found = {one.id for one in store.read(scope, find_prunable, before, sources)}
    gone = store.write(scope, prune, before, 100.0, sources)
    assert found <= {entry.session_id for entry in gone}
    return {entry.session_id for entry in gone}


@pytest.mark.parametrize(
    ("columns", "goes"),
    [
        pytest.param({}, True, id="ended long ago"),
        pytest.param({"ended_at": None}, False, id="open"),
        pytest.param({"pinned": 1}, False, id="pinned"),
        pytest.param({"archived": 1}, True, id="archived"),
        pytest.param({"last_active_at": 49.9}, True, id="active just before"),
        pytest.param({"last_active_at": 50.0}, False, id="active just then"),
        pytest.param({"ended_at": 99.0}, True, id="ended late, but not active"),
        pytest.param({"kind": "automation", "source": "cron"}, True, id="of any kind"),
        pytest.param({"principal": "telegram:1"}, True, id="of anybody"),
    ],
)
def test_pruning_takes_what_ended_and_was_not_active_since(store: Store, columns: dict[str, Any], goes: bool) -> None:
    usual: dict[str, Any] = {"last_active_at": 10.0, "ended_at": 20.0, "end_reason": "user_exit"}
    begin(store, "a", **usual | columns)
    assert pruned(store) == ({"a"} if goes else set())
    assert ids(store) == (set() if goes else {"a"})


def test_pruning_judges_a_lineage_by_its_tip(store: Store) -> None:
    for root, tip in (("a", "b"), ("x", "y")):
        begin(store, root)
        compress(store, root, tip, 10.0)
    say(store, "y", "still here", 60.0)
    for tip in ("b", "y"):
        store.write(ME, end_session, tip, "user_exit", 70.0)
    assert pruned(store) == {"a", "b"}
    assert ids(store) == {"x", "y"}


def finish(tx: Transaction, pinned: str) -> None:
    """End every part of the conversation, and pin one."""
    for part in sorted(PARTS):
        end_session(tx, part, "user_exit", 20.0)
        tx.sessions.change(part, pinned=int(part == pinned))


def test_what_was_pruned_comes_back_to_the_byte(conversation: Store) -> None:
    conversation.write(ME, finish, pinned="")
    before = everything(conversation)
    assert pruned(conversation) == PARTS
    restore(conversation, "c")
    assert everything(conversation) == before


@pytest.mark.parametrize("part", ["a", "b", "c", "sub"])
def test_a_conversation_with_a_pinned_part_is_never_pruned(conversation: Store, part: str) -> None:
    conversation.write(ME, finish, pinned=part)
    assert pruned(conversation) == set()


@pytest.mark.parametrize("part", ["c", "sub", "sub of sub"])
def test_a_conversation_with_an_open_part_is_never_pruned(conversation: Store, part: str) -> None:
    conversation.write(ME, finish, pinned="")
    conversation.write(ME, reopen_session, part)
    assert pruned(conversation) == set()


def test_a_conversation_with_an_open_end_is_never_pruned(store: Store) -> None:
    begin(store, "a", ended_at=2.0)
    begin(store, "ended end", parent_session_id="a", ended_at=3.0)
    begin(store, "open end", parent_session_id="a")
    assert pruned(store) == set()
    assert ids(store) == {"a", "ended end", "open end"}


def test_a_conversation_with_an_active_end_is_never_pruned(store: Store) -> None:
    begin(store, "a", ended_at=2.0)
    begin(store, "old end", parent_session_id="a", ended_at=3.0)
    begin(store, "new end", parent_session_id="a", ended_at=90.0, last_active_at=80.0)
    assert pruned(store) == set()


def test_a_subagent_goes_with_the_conversation_that_started_it(store: Store) -> None:
    begin(store, "a")
    begin(store, "sub", spawned_by="a", ended_at=2.0, kind="subagent")
    assert pruned(store) == set()
    store.write(ME, lambda tx: tx.sessions.change("a", ended_at=2.0))
    assert pruned(store) == {"a", "sub"}


def test_a_subagent_whose_conversation_is_gone_is_pruned_by_itself(store: Store) -> None:
    begin(store, "sub", spawned_by="gone", ended_at=2.0, kind="subagent")
    assert pruned(store) == {"sub"}


@pytest.mark.parametrize(
    ("sources", "goes"),
    [
        ((), {"cli", "telegram"}),
        (("cli",), {"cli"}),
        (("cli", "telegram"), {"cli", "telegram"}),
        (("slack",), set()),
    ],
)
def test_a_filter_only_narrows_what_is_pruned(store: Store, sources: tuple[str, ...], goes: set[str]) -> None:
    for source in ("cli", "telegram"):
        begin(store, source, source=source, ended_at=2.0)
        begin(store, f"young {source}", source=source, ended_at=2.0, last_active_at=60.0)
        begin(store, f"open {source}", source=source)
        begin(store, f"pinned {source}", source=source, ended_at=2.0, pinned=1)
    assert pruned(store, sources=sources) == goes


def test_pruning_touches_only_what_one_sees(store: Store) -> None:
    begin(store, "mine", ended_at=2.0)
    begin(store, "bob's", scope=BOB, ended_at=2.0)
    assert pruned(store, scope=BOB) == {"bob's"}
    assert ids(store) == {"mine"}


def test_one_conversation_is_pruned_only_while_it_may_be(store: Store) -> None:
    begin(store, "a", ended_at=2.0)
    begin(store, "open")
    assert [entry.session_id for entry in store.write(ME, prune_conversation, "a", 50.0, 100.0)] == ["a"]
    for gone_or_open in ("a", "open"):
        assert store.write(ME, prune_conversation, gone_or_open, 50.0, 100.0) == []
    assert ids(store) == {"open"}


def test_a_purge_from_the_trash_takes_every_copy(store: Store) -> None:
    begin(store, "a")
    data = store.read(ME, export_session, "a") | {"model": "changed"}
    store.write(ME, import_session, from_mapping(data), on_conflict=OnConflict.REPLACE, now=50.0)
    discard(store, "a", 60.0)
    assert len(trash(store)) == 2
    assert store.write(ME, purge_conversation, "a") == 2
    assert trash(store) == []
