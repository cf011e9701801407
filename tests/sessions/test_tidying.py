"""What goes by itself, on every database: announced, a day later gone, and nothing that was not announced."""

import pytest

from segue.core.messages import draft
from segue.core.moments import DAY
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sessions import Session
from segue.ports.store import Transaction
from segue.sessions import discarding, tidying
from segue.sessions.recording import append_message
from segue.sessions.retaining import Keeping, is_due
from segue.sessions.starting import create_session
from segue.sessions.tidying import Tidied
from segue.storage.store import SqlStore

NOW = 2_000_000_000.0


def make(tx: Transaction, session_id: str, at: float, *, pinned: int = 0) -> None:
    create_session(tx, Session(session_id, "cli", started_at=at, last_active_at=at))
    append_message(tx, session_id, draft("user", "hello", at))
    tx.sessions.change(session_id, ended_at=at, end_reason="test", pinned=pinned)


def trash(tx: Transaction, session_id: str, at: float) -> None:
    make(tx, session_id, at)
    discarding.discard_conversation(tx, session_id, at)


def tidy(store: SqlStore, days: float, keeping: Keeping) -> Tidied | None:
    """Tidying as a command does it: asked first, done if due."""
    now = NOW + days * DAY
    return store.write(OWNER, tidying.tidy, keeping, now) if store.read(OWNER, is_due, keeping, now) else None


def in_trash(store: SqlStore) -> list[str]:
    return sorted(entry.session_id for entry in store.read(OWNER, discarding.trash_before))


def test_what_is_in_the_trash_is_announced_and_goes_a_day_later(store: SqlStore) -> None:
    keeping = Keeping(7)
    for number, day in enumerate((0, 0.5, 5)):
        store.write(OWNER, trash, f"s{number}", NOW + day * DAY)
    assert tidy(store, 5.9, keeping) is None
    announced = tidy(store, 6.6, keeping)
    assert announced is not None
    assert announced.leaving_trash == 2
    assert announced.due_at == NOW + 7.6 * DAY
    assert tidy(store, 7.5, keeping) is None, "the day is not over"
    gone = tidy(store, 7.6, keeping)
    assert gone is not None
    assert (gone.left_trash, gone.leaving_trash) == (2, 0)
    assert in_trash(store) == ["s2"]
    assert tidy(store, 7.7, keeping) is None


def test_what_comes_back_in_time_stays(store: SqlStore) -> None:
    store.write(OWNER, trash, "s", NOW)
    assert tidy(store, 9, Keeping(7))
    store.write(OWNER, discarding.restore_conversation, "s")
    gone = tidy(store, 10.5, Keeping(7))
    assert gone is not None
    assert gone.left_trash == 0
    assert store.read(OWNER, lambda tx: tx.sessions.find("s")) is not None


def test_what_was_deleted_after_the_announcement_is_not_part_of_it(store: SqlStore) -> None:
    store.write(OWNER, trash, "a", NOW)
    assert tidy(store, 0.1, Keeping(0))
    store.write(OWNER, trash, "b", NOW + 0.5 * DAY)
    assert tidy(store, 1.2, Keeping(0))
    assert in_trash(store) == ["b"]


def test_a_longer_time_set_meanwhile_counts(store: SqlStore) -> None:
    store.write(OWNER, trash, "s", NOW)
    assert tidy(store, 7, Keeping(7))
    assert tidy(store, 8, Keeping(30))
    assert in_trash(store) == ["s"]


def test_old_conversations_go_only_when_a_setting_says_so(store: SqlStore) -> None:
    store.write(OWNER, make, "old", NOW)
    assert tidy(store, 400, Keeping(7)) is None


def test_old_conversations_are_announced_and_go_into_the_trash(store: SqlStore) -> None:
    keeping = Keeping(7, prune_days=30)
    store.write(OWNER, make, "old", NOW)
    store.write(OWNER, make, "pinned", NOW, pinned=1)
    store.write(OWNER, make, "young", NOW + 25 * DAY)
    announced = tidy(store, 30.5, keeping)
    assert announced is not None
    assert announced.leaving_store == 1
    assert tidy(store, 31, keeping) is None, "looked at once a day"
    gone = tidy(store, 31.6, keeping)
    assert gone is not None
    assert gone.left_store == 1
    assert in_trash(store) == ["old"]
    assert store.read(OWNER, lambda tx: [tx.sessions.find(one) is None for one in ("pinned", "young")]) == [
        False,
        False,
    ]


def test_a_conversation_that_is_taken_up_again_after_the_announcement_stays(store: SqlStore) -> None:
    keeping = Keeping(7, prune_days=30)
    store.write(OWNER, make, "old", NOW)
    assert tidy(store, 31, keeping)
    store.write(OWNER, append_message, "old", draft("user", "again", NOW + 31.5 * DAY))
    done = tidy(store, 32.1, keeping)
    assert done is not None
    assert done.left_store == 0


@pytest.mark.parametrize("trash_days", [0, 7])
def test_an_empty_store_is_never_due(store: SqlStore, trash_days: int) -> None:
    assert tidy(store, 100, Keeping(trash_days)) is None
