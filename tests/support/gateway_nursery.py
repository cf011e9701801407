"""Gateways as processes that can be killed: forked from one that has loaded everything, so that each begins at once.

Run as a program it reads requests, one JSON object a line, and answers with the number of the process it made. What a
gateway does in there is the product's own; its agent is scripted, and its platform is a stage in another process.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from waiting import DEADLINE

_HERE = Path(__file__).resolve()


class Nursery:
    """The process that gateways are forked from."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(_HERE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, request: dict[str, Any]) -> int:
        """A gateway; the number of its process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def end(self, pid: int, sign: int = signal.SIGKILL) -> None:
        """Kill a gateway, and wait until it is no more."""
        os.kill(pid, sign)
        if not self.is_gone(pid, DEADLINE):
            raise TimeoutError(f"The gateway {pid} does not end.")

    def is_gone(self, pid: int, seconds: float) -> bool:
        """Whether a gateway ends within so many seconds."""
        until = time.monotonic() + seconds
        while not (gone := bool(self.start({"gone": pid}))) and time.monotonic() < until:
            time.sleep(0.005)
        return gone

    def close(self) -> None:
        self._process.communicate(timeout=DEADLINE)


def _serve() -> None:
    sys.path[:0] = [str(_HERE.parent)]
    for module in ("scripted_gateway", "segue.storage.postgres", "segue.storage.sqlite"):
        __import__(module)
    for line in sys.stdin:
        request = json.loads(line)
        if "gone" in request:
            pid, _ = os.waitpid(request["gone"], os.WNOHANG)
            print(pid, flush=True)
            continue
        child = os.fork()
        if child == 0:
            _become(request)
        print(child, flush=True)


def _become(request: dict[str, Any]) -> None:
    import scripted_gateway

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.close()
    os.dup2(2, 1)  # nothing but numbers is said to the one who asked
    try:
        asyncio.run(scripted_gateway.live(request))
    except BaseException:  # noqa: BLE001 - whatever it is, the parent must not go on as two
        import traceback

        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    _serve()
