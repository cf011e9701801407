"""The search index destroyed while other processes write: nothing is refused, nothing is lost, everything is found."""

import signal
import subprocess
import textwrap
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw
import pytest
from fork_server import PIPE, ForkServer
from torture_rounds import rounds

from segue import SessionDB
from segue.core.errors import SegueError
from segue.core.scope import OWNER_AT_CONSOLE
from segue.facade.searching import answer
from segue.sessions.searching import REBUILDING, Wish
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore

pytestmark = pytest.mark.torture

Run = Callable[..., subprocess.CompletedProcess[str]]

BEFORE, PERIODS, MAX_PERIODS = 1500, rounds(2, in_torture=5), 100
IN_A_PERIOD = 150
IN_TIME = 600.0
"""Seconds that a search may take here, so that none gives up."""
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
        db.import_sessions(
            [
                {
                    "id": "imported",
                    "source": "cli",
                    "messages": [
                        {"role": "user", "content": f"word{number} common", "timestamp": 1.0}
                        for number in range(BEFORE)
                    ],
                }
            ]
        )


def harm(home: Path, sql: str) -> None:
    connection = apsw.Connection(str(home / "state.db"))
    connection.set_busy_timeout(30_000)
    with suppress(apsw.SQLError):  # it is gone already
        connection.execute(sql)
    connection.close()


def count_of_common(store: SqlStore) -> int:
    return len(answer(store, OWNER_AT_CONSOLE, "common", Wish(limit=100_000), seconds=IN_TIME).hits)


@pytest.mark.parametrize("name", HARMS)
def test_the_index_may_be_destroyed_at_any_time(
    home: Path, run: Run, fork_server: ForkServer, tmp_path: Path, name: str
) -> None:
    fill(home)
    stop = tmp_path / "stop"
    writer = fork_server.start(textwrap.dedent(WRITER), home / "state.db", stop, stdout=PIPE)
    notes: list[str] = []
    with SqlStore(SqliteEngine(home / "state.db")) as store:
        assert writer.stdout is not None
        try:
            for period in range(1, MAX_PERIODS + 1):
                for _ in range(IN_A_PERIOD):
                    assert writer.stdout.readline(), "the writer goes on"
                harm(home, HARMS[name])
                found = answer(store, OWNER_AT_CONSOLE, "word7 common", Wish(), seconds=IN_TIME)
                assert [hit.found.content for hit in found.hits] == ["word7 common"]
                notes += found.notes
                if period >= PERIODS and REBUILDING in notes:
                    break  # the writer may have been quicker to mend it now and then
        finally:
            stop.touch()
            rest, _ = writer.communicate()
        assert writer.returncode == 0
        assert REBUILDING in notes
        added = period * IN_A_PERIOD + len(rest.splitlines())
        harm(home, HARMS[name])
        assert run("doctor").returncode == 1
        assert "Every message can be found again." in run("doctor", "--fix").stdout
        assert run("doctor").returncode == 0
        assert count_of_common(store) == BEFORE + added
        for word in ("word0", f"word{BEFORE - 1}", "live0", f"live{added - 1}"):
            assert len(answer(store, OWNER_AT_CONSOLE, word, Wish(), seconds=IN_TIME).hits) == 1


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


REINDEX = """
    import os, random, signal, sys, time
    from segue.storage.indexing import Indexing
    careful, left = Indexing._next, int(sys.argv[1])

    def next_batch(self, most, patience):  # a moment after so many batches it dies, wherever it is then
        global left
        began = time.monotonic()
        state = careful(self, most, patience)
        left -= 1
        if left == 0:
            signal.setitimer(signal.ITIMER_REAL, 1e-6 + random.random() * (time.monotonic() - began))
        elif left == -1:
            os.kill(os.getpid(), signal.SIGALRM)
        return state

    Indexing._next = next_batch
    sys.argv = ["segue", "doctor", "--reindex"]
    from segue.cli import main
    main()
"""
IMPORTED = rounds(12, in_torture=60)


def test_making_it_anew_goes_on_where_it_was_killed(home: Path, run: Run, fork_server: ForkServer) -> None:
    fill(home)
    with SessionDB(home / "state.db") as db:
        db.import_sessions([{"id": f"i{n}", "source": "cli", "messages": messages(n)} for n in range(IMPORTED)])
    indexed: list[int] = []
    for _ in range(3):
        killed = fork_server.run(textwrap.dedent(REINDEX), 2)
        assert killed.returncode == -signal.SIGALRM, killed.stderr
        reached, is_remaking = state_of(home)
        assert is_remaking
        indexed.append(reached)
    assert indexed == sorted(set(indexed)), "each time further than the last"
    assert run("doctor", "--reindex").returncode == 0
    last, is_remaking = state_of(home)
    assert (last, is_remaking) == (BEFORE + IMPORTED * 500, False)
    with SqlStore(SqliteEngine(home / "state.db")) as store:
        assert count_of_common(store) == last


def messages(number: int) -> list[dict[str, object]]:
    return [{"role": "user", "content": f"text{number}x{one} common", "timestamp": 1.0} for one in range(500)]


def state_of(home: Path) -> tuple[int, bool]:
    with SqlStore(SqliteEngine(home / "state.db", read_only=True)) as store:
        state = store.read(OWNER_AT_CONSOLE, lambda tx: tx.search.state())
        return state.indexed_to, state.is_remaking
