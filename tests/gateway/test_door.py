"""What several want to write at the same time shares a commit, and nothing else."""

import asyncio
import threading
from collections.abc import Callable
from functools import partialmethod

import pytest
from waiting import DEADLINE, until

from segue.agent.door import Door
from segue.core.errors import Invalid, StoreBusy
from segue.core.messages import draft
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sessions import Session
from segue.facade.searching import answer
from segue.ports.store import IndexState, Transaction, Waiting
from segue.sessions.recording import append_message
from segue.sessions.searching import Wish
from segue.sessions.starting import create_session
from segue.storage.checkpoints import CHECKPOINT_EVERY
from segue.storage.indexing import BATCH
from segue.storage.sqlite import SqliteEngine
from segue.storage.sqlite_search import SqliteSearch
from segue.storage.store import SqlStore


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which disk is a slow one does not depend on the machine."""
    monkeypatch.setattr("segue.storage.sqlite.QUICK_SECONDS", 2 * DEADLINE)


def begin(tx: Transaction, name: str) -> str:
    return create_session(tx, Session(name, "cli", started_at=1.0))


def refuse(tx: Transaction, name: str) -> str:
    begin(tx, name)
    raise Invalid("It is refused.")


def blunder(tx: Transaction, name: str) -> str:
    begin(tx, name)
    tx.meta.set("x", object())  # type: ignore[arg-type]
    return name


def test_each_is_done_wholly_or_not_at_all(store: SqlStore) -> None:
    door = Door(store, OWNER)

    async def work() -> list[object]:
        writes = [door.write(begin, f"good{number}") for number in range(40)]
        writes.insert(7, door.write(refuse, "refused"))
        writes.insert(20, door.write(blunder, "blunder"))
        return await asyncio.gather(*writes, return_exceptions=True)

    found = asyncio.run(work())
    door.close()
    assert isinstance(found.pop(20), Exception)
    assert isinstance(found.pop(7), Invalid)
    assert found == [f"good{number}" for number in range(40)]
    listed = {one.id for one in store.read(OWNER, lambda tx: list(tx.sessions.in_order()))}
    assert listed == set(found)


def test_what_comes_later_is_written_later(store: SqlStore) -> None:
    door = Door(store, OWNER)
    order: list[int] = []

    async def one(number: int) -> None:
        await door.write(lambda _tx: order.append(number))

    async def work() -> None:
        await asyncio.gather(*(one(number) for number in range(200)))

    asyncio.run(work())
    door.close()
    assert order == list(range(200))


def test_whoever_is_cancelled_waits_for_what_has_begun(store: SqlStore) -> None:
    door = Door(store, OWNER)

    async def work() -> None:
        writing = asyncio.create_task(door.write(begin, "kept"))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert (await door.read(lambda tx: tx.sessions.find("kept"))) is not None

    asyncio.run(work())
    door.close()


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_file_of_our_own_is_written_here_and_now(store: SqlStore) -> None:
    door = Door(store, OWNER)
    assert asyncio.run(door.write(lambda _tx: threading.current_thread())) is threading.main_thread()
    door.close()


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_who_else_writes_is_waited_for_by_a_thread_and_nobody_overtakes(store: SqlStore) -> None:
    door, order, rounds = Door(store, OWNER), list[int](), 0
    is_held, may_go = threading.Event(), threading.Event()

    def hold(_tx: Transaction) -> None:
        is_held.set()
        may_go.wait(DEADLINE)

    def note(_tx: Transaction, number: int) -> threading.Thread:
        order.append(number)
        return threading.current_thread()

    async def one(number: int) -> threading.Thread:
        return await door.write(note, number)

    async def work() -> list[threading.Thread]:
        nonlocal rounds
        holding = asyncio.create_task(asyncio.to_thread(store.write, OWNER, hold))
        await asyncio.to_thread(is_held.wait)
        writing = [asyncio.create_task(one(number)) for number in range(20)]
        for _ in range(20):
            await asyncio.sleep(0.01)
            rounds += 1
        assert order == []
        may_go.set()
        found = await asyncio.gather(*writing, one(20))
        await holding
        return [*found, await one(21)]

    where = asyncio.run(work())
    door.close()
    assert rounds == 20, "the loop went on meanwhile"
    assert order == list(range(22))
    assert where[0] is not threading.main_thread()
    assert where[-1] is threading.main_thread(), "nobody writes any more"


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_slow_disk_keeps_nobody_waiting(store: SqlStore, engine: SqliteEngine) -> None:
    door = Door(store, OWNER)
    with engine.alone() as writer:
        writer.commit_seconds = 2 * DEADLINE
    assert asyncio.run(door.write(lambda _tx: threading.current_thread())) is not threading.main_thread()
    door.close()


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_whoever_comes_in_waits_for_one_thing_at_most(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.storage.store.AT_ONCE_SECONDS", -1.0)
    door, done = Door(store, OWNER), list[int]()
    waits: list[int] = []

    async def come_in() -> None:
        """As a message does: from its socket to us it takes a few rounds."""
        before = len(done)
        for _ in range(3):
            await asyncio.sleep(0)
        waits.append(len(done) - before)

    async def work() -> None:
        writing = [asyncio.create_task(door.write(lambda _tx: done.append(1))) for _ in range(50)]
        while len(done) < 50:
            await come_in()
        await asyncio.gather(*writing)

    asyncio.run(work())
    door.close()
    assert max(waits) == 1
    assert len(waits) >= 50


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_what_was_asked_for_is_done_when_the_door_closes(store: SqlStore) -> None:
    door = Door(store, OWNER)

    async def work() -> None:
        writing = asyncio.create_task(door.write(begin, "last"))
        await asyncio.sleep(0)
        door.close()
        assert await writing == "last"

    asyncio.run(work())


def _counted(search: SqliteSearch, counts: list[int], take_in: Callable[..., None], waiting: Waiting) -> None:
    counts.append(waiting.upto - waiting.after)
    take_in(search, waiting)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_the_index_follows_a_little_at_a_time(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door(store, OWNER)

    async def work() -> IndexState:
        await door.write(begin, "talk")
        for number in range(BATCH + 40):
            await door.write(append_message, "talk", draft("user", f"lisbon {number}", 1.0))
        return await door.read(lambda tx: tx.search.state())

    taken_in: list[int] = []
    monkeypatch.setattr(SqliteSearch, "take_in", partialmethod(_counted, taken_in, SqliteSearch.take_in))
    state = asyncio.run(work())
    door.close()
    assert state.indexed_to >= BATCH
    assert sum(taken_in) >= BATCH
    assert set(taken_in) == {8}
    assert len(answer(store, OWNER, "lisbon", Wish(limit=500)).hits) == BATCH + 40


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_door_serves_one_loop_after_another(store: SqlStore) -> None:
    door = Door(store, OWNER)

    async def fill() -> None:
        await door.write(begin, "talk")
        for number in range(BATCH + 1):
            await door.write(append_message, "talk", draft("user", f"lisbon {number}", 1.0))
        asyncio.get_running_loop().stop()  # while something waits to be taken into the index

    loop = asyncio.new_event_loop()
    filling = loop.create_task(fill())
    loop.run_forever()
    assert filling.done()
    loop.close()
    assert asyncio.run(asyncio.wait_for(door.write(begin, "next"), DEADLINE)) == "next"
    door.close()


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_nothing_is_written_twice_when_the_log_cannot_be_taken_in_beside(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def work() -> None:
        await door.write(begin, "talk")
        monkeypatch.setattr(threading.Thread, "start", refused)
        for number in range(2 * CHECKPOINT_EVERY):
            await door.write(append_message, "talk", draft("user", f"{number}", 1.0))
        monkeypatch.undo()

    door = Door(store, OWNER)
    asyncio.run(work())
    door.close()
    said = store.read(OWNER, lambda tx: [row.content for row in tx.messages.of("talk")])
    assert said == [f"{number}" for number in range(2 * CHECKPOINT_EVERY)]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_who_lost_a_race_tries_again(store: SqlStore) -> None:
    tries: list[int] = []

    def work(_tx: Transaction) -> str:
        tries.append(1)
        if len(tries) < 3:
            raise StoreBusy("Somebody was first.")
        return "done"

    door = Door(store, OWNER)
    assert asyncio.run(door.write(work)) == "done"
    door.close()


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_an_index_that_cannot_be_written_is_not_tried_without_a_pause(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    door, tries = Door(store, OWNER), 0

    def busy(*_: object) -> None:
        nonlocal tries
        tries += 1
        raise StoreBusy("Another process writes.")

    async def work() -> None:
        await door.write(begin, "talk")
        monkeypatch.setattr(SqliteSearch, "take_in", busy)
        for number in range(BATCH):
            await door.write(append_message, "talk", draft("user", f"{number}", 1.0))
        for _ in range(200):
            await asyncio.sleep(0)

    asyncio.run(work())
    door.close()
    assert 1 <= tries <= 3


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_long_messages_are_taken_into_the_index_beside_also_after_that_could_not_be(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    door, start, refusals = Door(store, OWNER), threading.Thread.start, 0

    def refused_once(thread: threading.Thread) -> None:
        nonlocal refusals
        if thread.name == "segue-index" and not refusals:
            refusals += 1
            raise RuntimeError("can't start new thread")
        start(thread)

    async def is_begun() -> bool:
        return (await door.read(lambda tx: tx.search.state())).indexed_to > 0

    async def work() -> None:
        await door.write(begin, "talk")
        for number in range(BATCH):
            await door.write(append_message, "talk", draft("user", f"lisbon {number} " * 500, 1.0))
        monkeypatch.setattr(threading.Thread, "start", refused_once)
        await door.write(append_message, "talk", draft("user", "and one more", 1.0))
        await until(lambda: refusals, "a refusal")
        await door.write(append_message, "talk", draft("user", "and one more", 1.0))
        await until(is_begun, "the index")

    asyncio.run(work())
    door.close()
    assert refusals == 1
