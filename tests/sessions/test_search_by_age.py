"""The age of a message is its timestamp, whatever order messages were stored in: the same answers on every database."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from examples import examples
from health_checks import SHARED_STORE
from hypothesis import given
from hypothesis import strategies as st
from postgres_server import Emptied
from waiting import DEADLINE

from segue.core.matching import Found
from segue.core.messages import State, draft
from segue.core.query import parse
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sessions import Kind, Session
from segue.ports.store import Narrowing, Transaction
from segue.sessions import searching
from segue.sessions.searching import Answer, Sort, Wish, search
from segue.storage import postgres_search, schema, search_blocks, search_index, sqlite_search, time_order
from segue.storage.search import SqlSearch
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore

DAY = 86_400.0
NOW = 2_000_000_000.0
WORDS = ["alpha", "beta", "gamma", "delta"]
QUESTIONS = ["alpha", "alpha beta", "alp*", "~lph", '"alpha beta"', "alpha OR delta", "NOT gamma", "alpha gamma delta"]
DAYS = [
    f"{word}:{datetime.fromtimestamp(NOW - days * DAY, UTC):%Y-%m-%d}"
    for word in ("after", "before")
    for days in (3, 9)
]
FILTERS = ["", *DAYS, " ".join(DAYS[1:3]), "role:user"]
QUESTION = st.tuples(st.sampled_from(QUESTIONS), st.sampled_from(FILTERS)).map(" ".join)


class Said(NamedTuple):
    session: str
    seq: int
    at: float
    text: str


class Corpus(NamedTuple):
    messages: list[Said]
    imported: list[Said]
    """The same in another order."""
    indexed: int
    """So many are in the index before the others come."""


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    moments = st.integers(0, 15 * 86_400).map(lambda seconds: NOW - seconds / 1.25)
    times = draw(st.lists(moments, min_size=10, max_size=60, unique=True))
    seqs = {"a": 0, "b": 0, "c": 0}
    said = []
    for at in sorted(times):
        session = draw(st.sampled_from(sorted(seqs)))
        seqs[session] += 1
        said.append(
            Said(session, seqs[session], at, " ".join(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))))
        )
    return Corpus(said, draw(st.permutations(said)), draw(st.integers(0, len(said))))


@pytest.fixture
def _small_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few messages are ranked and read at once, so that few are enough to go beyond."""
    for module in (search_blocks, sqlite_search):
        monkeypatch.setattr(module, "BLOCK_BITS", 2)
    monkeypatch.setattr(search_index, "FILL_BLOCKS", schema.filling_blocks(bits=2).format(first=":first", last=":last"))
    monkeypatch.setattr(searching, "RANKED", 5)
    monkeypatch.setattr(postgres_search, "CHUNK", 6)
    monkeypatch.setattr(time_order, "ENOUGH", 2)
    for name, number in [("CHUNK", 3), ("FEW_MORE", 1), ("MANY", 12)]:  # less than a block, as in the product
        monkeypatch.setattr(search_blocks, name, number)


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], SqlStore]:
    """Opens an empty store."""
    names = iter(range(10**9))
    if request.param == "postgres":
        emptied: Emptied = request.getfixturevalue("emptied")
        return lambda: SqlStore(emptied.engine())
    return lambda: SqlStore(SqliteEngine(tmp_path / f"{next(names)}.db"))


def begin(tx: Transaction) -> None:
    for name, kind in [("a", Kind.INTERACTIVE), ("b", Kind.INTERACTIVE), ("c", Kind.AUTOMATION)]:
        tx.sessions.insert(Session(name, "cli", started_at=NOW - 90 * DAY, last_active_at=NOW, kind=kind))


def take(tx: Transaction, messages: list[Said]) -> None:
    for one in messages:
        role = "user" if one.seq % 2 else "assistant"
        tx.messages.insert(one.session, one.seq, State.LIVE, draft(role, one.text, one.at))


def fill(store: SqlStore, messages: list[Said], indexed: int) -> None:
    store.write(OWNER, begin)
    store.write(OWNER, take, messages[:indexed])
    store.index_all()
    store.write(OWNER, take, messages[indexed:])


def answers(store: SqlStore, questions: list[str]) -> list[object]:
    wishes = [(Sort.RANK, 4, 0), (Sort.RANK, 4, 3), (Sort.NEW, 3, 2), (Sort.OLD, 9, 0)]
    return [
        told(ask(store, question, sort=sort, limit=limit, offset=offset))
        for question in questions
        for sort, limit, offset in wishes
    ]


def ask(store: SqlStore, question: str, **wish: object) -> Answer:
    wished = Wish()._replace(**wish)  # type: ignore[arg-type]
    return store.read(OWNER, search, parse(question), wished, NOW, UTC, lambda: DEADLINE)


def told(answer: Answer) -> object:
    return answer.notes, [(hit.found.session_id, hit.found.seq, hit.snippet, hit.score) for hit in answer.hits]


@pytest.mark.usefixtures("_small_numbers")
@given(corpus=corpora(), questions=st.lists(QUESTION, min_size=1, max_size=3))
@examples(25, in_torture=500, suppress_health_check=SHARED_STORE)
def test_a_corpus_imported_in_any_order_is_found_as_one_that_was_stored_in_order(
    opened: Callable[[], SqlStore], corpus: Corpus, questions: list[str]
) -> None:
    with opened() as store:
        fill(store, corpus.messages, corpus.indexed)
        wanted = answers(store, questions)
    with opened() as store:
        fill(store, corpus.imported, corpus.indexed)
        assert answers(store, questions) == wanted


OLD = datetime(2020, 3, 1, tzinfo=UTC).timestamp()
IMPORTED = 2_100


def import_old(tx: Transaction) -> None:
    tx.sessions.insert(Session("old", "cli", started_at=OLD, last_active_at=OLD + IMPORTED))
    for number in range(1, IMPORTED + 1):
        tx.messages.insert("old", number, State.LIVE, draft("user", f"lisbon {number}", OLD + number))


@pytest.fixture(params=["waiting", "indexed"])
def settled(request: pytest.FixtureRequest, store: SqlStore) -> Callable[[], None]:
    """Leaves what was added waiting for the index, or takes it in."""
    return (lambda: None) if request.param == "waiting" else store.index_all


def test_what_is_said_today_stays_the_newest_when_thousands_of_old_messages_are_imported(
    store: SqlStore, settled: Callable[[], None]
) -> None:
    store.write(OWNER, begin)
    store.write(OWNER, take, [Said("a", 1, NOW, "lisbon today")])
    store.write(OWNER, import_old)
    settled()
    store.write(OWNER, take, [Said("a", 2, NOW - DAY, "lisbon yesterday")])
    recent = ["lisbon today", "lisbon yesterday"]
    assert contents(ask(store, "lisbon", sort=Sort.NEW, limit=3)) == [*recent, f"lisbon {IMPORTED}"]
    assert contents(ask(store, "lisbon after:2033-01-01", limit=3)) == recent
    assert contents(ask(store, "lisbon", limit=3))[:2] == recent
    assert contents(ask(store, "lisbon before:2021-01-01", sort=Sort.NEW, limit=1)) == [f"lisbon {IMPORTED}"]
    assert contents(ask(store, "lisbon", sort=Sort.OLD, limit=2)) == ["lisbon 1", "lisbon 2"]
    assert contents(ask(store, "lisbon", sort=Sort.OLD, limit=2, offset=IMPORTED)) == recent[::-1]


def contents(answer: Answer) -> list[str | None]:
    return [hit.found.content for hit in answer.hits]


def test_messages_of_one_moment_are_in_the_order_in_which_they_were_stored(
    store: SqlStore, settled: Callable[[], None]
) -> None:
    store.write(OWNER, begin)
    store.write(OWNER, take, [Said("a", number, NOW, f"lisbon {number}") for number in range(1, 700)])
    settled()
    assert contents(ask(store, "lisbon", sort=Sort.NEW, limit=3)) == ["lisbon 699", "lisbon 698", "lisbon 697"]
    assert contents(ask(store, "lisbon", sort=Sort.OLD, limit=3)) == ["lisbon 1", "lisbon 2", "lisbon 3"]


@pytest.mark.parametrize("sort", [Sort.NEW, Sort.OLD])
def test_a_block_that_was_read_in_part_is_not_read_again_with_the_one_beside_it(store: SqlStore, sort: Sort) -> None:
    """Four blocks of ids whose times are mixed; the first that is read has more matches than are read at once."""
    sign = 1 if sort is Sort.NEW else -1
    ages = [*[("other", 90_000.0)] * 255]  # the first block has the ids from 0, and ids begin with 1
    ages += [("lisbon", 100.0 if number >= 60 else 10_000.0) for number in range(256)]
    ages += [("lisbon" if number < 10 else "other", 5_000.0) for number in range(256)]
    ages += [("lisbon", 80_000.0)] * 256
    if sort is Sort.OLD:
        ages = [*[("other", 90_000.0)], *ages[::-1]][:1023]
    store.write(OWNER, begin)
    said = [Said("a", number, NOW - DAY - sign * age, text) for number, (text, age) in enumerate(ages, 1)]
    store.write(OWNER, take, said)
    store.index_all()
    wanted = sorted((one.at, one.seq) for one in said if one.text == "lisbon")[::-sign]
    found = ask(store, "lisbon", sort=sort, limit=len(wanted)).hits
    assert [(hit.found.timestamp, hit.found.seq) for hit in found] == wanted


def test_what_was_said_at_another_time_is_left_out_before_it_is_read(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    found = SqlSearch._found

    def noting(self: SqlSearch, ids: list[int], narrowing: Narrowing) -> list[Found]:
        read.extend(ids)
        return found(self, ids, narrowing)

    store.write(OWNER, begin)
    said = [Said("a", number, (NOW if number % 2 else OLD) + number, f"lisbon {number}") for number in range(1, 2_001)]
    store.write(OWNER, take, said)
    store.index_all()
    monkeypatch.setattr(SqlSearch, "_found", noting)
    assert contents(ask(store, "lisbon after:2033-01-01", sort=Sort.OLD, limit=2)) == ["lisbon 1", "lisbon 3"]
    assert len(read) <= 2 * search_blocks.CHUNK
