"""The keepers of this program: processes that end what it has started, should it be gone before it could do so itself.

One is shared by everything that is awaited; each process in the background has one of its own, which also writes down
what it says.
"""

import atexit
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_ROOT = str(Path(__file__).parents[2])
_PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from segue.tools.keeper import main; main()"
_ENDING = 6.0  # seconds; longer than a keeper takes to kill


class Keeper:
    """A keeper that runs. It ends itself when this program ends, however that comes."""

    def __init__(self, output: int | None = None, file: Path | None = None) -> None:
        """The reading end of a pipe, and the file in which what comes out of it is kept."""
        self.owner = os.getpid()
        self.watched: set[int] = set()
        """Sessions that end with this program."""
        self.heir: Keeper | None = None
        """Who came after this one, should somebody have killed it."""
        self._process = subprocess.Popen(  # noqa: S603 - Python itself
            [sys.executable, "-I", "-S", "-c", _PROGRAM, _ROOT, str(self.owner), *([str(file)] if file else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL if output is None else output,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        self._orders = self._process.stdin
        os.set_blocking(self._orders.fileno(), False)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_there(self) -> bool:
        return self._process.poll() is None

    def watch(self, session: int) -> None:
        """From now on a session ends with this program. An OSError says that the keeper is gone."""
        self.watched.add(session)
        self._order(b"+%d\n" % session)

    def forget(self, session: int) -> None:
        """Nothing is left of a session."""
        if self.heir is not None:
            self.heir.forget(session)
            return
        self.watched.discard(session)
        with suppress(OSError):
            self._order(b"-%d\n" % session)

    def take_over(self, other: "Keeper") -> None:
        """Watch what another one watched, who is gone."""
        for session in sorted(other.watched):
            self.watch(session)
        other.heir = self

    def close(self) -> None:
        """Let it write what it has heard, and end."""
        if self.owner != os.getpid():
            return
        self._orders.close()
        try:
            self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _order(self, line: bytes) -> None:
        os.write(self._orders.fileno(), line)


_shared: Keeper | None = None


def shared_keeper() -> Keeper:
    """The keeper of all that is awaited: started with the first command, and anew should somebody have killed it."""
    global _shared
    before = _shared
    if before is not None and before.owner == os.getpid() and before.is_there:
        return before
    _shared = keeper = Keeper()
    atexit.register(keeper.close)
    if before is not None and before.owner == os.getpid():
        atexit.unregister(before.close)
        keeper.take_over(before)
        before.close()
    return keeper
