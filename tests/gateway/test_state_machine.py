"""Whatever people, crashes and time do to lanes, in whatever order, what is stored is what a plain model says."""

import itertools
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from lane_bench import Bench
from lane_model import COMMAND, FRESHNESS, IDLE, LANES, MODES, SEATS, Mail, Model, Rules, Seat
from postgres_server import Emptied
from torture_rounds import rounds

from segue.core.inbound import Inbound
from segue.core.inbox import Entry, InboxState
from segue.core.outbox import OutboxState
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.scope import Audience, Principal, Scope
from segue.core.turns import TurnState
from segue.ports.store import Filter, Transaction
from segue.sessions import turning
from segue.sessions.listing import list_sessions
from segue.sessions.queueing import AnswerThese, Carry, CutOff, Due
from segue.storage.inbox import SqlInbox
from segue.storage.postgres import PostgresEngine
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore

OPEN_STATES = ("waiting", "running")
END_STATES = {"done", "cancelled", "refused", "dead"}
TITLES = ["tea", "coffee"]
COMMANDS = [
    *("/new", "/reset", "/new let us begin", "/undo", "/undo 2", "/retry", "/stop"),
    *(f"/title {title}" for title in TITLES),
    *(f"/queue {mode}" for mode in (*MODES, "default")),
]
SCOPES = sorted({Scope(Principal(seat.principal), Audience(seat.audience)) for seat in SEATS})
_ENDS = re.compile(r"\.$|\.\n(?:/resume )?\S+$")
"""A notice ends in a full stop, or in an id on a line of its own."""
_LEFT_OUT = re.compile(r"\[\d+ earlier messages were left out")

CROWDS = [SEATS[:1], SEATS[:2], [SEATS[0], SEATS[3]], [SEATS[2], SEATS[5]], SEATS]
"""Who is there: the fewer they are, the more happens between them."""
seats = st.runner().flatmap(lambda machine: st.sampled_from(machine.crowd))
lanes = seats.map(lambda seat: seat.lane)
numbers = st.integers(0, 99)


class Gateway(RuleBasedStateMachine):
    """People talk in five lanes, two of which are in a room; processes come and go."""

    new_store: Callable[[], SqlStore]

    def __init__(self) -> None:
        super().__init__()
        self.store = self.new_store()
        self.counter = itertools.count(1)
        self.brought: list[tuple[Seat, Inbound]] = []
        self.carried: list[Entry] = []
        self.readers = itertools.cycle(SCOPES)
        """Who looks after each step: one after another."""

    @initialize(
        crowd=st.sampled_from(CROWDS),
        mode=st.sampled_from(MODES),
        drop=st.sampled_from(["new", "old", "summarize"]),
        cap=st.integers(2, 4),
        stop_suspends=st.booleans(),
    )
    def open(self, crowd: list[Seat], mode: str, drop: str, cap: int, stop_suspends: bool) -> None:
        self.crowd = crowd
        self.model = Model(Rules(mode, drop, cap, stop_suspends))
        self.bench = Bench(self.store, mode, drop, cap, stop_suspends, IDLE, FRESHNESS)

    def teardown(self) -> None:
        """Left alone, every message comes to an end, and nothing is left to do."""
        try:
            if sys.exc_info()[0] is None:
                self.come_to_an_end()
        finally:
            self.bench.close()
            self.store.close()

    # People

    @rule(seat=seats, is_queued=st.booleans())
    def somebody_writes(self, seat: Seat, is_queued: bool) -> None:
        text = f"words {next(self.counter)}"
        self.bring(seat, f"/queue {text}" if is_queued and next(self.counter) % 3 == 0 else text)

    @rule(seat=seats, count=st.integers(3, 5))
    def somebody_writes_much(self, seat: Seat, count: int) -> None:
        for _ in range(count):
            self.bring(seat, f"words {next(self.counter)}")

    @rule(seat=seats, is_answered=st.booleans())
    def somebody_is_answered(self, seat: Seat, is_answered: bool) -> None:
        self.bring(seat, f"words {next(self.counter)}")
        self.finish(seat.lane) if is_answered else self.works_in(seat.lane)

    @rule(seat=seats, command=st.sampled_from(COMMANDS))
    def somebody_commands(self, seat: Seat, command: str) -> None:
        self.bring(seat, command)

    @rule(seat=seats, command=st.sampled_from(COMMANDS))
    def a_command_is_carried_out(self, seat: Seat, command: str) -> None:
        self.bring(seat, command)
        self.works_in(seat.lane)

    @precondition(lambda self: self.model.talks)
    @rule(seat=seats, number=numbers, is_own=st.booleans(), by_title=st.booleans(), is_at_once=st.booleans())
    def somebody_resumes(self, seat: Seat, number: int, is_own: bool, by_title: bool, is_at_once: bool) -> None:
        """A conversation of their own or a stranger's."""
        talks = self.model.seen_by(seat.principal, "") if is_own else list(self.model.talks.values())
        wanted = talks[number % len(talks)].id if talks else "nothing"
        self.bring(seat, f"/resume {TITLES[number % len(TITLES)] if by_title else wanted}")
        if is_at_once:
            self.works_in(seat.lane)

    @precondition(lambda self: self.brought)
    @rule(number=numbers)
    def a_message_is_brought_again(self, number: int) -> None:
        seat, inbound = self.brought[number % len(self.brought)]
        self.put_down(seat, inbound)

    @precondition(lambda self: self.brought)
    @rule(number=numbers)
    def a_message_is_edited(self, number: int) -> None:
        seat, inbound = self.brought[-1 - number % min(len(self.brought), 6)]
        version = next(self.counter)
        self.put_down(seat, inbound._replace(edit=f"version {version}", text=f"edited words {version}"))

    # Turns

    @rule(lane=lanes)
    def a_lane_is_worked_in(self, lane: str) -> None:
        self.works_in(lane)

    @rule(lane=lanes)
    def a_lane_is_worked_in_to_the_end(self, lane: str) -> None:
        self.finish(lane)

    @precondition(lambda self: self.bench.doing)
    @rule(number=numbers, how=st.sampled_from(TurnState))
    def a_turn_goes_on_or_ends(self, number: int, how: TurnState) -> None:
        lane = sorted(self.bench.doing)[number % len(self.bench.doing)]
        text = f"answer {next(self.counter)}"
        if how is TurnState.RUNNING:
            self.bench.say_between(lane, text, f"result of {text}")
            self.model.say_between(lane, text, f"result of {text}")
        else:
            self.end(lane, how, text)

    @rule(lane=lanes, kept=st.integers(0, 3))
    def a_conversation_is_compressed(self, lane: str, kept: int) -> None:
        talk = self.model.talk_in(lane)
        if talk is None or not talk.view or (lane in self.model.tasks and lane not in self.bench.doing):
            return
        fresh, summary = self.fresh(), f"summary {next(self.counter)}"
        kept = min(kept, len(talk.view))
        self.bench.compress(lane, talk.id, summary, kept)
        self.model.compress(lane, fresh, summary, kept)

    # Time and processes

    @rule(minutes=st.sampled_from([5, 40, 90]))
    def time_passes(self, minutes: int) -> None:
        self.bench.now += 60 * minutes

    @rule()
    def the_process_dies(self) -> None:
        self.bench.crash()
        self.model.crash(self.bench.now)

    @precondition(lambda self: self.bench.doing)
    @rule(times=st.integers(1, 3))
    def a_turn_kills_the_process_again_and_again(self, times: int) -> None:
        lane = min(self.bench.doing)
        for _ in range(times):
            self.bench.now += 61  # else it would be the crashes that count, and no turn
            self.the_process_dies()
            self.works_in(lane)

    @precondition(lambda self: self.bench.left)
    @rule(number=numbers)
    def a_dead_process_writes_on(self, number: int) -> None:
        """It can end nothing any more once its lane has been taken."""
        lane, doing = self.bench.left[number % len(self.bench.left)]
        if lane in self.bench.holders or lane not in self.model.tasks:
            assert self.bench.is_refused_to_the_dead(doing)

    @precondition(lambda self: self.carried)
    @rule(number=numbers)
    def a_command_is_carried_out_again(self, number: int) -> None:
        """As when nobody knows whether the first time was committed."""
        self.fresh()
        self.bench.carry_out(None, self.carried[-1 - number % min(len(self.carried), 2)])

    # What the rules are made of

    def come_to_an_end(self) -> None:
        for lane in LANES:
            self.finish(lane)
        self.compare()
        for scope in SCOPES:
            self.store.read(scope, self.compare_seen)
            self.store.read(scope, self.compare_found)
        assert {mail.state for mail in self.model.mails} <= END_STATES
        assert not self.store.read(OWNER, lambda tx: tx.inbox.open_lanes())

    def fresh(self) -> str:
        self.bench.fresh = f"session-{next(self.counter):05}"
        return self.bench.fresh

    def bring(self, seat: Seat, text: str) -> None:
        inbound = Inbound(seat.source, f"m{next(self.counter)}", text)
        self.brought.append((seat, inbound))
        self.put_down(seat, inbound)

    def put_down(self, seat: Seat, inbound: Inbound) -> None:
        self.bench.now += 1
        fresh, was_busy = self.fresh(), seat.lane in self.bench.doing
        accepted = self.bench.arrive(inbound)
        mail = self.model.arrive(seat, inbound.message_id, inbound.edit, inbound.text, self.bench.now)
        assert accepted.is_new == (mail is not None)
        if mail and was_busy and mail.want == COMMAND and mail.text.split()[0] in ("/stop", "/queue"):
            self.model.carry_out(mail, fresh, self.bench.now)

    def works_in(self, lane: str) -> bool:
        """Do the next thing; whether there was one."""
        if lane in self.bench.doing:
            return False
        self.bench.now += 1
        fresh, due = self.fresh(), self.bench.due(lane)
        assert kind_of(due) == self.model.due(lane)
        self.bench.work(lane, due)
        match due:
            case CutOff():
                assert self.model.take_up(lane, self.bench.now) == (lane in self.bench.doing)
            case Carry(entry):
                self.carried.append(entry)
                self.model.carry_out(self.model.waiting(lane)[0], fresh, self.bench.now)
            case AnswerThese():
                self.model.begin(lane, fresh, self.bench.now)
        return due is not None

    def finish(self, lane: str) -> None:
        """Everything in a lane is done and answered."""
        while lane in self.bench.doing or self.works_in(lane):
            if lane in self.bench.doing:
                self.end(lane, TurnState.DONE, f"answer {next(self.counter)}")

    def end(self, lane: str, how: TurnState, text: str) -> None:
        if how is TurnState.DONE:
            self.bench.end(lane, how, text)
            self.model.answer(lane, text)
        elif how is TurnState.FAILED:
            self.bench.end(lane, how, reason=f"No {text}.")
            self.model.fail(lane, f"No {text}.")
        else:
            self.bench.end(lane, how, reason="Enough.")
            self.model.stop(lane)

    # What always holds

    @invariant()
    def compare(self) -> None:
        self.store.read(OWNER, self.compare_all)
        self.store.read(next(self.readers), self.compare_seen)

    def compare_all(self, tx: Transaction) -> None:
        self.compare_inbox(tx)
        self.compare_outbox(tx)
        self.compare_lanes(tx)
        self.compare_sessions(tx)
        assert tx.health.miscounts() == []
        assert tx.health.orphans() == []

    def compare_inbox(self, tx: Transaction) -> None:
        """Each message is there once, in one state, in its lane, in the order in which it came."""
        rows = tx.inbox.listed(list(InboxState))
        found = [
            ((row.chat, row.message_id, row.edit), row.lane_key, as_said(row.text), row.want, row.state) for row in rows
        ]
        assert found == [as_row(mail) for mail in self.model.mails]
        assert all((row.ended_at is None) == (row.state in OPEN_STATES) for row in rows)

    def compare_outbox(self, tx: Transaction) -> None:
        """Every answer and notice is there once, in order."""
        rows = tx.outbox.listed(list(OutboxState))
        assert [(row.lane_key, row.what) for row in rows] == [(one.lane, one.what) for one in self.model.sent]
        for row, one in zip(rows, self.model.sent, strict=True):
            assert one.text in (None, row.text)
            assert row.what == "reply" or _ENDS.search(row.text), row.text

    def compare_lanes(self, tx: Transaction) -> None:
        found = {lane.key: (lane.session_id, lane.phase) for lane in tx.lanes.listed()}
        expected = {key: (spot.talk.id if spot.talk else None, spot.phase) for key, spot in self.model.lanes.items()}
        assert found == expected

    def compare_sessions(self, tx: Transaction) -> None:
        rows = {row.id: row for row in tx.sessions.in_order()}
        assert rows.keys() == self.model.talks.keys()
        for name, talk in self.model.talks.items():
            row = rows[name]
            found = (row.principal, row.audience, row.title, row.is_open, row.message_count, row.tool_call_count)
            calls = sum(line.calls for line in talk.live)
            assert found == (talk.principal, talk.audience, talk.title, talk.is_open, len(talk.live), calls), name
            said = [(one.role, as_said(one.content), one.is_live) for one in tx.messages.of(name, every_state=True)]
            assert said == [(line.role, line.text, line.is_live) for line in talk.lines], name
        titles = [(row.principal, row.title) for row in rows.values() if row.title]
        assert len(titles) == len(set(titles))
        open_in = [row.lane_key for row in rows.values() if row.is_open]
        assert len(open_in) == len(set(open_in))

    def compare_seen(self, tx: Transaction) -> None:
        """Everybody finds what is theirs where they are, and nothing else."""
        seen = {talk.id: talk for talk in self.model.seen_by(tx.scope.principal, tx.scope.audience)}
        assert {row.id for row in tx.sessions.in_order()} == seen.keys()
        for title in TITLES:
            assert [row.id for row in tx.sessions.titled(title)] == [n for n, t in seen.items() if t.title == title]

    def compare_found(self, tx: Transaction) -> None:
        """The same by the other ways of looking."""
        seen = {talk.id: talk for talk in self.model.seen_by(tx.scope.principal, tx.scope.audience)}
        assert {name for name in self.model.talks if tx.sessions.find(name)} == seen.keys()
        assert {name for name in self.model.talks if tx.messages.of(name, every_state=True)} <= seen.keys()
        tips = {name for name, talk in seen.items() if self.model.tip_of(talk) is talk}
        assert {row.id for row in list_sessions(tx, Filter(), 999)} == tips


def as_row(mail: Mail) -> tuple[object, ...]:
    return (mail.name, mail.seat.lane, mail.text, mail.want, mail.state)


def as_said(content: str | None) -> str:
    """The words of a message, and in short what stands in for those that were left out."""
    if content is None or not _LEFT_OUT.match(content):
        return content or ""
    return f"left out: {', '.join(line.removeprefix('- ').rstrip(']') for line in content.splitlines()[1:])}"


def kind_of(due: Due) -> str | None:
    kinds = {CutOff: "cut off", Carry: "command", AnswerThese: "answer", type(None): None}
    return kinds.get(type(due), "forgotten")


def try_out(new_store: Callable[[], SqlStore], examples: int, phases: Sequence[Phase] = tuple(Phase)) -> None:
    machine = type("Tried", (Gateway,), {"new_store": staticmethod(new_store)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            phases=phases,
        ),
    )


@pytest.fixture
def new_file(tmp_path: Path, empty_file: bytes) -> Callable[[], SqlStore]:
    """Makes stores in files, each of them empty."""
    numbers = itertools.count()

    def make() -> SqlStore:
        file = tmp_path / f"{next(numbers)}" / "state.db"
        file.parent.mkdir(mode=0o700)
        file.touch(mode=0o600)
        file.write_bytes(empty_file)
        return SqlStore(SqliteEngine(file))

    return make


def also_in_torture(test: Callable[..., None]) -> Callable[..., None]:
    """`just torture` selects the test as well, and tries out more."""
    return pytest.mark.torture(test) if os.environ.get("SEGUE_TORTURE") else test


@also_in_torture
def test_lanes_in_a_file_are_what_a_plain_model_says(new_file: Callable[[], SqlStore]) -> None:
    try_out(new_file, rounds(50, in_torture=2000))


@also_in_torture
def test_lanes_on_a_server_are_what_a_plain_model_says(emptied: Emptied) -> None:
    try_out(lambda: SqlStore(PostgresEngine(emptied.empty())), rounds(8, in_torture=400))


def test_a_lane_that_its_last_owner_can_still_write_to_is_noticed(
    new_file: Callable[[], SqlStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control: without the check of the lease, the model and the lanes come apart."""
    monkeypatch.setattr(turning, "hold", lambda _tx, _lease: None)
    with pytest.raises(AssertionError):
        try_out(new_file, 300, (Phase.generate,))


def test_a_message_that_is_accepted_twice_is_noticed(
    new_file: Callable[[], SqlStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control: a message whose name is another one each time."""
    add, accounts = SqlInbox.add, itertools.count()
    named_anew = lambda self, entry: add(self, entry._replace(account=f"{next(accounts)}"))  # noqa: E731
    monkeypatch.setattr(SqlInbox, "add", named_anew)
    with pytest.raises(AssertionError):
        try_out(new_file, 300, (Phase.generate,))
