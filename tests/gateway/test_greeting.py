"""After a bare `/new` or `/reset` the agent speaks first, if there is a model and nobody has spoken meanwhile."""

import threading
from pathlib import Path

import pytest
from lane_bench import Bench
from lane_house import Building, HeldModel, dm
from lane_model import FRESHNESS, IDLE, SEATS
from serving_house import Served, use_obedient_model, write_settings
from waiting import DEADLINE, until

from segue.agent.choosing import Endpoint
from segue.core.errors import ModelError, Unreachable
from segue.core.events import Reply
from segue.core.greeting import GREETING_ENTRY
from segue.core.inbound import Inbound
from segue.core.inbox import Want, entry_of
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sources import SessionSource
from segue.core.turns import TurnState
from segue.ports.model import Request
from segue.sessions.finding import get_session
from segue.sessions.queueing import AnswerThese, CutOff
from segue.sessions.reading import conversation
from segue.storage.store import SqlStore
from segue.testing import ScriptedModel, Stage

KEY = "agent:main:scripted:dm:alice"
ALICE = SEATS[0]


def polite(request: Request) -> Reply:
    said = [message for message in request.conversation if message["role"] == "user"]
    return Reply(f"You said: {said[-1]['content']}" if said else "Good morning.")


@pytest.mark.parametrize("command", ["/new", "/reset"])
def test_a_bare_command_is_confirmed_at_once_and_then_the_agent_greets(store: SqlStore, command: str) -> None:
    stage, model = Stage(), HeldModel(polite)
    building = Building(store, stage, model=model, is_greeting=True)

    async def work() -> None:
        stage.say(dm(), command)
        await building.asked()
        await until(lambda: stage.posted_to("alice"))
        assert stage.posted_to("alice") == ["This is a new conversation already."]
        model.release()
        await building.quiet()
        for line in ("remember the leeks", command, command, "what now?"):
            stage.say(dm(), line)
            await building.quiet()

    building.run(work)
    posted = stage.posted_to("alice")
    assert posted[1:3] == ["Good morning.", "You said: remember the leeks"]
    assert posted[3].startswith("A new conversation begins. The last one, “remember the leeks”, is kept")
    assert posted[4:] == ["Good morning.", "This is a new conversation already.", "You said: what now?"]
    lane = store.read(OWNER, lambda tx: tx.lanes.find(KEY))
    assert lane is not None
    session = store.read(OWNER, get_session, str(lane.session_id))
    said = [(message["role"], message["content"]) for message in store.read(OWNER, conversation, session.id)]
    assert said == [("assistant", "Good morning."), ("user", "what now?"), ("assistant", "You said: what now?")]
    assert session.first_line == "what now?"
    last = model.asked[-1].conversation
    assert [message["role"] for message in last] == ["system", "assistant", "user"], (
        "no provider is told an answer first"
    )


def test_a_greeting_that_fails_is_not_told(store: SqlStore) -> None:
    def answer(request: Request) -> Reply | ModelError:
        is_greeting = all(message["role"] != "user" for message in request.conversation)
        return Unreachable("Nobody is there.") if is_greeting else polite(request)

    building = Building(store, Stage(), model=ScriptedModel(answer), is_greeting=True)

    async def work() -> None:
        for line in ("/new", "hello"):
            building.stage.say(dm(), line)
            await building.quiet()

    building.run(work)
    assert building.stage.posted_to("alice") == ["This is a new conversation already.", "You said: hello"]
    assert store.read(OWNER, lambda tx: tx.inbox.count(("dead",))) == {}


def bench_on(store: SqlStore) -> Bench:
    return Bench(store, "collect", "new", 9, False, IDLE, FRESHNESS, is_greeting=True)


def say(bench: Bench, text: str, message_id: str) -> None:
    bench.now += 1
    bench.arrive(Inbound(ALICE.source, message_id, text))


def work(bench: Bench, fresh: str = "") -> None:
    bench.fresh = fresh
    bench.work(ALICE.lane, bench.due(ALICE.lane))


def sent(store: SqlStore) -> list[str]:
    return [one.text for one in store.read(OWNER, lambda tx: tx.outbox.listed(("pending",)))]


def test_whoever_has_spoken_already_is_answered_without_a_greeting(store: SqlStore) -> None:
    bench = bench_on(store)
    say(bench, "/new", "m1")
    say(bench, "hello", "m2")
    for _ in range(3):
        work(bench, "first")
    bench.end(ALICE.lane, TurnState.DONE, "An answer.")
    assert sent(store) == ["This is a new conversation already.", "An answer."]
    assert store.read(OWNER, lambda tx: tx.inbox.count(("done",))) == {"done": 2}


def test_a_greeting_that_waits_is_cancelled_in_silence(store: SqlStore) -> None:
    bench = bench_on(store)
    say(bench, "/new", "m1")
    work(bench, "first")
    assert isinstance(bench.due(ALICE.lane), AnswerThese)
    say(bench, "/stop", "m2")
    work(bench)
    assert sent(store) == ["This is a new conversation already.", "Nothing was being done."]


def test_a_greeting_that_was_cut_off_is_carried_on(store: SqlStore) -> None:
    bench = bench_on(store)
    say(bench, "/new", "m1")
    for _ in range(2):
        work(bench, "first")
    bench.crash()
    assert isinstance(bench.due(ALICE.lane), CutOff)
    work(bench)
    bench.end(ALICE.lane, TurnState.DONE, "Good morning.")
    assert sent(store)[-1] == "Good morning."


def test_no_transaction_waits_until_it_is_known_which_models_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_obedient_model(monkeypatch)
    go_on, was_told = threading.Event(), list[bool]()

    def listed_late(endpoint: Endpoint) -> Endpoint:
        was_told.append(go_on.wait(DEADLINE / 6))
        return endpoint

    monkeypatch.setattr("segue.app.crew.with_listed_models", listed_late)
    served = Served(write_settings(tmp_path / "home", session={"greet": True}), {"scripted": Stage()})

    async def work() -> None:
        stage = served.stages["scripted"]
        stage.say(dm("owner"), "/new")
        stage.say(dm("alice"), "/help")
        await until(lambda: stage.posted_to("alice"))
        go_on.set()
        await served.quiet()
        assert len(stage.posted_to("owner")) == 2, "confirmed and greeted"

    served.run(work)
    served.close()
    assert all(was_told)


@pytest.mark.parametrize("case", ["no model", "turned off", "control"])
def test_nobody_is_greeted_without_a_model_or_against_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    use_obedient_model(monkeypatch)
    more = {"model": ""} if case == "no model" else {}
    if case == "no model":
        monkeypatch.delenv("OPENAI_API_KEY")
        monkeypatch.setattr("segue.app.crew.local_endpoints", list)
    home = write_settings(tmp_path / "home", session={"greet": case != "turned off"}, **more)
    served = Served(home, {"scripted": Stage()})

    async def work() -> None:
        served.stages["scripted"].say(dm("owner"), "/new")
        await served.quiet()

    served.run(work)
    served.close()
    posted = served.stages["scripted"].posted_to("owner")
    assert posted[0] == "This is a new conversation already."
    assert len(posted) == (2 if case == "control" else 1)


@pytest.mark.parametrize(("platform", "expected"), [("scripted", True), ("webhook", False), ("api_server", False)])
def test_what_a_program_says_is_no_greeting_whatever_its_words_are(platform: str, expected: bool) -> None:
    said = Inbound(SessionSource(platform=platform, chat_id="c", chat_type="dm"), "m1", GREETING_ENTRY, is_person=False)
    entry = entry_of(said, ALICE.lane, "owner", "", "owner", 1.0)._replace(want=Want.QUEUED)
    assert entry.is_greeting is expected
