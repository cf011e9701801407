"""Commands in a lane: in their turn, or beside the answer that is being written."""

import asyncio
import time
from datetime import UTC, timedelta

import pytest
from lane_house import Building, HeldModel, dm, let_time_pass
from waiting import until

from segue.core.access import AccessRules, DmAccess
from segue.core.background import Process, ProcessState
from segue.core.commands import Command
from segue.core.errors import ModelError, Unreachable
from segue.core.events import Reply
from segue.core.inbound import Inbound
from segue.core.inbox import InboxState
from segue.core.keys import KeyRules
from segue.core.lifecycle import Phase
from segue.core.pairing import PairedPerson
from segue.core.policy import ResetMode, ResetPolicies, ResetPolicy
from segue.core.preferences import decode
from segue.core.queueing import QueueMode, QueueRules
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.scope import Principal, Scope
from segue.core.sessions import Session
from segue.core.sharing import DmScope
from segue.core.sources import SessionSource
from segue.core.usage import Usage
from segue.gateway import clerk
from segue.ports.model import Request
from segue.sessions.admitting import admit_all
from segue.sessions.commanding import act
from segue.sessions.commanding.acts import Situation
from segue.sessions.finding import get_session
from segue.sessions.reading import conversation
from segue.sessions.starting import create_session
from segue.storage.store import SqlStore
from segue.testing import ScriptedModel, Stage

KEY = "agent:main:scripted:dm:alice"


def talk(building: Building, *lines: str, person: str = "alice") -> list[str]:
    """Say one thing after another, each when the one before has come to its end; what could be read then."""

    async def work() -> None:
        for line in lines:
            building.stage.say(dm(person), line)
            await building.quiet()

    building.run(work)
    return building.stage.posted_to(person)


def test_a_new_conversation_begins_and_there_is_a_way_back(store: SqlStore) -> None:
    stage = Stage()
    building = Building(store, stage)
    posted = talk(building, "remember the leeks", "/new", "what now?")
    old = store.read(OWNER, lambda tx: tx.lanes.resets(KEY))[0].from_session
    assert posted[1].startswith("A new conversation begins.")
    assert f"/resume {old}" in posted[1]
    assert posted[2] == "You said: what now?"
    talk(Building(store, stage, name="again"), f"/resume {old}", "and the leeks?")
    lane = store.read(OWNER, lambda tx: tx.lanes.find(KEY))
    assert lane is not None
    assert lane.session_id == old
    said = [message["content"] for message in store.read(OWNER, conversation, str(old))]
    assert said == ["remember the leeks", "You said: remember the leeks", "and the leeks?", "You said: and the leeks?"]


def test_the_first_thing_said_in_a_lane_can_be_to_go_on_elsewhere(store: SqlStore) -> None:
    keys = KeyRules(owners=frozenset({"scripted:alice", "scripted:second"}))
    stage = Stage()
    talk(Building(store, stage, keys=keys), "remember the leeks")
    session = store.read(OWNER, lambda tx: tx.lanes.find(KEY))
    assert session is not None
    posted = talk(
        Building(store, stage, keys=keys, name="again"), f"/resume {session.session_id}", "and now?", person="second"
    )
    assert posted[0].startswith("You are in “remember the leeks” now")
    moved = store.read(OWNER, lambda tx: tx.lanes.find("agent:main:scripted:dm:second"))
    assert moved is not None
    assert moved.session_id == session.session_id


def test_stop_is_answered_even_if_nothing_was_being_done(store: SqlStore) -> None:
    assert talk(Building(store, Stage()), "/stop", "one", "/stop") == [
        "Nothing was being done.",
        "You said: one",
        "Nothing was being done.",
    ]


def test_stop_tells_of_background_processes_and_of_the_conversation_that_follows(store: SqlStore) -> None:
    building = Building(store, Stage(), stop_suspends=True)

    async def work() -> None:
        building.stage.say(dm(), "one")
        await building.quiet()
        lane = store.read(OWNER, lambda tx: tx.lanes.find(KEY))
        assert lane is not None
        for number in (1, 2):
            running = Process(f"p{number}", str(lane.session_id), "gateway", "make", "/", 7, ProcessState.RUNNING, 1.0)
            store.write(OWNER, lambda tx, one=running: tx.processes.insert(one))  # type: ignore[misc]
        building.stage.say(dm(), "/stop")
        await building.quiet()

    building.run(work)
    assert building.stage.posted_to("alice")[-1] == (
        "Nothing was being done. 2 background processes still running. The next message begins a new conversation."
    )


def test_queue_answers_beside_the_answer_that_is_written_and_names_the_mode_that_holds(store: SqlStore) -> None:
    stage, model = Stage(), HeldModel()
    rules = QueueRules(QueueMode.FOLLOWUP, debounce=timedelta(0))
    building = Building(store, stage, model=model, queue=rules)

    async def work() -> None:
        stage.say(dm(), "one")
        await building.asked()
        stage.say(dm(), "two")
        for number, text in enumerate(("/queue", "/queue interrupt", "/queue default", "/queue steer"), 1):
            stage.say(dm(), text)
            await until(lambda wanted=number: len(stage.posted_to("alice")) >= wanted)  # type: ignore[misc]
        model.release()
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice")[:4] == [
        "1 message waiting. Mode: followup, by the settings.",
        "Messages that come while it answers: interrupt, chosen here.",
        "Messages that come while it answers: followup, by the settings.",
        "Messages that come while it answers: steer, chosen here.",
    ]


def test_what_stands_behind_new_is_the_first_thing_said(store: SqlStore) -> None:
    posted = talk(Building(store, Stage(), triggers=("fresh start",)), "one", "/new two\nlines", "Fresh start three")
    assert posted[2] == "You said: two\nlines"
    assert posted[4] == "You said: three"
    assert len(store.read(OWNER, lambda tx: tx.lanes.resets(KEY))) == 2


def test_choices_of_a_lane_are_kept_by_its_session(store: SqlStore) -> None:
    posted = talk(Building(store, Stage()), "/think high", "/title Lisbon", "hello", "/title", "/queue", "/nonsense")
    assert posted[0] == "Thinking: high."
    assert "Lisbon" in posted[3]
    assert posted[4] == "0 messages waiting. Mode: collect, by the settings."
    assert "There is no command /nonsense" in posted[5]


def test_status_tells_how_the_agent_answered_with_what_and_at_which_levels(store: SqlStore) -> None:
    is_gone = True

    def answer(_: Request) -> Reply | ModelError:
        if is_gone:
            return Unreachable("Nobody is there.")
        return Reply("Yes.", usage=Usage(500, api_call_count=1), context_window=2_000)

    keys = KeyRules(owners=frozenset({"scripted:alice"}))
    building = Building(store, Stage(), model=ScriptedModel(answer), keys=keys)

    async def work() -> None:
        nonlocal is_gone
        for line in ("/status", "/model opus", "/think high", "/verbose all", "one", "/status"):
            building.stage.say(dm(), line)
            await building.quiet()
        is_gone = False
        for line in ("two", "/status", "/model"):
            building.stage.say(dm(), line)
            await building.quiet()

    building.run(work)
    posted = building.stage.posted_to("alice")
    first, failed, last = (text.splitlines() for text in posted if text.startswith("Model"))
    assert first[:3] == ["Model       scripted", "Agent       not asked yet", "Context     unknown"]
    assert failed[:2] == ["Model       opus", "Agent       did not answer, just now: Nobody is there."]
    assert last[:8] == [
        "Model       opus",
        "Agent       answered, just now",
        "Context     500 of 2,000 tokens (25%)",
        "Thinking    high",
        "Verbose     all",
        "Sending     on",
        "Queue       collect, by the settings; 0 messages waiting",
        "Phase       active",
    ]
    assert posted[-1] == "The model is opus, chosen as opus."


def test_stop_ends_what_runs_and_what_waits(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as it is put down: nobody looks again in a moment, and the model would say nothing for ever."""
    for name in ("lanes.LOOK_SECONDS", "gateway.OVERHEAR_SECONDS", "delivery.LOOK_SECONDS"):
        monkeypatch.setattr(f"segue.gateway.{name}", 3600.0)
    stage = Stage()
    building = Building(store, stage, model=HeldModel())

    async def work() -> None:
        stage.say(dm(), "one")
        await building.asked()
        stage.say(dm(), "two")
        await building.taken_in()
        stage.say(dm(), "/status")
        stage.say(dm(), "/stop")
        await until(lambda: building.gateway.office.running_in(KEY) is None)
        await building.quiet()

    building.run(work)
    states = [(entry.text, entry.state) for entry in store.read(OWNER, lambda tx: tx.inbox.listed(("cancelled",)))]
    assert states == [("one", "cancelled"), ("two", "cancelled")]
    posted = stage.posted_to("alice")
    assert any("Model" in text for text in posted)
    assert "Stopped. 1 waiting message cancelled." in posted
    lane = store.read(OWNER, lambda tx: tx.lanes.find(KEY))
    assert lane is not None
    assert lane.phase is Phase.ACTIVE


def test_stop_can_end_the_conversation_too(store: SqlStore) -> None:
    posted = talk(Building(store, Stage(), stop_suspends=True), "one", "/stop", "two")
    assert posted[-1] == "You said: two"
    lane = store.read(OWNER, lambda tx: tx.lanes.find(KEY))
    assert lane is not None
    assert lane.phase is Phase.ACTIVE
    assert [row.reason for row in store.read(OWNER, lambda tx: tx.lanes.resets(KEY))] == ["suspended"]


def test_retry_and_undo(store: SqlStore) -> None:
    posted = talk(Building(store, Stage()), "one", "two", "/retry", "/undo", "/redo", "three")
    assert posted[3] == "You said: two"
    assert posted[4].startswith("Undone: 1 turn")
    assert posted[5].startswith("Back again")
    assert posted[6] == "You said: three"


@pytest.mark.parametrize(("mode", "answers"), [
    (QueueMode.COLLECT, ["one", "two | three", "four"]),
    (QueueMode.FOLLOWUP, ["one", "two", "three", "four"]),
])  # fmt: skip
def test_what_waits_is_answered_as_the_mode_says(store: SqlStore, mode: QueueMode, answers: list[str]) -> None:
    stage, model = Stage(), HeldModel()
    building = Building(store, stage, model=model, queue=QueueRules(mode, debounce=timedelta(0)))

    async def work() -> None:
        stage.say(dm(), "one")
        await building.asked()
        for text in ("two", "three", "/queue four"):
            stage.say(dm(), text)
        await building.taken_in()
        model.release()
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice") == [f"You said: {answer}" for answer in answers]


def test_the_newest_interrupts(store: SqlStore) -> None:
    stage = Stage()
    rules = QueueRules(QueueMode.INTERRUPT, debounce=timedelta(0))
    building = Building(store, stage, model=(model := HeldModel()), queue=rules)

    async def work() -> None:
        stage.say(dm(), "one")
        await building.asked()
        stage.say(dm(), "two")
        await building.taken_in()
        model.release()
        await building.quiet()

    building.run(work)
    assert "You said: one" not in stage.posted_to("alice")
    assert stage.posted_to("alice")[-1].endswith("two")


def test_a_conversation_that_grew_old_begins_anew_and_says_so(store: SqlStore) -> None:
    stage = Stage()
    idle = ResetPolicies(ResetPolicy(ResetMode.IDLE, idle=timedelta(minutes=5)))
    talk(Building(store, stage, policies=idle), "the leeks are green", "/think high")
    let_time_pass(store, timedelta(hours=2))
    building = Building(store, stage, policies=idle, name="later")
    posted = talk(building, "good morning")
    reset = store.read(OWNER, lambda tx: tx.lanes.resets(KEY))[-1]
    assert reset.reason == "idle"
    fresh, old = (store.read(OWNER, get_session, name or "") for name in (reset.to_session, reset.from_session))
    assert (decode(fresh.model_config).effort, decode(old.model_config).effort) == (None, "high")
    assert f"/resume {reset.from_session}" in posted[2]
    assert posted[3] == "You said: good morning"
    posted = talk(Building(store, stage, policies=idle, name="back"), f"/resume {reset.from_session}", "and now?")
    asked = [request.conversation[-1]["content"] for request in building.model.asked]
    assert asked.count("good morning") == 1, "the message that caused the reset was answered once"
    last = store.read(OWNER, conversation, str(reset.from_session))
    assert last[0]["content"] == "the leeks are green"
    assert posted[-1] == "You said: and now?"


def test_too_many_are_left_out_visibly_or_refused(store: SqlStore) -> None:
    stage = Stage()
    rules = QueueRules(debounce=timedelta(0), cap=2)
    building = Building(store, stage, model=(model := HeldModel()), queue=rules)

    async def work() -> None:
        stage.say(dm(), "one")
        await building.asked()
        for text in ("two", "three", "four", "five"):
            stage.say(dm(), text)
        await building.taken_in()
        model.release()
        await building.quiet()

    building.run(work)
    answer = stage.posted_to("alice")[-1]
    assert "2 earlier messages were left out" in answer
    assert "- two" in answer
    assert answer.endswith("four | five")


def test_strangers_get_a_code_and_owners_commands_are_theirs(store: SqlStore) -> None:
    stage = Stage()
    keys = KeyRules(owners=frozenset({"scripted:alice"}))
    building = Building(store, stage, keys=keys, access=AccessRules(DmAccess.PAIRING))

    async def work() -> None:
        stage.say(dm("mallory"), "hello")
        stage.say(dm("mallory"), "/restart")
        stage.say(dm("alice"), "/restart")
        await building.quiet()

    building.run(work)
    assert building.restarts == 1
    assert building.model.asked == []
    assert all("Give this code" in text for text in stage.posted_to("mallory"))
    assert stage.posted_to("alice") == ["The gateway restarts."]
    assert store.read(OWNER, lambda tx: tx.inbox.listed(("waiting", "running", "done", "dead")))[0].person == "owner"


def test_nobody_resumes_or_finds_what_is_not_theirs(store: SqlStore) -> None:
    stage = Stage()
    talk(Building(store, stage), "the secret is zq77", "/title plans")
    other = Building(store, stage, name="other")
    mine = store.read(OWNER, lambda tx: tx.lanes.find(KEY))
    assert mine is not None
    group = SessionSource(platform="scripted", chat_id="room", chat_type="group", user_id="alice", user_name="Alice")

    async def work() -> None:
        for line in ("/search zq77", "/resume plans", f"/resume {mine.session_id}", "/sessions", "/history"):
            stage.say(dm("bob"), line)
            stage.say(group, line)
            await other.quiet()

    other.run(work)
    assert "zq77" not in "".join(stage.posted_to("bob") + stage.posted_to("room"))
    assert "plans" not in "".join(stage.posted_to("bob") + stage.posted_to("room")).replace("'plans'", "")
    assert store.read(Scope(Principal("scripted:bob")), lambda tx: tx.inbox.listed(("done",)))


def test_a_conversation_is_handed_to_the_home_channel(store: SqlStore) -> None:
    stage = Stage()
    keys = KeyRules(owners=frozenset({"scripted:alice", "scripted:home"}))
    building = Building(store, stage, keys=keys)

    async def work() -> None:
        stage.say(dm("home"), "/sethome")
        stage.say(dm("alice"), "remember the leeks")
        await building.quiet()
        stage.say(dm("alice"), "/handoff scripted")
        await building.quiet()
        stage.say(dm("home"), "and now?")
        await building.quiet()

    building.run(work)
    assert "“remember the leeks” goes on here." in stage.posted_to("home")
    assert stage.posted_to("home")[-1] == "You said: and now?"
    asked = [message["content"] for message in building.model.asked[-1].conversation]
    assert asked == ["remember the leeks", "You said: remember the leeks", "and now?"]


def test_stop_also_ends_what_a_crash_cut_off_and_is_not_carried_on_yet(store: SqlStore) -> None:
    stage = Stage()
    first = Building(store, stage, model=HeldModel())

    async def crashes() -> None:
        living = asyncio.create_task(first.gateway.run(asyncio.Event()))
        stage.say(dm(), "one")
        await first.asked()
        first.gateway.lanes.begin_nothing_more()
        first.gateway.office.abandon_all()
        await until(lambda: not first.gateway.office.at_work_in)
        living.cancel()
        await asyncio.wait({living})
        first.gateway.close()

    asyncio.run(crashes())
    stop = Inbound(dm(), "stop", "/stop")
    store.write(OWNER, admit_all, [(stop, time.time())], first.gateway.desk._routing)
    talk(Building(store, stage, name="again"), "two")
    states = {entry.text: entry.state for entry in store.read(OWNER, lambda tx: tx.inbox.listed(tuple(InboxState)))}
    assert states == {"one": "cancelled", "/stop": "done", "two": "done"}
    assert stage.posted_to("alice")[-1] == "You said: one | two"


def test_what_was_shown_is_remembered_for_those_who_gave_commands_last(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clerk, "MOST_REMEMBERED", 3)
    stage, people = Stage(), [f"p{number}" for number in range(6)]
    building = Building(store, stage)

    async def work() -> None:
        for person in people:
            for line in ("hello", "/undo"):
                stage.say(dm(person), line)
                await building.quiet()
        for person in (*people[3:], people[0]):
            stage.say(dm(person), "/redo")
            await building.quiet()

    building.run(work)
    told = {person: stage.posted_to(person)[-1] for person in (people[0], *people[3:])}
    assert told[people[0]].startswith("There is nothing")
    assert {told[person] for person in people[3:]} == {told[people[5]]}
    assert told[people[5]] != told[people[0]]
    assert len(building.gateway.clerk._memories) == 3


def test_the_settings_may_name_the_home_channel(store: SqlStore) -> None:
    """Until somebody says otherwise there."""
    at_terminal = Session("begun-here", "cli", started_at=time.time())
    session_id = store.write(OWNER, create_session, at_terminal)
    named = {"scripted": dm("home")}
    keys = KeyRules(owners=frozenset({"scripted:home"}), dm_scope=DmScope.MAIN)
    situation = Situation(session_id, time.time(), UTC, "fresh", keys=keys, homes=named)
    told = store.write(OWNER, act, Command("handoff", "scripted"), situation)
    lane = store.read(OWNER, lambda tx: tx.lanes.find_by_session(session_id))
    assert "home channel of scripted" in told.text
    assert lane is not None
    assert lane.key == "agent:main:main"


def test_the_first_thing_that_an_owner_says_who_was_paired_may_be_a_command(store: SqlStore) -> None:
    store.write(OWNER, lambda tx: tx.people.put(PairedPerson("scripted", "alice", "owner", "Alice", 1.0, "console")))
    building = Building(store, Stage())
    talk(building, "/title Tea", "hello")
    (session,) = store.read(OWNER, lambda tx: list(tx.sessions.in_order()))
    assert (session.title, session.principal, session.message_count) == ("Tea", "owner", 2)
