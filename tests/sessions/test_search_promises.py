"""What search promises of any text whatever: what was said is found by it, and always in time."""

import random
import time
from datetime import UTC

import pytest
from examples import examples
from growth import seconds
from health_checks import SHARED_STORE
from hypothesis import given
from hypothesis import strategies as st
from torture_rounds import rounds
from waiting import DEADLINE

from segue.core.messages import draft
from segue.core.query import MOST_CHARACTERS, Phrase, Word, parse
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sessions import Session
from segue.facade.searching import TIME, answer
from segue.ports.store import Narrowing, Transaction
from segue.sessions.recording import append_message
from segue.sessions.searching import Wish, search
from segue.sessions.starting import create_session
from segue.storage.store import SqlStore

NOW = 2_000_000_000.0
SCRIPTS = [
    "the server went down, again!", "C++ and C# don't mix", "rm -rf ~/.ssh && echo 'done'", "naïve façade Ünïcode",
    "東京の天気を調べて。", "请把这份报告翻译成中文", "서버 로그를 확인하고", "ภาษาไทยง่ายนิดเดียว", "हिन्दी में लिखो",
    "هل يمكنك", "Пожалуйста, проверь", "🚀🎉 👩‍💻☕️ ✅", "x=1; y=[2,3]", "https://example.org/a?b=c#d",
    "(a OR b) AND NOT c", '"quoted" text', "source:cli after:2025-01-01", "* ~ - + %", "100% #123 @home",
    "ﬁnal ﬂow ½ ²", "a\u0301b\u0300c",
]  # fmt: skip
SIGNS = st.characters(exclude_categories=["Cc", "Cs"])  # what controls a terminal is in no word
TEXT = st.lists(st.sampled_from(SCRIPTS) | st.text(SIGNS, max_size=40), min_size=1, max_size=4).map(" ".join)


def say(tx: Transaction, session_id: str, role: str, text: str) -> int:
    if tx.sessions.find(session_id) is None:
        create_session(tx, Session(session_id, "cli", started_at=NOW))
    return append_message(tx, session_id, draft(role, text, NOW)).id


def found(store: SqlStore, query: str, session_id: str) -> set[int]:
    wish = Wish(limit=1000, narrowing=Narrowing(session_prefix=session_id))
    answer = store.read(OWNER, search, parse(query), wish, NOW, UTC, lambda: DEADLINE)
    return set() if answer.notes else {hit.found.id for hit in answer.hits}


@given(text=TEXT, role=st.sampled_from(["user", "assistant"]), is_indexed=st.booleans(), data=st.data())
@examples(60, in_torture=2000, suppress_health_check=SHARED_STORE)
def test_any_word_or_phrase_of_a_message_finds_it(
    store: SqlStore, text: str, role: str, is_indexed: bool, data: st.DataObject
) -> None:
    name = f"s{time.monotonic_ns()}"
    said = store.write(OWNER, say, name, role, text)
    store.write(OWNER, say, name, role, "something else entirely")
    if is_indexed:
        store.index_all()
    pieces = text.split()
    if not pieces:
        return
    first = data.draw(st.integers(0, len(pieces) - 1))
    last = data.draw(st.integers(first, min(first + 6, len(pieces) - 1)))
    phrase = " ".join(pieces[first : last + 1]).replace('"', " ")
    if phrase.strip() and len(phrase) < MOST_CHARACTERS - 2:
        assert said in found(store, str(Phrase(phrase)), name), "in quotation marks"
    word = pieces[first]
    if isinstance(parse(word).tree, Word):
        assert said in found(store, word, name), "as it stands"


ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz     ", '()"*~:NOTANDOR   x', "天気今日ไทย서버 ", "\\/'%_;--#$@!^&|<>=+?.,[]{}` ",
    "source:role:title:tag:after:before:session:in:tools 2025-01-01 \"()", "🚀👩‍💻é́ \x00\x1b\u202e\ufffe",
]  # fmt: skip


@pytest.mark.torture
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_random_strings_are_answered_in_time(store: SqlStore) -> None:
    source = random.Random(4)
    said = [f"{source.choice(SCRIPTS)} {source.choice(SCRIPTS)} {number}" for number in range(300)]
    store.write(OWNER, lambda tx: [say(tx, "s", "user", text) for text in said])
    store.index_all()
    store.write(OWNER, lambda tx: [say(tx, "s", "user", text) for text in said[:30]])

    def ask(text: str) -> None:
        answer(store, OWNER, text, Wish(limit=20), TIME)

    usual = max(min(seconds(ask, text) for _ in range(3)) for text in SCRIPTS)
    most = TIME + 40 * usual  # the budget, and one step over it
    for _ in range(rounds(300, in_torture=100_000)):
        alphabet = source.choice(ALPHABETS)
        text = "".join(source.choices(alphabet, k=source.choice((1, 2, 5, 12, 40, 600))))
        assert any(seconds(ask, text) < most for _ in range(20)), text  # what disturbs one try does not disturb all
