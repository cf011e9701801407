"""What is said beside an answer that is being written, and what is sent of the answers."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from lane_house import Building, HeldModel, dm, echo, let_time_pass
from places import Probe
from waiting import until

from segue.core.errors import ModelError
from segue.core.events import Reply, ToolCall
from segue.core.inbound import Inbound
from segue.core.inbox import Entry
from segue.core.keys import KeyRules
from segue.core.leases import Lease
from segue.core.policy import ResetMode, ResetPolicies, ResetPolicy
from segue.core.queueing import Drop, QueueMode, QueueRules
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sending import Action, SendPolicy
from segue.core.sources import SessionSource
from segue.gateway import lanes
from segue.gateway.holding import take_lane
from segue.ports.model import Request
from segue.ports.store import Transaction
from segue.sessions.over_cap import NOT_TAKEN
from segue.sessions.requeueing import cancel_messages
from segue.storage.store import SqlStore
from segue.testing import ScriptedModel, ScriptedPlatform, Stage

ALICE = "agent:main:scripted:dm:alice"


def beside(building: Building, model: HeldModel, *lines: str, told: int = 0) -> list[str]:
    """Say something, and the lines while it is answered; what could be read then.

    The answer comes when so many other things have been told.
    """

    async def work() -> None:
        building.stage.say(dm(), "one")
        await building.asked()
        for line in lines:
            building.stage.say(dm(), line)
        await building.taken_in()
        await until(lambda: len(building.stage.posted) >= told)
        model.release()
        await building.quiet()

    building.run(work)
    return building.stage.posted_to("alice")


def test_everything_that_is_queued_has_a_turn_of_its_own_in_its_order(store: SqlStore) -> None:
    building = Building(store, Stage(), model=(model := HeldModel()))
    posted = beside(building, model, "/queue two", "/q three", "/queue four")
    assert posted == [f"You said: {word}" for word in ("one", "two", "three", "four")]


def test_a_burst_of_photos_is_answered_together(store: SqlStore) -> None:
    stage, model = Stage(), HeldModel(lambda _: Reply("Seen."))
    building = Building(store, stage, model=model)
    photos = [f"data:image/png;base64,{number}" for number in range(5)]

    def photo(number: int, url: str) -> Inbound:
        parts = [{"type": "image_url", "image_url": {"url": url}}]
        return Inbound(dm(), f"photo{number}", "", parts=parts, is_mention=True)

    async def work() -> None:
        stage.say(dm(), "one")
        await building.asked()
        for number, url in enumerate(photos):
            await building.gateway.desk.receive(photo(number, url))
        model.release()
        await building.quiet()

    building.run(work)
    first, second = building.model.asked
    assert [message["content"] for message in first.conversation] == ["one"]
    seen = [message["content"] for message in second.conversation if message["role"] == "user"][1:]
    assert [part["image_url"]["url"] for content in seen for part in content] == photos
    assert stage.posted_to("alice") == ["Seen.", "Seen."]


def test_what_is_queued_is_kept_while_its_platform_is_not_connected(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "LOOK_SECONDS", 0.05)
    stage = Stage()
    building = Building(store, stage, model=HeldModel())
    building.gateway.drain_seconds = 0.01

    async def cut_off() -> None:
        stage.say(dm(), "one")
        await building.asked()
        for line in ("/queue two", "/queue three"):
            stage.say(dm(), line)
        await building.taken_in()

    building.run(cut_off)
    away = Building(store, Stage(), name="away", only=[ScriptedPlatform(Stage(), "other")])

    away.run(lambda: away.lane_looks.more(3))
    assert stage.posted == []
    back = Building(store, stage, name="back")
    back.run(back.quiet)
    assert stage.posted_to("alice") == ["You said: one", "You said: two", "You said: three"]


@pytest.mark.parametrize("command", ["/new", "/reset"])
def test_a_new_conversation_cancels_what_waits(store: SqlStore, command: str) -> None:
    building = Building(store, Stage(), model=(model := HeldModel()))
    posted = beside(building, model, "two", "/queue three", command)
    assert len(posted) == 1
    assert posted[0].startswith("A new conversation begins.")
    cancelled = store.read(OWNER, lambda tx: tx.inbox.listed(("cancelled",)))
    assert [entry.text for entry in cancelled] == ["one", "two", "three"]


def test_steering_is_heard_by_the_answer_that_is_being_written(store: SqlStore) -> None:
    has_begun, has_spoken = asyncio.Event(), asyncio.Event()

    async def waits(_: dict[str, Any]) -> str:
        has_begun.set()
        await has_spoken.wait()
        return "fine"

    def answer(request: Request) -> Reply:
        said = [str(one["content"]) for one in request.conversation if one["role"] == "user"]
        if len(request.conversation) == 1:
            return Reply("Let me see.", (ToolCall("c1", "probe"),))
        return Reply(" | ".join(said))

    stage = Stage()
    building = Building(store, stage, model=ScriptedModel(answer), tools=[Probe(waits)])

    async def work() -> None:
        stage.say(dm(), "soup")
        await has_begun.wait()
        stage.say(dm(), "/steer with leeks")
        await building.taken_in()
        has_spoken.set()
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice") == ["soup | with leeks"]


def test_a_lane_in_which_everything_was_heard_is_left_alone(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def counted(tx: Transaction, key: str, *rest: Any) -> Lease:
        taken.append(key)
        return take_lane(tx, key, *rest)

    monkeypatch.setattr(lanes, "take_lane", counted)
    building = Building(store, Stage(), model=(model := HeldModel()))
    assert beside(building, model, "/status", told=1)[-1] == "You said: one"
    assert len(taken) <= 3


def test_who_is_to_be_heard_is_not_heard_before_those_who_came_too_late_for_an_earlier_turn(store: SqlStore) -> None:
    stage, is_used, may_end = Stage(), asyncio.Event(), asyncio.Event()

    async def look(_arguments: dict[str, Any]) -> str:
        is_used.set()
        await may_end.wait()
        return "seen"

    def answer(request: Request) -> Reply:
        last = request.conversation[-1]
        if last["content"] == "two":
            return Reply("", (ToolCall("c1", "probe"),), finish_reason="tool_calls")
        return echo(request)

    queue = QueueRules(QueueMode.STEER, timedelta(0))
    building = Building(store, stage, model=(model := HeldModel(answer)), tools=[Probe(look)], queue=queue)

    async def work() -> None:
        stage.say(dm(), "one")
        await building.asked()
        stage.say(dm(), "/queue two")
        stage.say(dm(), "three")
        await building.taken_in()
        model.release()
        await is_used.wait()
        stage.say(dm(), "four")
        await building.taken_in()
        may_end.set()
        await building.quiet()

    building.run(work)
    told = [message["content"] for message in building.model.asked[-1].conversation if message["role"] == "user"]
    assert told == ["one", "two", "three", "four"]


def test_what_comes_meanwhile_is_answered_together_also_where_adapters_name_each_message(store: SqlStore) -> None:
    stage, model = Stage(), HeldModel()
    building = Building(store, stage, model=model)

    async def work() -> None:
        stage.say(dm(message_id="1"), "one")
        await building.asked()
        stage.say(dm(message_id="2"), "two")
        stage.say(dm(message_id="3"), "three")
        await building.taken_in()
        model.release()
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice") == ["You said: one", "You said: two | three"]


@pytest.mark.parametrize("drop", Drop)
def test_no_more_steers_an_agent_than_may_wait(store: SqlStore, drop: Drop) -> None:
    stage, have_come = Stage(), asyncio.Event()

    async def look(_arguments: dict[str, Any]) -> str:
        await have_come.wait()
        return "looked"

    def answer(request: Request) -> Reply:
        is_first = request.conversation[-1]["role"] == "user" and len(model.asked) == 1
        return Reply("", (ToolCall("1", "probe", "{}"),)) if is_first else echo(request)

    model = ScriptedModel(answer)
    rules = QueueRules(QueueMode.STEER, timedelta(0), cap=3, drop=drop)
    building = Building(store, stage, model=model, tools=[Probe(look)], queue=rules)

    async def work() -> None:
        stage.say(dm(), "go")
        await building.asked()
        for number in range(8):
            stage.say(dm(), f"n{number}")
        await building.taken_in()
        assert len(store.read(OWNER, lambda tx: tx.inbox.waiting(ALICE))) == 3
        have_come.set()
        await building.quiet()

    building.run(work)
    heard = "n0 | n1 | n2" if drop is Drop.NEW else "n5 | n6 | n7"
    assert stage.posted_to("alice")[-1] == f"You said: {heard}"


@pytest.mark.parametrize("how", ["edited", "cancelled"])
def test_what_is_taken_back_before_the_agent_has_heard_it_is_never_heard(store: SqlStore, how: str) -> None:
    stage, is_taken_back = Stage(), asyncio.Event()

    async def look(_arguments: dict[str, Any]) -> str:
        await is_taken_back.wait()
        return "looked"

    def answer(request: Request) -> Reply:
        is_first = request.conversation[-1]["role"] == "user"
        return Reply("", (ToolCall("1", "probe", "{}"),)) if is_first and len(model.asked) == 1 else Reply("done")

    model = ScriptedModel(answer)
    building = Building(store, stage, model=model, tools=[Probe(look)])

    def entries(state: str) -> list[Entry]:
        return store.read(OWNER, lambda tx: tx.inbox.listed([state]))

    async def work() -> None:
        stage.say(dm(), "book a table")
        await building.asked()
        stage.say(dm(), "/steer pay with my card 4111", message_id="x")
        await building.taken_in()
        if how == "edited":
            stage.say(dm(), "/steer pay in cash", message_id="x", edit="1")
            await building.taken_in()
        else:
            store.write(OWNER, cancel_messages, [entries("waiting")[0].id], 1.0)  # as at the console
        is_taken_back.set()
        await building.quiet()

    building.run(work)
    heard = str([request.conversation for request in model.asked])
    assert "4111" not in heard
    assert ("in cash" in heard) == (how == "edited")
    assert [entry.text for entry in entries("cancelled")] == ["pay with my card 4111"]
    assert "4111" not in [entry.text for entry in entries("done")]


def test_sending_is_turned_off_and_on_for_a_conversation(store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage, keys=KeyRules(owners=frozenset({"scripted:alice"})))

    async def work() -> None:
        for line in ("/send off", "silent", "/send on", "loud", "/send off", "/send inherit", "as usual"):
            stage.say(dm(), line)
            await building.quiet()

    building.run(work)
    answers = [text for text in stage.posted_to("alice") if text.startswith("You said")]
    assert answers == ["You said: loud", "You said: as usual"]
    assert [request.conversation[-1]["content"] for request in building.model.asked] == ["silent", "loud", "as usual"]


@pytest.mark.parametrize("is_denied", [False, True])
def test_what_the_program_says_by_itself_is_held_back_like_an_answer(store: SqlStore, is_denied: bool) -> None:
    def fails(request: Request) -> Reply | ModelError:
        return ModelError("The key is wrong.") if "fail" in str(request.conversation[-1]["content"]) else echo(request)

    stage, policy = Stage(), SendPolicy(default=Action.DENY if is_denied else Action.ALLOW)
    rules = QueueRules(QueueMode.FOLLOWUP, timedelta(0), cap=1, drop=Drop.NEW)
    model = HeldModel(fails)
    posted = beside(Building(store, stage, model=model, policy=policy, queue=rules), model, "fail", "too many", "/help")
    assert (ModelError.public_text in posted, NOT_TAKEN in posted) == (not is_denied, not is_denied)
    assert any("/help" in text for text in posted)  # whoever gives a command is always answered
    suppressed = store.read(OWNER, lambda tx: tx.outbox.listed(["suppressed"]))
    assert {letter.what for letter in suppressed} == ({"reply", "notice"} if is_denied else set())


@pytest.mark.parametrize("notify", [True, False])
def test_a_reset_is_told_only_where_people_want_to_know(store: SqlStore, notify: bool) -> None:
    stage = Stage()
    brief = ResetPolicies(ResetPolicy(ResetMode.IDLE, idle=timedelta(hours=1), notify=notify))
    building = Building(store, stage, policies=brief)

    async def work() -> None:
        stage.say(dm(), "one")
        await building.quiet()
        let_time_pass(store, timedelta(hours=2))
        stage.say(dm(), "two")
        await building.quiet()

    building.run(work)
    assert [row.reason for row in store.read(OWNER, lambda tx: tx.lanes.resets(ALICE))] == ["idle"]
    first, *notices, last = stage.posted_to("alice")
    assert (first, last) == ("You said: one", "You said: two")
    assert [text.startswith("A new conversation begins") for text in notices] == [True] * notify


@pytest.mark.parametrize("is_shared", [False, True])
def test_in_a_group_one_stops_ones_own_turn_unless_it_is_everybodys(store: SqlStore, is_shared: bool) -> None:
    stage = Stage()
    keys = KeyRules(group_sessions_per_user=not is_shared)
    building = Building(store, stage, model=(model := HeldModel()), keys=keys)

    def of(person: str) -> SessionSource:
        return SessionSource(
            platform="scripted", chat_type="group", chat_id="room", user_id=person, user_name=person.title()
        )

    async def work() -> None:
        stage.say(of("alice"), "a long task")
        await building.asked()
        stage.say(of("bob"), "/stop")
        await building.taken_in()
        model.release()
        await building.quiet()
        stage.say(of("bob"), "hello")
        await building.quiet()

    building.run(work)
    told = str(building.model.asked[-1].conversation)
    assert ("a long task" in told) is ("[Alice] a long task" in told) is is_shared
    was_answered = any("a long task" in text and "hello" not in text for text in stage.posted_to("room"))
    assert was_answered is not is_shared


def test_more_lanes_than_can_be_worked_in_have_their_turn_in_order(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "MOST_AT_WORK", 2)
    begin, begun = lanes.Lanes._begin, list[str]()

    def noted(self: lanes.Lanes, key: str) -> None:
        begun.append(key)
        begin(self, key)

    monkeypatch.setattr(lanes.Lanes, "_begin", noted)
    stage = Stage()
    building = Building(store, stage)

    async def work() -> None:
        for time in ("first", "second"):
            for number in range(12):
                stage.say(dm(f"lane{number}"), f"{time} {number}")
        await building.quiet()

    building.run(work)
    assert list(dict.fromkeys(begun)) == [f"agent:main:scripted:dm:lane{number}" for number in range(12)]
    for number in range(12):
        heard = " ".join(stage.posted_to(f"lane{number}"))
        assert heard.index(f"first {number}") < heard.index(f"second {number}")
