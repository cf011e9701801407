"""Asking again: when, how long after, and never once something was shown."""

import asyncio
import math
from collections.abc import AsyncGenerator

import pytest
from waiting import DEADLINE, until

from segue.agent import trying
from segue.agent.trying import MOST_TRIES, GiveUp, Trying, Wait, decide
from segue.core.errors import (
    BadKey,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    NoModel,
    RateLimited,
    StreamBroken,
    UnknownModel,
    Unreachable,
)
from segue.core.events import Reasoning, Reply, Text
from segue.ports.model import Request

BUSY = ModelUnavailable("It is too busy.")
LIMITED = RateLimited("It takes no more questions.")

DECISIONS = [
    # error, tries so far, seconds so far, chance → decision
    (BUSY, 1, 0.0, 1.0, Wait(1.0)),
    (BUSY, 1, 0.0, 0.0, Wait(0.5)),
    (BUSY, 2, 3.0, 1.0, Wait(2.0)),
    (BUSY, 3, 6.0, 1.0, Wait(4.0)),
    (BUSY, 4, 9.0, 1.0, GiveUp()),
    (BUSY, 1, 59.5, 1.0, GiveUp()),
    (LIMITED, 1, 0.0, 1.0, Wait(1.0)),
    (RateLimited("", retry_after=20.0), 1, 0.0, 1.0, Wait(20.1)),
    (RateLimited("", retry_after=20.0), 1, 45.0, 1.0, GiveUp()),
    (RateLimited("", retry_after=0.0), 1, 0.0, 1.0, Wait(0.1)),
    (RateLimited("", retry_after=-5.0), 1, 0.0, 1.0, Wait(0.1)),
    (RateLimited("", retry_after=61.0), 1, 0.0, 0.0, GiveUp()),
    (RateLimited("", retry_after=math.inf), 1, 0.0, 0.0, GiveUp()),
    (StreamBroken(""), 1, 0.0, 1.0, Wait(1.0)),
    (StreamBroken(""), 1, 120.0, 1.0, GiveUp()),
    (BadKey(""), 1, 0.0, 1.0, GiveUp()),
    (UnknownModel(""), 1, 0.0, 1.0, GiveUp()),
    (ContextOverflow(""), 1, 0.0, 1.0, GiveUp()),
    (NoModel(""), 1, 0.0, 1.0, GiveUp()),
    (ModelError(""), 1, 0.0, 1.0, GiveUp()),
]


@pytest.mark.parametrize(("error", "tries", "elapsed", "chance", "decision"), DECISIONS)
def test_what_is_done_about_an_error(
    error: ModelError, tries: int, elapsed: float, chance: float, decision: Wait | GiveUp
) -> None:
    decided = decide(error, tries, elapsed, chance)
    assert type(decided) is type(decision)
    assert decided == pytest.approx(decision)
    assert decide(error, tries, elapsed, chance, has_begun=True) == GiveUp()


class Scripted:
    """A model that says what is written down, one list for each time it is asked."""

    name, provider = "some-model", "some-provider"

    def __init__(self, *answers: list[Text | Reply | ModelError]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def stream(self, request: Request) -> AsyncGenerator[Text | Reasoning | Reply]:
        self.asked += 1
        for said in self.answers.pop(0):
            if isinstance(said, ModelError):
                raise said
            yield said


async def ask(model: Trying) -> list[Text | Reasoning | Reply]:
    return [piece async for piece in model.stream(Request("", []))]


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trying, "_FIRST_PAUSE", 0.001)


@pytest.mark.usefixtures("hurry")
def test_a_model_that_was_busy_is_asked_again_and_that_is_told() -> None:
    model = Scripted([BUSY], [LIMITED], [StreamBroken("It broke off.")], [Text("Yes."), Reply("Yes.")])
    told: list[str] = []
    assert asyncio.run(ask(Trying(model, told.append))) == [Text("Yes."), Reply("Yes.")]
    assert (model.asked, len(told)) == (4, 3)
    assert told[0] == "It is too busy. Asking again in 1 second, and at most 4 times in all."


@pytest.mark.usefixtures("hurry")
def test_there_is_an_end_to_it() -> None:
    always: list[list[Text | Reply | ModelError]] = [[BUSY] for _ in range(9)]
    model = Scripted(*always)
    told: list[str] = []
    with pytest.raises(ModelUnavailable, match=r"^It is too busy\. It was asked 4 times\.$"):
        asyncio.run(ask(Trying(model, told.append)))
    assert (model.asked, len(told)) == (MOST_TRIES, 1)


def test_nobody_waits_for_a_model_that_is_not_there_when_another_is() -> None:
    gone = Unreachable("Nobody is there.")
    assert decide(gone, 1, 0.0, 1.0, has_other=True) == GiveUp()
    assert decide(gone, 1, 0.0, 1.0) == Wait(1.0)
    assert decide(BUSY, 1, 0.0, 1.0, has_other=True) == Wait(1.0)


def test_what_was_shown_is_never_shown_again() -> None:
    model = Scripted([Text("Y"), StreamBroken("It broke off.")], [Reply("Yes.")])
    told: list[str] = []
    with pytest.raises(StreamBroken):
        asyncio.run(ask(Trying(model, told.append)))
    assert (model.asked, told) == (1, [])


def test_waiting_can_be_stopped_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trying, "LONGEST_SECONDS", 200 * DEADLINE)
    told: list[str] = []

    async def stop() -> None:
        model = Scripted([RateLimited("Later.", retry_after=100 * DEADLINE)], [Reply("Yes.")])
        asking = asyncio.create_task(ask(Trying(model, told.append)))
        await until(lambda: told)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asking, DEADLINE)
        assert model.asked == 1

    asyncio.run(stop())
