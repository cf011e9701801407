"""What suits the place where this process runs: a terminal, one that can only print, or a pipe."""

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from segue.cli.chatting.asking import Prompt
from segue.cli.chatting.offers import Offers

if TYPE_CHECKING:  # slow to load
    from segue.cli.chatting.piping import Pipe
    from segue.cli.chatting.screen import Screen


def keyboard_here() -> AbstractContextManager[str]:
    """Where lines can be edited: holds the keyboard for as long as a chat lasts, and says what was typed before."""
    if not is_full_terminal():
        return nullcontext("")
    from segue.cli.chatting.keyboard import Keyboard

    return Keyboard(sys.stdin.fileno(), sys.stdout.fileno()).held()


def prompt_here(past: Path, offers: Offers, standing: Callable[[], str], typed: str = "") -> Prompt:
    """The prompt for this process: lines without a terminal, and everything with one. `standing` is shown below."""
    if is_full_terminal():
        from segue.cli.chatting.terminal_prompt import TerminalPrompt

        return TerminalPrompt(past, offers, standing, typed=typed)
    from segue.cli.chatting.line_prompt import LinePrompt

    return LinePrompt(sys.stdin.fileno(), sys.stdout if sys.stdout.isatty() else None)


def screen_here() -> "Screen | Pipe":
    """What shows the turns of this process."""
    if sys.stdout.isatty():
        from segue.cli.chatting.screen import Screen

        return Screen(sys.stdout)
    from segue.cli.chatting.piping import Pipe

    return Pipe(sys.stdout)


def is_full_terminal() -> bool:
    """Whether lines can be edited here."""
    is_there = sys.stdin.isatty() and sys.stdout.isatty()
    return is_there and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")
