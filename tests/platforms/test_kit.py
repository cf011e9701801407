"""The kit finds what is wrong with an adapter: one that does as every adapter does passes it, others do not."""

import asyncio
import re

import pytest
from simulated_loop import SimulatedLoop
from stage_counterpart import StageCounterpart, Wire

from segue.core.errors import StoreError
from segue.ports.platform import Intake, Post, SendLater, SendUnknown, Sent
from segue.testing.kit import CASES, Case, cases_for
from segue.testing.platform import inbound_from
from segue.testing.stage import Update


def run(case: Case, other: StageCounterpart) -> None:
    """Nothing here waits for anything real, so time is but a number, and a case that waits in vain takes no time."""
    SimulatedLoop(seed=0).run(case.run(other))  # type: ignore[abstract]


@pytest.mark.parametrize("case", cases_for(StageCounterpart.cannot), ids=str)
@pytest.mark.parametrize("has_key", [True, False])
def test_the_scripted_platform_does_as_every_adapter_does(case: Case, has_key: bool) -> None:
    run(case, StageCounterpart(has_key=has_key))


class ConfirmsFirst(Wire):
    """Tells the platform that it has a message before that is so."""

    async def _bring(self, intake: Intake, number: int, update: Update) -> None:
        self.stage.confirm(number)
        await super()._bring(intake, number, update)


class DropsBacklog(Wire):
    """Begins with what is said from now on."""

    async def run(self, intake: Intake) -> None:
        for number, _ in self.stage.waiting():
            self.stage.confirm(number)
        await super().run(intake)


class SwallowsErrors(Wire):
    async def _bring(self, intake: Intake, number: int, update: Update) -> None:
        try:
            await super()._bring(intake, number, update)
        except StoreError:
            self.stage.confirm(number)


class NamesDeliveries(Wire):
    """Takes the number of a delivery for the name of a message."""

    async def _bring(self, intake: Intake, number: int, update: Update) -> None:
        await intake.receive(inbound_from(update)._replace(message_id=str(number)))
        self.stage.confirm(number)


class ForgetsVersions(Wire):
    async def _bring(self, intake: Intake, number: int, update: Update) -> None:
        await intake.receive(inbound_from(update)._replace(edit=""))
        self.stage.confirm(number)


class KnowsTooMuch(Wire):
    """Takes whatever it was not told of for not sent."""

    async def send(self, post: Post) -> Sent:
        try:
            return await super().send(post)
        except SendUnknown as error:
            raise SendLater(str(error)) from None


class TriesAgain(Wire):
    """Sends again by itself, under another key."""

    async def send(self, post: Post) -> Sent:
        try:
            return await super().send(post)
        except SendUnknown:
            return await super().send(post._replace(key=f"{post.key}:again"))


class SaysNothingOfWaiting(Wire):
    async def send(self, post: Post) -> Sent:
        try:
            return await super().send(post)
        except SendLater as error:
            raise SendLater(str(error)) from None


class NeverConnected(Wire):
    async def run(self, intake: Intake) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("adapter", "name"),
    [
        (ConfirmsFirst, "not put down"),
        (SwallowsErrors, "not put down"),
        (DropsBacklog, "backlog"),
        (DropsBacklog, "reconnected"),
        (DropsBacklog, "killed on the way"),
        (NamesDeliveries, "redelivered as new"),
        (ForgetsVersions, "edited"),
        (KnowsTooMuch, "lost after sending"),
        (TriesAgain, "lost after sending"),
        (SaysNothingOfWaiting, "busy"),
        (NeverConnected, "sent"),
    ],
)
def test_an_adapter_that_does_otherwise_does_not_pass(adapter: type[Wire], name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    with pytest.raises(AssertionError):
        run(case, StageCounterpart(adapter))


def test_a_reason_for_a_case_that_there_is_not_is_a_mistake() -> None:
    with pytest.raises(ValueError, match=re.escape("There is no case 'flying'.")):
        cases_for({"flying": "nobody can"})
