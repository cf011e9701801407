"""What happens to a conversation whose time is over: once, silently, and in nobody's way."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from lane_house import Building, HeldModel, dm, echo, let_time_pass
from waiting import DEADLINE, until

from segue.core.background import Process, ProcessState
from segue.core.errors import ModelError
from segue.core.events import Reply
from segue.core.ids import SessionId
from segue.core.keys import KeyRules
from segue.core.leases import Run
from segue.core.lifecycle import Lane
from segue.core.moments import DAY, instant
from segue.core.policy import ResetMode, ResetPolicies, ResetPolicy
from segue.core.preferences import Effort, Preferences, decode
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.silence import FAREWELL_REQUEST
from segue.core.turns import FAREWELL, Turn
from segue.core.usage import Purpose, Usage
from segue.gateway import watching
from segue.gateway.at_work import log_context
from segue.gateway.watching import Watching
from segue.hookspecs import Hooks, SessionFinalized
from segue.ports.model import Request
from segue.ports.store import Transaction
from segue.sessions.clearing import clear_rows
from segue.sessions.finding import get_session
from segue.sessions.opening import Arrival, Rules, open_session
from segue.sessions.retaining import Keeping
from segue.storage.store import SqlStore
from segue.testing import ScriptedModel, Stage

LANE = "agent:main:scripted:dm:alice"
IDLE = timedelta(hours=1)
BRIEF = ResetPolicies(default=ResetPolicy(ResetMode.IDLE, idle=IDLE))
OFTEN = Watching(seconds=0.02)
NEVER = Watching(seconds=600.0)


class Listener:
    def __init__(self) -> None:
        self.finalised: list[SessionFinalized] = []

    def session_finalized(self, fact: SessionFinalized) -> None:
        self.finalised.append(fact)


class Remembering:
    """A model that is asked, now and then, to write something down."""

    def __init__(self, farewell: Callable[[], Reply | ModelError] | None = None) -> None:
        usage = Usage(input_tokens=3, api_call_count=1)
        self._farewell = farewell or (lambda: Reply("NO_REPLY", usage=usage))
        self.farewells: list[list[str]] = []

    def __call__(self, request: Request) -> Reply | ModelError:
        if not is_farewell(request):
            return echo(request)
        self.farewells.append([str(one["content"]) for one in request.conversation[:-1] if one["role"] == "user"])
        return self._farewell()


def lane_of(store: SqlStore) -> Lane:
    lane = store.read(OWNER, lambda tx: tx.lanes.find(LANE))
    assert lane is not None
    return lane


def farewell_in(store: SqlStore, session_id: str) -> Turn | None:
    return store.read(OWNER, lambda tx: tx.turns.latest(session_id, FAREWELL))


def chosen_in(tx: Transaction, session_id: str | None) -> Preferences:
    """What a session has chosen."""
    return decode(get_session(tx, session_id or "").model_config)._replace(rest={})


def is_farewell(request: Request) -> bool:
    return bool(request.conversation[-1]["content"] == FAREWELL_REQUEST)


async def finalised(store: SqlStore) -> None:
    """Let the time of a session be over, and wait until the watcher has brought it to its end."""
    let_time_pass(store, 2 * IDLE)
    await until(lambda: lane_of(store).finalised_at, "the end of a session")


def test_the_watcher_looks_every_five_minutes(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    building, happened = Building(store, Stage()), list[float | str]()

    async def waited(seconds: float) -> bool:
        happened.append(round(seconds))
        if len(happened) == 5:
            raise asyncio.CancelledError
        return False  # as if so many seconds had passed

    async def look() -> None:
        happened.append("look")

    monkeypatch.setattr(building.gateway.watcher, "_is_woken", waited)
    monkeypatch.setattr(building.gateway.watcher, "look", look)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(building.gateway.watcher.run())
    building.gateway.close()
    assert happened == [300, "look", 300, "look", 300]


@pytest.mark.parametrize("rounds", range(4))
@pytest.mark.on_file
def test_whoever_ends_it_in_the_moment_in_which_it_is_woken_ends_it(store: SqlStore, rounds: int) -> None:
    building = Building(store, Stage())
    watcher = building.gateway.watcher

    async def work() -> None:
        running = asyncio.create_task(watcher.run())
        await asyncio.sleep(0)
        watcher.wake()
        for _ in range(rounds):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait({running}, timeout=DEADLINE)
        assert running.cancelled()

    asyncio.run(work())
    building.gateway.close()


def test_the_agent_of_an_expired_session_remembers_once_and_nobody_sees_it(store: SqlStore) -> None:
    stage, model, listener = Stage(), Remembering(), Listener()
    building = Building(
        store, stage, model=ScriptedModel(model), policies=BRIEF, watching=OFTEN, hooks=Hooks({"test": listener})
    )

    async def work() -> None:
        stage.say(dm(), "My locker has the code 1000.")
        await building.quiet()
        await finalised(store)
        await building.watcher_looks.more(5)

    building.run(work)
    session_id = lane_of(store).session_id
    assert model.farewells == [["My locker has the code 1000."]]
    assert listener.finalised == [SessionFinalized(LANE, "gateway-1", "scripted:alice", has_remembered=True)]
    assert session_id == "gateway-1", "the session stays open until somebody speaks"
    assert stage.posted_to("alice") == ["You said: My locker has the code 1000."]
    told = store.read(OWNER, lambda tx: tx.messages.of(session_id))
    assert [message.role for message in told] == ["user", "assistant"]
    assert Purpose.FLUSH in [one.purpose for one in store.read(OWNER, lambda tx: tx.ledger.of(session_id))]


def test_after_that_the_next_message_begins_a_session_and_the_old_one_is_not_gone_through_again(
    store: SqlStore,
) -> None:
    stage, model, listener = Stage(), Remembering(), Listener()
    building = Building(
        store, stage, model=ScriptedModel(model), policies=BRIEF, watching=OFTEN, hooks=Hooks({"test": listener})
    )

    async def work() -> None:
        for text in ("first", "second"):
            stage.say(dm(), text)
            await building.quiet()
            await finalised(store)

    building.run(work)
    assert model.farewells == [["first"], ["second"]]
    assert [fact.session_id for fact in listener.finalised] == ["gateway-1", "gateway-2"]


def test_model_and_thinking_that_were_chosen_end_with_the_session_that_was_finalised(store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage, policies=BRIEF, watching=OFTEN)

    async def work() -> None:
        for line in ("/model opus", "/think high", "/queue steer", "hello"):
            stage.say(dm(), line)
            await building.quiet()
        await finalised(store)
        stage.say(dm(), "hello again")
        await building.quiet()

    building.run(work)
    old = store.read(OWNER, lambda tx: tx.lanes.resets(LANE))[0].from_session
    chosen = [store.read(OWNER, chosen_in, name) for name in (old, lane_of(store).session_id)]
    assert chosen == [Preferences("opus", Effort.HIGH, queue="steer"), Preferences(queue="steer")]
    assert [request.effort for request in building.model.asked][::2] == ["high", None]


def test_when_a_message_comes_first_it_is_answered_first(store: SqlStore) -> None:
    stage, listener, model = Stage(), Listener(), Remembering()
    held = HeldModel(model, is_farewell)
    building = Building(store, stage, model=held, policies=BRIEF, watching=NEVER, hooks=Hooks({"test": listener}))

    async def work() -> None:
        stage.say(dm(), "first")
        await building.quiet()
        let_time_pass(store, 2 * IDLE)
        stage.say(dm(), "second")
        await building.quiet()
        farewell = farewell_in(store, "gateway-1")
        assert farewell is not None, "it is owed"
        assert farewell.ended_at is None
        assert "You said: second" in stage.posted_to("alice")
        held.release()
        await until(lambda: listener.finalised)

    building.run(work)
    farewell = farewell_in(store, "gateway-1")
    assert farewell is not None
    assert farewell.ended_at is not None
    assert model.farewells == [["first"]]
    assert [fact.session_id for fact in listener.finalised] == ["gateway-1"]


def test_who_writes_while_the_agent_remembers_is_answered_at_once(store: SqlStore) -> None:
    stage, listener, model = Stage(), Listener(), Remembering()
    held = HeldModel(model, is_farewell)
    building = Building(store, stage, model=held, policies=BRIEF, watching=OFTEN, hooks=Hooks({"test": listener}))

    async def work() -> None:
        stage.say(dm(), "first")
        await building.quiet()
        let_time_pass(store, 2 * IDLE)
        await until(lambda: model.farewells)
        stage.say(dm(), "second")
        await building.quiet()
        assert "You said: second" in stage.posted_to("alice")
        assert listener.finalised == [], "it was still remembering"
        held.release()
        await until(lambda: listener.finalised)

    building.run(work)
    assert model.farewells[0] == ["first"]
    assert model.farewells.count(["first"]) == 1
    assert listener.finalised[0].session_id == "gateway-1"


def test_a_session_in_which_nothing_was_said_has_nothing_to_remember(store: SqlStore) -> None:
    listener, model = Listener(), Remembering()
    arrival = Arrival(dm(), instant(time.time() - DAY), "empty")
    store.write(OWNER, open_session, arrival, Rules(KeyRules(), BRIEF, timedelta(hours=1)))
    building = Building(
        store, Stage(), model=ScriptedModel(model), policies=BRIEF, watching=OFTEN, hooks=Hooks({"test": listener})
    )

    async def work() -> None:
        await until(lambda: lane_of(store).finalised_at)

    building.run(work)
    assert model.farewells == []
    assert listener.finalised == [SessionFinalized(LANE, "empty", "scripted:alice", has_remembered=False)]


def test_where_no_notes_can_be_written_nobody_is_asked(store: SqlStore) -> None:
    stage, listener, model = Stage(), Listener(), Remembering()
    watching = replace(OFTEN, can_take_notes=lambda session: session.principal != "scripted:alice")
    building = Building(
        store, stage, model=ScriptedModel(model), policies=BRIEF, watching=watching, hooks=Hooks({"test": listener})
    )

    async def work() -> None:
        stage.say(dm("alice"), "first")
        stage.say(dm("bob"), "second")
        await building.quiet()
        let_time_pass(store, 2 * IDLE)
        await until(lambda: len(listener.finalised) == 2)

    building.run(work)
    assert model.farewells == [["second"]]
    assert {fact.principal: fact.has_remembered for fact in listener.finalised} == {
        "scripted:alice": False,
        "scripted:bob": True,
    }


@pytest.mark.parametrize("failures", [2, 3])
def test_it_is_tried_three_times_and_then_left_at_that(
    store: SqlStore, failures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []

    def warning(message: str, *details: object) -> None:
        warned.append(f"{message % details} [{log_context()}]")

    monkeypatch.setattr(watching._log, "warning", warning)
    left = iter(range(failures))
    stage, listener = Stage(), Listener()
    model = Remembering(lambda: Reply("NO_REPLY") if next(left, None) is None else ModelError("Nobody is there."))
    building = Building(
        store, stage, model=ScriptedModel(model), policies=BRIEF, watching=OFTEN, hooks=Hooks({"test": listener})
    )

    async def work() -> None:
        stage.say(dm(), "first")
        await building.quiet()
        await finalised(store)
        await building.watcher_looks.more(3)

    building.run(work)
    farewell = farewell_in(store, "gateway-1")
    assert farewell is not None
    assert len(model.farewells) == farewell.attempt == 3
    assert farewell.state == ("done" if failures == 2 else "failed")
    assert [fact.has_remembered for fact in listener.finalised] == [failures == 2]
    then = ["retried later"] * 2 + ["given up"] * (failures - 2)
    about = "Nobody is there. [{'session_id': 'gateway-1'}]"
    assert warned == [f"Agent wrote no notes of the expired session, {one}: {about}" for one in then]


def test_a_session_with_work_in_the_background_is_left_alone(store: SqlStore) -> None:
    stage, model = Stage(), Remembering()
    building = Building(store, stage, model=ScriptedModel(model), policies=BRIEF, watching=OFTEN)

    async def work() -> None:
        stage.say(dm(), "first")
        await building.quiet()
        process = Process("p", "gateway-1", "gateway", "sleep 9", "/", 1, ProcessState.RUNNING, 1.0)
        store.write(OWNER, lambda tx: tx.processes.insert(process))
        let_time_pass(store, 2 * IDLE)
        await building.watcher_looks.more(5)
        assert lane_of(store).finalised_at is None
        assert model.farewells == []
        store.write(OWNER, lambda tx: tx.processes.change("p", state=str(ProcessState.ENDED)))
        await until(lambda: lane_of(store).finalised_at)

    building.run(work)
    assert model.farewells == [["first"]]


def test_a_turn_that_runs_longer_than_the_silence_is_left_alone(store: SqlStore) -> None:
    stage, model = Stage(), Remembering()
    held = HeldModel(model)
    building = Building(store, stage, model=held, policies=BRIEF, watching=OFTEN)

    async def work() -> None:
        stage.say(dm(), "one two three")
        await building.asked()
        let_time_pass(store, 2 * IDLE)
        await building.watcher_looks.more(5)
        assert lane_of(store).finalised_at is None
        assert model.farewells == []
        let_time_pass(store, -2 * IDLE)
        held.release()
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice") == ["You said: one two three"]


def test_another_gateway_does_not_do_it_again(store: SqlStore) -> None:
    """Two gateways on one store look at the same time."""
    stage, model = Stage(), Remembering()
    models = {name: HeldModel(model, is_farewell) for name in ("one", "two")}

    def building(name: str) -> Building:
        held = models[name]
        return Building(store, stage, model=held, policies=BRIEF, watching=OFTEN, name=name, is_gone=lambda _: False)

    first, second = building("one"), building("two")

    async def work() -> None:
        stop = asyncio.Event()
        beside = asyncio.create_task(second.gateway.run(stop))
        stage.say(dm(), "first")
        await first.quiet()
        let_time_pass(store, 2 * IDLE)
        await until(lambda: model.farewells)
        both = (first.watcher_looks, second.watcher_looks)
        seen = sum(one.ended for one in both)
        await until(lambda: sum(one.ended for one in both) >= seen + 5)  # those of the one that does not do it
        for held in models.values():
            held.release()
        await until(lambda: lane_of(store).finalised_at)
        for one in both:
            await one.more(3)
        stop.set()
        await beside
        second.gateway.close()

    first.run(work)
    assert model.farewells == [["first"]]


def test_lanes_that_nobody_uses_are_forgotten_unless_something_goes_on_there(store: SqlStore) -> None:
    rules = Rules(KeyRules(), ResetPolicies(default=ResetPolicy(ResetMode.NONE)), timedelta(hours=1))
    old = instant(time.time() - 40 * DAY)
    for name in ("alice", "bob", "carol"):
        at = old if name != "carol" else instant(time.time())
        store.write(OWNER, open_session, Arrival(dm(name), at, name), rules)
    process = Process("p", "bob", "gateway", "sleep 9", "/", 1, ProcessState.RUNNING, 1.0)
    store.write(OWNER, lambda tx: tx.processes.insert(process))
    store.write(OWNER, lambda tx: tx.leases.add_run(Run("gateway", "segue chat", "h", "b", 1, "1", 1.0, 1.0)))
    watching = replace(OFTEN, max_age=timedelta(days=30), keeping=Keeping(30))
    building = Building(store, Stage(), policies=rules.policies, watching=watching, name="g2", is_gone=lambda _: False)

    async def work() -> None:
        await until(lambda: len(store.read(OWNER, lambda tx: tx.lanes.listed())) < 3)
        await building.watcher_looks.more(3)

    building.run(work)
    assert {lane.session_id for lane in store.read(OWNER, lambda tx: tx.lanes.listed())} == {"bob", "carol"}


def test_runs_and_leases_of_long_ago_are_forgotten_and_the_others_stay(store: SqlStore) -> None:
    now = store.read(OWNER, lambda tx: tx.leases.now())
    ended = {"old": now - 31 * DAY, "recent": now - 2 * DAY, "open": None}

    def work(tx: Transaction) -> None:
        for name, ended_at in ended.items():
            tx.leases.add_run(Run(name, "segue chat", "here", "b", 1, "1", 1.0, 1.0, ended_at))
            tx.leases.release(tx.leases.take(f"session:{name}", name, "owner", 1.0))

    store.write(OWNER, work)
    assert store.write(OWNER, clear_rows) == 1, "no lease is old enough"
    with store._engine.writing(9.0, OWNER) as executor:
        executor.run("UPDATE leases SET taken_at = :then", {"then": now - 8 * DAY})
    assert store.write(OWNER, clear_rows) == 2
    runs = store.read(OWNER, lambda tx: [name for name in ended if tx.leases.find_run(name)])
    leases = store.read(OWNER, lambda tx: [name for name in ended if tx.leases.find(f"session:{name}")])
    assert (runs, leases) == (["recent", "open"], ["open"])


def test_a_conversation_that_is_taken_up_again_is_remembered_from_where_it_was_left(store: SqlStore) -> None:
    stage, model = Stage(), Remembering()
    building = Building(store, stage, model=ScriptedModel(model), policies=BRIEF, watching=OFTEN)

    async def work() -> None:
        stage.say(dm(), "first")
        await building.quiet()
        await finalised(store)
        store.write(OWNER, _unfinalise)
        await until(lambda: lane_of(store).finalised_at)

    building.run(work)
    assert model.farewells == [["first"]], "nothing was said since"
    farewell = farewell_in(store, "gateway-1")
    assert farewell is not None
    assert farewell.first_seq == 2


def _unfinalise(tx: Transaction) -> None:
    lane = tx.lanes.find(LANE)
    assert lane is not None
    assert lane.session_id == SessionId("gateway-1")
    tx.lanes.change(lane._replace(finalised_at=None))
