"""The keyboard of a chat: a key means the same whenever it is pressed, also while nothing asks for a line.

A terminal that no prompt reads from edits, echoes and translates what is typed, as it does for programs that read
lines: Enter would arrive as Ctrl-J. Here it does none of that from the first moment of a chat to the last, but signals
are still signals, so that Ctrl-C ends what hangs.
"""

import os
import select
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

_GIVING_BACK = (signal.SIGTSTP, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""What stops or ends a process from outside: whoever has the terminal then finds it as it was."""
_AT_ONCE = 65_536
_PASTES_ARE_MARKED, _PASTES_ARE_PLAIN = b"\x1b[?2004h", b"\x1b[?2004l"
_ERASE_LINE = b"\r\x1b[K"
_INPUT, _LOCAL, _CHARACTERS = 0, 3, 6  # where things stand in the attributes of a terminal


class Keyboard:
    """Holds a terminal, and gives it back as it was: at the end, after an error, and while the process is stopped."""

    def __init__(self, keys: int, screen: int) -> None:
        self._keys = keys
        self._screen = screen
        self._before = termios.tcgetattr(keys)
        self._signals: list[signal.Signals] = []

    @contextmanager
    def held(self) -> Iterator[str]:
        """What was typed already, when the terminal still made a newline of Enter, comes as it was meant."""
        try:
            self._take(_for_typing(self._before))
            self._heed_signals()
            typed = self._typed_already()
            if typed and not typed.endswith("\n"):
                os.write(self._screen, _ERASE_LINE)  # the terminal has shown it, and the prompt will again
            yield typed.replace("\n", "\r")
        finally:
            self._give_back()
            for number in self._signals:
                signal.signal(number, signal.SIG_DFL)

    def _heed_signals(self) -> None:
        for number in _GIVING_BACK:
            if signal.getsignal(number) is signal.SIG_DFL:
                self._signals.append(number)
                signal.signal(number, self._step_aside)

    def _step_aside(self, number: int, _frame: FrameType | None) -> None:
        """Do what a signal does to others. After Ctrl-Z we come back, and the terminal is ours again."""
        held = None
        with suppress(termios.error):
            held = termios.tcgetattr(self._keys)
        self._give_back()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, self._step_aside)
        if held is not None:
            self._take(held)

    def _take(self, attributes: list[Any]) -> None:
        with suppress(termios.error, OSError):  # the terminal is gone, which the prompt will notice
            termios.tcsetattr(self._keys, termios.TCSANOW, attributes)
            os.write(self._screen, _PASTES_ARE_MARKED)

    def _give_back(self) -> None:
        with suppress(termios.error, OSError):  # there is no terminal any more
            termios.tcsetattr(self._keys, termios.TCSANOW, self._before)
            os.write(self._screen, _PASTES_ARE_PLAIN)

    def _typed_already(self) -> str:
        typed = b""
        with suppress(OSError):
            while select.select([self._keys], [], [], 0)[0] and (more := os.read(self._keys, _AT_ONCE)):
                typed += more
        return typed.decode(errors="replace")


def _for_typing(before: list[Any]) -> list[Any]:
    """Each key arrives at once and as it is, and nothing is shown."""
    attributes = [*before]
    attributes[_INPUT] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON | termios.IXOFF)
    attributes[_LOCAL] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
    attributes[_CHARACTERS] = [*before[_CHARACTERS]]
    attributes[_CHARACTERS][termios.VMIN], attributes[_CHARACTERS][termios.VTIME] = 1, 0
    return attributes
