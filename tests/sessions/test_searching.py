"""Search on every database: what was said is found by what it says, and nothing else is."""

from collections.abc import Callable
from datetime import UTC

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from segue.core.matching import Found, Page, matches, text_of
from segue.core.messages import draft
from segue.core.query import Query, parse
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.scope import Audience, Principal, Scope
from segue.core.sessions import Session
from segue.ports.store import Narrowing, Transaction
from segue.sessions.recording import append_message
from segue.sessions.searching import REBUILDING, Answer, Sort, Wish, search
from segue.sessions.starting import create_session
from segue.storage.store import SqlStore

NOW = 2_000_000_000.0

PLANTED = {
    "don't": "I don't like it",
    "delta?": "What about delta",
    "alpha, beta": "first beta, then alpha",
    "user@example.com": "write to User@Example.com today",
    "/etc/nginx/nginx.conf": "edit /etc/nginx/nginx.conf first",
    "~/.ssh": "keys are in ~/.ssh here",
    "rm -rf": "never type rm -rf / there",
    "--json": "use --json for programs",
    "error: x": "the error was x",
    "100%": "it is 100% done",
    "#123": "see #123 for that",
    "C#": "written in C# mostly",
    "C++": "written in C++ mostly",
    "FOO=bar": "export FOO=bar before",
    "chat-send": "the chat-send command",
    "hello AND": "hello and goodbye",
    '"unbalanced': "an unbalanced quote",
    "(ax OR bx) AND cx": "bx with cx",
    "NOT": "to be or not to be",
    "*": "five * three",
    "天": "今天下雨",
    "天气": "明日天气如何",
    "桂林山水": "桂林山水甲天下",
    "ไทย": "ภาษาไทยง่าย",
    "naïve": "a naive idea",
    "🚀": "Shipped 🚀 at last",
}
MISLEADING = [
    "dont like", "deltas", "alphabet beta", "user at example com", "/etc/nginx/other.conf", "/home/x/.ssh", "rm the rf",
    "json", "errors and xs", "100 percent", "issue 1234", "written in C mostly", "FOO=barn", "chat send",
    "hello goodbye", "balanced", "ax and bx alone", "nothing", "five times three", "雨气", "山水桂林", "ไท", "native",
    "rocket",
]  # fmt: skip


def add(
    tx: Transaction, session_id: str, texts: list[str], role: str = "user", principal: str = "owner", room: str = ""
) -> None:
    if tx.sessions.find(session_id) is None:
        create_session(tx, Session(session_id, "cli", started_at=NOW, principal=principal, audience=room))
    for text in texts:
        append_message(tx, session_id, draft(role, text, NOW))


def ask(store: SqlStore, text: str, scope: Scope = OWNER, **wish: object) -> Answer:
    wished = Wish(limit=1000)._replace(**wish)  # type: ignore[arg-type]
    return store.read(scope, search, parse(text), wished, NOW, UTC, lambda: 5.0)


def contents(answer: Answer) -> list[str | None]:
    return [hit.found.content for hit in answer.hits]


@pytest.fixture(params=["waiting", "indexed"])
def settled(request: pytest.FixtureRequest, store: SqlStore) -> Callable[[], None]:
    """Leaves what was added waiting for the index, or takes it in: the answers must be the same."""
    return (lambda: None) if request.param == "waiting" else store.index_all


@pytest.mark.parametrize("query", PLANTED)
def test_what_people_type_finds_what_it_says_and_nothing_else(
    store: SqlStore, settled: Callable[[], None], query: str
) -> None:
    store.write(OWNER, add, "s", MISLEADING + list(PLANTED.values()))
    settled()
    found = contents(ask(store, query))
    assert PLANTED[query] in found
    assert not set(found) & set(MISLEADING)


WORDS = st.sampled_from(["alpha", "beta", "gamma", "alp", "naïve", "C#", "天气", "天", "today天", "x-y", "don't", "é"])
TEXTS = st.lists(st.lists(WORDS, max_size=6).map(" ".join) | st.text(max_size=30), min_size=1, max_size=12)
TREES = st.lists(
    st.sampled_from(
        ["alpha", "beta", "NOT gamma", "OR", '"alpha beta"', "alp*", "~lph", "天", "天气", "C#", "(", ")", "é"]
    ),
    min_size=1,
    max_size=6,
).map(" ".join)


@given(texts=TEXTS, query=TREES, taken=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=120)
def test_answers_are_what_a_look_at_every_message_finds(
    store: SqlStore, texts: list[str], query: str, taken: bool
) -> None:
    name = f"s{abs(hash((tuple(texts), query, taken)))}"
    store.write(OWNER, add, name, texts)
    if taken:
        store.index_all()
    narrowing = Narrowing(session_prefix=name)
    answer = ask(store, query, narrowing=narrowing, sort=Sort.NEW)
    everything = ask(store, "", narrowing=narrowing, sort=Sort.NEW)
    tree = parse(query).tree
    assert tree is not None
    naive = [hit.found for hit in everything.hits if fits(parse(query), hit.found)]
    if not answer.notes:
        assert [hit.found.id for hit in answer.hits] == [found.id for found in naive]
    else:
        assert naive == [], "a looser search only when nothing fits"


def fits(query: Query, found: Found) -> bool:
    assert query.tree is not None
    text = text_of(found, in_tools=query.in_tools)
    return bool(text) and matches(query.tree, found, Page(text), UTC)


@given(text=st.text(max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_no_string_raises(store: SqlStore, text: str) -> None:
    store.write(OWNER, add, "s", ["some words"])
    ask(store, text)


def test_undone_messages_never_appear_and_come_back_when_restored(store: SqlStore, settled: Callable[[], None]) -> None:
    store.write(OWNER, add, "s", ["keep this", "secret plan"])
    settled()
    assert contents(ask(store, "plan")) == ["secret plan"]
    store.write(OWNER, lambda tx: tx.messages.mark("s", 2, "live", "undone"))
    assert contents(ask(store, "plan")) == []
    store.write(OWNER, lambda tx: tx.messages.mark("s", 2, "undone", "compacted"))
    assert contents(ask(store, "plan")) == ["secret plan"]


def test_search_follows_what_happens_to_a_message(store: SqlStore, settled: Callable[[], None]) -> None:
    store.write(OWNER, add, "s", ["an old plan"])
    store.write(OWNER, add, "t", ["another plan"])
    settled()
    store.write(OWNER, add, "s", ["a new plan"])
    assert set(contents(ask(store, "plan"))) == {"an old plan", "another plan", "a new plan"}
    store.write(OWNER, lambda tx: tx.sessions.delete(["s"]))
    assert contents(ask(store, "plan")) == ["another plan"]
    store.write(OWNER, add, "u", ["plan in the place of one that is gone"])
    assert set(contents(ask(store, "plan"))) == {"another plan", "plan in the place of one that is gone"}


def test_nobody_finds_what_is_somebody_elses(store: SqlStore, settled: Callable[[], None]) -> None:
    store.write(OWNER, add, "alice", ["the password of alice"], principal="telegram:1")
    store.write(OWNER, add, "bob", ["the password of bob"], principal="telegram:2")
    store.write(OWNER, add, "room", ["the password of the room"], principal="telegram:1", room="room1")
    settled()
    mine = Scope(Principal("telegram:1"))
    assert set(contents(ask(store, "password", mine))) == {"the password of alice", "the password of the room"}
    assert contents(ask(store, "password", Scope(Principal("telegram:2")))) == ["the password of bob"]
    assert contents(ask(store, "password", Scope(Principal("telegram:1"), Audience("room1")))) == [
        "the password of the room"
    ]
    assert contents(ask(store, "bob", mine)) == []
    assert len(ask(store, "password").hits) == 3


def test_tool_output_is_found_only_when_asked_for(store: SqlStore, settled: Callable[[], None]) -> None:
    store.write(OWNER, add, "s", ["21 degrees in Lisbon"], role="tool")
    settled()
    answer = ask(store, "lisbon")
    assert (answer.hits, answer.notes) == ([], ["1 more in the output of tools: add in:tools."])
    assert contents(ask(store, "lisbon in:tools")) == ["21 degrees in Lisbon"]


def test_a_word_that_nobody_used_is_looked_for_as_a_part(store: SqlStore, settled: Callable[[], None]) -> None:
    store.write(OWNER, add, "s", ["the configuration file"])
    settled()
    answer = ask(store, "onfigur")
    assert contents(answer) == ["the configuration file"]
    assert "part of another" in answer.notes[0]


def test_a_question_finds_messages_that_have_some_of_its_words(store: SqlStore, settled: Callable[[], None]) -> None:
    store.write(OWNER, add, "s", ["The dentist is on Tuesday", *(f"filler {number}" for number in range(50))])
    settled()
    answer = ask(store, "when was my dentist appointment again")
    assert contents(answer)[0] == "The dentist is on Tuesday"
    assert "some of the words" in answer.notes[0]


@pytest.mark.parametrize(
    "harm",
    [
        "DROP TABLE messages_fts",
        "DELETE FROM messages_fts_data",
        "UPDATE messages_fts_data SET block = zeroblob(length(block))",
    ],
)
def test_a_damaged_index_never_keeps_a_message_from_being_stored(store: SqlStore, harm: str) -> None:
    store.write(OWNER, add, "s", [f"word{number} common" for number in range(300)])
    store.index_all()
    store.write(OWNER, lambda tx: tx.search._db.run(harm, {}))  # type: ignore[attr-defined]
    store.write(OWNER, add, "s", ["fresh common"])
    answer = ask(store, "word7")
    assert contents(answer) == ["word7 common"]
    assert REBUILDING in answer.notes
    for number in range(200):
        store.write(OWNER, add, "s", [f"more{number} common"])
    store.index_all(anew=True)
    answer = ask(store, "common")
    assert (len(answer.hits), answer.notes) == (501, [])
