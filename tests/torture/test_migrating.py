"""A large store moved to a server and back, killed twice on each way: nothing differs, and memory stays flat."""

import hashlib
import json
import os
import random
import signal
import sqlite3
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fork_server import PIPE, ForkServer
from homes import keep_in
from postgres_server import Server
from psycopg.conninfo import conninfo_to_dict
from torture_rounds import rounds

from segue import SessionDB, app

pytestmark = [pytest.mark.torture, pytest.mark.timeout(rounds(900, in_torture=10_800))]

MESSAGES = rounds(3_000, in_torture=400_000)
OF_A_SESSION = 100
FLAT = 64 << 20
"""What a store fifty times as large may cost more at the peak."""
DEADLINE = rounds(600, in_torture=7200)
PIECE = rounds(100, in_torture=500)
"""Messages that are copied in one transaction by whoever is killed."""
WORDS = ["river", "delta", "naïve", "天气", "桂林山水", "ไทย", "🚀", "/etc/nginx/nginx.conf", "don't", "C++"]


def conversations(messages: int) -> Iterator[dict[str, object]]:
    chance = random.Random(messages)
    for number in range(messages // OF_A_SESSION):
        said = [
            {
                "role": ("user", "assistant")[place % 2],
                "content": " ".join(chance.choices(WORDS, k=40)) + f" {number}.{place}",
                "timestamp": 1_700_000_000.0 + number * 1000 + place,
            }
            for place in range(OF_A_SESSION)
        ]
        yield {"id": f"s{number}", "source": "cli", "title": f"Title {number}", "tags": ["moved"], "messages": said}


def filled(home: Path, messages: int) -> Path:
    """A home on a file whose index is complete."""
    home.mkdir(mode=0o700)
    with SessionDB(home / "state.db") as db:
        assert db.import_sessions(conversations(messages))["added"] == messages // OF_A_SESSION
    with app.open_store(home / "state.db") as store:
        store.index_all(anew=False)
    return home


KILLED = """
    import os, random, signal, sys, time
    from segue.storage import copying
    left, copying._MOST_ROWS = int(sys.argv[1]), int(sys.argv[2])
    careful = copying._Copier.put

    def put(self, executor, *, piece):  # a moment after so many pieces it dies, wherever it is then
        global left
        began = time.monotonic()
        careful(self, executor, piece=piece)
        if self._table is copying.MESSAGES:
            left -= 1
            if left == 0:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 + random.random() * 3 * (time.monotonic() - began))
            elif left == -4:
                os.kill(os.getpid(), signal.SIGALRM)

    copying._Copier.put = put
    sys.argv = ["segue", "db", "migrate", *sys.argv[3:]]
    from segue.cli import main
    main()
"""
MEASURED = """
    import sys
    from pathlib import Path
    peak, sys.argv = Path(sys.argv[1]), ["segue", "db", "migrate", *sys.argv[2:]]
    from segue.cli import main
    try:
        main()
    finally:
        (line,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
        peak.write_text(line.split()[1])
"""


def killed_on_the_way(server: ForkServer, copied: Callable[[], int], home: Path, *arguments: str) -> None:
    """Twice, each time when more is there than before and less than all."""
    than = 0
    for share in (4, 2):
        pieces = MESSAGES // PIECE // share
        killed = server.run(textwrap.dedent(KILLED), pieces, PIECE, *arguments, env=of(home), timeout=DEADLINE)
        assert killed.returncode == -signal.SIGALRM, killed.stdout + killed.stderr
        found = copied()
        assert than < found < MESSAGES
        than = found


def of(home: Path) -> dict[str, str]:
    return os.environ | {"SEGUE_HOME": str(home)}


def in_file(file: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM messages").fetchone()[0])
    except sqlite3.Error:
        return 0


def on_server(server: Server, url: str) -> int:
    database = str(conninfo_to_dict(url)["dbname"])
    if not server.run("SELECT to_regclass('segue.messages')", database)[0][0]:
        return 0
    return int(server.run("SELECT count(*) FROM segue.messages", database)[0][0])


def finished(server: ForkServer, home: Path, *arguments: str) -> tuple[int, str]:
    """The peak of its memory, and what it said."""
    peak = home.with_name("peak")
    done = server.run(textwrap.dedent(MEASURED), peak, *arguments, env=of(home), timeout=DEADLINE)
    assert done.returncode == 0, done.stdout + done.stderr
    return int(peak.read_text()) << 10, done.stdout


def digest(server: ForkServer, home: Path) -> str:
    """Every message as it is exported, in one number."""
    told = hashlib.sha256()
    command = "from segue.cli import main; main()"
    process = server.start(command, "sessions", "export", "-", "--yes", env=of(home), stdout=PIPE, stderr=PIPE)
    assert process.stdout is not None
    while piece := process.stdout.read(1 << 20):
        told.update(piece)
    _, errors = process.communicate(DEADLINE)
    assert process.returncode == 0, errors
    return told.hexdigest()


def test_there_and_back_killed_twice_on_each_way(
    tmp_path: Path, postgres_server: Server, fork_server: ForkServer
) -> None:
    small, _ = finished(fork_server, filled(tmp_path / "small", 2_000), "--to", postgres_server.new_database())
    home, url = filled(tmp_path / "home", MESSAGES), postgres_server.new_database()
    before = digest(fork_server, home)

    began = time.monotonic()
    killed_on_the_way(fork_server, lambda: on_server(postgres_server, url), home, "--to", url)
    peak, said = finished(fork_server, home, "--to", url)
    there = time.monotonic() - began
    assert f"{MESSAGES // OF_A_SESSION:,} sessions, {MESSAGES:,} messages: equal in both." in said
    assert peak < small + FLAT
    keep_in(home, url)
    assert digest(fork_server, home) == before

    (home / "state.db").rename(tmp_path / "old.db")
    for companion in ("-wal", "-shm"):
        Path(f"{home / 'state.db'}{companion}").unlink(missing_ok=True)
    began = time.monotonic()
    killed_on_the_way(fork_server, lambda: in_file(home / "state.db"), home, "--to", "sqlite")
    peak_back, said = finished(fork_server, home, "--to", "sqlite")
    back = time.monotonic() - began
    assert "equal in both." in said
    assert peak_back < small + FLAT
    (home / "config.yaml").unlink()
    assert in_file(home / "state.db") == MESSAGES
    assert digest(fork_server, home) == before
    megabytes = [one >> 20 for one in (small, peak, peak_back)]
    print(json.dumps({"messages": MESSAGES, "there": there, "back": back, "peak of 2,000, there, back": megabytes}))
