"""The whole gateway on Telegram: people are paired, answered, and read answers while they are written."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from bot_api.client import World, message_id, pauses
from bot_api.texts import faults
from serving_house import Served, use_obedient_model, write_settings
from waiting import until

from segue.app import crew
from segue.core.events import Reply, Text
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.gateway import connecting
from segue.platforms.telegram.outbound import rendered
from segue.ports.model import Request
from segue.storage.attachments import AttachmentFolder

ALICE, STRANGER = 4711, 4712
GROUP = -1_000_000_000_123
ANSWER = """# A plan

First **bold words and `code` in them**, then *a few others*, and [a link](https://example.org/a_b).

```python
def add(a: int, b: int) -> int:
    return a + b  # 😀 not **bold**
```

- one with `code`
- two
  - and **half of it** inside

> A quotation with **bold** words
> over two lines.

| name | price |
|------|-------|
| tea  | 2     |

Done, and 2*3*4 is no emphasis.
"""
OPEN = {"dm": "open", "groups": ["*"], "mention": True}


class Planner:
    """Says the answer bit by bit, and goes on when it was read so far; `short` is answered at once."""

    name, provider = "planner", "test"
    was_read: Callable[[int], bool] = staticmethod(lambda _versions: True)
    """Whether people have seen so many versions of the answer."""

    def __init__(self, *_: object, **__: object) -> None: ...

    async def stream(self, request: Request) -> AsyncGenerator[Text | Reply]:
        said = str(request.conversation[-1]["content"])
        if "Give a conversation a title" in request.system:
            yield Reply("A talk")
        elif "plan" not in said:
            yield Reply(f"You said: {said}")
        else:
            for number, at in enumerate(range(0, len(ANSWER), 12)):
                yield Text(ANSWER[at : at + 12])
                await asyncio.sleep(0.02)
                if number % 10 == 9:
                    await until(lambda versions=number // 10 + 1: self.was_read(versions))  # type: ignore[misc]
            yield Reply(ANSWER)

    async def aclose(self) -> None: ...


@pytest.fixture
def served(bot_world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Start":
    use_obedient_model(monkeypatch)
    monkeypatch.setattr(crew, "ProviderModel", Planner)
    for pause in ("FIRST_PAUSE", "KEPT_SECONDS"):
        monkeypatch.setattr(connecting, pause, 0.05)
    bot_world.chat(ALICE, type="private", first_name="Alice")
    bot_world.chat(GROUP, type="supergroup", title="Tea")

    def start(work: Callable[[Served], Awaitable[None]], **more: Any) -> None:
        own = {"token": bot_world.token, "api_url": bot_world.url, "poll_seconds": 5}
        told = {"platforms": {"telegram": own}, "access": {"telegram": OPEN}, "owners": [f"telegram:{ALICE}"]}
        home = write_settings(tmp_path / "home", **{**told, **more})
        house = Served(home, {}, has_programs=True)
        try:
            house.run(lambda: work(house))
        finally:
            house.close()

    return start


Start = Callable[..., None]


def stored(house: Served) -> list[str]:
    def said(tx: Any) -> list[str]:
        (session,) = tx.sessions.in_order(["telegram"])
        return [str(one.content) for one in tx.messages.of(session.id) if one.role == "assistant"]

    found: list[str] = house.store.read(OWNER, said)
    return found


@pytest.mark.parametrize("is_flooded", [False, True])
def test_an_answer_is_read_while_it_is_written(
    bot_world: World, served: Start, monkeypatch: pytest.MonkeyPatch, is_flooded: bool
) -> None:
    """At most once in an interval, with all that is open closed; also where Telegram wants to be left alone longer."""
    interval = 0.2
    bot_world.limit(interval - 0.05)
    if is_flooded:
        bot_world.trouble("flood", "editMessageText", retry_after=1)

    def was_read(versions: int) -> bool:
        return any(len(kept.versions) >= versions for kept in bot_world.messages(ALICE))

    monkeypatch.setattr(Planner, "was_read", staticmethod(was_read))

    async def work(house: Served) -> None:
        bot_world.say(ALICE, ALICE, "a plan, please")
        await bot_world.until(lambda: any("no emphasis" in text for text in bot_world.texts(ALICE)))
        await house.quiet()
        (said,) = stored(house)
        (kept,) = bot_world.messages(ALICE)
        last = rendered(said.strip())
        assert said.strip() == ANSWER.strip()
        assert (kept.text, kept.entities) == (last.text, _as_telegram_tells(last.entities))
        assert len(kept.versions) >= 4
        assert min(pauses([version.at for version in kept.versions])) >= interval - 0.05
        for version in kept.versions:
            assert list(faults(version.text, version.entities)) == []
        assert kept.reply_to is not None

    served(work, streaming={"edit_interval": interval, "buffer_threshold": 20})
    assert [call.status for call in bot_world.calls("sendMessage", "editMessageText") if call.status != 200] == []
    refused = bot_world.untaken("editMessageText")
    assert len(refused) == is_flooded
    for one in refused:
        after = [call.at for call in bot_world.calls("sendMessage", "editMessageText") if call.at > one.at]
        assert min(after) - one.at >= 1
    assert len(bot_world.calls("sendChatAction")) >= 1


def _as_telegram_tells(entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(entities, key=lambda one: (one["offset"], -one["length"], one["type"]))


def test_a_stranger_is_paired_and_then_answered(bot_world: World, served: Start) -> None:
    async def work(house: Served) -> None:
        bot_world.say(STRANGER, STRANGER, "/start")
        await bot_world.until(lambda: bool(bot_world.texts(STRANGER)))
        assert re.search(r"\b[A-Z2-9]{8}\b", bot_world.texts(STRANGER)[0])
        bot_world.say(ALICE, ALICE, "/start")
        await bot_world.until(lambda: bool(bot_world.texts(ALICE)))
        assert "/status" in bot_world.texts(ALICE)[0]

    served(work, access={"telegram": {"dm": "pairing"}})


def test_in_a_group_it_answers_whoever_addresses_it(bot_world: World, served: Start) -> None:
    mention = [{"type": "mention", "offset": 0, "length": 10}]
    command = [{"type": "bot_command", "offset": 0, "length": 17}]

    async def work(house: Served) -> None:
        bot_world.say(GROUP, ALICE, "just talking")
        said = message_id(bot_world.say(GROUP, ALICE, "@segue_bot hello", entities=mention))
        await bot_world.until(lambda: len(bot_world.texts(GROUP)) == 1)
        (answer,) = bot_world.messages(GROUP)
        assert answer.reply_to == said
        assert "hello" in answer.text
        bot_world.say(GROUP, ALICE, "and?", reply_to=answer.message_id)
        await bot_world.until(lambda: len(bot_world.texts(GROUP)) == 2)
        bot_world.say(GROUP, ALICE, "/status@segue_bot", entities=command)
        await bot_world.until(lambda: len(bot_world.texts(GROUP)) == 3)
        assert "planner" in bot_world.texts(GROUP)[2] or "model" in bot_world.texts(GROUP)[2].lower()
        await house.quiet()

    served(work)
    assert not any("just talking" in text for text in bot_world.texts(GROUP))


def test_each_topic_is_a_conversation_of_its_own(bot_world: World, served: Start) -> None:
    """And so is General, and a topic of a direct chat; who answers whom outside of forums makes none."""
    bot_world.chat(GROUP, is_forum=True, threads=[7, 8])
    other = GROUP - 1
    bot_world.chat(other, type="supergroup", title="Plain")

    async def work(house: Served) -> None:
        for thread in (7, 8, None):
            bot_world.say(GROUP, ALICE, f"in {thread}", thread=thread)
        for thread in (9, None):
            bot_world.say(ALICE, ALICE, f"with {thread}", thread=thread)
        bot_world.say(other, ALICE, "plain", thread=5, is_topic=False)
        await bot_world.until(lambda: len(bot_world.texts()) == 6)
        await house.quiet()
        lanes = house.store.read(OWNER, lambda tx: tx.lanes.listed())
        assert sorted(lane.key for lane in lanes) == sorted(
            [
                f"agent:main:telegram:group:{GROUP}:topic:7",
                f"agent:main:telegram:group:{GROUP}:topic:8",
                f"agent:main:telegram:group:{GROUP}:topic:1",
                f"agent:main:telegram:dm:{ALICE}:topic:9",
                f"agent:main:telegram:dm:{ALICE}",
                f"agent:main:telegram:group:{other}",
            ]
        )

    served(work, access={"telegram": {**OPEN, "mention": False}}, session={"group_sessions_per_user": False})
    threads = [(kept.chat_id, kept.thread) for kept in bot_world.messages()]
    assert sorted(threads, key=str) == sorted(
        [(GROUP, 7), (GROUP, 8), (GROUP, None), (ALICE, 9), (ALICE, None), (other, None)], key=str
    )


def test_a_file_is_kept_and_the_model_is_told_of_it(bot_world: World, served: Start, tmp_path: Path) -> None:
    async def work(house: Served) -> None:
        bot_world.say(ALICE, ALICE, "short", media="document", content=b"%PDF-1", file_name="a.pdf")
        await bot_world.until(lambda: bool(bot_world.texts(ALICE)))
        await house.quiet()

    served(work)
    (text,) = bot_world.texts(ALICE)
    assert re.search(r"\[file “a\.pdf”, \S+, 6 bytes; attachments/", text)
    folder = AttachmentFolder(tmp_path / "home" / "attachments")
    assert [path.read_bytes() for path in folder._folder.glob("??/*")] == [b"%PDF-1"]


def test_the_token_is_nowhere_but_in_the_configuration(bot_world: World, served: Start, tmp_path: Path) -> None:
    async def work(house: Served) -> None:
        bot_world.trouble("html", times=3)
        bot_world.say(ALICE, ALICE, "short")
        await bot_world.until(lambda: bool(bot_world.texts(ALICE)))
        await house.quiet()

    served(work)
    token = bot_world.token.encode()
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file() and path.name != "config.yaml"]
    assert [path for path in files if token in path.read_bytes()] == []
    assert json.loads((tmp_path / "home" / "config.yaml").read_text())["platforms"]["telegram"]["token"]
