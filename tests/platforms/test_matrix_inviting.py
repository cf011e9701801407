"""Whom we let bring us into rooms: nobody shuts others out, and nobody makes us join just anything."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from matrix_bench import ANN, EVE, ME, Bench, benched
from matrix_house import MatrixHouse, run
from matrix_person import Person
from synapse_server import Synapse

from segue.core.sources import SessionSource
from segue.platforms.matrix.failing import refusal
from segue.platforms.matrix.inviting import MOST, MOST_EACH, STRANGERS
from segue.testing.ledger import Ledger


class Pairing(Ledger):
    """Strangers are given a code in a direct chat; only Ann is heard."""

    async def is_heard(self, source: SessionSource, *, is_mention: bool) -> bool:
        return source.user_id == ANN

    async def is_welcome(self, source: SessionSource) -> bool:
        return source.user_id == ANN or source.chat_type == "dm"


def invitations(sender: str, *rooms: str, is_direct: bool = True) -> dict[str, Any]:
    content = {"membership": "invite", "is_direct": is_direct}
    event = {"type": "m.room.member", "state_key": ME, "sender": sender, "content": content}
    return {"invite": {room: {"invite_state": {"events": [event]}} for room in rooms}}


def joined(bench: Bench) -> list[str]:
    return [path[3] for path in bench.line.asked if path[-1] == "join"]


def homeserver(members: int = 2, rule: str = "invite") -> Any:
    def answer(path: tuple[str, ...], _query: Mapping[str, str]) -> dict[str, Any]:
        if path[-1] == "members":
            gone = {"content": {"membership": "leave"}}
            return {"chunk": [gone, *({"content": {"membership": "join"}} for _ in range(members))]}
        return {"join_rule": rule} if path[-1] == "m.room.join_rules" else {}

    return answer


def test_strangers_shut_nobody_out(tmp_path: Path) -> None:
    async def work() -> None:
        async with benched(tmp_path, Ledger(lambda source: source.user_id == ANN), homeserver()) as bench:
            bench.porter.hear(invitations(EVE, *(f"!{number}:x" for number in range(200))))
            for number in range(200):
                bench.porter.hear(invitations(f"@eve{number}:x", f"!of{number}:x"))
            bench.porter.hear(invitations(ANN, *(f"!ann{number}:x" for number in range(10)), is_direct=False))
            await bench.porter.look()
            assert joined(bench) == [f"!ann{number}:x" for number in range(10)]
            assert len(bench.porter._open) == MOST

    run(work())


def test_of_one_stranger_few_invitations_stay_open(tmp_path: Path) -> None:
    async def work() -> None:
        welcome: set[str | None] = set()
        async with benched(tmp_path, Ledger(lambda source: source.user_id in welcome), homeserver()) as bench:
            bench.porter.hear(invitations(EVE, *(f"!{number}:x" for number in range(200))))
            await bench.porter.look()
            assert joined(bench) == []
            welcome.add(EVE)
            await bench.porter.look()
            assert joined(bench) == [f"!{number}:x" for number in range(MOST_EACH)]

    run(work())


@pytest.mark.parametrize(
    ("sender", "members", "rule", "stays"),
    [
        (EVE, 2, "invite", True),
        (EVE, 3, "invite", False),
        (EVE, 500, "public", False),
        (EVE, 2, "public", False),
        (ANN, 3, "invite", True),
        (ANN, 500, "public", True),
    ],
)
def test_a_room_that_a_stranger_calls_a_direct_chat_is_left_if_it_is_none(
    sender: str, members: int, rule: str, stays: bool, tmp_path: Path
) -> None:
    async def work() -> None:
        async with benched(tmp_path, Pairing(), homeserver(members, rule)) as bench:
            bench.porter.hear(invitations(sender, "!r:x"))
            await bench.porter.look()
            assert joined(bench) == ["!r:x"]
            has_left = ("POST", "v3", "rooms", "!r:x", "leave") in bench.line.asked
            assert has_left is not stays

    run(work())


def test_a_room_is_looked_at_also_when_the_homeserver_stumbles(tmp_path: Path) -> None:
    async def work() -> None:
        stumbles = [502, 429]
        good = homeserver(3)

        def answer(path: tuple[str, ...], query: Mapping[str, str]) -> dict[str, Any]:
            if path[-1] == "members" and stumbles:
                raise refusal(stumbles.pop(), {})
            found: dict[str, Any] = good(path, query)
            return found

        async with benched(tmp_path, Pairing(), answer) as bench:
            bench.porter.hear(invitations(EVE, "!r:x"))
            await bench.porter.look()
            bench.porter.hear({"join": {"!r:x": {}}})
            for _ in range(3):
                await bench.porter.look()
            assert bench.line.asked.count(("POST", "v3", "rooms", "!r:x", "leave")) == 1

    run(work())


def test_strangers_do_not_keep_us_busy_joining(tmp_path: Path) -> None:
    async def work() -> None:
        async with benched(tmp_path, Pairing(), homeserver()) as bench:
            for number in range(100):
                bench.porter.hear(invitations(f"@eve{number}:x", f"!{number}:x"))
            bench.porter.hear(invitations(ANN, "!ann:x"))
            await bench.porter.look()
            assert len(joined(bench)) == STRANGERS + 1
            assert joined(bench)[-1] == "!ann:x"

    run(work())


def test_a_stranger_cannot_make_us_stay_in_a_group(synapse: Synapse, tmp_path: Path) -> None:
    house = MatrixHouse(tmp_path, synapse.url, synapse.register("segue"))
    us = house.user.user_id

    async def work() -> None:
        url = synapse.url
        async with Person(url, synapse.register("eve")) as eve, Person(url, synapse.register("bob")) as bob:
            ledger = Pairing()
            async with house.at_work(ledger):
                trap = await eve.create_room(us, bob.user_id, is_direct=True)
                chat = await eve.create_room(us, is_direct=True)
                await eve.wait_for_member(chat, us)
                events = await _until_left(eve, trap, us)
            assert events == ["invite", "join", "leave"]
            assert us in await eve.members(chat)

    run(work())


async def _until_left(eve: Person, room: str, us: str) -> list[str]:
    found: list[str] = []

    async def look() -> bool:
        ours = [one for one in await eve.events(room) if one.get("state_key") == us]
        found[:] = [one["content"]["membership"] for one in ours]
        return found[-1:] == ["leave"]

    while not await look():
        await eve._news(0.5)
    return found
