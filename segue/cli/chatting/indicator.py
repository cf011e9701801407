"""The line that tells that something is going on, while nothing else can be shown."""

from rich.cells import cell_len

from segue.cli.chatting.lines import duration
from segue.cli.output import cut
from segue.core.text import one_line

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_A_SECOND = 10
_PATIENCE = 3.0  # seconds before the time is shown
_TAIL = 400  # characters


class Indicator:
    """Says what is waited for, and for how long; or the last words of what is being written."""

    def __init__(self) -> None:
        self._what: str | None = None
        self._since = 0.0
        self._tail = ""

    def wait(self, what: str, now: float) -> None:
        self._what, self._since, self._tail = what, now, ""

    def write(self, text: str) -> None:
        """Something is coming, but is not complete enough to be shown."""
        self._tail = (self._tail + text)[-_TAIL:]

    def stop(self) -> None:
        self._what, self._tail = None, ""

    def line(self, now: float, columns: int) -> str:
        """What to show now, at most that wide; empty when nothing is waited for."""
        if self._what is None:
            return ""
        frame = _FRAMES[int(now * _FRAMES_A_SECOND) % len(_FRAMES)]
        if tail := one_line(self._tail):
            return f"{frame} {_end_of(tail, columns - 3)}"
        waited = now - self._since
        time = f" {duration(int(waited) if waited < 10 else waited).replace('.0', '')}" if waited >= _PATIENCE else ""
        return cut(f"{frame} {self._what}…{time}", columns - 1)


def _end_of(text: str, columns: int) -> str:
    """The last words that fit."""
    kept = text[-columns:]
    while cell_len(kept) >= columns:
        kept = kept[1:]
    words = kept.partition(" ")[2]
    return words if kept != text and len(words) > columns // 4 else kept
