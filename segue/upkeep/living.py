"""Which process this is, told so that any other can find out whether it is still there."""

import os
import socket
import sys
import time
import uuid
from pathlib import Path

from segue.core.leases import Run

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def this_run(program: str) -> Run:
    """A new life of this process."""
    now = time.time()
    return Run(uuid.uuid4().hex, program, socket.gethostname(), _boot(), os.getpid(), _started(os.getpid()), now, now)


def is_gone(run: Run) -> bool:
    """Whether a process is certainly there no more. Of other machines nobody here can say."""
    if run.host != socket.gethostname():
        return False
    if run.boot != _boot():
        return True
    return not _exists(run.pid) or _is_over(run.pid) or _started(run.pid) != run.process_started


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # somebody else's
    return True


def _boot() -> str:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return f"{sys.platform} without a boot id"


def _is_over(pid: int) -> bool:
    """Whether a process has ended, though whoever started it has not asked how: in a container maybe nobody will."""
    return _stat(pid)[:1] == ["Z"]


def _started(pid: int) -> str:
    """When a process began, in ticks since the machine did; nothing where the system does not tell."""
    return next(iter(_stat(pid)[19:]), "")


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
