"""A person at a chat: what they say meanwhile, what they take back, and what becomes of it in trouble."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from places import Place, Probe, Scripted, fine, run, wants
from waiting import DEADLINE, until

from segue.agent.loop import Loop
from segue.agent.offline import OfflineAgent
from segue.agent.telling import offered
from segue.core.commands import Command
from segue.core.errors import InUse, LeaseLost, ModelUnavailable, StoreFull, UnknownModel
from segue.core.events import Done, Note, Reply, Steered, Text, ToolCall
from segue.core.leases import session_lease
from segue.core.messages import draft
from segue.core.preferences import Preferences
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sessions import Session
from segue.core.turns import Heard, StepState, Turn, TurnState
from segue.ports.agent import Agent
from segue.ports.model import Request
from segue.sessions import turning
from segue.sessions.commanding.acts import Again
from segue.sessions.compressing import compress_session
from segue.sessions.recording import append_message
from segue.sessions.starting import create_session, end_session
from segue.sessions.titling import set_title
from segue.storage.store import SqlStore


def echo(request: Request) -> Reply:
    return Reply(f"You said {request.conversation[-1]['content']}.")


def heard(place: Place) -> list[str]:
    lines = place.store.read(OWNER, turning.find_unheard, str(place.chat.session_id))
    return [line.content for line in lines]


def test_what_is_said_during_the_last_words_is_answered_next(store: SqlStore) -> None:
    def answer(request: Request) -> Reply:
        if len(request.conversation) == 1:
            assert place.chat.steer("and leeks")
            assert place.chat.steer("and cream")
        return echo(request)

    place = Place(store, Loop([Scripted(answer)], []))

    async def work() -> None:
        events = await place.say("soup")
        assert [event for event in events if isinstance(event, Steered)] == [Steered("and leeks"), Steered("and cream")]

    run(place, work)
    assert place.rows() == [
        ("user", "soup"),
        ("assistant", "You said soup."),
        ("user", "and leeks"),
        ("user", "and cream"),
        ("assistant", "You said and cream."),
    ]
    assert heard(place) == []


def test_what_nobody_could_hear_is_not_taken(store: SqlStore) -> None:
    place = Place(store, Loop([Scripted(echo)], []))

    async def work() -> None:
        assert not place.chat.steer("too early")
        await place.say("hello")
        assert not place.chat.steer("too late")

    run(place, work)


def test_what_was_said_before_a_crash_is_heard_when_the_turn_is_carried_on(store: SqlStore) -> None:
    place = Place(store, Loop([Scripted(wants())], [Probe(fine)]))

    async def work() -> None:
        await place.say("hello")
        session_id = str(place.chat.session_id)
        turn = Turn("cut off", session_id, "run", TurnState.RUNNING, 1, 0, 1e10)

        def crash(tx: Any) -> None:
            lease = place.holder.claim(tx, session_id, "owner")
            turning.open_turn(tx, lease, turn, [draft("user", "again", 2.0)])
            turning.hear(tx, lease, Heard("cut off", 1, "with cream", 3.0))

        await place.door.write(crash)
        await place.chat.take_up(place.events.append)
        assert Steered("with cream") in place.events

    run(place, work)
    assert ("user", "with cream") in place.rows()
    assert heard(place) == []


def test_a_title_that_waits_is_shown_until_its_conversation_has_it(store: SqlStore) -> None:
    place = Place(store, Loop([Scripted(echo)], []))

    async def shown() -> str:
        return (await place.chat.command(Command("title", ""))).text

    async def work() -> None:
        assert await shown() == "Nothing has been said yet; /title TITLE names what comes."
        told = (await place.chat.command(Command("title", "Soup"))).text
        assert await shown() == told == "This conversation will be called “Soup” once something is said in it."
        await place.say("leeks")
        assert (await shown()).startswith("“Soup” (set by you).")
        await place.chat.command(Command("new", ""))
        assert "Soup" not in await shown()

    run(place, work)


def test_the_latest_conversation_is_that_of_the_terminal_whatever_happened_elsewhere(store: SqlStore) -> None:
    for name, source, at in (("older", "cli", 1.0), ("here", "cli", 2.0), ("there", "telegram", 3.0)):
        store.write(OWNER, create_session, Session(name, source, started_at=at, last_active_at=at))
    place = Place(store, Loop([Scripted(echo)], []))

    async def work() -> None:
        assert await place.chat.find_latest() == "here"

    run(place, work)


def test_a_failed_turn_keeps_what_was_said_for_the_next(store: SqlStore) -> None:
    def answer(request: Request) -> Reply | ModelUnavailable:
        if request.conversation[-1]["content"] == "soup":
            place.chat.steer("and leeks")
            return ModelUnavailable("Nobody is there.")
        return echo(request)

    place = Place(store, Loop([Scripted(answer)], []))

    async def work() -> None:
        await place.say("soup")
        assert heard(place) == ["and leeks"]
        await place.say("once more")

    run(place, work)
    assert [said for role, said in place.rows() if role == "user"] == ["soup", "and leeks", "once more"]


def test_stopping_cancels_what_waits_and_says_so(store: SqlStore) -> None:
    async def hangs(_: dict[str, Any]) -> str:
        place.chat.steer("and leeks")
        await until(lambda: heard(place))
        place.chat.stop()
        await asyncio.sleep(1000)
        return "never"

    place = Place(store, Loop([Scripted(wants())], [Probe(hangs)]))

    async def work() -> None:
        events = await place.say("soup")
        told = "Not said any more: and leeks"
        assert events[-2:] == [Note(told, told), Done(was_stopped=True)]
        assert heard(place) == []

    run(place, work)


def test_whoever_is_cancelled_has_stopped_the_turn(store: SqlStore) -> None:
    place = Place(store, Loop([Scripted(lambda _: Reply("one two three"), pause=1_000)], []))

    async def work() -> None:
        saying = asyncio.create_task(place.say("count"))
        await until(lambda: Text("one ") in place.events)
        saying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saying
        assert store.read(OWNER, lambda tx: tx.turns.running_in(str(place.chat.session_id))) is None

    run(place, work)
    assert place.rows()[-1][0] == "assistant"


# Taking back


def test_what_is_tried_again_falls_silent_only_when_it_is_said_again(store: SqlStore) -> None:
    place = Place(store, Loop([Scripted(echo)], []))

    async def work() -> None:
        await place.say("one")
        await place.say("two")
        act = (await place.chat.command(Command("retry"))).act
        assert isinstance(act, Again)
        assert len(place.rows()) == 4
        await place.chat.say(act.content, place.events.append, undo_from=act.undo_from)

    run(place, work)
    assert [said for _, said in place.rows()] == ["one", "You said one.", "two", "You said two."]
    undone = store.read(OWNER, lambda tx: tx.messages.of(str(place.chat.session_id), every_state=True))
    assert [message.state for message in undone] == ["live", "live", "undone", "undone", "live", "live"]


def test_a_model_that_cannot_be_had_takes_nothing_back(store: SqlStore) -> None:
    place = Place(store, Loop([Scripted(echo)], []))

    async def nobody(_: object) -> Any:
        raise UnknownModel("There is no model to ask.")

    async def work() -> None:
        await place.say("one")
        act = (await place.chat.command(Command("retry"))).act
        assert isinstance(act, Again)
        place.chat._kit = type(place.chat._kit)(**{**_fields(place.chat._kit), "agent_for": nobody})
        with pytest.raises(UnknownModel):
            await place.chat.say(act.content, place.events.append, undo_from=act.undo_from)

    run(place, work)
    assert [said for _, said in place.rows()] == ["one", "You said one."]


def _fields(kit: Any) -> dict[str, Any]:
    return {name: getattr(kit, name) for name in kit.__dataclass_fields__}


def test_after_a_turn_that_could_not_be_stored_one_can_undo_and_retry(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(store, Loop([Scripted(echo)], []))
    end_turn = turning.end_turn

    async def work() -> None:
        monkeypatch.setattr(turning, "end_turn", _full)
        with pytest.raises(StoreFull):
            await place.say("one")
        monkeypatch.setattr(turning, "end_turn", end_turn)
        assert isinstance((await place.chat.command(Command("retry"))).act, Again)
        assert "Undone" in (await place.chat.command(Command("undo"))).text

    run(place, work)
    assert place.rows() == []


def _full(*_arguments: object, **_named: object) -> None:
    raise StoreFull("The disk is full: nothing was written.")


# Before there is a session


def test_a_first_message_that_could_not_be_stored_can_be_said_again(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(store, Loop([Scripted(echo)], []))
    open_turn = turning.open_turn

    async def work() -> None:
        monkeypatch.setattr(turning, "open_turn", _full)
        with pytest.raises(StoreFull):
            await place.say("one")
        assert place.chat.session_id is None
        monkeypatch.setattr(turning, "open_turn", open_turn)
        await place.say("one")

    run(place, work)
    assert [said for _, said in place.rows()] == ["one", "You said one."]


def test_a_title_is_there_with_the_first_message(store: SqlStore) -> None:
    titles: list[str | None] = []

    def answer(request: Request) -> Reply:
        session = store.read(OWNER, lambda tx: tx.sessions.find(str(place.chat.session_id)))
        titles.append(session.title if session else None)
        return echo(request)

    place = Place(store, Loop([Scripted(answer)], []))

    async def work() -> None:
        await place.chat.command(Command("title", "Soup"))
        await place.say("leeks")
        await place.chat.command(Command("new"))
        await place.chat.command(Command("title", "Stew"))
        store.write(OWNER, set_title, "run-1", "Stew")
        events = await place.say("more leeks")
        assert any(isinstance(event, Note) and "Stew" in event.text for event in events), "it is taken"

    run(place, work)
    assert titles == ["Soup", None]


# Steps


def test_a_model_that_did_not_answer_is_a_step_that_failed(store: SqlStore) -> None:
    first = Scripted(lambda _: ModelUnavailable("Busy."), "first")
    place = Place(store, Loop([first, Scripted(echo, "second")], []))

    async def work() -> None:
        await place.say("hello")
        turns = store.read(OWNER, lambda tx: tx.turns.steps(_only_turn(tx, str(place.chat.session_id))))
        assert [(step.name, step.state) for step in turns] == [
            ("test/first", StepState.FAILED),
            ("test/second", StepState.DONE),
        ]

    run(place, work)


def _only_turn(tx: Any, session_id: str) -> str:
    rows = tx.turns._db.rows("SELECT id FROM turns WHERE session_id = :id", {"id": session_id})
    return str(rows[0][0])


# Others


def take_over(store: SqlStore, session_id: str, by: str) -> None:
    store.write(OWNER, lambda tx: tx.leases.take(session_lease(session_id), by, "owner", 60.0))


def test_a_session_that_somebody_took_over_is_theirs_until_they_leave(store: SqlStore) -> None:
    here = Place(store, Loop([Scripted(echo)], []), "here")
    there = Place(store, Loop([Scripted(echo)], []), "there")

    async def work() -> None:
        await here.say("hello")
        session_id = str(here.chat.session_id)
        await there.presence.begin()
        take_over(store, session_id, "there")
        with pytest.raises(InUse):
            await here.say("still there?")
        for command in ("undo", "title", "model"):
            with pytest.raises(InUse):
                await here.chat.command(Command(command, "x" if command == "title" else ""))
        await there.presence.end()
        await here.say("and now?")

    run(here, work)
    there.door.close()
    assert [said for role, said in here.rows() if role == "user"] == ["hello", "and now?"]


def test_whoever_lost_a_session_does_not_end_it_by_leaving(store: SqlStore) -> None:
    here = Place(store, Loop([Scripted(echo)], []), "here")
    there = Place(store, Loop([Scripted(echo)], []), "there")

    async def work() -> None:
        await here.say("hello")
        await there.presence.begin()
        take_over(store, str(here.chat.session_id), "there")
        assert "begins" in (await here.chat.command(Command("new"))).text

    run(here, work)
    there.door.close()
    session = store.read(OWNER, lambda tx: tx.sessions.find("here-0"))
    assert session is not None
    assert session.ended_at is None


def test_a_turn_that_lost_its_session_stores_nothing_more(store: SqlStore) -> None:
    def answer(request: Request) -> Reply:
        take_over(store, str(place.chat.session_id), "there")
        return echo(request)

    place = Place(store, Loop([Scripted(answer)], []))

    async def work() -> None:
        with pytest.raises(LeaseLost):
            await place.say("hello")

    run(place, work)
    assert place.rows() == [("user", "hello")]


def test_a_command_that_only_looks_waits_for_nobody(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(store, Loop([Scripted(echo)], []))

    async def work() -> None:
        await place.say("hello")
        with monkeypatch.context() as patched:
            patched.setattr(SqlStore, "write", _full)
            for name in ("help", "status", "history", "context", "usage", "sessions", "quit"):
                await place.chat.command(Command(name))

    run(place, work)


def test_a_call_with_a_number_that_is_none_is_no_object() -> None:
    assert ToolCall("1", "probe", '{"a": NaN}').parsed() is None
    assert ToolCall("1", "probe", '{"a": 1}').parsed() == {"a": 1}


def test_a_session_that_was_ended_elsewhere_can_still_be_talked_in(store: SqlStore) -> None:
    place = Place(store, Loop([Scripted(echo)], []))

    async def work() -> None:
        await place.say("hello")
        store.write(OWNER, end_session, str(place.chat.session_id), "user_exit", 5.0)
        await place.say("again")

    run(place, work)
    assert len(place.rows()) == 4


def test_a_list_that_was_answered_with_has_the_numbers_that_resume_takes(store: SqlStore) -> None:
    for session_id in ("first", "second"):
        store.write(OWNER, create_session, Session(session_id, "cli", started_at=1.0))
        store.write(OWNER, append_message, session_id, draft("user", f"The {session_id} garden.", 2.0))
    place = Place(store, OfflineAgent(store, OWNER, time.time, lambda: UTC))

    async def work() -> None:
        await place.say("list")
        listed = offered([said or "" for role, said in place.rows() if role == "assistant"]).ids
        await place.chat.command(Command("resume", "2"))
        assert place.chat.session_id == listed[1]

    run(place, work)


def test_a_conversation_that_was_compressed_meanwhile_goes_on_in_its_newest_part(store: SqlStore) -> None:
    place = Place(store, Loop([Scripted(echo)], []))

    async def work() -> None:
        await place.say("hello")
        summary = draft("user", "so far", 5.0)
        store.write(OWNER, compress_session, "run-0", child_id="child", summary=summary, kept=None, now=5.0)
        await place.say("again")

    run(place, work)
    assert place.chat.session_id == "child"
    assert [said for _, said in place.rows()] == ["so far", "again", "You said again."]


@pytest.mark.parametrize("way", ["resume", "branch", "carry on"])
@pytest.mark.parametrize("stored", [None, "", "Be brief."])
def test_a_session_stored_without_a_system_prompt_gets_one(store: SqlStore, way: str, stored: str | None) -> None:
    store.write(OWNER, create_session, Session("old", "cli", started_at=1.0, system_prompt=stored))
    store.write(OWNER, append_message, "old", draft("user", "hello", time.time()))
    if way == "carry on":
        turn = Turn("turn", "old", "run-of-old", TurnState.RUNNING, 1, 1, time.time())
        store.write(OWNER, lambda tx: tx.turns.insert(turn))
    model = Scripted(echo)
    place = Place(store, Loop([model], []))

    async def work() -> None:
        if way == "branch":
            await place.chat.branch("old")
        else:
            await place.chat.resume("old")
        assert await place.chat.take_up(place.events.append) is (way == "carry on")
        await place.say("again")
        await place.say("and again")

    run(place, work)
    expected = f"Begun {datetime.now(UTC):%Y}" if stored is None else stored
    assert {request.system for request in model.asked} == {expected}
    session = store.read(OWNER, lambda tx: tx.sessions.find(str(place.chat.session_id)))
    assert session is not None
    assert session.system_prompt == expected


def test_what_was_said_is_kept_while_its_agent_is_being_made_ready(store: SqlStore) -> None:
    place = Place(store, Loop([Scripted(echo)], []))
    is_waiting = asyncio.Event()

    async def takes_its_time(_: Preferences) -> Agent:
        is_waiting.set()
        await asyncio.sleep(3600)
        raise AssertionError

    async def work() -> None:
        place.chat._kit = replace(place.chat._kit, agent_for=takes_its_time)
        saying = asyncio.create_task(place.say("remember the milk"))
        await is_waiting.wait()
        assert place.rows() == [("user", "remember the milk")]
        place.chat.stop()
        await asyncio.wait_for(saying, DEADLINE)

    run(place, work)
