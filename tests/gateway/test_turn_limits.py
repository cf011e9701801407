"""Only so many turns run at once, and nobody who asks for many keeps another person waiting."""

import asyncio
import os
import statistics
import time
from collections.abc import AsyncGenerator

import pytest
from lane_house import Building, HeldModel, dm, echo
from waiting import DEADLINE, until

from segue.core.events import Reply, Text
from segue.core.sources import SessionSource
from segue.core.turn_slots import TurnLimits
from segue.ports.model import Request
from segue.storage.store import SqlStore
from segue.testing import ScriptedModel, Stage

SLOW_SECONDS = 0.3
ROUNDS = 11


def room(number: int, person: str = "mallory") -> SessionSource:
    return SessionSource(
        platform="scripted", chat_id=f"room{number}", chat_type="group", user_id=person, user_name=person.title()
    )


def test_a_person_has_so_many_turns_and_everybody_together(store: SqlStore) -> None:
    stage, model = Stage(), HeldModel()
    house = Building(store, stage, model=model, limits=TurnLimits(in_all=3, per_person=2))

    async def work() -> None:
        for number in range(6):
            stage.say(room(number), f"mallory's {number}")
        for person in ("bob", "carol"):
            stage.say(dm(person), f"{person}'s")
        await until(lambda: model.at_work == 3)
        await house.lane_looks.more(3)
        asked = " ".join(str(request.conversation[-1]["content"]) for request in model.asked)
        assert asked.count("mallory's") <= 2
        assert model.at_work == 3
        model.release()
        await house.quiet()
        assert len(stage.posted) == 8
        assert model.most_at_work == 3

    house.run(work)


def test_what_waits_in_line_can_be_stopped_and_hears_commands(store: SqlStore) -> None:
    stage, model = Stage(), HeldModel()
    house = Building(store, stage, model=model, limits=TurnLimits(in_all=1, per_person=1))

    async def work() -> None:
        stage.say(dm("alice"), "first")
        await house.asked()
        stage.say(dm("bob"), "second")
        stage.say(dm("carol"), "third")
        await house.taken_in()
        await house.lane_looks.more(2)
        stage.say(dm("bob"), "/stop")
        await until(lambda: stage.posted_to("bob"))
        model.release()
        await house.quiet()
        assert stage.posted_to("alice") == ["You said: first"]
        assert stage.posted_to("carol") == ["You said: third"]
        assert len(stage.posted_to("bob")) == 1
        assert len(model.asked) == 2

    house.run(work)


@pytest.mark.on_file
def test_those_who_wait_are_not_looked_at_again_and_again(store: SqlStore) -> None:
    stage, model = Stage(), HeldModel()
    house = Building(store, stage, model=model, limits=TurnLimits(in_all=1, per_person=1))
    begun: list[str] = []
    begin = house.gateway.lanes._begin

    def seen(key: str) -> None:
        begun.append(key)
        begin(key)

    house.gateway.lanes._begin = seen  # type: ignore[method-assign]

    async def work() -> None:
        for number in range(20):
            stage.say(dm(f"p{number}"), "hello")
        await house.taken_in()
        await until(lambda: len(begun) == 20)
        await house.lane_looks.more(4)
        assert len(begun) == 20
        model.release()
        await house.quiet()
        assert len(model.asked) == 20

    house.run(work)


class SlowForMallory(ScriptedModel):
    async def stream(self, request: Request) -> AsyncGenerator[Text | Reply]:
        if "slowly" in str(request.conversation[-1]["content"]):
            await asyncio.sleep(SLOW_SECONDS)
        async for piece in super().stream(request):
            yield piece


async def median_answer_time(house: Building, stage: Stage) -> float:
    """Of another person, who asks one thing after the other."""
    taken = []
    for _ in range(ROUNDS):
        before, began = len(stage.posted_to("bob")), time.monotonic()
        stage.say(dm("bob"), "quick")
        await until(lambda before=before: len(stage.posted_to("bob")) > before)  # type: ignore[misc]
        taken.append(time.monotonic() - began)
    return statistics.median(taken)


def ratio_beside_slow_turns(store: SqlStore, limits: TurnLimits) -> float:
    """How many times as long another person waits while one has 300 slow turns."""
    stage = Stage()
    house = Building(store, stage, model=SlowForMallory(echo), limits=limits)
    found = 0.0

    async def work() -> None:
        nonlocal found
        await median_answer_time(house, stage)
        quiet = await median_answer_time(house, stage)
        for number in range(300):
            stage.say(room(number), "slowly")
        await house.taken_in()
        busy = await median_answer_time(house, stage)
        assert len(stage.posted) < 300 + 3 * ROUNDS, "the slow turns were over before"
        found = busy / quiet
        print(f"quiet {quiet * 1000:.1f} ms, beside 300 slow turns {busy * 1000:.1f} ms: {found:.2f}")

    house.run(work, 4 * DEADLINE)
    return found


if os.environ.get("SEGUE_TORTURE"):  # they compare times, which tests beside them would change

    @pytest.mark.on_file
    @pytest.mark.torture
    def test_300_slow_turns_of_one_person_let_another_wait_at_most_twice_as_long(store: SqlStore) -> None:
        assert ratio_beside_slow_turns(store, TurnLimits()) <= 2

    @pytest.mark.on_file
    @pytest.mark.torture
    def test_without_a_limit_for_each_person_the_other_would_wait(store: SqlStore) -> None:
        """The control: all turns that there may be are taken."""
        assert ratio_beside_slow_turns(store, TurnLimits(in_all=8, per_person=8)) > 2
