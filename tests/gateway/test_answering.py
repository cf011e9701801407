"""From a platform's message to its reply."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from lane_house import Building, HeldModel, dm, echo
from waiting import until

from segue.core.access import AccessRules, DmAccess
from segue.core.errors import Invalid
from segue.core.inbound import Cursor, Inbound, Receipt
from segue.core.inbox import Entry, entry_of
from segue.core.queueing import QueueRules, pause_before
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sources import SessionSource
from segue.core.streaming import Streaming
from segue.ports.platform import Arriving, Intake, Platform, Post, Sent, Traits
from segue.sessions.reading import conversation
from segue.storage.store import SqlStore
from segue.testing import ScriptedModel, Stage

LANE = "agent:main:scripted:dm:alice"


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
    stage, model = Stage(), HeldModel()
    building = Building(store, stage, model=model)

    async def work() -> None:
        stage.say(dm(), "one")
        await building.asked()
        stage.say(dm(), "two")
        stage.say(dm(), "three")
        await building.taken_in()
        model.release()
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice") == ["You said: one", "You said: two | three"]


async def pausing(building: Building) -> None:
    """Wait until a lane waits for what is said next."""
    await until(lambda: LANE in building.gateway.office._stirred, "a pause in the lane")


@pytest.mark.on_file
def test_a_burst_is_answered_together_when_it_has_been_quiet_for_a_moment(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the quiet after the third message is short enough to come to its end."""
    stage = Stage()
    building = Building(store, stage)

    def pause(said: list[Entry], _debounce: timedelta, now: float) -> float:
        return pause_before(said, timedelta(hours=5) if len(said) < 3 else timedelta(seconds=0.2), now)

    monkeypatch.setattr("segue.gateway.answering.pause_before", pause)

    async def work() -> None:
        for text in ("one", "two"):
            stage.say(dm(), text)
            await building.taken_in()
            await pausing(building)
        assert building.model.asked == []
        stage.say(dm(), "three")
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice") == ["You said: one | two | three"]


@pytest.mark.on_file
def test_a_command_and_what_is_answered_by_itself_wait_for_nothing(store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage, queue=QueueRules(debounce=timedelta(hours=5)))

    async def work() -> None:
        for text in ("/title Lisbon", "/queue one", "/new two"):
            stage.say(dm(), text)
            await building.quiet()
        stage.say(dm(), "three")
        await pausing(building)
        stage.say(dm(), "/think high")
        await building.quiet()
        stage.say(dm(), "four")
        await pausing(building)
        stage.say(dm(), "/stop")
        await building.quiet()

    building.run(work)
    answers = [text for text in stage.posted_to("alice") if text.startswith("You said")]
    assert answers == ["You said: one", "You said: two", "You said: three"]
    assert stage.posted_to("alice")[-1] == "1 waiting message cancelled."


@pytest.mark.on_file
def test_a_gateway_that_ends_does_not_wait_for_more(store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage, queue=QueueRules(debounce=timedelta(hours=5)))
    building.gateway.drain_seconds = 3600.0

    async def work() -> None:
        stage.say(dm(), "one")
        await pausing(building)

    building.run(work)
    assert [entry.text for entry in store.read(OWNER, lambda tx: tx.inbox.listed(("waiting",)))] == ["one"]


@pytest.mark.parametrize(
    ("said_at", "is_person", "now", "pause"),
    [
        ([100.0], True, 100.0, 2.0),
        ([100.0], True, 101.5, 0.5),
        ([100.0], True, 102.0, 0.0),
        ([100.0, 101.0], True, 101.0, 2.0),
        ([100.0, 119.0], True, 119.0, 1.0),
        ([100.0, 125.0], True, 125.0, 0.0),
        ([100.0], False, 100.0, 0.0),
        ([100.0], True, 50.0, 0.0),
    ],
)
def test_how_long_is_waited_for_more(said_at: list[float], is_person: bool, now: float, pause: float) -> None:
    """Two seconds after the last, twenty after the first; not for programs, and not when the clock was set back."""
    said = [entry_of(Inbound(dm(), f"{at}", "", is_person=is_person), "lane", "p", "", "p", at) for at in said_at]
    assert pause_before(said, timedelta(seconds=2), now) == pause


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


@pytest.mark.on_file
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
        told = await asyncio.gather(*map(receive, (good[0], bad, good[1])), return_exceptions=True)
        assert told[0] == told[2] == Receipt.ACCEPTED
        assert isinstance(told[1], Invalid)
        await building.quiet()

    building.run(work)


class Plain:
    """An adapter that is connected and sends, and can do nothing else."""

    name, account = "plain", ""
    traits = Traits(Arriving.NON_REPLAY, longest=100)

    def __init__(self) -> None:
        self.said: asyncio.Queue[Inbound] = asyncio.Queue()
        self.sent: list[Post] = []
        self.is_connected = False
        self.missed: list[str] = []

    def __getattr__(self, name: str) -> None:
        self.missed.append(name)
        raise AttributeError(name)

    async def run(self, intake: Intake) -> None:
        self.is_connected = True
        try:
            while True:
                await intake.receive(await self.said.get())
        finally:
            self.is_connected = False

    async def send(self, post: Post) -> Sent:
        self.sent.append(post)
        return Sent()


@pytest.mark.on_file
def test_an_adapter_need_only_be_connected_and_send(store: SqlStore) -> None:
    """What it does not say it can do, it is never asked for, although answers would be streamed."""
    plain = Plain()
    source = SessionSource(platform="plain", chat_id="alice")
    streaming, model = Streaming(0.01, 1), ScriptedModel(echo, pause=0.01)
    building = Building(store, Stage(), only=[cast(Platform, plain)], streaming=streaming, model=model)

    async def work() -> None:
        for number, text in enumerate(("one two three", "a long message of seven words " * 5)):
            plain.said.put_nowait(Inbound(source, f"m{number}", text))
        await until(lambda: plain.sent)
        await building.quiet()
        assert plain.is_connected

    building.run(work)
    assert not plain.is_connected
    assert plain.missed == []
    assert "".join(post.text for post in plain.sent).startswith("You said: one two three")
    assert all(len(post.text) <= 100 for post in plain.sent)


@pytest.mark.on_file
@pytest.mark.parametrize("access", [None, AccessRules(DmAccess.OPEN, frozenset({"*"}), allow_bots=True, mention=False)])
@pytest.mark.parametrize("source", [dm(), dm(is_bot=True), dm(chat_type="group")])
def test_what_we_said_ourselves_is_never_answered(
    store: SqlStore, access: AccessRules | None, source: SessionSource
) -> None:
    stage = Stage()
    building = Building(store, stage, access=access)
    own = Inbound(source, "1", "You said: hello", is_own=True, is_mention=True, cursor=Cursor("offset", "7"))

    async def work() -> None:
        receive = building.gateway.desk.receive
        assert await receive(own) is Receipt.IGNORED
        assert await receive(own._replace(message_id="2", text="/restart")) is Receipt.IGNORED
        assert await receive(own._replace(message_id="3", text="hi", is_own=False)) is Receipt.ACCEPTED, "the control"
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice") == ["You said: hi"]
    assert store.read(OWNER, lambda tx: tx.inbox.cursor("scripted", "", "offset")) == "7"  # it is not brought again


def test_an_answer_says_which_message_it_is_for(store: SqlStore) -> None:
    plain = Plain()
    source = SessionSource(platform="plain", chat_id="alice", guild_id="the yard", message_id="m1")
    building = Building(store, Stage(), only=[cast(Platform, plain)])

    async def work() -> None:
        plain.said.put_nowait(Inbound(source, "m1", "hello"))
        await until(lambda: plain.sent)
        await building.quiet()

    building.run(work)
    (post,) = plain.sent
    assert (post.reply_to, post.route) == ("m1", source)


def test_an_answer_that_goes_elsewhere_leaves_the_origin_of_the_lane_as_it_is(store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage)
    kitchen = SessionSource(platform="scripted", chat_id="kitchen")

    async def work() -> None:
        stage.say(dm(), "one")
        await building.quiet()
        moved = Inbound(dm(), "moved", "two", route=kitchen, is_mention=True)
        await building.gateway.desk.receive(moved)
        await building.quiet()

    building.run(work)
    assert (stage.posted_to("alice"), stage.posted_to("kitchen")) == (["You said: one"], ["You said: two"])
    lane = store.read(OWNER, lambda tx: tx.lanes.find("agent:main:scripted:dm:alice"))
    assert lane is not None
    assert lane.origin == dm()
    said = [message["content"] for message in store.read(OWNER, conversation, str(lane.session_id))]
    assert said == ["one", "You said: one", "two", "You said: two"]
