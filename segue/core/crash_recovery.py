"""Every rule about turns that a crash cut off: how much it counts against them, and when they go on by themselves."""

from collections.abc import Sequence
from datetime import timedelta

MAX_CRASHES = 3
CRASH_SPAN = timedelta(seconds=60)
"""So many crashes within so short a time are a crash loop."""
MAX_BLAME = 3.0
"""Blame at which a turn is given up: as much as three crashes in which nothing else ran."""
_ROUNDING = 1e-6


def blame_for_crash(open_turns: int, crashes_before: int) -> float:
    """Return what one crash adds to the blame of each turn that was open when the process died.

    At most one of them was the cause, so they share the blame of one crash evenly. A crash that completes a crash loop
    blames nobody: whatever keeps killing the process is then unlikely to be a turn, and none is continued for a while.
    `crashes_before` counts the crashes within `CRASH_SPAN` before this one.
    """
    return 0.0 if open_turns == 0 or crashes_before >= MAX_CRASHES - 1 else 1.0 / open_turns


def is_given_up(blame: float, max_blame: float = MAX_BLAME) -> bool:
    """Return whether a turn has brought down its process too often to be continued once more."""
    return blame > max_blame - _ROUNDING


def resume_time(crashed_at: Sequence[float], span: timedelta = CRASH_SPAN) -> float | None:
    """Return when cut-off turns may go on: after a `span` without a crash if there were too many; None is at once.

    `crashed_at` are the crashes within the last `span`. It is the newest that counts: if turns went on while two others
    were still recent, each crash of theirs would complete a crash loop, and the culprit would never be blamed.
    """
    return max(crashed_at) + span.total_seconds() if len(crashed_at) >= MAX_CRASHES else None
