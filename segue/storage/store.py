"""The store: a unit of work, run in a transaction, again if a race was lost, for as long as patience lasts."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from segue.core.errors import SegueError, StoreBusy, StoreError
from segue.core.messages import Draft
from segue.core.scope import OWNER_AT_CONSOLE, Scope
from segue.ports.store import (
    Inbox,
    IndexState,
    Jobs,
    Lanes,
    Leases,
    Ledger,
    Outbox,
    People,
    Processes,
    Search,
    Tokens,
    Transaction,
    Turns,
)
from segue.storage.health import SqlHealth
from segue.storage.indexing import Indexing
from segue.storage.messages import SqlMessages
from segue.storage.meta import SqlMeta
from segue.storage.patience import MOMENT, PATIENCE, patiently
from segue.storage.sessions import SqlSessions
from segue.storage.sql import Executor, LaggingSequence
from segue.storage.trash import SqlTrash

if TYPE_CHECKING:
    from segue.storage.copying import Contents

TOGETHER_SECONDS, HURRIED_SECONDS, AT_ONCE_SECONDS = 0.010, 0.001, 0.001
"""For how long units of work join a commit that others wait for."""

P = ParamSpec("P")
T = TypeVar("T")


class Engine(Protocol):
    """A database as the store needs it."""

    index_follows: bool
    """Whether messages are indexed behind the transaction that stores them, or in it."""

    @property
    def is_near(self) -> bool:
        """Whether it is a file of this machine, which is read and written in no time as a rule."""

    @property
    def reads_beside_writer(self) -> bool:
        """Whether one can read while another changes everything."""

    @property
    def is_awaited(self) -> bool:
        """Whether another thread waits for the one that writes now."""

    @property
    def is_quick(self) -> bool:
        """Whether a commit takes less time than it takes to have it done by somebody else."""

    def writing(self, patience: float, scope: Scope) -> AbstractContextManager[Executor]: ...
    def reading(self, scope: Scope) -> AbstractContextManager[Executor]: ...
    def search(self, executor: Executor, scope: Scope) -> Search: ...
    def columns_to_find_by(self, message: Draft) -> dict[str, str]:
        """What a message is stored with so that it is found."""

    def continue_numbers(self, executor: Executor) -> None:
        """Go on counting behind the rows that were put in with their numbers."""

    def lagging_sequences(self, executor: Executor) -> list[LaggingSequence]:
        """The sequences that would give a new row an id which is used already."""

    def size(self) -> int: ...
    def compact(self) -> None: ...
    def copy_to(self, target: Path, advance: Callable[[int], object]) -> None: ...
    def replace_with(
        self, source: Path, advance: Callable[[int], object], under_lock: Callable[[], object]
    ) -> None: ...
    def close(self) -> None: ...
    @property
    def notices(self) -> list[str]: ...


class _Once(Generic[T]):
    """As `functools.cached_property` is, without its lock: a transaction belongs to one thread."""

    def __init__(self, make: "Callable[[SqlTransaction], T]") -> None:
        self._make = make

    def __get__(self, transaction: "SqlTransaction", _owner: type) -> T:
        made = vars(transaction)[self._make.__name__] = self._make(transaction)
        return made


class SqlTransaction:
    """The tables, seen through a scope."""

    def __init__(self, engine: Engine, executor: Executor, scope: Scope) -> None:
        self.scope = scope
        self._engine = engine
        self._executor = executor
        self.sessions = SqlSessions(executor, scope)
        self.messages = SqlMessages(executor, scope, engine.columns_to_find_by)
        self.trash = SqlTrash(executor, scope)
        self.meta = SqlMeta(executor, scope)
        self.health = SqlHealth(executor, scope)

    @_Once
    def lanes(self) -> Lanes:
        from segue.storage.lanes import SqlLanes  # slow to load, and most commands know no lanes

        return SqlLanes(self._executor, self.scope)

    @_Once
    def turns(self) -> Turns:
        from segue.storage.turns import SqlTurns  # only chats need them

        return SqlTurns(self._executor, self.scope)

    @_Once
    def ledger(self) -> Ledger:
        from segue.storage.ledger import SqlLedger

        return SqlLedger(self._executor, self.scope)

    @_Once
    def processes(self) -> Processes:
        from segue.storage.processes import SqlProcesses

        return SqlProcesses(self._executor, self.scope)

    @_Once
    def inbox(self) -> Inbox:
        from segue.storage.inbox import SqlInbox  # only gateways need these

        return SqlInbox(self._executor, self.scope)

    @_Once
    def outbox(self) -> Outbox:
        from segue.storage.outbox import SqlOutbox

        return SqlOutbox(self._executor, self.scope)

    @_Once
    def people(self) -> People:
        from segue.storage.people import SqlPeople

        return SqlPeople(self._executor, self.scope)

    @_Once
    def jobs(self) -> Jobs:
        from segue.storage.jobs import SqlJobs

        return SqlJobs(self._executor, self.scope)

    @_Once
    def tokens(self) -> Tokens:
        from segue.storage.tokens import SqlTokens

        return SqlTokens(self._executor, self.scope)

    @_Once
    def leases(self) -> Leases:
        from segue.storage.leases import SqlLeases

        return SqlLeases(self._executor)

    @_Once
    def search(self) -> Search:
        return self._engine.search(self._executor, self.scope)


class SqlStore:
    """A store over any engine."""

    def __init__(self, engine: Engine, patience: float = PATIENCE) -> None:
        self._engine = engine
        self._patience = patience
        self._indexing = Indexing(
            self._index_state, self._index_more, self._begin_again, self._count_characters, patience
        )

    def write(
        self, scope: Scope, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `work` in one transaction. It may run again after a lost race, so it must only touch the database."""

        def attempt(seconds_left: float) -> tuple[T, SqlMessages]:
            with self._engine.writing(seconds_left, scope) as executor:
                transaction = SqlTransaction(self._engine, executor, scope)
                return work(transaction, *args, **kwargs), transaction.messages

        done, messages = patiently(attempt, self._patience)
        if messages.added and self._engine.index_follows:
            self._indexing.follow(messages.newest, messages.added)
        return done

    def write_together(self, scope: Scope, works: Sequence[Callable[[Transaction], T]]) -> list[T | Exception]:
        """Run several units of work in one transaction: each is done wholly or not at all, whatever the others do.

        What each returned, or why it could not be done. What cannot be committed is nobody's, and raised.
        """
        outcomes: dict[int, T | Exception] = {}
        while left := [number for number in range(len(works)) if number not in outcomes]:
            at_work: list[int] = []
            try:
                found, newest = patiently(partial(self._attempt_all, scope, works, left, at_work), self._patience)
            except StoreBusy:
                raise
            except Exception as error:
                if not at_work:
                    raise
                outcomes[at_work[0]] = error  # and the others are done without it
                continue
            outcomes |= found
            if newest and self._engine.index_follows:
                self._indexing.follow(newest)
        return [outcomes[number] for number in range(len(works))]

    def write_at_once(self, scope: Scope, works: Sequence[Callable[[Transaction], T]]) -> list[T | Exception]:
        """As many of several units of work as a moment allows, in one commit; none if anybody has to be waited for.

        What came of the first ones. What is left is for `write_together`, also if something went wrong.
        """
        if not self._engine.is_quick:
            return []
        at_work: list[int] = []
        try:
            found, newest = self._attempt_all(scope, works, range(len(works)), at_work, MOMENT, AT_ONCE_SECONDS)
        except StoreBusy:
            return []
        except Exception as error:  # noqa: BLE001 - whoever asked for it is told
            if not at_work:
                return [error] * len(works)  # nothing can be committed
            return self.write_at_once(scope, works[: at_work[0]]) if at_work[0] else [error]
        self._indexing.note(newest)
        return list(found.values())

    def index_a_little(self) -> bool:
        """Take a few messages into the index if many wait; whether it is worth while to go on."""
        return self._engine.index_follows and self._indexing.follow_a_little()

    def _attempt_all(
        self,
        scope: Scope,
        works: Sequence[Callable[[Transaction], T]],
        left: Sequence[int],
        at_work: list[int],
        seconds_left: float,
        most_seconds: float = TOGETHER_SECONDS,
    ) -> tuple[dict[int, T | Exception], int]:
        found: dict[int, T | Exception] = {}
        newest = 0
        with self._engine.writing(seconds_left, scope) as executor:
            began = time.monotonic()
            for number in left:
                longest = HURRIED_SECONDS if self._engine.is_awaited else most_seconds
                if found and time.monotonic() - began > longest:
                    break  # the rest has a commit of its own, so that others get between
                at_work[:] = [number]
                transaction = SqlTransaction(self._engine, executor, scope)
                executor.run("SAVEPOINT one", {})
                try:
                    found[number] = works[number](transaction)
                except StoreBusy:
                    raise  # it is done again
                except SegueError as error:
                    executor.run("ROLLBACK TO SAVEPOINT one", {})
                    found[number] = error
                else:
                    newest = max(newest, transaction.messages.newest)
                executor.run("RELEASE SAVEPOINT one", {})
            at_work.clear()
        return found, newest

    def read(
        self, scope: Scope, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `work` on one snapshot of the database, beside any writer."""
        with self._engine.reading(scope) as executor:
            return work(SqlTransaction(self._engine, executor, scope), *args, **kwargs)

    def _index_state(self) -> IndexState:
        return self.read(OWNER_AT_CONSOLE, lambda tx: tx.search.state())

    def _index_more(self, most: int, patience: float) -> IndexState:
        """The next batch of messages into the index; as a transaction of its own, so that it can fail alone."""
        waiting = self.read(OWNER_AT_CONSOLE, lambda tx: tx.search.waiting(most))

        def attempt(seconds_left: float) -> IndexState:
            with self._engine.writing(seconds_left, OWNER_AT_CONSOLE) as executor:
                search = self._engine.search(executor, OWNER_AT_CONSOLE)
                search.take_in(waiting)
                return search.state()

        return patiently(attempt, patience)

    def _count_characters(self, most: int) -> int:
        return self.read(OWNER_AT_CONSOLE, lambda tx: tx.search.count_waiting(most))

    def _begin_again(self, patience: float) -> None:
        def attempt(seconds_left: float) -> None:
            with self._engine.writing(seconds_left, OWNER_AT_CONSOLE) as executor:
                self._engine.search(executor, OWNER_AT_CONSOLE).begin_again()

        patiently(attempt, patience)

    def begin_index_again(self) -> None:
        """Let the search index be made anew, behind what is written from now on; not if it is held or cannot be."""
        with suppress(StoreError):
            self._begin_again(patience=0)

    def index_all(self, advance: Callable[[int], object] = bool, *, anew: bool = False) -> None:
        """Take every message into the index that is not in it; or all of them, from the first one on."""
        self._indexing.catch_up(advance, anew=anew)

    @property
    def is_near(self) -> bool:
        return self._engine.is_near

    @property
    def reads_beside_writer(self) -> bool:
        return self._engine.reads_beside_writer

    @property
    def notices(self) -> list[str]:
        """What a person should know about how the database had to be opened."""
        return self._engine.notices

    def size(self) -> int:
        """Bytes on disk."""
        return self._engine.size()

    def compact(self) -> None:
        """Give free space back. A file has nothing deleted left in it; a server overwrites the bytes later."""
        self._engine.compact()

    def count_rows(self) -> int:
        from segue.storage.copying import count_rows  # only moving to another database needs these

        with self._engine.reading(OWNER_AT_CONSOLE) as executor:
            return count_rows(executor)

    def copy_rows_to(self, target: Self, advance: Callable[[int], object] = bool) -> None:
        """Make another database hold what this one does; what it has already is left alone."""
        from segue.storage.copying import copy_rows

        copy_rows(self._engine, target._engine, advance)

    def probe_writes(self) -> int:
        """Add a row to each table and take all of them back; the number of tables. Raises when one cannot be added."""
        from segue.storage.probing import no_second_attempt, probe_writes

        def attempt(seconds_left: float) -> int:
            with no_second_attempt(), self._engine.writing(seconds_left, OWNER_AT_CONSOLE) as executor:
                return probe_writes(executor)

        return patiently(attempt, self._patience)

    def lagging_sequences(self) -> list[LaggingSequence]:
        """The sequences that would give a new row an id which is used already."""
        with self._engine.reading(OWNER_AT_CONSOLE) as executor:
            return self._engine.lagging_sequences(executor)

    def advance_sequences(self) -> None:
        """Put every sequence behind the rows of its table."""

        def attempt(seconds_left: float) -> None:
            with self._engine.writing(seconds_left, OWNER_AT_CONSOLE) as executor:
                self._engine.continue_numbers(executor)

        patiently(attempt, self._patience)

    def contents(self, advance: Callable[[int], object] = bool) -> "list[Contents]":
        """How much each table holds, and a fingerprint of all of it."""
        from segue.storage.copying import contents_of

        return contents_of(self._engine, advance)

    def copy_to(self, target: Path, advance: Callable[[int], object] = bool) -> None:
        """Write everything as it is at one moment to a new file, beside any writer."""
        self._engine.copy_to(target, advance)

    def replace_with(
        self, source: Path, advance: Callable[[int], object] = bool, under_lock: Callable[[], object] = bool
    ) -> None:
        """Become what a file holds; every process sees all of the change or nothing.

        `under_lock` may still read what there was, and nobody can add to that any more.
        """
        self._engine.replace_with(source, advance, under_lock)

    def close(self) -> None:
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
