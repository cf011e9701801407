"""People say things in every kind of chat, twice, late and in disorder, and updates are brought to a webhook."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from bot_api.client import World, message_id
from ptb_bot import bot_of, refused, run
from telegram import Update
from telegram.error import Conflict

GROUP = -1001234567890
CHANNEL = -1009876543210


async def heard(world: World, offset: int | None = None) -> list[Update]:
    async with bot_of(world) as bot:
        return list(await bot.get_updates(offset=offset))


def test_everybody_can_speak(bot_world: World) -> None:
    bot_world.user(7, first_name="Ann", username="ann", language_code="de")
    bot_world.user(8, is_bot=True)
    bot_world.chat(CHANNEL, type="channel", title="News")
    bot_world.say(7, text="to the bot alone")
    first = bot_world.say(GROUP, 7, "to all")
    bot_world.say(GROUP, 8, "as a bot", reply_to=message_id(first))
    bot_world.say(GROUP, text="as an anonymous admin")
    bot_world.say(GROUP, text="as a channel", sender_chat=CHANNEL)
    bot_world.say(CHANNEL, text="a post")
    bot_world.say(-42, 7, "in a small group")
    updates = asyncio.run(heard(bot_world))
    messages = [update.effective_message for update in updates]
    assert [one.chat.type for one in messages if one] == [
        "private",
        "supergroup",
        "supergroup",
        "supergroup",
        "supergroup",
        "channel",
        "group",
    ]
    alone, _all, bot, admin, channel, post, _small = [one for one in messages if one]
    assert alone.from_user is not None
    assert (alone.from_user.username, alone.from_user.language_code) == ("ann", "de")
    assert bot.reply_to_message is not None
    assert bot.reply_to_message.text == "to all"
    assert admin.from_user is not None
    assert (admin.from_user.username, admin.sender_chat) == ("GroupAnonymousBot", admin.chat)
    assert channel.from_user is not None
    assert (channel.from_user.username, channel.sender_chat) == ("Channel_Bot", post.chat)
    assert post.from_user is None
    assert updates[5].channel_post == post


MEDIA = ["photo", "document", "audio", "video", "voice", "animation", "video_note", "sticker"]


@pytest.mark.parametrize("media", MEDIA)
def test_people_send_files_of_every_kind(bot_world: World, media: str) -> None:
    bot_world.say(5, media=media, content=b"bytes", file_name="name.bin", mime_type="x/y")
    [update] = asyncio.run(heard(bot_world))
    assert update.message is not None
    assert update.message.effective_attachment


def test_an_update_comes_again_whatever_was_confirmed(bot_world: World) -> None:
    async def work() -> None:
        first = bot_world.say(5, text="one")
        second = bot_world.say(5, text="two")
        after = second["update_id"] + 1
        await heard(bot_world)
        assert await heard(bot_world, after) == []
        bot_world.redeliver(first["update_id"])
        again = bot_world.redeliver(second["update_id"], as_new=True)
        old, new = await heard(bot_world, after)
        assert (old.update_id, new.update_id) == (first["update_id"], again["update_id"])
        assert new.message is not None
        assert new.message.message_id == message_id(second)
        assert [one.update_id for one in await heard(bot_world, after)] == [again["update_id"]]

    run(work())


def test_updates_come_in_the_order_in_which_they_are_released(bot_world: World) -> None:
    held = [bot_world.say(5, text=text, held=True)["update_id"] for text in ("one", "two", "three")]
    assert asyncio.run(heard(bot_world)) == []
    bot_world.release(held[2], held[0], held[1])
    updates = asyncio.run(heard(bot_world))
    assert [one.message.text for one in updates if one.message] == ["three", "one", "two"]


def test_a_test_may_send_what_telegram_would_not(bot_world: World) -> None:
    async def work() -> None:
        bot_world.say(5, text="half \ud83d a pair", checked=False)
        bot_world.say(5, text="long ago", date=1, checked=False)
        bot_world.update({"purple_message": {"anything": [1, None]}})
        number = bot_world.update('{"update_id": 1, "message": nothing}', update_id=1)
        assert number == 1
        async with bot_of(bot_world) as bot:
            half, old, unknown = await bot.get_updates(limit=3)
            assert half.message is not None
            assert half.message.text == "half \ud83d a pair"
            assert old.message is not None
            assert old.message.date.year == 1970
            assert unknown.effective_message is None
        assert bot_world.state.pending[-1] == 1

    run(work())


def test_what_others_cannot_read_is_not_sent_by_mistake(bot_world: World) -> None:
    with pytest.raises(AssertionError, match="aiogram does not read this update"):
        bot_world.say(5, text="hello", colour="red")


class Listener:
    """A webhook that refuses at first."""

    def __init__(self, refusals: int) -> None:
        self.heard: list[tuple[str | None, dict[str, Any]]] = []
        self.refusals = refusals
        listener = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                listener.heard.append((self.headers["X-Telegram-Bot-Api-Secret-Token"], body))
                self.send_response(200 if len(listener.heard) > listener.refusals else 503)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/telegram"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    listening = Listener(refusals=2)
    yield listening
    listening.close()


def test_updates_are_brought_to_a_webhook_until_it_takes_them(bot_world: World, listener: Listener) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            first = bot_world.say(5, text="one")["update_id"]
            waiting = asyncio.create_task(bot.get_updates(offset=first + 1, timeout=30))
            await bot_world.until(lambda: bot_world.state.is_polled)
            first = bot_world.redeliver(first)["update_id"]
            assert len(await waiting) == 1
            await bot.set_webhook(listener.url, secret_token="s3cret", allowed_updates=["message"])
            with pytest.raises(Conflict, match="while webhook is active"):
                await bot.get_updates()
            second = bot_world.say(5, text="two")["update_id"]
            await bot_world.until(lambda: not bot_world.state.pending)
            assert [body["update_id"] for _, body in listener.heard] == [first, first, first, second]
            assert {secret for secret, _ in listener.heard} == {"s3cret"}
            assert [one.status for one in bot_world.deliveries()] == [503, 503, 200, 200]
            info = await bot.get_webhook_info()
            assert (info.url, info.allowed_updates) == (listener.url, ("message",))
            assert "503" in (info.last_error_message or "")
            await bot.delete_webhook()
            bot_world.say(5, text="three")
            assert len(await bot.get_updates()) == 1

    run(work())
    assert len(listener.heard) == 4


def test_a_webhook_is_on_this_machine_and_its_secret_is_plain(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            await refused(bot.set_webhook("https://example.org/"), "bad webhook")
            await refused(bot.set_webhook("http://127.0.0.1:9/", secret_token="with spaces"), "unallowed characters")

    run(work())
    assert bot_world.state.webhook is None
