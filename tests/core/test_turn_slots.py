"""Which turns run at once, whoever asks in whatever order."""

from hypothesis import given
from hypothesis import strategies as st

from segue.core.turn_slots import TurnLimits, TurnSlots

LIMITS = TurnLimits(in_all=5, per_person=2)


def test_the_persons_who_wait_take_turns() -> None:
    slots = TurnSlots(TurnLimits(in_all=2, per_person=2))
    assert [slots.begin(f"a{number}", "alice") for number in range(6)] == [True, True, False, False, False, False]
    assert not slots.begin("b0", "bob")
    assert slots.end("a0") == ["b0"]  # alice asked first, and has another turn
    assert slots.end("b0") == ["a2"]
    assert slots.begin("a2", "alice")


def test_who_has_their_limit_does_not_keep_others_from_their_turn() -> None:
    slots = TurnSlots(TurnLimits(in_all=10, per_person=1))
    assert slots.begin("a0", "alice")
    assert not slots.begin("a1", "alice")
    assert slots.begin("b0", "bob")
    assert slots.end("b0") == []
    assert slots.end("a0") == ["a1"]


def test_the_owner_has_no_limit_but_that_of_all() -> None:
    slots = TurnSlots(LIMITS, exempt=("owner",))
    assert [slots.begin(f"o{number}", "owner") for number in range(6)] == [True] * 5 + [False]


def test_a_place_that_is_not_used_goes_to_the_next() -> None:
    slots = TurnSlots(TurnLimits(in_all=1, per_person=1))
    assert slots.begin("a0", "alice")
    assert not slots.begin("b0", "bob")
    assert not slots.begin("c0", "carol")
    assert slots.release("a0") == []  # it is used
    assert slots.end("a0") == ["b0"]
    assert slots.is_waiting("c0")
    assert slots.release("b0") == ["c0"]


@given(st.lists(st.tuples(st.sampled_from(["begin", "end", "release"]), st.sampled_from("abcd"), st.integers(0, 3))))
def test_the_limits_hold_and_no_lane_waits_while_there_is_room(steps: list[tuple[str, str, int]]) -> None:
    slots = TurnSlots(LIMITS, exempt=("d",))
    running: dict[str, str] = {}
    waiting: dict[str, str] = {}

    def admit(lanes: list[str]) -> None:
        for lane in lanes:
            running[lane] = waiting.pop(lane)

    for act, person, number in steps:
        lane = f"{person}{number}"
        match act:
            case "begin" if slots.begin(lane, person):
                waiting.pop(lane, None)
                running[lane] = person
            case "begin":
                waiting[lane] = person
            case "end":
                waiting.pop(lane, None)
                running.pop(lane, None)
                admit(slots.end(lane))
            case "release":
                was = len(slots)
                admit(slots.release(lane))
                assert len(slots) <= was or not running
                if len(slots) < was:
                    running.pop(lane)
        held = {one: list(running.values()).count(one) for one in "abc"}
        assert len(running) == len(slots) <= LIMITS.in_all
        assert all(count <= LIMITS.per_person for count in held.values())
        assert all(slots.is_waiting(one) for one in waiting)
        if len(running) < LIMITS.in_all:
            assert all(held[one] == LIMITS.per_person for one in waiting.values())
