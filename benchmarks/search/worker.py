"""A side in a process of its own, timed from inside. It runs in the environment of its side.

    python -m benchmarks.search.worker MODULE:CLASS FOLDER

A request is a line of JSON on stdin, `{"do": act, …}`; the answer is a line of JSON on stdout.
"""

import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.search.asking import Asked
from benchmarks.worker import serve


class Worker:
    """The acts that can be asked for."""

    def __init__(self, side: Any) -> None:
        self._side = side

    def facts(self) -> dict[str, str]:
        return dict(self._side.facts())

    def fill(self, file: str) -> float:
        """Seconds for all that a file holds."""
        start = time.perf_counter()
        with Path(file).open(encoding="utf-8") as lines:
            self._side.fill(map(json.loads, lines))
        return time.perf_counter() - start

    def reindex(self) -> float:
        start = time.perf_counter()
        self._side.reindex()
        return time.perf_counter() - start

    def search(self, **asked: Any) -> dict[str, Any]:
        """What was found, in how many nanoseconds, and what went wrong."""
        wanted = Asked(**asked)
        found: list[str] = []
        trouble = ""
        start = time.perf_counter_ns()
        try:
            found = self._side.search(wanted)
        except Exception as error:  # noqa: BLE001 - whatever a side fails with is a result
            trouble = f"{type(error).__name__}: {error}"
        return {"spent": time.perf_counter_ns() - start, "sessions": found, "trouble": trouble}

    def close(self) -> None:
        self._side.close()


def main() -> None:
    module, _, name = sys.argv[1].partition(":")
    serve(lambda: Worker(getattr(import_module(module), name)(Path(sys.argv[2]))))


if __name__ == "__main__":
    main()
