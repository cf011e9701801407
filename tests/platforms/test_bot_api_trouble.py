"""What goes wrong on the way to Telegram goes wrong as a test says it, and what a bot should not do is noticed."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.request import Request, urlopen

import pytest
from bot_api.client import World
from bot_api.texts import faults, tidied
from bot_api.troubles import Kind
from ptb_bot import bot_of, refused, run
from telegram import Bot, MessageEntity
from telegram.error import NetworkError, RetryAfter, TelegramError, TimedOut
from waiting import DEADLINE


@pytest.fixture(autouse=True)
def _spans_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "true")


def is_failure(error: TelegramError) -> bool:
    return isinstance(error, NetworkError) and not isinstance(error, TimedOut)


def is_flood(error: TelegramError) -> bool:
    return isinstance(error, RetryAfter) and error.retry_after == timedelta(seconds=7)


def is_nonsense(error: TelegramError) -> bool:
    return "Invalid server response" in str(error)


TROUBLES: list[tuple[Kind, Callable[[TelegramError], bool]]] = [
    ("flood", is_flood),
    ("html", is_failure),
    ("error", is_failure),
    ("drop", is_failure),
    ("cut", is_failure),
    ("garbage", is_nonsense),
]


async def trouble_of(bot: Bot, text: str) -> TelegramError:
    with pytest.raises(TelegramError) as met:
        await bot.send_message(5, text)
    return met.value


@pytest.mark.parametrize(("kind", "is_so"), TROUBLES, ids=[kind for kind, _ in TROUBLES])
@pytest.mark.parametrize("taken", [False, True], ids=["before", "after"])
def test_a_call_meets_its_trouble_before_or_after_it_is_taken(
    bot_world: World, kind: Kind, is_so: Callable[[TelegramError], bool], taken: bool
) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            bot_world.chat(5)
            bot_world.trouble(kind, "sendMessage", times=2, taken=taken, retry_after=7)
            await bot.get_me()
            for text in ("one", "two"):
                assert is_so(await trouble_of(bot, text))
            await bot.send_message(5, "three")

    run(work())
    assert bot_world.texts(5) == (["one", "two", "three"] if taken else ["three"])
    assert [call.params["text"] for call in bot_world.untaken()] == ([] if taken else ["one", "two"])
    assert len(bot_world.calls("sendMessage")) == (3 if taken else 1)


@pytest.mark.parametrize("taken", [False, True], ids=["before", "after"])
def test_a_silence_lasts_while_others_are_answered(bot_world: World, taken: bool) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            bot_world.chat(5)
            bot_world.trouble("hang", "sendMessage", taken=taken, seconds=2 * DEADLINE)
            waiting = asyncio.create_task(bot.send_message(5, "one"))
            await bot_world.until(lambda: bool(bot_world.texts(5) if taken else bot_world.untaken()))
            await bot.get_me()
            assert not waiting.done()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await bot.send_message(5, "two")

    run(work())
    assert bot_world.texts(5) == (["one", "two"] if taken else ["two"])
    assert [call.params["text"] for call in bot_world.untaken()] == ([] if taken else ["one"])


def test_trouble_lasts_until_it_is_calm(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            bot_world.chat(5)
            bot_world.trouble("error", times=None, status=503)
            for _ in range(5):
                await trouble_of(bot, "lost")
            bot_world.calm()
            await bot.send_message(5, "found")

    run(work())
    assert bot_world.texts() == ["found"]


def test_a_silence_ends_in_a_broken_connection(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            bot_world.chat(5)
            bot_world.trouble("hang", "sendMessage", seconds=0.05)
            assert is_failure(await trouble_of(bot, "lost"))

    run(work())


def test_a_file_may_not_come(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            sent = bot_world.say(5, media="document", content=b"at last")
            file = await bot.get_file(sent["message"]["document"]["file_id"])
            bot_world.trouble("html", "download")
            with pytest.raises(NetworkError):
                await file.download_as_bytearray()
            assert await file.download_as_bytearray() == b"at last"

    run(work())
    assert len(bot_world.calls("download")) == 2


def test_what_is_down_comes_up_where_it_was(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            bot_world.chat(5)
            waiting = asyncio.create_task(bot.get_updates(timeout=30))
            await bot_world.until(lambda: bot_world.state.is_polled)
            bot_world.down()
            with pytest.raises(NetworkError):
                await waiting
            with pytest.raises(NetworkError, match="ConnectError"):
                await bot.send_message(5, "nobody is there")
            bot_world.say(5, text="while you were away")
            bot_world.up()
            assert len(await bot.get_updates()) == 1
            await bot.send_message(5, "here again")

    run(work())
    assert bot_world.texts() == ["here again"]


def post(world: World, method: str, **params: Any) -> None:
    asked = Request(f"{world.base_url}{world.token}/{method}", json.dumps(params).encode())
    asked.add_header("Content-Type", "application/json")
    try:
        urlopen(asked, timeout=DEADLINE).close()
    except OSError as error:
        error.close()  # type: ignore[attr-defined]


COMPLAINTS: list[tuple[str, dict[str, Any], str]] = [
    ("sendMessage", {"chat_id": 5}, "sendMessage: text: Field required"),
    ("sendMessage", {"chat_id": 5, "text": "x", "message_thread_id": "first"}, "valid integer"),
    ("sendMessage", {"chat_id": 5, "text": "x", "colour": "red"}, "nobody knows colour"),
    ("sendMessage", {"chat_id": 5, "text": "x", "entities": [{"type": "bold", "offset": 0}]}, "length: Field required"),
    ("sendMessage", {"chat_id": 5, "text": "*x*", "parse_mode": "MarkdownV2"}, "parse_mode"),
    ("sendMessage", {"chat_id": 5, "text": "half \ud83d"}, "surrogates not allowed"),
    ("deleteWebhook", {"drop_pending_updates": True}, "drops 1 pending updates"),
    ("setWebhook", {"url": "http://127.0.0.1:9/", "drop_pending_updates": True}, "drops 1 pending updates"),
    ("sendEverything", {}, "there is no method sendEverything"),
    ("sendDice", {"chat_id": 5}, "sendDice is not played here"),
]


@pytest.mark.parametrize(("method", "params", "words"), COMPLAINTS)
def test_what_no_bot_should_do_is_complained_of(
    bot_world: World, method: str, params: dict[str, Any], words: str
) -> None:
    bot_world.say(5, text="pending")
    post(bot_world, method, **params)
    [complaint] = bot_world.forgive()
    assert words in complaint


def entity(kind: str, start: int, end: int, **more: str) -> dict[str, Any]:
    return {"type": kind, "offset": start, "length": end - start} | more


WRONG = [
    ("abc", [entity("bold", 0, 4)], "not in a text of 3"),
    ("abc", [entity("bold", -1, 2)], "not in a text of 3"),
    ("abc", [entity("bold", 1, 1)], "not in a text of 3"),
    ("abc", [entity("bold", 2, 1)], "not in a text of 3"),
    ("a🙂b", [entity("bold", 0, 2)], "cuts a character in two"),
    ("abc", [entity("bold", 0, 2), entity("italic", 1, 3)], "cross"),
    ("abc", [entity("code", 0, 3), entity("bold", 1, 2)], "cannot contain"),
    ("abc", [entity("bold", 0, 3), entity("pre", 1, 2)], "cannot contain"),
    ("abc", [entity("text_link", 0, 3, url="x"), entity("code", 0, 3)], "cannot contain"),
    ("abc", [entity("blockquote", 0, 3), entity("expandable_blockquote", 1, 2)], "cannot contain"),
    ("abc", [entity("text_link", 0, 3)], "has no url"),
    ("abc", [entity("huge", 0, 3)], "no entity 'huge'"),
    ("a" * 101, [entity("bold", at, at + 1) for at in range(101)], "more than 100"),
]
RIGHT = [
    ("a🙂b", [entity("bold", 1, 3), entity("italic", 3, 4)]),
    ("abc", [entity("bold", 0, 3), entity("italic", 0, 3), entity("spoiler", 1, 2)]),
    ("abc", [entity("blockquote", 0, 3), entity("pre", 0, 2, language="sh")]),
    ("abc", [entity("text_link", 0, 3, url="x"), entity("bold", 0, 3)]),
]


@pytest.mark.parametrize(("text", "entities", "words"), WRONG)
def test_entities_that_the_description_excludes_are_seen(text: str, entities: list[dict[str, Any]], words: str) -> None:
    assert [fault for fault in faults(text, entities) if words in fault]


@pytest.mark.parametrize(("text", "entities"), RIGHT)
def test_entities_that_it_allows_are_let_through(text: str, entities: list[dict[str, Any]]) -> None:
    assert list(faults(text, entities)) == []


def test_a_bot_with_wrong_entities_is_refused_and_complained_of(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            bot_world.chat(5)
            await refused(bot.send_message(5, "abc", entities=[MessageEntity("bold", 0, 9)]), "can't parse entities")

    run(work())
    assert "not in a text of 3" in bot_world.forgive()[0]


TIDIED = [
    ("plain", [], "plain", []),
    ("\n  both sides \n", [], "both sides", []),
    ("tab\there\r\nand \u202ebidi", [], "tab here\nand bidi", []),
    ("a\r\nbold", [entity("bold", 3, 7)], "a\nbold", [entity("bold", 2, 6)]),
    ("  x bold \n", [entity("bold", 4, 10)], "x bold", [entity("bold", 2, 6)]),
    ("  bold", [entity("bold", 0, 6)], "bold", [entity("bold", 0, 4)]),
    ("a \n b", [entity("italic", 1, 4)], "a \n b", []),
    ("\n  🙂 link", [entity("text_link", 5, 10, url="x")], "🙂 link", [entity("text_link", 2, 7, url="x")]),
    (" \n ", [entity("bold", 0, 3)], "", []),
]


@pytest.mark.parametrize(("text", "entities", "kept", "marks"), TIDIED)
def test_a_text_is_kept_without_what_telegram_takes_away(
    text: str, entities: list[dict[str, Any]], kept: str, marks: list[dict[str, Any]]
) -> None:
    assert tidied(text, entities) == (kept, marks)
