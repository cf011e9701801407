"""A real gateway on a real homeserver: what is answered is answered once, whenever the gateway is killed."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from fork_server import ForkServer
from forked_house import ForkedHouse
from gateway_process import SUPPORT, House, kill
from matrix_house import run
from matrix_person import Person
from matrix_private_person import PrivatePerson
from synapse_server import Synapse, User
from waiting import DEADLINE
from zygote import Zygote

LAUNCHER = SUPPORT / "matrix_launcher.py"
LONG = "\n\n".join(f"Paragraph {number}: " + "words and more words " * 20 for number in range(70)) + "\n\nThe end."
pytestmark = pytest.mark.process


@pytest.fixture
def ours(synapse: Synapse) -> User:
    return synapse.register("segue")


@pytest.fixture
def house(synapse: Synapse, ours: User, tmp_path: Path, fork_server: ForkServer) -> Iterator[House]:
    matrix = {"homeserver": synapse.url, "user": ours.user_id, "password": ours.password}
    settings = {"access": {"matrix": {"dm": "open"}}, "gateway": {"port": 0}}
    made = ForkedHouse(fork_server, tmp_path / "house", {"matrix": matrix}, **settings)
    yield made
    made.close()


def somebody(synapse: Synapse, tmp_path: Path, *, is_encrypted: bool) -> Person:
    user = synapse.register("ann")
    return PrivatePerson(synapse.url, user, tmp_path / "ann") if is_encrypted else Person(synapse.url, user)


@pytest.mark.parametrize(
    ("is_encrypted", "has_key"),
    [(False, True), (True, True), (False, False)],
    ids=["plain", "encrypted", "without the guard"],
)
def test_a_long_answer_arrives_once_though_the_gateway_is_killed_in_the_middle(
    house: House, synapse: Synapse, ours: User, tmp_path: Path, is_encrypted: bool, has_key: bool
) -> None:
    forgetful = {} if has_key else {"SEGUE_TEST_FORGETS_KEYS": "1"}

    async def work() -> None:
        async with somebody(synapse, tmp_path, is_encrypted=is_encrypted) as ann:
            gateway = house.begin(launcher=LAUNCHER, SEGUE_TEST_DIES_AT="after_sent:2", **forgetful)
            room = await ann.create_room(ours.user_id, is_direct=True, is_encrypted=is_encrypted)
            await ann.wait_for_member(room, ours.user_id)
            await ann.say(room, LONG)
            assert await asyncio.to_thread(gateway.wait, DEADLINE) == -signal.SIGKILL
            assert len(await ann.heard(room)) == 2
            again = house.begin(launcher=LAUNCHER, **forgetful)
            heard = await ann.wait_for(room, lambda said: said[-1].body.endswith("The end."))
            kill(again)
            bodies = [message.body for message in heard]
            assert bodies[0].startswith("You said: Paragraph 0")
            is_doubled = len(bodies) > len(set(bodies))
            assert is_doubled is not has_key, [body[:40] for body in bodies]
            if has_key:
                assert "\n\n".join(bodies).split() == f"You said: {LONG}".split()

    run(work())


def test_what_is_said_while_the_gateway_is_down_is_answered_and_commands_are_heard(
    house: House, synapse: Synapse, ours: User, tmp_path: Path, zygote: Zygote
) -> None:
    async def work() -> None:
        async with somebody(synapse, tmp_path, is_encrypted=False) as ann:
            first = house.begin(launcher=LAUNCHER)
            room = await ann.create_room(ours.user_id, is_direct=True)
            await ann.wait_for_member(room, ours.user_id)
            await ann.say(room, "hello")
            await ann.wait_for(room, lambda said: [one.body for one in said] == ["You said: hello"])
            kill(first)
            await ann.say(room, "are you there?")
            second = house.begin(launcher=LAUNCHER)
            await ann.wait_for(room, lambda said: said[-1].body == "You said: are you there?")
            await ann.say(room, f"{ours.user_id}: /title A day in the office")
            await ann.wait_for(room, lambda said: "A day in the office" in said[-1].body)
            told = zygote.run(["status"], None, {**os.environ, "SEGUE_HOME": str(house.home)})
            assert "matrix" in told.stdout
            kill(second)
            assert ours.password not in house.log.read_text()

    run(work())
