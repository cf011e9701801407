"""A platform that is down does not disturb the others, and everybody can see that it is down."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matrix_house
import pytest
from bot_api.client import World
from fork_server import ForkServer
from forked_house import ForkedHouse
from gateway_process import SUPPORT
from idle_gateways import Ask, idle_megabytes
from matrix_messages import Message
from matrix_person import Person
from synapse_server import Synapse
from waiting import wait_until

pytestmark = pytest.mark.process

ALICE = 4711
MOST_MEGABYTES = 40.0
"""That an adapter with nothing to do may cost over the gateway alone."""


class Home:
    def __init__(self, folder: Path, world: World, synapse: Synapse, ask: Ask, fork_server: ForkServer) -> None:
        self.world, self.synapse = world, synapse
        self.alice, self.bot = synapse.register("alice"), synapse.register("agent")
        platforms = {
            "telegram": {"token": world.token, "api_url": world.url, "poll_seconds": 1},
            "matrix": {"homeserver": synapse.url, "user": self.bot.user_id, "password": self.bot.password},
        }
        owners = [f"telegram:{ALICE}", f"matrix:{self.alice.user_id}"]
        self.house = ForkedHouse(fork_server, folder, platforms, owners=owners, access={}, gateway={"port": 0})
        self._ask = ask

    def status(self, *how: str) -> str:
        return self._ask("status", *how, SEGUE_HOME=str(self.house.home)).stdout

    def until(self, name: str, *states: str, failures: int = 0) -> dict[str, Any]:
        """The link of a platform, as soon as it is in one of these states."""
        links: list[dict[str, Any]] = []

        def is_so() -> bool:
            time.sleep(0.1)  # each look is a process, which would keep the gateway from its work
            found = json.loads(self.status("--json"))["gateway"]["platforms"]
            links[:] = [one for one in found if one["platform"] == name]
            return any(one["state"] in states and one["failures"] >= failures for one in links)

        wait_until(is_so, f"{name} that is {' or '.join(states)}")
        return links[0]


@pytest.fixture
def gateway_home(
    tmp_path: Path, bot_world: World, synapse: Synapse, run: Ask, fork_server: ForkServer
) -> Iterator[Home]:
    bot_world.user(ALICE, first_name="Alice")
    found = Home(tmp_path, bot_world, synapse, run, fork_server)
    yield found
    found.house.close()


def _says(text: str) -> Callable[[list[Message]], bool]:
    return lambda heard: any(text in one.body for one in heard)


def _is_left_alone(told: str) -> bool:
    said = ("telegram failed", "in a row and is left alone for a while", "connected: api_server, batch, cron, matrix")
    return all(part in told for part in said)


async def talk(home: Home) -> None:
    """Matrix answers, again and again."""
    async with Person(home.synapse.url, home.alice) as alice:
        room = await alice.create_room(home.bot.user_id, is_direct=True)
        await alice.wait_for_member(room, home.bot.user_id)
        for text in ("one", "two", "three"):
            await alice.say(room, text)
            await alice.wait_for(room, _says(f"You said: {text}"))


def test_one_is_down_and_the_other_answers(gateway_home: Home) -> None:
    home, world = gateway_home, gateway_home.world
    home.house.begin(launcher=SUPPORT / "matrix_launcher.py", SEGUE_TEST_PAUSE="0.1")
    home.until("telegram", "connected")
    home.until("matrix", "connected")
    world.down()
    trouble = home.until("telegram", "failed", "resting", failures=1)
    assert trouble["trouble"]
    matrix_house.run(talk(home))
    told = home.status()
    assert "telegram" in told.partition("Gateway")[2]
    home.until("telegram", "resting", failures=3)
    wait_until(lambda: _is_left_alone(home.status()), "telegram that is left alone while the others are connected")
    world.up()
    world.say(ALICE, ALICE, "Are you back?")
    world.wait(lambda: "You said: Are you back?" in world.texts(ALICE))
    home.until("telegram", "connected")


def test_an_adapter_with_nothing_to_do_costs_little(
    tmp_path: Path, bot_world: World, synapse: Synapse, run: Ask
) -> None:
    bot = synapse.register("agent")
    telegram = {"token": bot_world.token, "api_url": bot_world.url}
    matrix = {"homeserver": synapse.url, "user": bot.user_id, "password": bot.password}
    kinds = {"alone": {}, "telegram": {"telegram": telegram}, "matrix": {"matrix": matrix}}
    needed = idle_megabytes(tmp_path, run, kinds)
    alone = needed.pop("alone")
    costs = {name: one - alone for name, one in needed.items()}
    print(f"A gateway alone has {alone:.1f} MB; over it: {costs}")
    assert max(costs.values()) < MOST_MEGABYTES, costs
