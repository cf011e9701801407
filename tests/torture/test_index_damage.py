"""The search index destroyed while other processes write: nothing is refused, nothing is lost, everything is found."""

import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from segue import SessionDB
from segue.core.errors import SegueError
from segue.core.scope import OWNER_AT_CONSOLE
from segue.facade.searching import answer
from segue.sessions.searching import REBUILDING, Wish
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore

pytestmark = pytest.mark.torture

Run = Callable[..., subprocess.CompletedProcess[str]]

BEFORE, PERIODS = 1500, 5
HARMS = {
    "deleted": "DROP TABLE messages_fts",
    "truncated": "DELETE FROM messages_fts_data",
    "corrupted": "UPDATE messages_fts_data SET block = randomblob(length(block))",
}
WRITER = """
    import os, sys
    from segue import SessionDB
    with SessionDB(sys.argv[1]) as db:
        for number in range(1_000_000):
            db.append_message("shared", "user", f"live{number} common")
            os.write(1, b"%d\\n" % number)
            if os.path.exists(sys.argv[2]):
                break
"""
AS_THE_FIELD_DOES = """
    CREATE TRIGGER indexed AFTER INSERT ON messages BEGIN
      INSERT INTO messages_fts (rowid, content, tools) VALUES (new.id, new.content, '');
    END
"""


def fill(home: Path) -> None:
    with SessionDB(home / "state.db") as db:
        db.create_session("shared", "cli")
        for number in range(BEFORE):
            db.append_message("shared", "user", f"word{number} common")


def harm(home: Path, sql: str) -> None:
    connection = apsw.Connection(str(home / "state.db"))
    connection.set_busy_timeout(30_000)
    with suppress(apsw.SQLError):  # it is gone already
        connection.execute(sql)
    connection.close()


def count_of_common(store: SqlStore) -> int:
    return len(answer(store, OWNER_AT_CONSOLE, "common", Wish(limit=100_000), seconds=30).hits)


@pytest.mark.parametrize("name", HARMS)
def test_the_index_may_be_destroyed_at_any_time(home: Path, run: Run, tmp_path: Path, name: str) -> None:
    fill(home)
    stop = tmp_path / "stop"
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(home / "state.db"), str(stop)]
    notes: list[str] = []
    with (
        SqlStore(SqliteEngine(home / "state.db")) as store,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer,
    ):
        assert writer.stdout is not None
        try:
            for _ in range(PERIODS):
                for _ in range(150):
                    assert writer.stdout.readline(), "the writer goes on"
                harm(home, HARMS[name])
                found = answer(store, OWNER_AT_CONSOLE, "word7 common", Wish(), seconds=30)
                assert [hit.found.content for hit in found.hits] == ["word7 common"]
                notes += found.notes
        finally:
            stop.touch()
            rest = writer.stdout.read()
            assert writer.wait(60) == 0
        assert REBUILDING in notes
        added = PERIODS * 150 + len(rest.splitlines())
        harm(home, HARMS[name])
        assert run("doctor").returncode == 1
        assert "Every message can be found again." in run("doctor", "--fix").stdout
        assert run("doctor").returncode == 0
        assert count_of_common(store) == BEFORE + added
        for word in ("word0", f"word{BEFORE - 1}", "live0", f"live{added - 1}"):
            assert len(answer(store, OWNER_AT_CONSOLE, word, Wish()).hits) == 1


def test_a_part_of_the_index_that_is_gone_is_noticed(home: Path, run: Run) -> None:
    fill(home)
    with SqlStore(SqliteEngine(home / "state.db")) as store:
        store.index_all()
    assert run("doctor").returncode == 0
    harm(home, "DELETE FROM messages_fts_data WHERE id = (SELECT max(id) FROM messages_fts_data)")
    assert "The search index is damaged" in run("doctor").stdout
    assert "Every message can be found again." in run("doctor", "--fix").stdout
    assert run("doctor").returncode == 0


@pytest.mark.parametrize("name", HARMS)
def test_an_index_in_the_same_transaction_would_refuse_messages(home: Path, name: str) -> None:
    """The control: the same harm, with the index written along with each message."""
    fill(home)
    harm(home, AS_THE_FIELD_DOES)
    harm(home, HARMS[name])
    with SessionDB(home / "state.db") as db, pytest.raises(SegueError):
        db.append_message("shared", "user", "more common")


def test_making_it_anew_goes_on_where_it_was_killed(home: Path, run: Run) -> None:
    fill(home)
    with SessionDB(home / "state.db") as db:
        db.import_sessions([{"id": f"i{n}", "source": "cli", "messages": messages(n)} for n in range(60)])
    command = [sys.executable, "-m", "segue", "doctor", "--reindex"]
    indexed: list[int] = []
    while len(indexed) < 3:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            wait_for_progress(home, process, indexed[-1] if indexed else 0)
            process.kill()
        indexed.append(state_of(home)[0])
    assert indexed == sorted(set(indexed)), "each time further than the last"
    assert run("doctor", "--reindex").returncode == 0
    last, is_remaking = state_of(home)
    assert (last, is_remaking) == (BEFORE + 60 * 500, False)
    with SqlStore(SqliteEngine(home / "state.db")) as store:
        assert count_of_common(store) == last


def messages(number: int) -> list[dict[str, object]]:
    return [{"role": "user", "content": f"text{number}x{one} common", "timestamp": 1.0} for one in range(500)]


def state_of(home: Path) -> tuple[int, bool]:
    with SqlStore(SqliteEngine(home / "state.db", read_only=True)) as store:
        state = store.read(OWNER_AT_CONSOLE, lambda tx: tx.search.state())
        return state.indexed_to, state.is_remaking


def wait_for_progress(home: Path, process: subprocess.Popen[bytes], beyond: int) -> None:
    end = time.monotonic() + 60
    while True:
        indexed, is_remaking = state_of(home)
        assert indexed >= beyond, "it was begun again"
        if is_remaking and indexed > beyond:
            return
        assert process.poll() is None, "it was not to finish yet"
        assert time.monotonic() < end
