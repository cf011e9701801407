"""A database in memory, the way of one simulated process to it, and the hand that needs no thread.

Everything is done by the product's own SQL. What is not here is the disk: a commit is there when it has returned, and
nothing of it when the process ended before.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from segue.agent.door import Hand, Wish, _settle
from segue.core.errors import StoreBusy, StoreFault
from segue.core.messages import Draft
from segue.core.scope import OWNER_AT_CONSOLE, Scope
from segue.ports.store import Search, Store, Transaction
from segue.storage.connection import READING, WRITING, SqliteConnection
from segue.storage.schema import TABLES, declare
from segue.storage.search_index import create_index
from segue.storage.sql import Executor, LaggingSequence, Row

P = ParamSpec("P")
T = TypeVar("T")

MOVED = """
    CREATE TEMP TRIGGER {table}_moved AFTER UPDATE OF state ON {table}
    WHEN OLD.state IN ({ends}) AND NEW.state <> OLD.state
    BEGIN INSERT INTO moved VALUES ('{table}', OLD.id, OLD.state, NEW.state); END"""
"""What has come to its end stays there; whatever does not is noted."""
WRITTEN = (
    "CREATE TEMP TABLE written (number INTEGER PRIMARY KEY, id INTEGER, is_whole INTEGER)",
    """
    CREATE TEMP TRIGGER outbox_begun AFTER INSERT ON outbox
    BEGIN INSERT INTO written (id, is_whole) VALUES (NEW.id, NEW.state <> 'draft'); END""",
    """
    CREATE TEMP TRIGGER outbox_whole AFTER UPDATE OF state ON outbox WHEN OLD.state = 'draft' AND NEW.state <> 'draft'
    BEGIN INSERT INTO written (id, is_whole) VALUES (NEW.id, 1); END""",
)
"""When each piece was begun, and when it was whole: what nobody was shown before that is in line from then on."""
ENDS = {
    "inbox": "'done', 'cancelled', 'refused', 'dead'",
    "outbox": "'delivered', 'dead', 'suppressed'",
    "turns": "'done', 'stopped', 'failed'",
}


class MemoryEngine:
    """One connection, which only one thread uses: who reads and who writes never do it at the same time."""

    index_follows = False
    is_near = reads_beside_writer = is_quick = True
    is_awaited = False

    def __init__(self) -> None:
        self._connection = SqliteConnection(Path(":memory:"), writes=True)
        declare(self._connection)
        create_index(self._connection)
        self._connection.run("CREATE TEMP TABLE moved (name TEXT, id, old TEXT, new TEXT)")
        for statement in WRITTEN:
            self._connection.run(statement)
        for table, ends in ENDS.items():
            self._connection.run(MOVED.format(table=table, ends=ends))

    def empty(self) -> None:
        """Nothing was ever said."""
        names = [table.name for table in TABLES if table.name != "schema_version"]
        counted = self._connection.rows("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'")
        for name in [*names, "moved", "written", *(["sqlite_sequence"] if counted else [])]:
            self._connection.run(f"DELETE FROM {name}")

    def rows(self, sql: str) -> list[Row]:
        return self._connection.rows(sql)

    @contextmanager
    def writing(self, _patience: float, _scope: Scope = OWNER_AT_CONSOLE) -> Iterator[Executor]:
        with self._connection.transaction(WRITING):
            yield self._connection

    @contextmanager
    def reading(self, _scope: Scope = OWNER_AT_CONSOLE) -> Iterator[Executor]:
        with self._connection.transaction(READING):
            yield self._connection

    def search(self, executor: Executor, scope: Scope) -> Search:
        raise NotImplementedError

    def columns_to_find_by(self, _message: Draft) -> dict[str, str]:
        return {}

    def continue_numbers(self, _executor: Executor) -> None: ...

    def lagging_sequences(self, _executor: Executor) -> list[LaggingSequence]:
        return []

    def size(self) -> int:
        return 0

    def compact(self) -> None: ...

    def copy_to(self, _target: Path, _advance: Callable[[int], object]) -> None:
        raise NotImplementedError

    def replace_with(self, _source: Path, _advance: object, _under_lock: object) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._connection.handle.close()

    @property
    def notices(self) -> list[str]:
        return []


class SimulatedStore(Store):
    """The way of one process to what all share: it may be in trouble, and ends with the process.

    `passes` is asked before and after everything that lasts; it may raise.
    """

    def __init__(
        self, store: Store, passes: Callable[[str], None], chance: random.Random, *, is_near: bool, contention: float
    ) -> None:
        self._store = store
        self._is_near = is_near
        self._passes = passes
        self._random = chance
        self.trouble = 0.0
        """Which share of what is wanted cannot be had at the moment."""
        self._contention = contention
        """How often somebody else is in the way for a moment, so that a thread has to wait for them."""

    @property
    def is_near(self) -> bool:
        return self._is_near

    def write(
        self, scope: Scope, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        self._begin(work)
        done = self._store.write(scope, work, *args, **kwargs)
        self._committed()
        return done

    def read(
        self, scope: Scope, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        self._passes(f"reads {_name(work)}")
        self._fail()
        return self._store.read(scope, work, *args, **kwargs)

    def write_together(self, scope: Scope, works: Sequence[Callable[[Transaction], T]]) -> list[T | Exception]:
        self._begin(works[0])
        done = self._store.write_together(scope, works)
        self._committed()
        return done

    def write_at_once(self, scope: Scope, works: Sequence[Callable[[Transaction], T]]) -> list[T | Exception]:
        self._passes(f"writes {_name(works[0])}")
        if self._contention and self._random.random() < self._contention:
            return []
        done = self._store.write_at_once(scope, works)
        try:
            self._committed()
        except StoreFault as error:
            return [error] * len(done)
        return done

    def index_a_little(self) -> bool:
        return False

    def begin_index_again(self) -> None: ...

    def _begin(self, work: Callable[..., object]) -> None:
        self._passes(f"writes {_name(work)}")
        self._fail()

    def _committed(self) -> None:
        """It is there, whether the store can say so or not."""
        self._passes("committed")
        if self.trouble and self._random.random() < self.trouble / 2:
            raise StoreFault("The disk said nothing.")

    def _fail(self) -> None:
        if self.trouble and self._random.random() < self.trouble:
            raise StoreBusy("Others held the store for longer than our patience.")


def _name(work: Callable[..., object]) -> str:
    """Of what is done in a transaction."""
    while isinstance(work, partial):
        work = work.args[0] if work.args else work.func
    return getattr(work, "__name__", "something")


class SimulatedHand(Hand):
    """Does what it is asked to a little later, as a thread would, and in the same loop."""

    chance = random.Random()
    longest = 0.01

    def __init__(self, name: str, do: Callable[[list[Wish]], list[Any]], most: int) -> None:
        super().__init__(name, do, most)
        self._asked: deque[Wish] = deque()

    def take(self, wishes: Sequence[Wish]) -> None:
        is_idle = not self._asked
        self._asked.extend(wishes)
        if is_idle and wishes:
            self._later()

    def close(self) -> None: ...

    def _later(self) -> None:
        asyncio.get_running_loop().call_later(self.chance.random() * self.longest, self._do_some)

    def _do_some(self) -> None:
        """As many as are alike; they stand in line until they are done."""
        together = [self._asked[0]]
        for wish in list(self._asked)[1 : self.most]:
            if wish.scope != together[0].scope:
                break
            together.append(wish)
        outcomes = self._do(together)
        for _ in together:
            self._asked.popleft()
        _settle(list(zip(together, outcomes, strict=True)))
        if self._asked:
            self._later()
