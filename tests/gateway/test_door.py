"""What several want to write at the same time shares a commit, and nothing else."""

import asyncio

import pytest

from segue.agent.door import Door
from segue.core.errors import Invalid
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sessions import Session
from segue.ports.store import Transaction
from segue.sessions.starting import create_session
from segue.storage.store import SqlStore


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
