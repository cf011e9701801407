"""A side in a process of its own, timed from inside. Standard library alone: it also runs in the peer's environment.

    worker.py SIDE.PY FOLDER

A request is a line of JSON on stdin, `{"do": act, …}`; the answer is a line of JSON on stdout. All sides are timed by
the same loops. Timings are nanoseconds.
"""

import hashlib
import importlib.util
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any


class Worker:
    """The acts that can be asked for."""

    def __init__(self, side: Any) -> None:
        self._side = side

    def facts(self) -> dict[str, str]:
        return dict(self._side.facts())

    def begin(self, session: str) -> None:
        self._side.begin(session)

    def fill(self, file: str, first: int, beyond: int) -> None:
        self._side.fill(_lines(file, first, beyond))

    def append(self, session: str, file: str, first: int, beyond: int, at: float = 0.0) -> dict[str, Any]:
        """Append messages one by one, beginning at a moment of the monotonic clock that others know too."""
        messages = list(_lines(file, first, beyond))
        errors: Counter[str] = Counter()
        time.sleep(max(0.0, at - time.monotonic()))
        began = time.monotonic()
        spent = []
        for message in messages:
            start = time.perf_counter_ns()
            try:
                self._side.append(session, message)
            except Exception as error:  # noqa: BLE001 - whatever a side loses messages by is a result
                errors[f"{type(error).__name__}: {error}"] += 1
            spent.append(time.perf_counter_ns() - start)
        return {"spent": spent, "began": began, "ended": time.monotonic(), "errors": errors}

    def load(self, session: str, times: int) -> list[int]:
        return [_timed(self._side.load, session) for _ in range(times)]

    def digest(self, session: str) -> tuple[int, str]:
        """How many messages a conversation has, and a checksum of who says what."""
        said = [(chat["role"], chat["content"]) for chat in self._side.load(session)]
        return len(said), hashlib.sha256(json.dumps(said).encode()).hexdigest()

    def count(self, session: str) -> int:
        return int(self._side.count(session))

    def newest(self, times: int, order: str = "newest") -> list[int]:
        rows = getattr(self._side, order)()
        assert len(rows) == 20, len(rows)
        return [_timed(getattr(self._side, order)) for _ in range(times)]

    def relax(self) -> None:
        self._side.relax()

    def prune(self, days: float) -> tuple[int, int]:
        start = time.perf_counter_ns()
        pruned = self._side.prune(days)
        return time.perf_counter_ns() - start, pruned

    def fill_lanes(self, first: int, beyond: int) -> None:
        self._side.fill_lanes(first, beyond)

    def route(self, lanes: list[int]) -> list[int]:
        return [_timed(self._side.route, lane) for lane in lanes]

    def close(self) -> None:
        self._side.close()


def _timed(act: Callable[..., object], *arguments: object) -> int:
    start = time.perf_counter_ns()
    act(*arguments)
    return time.perf_counter_ns() - start


def _lines(file: str, first: int, beyond: int) -> Iterator[dict[str, Any]]:
    with Path(file).open(encoding="utf-8") as lines:
        yield from map(json.loads, islice(lines, first, beyond))


def _load_side(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Side


def serve(make: Callable[[], object]) -> None:
    """Answer requests with the methods of a worker until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a side prints is no answer
    worker = make()
    for line in sys.stdin:
        request = json.loads(line)
        answer = getattr(worker, request.pop("do"))(**request)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def main() -> None:
    side, folder = map(Path, sys.argv[1:])
    serve(lambda: Worker(_load_side(side)(folder)))


if __name__ == "__main__":
    main()
