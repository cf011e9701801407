"""The processes of a session, whichever groups they have made.

A command gets a session of its own. `timeout` and job control put what they start into other groups, so the group of
the command alone is not all of it. Only a process that begins a session itself is out of reach.
"""

import os
import signal
from contextlib import suppress

_PROC: str | os.PathLike[str] = "/proc"


def members(session: int) -> list[int]:
    """What runs in a session; where nobody can list processes, at least the group that began it."""
    try:
        names = os.listdir(_PROC)  # noqa: PTH208 - whatever loads this is in a hurry
    except FileNotFoundError:
        return [session] if _is_group(session) else []
    return [pid for pid in map(int, filter(str.isdigit, names)) if _runs_in(pid, session)]


def signal_all(session: int, number: signal.Signals) -> None:
    """Send a signal to everything that runs in a session."""
    running = members(session)
    groups = {session} if running else set()  # the number may be another's as soon as nobody is left
    for pid in running:
        with suppress(ProcessLookupError):
            groups.add(os.getpgid(pid))
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):  # gone, or another user's by now
            os.killpg(group, number)


def _is_group(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody is there
        return True
    return True


def _runs_in(pid: int, session: int) -> bool:
    try:
        return os.getsid(pid) == session and _state_of(pid) not in "ZX"
    except (ProcessLookupError, FileNotFoundError, PermissionError):
        return False


def _state_of(pid: int) -> str:
    """One letter; Z and X are dead, and only wait to be noticed."""
    with open(os.path.join(_PROC, str(pid), "stat"), "rb") as file:  # noqa: PTH118, PTH123
        return file.read().rpartition(b") ")[2][:1].decode()
