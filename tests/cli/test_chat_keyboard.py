"""Keys that are pressed while no prompt reads them: before the first one, between two, and around a stop."""

import os
import pty
import shlex
import shutil
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal import Terminal

from segue.cli.chatting.keyboard import Keyboard

pytestmark = [pytest.mark.on_file, pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")]

ROOT = Path(__file__).parents[2]
SCRIPTED = shlex.join([sys.executable, str(Path(__file__).parents[1] / "support" / "scripted_chat.py"), "."])
SEGUE = shlex.join([sys.executable, "-m", "segue"])
BELOW = "Soup for Sunday · some-model"
PAUSED = "Nobody asks for a line."


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Terminal]:
    keyless = [f"{name}=" for name in os.environ if name.endswith("_API_KEY")]
    opened = Terminal(tmp_path, f"PYTHONPATH={ROOT}", f"SEGUE_HOME={tmp_path / 'home'}", *keyless, width=100)
    yield opened
    opened.close()


def begin(at: Terminal, folder: Path, command: str) -> None:
    """Run a command that tells afterwards whether the terminal is as it was before."""
    (folder / "chat.sh").write_text(
        f"stty -a > before; {command}; stty -a > after; cmp before after && echo it is the same"
    )
    at.send("clear; . ./chat.sh")


def begin_paused(at: Terminal, folder: Path) -> None:
    begin(at, folder, SCRIPTED)
    at.until(f"●\n{BELOW}")
    at.send("pause")
    at.until(PAUSED)


def go(folder: Path) -> None:
    (folder / "go").touch()


# Before the first prompt


def test_a_message_typed_before_the_program_began_is_sent(at: Terminal, tmp_path: Path) -> None:
    waiting = "echo waiting; until test -e go; do sleep 0.02; done"
    begin(at, tmp_path, f"{waiting}; {SEGUE}")
    at.until("waiting")
    at.send("/title A quick one")
    at.until("/title A quick one")
    at.type("and ha")
    at.until("and ha")
    go(tmp_path)
    at.until("will be called “A quick one”", "● and ha")
    at.send("lf a line")
    at.until("● and half a line")
    at.wait(lambda screen: screen.splitlines()[-2:-1] == ["●"])
    at.send("/quit")
    at.until("Resume with:", "it is the same")


# Between two prompts


def test_enter_sends_between_two_prompts_too(at: Terminal, tmp_path: Path) -> None:
    begin_paused(at, tmp_path)
    at.send("a soup")
    go(tmp_path)
    screen = at.until("6 characters, 1 lines", f"●\n{BELOW}")
    assert screen.count("a soup") == 1, "what is typed is seen once"


def test_ctrl_j_begins_a_line_between_two_prompts_too(at: Terminal, tmp_path: Path) -> None:
    begin_paused(at, tmp_path)
    at.type("one")
    at.press("C-j")
    at.send("two")
    go(tmp_path)
    at.until("7 characters, 2 lines")


def test_lines_pasted_between_two_prompts_are_one_message(at: Terminal, tmp_path: Path) -> None:
    (tmp_path / "copied").write_text("one\ntwo\nthree")
    begin_paused(at, tmp_path)
    at.paste(tmp_path / "copied")
    go(tmp_path)
    at.until(f"● one\n  two\n  three\n{BELOW}")
    at.press("Enter")
    at.until("13 characters, 3 lines")


# The terminal is given back


@pytest.mark.parametrize("is_paused", [False, True])
def test_stopped_and_brought_back(at: Terminal, tmp_path: Path, is_paused: bool) -> None:
    begin_paused(at, tmp_path)
    if not is_paused:
        go(tmp_path)
        at.until(f"{PAUSED}\n●\n{BELOW}")
    at.press("C-z")
    at.until("it is the same")
    at.send("clear; fg")
    at.until("scripted_chat.py", "" if is_paused else f"●\n{BELOW}", without="it is the same")
    at.send("a soup")
    go(tmp_path)
    at.until("6 characters, 1 lines", f"●\n{BELOW}")
    at.press("C-d")
    at.until("Resume with:", "ready>")
    at.send("clear; stty -a > after; cmp before after && echo it is the same")
    at.until("it is the same\nready>")


@pytest.mark.parametrize("is_paused", [False, True])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_ended_from_outside(at: Terminal, tmp_path: Path, number: signal.Signals, is_paused: bool) -> None:
    begin_paused(at, tmp_path)
    if not is_paused:
        go(tmp_path)
        at.until(f"{PAUSED}\n●\n{BELOW}")
    process = at.says("pane_pid")
    (chat,) = subprocess.run(["pgrep", "-P", process], capture_output=True, text=True, check=True).stdout.split()
    os.kill(int(chat), number)
    at.until("it is the same")


def test_an_error_of_ours_leaves_the_terminal_as_it_was() -> None:
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    signals = signal.getsignal(signal.SIGTERM)

    def fail() -> None:
        with Keyboard(theirs, theirs).held():
            assert termios.tcgetattr(theirs) != before
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert termios.tcgetattr(theirs) == before
    assert signal.getsignal(signal.SIGTERM) is signals
    os.close(ours)
    os.close(theirs)


def test_a_terminal_that_is_gone_is_no_error() -> None:
    ours, theirs = pty.openpty()
    with Keyboard(theirs, theirs).held() as typed:
        os.close(ours)
    os.close(theirs)
    assert typed == ""
