"""What one life of a gateway leaves to the next, and which turns do not last."""

import asyncio
import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from lane_house import Building, HeldModel, dm
from lane_rows import ALICE, BOB, answered, begin, say
from waiting import until

from segue.agent import holding
from segue.agent.door import Door
from segue.agent.holding import Holder, Presence
from segue.core.access import AccessRules
from segue.core.errors import StoreFull, Unreachable
from segue.core.events import Reply
from segue.core.inbox import InboxState
from segue.core.leases import CRASHED, SILENT, Run, lane_lease, session_lease
from segue.core.lifecycle import Interruption, Lane, Phase, Suspension
from segue.core.moments import instant
from segue.core.pairing import PairedPerson
from segue.core.policy import ResetReason
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.turns import Turn
from segue.gateway import connecting, lanes
from segue.gateway.answering import CRASHED as GIVEN_UP
from segue.gateway.answering import PUT_OUT, STALE
from segue.gateway.holding import LaneHolder, take_lane
from segue.ports.platform import Intake
from segue.ports.store import Transaction
from segue.sessions import recovering, requeueing, turning
from segue.sessions.queueing import CutOff
from segue.sessions.recovering import interrupt_left
from segue.sessions.steering import get_lane, suspend_lane
from segue.sessions.watching import watch
from segue.storage.store import SqlStore
from segue.testing import ScriptedPlatform, Stage

CAROL = "agent:main:scripted:dm:carol"


def lane(store: SqlStore, key: str = ALICE) -> Lane:
    return store.read(OWNER, get_lane, key)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What others put down is noticed soon."""
    monkeypatch.setattr(lanes, "LOOK_SECONDS", 0.05)


def held() -> HeldModel:
    return HeldModel(lambda _: Reply("one two three"))


def leave_open(store: SqlStore, stage: Stage, reason: Interruption, name: str = "gateway") -> None:
    """A life that ends in the middle of an answer."""
    building = Building(store, stage, model=held(), name=name, is_gone=lambda _: False)
    building.gateway.drain_seconds = 0.01

    async def work() -> None:
        stop = asyncio.Event()
        living = asyncio.create_task(building.gateway.run(stop, lambda: reason))
        if not stage.said:
            stage.say(dm(), "count")
        await building.asked()
        stop.set()
        await living
        building.gateway.close()

    asyncio.run(work())


@pytest.mark.parametrize("reason", [Interruption.RESTART_DRAIN, Interruption.SHUTDOWN_DRAIN])
def test_what_the_drain_cut_off_is_marked_and_goes_on_in_the_same_session(
    store: SqlStore, reason: Interruption
) -> None:
    stage = Stage()
    leave_open(store, stage, reason)
    marked = lane(store)
    assert (marked.phase, marked.phase_reason) == (Phase.INTERRUPTED, reason)
    assert stage.posted == []
    again = Building(store, stage, name="again")
    again.run(again.quiet)
    assert stage.posted_to("alice") == ["You said: count"]
    assert (lane(store).phase, lane(store).session_id) == (Phase.ACTIVE, marked.session_id)


def test_whoever_lets_go_of_what_another_has_taken_over_does_not_end_it_for_them(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when /resume goes to a session to which the watcher is saying farewell."""
    monkeypatch.setattr(holding, "RENEWAL_SECONDS", 0.05)

    async def work() -> None:
        door = Door(store, OWNER)
        presence = Presence(door, Run("one", "segue gateway", "here", "boot", 7, "1", 1.0, 1.0), lambda _: False)

        async def expiry() -> float:
            held = await door.read(lambda tx: tx.leases.find(session_lease("s")))
            assert held is not None
            return held.expires_at

        async def beat_at() -> float:
            run = await door.read(lambda tx: tx.leases.find_run("one"))
            assert run is not None
            return run.beat_at

        async def beats(times: int) -> None:
            for _ in range(times):
                before = await beat_at()

                async def is_later(before: float = before) -> bool:
                    return await beat_at() > before

                await until(is_later, "another beat")

        await presence.begin()
        before = Holder(presence)
        await before.now_holds(await door.write(before.claim, "s", "owner"))
        after = LaneHolder(presence, await door.write(take_lane, ALICE, "one", presence.is_gone))
        await door.write(after.claim, "s", "owner")
        await after.now_holds(after.lease)
        await before.let_go()
        then = await expiry()
        await beats(3)
        assert await expiry() > then, "nobody keeps it any more"
        await after.let_go()
        await beats(3)
        assert await expiry() == 0
        await presence.end()
        door.close()

    asyncio.run(work())


def test_a_life_that_ends_well_marks_no_lane_and_says_so_in_its_row(store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage, is_gone=lambda _: False)

    async def work() -> None:
        stage.say(dm(), "hello")
        await building.quiet()

    building.run(work)
    run = store.read(OWNER, lambda tx: tx.leases.find_run("gateway"))
    assert run is not None
    assert (run.ended_at is not None, run.how) == (True, None)
    assert store.write(OWNER, interrupt_left, lambda _: True, time.time()) == []
    assert lane(store).phase is Phase.ACTIVE


def test_a_crash_marks_exactly_the_turns_that_were_open_and_once(store: SqlStore) -> None:
    answered(store, "finished", "bob")
    for person in ("alice", "carol"):
        turn = begin(store, say(store, "unfinished", person)).situation.turn
        store.write(OWNER, _begin_run, turn.run_id)
    store.write(OWNER, suspend_lane, CAROL, instant(5.0))
    assert set(store.write(OWNER, interrupt_left, lambda _: True, time.time())) == {ALICE, CAROL}
    marked = lane(store)
    assert (marked.phase, marked.phase_reason) == (Phase.INTERRUPTED, "restart_interrupted")
    assert (lane(store, BOB).phase, lane(store, CAROL).phase) == (Phase.ACTIVE, Phase.SUSPENDED)
    assert store.write(OWNER, interrupt_left, lambda _: True, time.time() + 60) == []
    assert lane(store) == marked


def test_however_often_it_is_restarted_an_answer_is_carried_on(store: SqlStore) -> None:
    stage = Stage()
    for life in ("first", "second", "third", "fourth"):
        leave_open(store, stage, Interruption.SHUTDOWN_DRAIN, life)
        assert lane(store).phase is Phase.INTERRUPTED
    last = Building(store, stage, name="last", is_gone=lambda _: False)
    last.run(last.quiet)
    assert stage.posted_to("alice") == ["You said: count"]
    assert lane(store).phase is Phase.ACTIVE


def test_however_often_the_store_fails_an_answer_is_carried_on(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    careful, failures = turning.end_turn, 0

    def end_turn(*arguments: Any, **more: Any) -> None:
        nonlocal failures
        if failures < 5:
            failures += 1
            raise StoreFull("The disk is full.")
        careful(*arguments, **more)

    monkeypatch.setattr(turning, "end_turn", end_turn)
    monkeypatch.setattr("segue.gateway.answering.FIRST_STORE_PAUSE", 0.01)
    stage = Stage()
    building = Building(store, stage)

    async def work() -> None:
        stage.say(dm(), "count")
        await building.quiet()

    building.run(work)
    assert failures == 5
    pauses = re.findall(r"The database failed during the turn, which resumes in (\S+) s", caplog.text)
    assert len(set(pauses)) > 1, "each is longer than the one before"
    assert stage.posted_to("alice") == ["You said: count"]
    assert [entry.state for entry in store.read(OWNER, lambda tx: tx.inbox.listed(list(InboxState)))] == ["done"]


def test_after_its_third_crash_a_turn_is_given_up_and_its_lane_suspended(store: SqlStore) -> None:
    leave_open_by_crash(store, "alice", blame=2.0)
    stage = Stage()
    last = Building(store, stage, name="last", is_gone=is_old)
    last.run(last.quiet)
    assert stage.posted_to("alice") == [GIVEN_UP]
    assert last.model.asked == []
    assert (lane(store).phase, lane(store).phase_reason) == (Phase.SUSPENDED, Suspension.CRASHED)


def test_after_a_crash_suspension_the_reason_is_the_crash(store: SqlStore) -> None:
    leave_open_by_crash(store, "alice", blame=2.0)
    stage = Stage()
    last = Building(store, stage, name="last", is_gone=is_old)

    async def work() -> None:
        await last.quiet()
        stage.say(dm(), "hello again", message_id="again")
        await last.quiet()

    last.run(work)
    given_up, notice, answer = stage.posted_to("alice")
    assert (given_up, answer) == (GIVEN_UP, "You said: hello again")
    assert notice.startswith(
        "A new conversation begins, because the gateway crashed repeatedly in the last one. The last one, "
    )
    [reset] = store.read(OWNER, lambda tx: tx.lanes.resets(ALICE))
    old = store.read(OWNER, lambda tx: tx.sessions.find(reset.from_session or ""))
    assert reset.reason is ResetReason.CRASHED
    assert old is not None
    assert old.end_reason == "crashed"


def test_a_crash_is_shared_by_the_turns_that_were_open_and_one_of_a_crash_loop_blames_nobody(store: SqlStore) -> None:
    def blames() -> list[float]:
        return [turn.blame for turn in open_turns(store)]

    leave_two_open(store, 1)
    store.write(OWNER, interrupt_left, is_old, 1000.0)
    assert blames() == [0.5, 0.5]
    for name, at in (("second", 1010.0), ("third", 1020.0), ("fourth", 2000.0)):
        store.write(OWNER, _begin_run, name)
        store.write(OWNER, partial(_goes_to, name))
        store.write(OWNER, interrupt_left, partial(_is_named, name), at)
    assert blames() == [1.5, 1.5], "the third came within a minute of two others"


def test_a_crash_that_another_gateway_notices_is_counted_too(store: SqlStore) -> None:
    """Gateways that share a database take up what a dead one left while they run, and not when they begin."""
    leave_open_by_crash(store, "alice")
    store.write(OWNER, lambda tx: tx.leases.take(lane_lease(ALICE), "old", "owner", 3600.0))
    stage, model = Stage(), held()
    dead: set[str] = set()
    building = Building(store, stage, model=model, name="other", is_gone=lambda run: run.id in dead)

    async def work() -> None:
        await building.lane_looks.more(2)
        dead.add("old")
        await building.asked()
        assert [(turn.attempt, turn.blame) for turn in open_turns(store)] == [(2, 1.0)]
        assert lane(store).phase_reason == Interruption.RESTART
        model.release()
        await building.quiet()

    building.run(work)
    old = store.read(OWNER, lambda tx: tx.leases.find_run("old"))
    assert old is not None
    assert old.how == "crashed"


def test_after_three_crashes_within_a_minute_what_was_cut_off_waits_until_the_minute_is_over(
    store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    leave_open_by_crash(store, "alice")
    for name in ("one", "two"):
        store.write(OWNER, _crashed, name, time.time())
    stage = Stage()
    building = Building(store, stage, name="last", is_gone=is_old)

    async def work() -> None:
        stage.say(dm("bob"), "hello")
        await until(lambda: stage.posted_to("bob"), "an answer to who was not cut off")
        stage.say(dm(), "and now?")
        await building.taken_in()
        await building.lane_looks.more(3)
        assert [entry.text for entry in store.read(OWNER, lambda tx: tx.inbox.running(ALICE))] == ["unfinished"]
        assert stage.posted_to("alice") == []
        watched = store.read(OWNER, watch, is_old)
        assert [(queue.lane_key, queue.waiting) for queue in watched.unattended] == [(ALICE, 2)]
        building.gateway.office.hold_back(0.0)  # a minute later
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice")[0] == "You said: unfinished"
    states = [entry.state for entry in store.read(OWNER, lambda tx: tx.inbox.listed(list(InboxState)))]
    assert states == ["done"] * 3
    assert "Gateway crashed 3 times within 60 s: answers that were cut off resume in" in caplog.text


@pytest.mark.parametrize("act", [requeueing.retry_messages, requeueing.cancel_messages])
def test_what_waits_for_the_end_of_a_crash_loop_is_retried_or_cancelled_at_once(
    store: SqlStore, act: Callable[..., Any]
) -> None:
    leave_open_by_crash(store, "alice")
    for name in ("one", "two"):
        store.write(OWNER, _crashed, name, time.time())
    stage = Stage()
    building = Building(store, stage, name="last", is_gone=is_old)

    async def work() -> None:
        stage.say(dm(), "and now?", message_id="behind")
        await building.taken_in()
        await building.lane_looks.more(2)
        (entry,) = store.read(OWNER, lambda tx: tx.inbox.running(ALICE))
        await until(lambda: store.read(OWNER, requeueing.is_unattended, entry, is_old), "nobody at work there")
        store.write(OWNER, act, [entry.id], time.time(), is_old)
        await until(lambda: any("and now?" in text for text in stage.posted_to("alice")), "what waits behind it")

    building.run(work)
    retried = ["You said: unfinished"] if act is requeueing.retry_messages else []
    assert stage.posted_to("alice") in ([*retried, "You said: and now?"], ["You said: unfinished | and now?"])


def never(_run: Run) -> bool:
    """Nothing is known of other machines."""
    return False


def test_a_turn_that_silences_one_gateway_after_another_is_given_up(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their machines never come back, so that nobody ever knows that they crashed."""
    for module in (holding, recovering):
        monkeypatch.setattr(module, "LEASE_SECONDS", 0.0)
    leave_open_by_crash(store, "alice", blame=2.0)
    leave_open_by_crash(store, "bob", blame=1.0)
    stage = Stage()
    last = Building(store, stage, name="last", is_gone=never)

    async def work() -> None:
        await until(lambda: stage.posted_to("alice") and stage.posted_to("bob"), "both are told something")

    last.run(work)
    run = store.read(OWNER, lambda tx: tx.leases.find_run("old"))
    assert run is not None
    assert (run.ended_at, run.how) == (None, SILENT)
    assert stage.posted_to("bob") == ["You said: unfinished"]
    assert stage.posted_to("alice") == ["You said: unfinished"], "each has half of the blame"
    leave_open_by_crash(store, "carol", blame=2.0, run_id="older")
    again = Building(store, stage, name="again", is_gone=never)
    again.run(again.quiet)
    assert stage.posted_to("carol") == [GIVEN_UP]


def test_a_silent_gateway_is_blamed_for_nothing_before_it_could_have_spoken(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the database was away for everybody."""
    leave_open_by_crash(store, "alice", blame=2.0)
    stage = Stage()
    building = Building(store, stage, is_gone=never)
    presence = building.gateway.presence

    async def work() -> None:
        await building.lane_looks.more(3)
        assert [turn.blame for turn in open_turns(store)] == [2.0]
        assert (stage.posted, building.model.asked) == ([], [])
        store.write(OWNER, lambda tx: tx.leases.change_run("old", beat_at=tx.leases.now()))
        await building.quiet()  # it is alive, and has let go of the lane

    building.run(work)
    assert not presence.is_steady
    assert stage.posted_to("alice") == ["You said: unfinished"]


@pytest.mark.parametrize(("crashes", "most_at_once"), [(1, 2), (2, 1)])
def test_after_a_second_crash_turns_are_carried_on_one_at_a_time(
    store: SqlStore, crashes: int, most_at_once: int
) -> None:
    """So only the one that the gateway dies of is counted once more."""
    leave_two_open(store, crashes)
    building = Building(store, Stage(), model=(model := held()))

    def is_over() -> bool:
        assert sum(attempts(store)) <= 2 * crashes + 2
        return not store.read(OWNER, lambda tx: tx.inbox.open_lanes())

    async def work() -> None:
        await until(lambda: model.at_work == most_at_once)
        await building.lane_looks.more(3)
        assert model.at_work == most_at_once
        assert sum(attempts(store)) == 2 * crashes + most_at_once
        model.release()
        await until(is_over)

    building.run(work)
    assert model.most_at_work == most_at_once
    assert attempts(store) == []
    assert [entry.state for entry in store.read(OWNER, lambda tx: tx.inbox.listed(("done",)))] == ["done"] * 2


def test_a_bystander_of_a_turn_that_is_given_up_is_answered(store: SqlStore) -> None:
    leave_two_open(store, 2, blame=2.0)
    stage = Stage()
    third = Building(store, stage, model=held(), name="third", is_gone=lambda run: run.id == "old")
    third.gateway.drain_seconds = 0.01

    async def work() -> None:
        await third.asked()
        await third.lane_looks.more(3)  # at the other lane

    third.run(work)
    assert sorted(attempts(store)) == [2, 3]
    store.write(OWNER, lambda tx: tx.leases.change_run("third", ended_at=None))  # as if it had died of that one
    store.write(OWNER, lambda tx: tx.leases.change_run("old", ended_at=1.0))  # long ago
    last = Building(store, stage, name="last", is_gone=lambda run: run.id == "third")
    last.run(last.quiet)
    assert sorted([*stage.posted_to("alice"), *stage.posted_to("bob")]) == [GIVEN_UP, "You said: unfinished"]


def test_a_turn_that_is_about_to_run_when_the_gateway_leaves_is_left_for_the_next_life(store: SqlStore) -> None:
    """It waited for another one that was under suspicion as well, and that the end of this life has let go of."""
    leave_two_open(store, 2, blame=2.0)
    stage = Stage()
    third = Building(store, stage, model=held(), name="third", is_gone=lambda run: run.id == "old")
    third.gateway.drain_seconds = 0.01
    office, waiting = third.gateway.office, list[str]()
    cut_off = office._cut_off

    async def late(holder: LaneHolder, due: CutOff) -> bool:
        if office.running_in(due.lane.key) is None and office._suspect is not None:
            waiting.append(due.lane.key)
            await until(lambda: office._suspect is None)
        return await cut_off(holder, due)

    office._cut_off = late  # type: ignore[method-assign]

    async def work() -> None:
        await third.asked()
        await until(lambda: waiting)

    third.run(work)
    assert len(third.model.asked) == 1
    assert sorted(attempts(store)) == [2, 3]
    last = Building(store, stage, name="last")
    last.run(last.quiet)
    assert [*stage.posted_to("alice"), *stage.posted_to("bob")] == ["You said: unfinished"] * 2


def test_what_was_cut_off_too_long_ago_is_told_and_not_carried_on(store: SqlStore) -> None:
    stage = Stage()
    leave_open(store, stage, Interruption.SHUTDOWN_DRAIN)
    again = Building(store, stage, name="again", freshness=0.0)
    again.run(again.quiet)
    assert stage.posted_to("alice") == [STALE]
    assert again.model.asked == []


@pytest.mark.parametrize("is_put_out", [False, True])
def test_who_was_put_out_meanwhile_is_not_answered_any_more(
    store: SqlStore, caplog: pytest.LogCaptureFixture, is_put_out: bool
) -> None:
    stage, access = Stage(), AccessRules()
    store.write(OWNER, lambda tx: tx.people.put(PairedPerson("scripted", "alice", "person", "Alice", 1.0, "console")))
    leave_open(store, stage, Interruption.SHUTDOWN_DRAIN)
    if is_put_out:
        store.write(OWNER, lambda tx: tx.people.remove("scripted", "alice"))
    again = Building(store, stage, name="again", access=access)
    again.run(again.quiet)
    (entry,) = store.read(OWNER, lambda tx: tx.inbox.listed(list(InboxState)))
    assert stage.posted_to("alice") == ([] if is_put_out else ["You said: count"])
    assert (entry.state, entry.reason) == (("cancelled", PUT_OUT) if is_put_out else ("done", None))
    assert ("may not write any more" in caplog.text) == is_put_out
    assert store.read(OWNER, lambda tx: tx.outbox.listed(["pending", "draft"])) == []


class Late(ScriptedPlatform):
    """Cannot be connected before it is told."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.may_connect = False
        self.tries = 0

    async def run(self, intake: Intake) -> None:
        self.tries += 1
        if not self.may_connect:
            raise Unreachable("The platform is not reachable.")
        await super().run(intake)


def test_an_answer_is_carried_on_when_its_platform_is_connected_again(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(connecting, "KEPT_SECONDS", 0.02)
    stage = Stage()
    leave_open(store, stage, Interruption.SHUTDOWN_DRAIN)
    platform = Late(stage)
    again = Building(store, stage, name="again", only=[platform])

    async def work() -> None:
        await until(lambda: platform.tries >= 2)
        await again.lane_looks.more(3)
        assert again.model.asked == []
        platform.may_connect = True
        await again.quiet()

    again.run(work)
    assert stage.posted_to("alice") == ["You said: count"]


def test_a_turn_that_takes_too_long_is_aborted_and_its_sender_is_told(store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage, model=held(), turn_seconds=0.3)

    async def work() -> None:
        stage.say(dm(), "count")
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice")[-1] == "The answer took longer than 0.3 seconds and was stopped."
    assert [entry.state for entry in store.read(OWNER, lambda tx: tx.inbox.listed(("dead",)))] == ["dead"]


def _is_named(name: str, run: Run) -> bool:
    return run.id == name


def is_old(run: Run) -> bool:
    return run.id == "old"


def leave_two_open(store: SqlStore, crashes: int, blame: float = 0.0) -> None:
    """Two turns that have run in the same lives, which ended in as many crashes."""
    store.write(OWNER, _begin_run, "old")
    for person in ("alice", "bob"):
        turn = begin(store, say(store, "unfinished", person)).situation.turn
        store.write(OWNER, partial(_was_of_old_run, turn.id, crashes, blame))


def leave_open_by_crash(store: SqlStore, person: str, blame: float = 0.0, run_id: str = "old") -> None:
    """Leave a turn whose process died, and of which nobody has noticed that yet."""
    if store.read(OWNER, lambda tx: tx.leases.find_run(run_id)) is None:
        store.write(OWNER, _begin_run, run_id)
    begun = begin(store, say(store, "unfinished", person))
    changes = {"run_id": run_id, "attempt": 1, "blame": blame}
    store.write(OWNER, lambda tx: tx.turns.change(begun.situation.turn.id, **changes))
    store.write(OWNER, lambda tx: tx.leases.release(begun.lease))


def _was_of_old_run(turn_id: str, crashes: int, blame: float, tx: Transaction) -> None:
    tx.turns.change(turn_id, run_id="old", attempt=crashes, blame=blame)


def _goes_to(run_id: str, tx: Transaction) -> None:
    """Let a run take up whatever is open."""
    for turn in _open_turns(tx):
        tx.turns.change(turn.id, run_id=run_id)


def _crashed(tx: Transaction, run_id: str, at: float) -> None:
    _begin_run(tx, run_id)
    tx.leases.change_run(run_id, ended_at=at, how=CRASHED)


def _open_turns(tx: Transaction) -> list[Turn]:
    found = [tx.lanes.find(key) for key in (ALICE, BOB)]
    turns = [tx.turns.running_in(one.session_id) for one in found if one and one.session_id]
    return [turn for turn in turns if turn]


def open_turns(store: SqlStore) -> list[Turn]:
    return store.read(OWNER, _open_turns)


def attempts(store: SqlStore) -> list[int]:
    """How often each turn was tried that is open."""
    return [turn.attempt for turn in open_turns(store)]


def _begin_run(tx: Transaction, run_id: str) -> None:
    tx.leases.add_run(Run(run_id, "segue gateway", "here", "boot", 7, "1", 1.0, 1.0))
