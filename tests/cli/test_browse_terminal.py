"""`segue sessions browse` in a real terminal: what is seen there, what is printed, and what is left behind."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal import Terminal

from segue import SessionDB

pytestmark = [pytest.mark.on_file, pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")]

SEGUE = shlex.join([sys.executable, "-m", "segue"])
BROWSE = f"{SEGUE} sessions browse"


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
    keys = [f"{name}=" for name in os.environ if name.endswith("_API_KEY")]
    opened = Terminal(home.parent, f"SEGUE_HOME={home}", *keys)
    yield opened
    opened.close()


def is_clean(terminal: Terminal) -> bool:
    return [terminal.says(name) for name in ("alternate_on", "mouse_any_flag", "cursor_flag")] == ["0", "0", "1"]


def test_filter_rename_resize_and_choose(terminal: Terminal, db: SessionDB) -> None:
    terminal.type(f"{BROWSE}\n")
    screen = terminal.until("3 conversations", "● Something with wind in it")
    assert terminal.says("alternate_on") == "1"
    assert "Naming the boat [red]x[/red]" in screen
    rows = [line for line in screen.splitlines() if " cli " in line and re.search(r"just now|m ago", line[:90])]
    assert len(rows) == 3
    assert len({_cell(row, " cli ") for row in rows}) == 1

    terminal.type("/")
    terminal.until("To the list", "Clear")
    terminal.type("leeks")
    terminal.until("1 of 3 conversations", "Soup for Sunday", without="Naming the boat")
    terminal.press("Tab")
    terminal.until("r Rename")
    terminal.type("r")
    terminal.until("Enter saves", "│  Soup for Sunday")
    terminal.press("C-u")
    terminal.until("Enter saves", without="│  Soup for Sunday")
    terminal.type("Leek soup")
    terminal.until("Leek soup")
    terminal.press("Enter")
    terminal.until("It is called 'Leek soup' now.")
    assert db.get_session_title("20250301_080000_soup") == "Leek soup"

    terminal.resize(80, 24)
    screen = terminal.until("q Quit", "● What goes with leeks?", without="space Preview")
    assert len(screen.splitlines()) <= 24
    terminal.press("Enter")
    terminal.until("/help says", "Leek soup · offline", "● What goes with leeks?")
    assert terminal.says("alternate_on") == "0"
    terminal.send("/quit")
    terminal.until("Resume with: segue -r 20250301_080000_soup  (Leek soup)")
    terminal.wait(lambda _: is_clean(terminal))


def test_what_is_typed_in_the_same_moment_as_the_slash_is_in_the_filter(terminal: Terminal) -> None:
    terminal.type(f"{BROWSE}\n")
    terminal.until("3 conversations", "● Something with wind in it")
    terminal.type("/leeks")
    terminal.until("1 of 3 conversations", "Soup for Sunday", without="Naming the boat")
    terminal.type("/x")
    terminal.until("leeks/x", "0 of 3 conversations")


def test_r_without_a_name_opens_the_list_and_goes_on_with_what_is_chosen(terminal: Terminal) -> None:
    terminal.send(f"{SEGUE} -r")
    terminal.until("3 conversations", "● Something with wind in it")
    terminal.press("Down")
    terminal.until("● Which week in May?")
    terminal.press("Enter")
    terminal.until("旅行の計画", "● Which week in May?", "/help says")
    terminal.send("/quit")
    terminal.until("Resume with: segue -r 20250302_080000_trip")
    terminal.send(f"clear; {SEGUE} -r --branch; echo left with $?")
    terminal.until("3 conversations")
    terminal.press("q")
    terminal.until("left with 0", without="conversations")


def test_on_a_small_screen_the_list_is_seen_and_the_preview_when_it_is_asked_for(terminal: Terminal) -> None:
    terminal.resize(40, 15)
    terminal.type(f"{BROWSE}\n")
    screen = terminal.until("3 conv", "Soup for Sunday", "Naming the boat", "旅行の計画")
    assert max(map(len, screen.splitlines())) <= 40
    assert "● Something with wind" not in screen
    terminal.press("Space")
    screen = terminal.until("Soup for Sunday", "Naming the boat", "旅行の計画", "20250303_080000_boat")
    terminal.press("Space")
    terminal.until("Soup for Sunday", without="20250303_080000_boat")
    terminal.press("q")
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
