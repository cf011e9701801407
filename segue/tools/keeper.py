"""A program beside ours that ends what ours has started, as soon as ours is gone.

It is told through its standard input: `+17` watches session 17, `-17` forgets it, and the end of the input is the end
of our program. Somebody else may hold the other end of the pipe without knowing, so its parent is looked at as well.
With the name of a file it also keeps what comes out of its standard output, which is then the reading end of a pipe.
"""

import os
import select
import signal
import sys
import time

from segue.tools.processes import members, signal_all
from segue.tools.recording import Record

_INPUT, _OUTPUT = 0, 1
_LOOKING = 1.0  # seconds between two looks at the parent
_WRITING = 0.1  # seconds between two writes to the file
_PATIENCE = 2.0  # seconds between asking to end and killing
_INSISTING = 3.0  # seconds of killing
_MOMENT = 0.02
_READ_AT_ONCE = 64 * 1024
_MOST_DESCRIPTORS = 65_536


class Keeper:
    """What is watched, and what is written down."""

    def __init__(self, record: Record | None = None) -> None:
        self._watched: set[int] = set()
        self._record = record
        self._sources = {_INPUT, _OUTPUT} if record else {_INPUT}
        self._half = b""
        self._written_at = 0.0

    def keep(self, parent: int) -> None:
        """Until the parent is gone or needs this no more."""
        while os.getppid() == parent:
            seconds = _WRITING if self._record and self._record.is_behind else _LOOKING
            ready = select.select(self._sources, (), (), seconds)[0]
            if _OUTPUT in ready:
                self._hear()
            self._write()
            if _INPUT in ready and not self._listen():
                break
        while select.select([_INPUT], (), (), 0)[0] and self._listen():
            pass  # the parent may have been gone before its first order was read
        end(self._watched)
        self._finish()

    def _listen(self) -> bool:
        """Take orders; whether there may be more."""
        data = os.read(_INPUT, _READ_AT_ONCE)
        *orders, self._half = (self._half + data).split(b"\n")
        for order in orders:
            (self._watched.add if order.startswith(b"+") else self._watched.discard)(int(order[1:]))
        return bool(data)

    def _hear(self) -> bool:
        data = os.read(_OUTPUT, _READ_AT_ONCE)
        if self._record and data:
            self._record.hear(data)
        if not data:
            self._sources.discard(_OUTPUT)
        return bool(data)

    def _write(self) -> None:
        if self._record and self._record.is_behind and time.monotonic() - self._written_at >= _WRITING:
            self._record.write()
            self._written_at = time.monotonic()

    def _finish(self) -> None:
        """Write down what is still in the pipe. Whoever escaped may go on talking, so there is an end to it."""
        deadline = time.monotonic() + _WRITING
        while _OUTPUT in self._sources and time.monotonic() < deadline:
            if not select.select([_OUTPUT], (), (), 0)[0] or not self._hear():
                break
        if self._record:
            self._record.close()


def end(sessions: set[int]) -> None:
    """Ask everything in these sessions to end, and then make it."""
    for number, seconds in ((signal.SIGTERM, _PATIENCE), (signal.SIGKILL, _INSISTING)):
        deadline = time.monotonic() + seconds
        for session in sessions:
            signal_all(session, number)
        while any(members(session) for session in sessions) and time.monotonic() < deadline:
            time.sleep(_MOMENT)
            if number is signal.SIGKILL:
                for session in sessions:
                    signal_all(session, number)


def main() -> None:
    """`PARENT [FILE]`: the process that is kept for, and where to write down what is said."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # only the end of the parent ends it
    os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), _MOST_DESCRIPTORS))
    parent, *files = sys.argv[1:]
    Keeper(Record(files[0]) if files else None).keep(int(parent))
