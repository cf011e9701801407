"""Which connections a server keeps, whoever comes in whatever order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.listening.room import RESERVED_FILES, Limits, Room

LIMITS = Limits(unproven=8, per_address=3, proven=4, per_holder=2)


class Fake:
    """A connection of a test."""

    def __init__(self) -> None:
        self.is_evicted = False

    def evict(self) -> None:
        self.is_evicted = True


def come(room: Room, address: str, count: int) -> list[Fake]:
    made = [Fake() for _ in range(count)]
    for one in made:
        room.enter(one, address)
    return made


def left(connections: list[Fake]) -> int:
    return sum(not one.is_evicted for one in connections)


def test_one_address_may_have_many_as_long_as_there_is_room() -> None:
    room = Room(LIMITS)
    first = come(room, "a", 4)
    assert left(first) == 4
    second = come(room, "b", 1)
    assert (left(first), left(second)) == (4, 1)
    assert left(come(room, "a", 1)) == 1
    assert [one.is_evicted for one in first] == [True, False, False, False]


def test_a_stranger_comes_in_however_many_others_one_address_has() -> None:
    room = Room(LIMITS)
    come(room, "a", 1000)
    (stranger,) = come(room, "b", 1)
    come(room, "a", 1000)
    assert not stranger.is_evicted
    assert len(room) <= LIMITS.unproven


def test_many_addresses_make_room_for_each_other() -> None:
    room = Room(LIMITS)
    made = [come(room, f"address {number}", 1)[0] for number in range(50)]
    assert len(room) == LIMITS.unproven
    assert not made[-1].is_evicted


def test_a_trusted_proxy_has_all_of_the_room() -> None:
    room = Room(LIMITS, ["10.0.0.0/8"])
    assert left(come(room, "10.1.2.3", 8)) == 8
    assert left(come(room, "not an address", 1)) == 1


def test_a_proven_connection_is_closed_for_nobody() -> None:
    room = Room(LIMITS)
    (ours,) = come(room, "a", 1)
    assert room.prove(ours, "laptop")
    come(room, "a", 100)
    assert not ours.is_evicted
    room.doubt(ours)
    come(room, "a", 100)
    assert ours.is_evicted


def test_a_holder_has_a_share_and_all_of_them_together_have_their_room() -> None:
    room = Room(LIMITS)
    made = come(room, "a", 4)
    assert [room.prove(one, "laptop") for one in made[:3]] == [True, True, False]
    assert room.prove(made[0], "laptop"), "once more on the same connection"
    assert room.prove(made[3], "phone")
    room.leave(made[0])
    assert room.prove(made[2], "laptop")


@pytest.mark.parametrize("files", [0, 64, 256, 300, 1024, 1_000_000])
def test_the_limits_fit_into_the_files_that_a_process_may_open(files: int) -> None:
    limits = Limits().within(files)
    assert limits.unproven + limits.proven <= max(files - RESERVED_FILES, 32)
    assert all(limit > 0 for limit in limits)
    assert limits.per_address <= limits.unproven
    assert limits.per_holder <= limits.proven


@given(
    st.lists(
        st.tuples(st.sampled_from(["enter", "leave", "prove", "doubt"]), st.integers(0, 15), st.sampled_from("abc"))
    )
)
def test_no_limit_is_ever_passed(steps: list[tuple[str, int, str]]) -> None:
    room = Room(LIMITS)
    there: list[tuple[Fake, str]] = []
    holders: dict[int, str] = {}
    for act, number, name in steps:
        there = [one for one in there if not one[0].is_evicted]
        if act == "enter":
            (made,) = come(room, name, 1)
            there.append((made, name))
        elif there:
            connection = there[number % len(there)][0]
            if act == "leave":
                room.leave(connection)
                holders.pop(id(connection), None)
                there = [one for one in there if one[0] is not connection]
            elif act == "prove" and room.prove(connection, name):
                holders[id(connection)] = name
            elif act == "doubt":
                room.doubt(connection)
                holders.pop(id(connection), None)
        living = [one for one in there if not one[0].is_evicted]
        assert len(room) == len(living)
        assert len(holders) <= LIMITS.proven
        assert all(list(holders.values()).count(one) <= LIMITS.per_holder for one in "abc")
        assert len(living) - len(holders) <= LIMITS.unproven
