"""What is said in private on Telegram stays there; in a group each has a lane, and a topic has one for all."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bot_api.client import World
from obedient_model import Obedient
from serving_house import Served, use_obedient_model, write_settings

from segue.core.scope import OWNER_AT_CONSOLE as OWNER

ALICE, BOB, GROUP, FORUM, TOPIC = 11, 12, -1001, -1002, 7
SECRET = "xylophone"
EVERYBODY = {"dm": "open", "groups": ["*"], "mention": True}


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bot_world: World) -> Iterator[Served]:
    use_obedient_model(monkeypatch)
    bot_world.user(ALICE, first_name="Alice")
    bot_world.user(BOB, first_name="Bob")
    bot_world.chat(GROUP, type="supergroup", title="Friends")
    bot_world.chat(FORUM, type="supergroup", title="Workshop", is_forum=True, threads=[TOPIC])
    telegram = {"token": bot_world.token, "api_url": bot_world.url, "poll_seconds": 1}
    home = write_settings(
        tmp_path / "home",
        platforms={"telegram": telegram},
        access={"telegram": EVERYBODY},
        streaming={"enabled": False},
    )
    running = Served(home, {}, has_programs=True)
    yield running
    running.close()


class Friends:
    """Alice and Bob, who wait for an answer before they go on."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def say(self, chat: int, user: int, text: str, thread: int | None = None) -> str:
        """Say something to the bot; what it answers."""
        before = len(self._world.messages(chat))
        name = f"@{self._world.bot['username']}"
        if text.startswith("/"):
            entities = [{"type": "bot_command", "offset": 0, "length": len(text.split()[0])}]
        else:
            text, entities = f"{name} {text}", [{"type": "mention", "offset": 0, "length": len(name)}]
        is_topic = True if thread else None
        await asyncio.to_thread(self._world.say, chat, user, text, entities=entities, thread=thread, is_topic=is_topic)
        await self._world.until(lambda: len(self._world.messages(chat)) > before)
        return self._world.messages(chat)[-1].text


def lanes(served: Served) -> set[str]:
    return {lane.key for lane in served.store.read(OWNER, lambda tx: tx.lanes.listed())}


def test_two_people_in_a_group_have_two_lanes_and_in_a_topic_one(served: Served, bot_world: World) -> None:
    friends = Friends(bot_world)

    async def work() -> None:
        for user in (ALICE, BOB):
            await friends.say(GROUP, user, "hello")
            await friends.say(FORUM, user, "hello", TOPIC)
        await friends.say(FORUM, ALICE, "in General")

    served.run(work)
    assert lanes(served) == {
        f"agent:main:telegram:group:{GROUP}:{ALICE}",
        f"agent:main:telegram:group:{GROUP}:{BOB}",
        f"agent:main:telegram:group:{FORUM}:topic:{TOPIC}",
        f"agent:main:telegram:group:{FORUM}:topic:1",
    }
    both = next(one for one in Obedient.asked if "[Bob]" in json.dumps(one.conversation))
    assert "Several people speak in this conversation." in both.system
    said = [re.sub(r"@\S+ ", "", str(one["content"])) for one in both.conversation if one["role"] == "user"]
    assert said == ["[Alice] hello", "[Bob] hello"]
    alone = [one.system for one in Obedient.asked if "thread" not in one.system]
    assert alone
    assert not any("Several people" in one for one in alone)


def test_a_direct_message_shows_nowhere_else(served: Served, bot_world: World) -> None:
    friends, answers = Friends(bot_world), dict[str, str]()
    search = f'use session_search {{"query": "{SECRET}"}}'

    async def work() -> None:
        await friends.say(ALICE, ALICE, f"My secret word is {SECRET}.")
        await friends.say(ALICE, ALICE, "/title Secrets")
        for name, chat, user, thread in (
            ("group", GROUP, ALICE, None),
            ("topic", FORUM, ALICE, TOPIC),
            ("bob", BOB, BOB, None),
        ):
            answers[f"tool in {name}"] = await friends.say(chat, user, search, thread)
            answers[f"search in {name}"] = await friends.say(chat, user, f"/search {SECRET}", thread)
            answers[f"sessions in {name}"] = await friends.say(chat, user, "/sessions", thread)
            answers[f"resume in {name}"] = await friends.say(chat, user, "/resume Secrets", thread)
        await friends.say(ALICE, ALICE, "/new")
        answers["tool in private"] = await friends.say(ALICE, ALICE, search)

    served.run(work)
    assert "My secret word" in answers.pop("tool in private")
    for where, answer in answers.items():
        assert "My secret word" not in answer, where
        assert "Secrets" not in answer.replace("'Secrets'", "").replace("“Secrets”", ""), where
    for chat in (GROUP, FORUM, BOB):
        assert not any("secret word" in text for text in bot_world.texts(chat))
    for request in Obedient.asked:
        if "## Where you are" in request.system and 'direct chat with "Alice"' not in request.system:
            assert "My secret word" not in json.dumps(request.conversation)
