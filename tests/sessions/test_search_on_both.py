"""The same words, the same questions: both databases give the same answers."""

import time
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest
from examples import examples
from health_checks import SHARED_STORE
from hypothesis import given
from hypothesis import strategies as st
from postgres_server import Emptied
from waiting import DEADLINE

from segue.core.messages import draft
from segue.core.query import parse
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.scope import Principal, Scope
from segue.core.sessions import Kind, Session
from segue.ports.store import Narrowing, Transaction
from segue.sessions.recording import append_message
from segue.sessions.searching import Answer, Sort, Wish, search
from segue.sessions.starting import create_session
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore

NOW = 2_000_000_000.0
BOB = Scope(Principal("telegram:1"))
HEX = "0123456789abcdef" * 10
WORDS = [
    "alpha", "beta", "gamma", "alp", "alphabet", "naïve", "naive", "C#", "C++", "天气", "天", "今天天气", "ไทย", "서버",
    "x-y", "don't", "é", "e\u0301", "100%", "rm -rf", "~/.ssh", "🚀", "👩‍💻", "ab", "42", HEX, "ﬁ", "Straße", "I", "İ",
    "मिलेंगे।", "'", "\\", ":*", "&",
]  # fmt: skip
QUERIES = [
    *WORDS, "OR", "NOT", "AND", "(", ")", '"alpha beta"', "alp*", "天*", "~lph", "~ab", "~42", "~天气",
    f"~{HEX[20:90]}", "role:user", "in:tools", "source:cli", "tag:x", '"天气 alpha"', "NOT gamma", "title:one",
]  # fmt: skip
SAID = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join) | st.text(max_size=20)
TEXTS = st.lists(SAID, min_size=1, max_size=15)
QUESTIONS = st.lists(st.sampled_from(QUERIES), min_size=1, max_size=5).map(" ".join) | st.text(max_size=20)


@pytest.fixture
def both(tmp_path: Path, emptied: Emptied) -> Iterator[tuple[SqlStore, SqlStore]]:
    with SqlStore(SqliteEngine(tmp_path / "state.db")) as one, SqlStore(emptied.engine()) as other:
        yield one, other


def fill(tx: Transaction, name: str, texts: list[str]) -> None:
    for part, (principal, kind) in enumerate([("owner", Kind.INTERACTIVE), ("telegram:1", Kind.AUTOMATION)]):
        session = f"{name}-{part}"
        create_session(tx, Session(session, "cli", started_at=NOW, principal=principal, kind=kind, title=f"one {name}"))
        tx.sessions.tag(session, ["x"] if part else [])
        for number, text in enumerate(texts):
            role = ("user", "assistant", "tool")[number % 3]
            append_message(tx, session, draft(role, text, NOW + number))


def asked(store: SqlStore, scope: Scope, question: str, name: str, sort: Sort) -> Answer:
    wish = Wish(limit=100, sort=sort, narrowing=Narrowing(session_prefix=name))
    return store.read(scope, search, parse(question), wish, NOW, UTC, lambda: DEADLINE)


@given(texts=TEXTS, questions=st.lists(QUESTIONS, min_size=1, max_size=8), is_indexed=st.booleans())
@examples(25, in_torture=300, suppress_health_check=SHARED_STORE)
def test_answers_are_equal(
    both: tuple[SqlStore, SqlStore], texts: list[str], questions: list[str], is_indexed: bool
) -> None:
    name = f"s{time.monotonic_ns()}"
    for store in both:
        store.write(OWNER, fill, name, texts)
    if is_indexed:
        both[0].index_all()
    for question in questions:
        for scope in (OWNER, BOB):
            for sort in Sort:
                one, other = (asked(store, scope, question, name, sort) for store in both)
                assert places(one) == places(other), question
                assert one.notes == other.notes, question


def places(answer: Answer) -> list[tuple[str, int, str]]:
    return [(hit.found.session_id, hit.found.seq, hit.snippet) for hit in answer.hits]
