"""What an agent runs in the background: a process that outlives the turn which started it."""

from enum import StrEnum
from typing import NamedTuple


class ProcessState(StrEnum):
    RUNNING = "running"
    ENDED = "ended"
    """By itself."""
    STOPPED = "stopped"
    """By somebody who asked for it, or with the program that kept it."""
    LOST = "lost"
    """The program that kept it was killed, and took it along."""


class Process(NamedTuple):
    id: str
    session_id: str
    run_id: str
    command: str
    cwd: str
    pid: int
    state: str
    started_at: float
    exit_code: int | None = None
    ended_at: float | None = None
