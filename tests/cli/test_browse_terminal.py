"""`segue sessions browse` in a real terminal: what is seen there, what is printed, and what is left behind."""

import os
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from segue import SessionDB

pytestmark = [pytest.mark.on_file, pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")]

PATIENCE = 30.0
READY = "ready> "
BROWSE = shlex.join([sys.executable, "-m", "segue", "sessions", "browse"])


class Terminal:
    """A shell in a terminal that nobody else uses."""

    def __init__(self, home: Path) -> None:
        self._socket = f"segue-{uuid.uuid4().hex}"
        shell = ["env", f"SEGUE_HOME={home}", f"PS1={READY}", "NO_COLOR=", "LC_ALL=C.UTF-8", "sh"]
        self._tmux("-f", os.devnull, "new-session", "-d", "-x", "140", "-y", "40", "-c", str(home.parent), *shell)
        self.until(READY.strip())

    def close(self) -> None:
        socket = Path(self.says("socket_path"))
        self._tmux("kill-server")
        socket.unlink(missing_ok=True)

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def says(self, variable: str) -> str:
        return self._tmux("display-message", "-p", f"#{{{variable}}}").strip()

    def screen(self, *options: str) -> str:
        return self._tmux("capture-pane", "-p", *options)

    def until(self, *texts: str, without: str = "\0") -> str:
        def is_there(screen: str) -> bool:
            return all(text in screen for text in texts) and without not in screen

        return self.wait(is_there)

    def wait(self, condition: Callable[[str], bool]) -> str:
        end = time.monotonic() + PATIENCE
        while not condition(screen := self.screen()):
            assert time.monotonic() < end, f"it never came to this:\n{screen}"
            time.sleep(0.05)
        return screen

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-L", self._socket, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout


@pytest.fixture
def terminal(db: SessionDB, home: Path) -> Iterator[Terminal]:
    for session_id, title, words in [
        ("20250301_080000_soup", "Soup for Sunday", "What goes with leeks?"),
        ("20250302_080000_trip", "旅行の計画 👩‍👩‍👧 🇵🇹", "Which week in May?"),
        ("20250303_080000_boat", "Naming the boat [red]x[/red]", "Something with wind in it"),
    ]:
        db.create_session(session_id, "cli")
        db.set_session_title(session_id, title)
        db.append_message(session_id, "user", words)
    opened = Terminal(home)
    yield opened
    opened.close()


def is_clean(terminal: Terminal) -> bool:
    return [terminal.says(name) for name in ("alternate_on", "mouse_any_flag", "cursor_flag")] == ["0", "0", "1"]


def test_filter_rename_resize_and_choose(terminal: Terminal, db: SessionDB) -> None:
    terminal.type(f"{BROWSE}\n")
    screen = terminal.until("3 conversations", "● Something with wind in it")
    assert terminal.says("alternate_on") == "1"
    assert "Naming the boat [red]x[/red]" in screen
    rows = [line for line in screen.splitlines() if " cli " in line and "just now" in line[:90]]
    assert len(rows) == 3
    assert len({_cell(row, " cli ") for row in rows}) == 1

    terminal.type("/")
    terminal.type("leeks")
    terminal.until("1 of 3 conversations", "Soup for Sunday", without="Naming the boat")
    terminal.press("Tab")
    terminal.until("r Rename")
    terminal.type("r")
    terminal.until("Enter saves")
    terminal.press("C-u")
    terminal.type("Leek soup")
    terminal.press("Enter")
    terminal.until("It is called 'Leek soup' now.")
    assert db.get_session_title("20250301_080000_soup") == "Leek soup"

    terminal.resize(80, 24)
    screen = terminal.until("q Quit", "● What goes with leeks?", without="space Preview")
    assert len(screen.splitlines()) <= 24
    terminal.press("Enter")
    screen = terminal.until("segue sessions show 20250301_080000_soup")
    assert "\n20250301_080000_soup\n" in screen
    terminal.wait(lambda _: is_clean(terminal))


@pytest.mark.parametrize("key", ["q", "Escape", "C-c"])
def test_leaving_leaves_the_terminal_as_it_was(terminal: Terminal, key: str) -> None:
    terminal.type(f"stty -a > before; {BROWSE}; echo left with $?; stty -a > after; cmp before after && echo same\n")
    terminal.until("3 conversations")
    terminal.press(key)
    screen = terminal.until("left with 0", "same", without="conversations")
    assert "Traceback" not in screen
    assert is_clean(terminal)


def test_without_colours_the_current_row_is_still_seen(terminal: Terminal) -> None:
    terminal.type(f"NO_COLOR=1 {BROWSE}\n")
    terminal.until("3 conversations", "● Something with wind in it")
    screen = terminal.screen("-e")
    codes = {code for part in screen.split("\x1b[")[1:] for code in part.split("m")[0].split(";")}
    assert codes <= {"", "0", "1", "2", "7", "39", "49"}  # bold, dim, reverse, and the terminal's own colours
    (current,) = [line for line in screen.splitlines() if "\x1b[7m" in line or ";7m" in line]
    assert "Naming the boat" in current
    terminal.press("q")
    terminal.wait(lambda _: is_clean(terminal))


def test_a_pipe_is_no_terminal(terminal: Terminal) -> None:
    terminal.type(f"{BROWSE} | cat\n")
    terminal.until("segue: browse needs a terminal; use `segue sessions list`.")


def _cell(line: str, text: str) -> int:
    """Where a text stands, in cells, as the terminal counted them."""
    before = line[: line.index(text)]
    return len(before) + sum(0x2E80 <= ord(character) <= 0xFFEF or ord(character) > 0x1F000 for character in before)
