"""What there is in a home after it was used, how much room that takes, and what is left alone beside it."""

import ctypes
import os
import random
import select
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Protocol

import pytest
from lane_house import dm
from serving_house import Served, use_obedient_model, write_settings

from segue import SessionDB
from segue.core.messages import draft
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sessions import Session
from segue.ports.store import Transaction
from segue.sessions.recording import append_message
from segue.sessions.starting import create_session
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore
from segue.testing import Stage

pytestmark = pytest.mark.process

MEGABYTE = 1_000_000
WORDS = "Leeks are washed twice, then cut."
IN_OPEN, IN_ACCESS = 0x20, 0x1
FOREIGN = {
    ".hermes": ("state.db", "sessions/sessions.json"),
    ".openclaw": ("openclaw.json", "agents/main/sessions/sessions.json"),
    ".claude": ("projects/-home/a.jsonl",),
    ".codex": ("sessions/2026/05/01/rollout.jsonl",),
}


class Run(Protocol):
    def __call__(self, *arguments: str, **environment: str) -> CompletedProcess[str]: ...


# What is in it


def test_what_was_said_is_in_the_database_and_in_no_other_file(
    home: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_obedient_model(monkeypatch)
    monkeypatch.chdir(tmp_path)
    stage = Stage()
    served = Served(write_settings(home), {"scripted": stage})

    async def work() -> None:
        for line in (WORDS, "/new", "And then?"):
            stage.say(dm("owner"), line)
            await served.quiet()

    served.run(work)
    served.close()
    write_settings(home, model="")
    asked = run("chat", "-q", WORDS, OPENAI_API_KEY="", ANTHROPIC_API_KEY="")
    assert asked.returncode == 0, asked.stderr
    files = {str(path.relative_to(home)): path for path in home.rglob("*") if path.is_file()}
    assert set(files) <= {"config.yaml", "state.db", "state.db-wal", "state.db-shm"}
    with SessionDB() as db:
        assert {one["source"] for one in db.search_sessions()} == {"scripted", "cli"}
    assert WORDS.encode() in files["state.db"].read_bytes()


# How much room it takes


def prose(source: random.Random, words: int) -> str:
    """So many words, of which a few occur often and most of them seldom."""
    return " ".join(f"word{int(source.paretovariate(0.6)) % 20_000}" for _ in range(words))


def test_a_few_hundred_sessions_take_fifteen_megabytes_at_most(home: Path) -> None:
    source = random.Random(7)

    def talk(tx: Transaction, session_id: str) -> None:
        create_session(tx, Session(id=session_id, source="cli", started_at=1.0, last_active_at=1.0))
        for _ in range(10):
            append_message(tx, session_id, draft("user", prose(source, 25), 1.0))
            append_message(tx, session_id, draft("assistant", prose(source, 100), 2.0))

    with SqlStore(SqliteEngine(home / "state.db")) as store:
        for number in range(300):
            store.write(OWNER_AT_CONSOLE, talk, f"s{number}")
        store.index_all()  # what it takes to search is counted, too
        state = store.read(OWNER_AT_CONSOLE, lambda tx: tx.search.state())
        assert state.indexed_to == state.last_id == 6_000
    taken = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    print(f"300 sessions of 20 messages take {taken / MEGABYTE:.1f} MB.")
    assert taken <= 15 * MEGABYTE


# What is beside it


class Watch:
    """Notices whoever opens or reads something in folders."""

    def __init__(self, folders: list[Path]) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self.descriptor = self._library.inotify_init1(os.O_NONBLOCK)
        assert self.descriptor >= 0, os.strerror(ctypes.get_errno())
        for folder in folders:
            assert self._library.inotify_add_watch(self.descriptor, os.fsencode(folder), IN_OPEN | IN_ACCESS) >= 0

    def seen(self) -> list[str]:
        """What was opened or read since somebody asked last."""
        names: list[str] = []
        while select.select([self.descriptor], [], [], 0)[0]:
            read = os.read(self.descriptor, 65_536)
            while read:
                *_, size = struct.unpack_from("iIII", read)
                names.append(read[16 : 16 + size].rstrip(b"\0").decode() or "the folder")
                read = read[16 + size :]
        return names


@contextmanager
def watching(folders: list[Path]) -> Iterator[Watch]:
    watch = Watch(folders)
    try:
        yield watch
    finally:
        os.close(watch.descriptor)


@pytest.mark.skipif(sys.platform != "linux", reason="needs inotify")
def test_what_other_programs_keep_is_read_only_when_an_import_names_it(run: Run, tmp_path: Path) -> None:
    person = tmp_path / "person"
    for name, files in FOREIGN.items():
        for file in files:
            (person / name / file).parent.mkdir(parents=True, exist_ok=True)
            (person / name / file).write_text('{"id": "theirs"}\n')
    named = person / ".claude/projects/-home/a.jsonl"
    at_home = {"HOME": str(person), "CLAUDE_CONFIG_DIR": str(person / ".claude"), "OPENAI_API_KEY": ""}
    folders = [path for path in person.rglob("*") if path.is_dir()]
    with watching(folders) as watch:
        for line in (
            *("status", "doctor", "sessions list", "sessions search leeks", "chat -q leeks", "sessions stats"),
            *("config check", f"backup {tmp_path / 'saved'}", "sessions export -"),
        ):
            done = run(*line.split(), **at_home)
            assert "Traceback" not in done.stderr
            assert watch.seen() == [], line
        run("sessions", "import", str(named), **at_home)
        assert named.name in watch.seen(), "the control: whoever is told to read it is noticed"
