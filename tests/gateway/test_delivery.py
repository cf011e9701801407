"""What is sent when a platform does not behave as the port has it."""

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import pytest
from lane_house import Building, dm
from waiting import DEADLINE, until

from segue.core.chunks import MEASURES, chunks
from segue.core.events import Reply
from segue.core.outbox import MARK, Letter
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.gateway.delivery import MOST_CHATS
from segue.ports.platform import Post, SendFailed, SendLater, SendRefused, SendUnknown, Sent, Traits, Units
from segue.sessions.delivering import LONGEST_REASON, pause_after
from segue.storage.outbox import SqlOutbox
from segue.storage.store import SqlStore
from segue.testing import ScriptedModel, ScriptedPlatform, Stage
from segue.testing.platform import TRAITS

EVERY = ("pending", "sending", "unknown", "delivered", "dead")


@pytest.fixture(autouse=True)
def _brief_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.gateway.delivery.pause_after", lambda attempts: 0.1 * pause_after(attempts))


def letters(store: SqlStore) -> list[Letter]:
    return store.read(OWNER, lambda tx: tx.outbox.listed(EVERY))


def ask(building: Building) -> None:
    """Somebody says hello, and all of it comes to its end."""

    async def work() -> None:
        building.stage.say(dm(), "hello")
        await building.quiet()

    building.run(work)


class Odd(ScriptedPlatform):
    """Takes what it is sent, and then raises or returns something, the first times."""

    def __init__(self, stage: Stage, oddly: Callable[[], Sent], times: int = 1) -> None:
        super().__init__(stage)
        self.asked = 0
        self._oddly, self._times = oddly, times

    async def send(self, post: Post) -> Sent:
        self.asked += 1
        sent = await super().send(post)
        return self._oddly() if self.asked <= self._times else sent


def raising(error: BaseException) -> Callable[[], Sent]:
    def oddly() -> Sent:
        raise error

    return oddly


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("message_id"), "KeyError: 'message_id'"),
        (SendFailed("It was not to be."), "SendFailed: It was not to be."),
        (asyncio.CancelledError(), "CancelledError:"),
    ],
)
def test_whatever_else_a_platform_raises_it_may_have_arrived(
    store: SqlStore, error: BaseException, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(has_key=False)
    platform = Odd(stage, raising(error))
    ask(Building(store, stage, only=[platform]))
    assert stage.posted_to("alice") == ["You said: hello", "(sent again) You said: hello"]
    assert [letter.state for letter in letters(store)] == ["delivered"]
    assert told in caplog.text


def test_what_a_platform_never_confirms_is_given_up_in_the_end(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.gateway.delivery.MOST_ATTEMPTS", 2)
    stage = Stage(has_key=False)
    ask(Building(store, stage, only=[Odd(stage, raising(KeyError("message_id")), times=99)]))
    assert len(stage.posted) == 2
    assert [(one.state, one.attempts, one.reason) for one in letters(store)] == [("dead", 2, "KeyError: 'message_id'")]


@pytest.mark.on_file
@pytest.mark.parametrize("sent", [Sent(cast(str, 12345)), None], ids=["a number", "nothing"])
def test_a_platform_that_names_it_in_an_odd_way_has_it(store: SqlStore, sent: Sent) -> None:
    stage = Stage()
    ask(Building(store, stage, only=[Odd(stage, lambda: sent)]))
    assert stage.posted_to("alice") == ["You said: hello"]
    assert [letter.state for letter in letters(store)] == ["delivered"]


@pytest.mark.parametrize("kind", [SendRefused, SendUnknown])
def test_what_a_platform_says_of_its_failure_can_be_kept(
    store: SqlStore, kind: type[SendFailed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.gateway.delivery.pause_after", lambda _: 3600.0)
    monkeypatch.setattr("segue.gateway.gateway.LEAVING_SECONDS", 0.1)
    stage = Stage()
    platform = Odd(stage, raising(kind("no\x00such\nchat: \ud83d " + "x" * 10_000)))
    building = Building(store, stage, only=[platform])

    async def work() -> None:
        stage.say(dm(), "hello")
        await until(lambda: any(one.reason for one in letters(store)))
        [letter] = letters(store)
        assert letter.attempts == platform.asked == 1
        assert (letter.reason or "").startswith("nosuch chat: ")
        assert len(letter.reason or "") == LONGEST_REASON

    building.run(work)


class Strict(ScriptedPlatform):
    """Refuses what is too long, and loses its first answer to each message."""

    def __init__(self, stage: Stage, traits: Traits) -> None:
        super().__init__(stage, traits=traits)
        self._lost: set[str] = set()

    async def send(self, post: Post) -> Sent:
        if MEASURES[self.traits.units](post.text) > self.traits.longest:
            raise SendRefused("The message is too long.")
        sent = await super().send(post)
        if post.key not in self._lost:
            self._lost.add(post.key)
            raise SendUnknown("The connection was reset.")
        return sent


@pytest.mark.on_file
@pytest.mark.parametrize("units", list(Units))
def test_the_mark_of_what_is_sent_again_has_room(store: SqlStore, units: Units) -> None:
    said = "🙂" * 60
    stage = Stage(has_key=False)
    platform = Strict(stage, TRAITS._replace(longest=100, units=units))
    ask(Building(store, stage, only=[platform], model=ScriptedModel(lambda _: Reply(said))))
    assert {letter.state for letter in letters(store)} == {"delivered"}
    again = [text for text in stage.posted_to("alice") if text.startswith(MARK)]
    assert "".join(text.removeprefix(MARK) for text in again) == said


@pytest.mark.on_file
def test_where_there_is_no_room_for_the_mark_the_words_go_before(store: SqlStore) -> None:
    stage = Stage(has_key=False)
    platform = Strict(stage, TRAITS._replace(longest=20))
    ask(Building(store, stage, only=[platform], model=ScriptedModel(lambda _: Reply("x" * 20))))
    assert stage.posted_to("alice") == ["x" * 20] * 2


@pytest.mark.on_file
def test_where_what_is_sent_has_a_key_a_piece_is_as_long_as_it_may_be(store: SqlStore) -> None:
    stage, said = Stage(), "x" * 250
    platform = Strict(stage, TRAITS._replace(longest=100))
    ask(Building(store, stage, only=[platform], model=ScriptedModel(lambda _: Reply(said))))
    assert stage.posted_to("alice") == chunks(said, 100)


class Hanging(ScriptedPlatform):
    """Never answers in some chats."""

    async def send(self, post: Post) -> Sent:
        if post.route.chat_id.startswith("silent"):
            await asyncio.Event().wait()
        return await super().send(post)


def test_chats_in_which_nothing_is_answered_do_not_stop_the_others(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.gateway.delivery.LONGEST_SEND", 0.5)
    monkeypatch.setattr("segue.gateway.gateway.LEAVING_SECONDS", 0.1)
    stage = Stage()
    building = Building(store, stage, only=[Hanging(stage)])

    async def work() -> None:
        for number in range(MOST_CHATS):
            stage.say(dm(f"silent{number}"), "hello")
        await until(lambda: sum(letter.attempts > 0 for letter in letters(store)) == MOST_CHATS)
        stage.say(dm("bob"), "and me?")
        await until(lambda: stage.posted_to("bob"))
        await until(lambda: any(letter.reason for letter in letters(store)))
        assert {letter.reason for letter in letters(store)} == {None, "The platform did not answer within 0.5 seconds."}

    building.run(work)


@pytest.mark.parametrize("rounds", range(4))
@pytest.mark.on_file
def test_whoever_ends_it_in_the_moment_in_which_it_is_woken_ends_it(store: SqlStore, rounds: int) -> None:
    building = Building(store, Stage())
    delivery = building.gateway.connections[0].delivery

    async def work() -> None:
        await until(lambda: delivery.is_running and delivery.is_idle())
        working = next(task for task in asyncio.all_tasks() if "Delivery.run" in repr(task.get_coro()))
        delivery.wake()
        for _ in range(rounds):
            await asyncio.sleep(0)
        working.cancel()
        await asyncio.wait({working}, timeout=DEADLINE)
        assert working.cancelled()

    building.run(work)


class Limited(ScriptedPlatform):
    """Is busy for some times, and says that this is over at once."""

    def __init__(self, stage: Stage, times: int) -> None:
        super().__init__(stage)
        self.moments: list[float] = []
        self._times = times

    async def send(self, post: Post) -> Sent:
        self.moments.append(time.monotonic())
        if len(self.moments) <= self._times:
            raise SendLater("Too many requests; retry after 0.", 0)
        return await super().send(post)


def test_a_platform_that_is_busy_is_given_time_even_if_it_asks_for_none(store: SqlStore) -> None:
    stage = Stage()
    platform = Limited(stage, 2)
    ask(Building(store, stage, only=[platform]))
    assert stage.posted_to("alice") == ["You said: hello"]
    gaps = [after - before for before, after in pairwise(platform.moments)]
    assert [gap >= 0.1 * pause_after(number) - 0.05 for number, gap in enumerate(gaps, 1)] == [True, True]


def test_where_much_waits_to_be_sent_it_is_not_gone_through_for_every_answer(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.gateway.delivery.MANY", 3)
    monkeypatch.setattr("segue.gateway.delivery.LOOK_SECONDS", 0.5)
    monkeypatch.setattr("segue.gateway.gateway.LEAVING_SECONDS", 0.1)
    stage = Stage()
    building = Building(store, stage, only=[Hanging(stage)])
    looks = 0
    unsent = SqlOutbox.unsent

    def counted(self: SqlOutbox, *arguments: Any) -> list[Letter]:
        nonlocal looks
        looks += 1
        return unsent(self, *arguments)

    async def work() -> None:
        for number in range(6):
            stage.say(dm(f"silent{number}"), "hello")
        await until(lambda: sum(letter.attempts > 0 for letter in letters(store)) == 6)
        monkeypatch.setattr(SqlOutbox, "unsent", counted)
        monkeypatch.setattr("segue.gateway.delivery.LOOK_SECONDS", 3600.0)
        building.gateway.sent()
        await until(lambda: looks, "the last look for a long time")
        for _ in range(100):
            building.gateway.sent()
            await asyncio.sleep(0.002)

    building.run(work)
    assert looks == 1
