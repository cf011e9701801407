"""What a pipe or a file on stdin brings to a single question."""

import os
import select
import sys

from segue.cli.output import note
from segue.core.errors import Invalid
from segue.core.text import size

MAX_BYTES = 1_000_000
NOTICE_SECONDS = 2.0
"""After so long without a byte, people are told what is waited for."""
_CHUNK = 65_536


def question_with_context(question: str) -> str:
    """The question, followed by what stdin holds; `-` takes the whole question from stdin."""
    if question.strip() == "-":
        return read_stdin()
    context = "" if _is_terminal() else read_stdin()
    if not question.strip() or not context.strip():
        return question
    return f"{question}\n\n<stdin>\n{context.rstrip()}\n</stdin>"


def read_stdin() -> str:
    """Everything up to the end of stdin; nothing when it is closed."""
    descriptor = _descriptor()
    if descriptor is None:
        return ""
    read = bytearray()
    try:
        _await_first_byte(descriptor)
        while chunk := os.read(descriptor, _CHUNK):
            read += chunk
            if len(read) > MAX_BYTES:
                raise Invalid(
                    f"stdin holds more than {size(MAX_BYTES)}, which is all that a question takes; "
                    "pass a part of it, or name the file in the question."
                )
    except OSError:
        return ""  # open for writing only, or a terminal that was closed
    return read.decode(errors="replace")


def _await_first_byte(descriptor: int) -> None:
    if _is_terminal() or select.select([descriptor], [], [], NOTICE_SECONDS)[0]:
        return
    note("Waiting for stdin to end; `< /dev/null` asks without it.")


def _descriptor() -> int | None:
    return None if sys.stdin is None or sys.stdin.closed else sys.stdin.fileno()


def _is_terminal() -> bool:
    descriptor = _descriptor()
    return descriptor is not None and os.isatty(descriptor)
