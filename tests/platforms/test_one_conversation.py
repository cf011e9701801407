"""One conversation: begun in a terminal, handed to Telegram, carried on in a Matrix room, ended by the night, resumed.

Everything is the product's own, in processes of its own; only the model is scripted, and the clock can be put forward.
"""

import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from bot_api.client import World
from gateway_process import SUPPORT, House
from matrix_house import run
from matrix_person import Person
from synapse_server import Synapse
from terminal import Terminal

from segue import SessionDB

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]

ALICE = 4711
ZONE = ZoneInfo("Europe/Lisbon")
LATE = SUPPORT / "late_launcher.py"


class Home:
    """A house with Telegram and Matrix, in which Alice lives."""

    def __init__(self, folder: Path, world: World, synapse: Synapse) -> None:
        self.world, self.clock = world, folder / "clock"
        self.alice, bot = synapse.register("alice"), synapse.register("agent")
        self.bot = bot.user_id
        self.url = synapse.url
        people = [f"telegram:{ALICE}", f"matrix:{self.alice.user_id}"]
        platforms = {
            "telegram": {"token": world.token, "api_url": world.url, "poll_seconds": 1, "home_channel": str(ALICE)},
            "matrix": {"homeserver": synapse.url, "user": bot.user_id, "password": bot.password},
        }
        session = {
            "identity_links": {"alice": people},
            "reset": {"mode": "daily", "at_hour": 4, "timezone": ZONE.key},
        }
        streaming = {"enabled": False}
        self.house = House(
            folder, platforms, owners=people, session=session, streaming=streaming, gateway={"port": 0}, access={}
        )
        self.later = {"SEGUE_TEST_LATER": str(self.clock)}

    def begin(self) -> None:
        self.house.begin("gateway", "run", launcher=LATE, **self.later)

    def sleep_until_four(self) -> None:
        """It is a minute past four in the morning, of the next day."""
        now = datetime.now(ZONE)
        four = (now + timedelta(days=1)).replace(hour=4, minute=1, second=0, microsecond=0)
        self.clock.write_text(str(four.timestamp() - time.time()))


@pytest.fixture
def at_home(tmp_path: Path, bot_world: World, synapse: Synapse) -> Iterator[Home]:
    bot_world.user(ALICE, first_name="Alice")
    bot_world.chat(ALICE, type="private", first_name="Alice")
    home = Home(tmp_path, bot_world, synapse)
    yield home
    home.house.close()


def begin_in_a_terminal(home: Home) -> None:
    terminal = Terminal(home.house.folder, *home.house.variables, *(f"{k}={v}" for k, v in home.later.items()))
    try:
        terminal.send(shlex.join([sys.executable, str(LATE)]))
        terminal.until("new conversation")
        terminal.send("Let us plan a week in Lisbon.")
        terminal.until("You said: Let us plan a week in Lisbon.")
        terminal.send("/title A week in Lisbon")
        terminal.until("A week in Lisbon")
        terminal.send("/handoff telegram")
        terminal.until("telegram")
        terminal.send("/quit")
        terminal.until("ready>")
    finally:
        terminal.close()


async def on_matrix(home: Home) -> None:
    async with Person(home.url, home.alice) as alice:
        room = await alice.create_room(home.bot, is_direct=True)
        await alice.wait_for_member(room, home.bot)

        async def say(text: str, wanted: str) -> list[str]:
            await alice.say(room, text)
            found = await alice.wait_for(room, lambda heard: any(re.search(wanted, one.body) for one in heard))
            return [one.body for one in found]

        await say("And which week?", "You said: And which week\\?")
        home.sleep_until_four()
        heard = await say("Good morning!", "You said: Good morning!")
        (notice,) = [body for body in heard if "A new conversation begins" in body]
        assert re.search(r"a new day begins\. The last one, “A week in Lisbon”, is kept\.\n/resume \S+$", notice)
        await say("/resume A week in Lisbon", "A week in Lisbon")
        await say("Where were we?", "You said: Where were we\\?")


def test_one_conversation_on_three_channels_and_two_days(at_home: Home) -> None:
    world = at_home.world
    begin_in_a_terminal(at_home)
    at_home.begin()
    world.wait(lambda: any("goes on here" in text for text in world.texts(ALICE)))
    world.say(ALICE, ALICE, "And where do we stay?")
    world.wait(lambda: "You said: And where do we stay?" in world.texts(ALICE))
    run(on_matrix(at_home))
    with SessionDB(at_home.house.home / "state.db", read_only=True) as db:
        (first,) = [row for row in db.list_sessions_rich() if row["title"] == "A week in Lisbon"]
        said = [row["content"] for row in db.get_messages(first["id"]) if row["role"] == "user"]
        others = [row for row in db.list_sessions_rich() if row["id"] != first["id"]]
        assert said == [
            "Let us plan a week in Lisbon.",
            "And where do we stay?",
            "And which week?",
            "Where were we?",
        ]
        assert len(others) == 1
        assert [row["content"] for row in db.get_messages(others[0]["id"]) if row["role"] == "user"] == [
            "Good morning!"
        ]
        begun = db.get_session(others[0]["id"])
        assert begun is not None
        assert (begun["start_reason"], begun["reset_from"]) == ("reset", first["id"])
