"""A batch in this process, on each database: every line is answered once, in a session of its own."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest
from obedient_model import Obedient
from serving_house import use_obedient_model, write_settings
from waiting import until

from segue import config
from segue.app.batching import Batch, BatchRun, Progress
from segue.app.serving import NO_MODEL
from segue.core.batches import Line, Result
from segue.core.errors import Invalid, NoModel
from segue.core.events import Reply, Text
from segue.core.inbox import Entry
from segue.core.keys import KeyRules
from segue.core.messages import draft
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.ports.model import Request
from segue.ports.store import Filter, Transaction
from segue.sessions import batching
from segue.sessions.listing import list_sessions
from segue.sessions.recording import append_message
from segue.storage.store import SqlStore

LINES = [Line(number, str(number), f"prompt {number}", "main") for number in range(1, 8)]


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    use_obedient_model(monkeypatch)


class Desk:
    """Batches of a home."""

    def __init__(self, home: Path, store: SqlStore) -> None:
        self.settings = config.load(write_settings(home), {})
        self.store = store
        self.seen: list[Progress] = []

    def run(self, lines: Sequence[Line] = LINES, name: str = "b", at_once: int = 3) -> Progress:
        known = self.known(name)

        async def live() -> Progress:
            batch = Batch(name, lines, known, at_once)
            return await BatchRun(self.settings, self.store, batch, self.seen.append).run(
                asyncio.Event(), asyncio.Event()
            )

        return asyncio.run(live())

    def known(self, name: str = "b") -> dict[str, Entry]:
        return self.store.read(OWNER, batching.known_lines, name)

    def results(self, name: str = "b") -> list[Result]:
        return self.store.read(OWNER, batching.results_of, list(self.known(name).values()))

    def put_down(self, lines: Sequence[Line], name: str = "b") -> None:
        self.store.write(OWNER, batching.put_down, name, lines, KeyRules(), 1.0)


@pytest.fixture
def desk(home: Path, store: SqlStore) -> Desk:
    return Desk(home, store)


def test_each_line_is_answered_in_a_session_of_its_own_that_is_automation(desk: Desk) -> None:
    assert desk.run() == Progress(7, 0, 0)
    results = desk.results()
    assert [(one.id, one.state, one.answer, one.error) for one in results] == [
        (line.id, "done", f"You said: {line.prompt}", None) for line in LINES
    ]
    found = desk.store.read(OWNER, list_sessions, Filter(sources=("batch",)), 100)
    assert {one.id for one in found} == {one.session_id for one in results}
    assert {(one.source, one.kind, one.principal) for one in found} == {("batch", "automation", "owner")}
    assert desk.store.read(OWNER, lambda tx: tx.outbox.count(("pending", "dead", "delivered"))) == {}
    assert max(one.open for one in desk.seen) == 3


def test_what_was_answered_is_not_asked_again_and_what_is_new_is(desk: Desk) -> None:
    desk.run(LINES[:4])
    asked = len(Obedient.asked)
    assert asked == 4
    assert desk.run(LINES[:4]) == Progress(4, 0, 0)
    assert len(Obedient.asked) == asked
    assert desk.run() == Progress(7, 0, 0)
    assert len(Obedient.asked) == 7


def test_what_failed_is_asked_once_more_in_a_new_session(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Obedient.stream

    def broken(self: Obedient, request: object) -> object:
        if "prompt 2" in str(request):
            raise ValueError("no such luck")
        return whole(self, request)  # type: ignore[arg-type]

    monkeypatch.setattr(Obedient, "stream", broken)
    assert desk.run() == Progress(6, 1, 0)
    failed = next(one for one in desk.results() if one.id == "2")
    assert (failed.state, failed.answer) == ("failed", None)
    assert failed.error
    monkeypatch.setattr(Obedient, "stream", whole)
    assert desk.run() == Progress(7, 0, 0)
    mended = next(one for one in desk.results() if one.id == "2")
    assert (mended.state, mended.answer, mended.error) == ("done", "You said: prompt 2", None)
    assert mended.session_id != failed.session_id
    assert len(desk.known()) == 7


def test_a_batch_leaves_what_others_wait_for_alone(desk: Desk) -> None:
    desk.put_down(LINES[:2], "another")
    assert desk.run() == Progress(7, 0, 0)
    assert {entry.state for entry in desk.known("another").values()} == {"waiting"}
    found = desk.store.read(OWNER, batching.list_batches)
    listed = {one.name: (one.asked, one.done, one.failed, one.left) for one in found}
    assert listed == {"b": (7, 7, 0, 0), "another": (2, 0, 0, 2)}


@pytest.mark.parametrize("at_once", [2, 5])
def test_no_more_run_at_once_than_may_also_when_more_were_left(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    desk.put_down(LINES[:5])
    whole, counts, now = Obedient.stream, [0], 0

    async def counting(self: Obedient, request: Request) -> AsyncGenerator[Text | Reply]:
        nonlocal now
        now += 1
        counts.append(now)
        await until(lambda: max(counts) == at_once)
        await asyncio.sleep(0.05)  # in which more of them could begin
        async for event in whole(self, request):
            yield event
        now -= 1

    monkeypatch.setattr(Obedient, "stream", counting)
    assert desk.run(at_once=at_once) == Progress(7, 0, 0)
    assert max(counts) == at_once


def test_a_prompt_that_changed_is_told_and_nothing_is_asked(desk: Desk) -> None:
    desk.run(LINES[:1])
    with pytest.raises(Invalid, match="Line 1 has another prompt"):
        desk.put_down([LINES[0]._replace(prompt="something else")])
    assert [one.answer for one in desk.results()] == ["You said: prompt 1"]


def test_a_line_whose_words_were_removed_is_not_asked_again(desk: Desk) -> None:
    desk.run(LINES[:1])
    (result,) = desk.results()
    desk.store.write(OWNER, lambda tx: tx.inbox.erase([str(result.session_id)]))
    assert desk.run(LINES[:1]) == Progress(1, 0, 0)
    (removed,) = desk.results()
    assert (removed.state, removed.answer, removed.error) == ("done", None, batching.REMOVED)
    assert len(Obedient.asked) == 1


def test_what_is_said_in_its_conversation_later_does_not_become_the_answer(desk: Desk) -> None:
    desk.run(LINES[:1])
    (result,) = desk.results()

    def more(tx: Transaction) -> None:
        append_message(tx, str(result.session_id), draft("user", "And now?", 4e9))
        append_message(tx, str(result.session_id), draft("assistant", "Later.", 4e9 + 1))

    desk.store.write(OWNER, more)
    assert desk.results() == [result]


def test_a_tool_of_the_owners_is_there_and_one_that_has_to_be_agreed_to_is_not_used(desk: Desk, tmp_path: Path) -> None:
    told, mark = tmp_path / "told", tmp_path / "mark"
    told.write_text("the kettle is on")
    lines = [
        LINES[0]._replace(prompt=f'use read_file {{"path": "{told}"}}'),
        LINES[1]._replace(prompt=f'use terminal {{"command": "touch {mark}"}}'),
    ]
    assert desk.run(lines) == Progress(2, 0, 0)
    read, refused = desk.results()
    assert "the kettle is on" in str(read.answer)
    assert not mark.exists(), refused.answer


def test_without_a_model_nothing_is_asked(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setattr("segue.app.crew.local_endpoints", list)
    desk.settings = config.load(write_settings(desk.settings.home, model=""), {})
    with pytest.raises(NoModel, match=NO_MODEL[:30]):
        desk.run()
    assert desk.known() == {}
