"""Conversations that become longer than their model can read: nothing is lost, and no question is too long."""

import asyncio
import dataclasses
import itertools
import json
from collections.abc import Callable, Sequence
from datetime import UTC
from typing import Any

import pytest
from places import Place, Probe, Scripted, on_sqlite, run
from torture_rounds import rounds
from waiting import DEADLINE

from segue.agent.loop import Loop
from segue.agent.recalling import Recaller
from segue.agent.summarising import Summariser
from segue.core.commands import Command
from segue.core.errors import ContextOverflow, InvalidSession, ModelError, ModelUnavailable
from segue.core.events import Compressed, Event, Failed, Note, Reply, ToolCall, ToolFinished
from segue.core.messages import SUMMARY_SEQ, Message, draft, said
from segue.core.pruning import Pruning, Rules
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sessions import Session
from segue.core.silence import FLUSH_REQUEST
from segue.core.sizes import tokens_of_all
from segue.core.usage import Billing, Purpose, Usage
from segue.ports.model import Request
from segue.ports.store import Transaction
from segue.sessions.commanding.acts import Compress
from segue.sessions.compressing import compress_session
from segue.sessions.finding import find_parts, find_tip, get_id, get_session
from segue.sessions.reading import view_of
from segue.sessions.recording import add_usage
from segue.sessions.starting import create_session
from segue.sessions.titling import set_title
from segue.storage.store import SqlStore
from segue.tools import session_search
from segue.tools.session_search import SessionSearch

WINDOW = 3_000
NAMES = (
    "Agatha Bertram Cosima Dietmar Elfriede Friedrich Gudrun Hartmut Irmgard Jürgen"
    " Kunigunde Lothar Mechthild Norbert Ottilie Pankraz Quirin Roswitha Siegfried Theodora"
)
FACTS = [f"The locker of {name} has the code {1_000 + 37 * at}." for at, name in enumerate(NAMES.split())]


@pytest.fixture(autouse=True)
def _time_to_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found does not depend on how busy the machine is."""
    monkeypatch.setattr(session_search, "SECONDS", DEADLINE)


def counted(request: Request) -> int:
    """Tokens as the server counts them: four characters each."""
    said = json.dumps([request.system, list(request.conversation), [list(tool) for tool in request.tools]])
    return len(said) // 4


def messages_of(tx: Transaction, session_id: str) -> list[Message]:
    return tx.messages.of(session_id)


class Strict:
    """Answers, calls a tool now and then, and refuses what is longer than its window; all of it is written down."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.asked = 0

    def __call__(self, request: Request) -> Reply | ModelError:
        self.sizes.append(counted(request))
        if self.sizes[-1] > WINDOW:
            return ContextOverflow("Too long.")
        self.asked += 1
        usage = Usage(input_tokens=self.sizes[-1], output_tokens=20, api_call_count=1)
        about: dict[str, Any] = {"usage": usage, "billing": Billing(model="scripted"), "context_window": WINDOW}
        last = request.conversation[-1]
        if last["role"] == "user" and self.asked % 3 == 0:
            calls = tuple(ToolCall(f"c{self.asked}-{n}", "probe") for n in range(2))
            return Reply("Let me see.", calls, finish_reason="tool_calls", **about)
        return Reply(f"Noted, number {self.asked}. " + "Soup is good. " * 10, **about)


async def long_output(_arguments: dict[str, Any]) -> str:
    return "leek " * 150


def good(request: Request) -> Reply:
    """A summary that keeps the beginning of every line."""
    words = str(request.conversation[-1]["content"])
    return Reply(" ".join(line[:40] for line in words.splitlines())[:1_500], usage=Usage(input_tokens=9))


def garbage(_request: Request) -> Reply:
    return Reply("xyzzy plugh fnord quux " * 40)


def empty(_request: Request) -> Reply:
    return Reply("")


def endless(_request: Request) -> Reply:
    return Reply("locker code soup " * 2_000)


def down(_request: Request) -> ModelError:
    return ModelUnavailable("Nobody is there.")


class Hanging:
    name, provider = "hanging", "test"

    async def stream(self, _request: Request) -> Any:
        await asyncio.Event().wait()
        yield Reply("never")


SUMMARISERS: dict[str, Callable[[], Summariser]] = {
    "good": lambda: Summariser(Scripted(good), 2_000),
    "garbage": lambda: Summariser(Scripted(garbage), 2_000),
    "empty": lambda: Summariser(Scripted(empty), 2_000),
    "endless": lambda: Summariser(Scripted(endless), 2_000),
    "down": lambda: Summariser(Scripted(down), 2_000),
    "none": lambda: Summariser(None, 2_000),
    "hanging": lambda: Summariser(Hanging(), 2_000, 0.01),
}


@pytest.mark.parametrize("thought", [2_000, 100_000])
def test_who_summarises_is_never_sent_more_than_it_can_read(thought: int) -> None:
    """Also when it reads less than the model that answers, and when nobody knows how much it reads."""
    refused: list[int] = []

    def answer(request: Request) -> Reply | ModelError:
        size = counted(request)
        if size > 2_000:
            refused.append(size)
            return ContextOverflow("Too long.")
        return good(request)

    told = [said(draft("user", "leeks and potatoes " * 40, 1.0), seq) for seq in range(1, 60)]
    earlier = "leeks are good " * 800
    summary = asyncio.run(Summariser(Scripted(answer), thought).summarise(earlier, told, 4_000))
    assert not summary.trouble
    assert "leeks" in summary.text
    assert bool(refused) is (thought > 2_000)


LONG = rounds(3, in_torture=20)
MANY_WINDOWS = [
    pytest.param("sqlite", "good", rounds(8, in_torture=20), marks=pytest.mark.torture),
    *(pytest.param("sqlite", kind, 3) for kind in ("garbage", "empty", "none", "hanging")),
    *(pytest.param("sqlite", kind, LONG, marks=pytest.mark.torture) for kind in ("down", "endless")),
    pytest.param("postgres", "good", LONG, marks=pytest.mark.torture),
]
"""Where it is kept, who summarises, and how many windows are filled; in torture it is as many as the test says."""


@pytest.mark.parametrize(("engine", "kind", "windows"), MANY_WINDOWS, indirect=["engine"])
def test_a_conversation_of_twenty_windows(store: SqlStore, kind: str, windows: int) -> None:
    strict = Strict()
    place = Place(store, Loop([Scripted(strict)], [Probe(long_output)]), summariser=SUMMARISERS[kind]())
    events: list[Event] = []

    async def work() -> None:
        await place.chat.command(Command("title", "my project"))
        said = iter(FACTS)
        told = 0
        while told < windows * WINDOW * 4:
            words = next(said, "And what else is there to say about soup? " * 12)
            events.extend(await place.say(words))
            told += len(words) + 200

    run(place, work)
    assert not [event for event in events if isinstance(event, Failed)]
    assert max(strict.sizes) <= WINDOW, "no question was longer than the window"
    moves = [event for event in events if isinstance(event, Compressed)]
    assert len(moves) >= windows * 3 // 4
    assert [move.title for move in moves] == [f"my project #{number}" for number in range(2, len(moves) + 2)]
    tip = store.read(OWNER, lambda tx: find_tip(tx, get_id(tx, "my project")))
    assert tip == place.chat.session_id == moves[-1].session_id
    parts = store.read(OWNER, find_parts, tip)
    assert len(parts) == len(moves) + 1
    every = [message for part in parts for message in store.read(OWNER, messages_of, part.id)]
    asked = [message.content for message in every if message.role == "user" and message.seq != SUMMARY_SEQ]
    assert asked[: len(FACTS)] == FACTS, "every word is kept, once"
    assert_found(store, place, FACTS)


@on_sqlite
def test_one_turn_that_is_longer_than_the_window_is_compressed_on_its_way(store: SqlStore) -> None:
    strict, calls = Strict(), itertools.count(1)

    def answer(request: Request) -> Reply | ModelError:
        reply = strict(request)
        number = next(calls)
        if isinstance(reply, ModelError) or number > 40:
            return reply
        return dataclasses.replace(reply, text="", calls=(ToolCall(f"c{number}", "probe"),), finish_reason="tool_calls")

    place = Place(store, Loop([Scripted(answer)], [Probe(long_output)]), summariser=SUMMARISERS["good"]())
    events: list[Event] = []

    async def work() -> None:
        events.extend(await place.say("Look at forty leeks, one by one."))

    run(place, work)
    assert not [event for event in events if isinstance(event, Failed)]
    assert max(strict.sizes) <= WINDOW
    assert [event for event in events if isinstance(event, Compressed)]
    results = [event for event in events if isinstance(event, ToolFinished)]
    assert len({event.call.id for event in results}) == len(results), "nothing was done twice"
    first = store.read(OWNER, view_of, str(place.chat.session_id))[0]
    assert "Look at forty leeks" in (first.content or "")
    rows = store.read(OWNER, lambda tx: tx.turns._db.rows("SELECT DISTINCT state FROM turns", {}))  # type: ignore[attr-defined]
    assert [row[0] for row in rows] == ["done"]


def assert_found(store: SqlStore, place: Place, facts: list[str]) -> None:
    """Each fact is in what the model is told, or found by the agent's own search."""
    session_id = str(place.chat.session_id)
    view = "\n".join(message.content or "" for message in store.read(OWNER, view_of, session_id))
    search = SessionSearch(store, OWNER, lambda: UTC)
    for fact in facts:
        if fact not in view:
            name = fact.split()[3]
            found = asyncio.run(search.run({"query": f"locker {name}"}, session_id))
            assert fact in found, fact


@on_sqlite
def test_results_are_cut_down_first_and_stay_so(store: SqlStore) -> None:
    """A prune changes what the model read before only when it is noted; until then the beginning is the same."""
    sent: list[list[Any]] = []

    def answer(request: Request) -> Reply:
        sent.append(list(request.conversation))
        about: dict[str, Any] = {"usage": Usage(input_tokens=counted(request)), "context_window": 40_000}
        if request.conversation[-1]["role"] == "user":
            return Reply("", (ToolCall(f"c{len(sent)}", "probe"),), **about)
        return Reply("Done.", **about)

    async def floods(_: dict[str, Any]) -> str:
        return "x" * 12_000

    rules = Rules(pruning=Pruning(min_chars=0))
    place = Place(store, Loop([Scripted(answer)], [Probe(floods)]), summariser=Summariser(None), rules=rules)

    async def work() -> None:
        for number in range(12):
            await place.say(f"look {number}")

    run(place, work)
    changes = sum(later[: len(before)] != before for before, later in itertools.pairwise(sent))
    noted = store.read(OWNER, lambda tx: tx.messages.of(str(place.chat.session_id)))
    assert any(message.pruned for message in noted)
    assert 1 <= changes <= 4
    assert place.chat.session_id == "run-0", "it was not compressed"


@on_sqlite
def test_the_agent_writes_down_what_it_wants_to_remember_once_before(store: SqlStore) -> None:
    strict = Strict()
    flushes: list[str] = []

    def answer(request: Request) -> Reply | ModelError:
        if request.conversation[-1].get("content") == FLUSH_REQUEST:
            flushes.append(str(place.chat.session_id))
            return Reply("NO_REPLY", usage=Usage(input_tokens=5, api_call_count=1))
        return strict(request)

    place = Place(store, Loop([Scripted(answer)], []), summariser=SUMMARISERS["good"](), can_flush=True)
    events: list[Event] = []

    async def work() -> None:
        for _ in range(150):
            events.extend(await place.say("And what else is there to say about soup? " * 8))
            if sum(isinstance(event, Compressed) for event in events) == 3:
                return

    run(place, work)
    moves = [event.session_id for event in events if isinstance(event, Compressed)]
    assert len(moves) == 3
    assert len(flushes) == len(set(flushes)) == len(moves), "once for each part"
    assert not any(isinstance(event, Note) and "NO_REPLY" in event.text for event in events)
    every = [message for move in moves for message in store.read(OWNER, messages_of, move)]
    assert not any(FLUSH_REQUEST in (message.content or "") for message in every), "nobody sees it"
    spent = [one.purpose for one in store.read(OWNER, lambda tx: tx.ledger.of(flushes[0]))]
    assert Purpose.FLUSH in spent


@on_sqlite
@pytest.mark.parametrize("can_flush", [True, False])
def test_where_no_notes_can_be_written_the_agent_is_not_asked_to(store: SqlStore, can_flush: bool) -> None:
    dense = Dense(4)
    place = Place(store, Loop([Scripted(dense)], []), summariser=Summariser(None), can_flush=can_flush)
    events: list[Event] = []

    async def work() -> None:
        for _ in range(20):
            events.extend(await place.say("And what else is there to say about soup? " * 12))

    run(place, work)
    assert [event for event in events if isinstance(event, Compressed)]
    assert bool(dense.flushes) == can_flush


@on_sqlite
@pytest.mark.parametrize(("long", "is_half"), [((*range(10), 29), False), (range(40), True)])
def test_the_last_twenty_turns_stay_unless_they_alone_fill_half_the_window(
    store: SqlStore, long: Sequence[int], is_half: bool
) -> None:
    window, size = 20_000, 13_530 // len(long[:30])

    def answer(request: Request) -> Reply:
        return Reply("Noted.", usage=Usage(counted(request), api_call_count=1), context_window=window)

    place = Place(store, Loop([Scripted(answer)], []), summariser=Summariser(None))
    asked: list[str] = []

    async def work() -> None:
        while place.chat.session_id in (None, "run-0"):
            number = len(asked)
            asked.append(f"{number} " + "leek" * (size if number in long else 1))
            await place.say(asked[-1])

    run(place, work)
    first, *rest = store.read(OWNER, view_of, str(place.chat.session_id))
    kept = [message.content for message in rest if message.role == "user"]
    assert first.seq == SUMMARY_SEQ
    assert kept == asked[-len(kept) :]
    assert len(kept) < 20 if is_half else len(kept) == 20
    assert tokens_of_all(rest) <= window // 2
    assert not is_half or tokens_of_all(rest) + size + 20 > window // 2, "as many as fit stay"


@on_sqlite
def test_what_is_too_long_to_be_read_is_not_in_the_way_of_writing_down_the_rest(store: SqlStore) -> None:
    dense = Dense(4)

    async def floods(_: dict[str, Any]) -> str:
        return "leek " * 4_000

    place = Place(store, Loop([Scripted(dense)], [Probe(floods)]), summariser=Summariser(None), can_flush=True)
    events: list[Event] = []

    async def work() -> None:
        await place.say("My locker has the code 1000.")
        events.extend(await place.say("look"))

    run(place, work)
    assert dense.flushes == 1
    assert max(dense.sizes) <= WINDOW
    assert not [event for event in events if isinstance(event, Failed)]
    assert not [event for event in events if isinstance(event, Note) and "Nothing was written down" in event.text]


class Dense:
    """Answers whatever fits its window, of which it counts a token for so many characters."""

    def __init__(self, characters: int) -> None:
        self.sizes: list[int] = []
        self.flushes = 0
        self._characters = characters

    def __call__(self, request: Request) -> Reply | ModelError:
        size = counted(request) * 4 // self._characters
        self.sizes.append(size)
        if size > WINDOW:
            return ContextOverflow("Too long.")
        last = request.conversation[-1]
        self.flushes += last["content"] == FLUSH_REQUEST
        calls = (ToolCall(f"c{len(self.sizes)}", "probe"),) if last["content"] == "look" else ()
        usage = Usage(input_tokens=size, output_tokens=5, api_call_count=1)
        return Reply("Noted.", calls, usage=usage, context_window=WINDOW)


@on_sqlite
@pytest.mark.parametrize("characters", [1, 2, 3])
def test_a_model_that_counts_more_tokens_than_we_do_is_never_sent_too_many(store: SqlStore, characters: int) -> None:
    dense = Dense(characters)
    place = Place(store, Loop([Scripted(dense)], []), summariser=Summariser(None))
    events: list[Event] = []

    async def work() -> None:
        for _ in range(40):
            events.extend(await place.say("7f3a9c " * 30))

    run(place, work)
    assert [event for event in events if isinstance(event, Compressed)]
    assert not [event for event in events if isinstance(event, Failed)]
    assert max(dense.sizes) <= WINDOW


@on_sqlite
def test_what_was_undone_does_not_count_any_more(store: SqlStore) -> None:
    """A question after an undo is measured by what the conversation is, and nothing is made shorter for nothing."""
    dense = Dense(4)

    async def much(_: dict[str, Any]) -> str:
        return "leek " * 1_500

    place = Place(store, Loop([Scripted(dense)], [Probe(much)]), summariser=Summariser(None), can_flush=True)

    async def work() -> None:
        await place.say("hello")
        await place.say("look")
        await place.chat.command(Command("undo"))
        events = await place.say("words " * 200)
        assert not [event for event in events if isinstance(event, Compressed)]

    run(place, work)
    assert max(dense.sizes) > WINDOW // 2
    assert dense.flushes == 0


@on_sqlite
def test_the_size_of_a_conversation_is_what_was_asked_and_answered_as_the_model_counted(store: SqlStore) -> None:
    usage = Usage(1_000, output_tokens=50, reasoning_tokens=20, api_call_count=1)
    place = Place(store, Loop([Scripted(lambda _: Reply("Noted.", usage=usage, context_window=WINDOW))], []))

    async def work() -> None:
        await place.say("hello")
        session = await place.chat.session()
        assert session is not None
        assert (session.context_tokens, session.context_window) == (1_030, WINDOW)

    run(place, work)


@on_sqlite
def test_what_a_model_thought_does_not_count_as_said(store: SqlStore) -> None:
    flushes: list[Request] = []

    def answer(request: Request) -> Reply:
        if request.conversation[-1]["content"] == FLUSH_REQUEST:
            flushes.append(request)
        usage = Usage(counted(request), output_tokens=WINDOW, reasoning_tokens=WINDOW - 5, api_call_count=1)
        return Reply("Noted.", usage=usage, context_window=WINDOW)

    place = Place(store, Loop([Scripted(answer)], []), summariser=Summariser(None), can_flush=True)

    async def work() -> None:
        await place.say("hello")
        session = await place.chat.session()
        assert session is not None
        assert session.context_tokens is not None
        assert session.context_tokens < 100
        await place.say("words " * 200)

    run(place, work)
    assert not flushes


@on_sqlite
def test_a_model_that_reads_less_than_was_thought_gets_less(store: SqlStore) -> None:
    """The provider does not say how much it can read, and counts a token for every character."""

    def answer(request: Request) -> Reply | ModelError:
        return ContextOverflow("Too long.") if counted(request) * 4 > 20_000 else Reply("Noted.")

    place = Place(store, Loop([Scripted(answer)], []), summariser=Summariser(None))

    async def work() -> None:
        events: list[Event] = []
        for _ in range(40):
            events += await place.say("x y " * 1_000)
        assert not [event for event in events if isinstance(event, Failed)]

    run(place, work)


@on_sqlite
def test_what_can_never_fit_is_one_sentence_and_the_next_turn_is_well(store: SqlStore) -> None:
    place = Place(store, Loop([Scripted(Strict())], []), summariser=SUMMARISERS["good"]())

    async def work() -> None:
        await place.say("hello")
        events = await place.say("word " * 20_000)
        assert [event for event in events if isinstance(event, Failed)]
        events = await place.say("and now?")
        assert not [event for event in events if isinstance(event, Failed)]

    run(place, work)


# By hand, and by two


def test_compress_by_hand(store: SqlStore) -> None:
    model = Scripted(good)
    place = Place(store, Loop([Scripted(lambda _: Reply("Noted."))], []), summariser=Summariser(model, 50_000))
    seen: list[Event] = []

    async def work() -> None:
        answer = await place.chat.command(Command("compress", "the leeks"))
        assert "nothing has been said" in answer.text
        for number in range(8):
            await place.say(f"fact {number}: leeks")
        act = (await place.chat.command(Command("compress", "the leeks"))).act
        assert act == Compress("the leeks")
        await place.chat.compress("the leeks", seen.append)
        await place.say("go on")

    run(place, work)
    assert "the leeks" in str(model.asked[0].conversation[0]["content"])
    assert isinstance(seen[-1], Compressed)
    first, *rest = store.read(OWNER, view_of, str(place.chat.session_id))
    assert first.seq == SUMMARY_SEQ
    assert [message.content for message in rest if message.role == "user"] == [
        "fact 6: leeks",
        "fact 7: leeks",
        "go on",
    ]


@pytest.mark.parametrize(("protect_last_n", "kept"), [(20, ["fact 6", "fact 7"]), (1, ["fact 7"])])
def test_by_hand_no_more_turns_are_kept_than_are_protected(
    store: SqlStore, protect_last_n: int, kept: list[str]
) -> None:
    agent = Loop([Scripted(lambda _: Reply("Noted."))], [])
    place = Place(store, agent, summariser=Summariser(None), rules=Rules(kept_turns=protect_last_n))

    async def work() -> None:
        for number in range(8):
            await place.say(f"fact {number}")
        await place.chat.compress("", place.events.append)

    run(place, work)
    view = store.read(OWNER, view_of, str(place.chat.session_id))
    assert [message.content for message in view[1:] if message.role == "user"] == kept


def test_two_who_compress_at_once_make_one_child(store: SqlStore) -> None:
    place = Place(store, Loop([Scripted(lambda _: Reply("Noted."))], []), summariser=Summariser(None))

    async def work() -> None:
        for number in range(8):
            await place.say(f"fact {number}")

    run(place, work)
    parent = str(place.chat.session_id)

    def compress(child: str) -> None:
        summary = draft("user", "so far", 5.0)
        store.write(OWNER, compress_session, parent, child_id=child, summary=summary, kept=None, now=5.0)

    async def both() -> list[Any]:
        tasks = [asyncio.to_thread(compress, f"child-{number}") for number in range(4)]
        return await asyncio.gather(*tasks, return_exceptions=True)

    outcomes = asyncio.run(both())
    assert sum(outcome is None for outcome in outcomes) == 1
    assert all(outcome is None or isinstance(outcome, InvalidSession) for outcome in outcomes)
    assert len(store.read(OWNER, lambda tx: tx.sessions.children([parent]))) == 1


# Titles by themselves


def titled(title: str) -> Scripted:
    return Scripted(lambda _: Reply(title, usage=Usage(input_tokens=3, api_call_count=1)))


def test_a_conversation_is_named_after_its_first_exchange(store: SqlStore) -> None:
    model = titled("Leek soup for six")

    async def namer() -> Scripted:
        return model

    place = Place(store, Loop([Scripted(lambda _: Reply("Take leeks."))], []), namer=namer)

    async def work() -> None:
        await place.say("how do I make leek soup for six people?")
        await place.chat._kit.namer.settled()  # type: ignore[union-attr]
        await place.say("and for seven?")

    run(place, work)
    session = store.read(OWNER, lambda tx: tx.sessions.find(str(place.chat.session_id)))
    assert session is not None
    assert (session.title, session.title_source) == ("Leek soup for six", "model")
    assert len(model.asked) == 1
    assert "three to seven words" in model.asked[0].system
    assert [one.purpose for one in store.read(OWNER, lambda tx: tx.ledger.of(session.id))].count(Purpose.TITLE) == 1


ANSWERED = Billing("big-1", "provider", "http://127.0.0.1:1", "api")
ASKED_ASIDE = [Purpose.TITLE, Purpose.SUMMARY, Purpose.FLUSH, Purpose.RECALL]


@pytest.mark.parametrize("purpose", ASKED_ASIDE)
def test_the_model_of_a_session_is_the_one_that_answered_last(store: SqlStore, purpose: Purpose) -> None:
    def work(tx: Transaction) -> None:
        create_session(tx, Session("a", "cli", started_at=1.0))
        add_usage(tx, "a", Usage(10, 2, api_call_count=1), ANSWERED, 2.0)
        small = Billing("tiny-1", "elsewhere", "http://127.0.0.1:2", "api", "estimated", "table", "1")
        add_usage(tx, "a", Usage(3, 1, api_call_count=1, estimated_cost_usd=0.5), small, 3.0, purpose)

    store.write(OWNER, work)
    session = store.read(OWNER, get_session, "a")
    assert (session.model, session.billing_provider, session.billing_base_url) == ANSWERED[:3]
    assert (session.input_tokens, session.api_call_count, session.estimated_cost_usd) == (13, 2, 0.5)
    assert [one.model for one in store.read(OWNER, lambda tx: tx.ledger.of("a"))] == ["big-1", "tiny-1"]


def test_a_title_set_by_hand_stays_also_in_a_race(store: SqlStore) -> None:
    def answer(_: Request) -> Reply:
        store.write(OWNER, set_title, str(place.chat.session_id), "Mine")
        return Reply("Something else")

    async def namer() -> Scripted:
        return Scripted(answer)

    place = Place(store, Loop([Scripted(lambda _: Reply("Take leeks."))], []), namer=namer)

    async def work() -> None:
        await place.say("soup?")
        await place.chat._kit.namer.settled()  # type: ignore[union-attr]

    run(place, work)
    session = store.read(OWNER, lambda tx: tx.sessions.find(str(place.chat.session_id)))
    assert session is not None
    assert (session.title, session.title_source) == ("Mine", "user")


@pytest.mark.parametrize("model", [Scripted(down), Scripted(empty), None])
def test_without_a_model_the_first_words_are_the_title_and_a_clash_takes_a_number(
    store: SqlStore, model: Scripted | None
) -> None:
    async def namer() -> Scripted | None:
        return model

    place = Place(store, Loop([Scripted(lambda _: Reply("Take leeks."))], []), namer=namer)

    async def work() -> None:
        for _ in range(2):
            await place.say("soup with leeks")
            await place.chat._kit.namer.settled()  # type: ignore[union-attr]
            await place.chat.command(Command("new"))

    run(place, work)
    found = store.read(OWNER, lambda tx: [tx.sessions.find(name) for name in ("run-0", "run-1", "run-2", "run-3")])
    titles = [(session.title, session.title_source) for session in found if session]
    assert titles == [("soup with leeks", "first_words"), ("soup with leeks #2", "first_words")]


def title_of(store: SqlStore, place: Place) -> str | None:
    session = store.read(OWNER, lambda tx: tx.sessions.find(str(place.chat.session_id)))
    assert session is not None
    return session.title


@on_sqlite
@pytest.mark.parametrize("calls", [6, 40])
def test_a_conversation_whose_first_answer_takes_long_is_named_too(store: SqlStore, calls: int) -> None:
    """Six calls are more messages than are looked at, forty so many that it is compressed before its first answer."""
    strict, numbers = Strict(), itertools.count(1)

    def answer(request: Request) -> Reply | ModelError:
        reply = strict(request)
        number = next(numbers)
        if isinstance(reply, ModelError) or number > calls:
            return reply
        return dataclasses.replace(reply, text="", calls=(ToolCall(f"c{number}", "probe"),), finish_reason="tool_calls")

    async def namer() -> Scripted:
        return titled("Leeks one by one")

    agent = Loop([Scripted(answer)], [Probe(long_output)])
    place = Place(store, agent, summariser=SUMMARISERS["none"](), namer=namer)

    async def work() -> None:
        events = await place.say("Look at the leeks, one by one.")
        assert any(isinstance(event, Compressed) for event in events) is (calls == 40)
        await place.chat._kit.namer.settled()  # type: ignore[union-attr]

    run(place, work)
    assert title_of(store, place) == "Leeks one by one"


def test_a_title_that_comes_after_a_compression_is_that_of_the_newest_part(store: SqlStore) -> None:
    begin, end = asyncio.Event(), asyncio.Event()

    class Slow(Hanging):
        async def stream(self, _request: Request) -> Any:
            begin.set()
            await end.wait()
            yield Reply("Leek soup for six")

    async def namer() -> Any:
        return Slow()

    agent = Loop([Scripted(lambda _: Reply("Noted."))], [])
    place = Place(store, agent, summariser=Summariser(None), namer=namer)
    seen: list[Event] = []

    async def work() -> None:
        await place.say("fact 0")
        await begin.wait()
        for number in range(1, 8):
            await place.say(f"fact {number}")
        await place.chat.compress("", seen.append)
        end.set()
        await place.chat._kit.namer.settled()  # type: ignore[union-attr]

    run(place, work)
    assert isinstance(seen[-1], Compressed)
    assert title_of(store, place) == "Leek soup for six"


def test_a_title_never_keeps_anybody_waiting(store: SqlStore) -> None:
    async def namer() -> Any:
        return Hanging()

    place = Place(store, Loop([Scripted(lambda _: Reply("Take leeks."))], []), namer=namer)

    async def work() -> None:
        await asyncio.wait_for(place.say("soup with leeks"), DEADLINE)
        await asyncio.wait_for(place.say("and cream"), DEADLINE)

    run(place, work)
    session = store.read(OWNER, lambda tx: tx.sessions.find(str(place.chat.session_id)))
    assert session is not None
    title = "soup with leeks"  # whoever leaves before the model has answered gets the first words
    assert (session.title, session.title_source) == (title, "first_words")


def test_a_title_that_takes_long_is_not_in_the_way_of_the_next(store: SqlStore) -> None:
    async def namer() -> Any:
        return Hanging()

    place = Place(store, Loop([Scripted(lambda _: Reply("Take leeks."))], []), namer=namer)
    names: list[str] = []

    async def work() -> None:
        for words in ("soup with leeks", "stew with beans"):
            await place.say(words)
            names.append(str(place.chat.session_id))
            await place.chat.command(Command("new"))

    run(place, work)
    found = store.read(OWNER, lambda tx: [tx.sessions.find(name) for name in names])
    assert [session.title for session in found if session] == ["soup with leeks", "stew with beans"]


# Recalling


@pytest.mark.parametrize("is_down", [False, True])
def test_what_is_recalled_is_summarised_and_counted(store: SqlStore, is_down: bool) -> None:
    model = Scripted(down if is_down else lambda _: Reply("The code is 1000.", usage=Usage(9, api_call_count=1)))

    async def small() -> Scripted:
        return model

    place = Place(store, Loop([Scripted(lambda _: Reply("Noted."))], []))
    recaller = Recaller(place.door, small, lambda: place.chat.session_id)
    search = SessionSearch(store, OWNER, lambda: UTC, summarise=recaller.summarise)
    told: list[str] = []

    async def work() -> None:
        recaller.begin()
        await place.say(FACTS[0])
        await place.chat.command(Command("new"))
        await place.say("what was the code?")
        told.append(await search.run({"query": "locker Agatha"}, str(place.chat.session_id)))

    run(place, work)
    assert "locker of" in told[0] or "1000" in told[0]
    assert ("The code is 1000." in told[0]) is not is_down
    assert ("No summary could be made" in told[0]) is is_down
    spent = [one.purpose for one in store.read(OWNER, lambda tx: tx.ledger.of(str(place.chat.session_id)))]
    assert (Purpose.RECALL in spent) is not is_down
