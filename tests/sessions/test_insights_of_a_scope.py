"""Insights: usage and activity of the period, counts of the sessions active in it, and only of what a scope may see."""

from typing import Any

import pytest

from segue.core.insights import Insights, Spending, Talk
from segue.core.messages import draft
from segue.core.scope import OWNER_AT_CONSOLE, Audience, Principal, Scope
from segue.core.sessions import Session
from segue.core.usage import Billing, Purpose, Usage
from segue.ports.store import Filter, Store
from segue.sessions.compressing import compress_session
from segue.sessions.insights import insights
from segue.sessions.recording import add_usage, append_message, set_usage
from segue.sessions.rewinding import rewind_turns
from segue.sessions.starting import create_session
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import Engine

ME = OWNER_AT_CONSOLE
BOB, CAROL = Scope(Principal("telegram:1")), Scope(Principal("telegram:2"))
ROOM = Audience("room")
BOB_IN_THE_ROOM = Scope(Principal("telegram:1"), ROOM)
CALL = [{"id": "c", "function": {"name": "weather", "arguments": "{}"}}]


def begin(store: Store, name: str, at: float = 1000.0, scope: Scope = ME, **columns: Any) -> None:
    store.write(scope, create_session, Session(name, "cli", started_at=at)._replace(**columns))


def use(store: Store, name: str, usage: Usage, at: float = 2000.0, scope: Scope = ME, **said: Any) -> None:
    billing = Billing(said.pop("model", None), cost_source=said.pop("source", None))
    store.write(scope, add_usage, name, usage, billing, at, **said)


def say(store: Store, name: str, *moments: float, calls: list[Any] | None = None) -> None:
    for at in moments:
        store.write(ME, append_message, name, draft("assistant", "hello", at, tool_calls=calls))


def look(store: Store, scope: Scope = ME, since: float = 0.0, sources: tuple[str, ...] = ()) -> Insights:
    return store.read(scope, insights, since, sources)


@pytest.fixture
def people(store: Store) -> Store:
    begin(store, "mine", model="m")
    use(store, "mine", Usage(1, api_call_count=1))
    begin(store, "bobs", scope=BOB, model="b", source="telegram")
    use(store, "bobs", Usage(10, api_call_count=1, estimated_cost_usd=0.5), scope=BOB)
    begin(store, "bobs in the room", scope=BOB_IN_THE_ROOM, model="b", source="telegram")
    use(store, "bobs in the room", Usage(100, api_call_count=2), scope=BOB_IN_THE_ROOM)
    begin(store, "carols", scope=CAROL, model="c", source="telegram")
    use(store, "carols", Usage(1000, api_call_count=1, actual_cost_usd=2.0), scope=CAROL)
    for number, name in enumerate(["mine", "bobs", "bobs in the room", "carols"], 1):
        say(store, name, *(2000.0 + at for at in range(number)), calls=CALL)
    return store


@pytest.mark.parametrize(
    ("scope", "tokens", "messages", "models"),
    [
        (ME, 1111, 10, {"m", "b", "c"}),
        (BOB, 110, 5, {"b"}),
        (BOB_IN_THE_ROOM, 100, 3, {"b"}),
        (CAROL, 1000, 4, {"c"}),
        (Scope(Principal("telegram:3")), 0, 0, set()),
    ],
    ids=["the owner", "bob", "bob in the room", "carol", "a stranger"],
)
def test_everybody_sees_the_use_of_their_own_sessions(
    people: Store, scope: Scope, tokens: int, messages: int, models: set[str]
) -> None:
    found = look(people, scope)
    _, talk, spending = found.total
    assert (spending.input_tokens, talk.messages, talk.tool_calls) == (tokens, messages, messages)
    assert {group.name for group in found.models} == models
    assert sum(group.spending.input_tokens for group in found.purposes) == tokens
    assert sum(day.tokens for day in found.days.values()) == tokens
    assert (found.activity.total, found.tools.total) == (messages, messages)
    assert (found.longest.messages if found.longest else 0) == {1111: 4, 110: 3, 100: 3, 1000: 4, 0: 0}[tokens]


def test_costs_are_summed_where_they_are_known(people: Store) -> None:
    total = look(people).total.spending
    assert (total.estimated_cost_usd, total.actual_cost_usd, total.cost_usd) == (0.5, 2.0, 2.5)
    assert (total.calls_without_cost, total.tokens_without_cost) == (3, 101)
    (carol,) = look(people, CAROL).models
    assert (carol.spending.estimated_cost_usd, carol.spending.cost_usd) == (None, 2.0)


def test_prices_are_those_of_what_may_be_seen(store: Store) -> None:
    begin(store, "mine")
    use(store, "mine", Usage(1, api_call_count=1, estimated_cost_usd=0.5), source="mine")
    begin(store, "bobs", scope=BOB)
    use(store, "bobs", Usage(1, api_call_count=3, estimated_cost_usd=0.5), scope=BOB, source="bobs")
    use(store, "bobs", Usage(1, api_call_count=1, estimated_cost_usd=0.5, actual_cost_usd=1.0), scope=BOB, source="x")
    assert [(one.cost_source, one.api_calls) for one in look(store).prices] == [("bobs", 3), ("mine", 1)]
    assert [one.cost_source for one in look(store, BOB).prices] == ["bobs"]


def test_calls_are_summed_by_what_they_were_for_and_by_who_answered(store: Store) -> None:
    begin(store, "a", model="m")
    use(store, "a", Usage(1, 2, api_call_count=1))
    use(store, "a", Usage(10, 20, api_call_count=1), purpose=Purpose.TITLE, model="small")
    found = look(store)
    assert {one.name: one.spending.tokens for one in found.purposes} == {"answer": 3, "title": 30}
    assert [(one.name, one.talk.sessions, one.spending.tokens) for one in found.models] == [
        ("small", 0, 30),
        ("m", 1, 3),
    ]


def test_a_bill_for_a_whole_session_is_not_added_to_the_estimates_in_it(store: Store) -> None:
    begin(store, "a")
    use(store, "a", Usage(5, api_call_count=1, estimated_cost_usd=0.5))
    use(store, "a", Usage(5, api_call_count=1))
    store.write(
        ME, set_usage, "a", Usage(10, api_call_count=2, estimated_cost_usd=0.5, actual_cost_usd=1.25), Billing(), 3.0
    )
    total = look(store).total.spending
    assert (total.estimated_cost_usd, total.actual_cost_usd, total.cost_usd) == (0.5, 1.25, 1.25)
    assert (total.input_tokens, total.api_calls, total.calls_without_cost) == (10, 2, 0)
    use(store, "a", Usage(1, api_call_count=1, estimated_cost_usd=0.25))
    assert look(store).total.spending.cost_usd == 1.5


def test_a_bill_settles_only_what_may_be_seen(people: Store) -> None:
    people.write(CAROL, lambda tx: tx.ledger.settle("mine"))
    assert look(people).total.spending.calls_without_cost == 3


def test_a_platform_can_be_asked_for_alone(people: Store) -> None:
    found = look(people, sources=("telegram",))
    assert (found.total.talk.sessions, found.activity.total, found.tools.total) == (3, 9, 9)
    assert found.total.spending.input_tokens == 1110
    assert [group.name for group in found.sources] == ["telegram"]


def test_counts_are_of_whole_sessions_and_usage_and_activity_of_the_period(store: Store) -> None:
    begin(store, "old")
    say(store, "old", 1500.0, calls=CALL)
    begin(store, "long")
    say(store, "long", 1500.0, 5000.0, 5001.0, calls=CALL)
    for at in (1500.0, 4000.0, 5000.0):
        use(store, "long", Usage(int(at)), at)
    found = look(store, since=4000.0)
    assert (found.total.talk.sessions, found.total.talk.messages) == (1, 3)
    assert found.total.spending.input_tokens == 9000
    assert (found.activity.total, found.tools.total) == (2, 2)
    assert look(store, since=9000.0).total == (None, Talk(), Spending())


def test_archived_sessions_and_every_kind_count_and_undone_messages_do_not(store: Store) -> None:
    begin(store, "archived", archived=1)
    begin(store, "job", source="cron", kind="automation")
    store.write(ME, append_message, "job", draft("user", "hello", 2000.0))
    say(store, "job", 2001.0, calls=CALL)
    store.write(ME, rewind_turns, "job", 1)
    found = look(store)
    assert (found.total.talk[:2], found.activity.total, found.tools.total) == ((2, 0), 0, 0)


def test_the_longest_conversation_is_all_its_parts(store: Store) -> None:
    begin(store, "single")
    say(store, "single", *(2000.0 + at for at in range(5)))
    begin(store, "first", title="Lisbon")
    say(store, "first", 2000.0, 2001.0, 2002.0)
    store.write(
        ME, compress_session, "first", child_id="next", summary=draft("user", "so far", 2100.0), kept=None, now=2100.0
    )
    say(store, "next", 2101.0, 2102.0)
    longest = look(store).longest
    assert longest is not None
    assert (longest.session_id, longest.title, longest.messages) == ("next", "Lisbon #2", 6)


def test_links_that_lead_in_a_circle_come_to_an_end(store: Store) -> None:
    for name, parent in [("a", "b"), ("b", "a"), ("tip", "a")]:
        session = Session(name, "cli", parent_session_id=parent)
        store.write(ME, lambda tx, one: tx.sessions.insert(one), session)
    assert look(store).longest is not None


@pytest.mark.parametrize("scope", [ME, BOB, BOB_IN_THE_ROOM])
def test_messages_are_searched_by_their_session_and_never_all_of_them(
    people: Store, engine: Engine, scope: Scope
) -> None:
    if not isinstance(engine, SqliteEngine):
        return  # a planner with statistics does as it likes

    def plan(tx: Any) -> list[str]:
        where = tx.messages._since(0.0, ("cli",))
        sql = f"EXPLAIN QUERY PLAN SELECT m.timestamp FROM messages m WHERE {where.sql}"
        return [str(row[3]) for row in tx.messages._db.rows(sql, where.parameters)]

    assert people.read(scope, plan)[0].startswith("SEARCH m USING INDEX")


def test_every_session_of_a_store_is_in_the_sums(people: Store) -> None:
    found = look(people)
    every = Filter(archived=None, tips_only=False)
    assert found.total.talk.sessions == people.read(ME, lambda tx: tx.sessions.count(every))
    assert sum(group.talk.sessions for group in found.models) == found.total.talk.sessions
