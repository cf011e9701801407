"""Where lines of the log go: to stderr, or into a file that only its owner reads and that others may move away.

Everybody's lines go there, those of libraries too, of which `debug` asks no more than `info`. A line that cannot be
written is no reason for anything to fail.
"""

import contextlib
import logging
import os
import sys
import threading
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from pathlib import Path

from segue.cli.log_lines import JsonFormatter, LineFormatter
from segue.config.log_settings import LogFormat, LogLevel, LogSettings
from segue.core.errors import Invalid
from segue.core.redaction import redact
from segue.core.text import one_line
from segue.storage.waiting import tell_waits_to

_OWN_HANDLERS = ("uvicorn", "uvicorn.error", "uvicorn.access")
"""Libraries that write by themselves unless they are told not to."""
_OURS = "segue"
_TALKATIVE = ("httpcore", "httpcore2", "httpx", "httpx2", "mcp", "uvicorn.access")
"""Libraries that tell of every request; that is of use to whoever looks for a mistake, and to nobody else."""
_log = logging.getLogger(__name__)


class _StderrHandler(logging.StreamHandler[TextIOWrapper]):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - as logging has it
        _tell_unwritten(record)


class _FileHandler(WatchedFileHandler):
    """A file of mode 0600, looked for again before each line."""

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        number = os.open(self.baseFilename, flags, 0o600)
        if os.fstat(number).st_mode & 0o077:
            os.fchmod(number, 0o600)
        return os.fdopen(number, "a", encoding="utf-8", errors="replace")

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:  # the file was moved away, and no other can be made in its place
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - as logging has it
        _tell_unwritten(record)


def begin_log(said: LogSettings, home: Path) -> None:
    """Tell what happens, from now on."""
    handler = _handler(said.path_in(home))
    handler.setFormatter(JsonFormatter() if said.format is LogFormat.JSON else LineFormatter())
    of_libraries = LogLevel.INFO if said.level is LogLevel.DEBUG else said.level
    logging.basicConfig(level=of_libraries.upper(), handlers=[handler], force=True)
    logging.getLogger(_OURS).setLevel(said.level.upper())
    for name in _OWN_HANDLERS:
        library = logging.getLogger(name)
        library.handlers.clear()
        library.propagate = True
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.NOTSET if said.level is LogLevel.DEBUG else logging.WARNING)
    logging.captureWarnings(True)
    tell_waits_to(None)
    threading.excepthook = _tell_of_thread


def _handler(path: Path | None) -> logging.Handler:
    if path is None:
        return _StderrHandler(sys.stderr)  # type: ignore[arg-type]
    try:
        return _FileHandler(path, encoding="utf-8")
    except OSError as error:
        raise Invalid(f"logging.file is {str(path)!r}, which cannot be written: {error.strerror}.") from None


def _tell_unwritten(record: logging.LogRecord) -> None:
    """Say on stderr that a line is missing, and why. Its words are not repeated: they could be why."""
    error = sys.exc_info()[1]
    why = redact(one_line(f"{type(error).__name__}: {error}"))
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"A line of {one_line(record.name)} could not be written to the log: {why}\n")


def _tell_of_thread(told: threading.ExceptHookArgs) -> None:
    if told.exc_value is not None and not isinstance(told.exc_value, SystemExit):
        name = told.thread.name if told.thread else "?"
        _log.error("The thread %s came to an end by an error.", name, exc_info=told.exc_value)
