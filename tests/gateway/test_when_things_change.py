"""Settings, gateways and minds change while messages wait: each is answered once, or its sender told why not."""

import asyncio
import time

import pytest
from lane_house import Building, HeldModel, dm, echo
from waiting import until

from segue.core.errors import ModelError
from segue.core.inbox import Entry, InboxState
from segue.core.keys import KeyRules
from segue.core.leases import Lease, Run, lane_lease
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sharing import DmScope
from segue.gateway.holding import LaneHolder, take_lane
from segue.ports.platform import Intake
from segue.ports.store import Transaction
from segue.sessions import answering
from segue.sessions.leasing import IsGone
from segue.sessions.requeueing import retry_messages
from segue.storage.store import SqlStore
from segue.testing import ScriptedModel, ScriptedPlatform, Stage


def entries(store: SqlStore) -> list[Entry]:
    return store.read(OWNER, lambda tx: tx.inbox.listed(list(InboxState)))


def run_named(name: str) -> Run:
    return Run(name, "segue gateway", name, "boot", 7, "1", time.time(), time.time())


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What others put down is noticed soon."""
    monkeypatch.setattr("segue.gateway.lanes.LOOK_SECONDS", 0.05)


def test_a_message_is_answered_in_the_lane_in_which_it_waited_whatever_the_settings_are_now(store: SqlStore) -> None:
    stage = Stage()
    first = Building(store, stage, name="one")

    async def take_in() -> None:
        first.gateway.lanes.begin_nothing_more()
        stage.say(dm(), "old")
        await first.taken_in()

    first.run(take_in)
    second = Building(store, stage, name="two", keys=KeyRules(dm_scope=DmScope.PER_PEER))

    async def answer() -> None:
        stage.say(dm(), "new")
        await second.quiet()

    second.run(answer)
    assert sorted(stage.posted_to("alice")) == ["You said: new", "You said: old"]
    assert [entry.state for entry in entries(store)] == ["done", "done"]
    talks = store.read(OWNER, lambda tx: [(one.lane_key, one.message_count) for one in tx.sessions.in_order()])
    assert sorted(talks, key=str) == [("agent:main:dm:scripted%3Aalice", 2), ("agent:main:scripted:dm:alice", 2)]


def test_a_command_in_a_lane_that_somebody_else_has_now_is_theirs_to_carry_out(store: SqlStore) -> None:
    stage, is_late = Stage(), False
    building = Building(store, stage, is_gone=lambda _: False)

    def steal(tx: Transaction) -> None:
        tx.leases.add_run(run_named("other"))
        tx.leases.take(lane_lease("agent:main:scripted:dm:alice"), "other", "owner", 3600.0)

    async def work() -> None:
        stage.say(dm(), "hello")
        await building.quiet()
        office = building.gateway.office
        carry_out = building.gateway.clerk.carry_out

        async def late(holder: LaneHolder | None, entry: Entry) -> None:
            nonlocal is_late
            is_late = True
            store.write(OWNER, steal)
            await carry_out(holder, entry)

        office._clerk.carry_out = late  # type: ignore[method-assign]
        stage.say(dm(), "/title Holidays")
        stage.say(dm(), "/nonsense")
        await building.taken_in()
        await until(lambda: is_late)
        await building.lane_looks.more(3)

    building.run(work)
    assert [entry.state for entry in entries(store)] == ["done", "waiting", "waiting"]
    assert stage.posted_to("alice") == ["You said: hello"]


def test_leaving_does_not_wait_for_a_command_that_takes_long(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command takes for ever: whoever waited for it would never come to an end."""
    monkeypatch.setattr("segue.gateway.gateway.LEAVING_SECONDS", 0.1)
    stage, has_begun = Stage(), asyncio.Event()

    async def slow(*_: object) -> str:
        has_begun.set()
        await asyncio.Event().wait()
        return "done"

    building = Building(store, stage, compress=slow)
    building.gateway.drain_seconds = 0.1

    async def work() -> None:
        stage.say(dm(), "hello")
        await building.quiet()
        stage.say(dm(), "/compress")
        await has_begun.wait()

    building.run(work)
    assert store.read(OWNER, lambda tx: tx.leases.open_runs()) == []
    assert entries(store)[-1].state == "waiting"


def test_what_cannot_be_begun_is_given_up_and_told(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    building = Building(store, stage)
    begun, tries = answering.begin_answer, 0

    def fails(tx: Transaction, batch: answering.Batch, *rest: object) -> object:
        nonlocal tries
        if batch.entries[0].text == "poison":
            tries += 1
            raise ZeroDivisionError
        return begun(tx, batch, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("segue.gateway.answering.begin_answer", fails)

    async def work() -> None:
        stage.say(dm(), "poison")
        await building.quiet()
        stage.say(dm(), "hello")
        await building.quiet()

    building.run(work)
    assert tries == 3
    assert [entry.state for entry in entries(store)] == ["dead", "done"]
    assert "fault of ours" in stage.posted_to("alice")[0]
    assert stage.posted_to("alice")[1:] == ["You said: hello"]


def test_what_is_retried_is_answered_though_something_was_stopped_since(store: SqlStore) -> None:
    stage = Stage()
    answers = iter([ModelError("down")])
    building = Building(store, stage, model=ScriptedModel(lambda request: next(answers, None) or echo(request)))

    async def work() -> None:
        stage.say(dm(), "important")
        await building.quiet()
        stage.say(dm(), "/stop")
        await building.quiet()
        store.write(OWNER, retry_messages, [1], time.time())
        await building.quiet()

    building.run(work)
    assert entries(store)[0].state == "done"


class Fragile(ScriptedPlatform):
    """Loses its connection when it is told to."""

    is_broken = False

    async def run(self, intake: Intake) -> None:
        inner = asyncio.create_task(super().run(intake))
        try:
            while not self.is_broken:
                await asyncio.sleep(0.02)
        finally:
            inner.cancel()
        raise ConnectionError("gone")


def test_stop_reaches_the_gateway_that_answers(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The platform goes over to a second one in the middle of an answer, which would never end by itself."""
    stage = Stage()
    for name in ("FIRST_PAUSE", "KEPT_SECONDS"):
        monkeypatch.setattr(f"segue.gateway.connecting.{name}", 0.05)
    fragile, held = Fragile(stage), HeldModel()
    one = Building(store, stage, name="one", run=run_named("one"), only=[fragile], model=held, is_gone=lambda _: False)
    two = Building(store, stage, name="two", run=run_named("two"), is_gone=lambda _: False)
    one.gateway.drain_seconds = two.gateway.drain_seconds = 0.1

    async def work() -> None:
        stops = asyncio.Event(), asyncio.Event()
        lives = [asyncio.create_task(one.gateway.run(stops[0]))]
        stage.say(dm(), "a b c d e f g h i j k l m n o p q r s t u v w x y z")
        await one.asked()
        lives.append(asyncio.create_task(two.gateway.run(stops[1])))
        fragile.is_broken = True
        await until(lambda: two.gateway.connections[0].link.is_up)
        stage.say(dm(), "/stop")
        await until(lambda: any("topped" in text for text in stage.posted_to("alice")))
        for stop in stops:
            stop.set()
        await asyncio.wait(lives)
        one.gateway.close()
        two.gateway.close()

    asyncio.run(work())


def test_who_has_nothing_to_do_in_a_lane_writes_nothing(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    one = Building(store, stage, name="one", run=run_named("one"), model=HeldModel(), is_gone=lambda _: False)
    other = [ScriptedPlatform(Stage(), "other")]
    two = Building(store, Stage(), name="two", run=run_named("two"), is_gone=lambda _: False, only=other)
    one.gateway.drain_seconds = 0.0
    takes: list[str] = []

    def counted(tx: Transaction, key: str, run_id: str, is_gone: IsGone) -> Lease:
        takes.append(key)
        return take_lane(tx, key, run_id, is_gone)

    async def work() -> None:
        stops = asyncio.Event(), asyncio.Event()
        lives = [asyncio.create_task(one.gateway.run(stops[0]))]
        for number in range(20):
            stage.say(dm(f"p{number}"), "a b c")
        await until(lambda: len(one.gateway.office.at_work_in) == 20)
        monkeypatch.setattr("segue.gateway.lanes.take_lane", counted)
        lives.append(asyncio.create_task(two.gateway.run(stops[1])))
        await two.lane_looks.more(3)
        found = list(takes)  # before the first one lets go of its lanes
        for stop in stops:
            stop.set()
        await asyncio.wait(lives)
        one.gateway.close()
        two.gateway.close()
        assert found == []

    asyncio.run(work())
