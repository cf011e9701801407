"""What a program that runs by itself tells of its work: each record is one line, whoever wrote the words in it.

What a platform or a provider says of its failures is in there, and a terminal may be reading. Only tracebacks have more
lines, and those are indented, so that none of them can pass for a record.
"""

import logging
import sys

from segue.core.text import one_line, printable

_FORMAT = "%(asctime)s %(levelname)s %(message)s"
_INDENT = "    "


class LineFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__(_FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage()
        record.asctime = self.formatTime(record, self.datefmt)
        more = [self.formatException(record.exc_info)] if record.exc_info else []
        if record.stack_info:
            more.append(self.formatStack(record.stack_info))
        below = [_INDENT + line for text in more for line in printable(text).split("\n")]
        return "\n".join([one_line(self.formatMessage(record)), *below])


def begin_log() -> None:
    """Tell what happens on stderr from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
