"""The full-text index of SQLite itself: making it, cleaning it, and hearing what is wrong with it."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from segue.core.errors import IndexDamaged
from segue.storage.schema import SEARCH_BLOCKS, filling_blocks
from segue.storage.sql import ALL, Executor

TABLE = "messages_fts"
CREATE = (
    f"CREATE VIRTUAL TABLE IF NOT EXISTS {TABLE} USING fts5("
    "content, tools, marks, content='', contentless_delete=1, tokenize='ascii')"
)
# Merging happens in small explicit steps, so that no single batch has to merge much.
SETTINGS = ("automerge', 0", "crisismerge', 64")

FILL_BLOCKS = filling_blocks().format(first=":first", last=":last")


@contextmanager
def index_errors() -> Iterator[None]:
    """Whatever the index complains of, the messages are not concerned."""
    try:
        yield
    except (apsw.CorruptError, apsw.SQLError, apsw.NoMemError, apsw.TooBigError) as error:
        raise IndexDamaged from error


def create_index(database: Executor) -> None:
    """The index, empty."""
    database.run(CREATE, {})
    database.run(SEARCH_BLOCKS.sql, {})
    for setting in SETTINGS:
        database.run(f"INSERT INTO {TABLE} ({TABLE}, rank) VALUES ('{setting})", {})


def forget_deleted(database: Executor) -> None:
    """Leave nothing in the index of messages that are gone, not even a word."""
    with index_errors():
        _forget_deleted(database)


def _forget_deleted(database: Executor) -> None:
    gone = f"SELECT id FROM {TABLE}_docsize WHERE id NOT IN (SELECT id FROM messages)"
    if database.run(f"DELETE FROM {TABLE} WHERE rowid IN ({gone})", {}):
        database.run(f"INSERT INTO {TABLE} ({TABLE}) VALUES ('optimize')", {})
        database.run(f"CREATE VIRTUAL TABLE temp.words_left USING fts5vocab(main, {TABLE}, row)", {})
        database.run("DELETE FROM search_words WHERE word NOT IN (SELECT term FROM temp.words_left)", {})
        database.run("DROP TABLE temp.words_left", {})
        database.run("DELETE FROM search_blocks", {})
        fill_blocks(database, 0, ALL)


def fill_blocks(database: Executor, first: int, last: int) -> None:
    """Note from when to when the messages between two ids are."""
    database.run(FILL_BLOCKS, {"first": first, "last": last})
