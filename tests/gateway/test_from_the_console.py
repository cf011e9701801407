"""What is done at the console while a gateway runs: it notices by itself."""

import time
from datetime import UTC, datetime

import pytest
from lane_house import Building, HeldModel, dm, echo
from waiting import until

from segue.core.errors import ModelError
from segue.core.events import Reply
from segue.core.leases import Lease, Run, session_lease
from segue.core.preferences import decode
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.gateway.holding import ELSEWHERE
from segue.ports.model import Request
from segue.ports.store import Transaction
from segue.sessions.minding import Hand, renew_lane
from segue.sessions.requeueing import cancel_messages, dead_messages, retry_messages
from segue.storage.store import SqlStore
from segue.testing import ScriptedModel, Stage

ALICE = "agent:main:scripted:dm:alice"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What others put down is noticed soon."""
    monkeypatch.setattr("segue.gateway.lanes.LOOK_SECONDS", 0.05)


def test_a_message_that_is_retried_is_answered_by_the_gateway_that_runs(store: SqlStore) -> None:
    stage = Stage()
    is_broken = True

    def answer(request: Request) -> Reply:
        if is_broken:
            raise ModelError("The model is gone.")
        return echo(request)

    building = Building(store, stage, model=ScriptedModel(answer))

    async def work() -> None:
        nonlocal is_broken
        stage.say(dm(), "hello?")
        await building.quiet()
        (dead,) = store.read(OWNER, dead_messages)
        assert stage.posted_to("alice") == [dead.reason]
        is_broken = False
        store.write(OWNER, retry_messages, [dead.id], time.time())
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice")[-1] == "You said: hello? | hello?"
    assert [one.state for one in store.read(OWNER, lambda tx: tx.inbox.listed(("done", "dead")))] == ["done"]


def test_a_message_that_is_cancelled_while_another_is_answered_is_not_answered(store: SqlStore) -> None:
    stage, model = Stage(), HeldModel()
    building = Building(store, stage, model=model)

    async def work() -> None:
        stage.say(dm(), "one")
        await building.asked()
        stage.say(dm(), "two")
        stage.say(dm(), "three")
        await building.taken_in()
        waiting = store.read(OWNER, lambda tx: tx.inbox.waiting(ALICE))
        store.write(OWNER, cancel_messages, [waiting[0].id], time.time())
        model.release()
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice") == ["You said: one", "You said: three"]


def test_after_a_reset_at_the_console_the_conversation_is_a_new_one(store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage)

    async def work() -> None:
        stage.say(dm(), "one")
        await building.quiet()
        await until(lambda: not store.read(OWNER, lambda tx: tx.leases.unexpired("lane:")))
        store.write(OWNER, renew_lane, ALICE, "fresh", datetime.now(UTC), Hand("console", lambda _: False))
        stage.say(dm(), "two")
        await building.quiet()

    building.run(work)
    session = store.read(OWNER, lambda tx: tx.sessions.find("fresh"))
    assert session is not None
    assert session.system_prompt == f"You are on {ALICE}."
    assert [one.content for one in store.read(OWNER, lambda tx: tx.messages.of("fresh"))] == ["two", "You said: two"]


@pytest.mark.parametrize("config", [None, '{"effort": "high"}'])
def test_a_session_of_a_lane_that_has_no_system_prompt_gets_one_and_keeps_what_was_chosen(
    store: SqlStore, config: str | None
) -> None:
    stage = Stage()
    building = Building(store, stage)

    async def work() -> None:
        stage.say(dm(), "one")
        await building.quiet()
        name = session_of(store)
        store.write(OWNER, lambda tx: tx.sessions.change(name, system_prompt=None, model_config=config))
        stage.say(dm(), "two")
        await building.quiet()

    building.run(work)
    session = store.read(OWNER, lambda tx: tx.sessions.find(session_of(store)))
    assert session is not None
    assert session.system_prompt == f"You are on {ALICE}."
    assert decode(session.model_config).effort == (None if config is None else "high")
    assert [one.content for one in store.read(OWNER, lambda tx: tx.messages.of(session.id))][-2] == "two"


def session_of(store: SqlStore) -> str:
    lane = store.read(OWNER, lambda tx: tx.lanes.find(ALICE))
    assert lane is not None
    return str(lane.session_id)


def test_people_in_a_chat_are_not_told_where_a_conversation_is_open(store: SqlStore) -> None:
    """Neither when they go on with it nor when they want to go back to it; when it is closed there, it goes on."""
    stage = Stage()
    building = Building(store, stage, is_gone=lambda _: False)

    def open_at_the_console(tx: Transaction, session_id: str) -> Lease:
        now = tx.leases.now()
        tx.leases.add_run(Run("cli", "segue chat", "ceo-laptop.corp.example", "boot", 4242, "1", now, now))
        return tx.leases.take(session_lease(session_id), "cli", "scripted:alice", 3600.0)

    async def told(count: int) -> None:
        await until(lambda: len(stage.posted_to("alice")) >= count, f"message {count}")

    async def work() -> None:
        stage.say(dm(), "hello")
        await building.quiet()
        lane = store.read(OWNER, lambda tx: tx.lanes.find(ALICE))
        assert lane is not None
        assert lane.session_id is not None
        lease = store.write(OWNER, open_at_the_console, lane.session_id)
        stage.say(dm(), "are you there?")
        await told(2)
        stage.say(dm(), "/stop")
        await told(3)
        stage.say(dm(), "/new")
        await told(4)
        stage.say(dm(), f"/resume {lane.session_id}")
        await told(5)
        store.write(OWNER, lambda tx: tx.leases.release(lease))
        stage.say(dm(), f"/resume {lane.session_id}")
        await told(6)

    building.run(work)
    posted = stage.posted_to("alice")
    assert (posted[1], posted[4]) == (f"Your message waits. {ELSEWHERE}", ELSEWHERE)
    assert ELSEWHERE not in posted[5]
    assert not any(word in str(posted) for word in ("ceo-laptop", "4242", "segue chat", "--branch"))
