"""A server that all workers of a test run use together: the first that needs it starts it, and it ends with the last.

Run as a program, this is its keeper: it starts the server, says where it is, and waits until nobody holds the other end
of its standard input any more. The system closes that end also for a worker that is killed, so nothing is left behind.
"""

import fcntl
import importlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from waiting import DEADLINE


class Keepable(Protocol):
    """A running server."""

    @property
    def address(self) -> dict[str, Any]:
        """How others in this machine find it, ready for JSON."""

    def close(self) -> None: ...


class SharedServer:
    """The use that one process makes of a server."""

    def __init__(self, folder: Path, server: str) -> None:
        """The server is named `module:Class`; who names the same folder uses the same one."""
        self._place = folder / server.replace(":", ".")
        self._place.mkdir(parents=True, exist_ok=True)
        self._keeper: subprocess.Popen[str] | None = None
        with _locked(self._place):
            held = self._join()
            self._held = self._start(server) if held is None else held
            self.address: dict[str, Any] = json.loads((self._place / "address").read_text())

    def close(self) -> None:
        """Leave; whoever has started the server waits until it has ended."""
        os.close(self._held)
        if self._keeper is not None:
            self._keeper.wait()

    def _join(self) -> int | None:
        """Hold on to the server if it is running."""
        if (self._place / "address").exists():
            with suppress(OSError):  # nobody reads there: its keeper was killed
                return os.open(self._place / "held", os.O_WRONLY | os.O_NONBLOCK)
        return None

    def _start(self, server: str) -> int:
        held = self._place / "held"
        held.unlink(missing_ok=True)
        os.mkfifo(held, 0o600)
        reading = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
        writing = os.open(held, os.O_WRONLY)
        os.set_blocking(reading, True)
        with (self._place / "log").open("a") as log:
            self._keeper = subprocess.Popen(
                [sys.executable, str(Path(__file__).resolve()), server, str(self._place)],
                stdin=reading,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # it outlives an interrupt of the run, and ends in order then
            )
        os.close(reading)
        assert self._keeper.stdout is not None
        with self._keeper.stdout as said:
            is_ready = bool(said.readline())
        if not is_ready:
            os.close(writing)
            self._keeper.wait(DEADLINE)
            raise RuntimeError(f"{server} did not start:\n{(self._place / 'log').read_text()[-3000:]}")
        return writing


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _keep(server: str, place: Path) -> None:
    module, _, name = server.partition(":")
    running: Keepable = getattr(importlib.import_module(module), name)()
    try:
        (place / "address").write_text(json.dumps(running.address))
        print("ready", flush=True)
        sys.stdout.close()
        _wait_for_the_last(place)
    finally:
        running.close()


def _wait_for_the_last(place: Path) -> None:
    """Whoever joins while the last one leaves is either seen, or sees that there is no server."""
    hung_up = select.poll()
    hung_up.register(0, select.POLLHUP)
    while True:
        os.read(0, 1)
        with _locked(place):
            if hung_up.poll(0):
                (place / "address").unlink()
                return


if __name__ == "__main__":
    _keep(sys.argv[1], Path(sys.argv[2]))
