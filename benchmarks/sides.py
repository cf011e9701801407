"""The processes under measurement: started in a folder of their own, bounded in time, ended by their handle."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.keeping import FILES, Keeper

HERE = Path(__file__).resolve().parent
LONGEST_ANSWER = 300.0  # seconds


class Side(NamedTuple):
    """One of those who are compared."""

    name: str
    title: str
    python: Path
    file: Path
    """What `worker.py` loads."""
    lists: tuple[str, ...]
    """The command that lists 20 sessions; `{folder}` stands for the store."""
    exports: tuple[str, ...]
    """The command that exports all; `{file}` stands for the target."""
    keeper: Keeper = FILES


def known_sides(peer: Path | None, server: Keeper) -> list[Side]:
    """Segue on SQLite and on a server, raw SQLite and, where it is installed, the peer."""
    python = Path(sys.executable)
    script = python.with_name("segue")
    segue = (str(script),) if script.exists() else (str(python), "-m", "segue")
    raw = (str(python), "-I", str(HERE / "raw.py"))
    own = Side(
        "segue",
        "Segue",
        python,
        HERE / "segue_side.py",
        (*segue, "sessions", "list"),
        (*segue, "sessions", "export", "--yes", "{file}"),
    )
    sides = [
        own,
        own._replace(name="postgres", title="Segue on PostgreSQL", keeper=server),
        Side(
            "raw",
            "raw SQLite",
            python,
            HERE / "raw.py",
            (*raw, "list", "{folder}"),
            (*raw, "export", "{folder}", "{file}"),
        ),
    ]
    if peer is not None:
        hermes = (str(peer.with_name("hermes")), "sessions")
        sides.append(
            Side(
                "hermes",
                "Hermes",
                peer,
                HERE / "hermes_side.py",
                (*hermes, "list"),
                (*hermes, "export", "{file}"),
            )
        )
    return sides


class Conversation:
    """A process that answers requests, a line of JSON for a line of JSON."""

    def __init__(
        self, title: str, command: Sequence[str], folder: Path, more: Mapping[str, str], longest: float = LONGEST_ANSWER
    ) -> None:
        self._title, self._longest = title, longest
        self._log = folder / "worker.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                env={**environment(folder), **more},
                text=True,
                encoding="utf-8",
            )

    def ask(self, act: str, **arguments: Any) -> Any:
        self.tell(act, **arguments)
        return self.answer()

    def tell(self, act: str, **arguments: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": act, **arguments}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        assert self._process.stdout is not None
        watchdog = threading.Timer(self._longest, self._process.kill)
        watchdog.start()
        line = self._process.stdout.readline()
        watchdog.cancel()
        if not line:
            told = self._log.read_text("utf-8", "replace")[-2000:]
            raise RuntimeError(f"{self._title} gave no answer within {self._longest:.0f} s or failed:\n{told}")
        return json.loads(line)

    def close(self) -> None:
        """Close the store and end the process."""
        self.ask("close")
        self.end()

    def end(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Process(Conversation):
    """A worker that has a store open."""

    def __init__(self, side: Side, folder: Path) -> None:
        command = [str(side.python), "-I", str(HERE / "worker.py"), str(side.file), str(folder)]
        super().__init__(side.title, command, folder, {})
        self.side = side


@contextmanager
def opened(sides: Sequence[Side], folder: Path) -> Iterator[list[Process]]:
    """A worker for each side, each with a store in a folder of its own."""
    with ExitStack() as running:
        processes = []
        for side in sides:
            home = home_of(side, folder)
            processes.append(Process(side, home))
            running.callback(processes[-1].end)
        yield processes


def home_of(side: Side, folder: Path) -> Path:
    home = folder / side.name
    side.keeper.make(home)
    return home


class Run(NamedTuple):
    """What a command cost."""

    seconds: float
    peak: int


def run(command: Sequence[str], folder: Path, **names: Path) -> Run:
    """Run a command of a side to its end."""
    said = [word.format(folder=folder, **names) for word in command]
    launched = [sys.executable, "-I", "-S", str(HERE / "launch.py"), f"{LONGEST_ANSWER:.0f}", *said]
    done = subprocess.run(
        launched,
        capture_output=True,
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        check=True,
    )
    told = json.loads(done.stdout)
    if told["code"]:
        raise RuntimeError(f"{' '.join(said)} failed:\n{done.stderr.decode('utf-8', 'replace')[-2000:]}")
    return Run(told["spent"] / 1e9, told["peak"])


def environment(folder: Path) -> dict[str, str]:
    """Nothing of the reader's homes or settings."""
    homes = dict.fromkeys(("HOME", "SEGUE_HOME", "HERMES_HOME"), str(folder))
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **homes}
