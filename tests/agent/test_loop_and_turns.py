"""Our loop and what becomes of it in the store: tools, approvals, steering, stand-ins, stopping, trouble."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from places import Answering, Place, Probe, Scripted, fine, one_turn, results, run, wants
from waiting import until

from segue.agent.door import Door
from segue.agent.loop import MOST_MODEL_CALLS, Loop
from segue.core.commands import Command
from segue.core.errors import InUse, ModelUnavailable, StoreFault, StoreFull
from segue.core.events import Done, Event, Failed, Note, Reply, Steered, Text, ToolCall, ToolStarted
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.usage import Billing, Usage
from segue.ports.model import Model, Request
from segue.ports.tool import ToolFailed
from segue.sessions import turning
from segue.storage.store import SqlStore


def test_a_tool_is_run_and_its_result_is_told(store: SqlStore) -> None:
    place, events = one_turn(store, Loop([Scripted(wants())], [Probe(fine)]))
    assert results(events) == [("fine", False)]
    assert place.rows() == [
        ("user", "hello"),
        ("assistant", "Let me see."),
        ("tool", "fine"),
        ("assistant", "All done."),
    ]
    assert events[-1] == Done()


async def fails(_: dict[str, Any]) -> str:
    raise ToolFailed("There is no such thing.")


async def breaks(_: dict[str, Any]) -> str:
    raise ZeroDivisionError("by nothing")


@pytest.mark.parametrize(
    ("answer", "tool", "agrees", "told"),
    [
        (wants(name="unknown"), Probe(fine), True, "There is no tool 'unknown'; there are probe."),
        (wants('{"a": '), Probe(fine), True, "not a JSON object"),
        (wants("[1]"), Probe(fine), True, "not a JSON object"),
        (wants(), Probe(fine, risk="it may hurt"), False, "did not allow this"),
        (wants(), Probe(fails), True, "There is no such thing."),
        (wants(), Probe(breaks), True, "ZeroDivisionError: by nothing"),
    ],
)
def test_what_cannot_be_done_is_told_to_the_model(
    store: SqlStore, answer: Answering, tool: Probe, agrees: bool, told: str
) -> None:
    place, events = one_turn(store, Loop([Scripted(answer)], [tool]), agrees=agrees)
    ((output, is_error),) = results(events)
    assert told in output
    assert is_error
    assert place.rows()[-1] == ("assistant", "All done.")


def test_a_result_that_floods_is_cut_in_the_middle(store: SqlStore) -> None:
    async def floods(_: dict[str, Any]) -> str:
        return "begin" + "x" * 5_000_000 + "end"

    place, events = one_turn(store, Loop([Scripted(wants())], [Probe(floods)]))
    ((output, _),) = results(events)
    assert len(output) < 101_000
    assert output.startswith("begin")
    assert output.endswith("end")
    assert place.rows()[-1] == ("assistant", "All done.")


def test_another_model_stands_in_and_people_are_told(store: SqlStore) -> None:
    away = Scripted(lambda _: ModelUnavailable("The first is away."), "first")
    there: Model = Scripted(lambda _: Reply("Here I am."), "second")
    place, events = one_turn(store, Loop([away, there], []))
    assert Note("The first is away. Going on with second.") in events
    assert place.rows()[-1] == ("assistant", "Here I am.")


def test_when_nobody_answers_it_is_one_sentence_and_the_conversation_stands(store: SqlStore) -> None:
    place, events = one_turn(store, Loop([Scripted(lambda _: ModelUnavailable("Nobody is there."))], []))
    assert Failed("Nobody is there.", str(ModelUnavailable.public_text)) in events
    assert place.rows() == [("user", "hello")]


def test_a_model_that_goes_round_in_circles_comes_to_an_end(store: SqlStore) -> None:
    numbers = iter(range(1000))
    model = Scripted(lambda _: Reply("", (ToolCall(f"c{next(numbers)}", "probe"),)))
    _, events = one_turn(store, Loop([model], [Probe(fine)]))
    assert len(model.asked) == MOST_MODEL_CALLS
    assert any(isinstance(event, Failed) for event in events)


def test_what_is_said_meanwhile_is_heard_at_the_next_step(store: SqlStore) -> None:
    place: Place

    async def speaks(_: dict[str, Any]) -> str:
        place.chat.steer("use the other one")
        return "fine"

    model = Scripted(wants())
    place = Place(store, Loop([model], [Probe(speaks)]))

    async def work() -> None:
        events = await place.say("hello")
        assert Steered("use the other one") in events

    model._answer = _until_steered
    run(place, work)
    assert [role for role, _ in place.rows()] == ["user", "assistant", "tool", "user", "assistant"]
    assert model.asked[-1].conversation[-1] == {"role": "user", "content": "use the other one"}


def _until_steered(request: Request) -> Reply:
    if len(request.conversation) == 1:
        return Reply("Let me see.", (ToolCall("c1", "probe"),))
    return Reply("All done.")


def test_stopping_keeps_what_was_said_and_ends_what_runs(store: SqlStore) -> None:
    was_cancelled: list[bool] = []

    async def hangs(_: dict[str, Any]) -> str:
        if was_cancelled:
            return "fine"
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            was_cancelled.append(True)
            raise
        return "never"

    place = Place(store, Loop([Scripted(wants())], [Probe(hangs)]))

    async def work() -> None:
        turn = asyncio.create_task(place.say("hello"))
        await until(lambda: any(isinstance(event, ToolStarted) for event in place.events))
        place.chat.stop()
        events = await turn
        assert events[-1] == Done(was_stopped=True)
        await place.chat.say("and now?", place.events.append)

    run(place, work)
    assert was_cancelled[0]
    roles = [role for role, _ in place.rows()]
    assert roles[:4] == ["user", "assistant", "tool", "user"]


def test_half_an_answer_is_kept(store: SqlStore) -> None:
    place = Place(store, Loop([Scripted(lambda _: Reply("one two three four five six"))], []))

    def hear(event: Event) -> None:
        if event == Text("two "):
            place.chat.stop()

    async def work() -> None:
        await place.chat.say("hello", hear)

    run(place, work)
    role, said = place.rows()[-1]
    assert role == "assistant"
    assert (said or "").startswith("one two")
    assert "six" not in (said or "")


@pytest.mark.parametrize("what", ["record_reply", "end_turn"])
def test_what_is_being_stored_when_somebody_stops_it_is_stored_once(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    careful = getattr(turning, what)
    place = Place(store, Loop([Scripted(wants())], [Probe(fine)]))

    async def work() -> None:
        loop, stopped = asyncio.get_running_loop(), list[bool]()

        def stopped_meanwhile(*args: Any, **more: Any) -> Any:
            if not stopped:
                stopped.append(True)
                loop.call_soon_threadsafe(place.chat.stop)
            return careful(*args, **more)

        monkeypatch.setattr(turning, what, stopped_meanwhile)
        events = await place.say("hello")
        assert events[-1] == Done(was_stopped=True)

    run(place, work)
    said = [content for role, content in place.rows() if role == "assistant"]
    assert said == (["Let me see."] if what == "record_reply" else ["Let me see.", "All done."])
    with store._engine.reading(OWNER) as executor:
        ((state,),) = executor.rows("SELECT state FROM turns", {})
    assert state == ("stopped" if what == "record_reply" else "done")


def test_what_was_stored_although_the_store_could_not_say_so_is_stored_once(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, faults = Door.write, [StoreFault("The disk said nothing.")]

    async def doubtful(self: Door, work: Any, *args: Any, **more: Any) -> Any:
        done = await write(self, work, *args, **more)
        if work is turning.record_reply and faults:
            raise faults.pop()
        return done

    monkeypatch.setattr(Door, "write", doubtful)
    place = Place(store, Loop([Scripted(wants())], [Probe(fine)]))

    async def work() -> None:
        with suppress(StoreFault):
            await place.say("hello")

    run(place, work)
    assert faults == []
    assert [content for role, content in place.rows() if role == "assistant"] == ["Let me see."]


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """While the list holds something, every change meets a full disk."""
    switch: list[bool] = []
    write, write_at_once = SqlStore.write, SqlStore.write_at_once

    def refused(self: SqlStore, *arguments: Any, **named: Any) -> Any:
        if switch:
            raise StoreFull("The disk is full: nothing was written.")
        return write(self, *arguments, **named)

    def refused_at_once(self: SqlStore, *arguments: Any) -> Any:
        return [] if switch else write_at_once(self, *arguments)

    monkeypatch.setattr(SqlStore, "write", refused)
    monkeypatch.setattr(SqlStore, "write_at_once", refused_at_once)
    yield switch
    switch.clear()


def test_a_full_disk_in_the_middle_is_told_and_the_chat_goes_on_when_there_is_room(
    store: SqlStore, full: list[bool]
) -> None:
    first = iter([True])

    async def fills(_: dict[str, Any]) -> str:
        full.extend(first)
        return "fine"

    place = Place(store, Loop([Scripted(wants())], [Probe(fills)]))

    async def work() -> None:
        with pytest.raises(StoreFull):
            await place.say("hello")
        full.clear()
        events = await place.say("again")
        assert events[-1] == Done()

    run(place, work)
    assert [role for role, _ in place.rows()] == ["user", "assistant", "user", "assistant", "tool", "assistant"]


def test_a_full_disk_at_the_first_word_leaves_no_session_that_is_not_there(store: SqlStore, full: list[bool]) -> None:
    place = Place(store, Loop([Scripted(lambda _: Reply("Yes."))], []))

    async def work() -> None:
        full.append(True)
        with pytest.raises(StoreFull):
            await place.say("hello")
        assert await place.chat.session() is None
        full.clear()
        await place.say("again")

    run(place, work)
    assert place.rows() == [("user", "again"), ("assistant", "Yes.")]


def test_what_a_session_holds_is_what_the_model_is_told(store: SqlStore) -> None:
    usage = Usage(10, 5, 2, 1, 3, 1, 0.5)
    model = Scripted(lambda _: Reply("Yes.", usage=usage, billing=Billing(model="scripted"), context_window=1000))
    place = Place(store, Loop([model], []))

    async def work() -> None:
        await place.say("one")
        await place.say("two")

    run(place, work)
    first, second = model.asked
    assert list(second.conversation[:1]) == list(first.conversation)
    assert first.system == second.system == f"Begun {datetime.now(UTC):%Y}"
    session = store.read(OWNER, lambda tx: tx.sessions.find(str(place.chat.session_id)))
    assert session is not None
    assert (session.input_tokens, session.api_call_count, session.estimated_cost_usd) == (20, 2, 1.0)
    assert (session.context_tokens, session.context_window) == (12, 1000), "without the three that were thought"
    assert (session.ended_at is not None, session.end_reason) == (True, "user_exit")


def test_two_places_cannot_have_one_session(store: SqlStore) -> None:
    here = Place(store, Loop([Scripted(lambda _: Reply("Yes."))], []), "here")
    there = Place(store, Loop([Scripted(lambda _: Reply("Yes."))], []), "there")

    async def work() -> None:
        await here.say("hello")
        await there.presence.begin()
        with pytest.raises(InUse, match=r"segue chat, process 7 on here"):
            await there.chat.resume(str(here.chat.session_id))
        await here.chat.command(Command("new"))
        await there.chat.resume("here-0")
        await there.say("and from here")
        await there.chat.close()
        there.door.close()

    with suppress(asyncio.CancelledError):
        run(here, work)
    assert [role for role, _ in there.rows()] == ["user", "assistant"] * 2


def test_what_a_conversation_fills_is_known_also_where_nobody_knows_the_window(store: SqlStore) -> None:
    counted = Reply("Yes.", usage=Usage(500, 20, reasoning_tokens=5))
    place, _ = one_turn(store, Loop([Scripted(lambda _: counted)], []))
    found = store.read(OWNER, lambda tx: tx.sessions.find(place.chat.session_id or ""))
    assert found is not None
    assert (found.context_tokens, found.context_window) == (515, None)


def test_a_model_that_counts_nothing_leaves_the_count_as_it_was(store: SqlStore) -> None:
    place, _ = one_turn(store, Loop([Scripted(lambda _: Reply("Yes."))], []))
    found = store.read(OWNER, lambda tx: tx.sessions.find(place.chat.session_id or ""))
    assert found is not None
    assert (found.context_tokens, found.context_window) == (None, None)
