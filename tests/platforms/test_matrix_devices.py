"""Several devices of one account, as several gateways have on one database: none takes anything from another."""

from pathlib import Path

import pytest
from matrix_house import MatrixHouse, run
from matrix_person import Person
from matrix_private_person import PrivatePerson
from synapse_server import Synapse
from waiting import until

from segue.platforms.matrix import reading
from segue.platforms.matrix.inbound import UNREADABLE
from segue.testing.ledger import Ledger


@pytest.fixture
def houses(synapse: Synapse, tmp_path: Path) -> list[MatrixHouse]:
    ours = synapse.register("segue")
    return [MatrixHouse(tmp_path / name, synapse.url, ours) for name in ("one", "other")]


def test_what_one_device_reads_takes_no_key_from_another(
    houses: list[MatrixHouse], synapse: Synapse, tmp_path: Path
) -> None:
    async def work() -> None:
        ledger, (one, other) = Ledger(), houses
        async with PrivatePerson(synapse.url, synapse.register("ann"), tmp_path / "ann") as ann:
            async with one.at_work(ledger), other.at_work(ledger):
                room = await ann.create_room(one.user.user_id, is_direct=True, is_encrypted=True)
                await ann.wait_for_member(room, one.user.user_id)
            async with one.at_work(ledger):
                await ann.say(room, "with a key that both were given")
                await until(lambda: len(ledger.accepted) == 1)
                await ann.say(room, "that was read by one")
                await until(lambda: len(ledger.accepted) == 2)
            await ann.say(room, "and needed by the other")
            async with other.at_work(ledger):
                await until(lambda: len(ledger.accepted) == 3)
            assert ledger.texts[-1] == "and needed by the other"
            assert UNREADABLE not in ledger.texts

    run(work())


def test_a_new_device_makes_up_for_what_no_device_has_read(
    houses: list[MatrixHouse], synapse: Synapse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PAGE", 20)

    async def work() -> None:
        ledger, (one, other) = Ledger(), houses
        async with Person(synapse.url, synapse.register("ann")) as ann:
            room = await ann.create_room()
            await ann.say(room, "before the invitation")
            async with one.at_work(ledger):
                await ann.invite(room, one.user.user_id)
                await ann.wait_for_member(room, one.user.user_id)
                await ann.say(room, "read by one")
                await until(lambda: ledger.texts == ["read by one"])
            quiet = await ann.create_room()
            await ann.say(quiet, "before we came there")
            async with Person(synapse.url, one.user) as we:
                await ann.invite(quiet, one.user.user_id)
                await we.join(quiet)
            for number in range(50):
                await ann.say(room, f"missed {number}")
            async with other.at_work(ledger):
                missed = [f"missed {number}" for number in range(50)]
                assert ledger.texts == ["read by one", *missed]
                await ann.say(room, "now")
                await until(lambda: ledger.texts[-1] == "now")
            assert ledger.texts == ["read by one", *missed, "now"]

    run(work())
