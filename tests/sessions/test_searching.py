"""Search on every database: what was said is found by what it says, and nothing else is."""

from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from health_checks import SHARED_STORE
from hypothesis import given
from hypothesis import strategies as st
from waiting import DEADLINE

from segue.core.matching import Found, Page, matches, text_of
from segue.core.messages import draft
from segue.core.query import Query, Word, parse
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.scope import Audience, Principal, Scope
from segue.core.sessions import Kind, Session
from segue.ports.store import Chunk, Narrowing, Transaction
from segue.sessions.compressing import compress_session
from segue.sessions.recording import append_message
from segue.sessions.searching import CUT, INCOMPLETE, REBUILDING, Answer, Sort, Wish, search
from segue.sessions.starting import create_session
from segue.storage.indexing import BATCH
from segue.storage.sqlite import SqliteEngine
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
    return store.read(scope, search, parse(text), wished, NOW, UTC, lambda: DEADLINE)


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


HEX = "0123456789abcdef" * 10
ODD = ["ab", "42", "🚀", HEX, "कल मिलेंगे।"]
PLAIN = ["alpha", "beta", "gamma", "alp", "naïve", "C#", "天气", "天", "today天", "x-y", "don't", "é"]
WORDS = st.sampled_from(PLAIN + ODD)
TEXTS = st.lists(st.lists(WORDS, max_size=6).map(" ".join) | st.text(max_size=30), min_size=1, max_size=12)
PIECES = [
    "alpha", "beta", "NOT gamma", "OR", '"alpha beta"', "alp*", "~lph", "天", "天气", "C#", "(", ")", "é", "~ab", "~42",
    '~"🚀"', "~🚀", f"~{HEX[30:105]}", "tag:x", "tag:y", "NOT tag:x", "role:user", "source:cli", "मिलेंगे",
]  # fmt: skip
TREES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map(" ".join)


@given(texts=TEXTS, query=TREES, taken=st.booleans(), tags=st.sets(st.sampled_from("xyz")))
@examples(50, in_torture=600, suppress_health_check=SHARED_STORE)
def test_answers_are_what_a_look_at_every_message_finds(
    store: SqlStore, texts: list[str], query: str, taken: bool, tags: set[str]
) -> None:
    name = f"s{abs(hash((tuple(texts), query, taken, tuple(tags))))}"
    store.write(OWNER, add, name, texts)
    store.write(OWNER, lambda tx: tx.sessions.tag(name, tags))
    if taken:
        store.index_all()
    narrowing = Narrowing(session_prefix=name)
    answer = ask(store, query, narrowing=narrowing, sort=Sort.NEW)
    everything = ask(store, "", narrowing=narrowing, sort=Sort.NEW)
    tree = parse(query).tree
    assert tree is not None
    naive = [one for hit in everything.hits if fits(parse(query), one := hit.found._replace(tags=tuple(tags)))]
    if not answer.notes:
        assert [hit.found.id for hit in answer.hits] == [found.id for found in naive]
    else:
        assert naive == [], "a looser search only when nothing fits"


def fits(query: Query, found: Found) -> bool:
    assert query.tree is not None
    text = text_of(found, in_tools=query.in_tools)
    return bool(text) and matches(query.tree, found, Page(text), UTC)


@given(text=st.text(max_size=60) | st.text(st.characters(categories=["Cs"]), max_size=3).map("source:{} x".format))
@examples(50, in_torture=600, suppress_health_check=SHARED_STORE)
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


def test_what_others_say_changes_nothing_of_an_answer(store: SqlStore, settled: Callable[[], None]) -> None:
    """Not a score, not a note, not the order: nobody can count what is somebody else's."""
    bob = Scope(Principal("telegram:2"))
    mine = ["hello old friend", "falcon one", "nonce falcon", "friend of a friend"]
    store.write(OWNER, add, "bob", mine, principal="telegram:2")
    settled()
    questions = ["friend", "xyzzy friend", "nonce falcon", "falcon OR friend", "frien", "who is my friend", "NOT one"]
    before = [ask(store, question, bob) for question in questions]
    others = [f"xyzzy friend falcon {number}" for number in range(700)]
    store.write(OWNER, add, "alice", others, principal="telegram:1")
    settled()
    assert [ask(store, question, bob) for question in questions] == before


def test_few_messages_among_many_of_others_are_found_at_once(store: SqlStore) -> None:
    store.write(OWNER, add, "bob", ["server one"], principal="telegram:2")
    store.write(OWNER, add, "alice", [f"server {number}" for number in range(1600)], principal="telegram:1")
    store.write(OWNER, lambda tx: tx.sessions.tag("bob", ["rare"]))
    store.index_all()
    for scope, query in [
        (Scope(Principal("telegram:2")), "server"),
        (OWNER, "server tag:rare"),
        (OWNER, "server session:bob"),
    ]:
        chunks: list[str] = []

        def counted(tx: Transaction, query: str = query, chunks: list[str] = chunks) -> Answer:
            real = tx.search.walk

            def walk(*args: Any, **more: Any) -> Iterator[Chunk]:
                for chunk in real(*args, **more):
                    chunks.append("")
                    yield chunk

            tx.search.walk = walk  # type: ignore[method-assign]
            return search(tx, parse(query), Wish(), NOW, UTC, lambda: DEADLINE)

        assert contents(store.read(scope, counted)) == ["server one"]
        assert len(chunks) <= 6


def test_a_search_by_filters_alone_finds_what_people_said(store: SqlStore, settled: Callable[[], None]) -> None:
    store.write(OWNER, add, "s", ["the prompt"], role="system")
    store.write(OWNER, add, "s", ["hello"])
    store.write(OWNER, add, "s", ["21 degrees"], role="tool")
    settled()
    for query in ("", "source:cli", "after:2000-01-01"):
        assert contents(ask(store, query)) == ["hello"]
    assert contents(ask(store, "role:tool")) == ["21 degrees"]
    assert contents(ask(store, "role:system")) == []


def test_new_and_old_are_moments_not_numbers(store: SqlStore, settled: Callable[[], None]) -> None:
    store.write(OWNER, add, "now", ["plan of today"])
    store.write(OWNER, lambda tx: create_session(tx, Session("then", "cli", started_at=1.0)))
    store.write(OWNER, lambda tx: append_message(tx, "then", draft("user", "plan of long ago", 1.0)))
    settled()
    assert contents(ask(store, "plan", sort=Sort.NEW)) == ["plan of today", "plan of long ago"]
    assert contents(ask(store, "plan", sort=Sort.OLD)) == ["plan of long ago", "plan of today"]


def test_pages_do_not_overlap(store: SqlStore, settled: Callable[[], None]) -> None:
    store.write(OWNER, add, "s", [f"word number {number} " + "x " * (number % 7) for number in range(450)])
    settled()
    pages = [ask(store, "word", limit=100, offset=offset) for offset in range(0, 500, 100)]
    found = [hit.found.id for page in pages for hit in page.hits]
    assert len(found) == len(set(found)) == 450


def test_people_come_before_what_runs_by_itself(store: SqlStore, settled: Callable[[], None]) -> None:
    store.write(OWNER, add, "person", ["about tulips"])
    store.write(OWNER, lambda tx: create_session(tx, Session("job", "cron", started_at=NOW, kind=Kind.AUTOMATION)))
    store.write(OWNER, add, "job", [f"tulips tulips {number}" for number in range(420)])
    settled()
    answer = ask(store, "tulips", limit=20)
    assert contents(answer)[0] == "about tulips"
    assert "Very many messages fit; only the newest 200 were compared." in answer.notes


def test_what_is_left_out_is_said(store: SqlStore) -> None:
    store.write(OWNER, add, "s", [f"word {number}" for number in range(300)])
    store.index_all()
    wish = Wish(limit=5)
    late = store.read(OWNER, search, parse("word"), wish, NOW, UTC, lambda: 0.0)
    assert (late.hits, late.notes) == ([], [INCOMPLETE])
    assert CUT in ask(store, "word " * 200).notes


def test_more_outputs_than_can_be_counted(store: SqlStore, settled: Callable[[], None]) -> None:
    store.write(OWNER, add, "s", [f"lisbon {number}" for number in range(250)], role="tool")
    settled()
    assert ask(store, "lisbon").notes == ["More than 200 more in the output of tools: add in:tools."]


@pytest.mark.parametrize("colour", ["\x1b]8;;https://example.org/" + "a" * 300 + "\x1b\\", "\x9b31m"])
def test_what_steers_a_terminal_hides_no_word(store: SqlStore, colour: str) -> None:
    store.write(OWNER, add, "s", [f"{colour}lisbon in spring"])
    store.index_all()
    answer = ask(store, "lisbon")
    assert (len(answer.hits), answer.notes) == (1, [])


def test_a_batch_is_small_however_large_its_messages(store: SqlStore) -> None:
    store.write(OWNER, add, "s", ["large " * 30_000 for _ in range(4)], role="tool")
    waiting = store.read(OWNER, lambda tx: tx.search.waiting(512))
    assert (waiting.after, waiting.upto, waiting.is_last) == (0, 2, False)
    store.index_all()
    assert len(ask(store, "large in:tools").hits) == 4


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


def test_words_may_be_said_in_different_messages_of_a_conversation(
    store: SqlStore, settled: Callable[[], None]
) -> None:
    store.write(OWNER, add, "trip", ["When shall we be in Lisbon?", "In May.", "Santa Justa, a hotel in the centre"])
    store.write(OWNER, add, "other", ["Lisbon is far", "so is the moon"])
    store.write(OWNER, add, "third", ["a hotel in Porto"])
    settled()
    answer = ask(store, "lisbon hotel")
    assert {hit.found.session_id for hit in answer.hits} == {"trip"}
    assert len(answer.hits) == 2
    assert answer.notes == ["No message has all of it; these conversations do."]
    assert "some of the words" in ask(store, "lisbon moon hotel").notes[0]


@pytest.mark.parametrize(
    "harm",
    [
        "DROP TABLE messages_fts",
        "DELETE FROM messages_fts_data",
        "UPDATE messages_fts_data SET block = zeroblob(length(block))",
    ],
)
def test_a_damaged_index_never_keeps_a_message_from_being_stored(home: Path, harm: str) -> None:
    with SqlStore(SqliteEngine(home / "state.db")) as store:
        harm_while_writing(store, harm)


def harm_while_writing(store: SqlStore, harm: str) -> None:
    store.write(OWNER, add, "s", [f"word{number} common" for number in range(300)])
    store.index_all()
    store.write(OWNER, lambda tx: tx.search._db.run(harm, {}))  # type: ignore[attr-defined]
    store.write(OWNER, add, "s", ["fresh common"])
    answer = ask(store, "word7")
    assert contents(answer) == ["word7 common"]
    assert REBUILDING in answer.notes
    store.begin_index_again()
    answer = ask(store, "word7")
    assert (contents(answer), REBUILDING in answer.notes) == (["word7 common"], True)
    for number in range(200):
        store.write(OWNER, add, "s", [f"more{number} common"])
    store.index_all(anew=True)
    answer = ask(store, "common")
    assert (len(answer.hits), answer.notes) == (501, [])


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize("sessions", [1, 10])
def test_the_index_catches_up_with_whoever_adds_thousands_at_once(store: SqlStore, sessions: int) -> None:
    each = 5_000 // sessions
    for number in range(sessions):
        store.write(OWNER, add, f"s{number}", [f"word{number}"] * each)
    state = store.read(OWNER, lambda tx: tx.search.state())
    assert state.last_id == 5_000
    assert state.last_id - state.indexed_to < BATCH


def test_a_summary_stands_below_what_it_is_of(store: SqlStore, settled: Callable[[], None]) -> None:
    store.write(
        OWNER, add, "trip", ["we went to lisbon for a week and it was very warm there all the time", "so it was"]
    )
    for parent, child in [("trip", "trip2"), ("trip2", "trip3")]:
        summary = draft("user", "lisbon, lisbon, lisbon", NOW + len(child))
        store.write(OWNER, compress_session, parent, child_id=child, summary=summary, kept=None, now=NOW)
    store.write(OWNER, add, "other", ["lisbon is a town, and this is about something else altogether, at some length"])
    settled()
    answer = ask(store, "lisbon")
    places = [(hit.found.session_id, hit.found.seq) for hit in answer.hits if hit.found.session_id != "other"]
    assert places == [("trip", 1), ("trip2", 0), ("trip3", 0)]
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)


def test_the_signs_between_numbers_say_which_are_meant(store: SqlStore, settled: Callable[[], None]) -> None:
    texts = ["version 11.2.30 is out", "there are 3 of 2 and 1", "released 4.5.6 today", "python 4 is 5 or 6"]
    store.write(OWNER, add, "s", texts)
    settled()
    answer = ask(store, "1.2.3")
    assert (contents(answer), answer.notes) == (
        ["version 11.2.30 is out"],
        ["No message has the word '1.2.3'; these have it as a part of another."],
    )
    assert contents(ask(store, "4.5.6")) == ["released 4.5.6 today"]
    store.index_all()
    assert store.read(OWNER, lambda tx: tx.search.frequency(Word("4.5.6"), in_tools=False, most=9)) == 1
