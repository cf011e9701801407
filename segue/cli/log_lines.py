"""What a program that runs by itself tells of its work: each record is one line, whoever wrote the words in it.

What a platform or a provider says of its failures is in there, and a terminal may be reading: no line holds anything
that steers one, nor what looks like a secret. As text only tracebacks have more lines, and those are indented, so that
none of them can pass for a record.
"""

import json
import logging
from datetime import UTC, datetime
from typing import Any

from segue.core.redaction import redact
from segue.core.text import escaped, one_line, printable
from segue.gateway.at_work import FIELDS, log_context

_FORMAT = "%(asctime)s %(levelname)s %(message)s"
_INDENT = "    "
_LABELS = (("lane", "lane_key"), ("session", "session_id"))


class LineFormatter(logging.Formatter):
    """Lines to read."""

    def __init__(self) -> None:
        super().__init__(_FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        record.message = _words(record)
        record.asctime = self.formatTime(record, self.datefmt)
        below = [_INDENT + line for text in _more(self, record).values() for line in text.split("\n")]
        return "\n".join([_in_one_line(self.formatMessage(record) + _suffix()), *below])


class JsonFormatter(logging.Formatter):
    """Lines for programs: an object each, with what was being worked on."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any]
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": _in_one_line(record.name),
            "message": _in_one_line(_words(record)),
        }
        told |= {name: _in_one_line(value) for name, value in log_context().items()}
        told |= getattr(record, FIELDS, {})
        return escaped(json.dumps(told | _more(self, record), ensure_ascii=False))


def _suffix() -> str:
    """Return what a line is about, to be put behind it: ` [lane=… session=…]`."""
    about = log_context()
    named = [f"{label}={about[name]}" for label, name in _LABELS if name in about]
    return f" [{' '.join(named)}]" if named else ""


def _words(record: logging.LogRecord) -> str:
    """What is told; somebody who fills a sentence in wrongly is still heard."""
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - of the words of others anything may come, and a line is no reason to fail
        return f"{record.msg} (and {type(error).__name__} in place of what belongs there)"


def _more(formatter: logging.Formatter, record: logging.LogRecord) -> dict[str, str]:
    """A traceback and a stack, where there are any."""
    found = {}
    if record.exc_info and record.exc_info[0] is not None:
        found["exception"] = formatter.formatException(record.exc_info)
    if record.stack_info:
        found["stack"] = formatter.formatStack(record.stack_info)
    return {name: redact(printable(text)) for name, text in found.items()}


def _in_one_line(text: str) -> str:
    """Secrets go before the lines are joined, since some have several, and after, since some appear by that."""
    return redact(one_line(redact(printable(text))))
