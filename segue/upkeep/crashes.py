"""Mistakes of our own, written down for whoever mends them, without any secret that was in them."""

import os
import platform
import sys
import time
import traceback
from pathlib import Path

from segue.core.redaction import redact
from segue.core.text import printable
from segue.storage.guards import make_private_folder

LOGS = "logs"
AGENT_LOG = "agent.log"
_LARGEST_LOG = 1_000_000  # bytes; then it begins anew


def record_crash(home: Path, error: BaseException, *, program: str, now: float) -> Path:
    """Write what happened to a file of its own in the home; the file."""
    folder = _logs_in(home)
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    file = folder / f"crash-{stamp}-{os.urandom(2).hex()}.txt"
    with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600), "w") as opened:
        opened.write(account_of(error, program))
    return file


def record_agent_error(home: Path, error: BaseException) -> Path:
    """Write what went wrong in somebody's own agent behind what went wrong before; the file."""
    file = _logs_in(home) / AGENT_LOG
    flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW
    with os.fdopen(os.open(file, flags, 0o600), "w", encoding="utf-8", errors="replace") as opened:
        os.fchmod(opened.fileno(), 0o600)
        if opened.tell() > _LARGEST_LOG:
            opened.truncate(0)
        when = time.strftime("%Y-%m-%d %H:%M:%S")
        opened.write(redact(printable(f"{when}\n{''.join(traceback.format_exception(error))}\n")))
    return file


def _logs_in(home: Path) -> Path:
    """The folder, which may be the first thing that this home gets."""
    make_private_folder(home)
    folder = home / LOGS
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def account_of(error: BaseException, program: str) -> str:
    """What happened, as text that can be shown to anybody."""
    where = f"Segue {program}, Python {platform.python_version()}, {platform.platform()}"
    told = "".join(traceback.format_exception(error))
    return redact(printable(f"{where}\n{' '.join(sys.argv)}\n\n{told}"))
