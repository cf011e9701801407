"""Where the stores of a side are kept, as far as a benchmark must know: making, copying and weighing them."""

import shutil
from pathlib import Path
from typing import Protocol

import apsw


class Keeper(Protocol):
    """What can be done with a store from outside. Each has a home, a folder of its own."""

    def make(self, home: Path) -> None:
        """Make a home whose store is empty, if it is not there."""

    def copy(self, home: Path, target: Path) -> None:
        """Make a home whose store holds the same as a closed one."""

    def size(self, home: Path) -> int:
        """Bytes on disk."""

    def text_indexes(self, home: Path) -> int:
        """How many full-text indexes a closed store keeps."""


class Files:
    """SQLite: a store is the files in its home."""

    def make(self, home: Path) -> None:
        make_folder(home)

    def copy(self, home: Path, target: Path) -> None:
        shutil.copytree(home, target)

    def size(self, home: Path) -> int:
        return sum(file.stat().st_size for file in home.rglob("*.db*") if file.is_file())

    def text_indexes(self, home: Path) -> int:
        wanted = "SELECT count(*) FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%fts5%'"
        count = 0
        for file in home.rglob("*.db"):
            connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
            count += int(str(connection.execute(wanted).get))
            connection.close()
        return count


FILES = Files()


def make_folder(home: Path) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
