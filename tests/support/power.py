"""A disk that knows which of its bytes were synced, and what it may hold when the power is gone.

What was synced is there. Of what was not, there is nothing, everything, the beginning, or any sectors: each file and
the folder's own list of names may have come differently far.
"""

import random
import threading
from pathlib import Path

from told_files import Change, Kind

SECTOR = 512
Image = dict[str, bytes]
"""What the files of a folder hold, by name."""


class _Contents:
    """What a file holds: as everybody reads it, and as the disk has it."""

    def __init__(self, synced: bytes = b"") -> None:
        self._read = bytearray(synced)
        self._synced = bytearray(synced)
        self._unsynced: list[Change] = []
        """In the order in which it came."""

    def add(self, change: Change) -> None:
        _apply(self._read, change)
        self._unsynced += _sectors(change)

    def sync(self) -> None:
        for change in self._unsynced:
            _apply(self._synced, change)
        self._unsynced.clear()

    def fail_to_sync(self) -> None:
        """It is still read, and never tried again: so do systems whose disk has failed."""
        self._unsynced.clear()

    def whole(self) -> bytes:
        return bytes(self._read)

    def without_power(self, chance: random.Random) -> bytes:
        unsynced = self._unsynced
        kept = [
            [],
            unsynced,
            unsynced[: chance.randint(0, len(unsynced))],
            [change for change in unsynced if chance.random() < 0.5],
        ]
        held = bytearray(self._synced)
        for change in chance.choice(kept):
            _apply(held, change)
        return bytes(held)


class Disk:
    """The files of a folder: what they hold, and what of it is safe."""

    def __init__(self, folder: Path) -> None:
        self._listed = {path.name: _Contents(path.read_bytes()) for path in folder.iterdir()}
        self._relisted: list[tuple[str, _Contents | None]] = []
        """Names that came or went since the folder was synced."""
        self._current: dict[str, _Contents] = dict(self._listed)
        self._lock = threading.Lock()

    def take(self, change: Change) -> None:
        with self._lock:
            match change.kind:
                case Kind.CREATE:
                    self._create(change.name)
                case Kind.DELETE:
                    self._current.pop(change.name, None)
                    self._relisted.append((change.name, None))
                case Kind.SYNC:
                    self._named(change.name).sync()
                case _:
                    self._named(change.name).add(change)
            if change.is_of_folder:
                _relist(self._listed, self._relisted)
                self._relisted.clear()

    def fail_to_sync(self, name: str) -> None:
        with self._lock:
            self._named(name).fail_to_sync()

    def without_power(self, chance: random.Random) -> Image:
        """What is found when the power comes back."""
        with self._lock:
            listed = dict(self._listed)
            count = len(self._relisted)
            _relist(listed, self._relisted[: chance.choice((0, count, chance.randint(0, count)))])
            return {name: contents.without_power(chance) for name, contents in listed.items()}

    def without_process(self) -> Image:
        """What is found when only the process is gone: all that was written, synced or not."""
        with self._lock:
            return {name: contents.whole() for name, contents in self._current.items()}

    def _named(self, name: str) -> _Contents:
        return self._current.get(name) or self._create(name)  # what was made before SQLite came

    def _create(self, name: str) -> _Contents:
        self._current[name] = made = _Contents()
        self._relisted.append((name, made))
        return made


def place(image: Image, folder: Path) -> Path:
    """Put files where a store finds them."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for left in folder.iterdir():
        left.unlink()
    for name, data in image.items():
        (folder / name).write_bytes(data)
    return folder


def _relist(listed: dict[str, _Contents], changes: list[tuple[str, _Contents | None]]) -> None:
    for name, contents in changes:
        if contents is None:
            listed.pop(name, None)
        else:
            listed[name] = contents


def _sectors(change: Change) -> list[Change]:
    """A write as the disk does it."""
    if change.kind is not Kind.WRITE:
        return [change]
    edges = [change.at, *range(change.at + SECTOR - change.at % SECTOR, change.at + len(change.data), SECTOR)]
    ends = [*edges[1:], change.at + len(change.data)]
    return [
        change._replace(at=begin, data=change.data[begin - change.at : end - change.at])
        for begin, end in zip(edges, ends, strict=True)
    ]


def _apply(held: bytearray, change: Change) -> None:
    if change.kind is Kind.TRUNCATE:
        del held[change.at :]
    missing = change.at - len(held)
    held.extend(bytes(max(missing, 0)))
    held[change.at : change.at + len(change.data)] = change.data
