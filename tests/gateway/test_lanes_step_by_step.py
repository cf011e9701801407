"""What a lane does in a moment that a running gateway seldom meets: each step is taken by the test."""

from typing import Any

import pytest
from lane_bench import Bench
from lane_model import FRESHNESS, IDLE, SEATS, Seat

from segue.core.inbound import Inbound
from segue.core.inbox import InboxState
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.turns import TurnState
from segue.sessions.accepting import LEFT_OUT, SUMMARISED
from segue.sessions.over_cap import DROPPED, NOT_TAKEN
from segue.sessions.queueing import Carry
from segue.storage.store import SqlStore

ALICE, ALICE_IN_THE_ROOM = SEATS[:2]


def bench_on(store: SqlStore, mode: str = "collect", drop: str = "new", cap: int = 9) -> Bench:
    return Bench(store, mode, drop, cap, False, IDLE, FRESHNESS)


def say(bench: Bench, text: str, message_id: str, *, edit: str = "", seat: Seat = ALICE) -> None:
    bench.now += 1
    bench.arrive(Inbound(seat.source, message_id, text, edit))


def work(bench: Bench, fresh: str = "", seat: Seat = ALICE) -> None:
    bench.fresh = fresh
    bench.work(seat.lane, bench.due(seat.lane))


def told_and_done(store: SqlStore) -> list[tuple[str, str]]:
    return [(entry.text, entry.state) for entry in store.read(OWNER, lambda tx: tx.inbox.listed(list(InboxState)))]


@pytest.mark.parametrize("drop", ["new", "old", "summarize"])
def test_an_edit_takes_the_place_of_what_waits_and_needs_no_room(store: SqlStore, drop: str) -> None:
    bench = bench_on(store, drop=drop, cap=2)
    say(bench, "one", "m1")
    say(bench, "tow", "m2")
    say(bench, "two", "m2", edit="1")
    assert told_and_done(store) == [("one", "waiting"), ("tow", "cancelled"), ("two", "waiting")]


def test_a_mode_chosen_in_a_conversation_decides_what_a_new_message_does(store: SqlStore) -> None:
    bench = bench_on(store)
    say(bench, "/queue interrupt", "m1")
    work(bench, "session")
    say(bench, "one", "m2")
    work(bench)
    say(bench, "two", "m3")
    assert ALICE.lane not in bench.doing
    assert told_and_done(store)[1:] == [("one", "cancelled"), ("two", "waiting")]


def test_a_command_whose_words_wait_for_an_answer_is_not_carried_out_again(store: SqlStore) -> None:
    bench = bench_on(store)
    say(bench, "one", "m1")
    work(bench, "first")
    bench.end(ALICE.lane, TurnState.DONE, "An answer.")
    say(bench, "/new two", "m2")
    due = bench.due(ALICE.lane)
    assert isinstance(due, Carry)
    for fresh in ("second", "third"):
        bench.fresh = fresh
        bench.carry_out(None, due.entry)
    assert [row.to_session for row in store.read(OWNER, lambda tx: tx.lanes.resets(ALICE.lane))] == ["second"]
    assert told_and_done(store)[1:] == [("two", "waiting")]


def test_a_conversation_goes_on_in_a_lane_in_which_nothing_was_said(store: SqlStore) -> None:
    bench = bench_on(store)
    say(bench, "one", "m1", seat=ALICE_IN_THE_ROOM)
    work(bench, "first", ALICE_IN_THE_ROOM)
    bench.end(ALICE_IN_THE_ROOM.lane, TurnState.DONE, "An answer.")
    say(bench, "/resume first", "m2")
    work(bench, "second")
    lanes = {lane.key: lane.session_id for lane in store.read(OWNER, lambda tx: tx.lanes.listed())}
    assert lanes == {ALICE.lane: "first", ALICE_IN_THE_ROOM.lane: None}


def crowd_out(bench: Bench) -> None:
    """One turn, and another that begins with a note about what was left out."""
    say(bench, "one", "m1")
    work(bench, "session")
    for number in (2, 3, 4):
        say(bench, f"words {number}", f"m{number}")
    for _ in range(2):
        bench.end(ALICE.lane, TurnState.DONE, "An answer.")
        work(bench)
    assert [line for line in heard(bench) if "left out" in line] == heard(bench)[1:2]


def heard(bench: Bench) -> list[str]:
    """What the agent is told that people said."""
    found = bench.store.read(OWNER, lambda tx: tx.messages.of("session"))
    return [one.content or "" for one in found if one.role == "user"]


def test_undo_goes_by_what_was_said_and_not_by_what_was_left_out(store: SqlStore) -> None:
    bench = bench_on(store, drop="summarize", cap=2)
    crowd_out(bench)
    say(bench, "/undo 3", "m5")
    work(bench)
    assert heard(bench) == []


def test_retry_says_again_what_a_person_said(store: SqlStore) -> None:
    bench = bench_on(store, drop="summarize", cap=2)
    crowd_out(bench)
    for number, command in enumerate(("/undo 2", "/retry")):
        say(bench, command, f"c{number}")
        work(bench)
    assert told_and_done(store)[-1] == ("one", "waiting")
    assert heard(bench) == []


def test_stop_cancels_commands_that_would_be_answered_and_no_others(store: SqlStore) -> None:
    bench = bench_on(store)
    say(bench, "one", "m1")
    work(bench, "session")
    asking = ("/new two", "/retry", "/compress the leeks", "three")
    for number, text in enumerate((*asking, "/title Lisbon", "/think high", "/stop")):
        say(bench, text, f"c{number}")
    cancelled = [(text, "cancelled") for text in ("one", *asking)]
    assert told_and_done(store) == [
        *cancelled,
        *((one, "waiting") for one in ("/title Lisbon", "/think high", "/stop")),
    ]
    for _ in range(3):
        work(bench)
    told = [one.text for one in store.read(OWNER, lambda tx: tx.outbox.listed(("pending",)))]
    assert told == [
        "This conversation is called “Lisbon” now.",
        "Thinking: high.",
        "4 waiting messages cancelled.",
    ]
    assert heard(bench) == ["one"]


@pytest.mark.parametrize(
    ("drop", "text"), [("new", NOT_TAKEN), ("old", DROPPED[LEFT_OUT]), ("summarize", DROPPED[SUMMARISED])]
)
def test_a_full_queue_is_told_once_in_each_burst(store: SqlStore, drop: str, text: str) -> None:
    bench = bench_on(store, drop=drop, cap=2)
    say(bench, "one", "m0")
    work(bench, "session")
    for burst in (1, 2):
        for number in range(5):
            say(bench, f"words {number}", f"m{burst}{number}")
        told = [one for one in store.read(OWNER, lambda tx: tx.outbox.listed(("pending",))) if one.text == text]
        assert len(told) == burst
        bench.end(ALICE.lane, TurnState.DONE, "An answer.")
        work(bench)


@pytest.mark.parametrize("drop", ["new", "summarize"])
def test_everybody_whose_words_are_left_out_is_told(store: SqlStore, drop: str) -> None:
    bench = bench_on(store, drop=drop, cap=2)
    key = next(seat.lane for seat in SEATS if sum(other.lane == seat.lane for other in SEATS) == 2)
    shared = [seat for seat in SEATS if seat.lane == key]
    say(bench, "one", "m0", seat=shared[0])
    work(bench, "session", shared[0])
    for number in range(8):
        say(bench, f"words {number}", f"m{number}", seat=shared[number % 2])
    told = [one for one in store.read(OWNER, lambda tx: tx.outbox.listed(("pending",))) if "Too many" in one.text]
    assert len({one.reply_to for one in told}) == len(told) == 2


@pytest.mark.parametrize("command", ["/new", "/resume first"])
def test_what_begins_another_conversation_cancels_a_retry_that_waits(store: SqlStore, command: str) -> None:
    bench = bench_on(store)
    say(bench, "one", "m1")
    work(bench, "session")
    say(bench, "/retry", "m2")
    say(bench, command, "m3")
    assert told_and_done(store)[1:] == [("/retry", "cancelled"), (command, "waiting")]


@pytest.mark.parametrize("is_expired", [False, True])
def test_who_resumes_the_conversation_of_a_lane_goes_on_with_it(store: SqlStore, is_expired: bool) -> None:
    bench = Bench(store, "collect", "new", 9, not is_expired, IDLE, FRESHNESS)
    say(bench, "one", "m1")
    work(bench, "first")
    bench.end(ALICE.lane, TurnState.DONE, "An answer.")
    if is_expired:
        bench.now += 2 * IDLE
    else:
        say(bench, "/stop", "m2")
        work(bench)
    say(bench, "/resume first", "m3")
    work(bench)
    say(bench, "two", "m4")
    work(bench, "second")
    assert bench.doing[ALICE.lane].turn.session_id == "first"


def test_retry_says_again_all_of_a_message_and_not_only_its_words(store: SqlStore) -> None:
    bench = bench_on(store)
    picture: list[dict[str, Any]] = [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": "data:,x"}},
    ]
    bench.arrive(Inbound(ALICE.source, "m1", "what is this?", parts=picture))
    work(bench, "session")
    bench.end(ALICE.lane, TurnState.DONE, "An answer.")
    say(bench, "/retry", "m2")
    work(bench)
    work(bench)
    (said,) = store.read(OWNER, lambda tx: tx.messages.of("session"))
    assert said.original == picture
