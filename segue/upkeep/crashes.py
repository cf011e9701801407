"""Mistakes of our own, written down for whoever mends them, without any secret that was in them."""

import os
import platform
import sys
import time
import traceback
from pathlib import Path

from segue.core.redaction import redact
from segue.core.text import printable

LOGS = "logs"


def record_crash(home: Path, error: BaseException, *, program: str, now: float) -> Path:
    """Write what happened to a file of its own in the home; the file."""
    folder = home / LOGS
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    file = folder / f"crash-{stamp}-{os.urandom(2).hex()}.txt"
    with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600), "w") as opened:
        opened.write(account_of(error, program))
    return file


def account_of(error: BaseException, program: str) -> str:
    """What happened, as text that can be shown to anybody."""
    where = f"Segue {program}, Python {platform.python_version()}, {platform.platform()}"
    told = "".join(traceback.format_exception(error))
    return redact(printable(f"{where}\n{' '.join(sys.argv)}\n\n{told}"))
