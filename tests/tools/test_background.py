"""What runs in the background is known, heard and stopped, and nothing outlives the program that keeps it."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import on_sqlite
from waiting import DEADLINE, until, wait_until

from segue import SessionDB
from segue.core.background import Process, ProcessState
from segue.core.scope import OWNER_AT_CONSOLE, Principal, Scope
from segue.core.sessions import Session
from segue.ports.tool import ToolFailed
from segue.sessions.backgrounding import find_process, mark_lost
from segue.sessions.leasing import begin_run, end_run
from segue.sessions.starting import create_session
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore
from segue.tools import background as background_module
from segue.tools import keepers
from segue.tools.background import Background
from segue.tools.keepers import shared_keeper
from segue.tools.process import ProcessTool
from segue.tools.processes import signal_all
from segue.tools.recording import Record, read_record
from segue.tools.terminal import Terminal
from segue.upkeep.living import is_gone, this_run

pytestmark = pytest.mark.process

LAUNCHER = Path(__file__).parents[1] / "support" / "keeping_launcher.py"
LONG = 1_000
FORKING = f"""
echo $$ >> pids; for _ in 1 2 3; do bash -c 'echo $$ >> pids; sleep {LONG}; true' & done
timeout {LONG} bash -c 'echo $$ >> pids; sleep {LONG}; true' &
set -m; bash -c 'echo $$ >> pids; sleep {LONG}; true' & wait
"""
DEAF = f"trap '' TERM HUP INT; echo $$ >> pids; bash -c 'echo $$ >> pids; sleep {LONG}; true'; sleep {LONG}; true"
FLOODING = "echo $$ >> pids; yes flood & echo $! >> pids; wait"
PLAIN = f"echo $$ >> pids; sleep {LONG}; true"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home with a session `s` in it."""
    home = tmp_path / "home"
    home.mkdir()
    with SessionDB(home / "state.db") as db:
        db.create_session("s", "cli")
        db.create_session("other", "cli")
    return home


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def pids_in(folder: Path) -> list[int]:
    file = folder / "pids"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def running_of(folder: Path) -> list[int]:
    return [pid for pid in pids_in(folder) if is_running(pid)]


def keepers_of(program: int) -> list[int]:
    """The processes that end what a program has started, should it be gone before it could do so itself."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            parent = int((folder / "stat").read_text().rpartition(") ")[2].split()[1])
            if parent == program and b"segue.tools.keeper" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


class Launched:
    """A program that keeps something, and is about to be killed."""

    def __init__(self, folder: Path, *commands: str, **wanted: Any) -> None:
        self._folder = folder
        said = json.dumps({"folder": str(folder), "commands": commands, **wanted})
        self.process = subprocess.Popen([sys.executable, str(LAUNCHER), said], stdout=subprocess.PIPE, text=True)

    def kill(self, number: signal.Signals, processes: int) -> list[int]:
        """Kill it once so many processes run; who kept them."""
        wait_until(lambda: len(pids_in(self._folder)) >= processes)
        assert len(running_of(self._folder)) >= processes
        keepers = keepers_of(self.process.pid)
        self.process.send_signal(number)
        self.process.wait(DEADLINE)
        return keepers

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        for pid in running_of(self._folder):
            signal_all(os.getsid(pid), signal.SIGKILL)
        if (holder := self._folder / "holder").exists():
            os.kill(int(holder.read_text()), signal.SIGKILL)


@pytest.fixture
def launch(work: Path) -> Iterator[Callable[..., Launched]]:
    launched: list[Launched] = []

    def start(*commands: str, **wanted: Any) -> Launched:
        launched.append(Launched(work, *commands, **wanted))
        return launched[-1]

    yield start
    for one in launched:
        one.close()


COMMANDS = [(PLAIN, 1), (FORKING, 6), (DEAF, 2), (FLOODING, 2)]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("is_kept", [False, True], ids=["awaited", "background"])
def test_a_command_ends_with_the_program_however_that_ends(
    launch: Callable[..., Launched], work: Path, place: Path, number: signal.Signals, is_kept: bool
) -> None:
    """Whatever it is: one that just runs, one that forks, one that does not listen, one that talks without end."""
    commands, processes = zip(*COMMANDS, strict=True)
    launched = launch(*commands, **({"home": str(place), "session": "s"} if is_kept else {}))
    assert launched.kill(number, sum(processes))
    wait_until(lambda: running_of(work) == [])


@pytest.mark.parametrize("is_kept", [False, True], ids=["awaited", "background"])
def test_a_command_that_nobody_watches_goes_on(
    launch: Callable[..., Launched], work: Path, place: Path, is_kept: bool
) -> None:
    """The control: what the keeper is not told of survives the program."""
    launched = launch(PLAIN, way="unwatched", **({"home": str(place), "session": "s"} if is_kept else {}))
    keepers = launched.kill(signal.SIGKILL, 1)
    assert keepers
    wait_until(lambda: not any(map(is_running, keepers)))
    assert running_of(work) != []


@pytest.mark.parametrize("is_kept", [False, True], ids=["awaited", "background"])
def test_a_keeper_is_not_fooled_by_a_child_that_holds_its_pipe(
    launch: Callable[..., Launched], work: Path, place: Path, is_kept: bool
) -> None:
    launched = launch(PLAIN, way="fork", **({"home": str(place), "session": "s"} if is_kept else {}))
    wait_until((work / "holder").exists)
    launched.kill(signal.SIGKILL, 1)
    assert is_running(int((work / "holder").read_text()))
    wait_until(lambda: running_of(work) == [])


def test_what_a_killed_program_kept_is_lost_at_the_next_start(
    launch: Callable[..., Launched], work: Path, place: Path
) -> None:
    launched = launch(PLAIN, home=str(place), session="s")
    launched_id = launched.process.stdout.readline().strip() if launched.process.stdout else ""
    with SqlStore(SqliteEngine(place / "state.db")) as store:
        assert store.write(OWNER_AT_CONSOLE, mark_lost, is_gone, 5.0) == 0
        launched.kill(signal.SIGKILL, 1)
        assert store.write(OWNER_AT_CONSOLE, mark_lost, is_gone, 5.0) == 1
        assert store.write(OWNER_AT_CONSOLE, mark_lost, is_gone, 6.0) == 0
        found = store.read(OWNER_AT_CONSOLE, find_process, launched_id)
    assert found is not None
    assert (found.state, found.exit_code, found.ended_at, found.command) == (ProcessState.LOST, None, 5.0, PLAIN)


def test_a_program_that_ends_well_stops_what_it_keeps_and_says_so(
    launch: Callable[..., Launched], work: Path, place: Path
) -> None:
    launched = launch(DEAF, home=str(place), session="s", way="close", processes=2)
    launched_id = launched.process.stdout.readline().strip() if launched.process.stdout else ""
    assert launched.process.wait(DEADLINE) == 0
    assert len(pids_in(work)) >= 2
    assert running_of(work) == []
    with SqlStore(SqliteEngine(place / "state.db")) as store:
        found = store.read(OWNER_AT_CONSOLE, find_process, launched_id)
    assert found is not None
    assert found.state == ProcessState.STOPPED


class Bench:
    """The two tools, on a store with the sessions `s` and `other`."""

    def __init__(self, store: SqlStore, home: Path, work: Path) -> None:
        self.store = store
        self.run = this_run("a test")
        store.write(OWNER_AT_CONSOLE, begin_run, self.run)
        self.folder = home / "logs" / "processes"
        self.background = Background(store, OWNER_AT_CONSOLE, self.run.id, self.folder)
        self.terminal = Terminal(work, os.environ, self.background)
        self.process = ProcessTool(self.background)

    async def start(self, command: str, session_id: str = "s") -> str:
        told = await self.terminal.run({"command": command, "background": True}, session_id)
        return told.split()[1]

    async def told(self, action: str, process_id: str | None = None, session_id: str = "s") -> str:
        return await self.process.run({"action": action, "id": process_id}, session_id)

    async def until(self, process_id: str, text: str) -> str:
        """All that is told until a text is there."""
        told = ""

        async def is_there() -> bool:
            nonlocal told
            told += await self.told("output", process_id)
            return text in told

        await until(is_there, text)
        return told

    def row(self, process_id: str) -> Process:
        found = self.store.read(OWNER_AT_CONSOLE, find_process, process_id)
        assert found is not None
        return found


@pytest.fixture
def bench(store: SqlStore, home: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(background_module, "_PATIENCE", 0.3)
    for name in ("s", "other"):
        store.write(OWNER_AT_CONSOLE, create_session, Session(name, "cli", started_at=1.0))
    return Bench(store, home, work)


def on(bench: Bench, work: Coroutine[Any, Any, None]) -> None:
    async def closed() -> None:
        try:
            await work
        finally:
            await bench.background.close()

    asyncio.run(closed())


def test_a_process_is_a_row_that_is_heard_and_ends(bench: Bench, work: Path) -> None:
    async def act() -> None:
        one = await bench.start("echo first; while [ ! -e go ]; do sleep 0.05; done; echo second; exit 3")
        row = bench.row(one)
        assert (row.session_id, row.run_id, row.state, row.cwd) == ("s", bench.run.id, "running", str(work))
        assert os.getsid(row.pid) == row.pid
        assert await bench.until(one, "first")
        assert await bench.told("output", one) == "(no new output)\n[running]"
        assert (await bench.told("list")).startswith(f"- {one}: running, started 0 min ago: echo first;")
        (work / "go").touch()
        told = await bench.until(one, "[exit code 3]")
        assert "second" in told
        assert "first" not in told
        row = bench.row(one)
        assert (row.state, row.exit_code) == (ProcessState.ENDED, 3)
        assert row.ended_at is not None
        assert await bench.told("stop", one) == "(no new output)\n[exit code 3]"

    on(bench, act())


@on_sqlite
def test_what_was_told_in_one_turn_is_not_told_again_in_the_next(bench: Bench) -> None:
    async def act() -> None:
        one = await bench.start("echo first; sleep 100")
        assert await bench.until(one, "first")
        bench.process = ProcessTool(bench.background)  # each turn has tools of its own
        assert await bench.told("output", one) == "(no new output)\n[running]"

    on(bench, act())


@on_sqlite
@pytest.mark.parametrize(("command", "processes"), COMMANDS, ids=["plain", "forking", "deaf", "flooding"])
def test_a_process_is_stopped_with_all_that_it_started(bench: Bench, work: Path, command: str, processes: int) -> None:
    async def act() -> None:
        one = await bench.start(command)
        await until(lambda: len(running_of(work)) >= processes)
        assert (await bench.told("stop", one)).endswith("[stopped]")
        assert running_of(work) == []
        assert bench.row(one).state == ProcessState.STOPPED

    on(bench, act())


def test_closing_stops_everything_and_says_so(bench: Bench, work: Path) -> None:
    async def act() -> list[str]:
        ids = [await bench.start(PLAIN, session) for session in ("s", "other", "s")]
        await until(lambda: len(running_of(work)) >= 3)
        await bench.background.close()
        return ids

    ids = asyncio.run(act())
    assert running_of(work) == []
    assert {bench.row(one).state for one in ids} == {ProcessState.STOPPED}


@on_sqlite
def test_of_a_flood_the_end_is_kept_in_a_file_for_its_owner_alone(bench: Bench) -> None:
    async def act() -> None:
        one = await bench.start("seq 1 2000000; echo the end")
        told = await bench.until(one, "[exit code 0]")
        assert "2000000\nthe end\n" in told
        file = bench.folder / one
        assert 1_000_000 <= file.stat().st_size < 2_100_000
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(bench.folder.stat().st_mode) == 0o700
        found = read_record(file)
        assert found.left_out + len(found.rest) == sum(len(f"{one}\n") for one in range(1, 2_000_001)) + 8

    on(bench, act())


@on_sqlite
def test_a_flood_without_end_holds_nobody_up(bench: Bench, work: Path) -> None:
    async def act() -> None:
        one = await bench.start("yes")
        for _ in range(40):
            await asyncio.sleep(0.005)
        await bench.until(one, "before this are not kept]")
        assert (bench.folder / one).stat().st_size < 2_100_000

    on(bench, act())


@on_sqlite
def test_what_bash_leaves_behind_ends_with_it(bench: Bench, work: Path) -> None:
    async def act() -> None:
        one = await bench.start(f"sleep {LONG} & echo $! > pids; echo said")
        assert "said" in await bench.until(one, "[exit code 0]")
        assert running_of(work) == []

    on(bench, act())


def test_processes_of_other_sessions_are_listed_while_they_run(bench: Bench, work: Path) -> None:
    async def act() -> None:
        assert await bench.told("list") == "Nothing runs in the background."
        one, two = await bench.start(PLAIN, "s"), await bench.start("true", "other")
        await bench.until(two, "[exit code 0]")
        assert (await bench.told("list", session_id="other")).splitlines()[0].startswith(f"- {two}: exit code 0")
        assert f"- {one}: running, started 0 min ago, of session s: echo" in await bench.told(
            "list", session_id="other"
        )
        assert two not in await bench.told("list")

    on(bench, act())


@on_sqlite
def test_what_is_asked_wrongly_is_told(bench: Bench) -> None:
    async def failed(action: str, process_id: str | None = None) -> str:
        with pytest.raises(ToolFailed) as told:
            await bench.told(action, process_id)
        return str(told.value)

    assert asyncio.run(failed("output")) == "process needs the argument id for output; list shows the ids."
    assert asyncio.run(failed("stop", "../x\x1b")) == "There is no process ../x; list shows those that are."
    assert "is one of list, output, stop" in asyncio.run(failed("kill"))
    with pytest.raises(ToolFailed, match="Nothing can be kept in the background here"):
        asyncio.run(Terminal(Path("/"), os.environ).run({"command": "true", "background": True}, "s"))


def test_nobody_sees_the_processes_of_somebody_else(bench: Bench) -> None:
    async def act() -> None:
        one = await bench.start(PLAIN)
        stranger = Background(bench.store, Scope(Principal("telegram:1")), bench.run.id, bench.folder)
        assert await stranger.find(one) is None
        assert await stranger.around("s") == []

    on(bench, act())


def test_what_another_program_keeps_is_not_stopped_here(bench: Bench) -> None:
    async def act() -> None:
        one = await bench.start(PLAIN)
        elsewhere = ProcessTool(Background(bench.store, OWNER_AT_CONSOLE, "another run", bench.folder))
        with pytest.raises(ToolFailed, match="is kept by another program"):
            await elsewhere.run({"action": "stop", "id": one}, "s")

    on(bench, act())


def test_a_process_that_cannot_be_written_down_does_not_run(bench: Bench, work: Path) -> None:
    async def act() -> None:
        with pytest.raises(Exception, match=r"(?i)foreign key"):
            await bench.start(PLAIN, "no such session")
        wait_until(lambda: running_of(work) == [])
        with pytest.raises(ToolFailed, match="is not there"):
            await bench.terminal.run({"command": "true", "cwd": "gone", "background": True}, "s")

    on(bench, act())


@on_sqlite
def test_there_are_only_so_many_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_module, "MOST", 2)

    async def act() -> None:
        for _ in range(2):
            await bench.start(PLAIN)
        with pytest.raises(ToolFailed, match="2 processes run in the background already"):
            await bench.start(PLAIN)

    on(bench, act())


@on_sqlite
def test_what_was_said_long_ago_is_forgotten(bench: Bench) -> None:
    async def act() -> None:
        bench.folder.mkdir(parents=True)
        for name, age in (("old", 8), ("new", 6)):
            (bench.folder / name).touch()
            os.utime(bench.folder / name, (time.time() - age * 86_400,) * 2)
        await bench.start(PLAIN)
        assert not (bench.folder / "old").exists()
        assert (bench.folder / "new").exists()

    on(bench, act())


def test_a_run_that_ended_keeps_nothing(bench: Bench) -> None:
    row = Process("p", "s", bench.run.id, "true", "/", 1, "running", 1.0)
    bench.store.write(OWNER_AT_CONSOLE, lambda tx: tx.processes.insert(row))
    assert bench.store.write(OWNER_AT_CONSOLE, mark_lost, is_gone, 2.0) == 0
    bench.store.write(OWNER_AT_CONSOLE, end_run, bench.run.id, 3.0)
    assert bench.store.write(OWNER_AT_CONSOLE, mark_lost, is_gone, 4.0) == 1
    assert bench.row("p").state == ProcessState.LOST


def pipes() -> int:
    """How many ends of pipes are open here; connections to a database come and go."""
    found = 0
    for one in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the list itself
            found += os.readlink(f"/proc/self/fd/{one}").startswith("pipe:")
    return found


@on_sqlite
def test_nothing_is_left_open(bench: Bench) -> None:
    async def act() -> None:
        await bench.until(await bench.start("true"), "[exit code 0]")
        before = pipes()
        for _ in range(3):
            one = await bench.start("echo x")
            await bench.until(one, "[exit code 0]")
            await bench.told("stop", await bench.start(PLAIN))
        assert pipes() == before

    on(bench, act())


def test_a_keeper_that_was_killed_is_followed_by_another_who_knows_what_it_knew(work: Path) -> None:
    async def act() -> None:
        awaited = asyncio.create_task(Terminal(work, os.environ).run({"command": PLAIN}, "s"))
        await until(lambda: running_of(work))
        before = shared_keeper()
        watched = set(before.watched)
        os.kill(before.pid, signal.SIGKILL)
        await until(lambda: not before.is_there)
        assert await Terminal(work, os.environ).run({"command": "echo well"}, "s") == "well\n[exit code 0]"
        assert shared_keeper() is not before
        assert shared_keeper().watched == watched == set(pids_in(work))
        awaited.cancel()
        with pytest.raises(asyncio.CancelledError):
            await awaited
        assert shared_keeper().watched == set()

    asyncio.run(act())


def test_a_keeper_knows_nothing_of_ours(tmp_path: Path) -> None:
    asyncio.run(Terminal(tmp_path, os.environ).run({"command": "true"}, "s"))
    keeper = Path(f"/proc/{shared_keeper().pid}")
    wait_until(lambda: len(os.listdir(keeper / "fd")) == 3)
    assert b"PATH=" not in (keeper / "environ").read_bytes()
    assert (keeper / "cwd").readlink() == Path("/")
    assert keepers.shared_keeper() is shared_keeper()


@given(st.lists(st.tuples(st.binary(max_size=60), st.booleans()), max_size=30))
def test_a_record_holds_the_end_and_counts_the_rest(pieces: list[tuple[bytes, bool]]) -> None:
    path = f"/tmp/segue-record-{os.getpid()}"
    record = Record(path, kept=40)
    for piece, is_written in pieces:
        record.hear(piece)
        if is_written:
            record.write()
            assert os.stat(path).st_size <= 80 + 60
    record.close()
    found, whole = read_record(path), b"".join(piece for piece, _ in pieces)
    os.unlink(path)
    assert found.left_out + len(found.rest) == len(whole)
    assert whole[found.left_out :] == found.rest
    assert len(found.rest) >= min(40, len(whole))


def test_what_cannot_be_written_is_lost_and_the_record_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "record"
    record = Record(str(path))
    record.hear(b"lost")
    record.write()
    path.parent.mkdir()
    record.hear(b"kept")
    record.close()
    assert read_record(path) == (4, b"kept")
    assert read_record(tmp_path / "none") == (0, b"")
