"""A chat on a disk that really is full: a clear line, nothing lost, and on it goes when there is room again."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest
from waiting import DEADLINE

from segue import SessionDB
from segue.ports.failpoints import Point

pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can mount a small disk"),
]

LAUNCHER = Path(__file__).parents[1] / "support" / "chat_launcher.py"
NOTES = "remember the milk, and whatever else there is\n" * 1_500
LONG = "This is said at length. " * 5_000
"""More than fits into what SQLite was given before the disk was full."""
FULL = "The disk that holds {} is full: nothing was written. Free some space and try again.\n"
AGAIN = ["user", "assistant", "tool", "tool", "assistant"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "segue-test", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


class Talk:
    """A chat through pipes, in a process of its own."""

    def __init__(self, disk: Path, place: Path, wanted: dict[str, Any]) -> None:
        self._environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        self._environment |= {"SEGUE_HOME": str(disk / "home"), "OPENAI_API_KEY": "x", "PYTHONIOENCODING": "utf-8"}
        self._process = subprocess.Popen(
            [sys.executable, str(LAUNCHER), json.dumps({"scripted": True, **wanted}), "--yes"],
            cwd=place,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        self._lines: Queue[str] = Queue()
        self.heard: list[str] = []
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    def say(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()

    def until(self, words: str) -> str:
        """The next line that has these words."""
        end = time.monotonic() + DEADLINE
        while True:
            try:
                self.heard.append(self._lines.get(timeout=max(end - time.monotonic(), 0)))
            except Empty:
                raise AssertionError(f"{words!r} never came: {self.heard}") from None
            if words in self.heard[-1]:
                return self.heard[-1]

    def leave(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(DEADLINE)

    def exported(self) -> list[dict[str, Any]]:
        """Every conversation, as another process reads it meanwhile."""
        command = [sys.executable, "-m", "segue", "sessions", "export", "-"]
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, encoding="utf-8", timeout=DEADLINE
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def end(self) -> None:
        self._process.kill()
        self._listening.join(DEADLINE)
        with suppress(BrokenPipeError), self._process:
            """Closes the pipes, also one that nobody has read."""

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)


Begin = Callable[[Point], Talk]


@pytest.fixture
def begin(disk: Path, tmp_path: Path) -> Iterator[Begin]:
    """Begins a chat that fills its disk when it comes to a point."""
    place = tmp_path / "work"
    place.mkdir()
    (place / "notes.txt").write_text(NOTES)
    begun: list[Talk] = []

    def at(point: Point) -> Talk:
        begun.append(Talk(disk, place, {"fill": [point, 1, str(disk / "ballast")]}))
        return begun[-1]

    yield at
    for talk in begun:
        talk.end()


def test_full_in_the_middle_of_a_turn(begin: Begin, disk: Path) -> None:
    talk = begin(Point.BEFORE_RESULT_IS_STORED)
    talk.say("Please look and act.")
    assert talk.until("is full") == FULL.format(disk / "home" / "state.db")
    (exported,) = talk.exported()
    assert [message["role"] for message in exported["messages"]] == ["user", "assistant"]
    talk.say(LONG)
    talk.until("is full")

    (disk / "ballast").unlink()
    talk.say("Again, please.")
    talk.until("All done.")
    assert talk.leave() == 0
    with SessionDB(disk / "home" / "state.db") as db:
        (session,) = db.list_sessions_rich(limit=5)
        said = db.get_messages(session["id"])
        told = db.get_messages_as_conversation(session["id"])
    assert [message["role"] for message in said] == ["user", "assistant", *AGAIN]
    assert [message["role"] for message in told] == ["user", "assistant", "tool", "tool", *AGAIN], "calls are answered"
    assert "unknown" in told[2]["content"]
    assert "remember the milk" in told[6]["content"]


def test_full_before_the_first_word(begin: Begin, disk: Path) -> None:
    talk = begin(Point.BEFORE_TURN_OPENS)
    talk.say(LONG)
    assert talk.until("is full") == FULL.format(disk / "home" / "state.db")
    assert talk.exported() == []

    (disk / "ballast").unlink()
    talk.say("Again, please.")
    talk.until("All done.")
    assert talk.leave() == 0
    (exported,) = talk.exported()
    assert [message["role"] for message in exported["messages"]] == AGAIN
