"""A platform that is down does not disturb the others, and everybody can see that it is down."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bot_api.client import World
from gateway_process import House
from idle_gateways import idle_megabytes
from matrix_messages import Message
from matrix_person import Person
from synapse_server import Synapse

pytestmark = pytest.mark.process

ALICE = 4711
MOST_MEGABYTES = 40.0
"""That an adapter with nothing to do may cost over the gateway alone."""


class Home:
    def __init__(self, folder: Path, world: World, synapse: Synapse) -> None:
        self.world, self.synapse = world, synapse
        self.alice, self.bot = synapse.register("alice"), synapse.register("agent")
        platforms = {
            "telegram": {"token": world.token, "api_url": world.url, "poll_seconds": 1},
            "matrix": {"homeserver": synapse.url, "user": self.bot.user_id, "password": self.bot.password},
        }
        owners = [f"telegram:{ALICE}", f"matrix:{self.alice.user_id}"]
        self.house = House(folder, platforms, owners=owners, access={}, gateway={"port": 0})

    def link(self, name: str) -> dict[str, Any]:
        found = json.loads(self.house.ask("status", "--json").stdout)["gateway"]["platforms"]
        return next((one for one in found if one["platform"] == name), {"state": "nowhere", "failures": 0})

    def until(self, name: str, *states: str, failures: int = 0) -> dict[str, Any]:
        end = time.monotonic() + 60
        while (link := self.link(name))["state"] not in states or link["failures"] < failures:
            assert time.monotonic() < end, f"{link}\n{self.house.log.read_text()}"
            time.sleep(0.2)
        return link


@pytest.fixture
def home(tmp_path: Path, bot_world: World, synapse: Synapse) -> Iterator[Home]:
    bot_world.user(ALICE, first_name="Alice")
    found = Home(tmp_path, bot_world, synapse)
    yield found
    found.house.close()


def _says(text: str) -> Callable[[list[Message]], bool]:
    return lambda heard: any(text in one.body for one in heard)


async def talk(home: Home, seconds: float) -> list[float]:
    """How long Matrix takes to answer, again and again."""
    waited: list[float] = []
    async with Person(home.synapse.url, home.alice) as alice:
        room = await alice.create_room(home.bot.user_id, is_direct=True)
        await alice.wait_for_member(room, home.bot.user_id, 30)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began, text = time.monotonic(), f"message {len(waited)}"
            await alice.say(room, text)
            await alice.wait_for(room, _says(text), 20)
            waited.append(time.monotonic() - began)
    return waited


def test_one_is_down_and_the_other_answers(home: Home) -> None:
    world = home.world
    home.house.begin()
    home.until("telegram", "connected")
    home.until("matrix", "connected")
    world.down()
    trouble = home.until("telegram", "failed", "resting", failures=1)
    assert trouble["trouble"]
    waited = asyncio.run(asyncio.wait_for(talk(home, 8), 100))
    assert len(waited) >= 3, f"Matrix was slow while Telegram was down: {waited}"
    told = home.house.ask("status").stdout
    assert "telegram" in told.partition("Gateway")[2]
    home.until("telegram", "resting", failures=3)
    assert "telegram failed" in (told := home.house.ask("status").stdout), told
    assert "in a row and is left alone for a while" in told
    assert "connected: api_server, batch, cron, matrix" in told
    world.up()
    world.say(ALICE, ALICE, "Are you back?")
    world.wait(lambda: "You said: Are you back?" in world.texts(ALICE), 90)
    home.until("telegram", "connected")


def test_an_adapter_with_nothing_to_do_costs_little(tmp_path: Path, bot_world: World, synapse: Synapse) -> None:
    bot = synapse.register("agent")
    alone = idle_megabytes(tmp_path / "alone", {})
    telegram = {"telegram": {"token": bot_world.token, "api_url": bot_world.url}}
    matrix = {"matrix": {"homeserver": synapse.url, "user": bot.user_id, "password": bot.password}}
    costs = {name: idle_megabytes(tmp_path / name, one) - alone for one in (telegram, matrix) for name in one}
    print(f"A gateway alone has {alone:.1f} MB; over it: {costs}")
    assert max(costs.values()) < MOST_MEGABYTES, costs
