"""A database whose file is replaced or removed while it is open acknowledges nothing more."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from segue.core.errors import StoreReplaced
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.storage.sqlite import SqliteEngine


def elsewhere(act: str, *files: Path) -> None:
    """Something is done by another process, as a person at a shell does it."""
    subprocess.run([sys.executable, "-c", f"import os, shutil, sys; {act}", *map(str, files)], check=True)


def remove(file: Path) -> None:
    elsewhere("os.remove(sys.argv[1])", file)


def replace_by_a_copy(file: Path) -> None:
    copy = file.with_name("copy")
    elsewhere("shutil.copy(sys.argv[1], sys.argv[2]); os.replace(sys.argv[2], sys.argv[1])", file, copy)


def write(engine: SqliteEngine, value: str) -> None:
    with engine.writing(1.0) as connection:
        connection.run("INSERT INTO state_meta (key, value) VALUES (:key, '1')", {"key": value})


@pytest.mark.parametrize("suffix", ["", "-wal"])
@pytest.mark.parametrize("act", [remove, replace_by_a_copy])
def test_nothing_is_acknowledged_after_it(tmp_path: Path, suffix: str, act: Callable[[Path], None]) -> None:
    engine = SqliteEngine(tmp_path / "segue.db")
    write(engine, "before")
    act(tmp_path / f"segue.db{suffix}")
    for value in ("after", "later"):
        with pytest.raises(StoreReplaced, match=rf"segue.db{suffix} was replaced or removed"):
            write(engine, value)
    with pytest.raises(StoreReplaced), engine.reading():
        pass
    engine.close()


def test_a_file_that_stays_may_be_checkpointed_compacted_and_replaced_in_place(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path / "segue.db")
    write(engine, "one")
    engine.copy_to(tmp_path / "copy.db")
    write(engine, "two")
    engine.empty_log()
    write(engine, "three")
    engine.compact()
    write(engine, "four")
    engine.replace_with(tmp_path / "copy.db")
    write(engine, "five")
    with engine.reading(OWNER) as connection:
        keys = [row[0] for row in connection.rows("SELECT key FROM state_meta WHERE value = '1' ORDER BY key")]
    assert keys == ["five", "one"]
    engine.close()
