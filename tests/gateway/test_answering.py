"""From a platform's message to its reply."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from lane_house import Building, dm, echo

from segue.core.errors import Invalid
from segue.core.inbound import Inbound, Receipt
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.storage.store import SqlStore
from segue.testing import ScriptedModel, Stage


def test_a_message_is_answered_where_it_came_from(store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage)

    async def work() -> None:
        stage.say(dm("alice"), "hello")
        stage.say(dm("bob"), "good morning")
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice") == ["You said: hello"]
    assert stage.posted_to("bob") == ["You said: good morning"]
    assert [entry.state for entry in store.read(OWNER, lambda tx: tx.inbox.listed(("done",)))] == ["done"] * 2
    lane = store.read(OWNER, lambda tx: tx.lanes.find("agent:main:scripted:dm:alice"))
    assert lane is not None
    assert lane.session_id is not None


def test_what_is_brought_again_is_answered_once(store: SqlStore) -> None:
    stage = Stage(redelivery=0.9)
    building = Building(store, stage)

    async def work() -> None:
        for number in range(5):
            stage.say(dm(), f"message {number}")
            await building.quiet()

    building.run(work)
    assert stage.posted_to("alice") == [f"You said: message {number}" for number in range(5)]


def test_what_comes_while_an_answer_is_written_is_answered_together(store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage, model=ScriptedModel(echo, pause=0.1))

    async def work() -> None:
        stage.say(dm(), "one")
        await asyncio.sleep(0.15)
        stage.say(dm(), "two")
        stage.say(dm(), "three")
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice") == ["You said: one", "You said: two | three"]


@pytest.mark.parametrize("text", ["half a \ud800 character", "a NUL \x00 inside", "\x1b]0;title\x07"])
def test_whatever_somebody_says_is_taken_in_and_answered(store: SqlStore, text: str) -> None:
    stage = Stage()
    building = Building(store, stage)

    async def work() -> None:
        stage.say(dm("alice"), text)
        stage.say(dm("bob"), "and me?")
        await building.quiet()

    building.run(work)
    assert stage.posted_to("bob") == ["You said: and me?"]
    assert [entry.state for entry in store.read(OWNER, lambda tx: tx.inbox.listed(("done",)))] == ["done"] * 2


HALF = "half \ud83d"


@pytest.mark.parametrize(
    "hostile",
    [
        {"user_name": HALF},
        {"chat_name": "NUL \x00"},
        {"user_id": HALF},
        {"chat_id": HALF},
        {"thread_id": HALF, "chat_type": "group"},
        {"user_id": "é" * 5000},
        {"chat_id": "x" * 5000, "chat_type": "group"},
        {"message_id": HALF, "account": ""},
    ],
    ids=str,
)
def test_whoever_says_it_and_wherever_it_is_answered(store: SqlStore, hostile: dict[str, Any]) -> None:
    stage = Stage()
    building = Building(store, stage)

    async def work() -> None:
        stage.say(replace(dm("mallory"), **hostile), "hello")
        stage.say(replace(dm("mallory"), **hostile), "hello again")
        stage.say(dm("bob"), "and me?")
        await building.quiet()

    building.run(work)
    assert stage.posted_to("bob") == ["You said: and me?"]
    assert [entry.state for entry in store.read(OWNER, lambda tx: tx.inbox.listed(("done",)))] == ["done"] * 3


def test_ids_that_differ_stay_two_whatever_is_in_them(store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage)
    twins = ["a\ud800", "a\ud801", "b" * 600 + "1", "b" * 600 + "2"]

    async def work() -> None:
        for name in twins:
            stage.say(dm(name), "hello")
        await building.quiet()

    building.run(work)
    assert len({lane.key for lane in store.read(OWNER, lambda tx: tx.lanes.listed())}) == len(twins)
    assert len({lane.principal for lane in store.read(OWNER, lambda tx: tx.lanes.listed())}) == len(twins)


def test_what_can_have_no_lane_is_left_aside_and_told(store: SqlStore, caplog: pytest.LogCaptureFixture) -> None:
    building = Building(store, Stage())

    async def work() -> None:
        receive = building.gateway.desk.receive
        assert await receive(Inbound(replace(dm(), chat_type="tent"), "1", "hello")) == Receipt.IGNORED
        assert await receive(Inbound(dm(), "1", "hello")) == Receipt.ACCEPTED

    building.run(work)
    assert "'tent' is no type of chat" in caplog.text


def test_a_message_that_cannot_be_put_down_keeps_no_other_waiting(store: SqlStore) -> None:
    building = Building(store, Stage())

    async def work() -> None:
        bad = Inbound(dm("alice"), "1", "hello", parts=[{"text": object()}])
        good = [Inbound(dm(name), "1", "hello") for name in ("bob", "carol")]
        receive = building.gateway.desk.receive
        async with asyncio.timeout(10):
            told = await asyncio.gather(*map(receive, (good[0], bad, good[1])), return_exceptions=True)
        assert told[0] == told[2] == Receipt.ACCEPTED
        assert isinstance(told[1], Invalid)
        await building.quiet()

    building.run(work)
