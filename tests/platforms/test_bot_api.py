"""The Bot API of the tests is one that two clients of others understand, and it refuses what the real one refuses."""

import asyncio
import json
import subprocess
from datetime import timedelta
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from bot_api.client import BotApi, World, message_id, pauses
from counterparts import counterparts_python
from ptb_bot import bot_of, refused, run
from telegram import Bot, BotCommand, InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity, ReplyParameters
from telegram.error import ChatMigrated, Conflict, Forbidden, InvalidToken, RetryAfter
from waiting import DEADLINE

AIOGRAM_CLIENT = Path(__file__).parents[1] / "support" / "aiogram_client.py"
FORUM = -1001234567890


def test_a_bot_hears_answers_and_edits(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            assert bot.username == "segue_bot"
            heard = bot_world.say(5, text="hello 🙂 there", entities=[{"type": "bold", "offset": 6, "length": 2}])
            [update] = await bot.get_updates()
            assert update.message is not None
            assert update.message.text == "hello 🙂 there"
            assert update.message.parse_entities() == {update.message.entities[0]: "🙂"}
            replied = ReplyParameters(update.message.message_id)
            sent = await bot.send_message(5, "Think", entities=[MessageEntity("bold", 0, 5)], reply_parameters=replied)
            await bot.edit_message_text("Thinking", 5, sent.message_id, entities=[MessageEntity("italic", 0, 5)])
            await bot.send_chat_action(5, "typing")
            [kept] = bot_world.messages(5)
            assert [version.text for version in kept.versions] == ["Think", "Thinking"]
            assert kept.entities == [{"type": "italic", "offset": 0, "length": 5}]
            assert kept.reply_to == message_id(heard)
            assert "edit_date" in kept.message
            await bot.delete_message(5, sent.message_id)
            assert bot_world.messages(5) == []
            assert len(bot_world.messages(5, deleted=True)) == 1

    run(work())


def test_every_call_is_kept_with_its_moment_and_its_answer(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            bot_world.chat(5)
            await bot.send_message(5, "one")
            await bot.send_message(5, "two")

    run(work())
    first, second = bot_world.calls("sendMessage")
    assert first.params == {"chat_id": 5, "text": "one"}
    assert (first.status, first.answer["text"]) == (200, "one")
    assert first.ended_at is not None
    assert first.at < first.ended_at < second.at
    assert [call.method for call in bot_world.calls()] == ["getMe", "sendMessage", "sendMessage"]
    assert [call.method for call in bot_world.calls(since=first.number)] == ["sendMessage"]
    assert all(pause > 0 for pause in pauses([call.at for call in bot_world.calls()]))


def test_an_offset_confirms_what_is_below_it(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            numbers = [bot_world.say(5, text=f"line {number}")["update_id"] for number in range(120)]
            assert [one.update_id for one in await bot.get_updates()] == numbers[:100]
            assert [one.update_id for one in await bot.get_updates(limit=2)] == numbers[:2]
            assert [one.update_id for one in await bot.get_updates(offset=numbers[100])] == numbers[100:]
            assert bot_world.state.pending == numbers[100:]
            assert [one.update_id for one in await bot.get_updates(offset=-3)] == numbers[-3:]
            assert [one.update_id for one in await bot.get_updates(offset=numbers[-1] + 999)] == numbers[-3:]
            assert await bot.get_updates(offset=numbers[-1] + 1) == ()
            assert bot_world.state.pending == []

    run(work())


def test_a_long_poll_ends_with_the_first_update_or_with_its_time(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            assert await bot.get_updates(timeout=1) == ()
            waiting = asyncio.create_task(bot.get_updates(timeout=30))
            await bot_world.until(lambda: bot_world.state.is_polled)
            bot_world.say(5, text="at last")
            [update] = await waiting
            assert update.message is not None
            assert update.message.text == "at last"
        [empty, _full] = bot_world.calls("getUpdates")
        assert empty.ended_at is not None
        assert empty.ended_at - empty.at > 0.9

    run(work())


def test_a_second_poller_ends_the_first(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as one, bot_of(bot_world) as other:
            first = asyncio.create_task(one.get_updates(timeout=30))
            await bot_world.until(lambda: bot_world.state.is_polled)
            second = asyncio.create_task(other.get_updates(timeout=30))
            with pytest.raises(Conflict, match="terminated by other getUpdates request"):
                await first
            bot_world.say(5, text="for the second")
            assert len(await second) == 1

    run(work())


def test_the_kinds_that_a_bot_wants_are_remembered(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            await bot.get_updates(allowed_updates=["edited_message"])
            said = bot_world.say(5, text="dropped")
            bot_world.edit(5, message_id(said), "kept")
            [update] = await bot.get_updates()
            assert update.edited_message is not None
            assert update.edited_message.text == "kept"
            assert update.edited_message.edit_date is not None
        assert bot_world.state.allowed_updates == ["edited_message"]

    run(work())


def test_another_token_is_not_let_in(bot_world: World) -> None:
    async def work() -> None:
        wrong = Bot(f"{bot_world.bot['id']}:{'x' * 35}", base_url=bot_world.base_url)
        with pytest.raises(InvalidToken):
            await wrong.initialize()
        await wrong.shutdown()

    run(work())
    for token, status in [(f"1234567:{'x' * 35}", 401), ("nonsense", 404)]:
        with pytest.raises(HTTPError) as error:
            urlopen(f"{bot_world.base_url}{token}/getMe", timeout=DEADLINE)
        assert error.value.code == status
        error.value.close()
    assert bot_world.calls() == []


REFUSALS = [
    ("", "message text is empty"),
    (" \n\t ", "message text is empty"),
    ("x" * 4097, "message is too long"),
    ("🙂" * 2049, "message is too long"),
]


@pytest.mark.parametrize(("text", "words"), REFUSALS, ids=["empty", "blank", "long", "long in pairs"])
def test_a_text_that_telegram_refuses_is_refused(bot_world: World, text: str, words: str) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            bot_world.chat(5)
            await refused(bot.send_message(5, text), words)
            sent = await bot.send_message(5, "🙂" * 2048)
            await refused(bot.edit_message_text(text, 5, sent.message_id), words)

    run(work())
    assert len(bot_world.messages(5)) == 1


def test_an_edit_must_change_something_that_is_there(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            theirs = bot_world.say(5, text="mine")
            bold = [MessageEntity("bold", 0, 3)]
            sent = await bot.send_message(5, "the same", entities=bold)
            for text in ("the same", "the same\n", " the same "[1:]):
                await refused(bot.edit_message_text(text, 5, sent.message_id, entities=bold), "message is not modified")
            await bot.edit_message_text("the same", 5, sent.message_id)
            await refused(bot.edit_message_text("new", 5, sent.message_id + 9), "message to edit not found")
            await refused(bot.edit_message_text("new", 5, message_id(theirs)), "message can't be edited")
            await refused(bot.delete_message(5, sent.message_id + 9), "message to delete not found")
            await refused(bot.edit_message_text("new", 6, sent.message_id), "chat not found")

    run(work())


def test_a_chat_may_be_unknown_closed_or_elsewhere(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            await refused(bot.send_message(5, "hello"), "chat not found")
            bot_world.chat(5)
            bot_world.block(5)
            with pytest.raises(Forbidden, match="bot was blocked by the user"):
                await bot.send_message(5, "hello")
            bot_world.unblock(5)
            await bot.send_message(5, "hello")
            bot_world.chat(-42)
            bot_world.migrate(-42, FORUM)
            with pytest.raises(ChatMigrated) as moved:
                await bot.send_message(-42, "hello")
            assert moved.value.new_chat_id == FORUM
            await bot.leave_chat(FORUM)
            with pytest.raises(Forbidden, match="not a member"):
                await bot.send_message(FORUM, "hello")

    run(work())


def test_topics_are_sent_to_by_their_number_and_general_by_none(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            bot_world.chat(FORUM, is_forum=True)
            bot_world.say(FORUM, 5, "in a topic", thread=17)
            bot_world.say(FORUM, 5, "a line of replies", thread=18, is_topic=False)
            bot_world.say(5, text="in a topic of two", thread=19)
            heard = [update.message for update in await bot.get_updates()]
            assert [(one.message_thread_id, one.is_topic_message) for one in heard if one is not None] == [
                (17, True),
                (18, None),
                (19, True),
            ]
            assert (await bot.send_message(FORUM, "there", message_thread_id=17)).message_thread_id == 17
            assert (await bot.send_message(5, "there", message_thread_id=19)).is_topic_message
            assert (await bot.send_message(FORUM, "general")).message_thread_id is None
            for thread in (1, 18, 99):
                await refused(bot.send_message(FORUM, "no", message_thread_id=thread), "message thread not found")
        assert [kept.thread for kept in bot_world.messages(FORUM)] == [17, None]

    run(work())


def test_files_go_both_ways(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            bot_world.say(5, text="Read this", media="document", content=b"\x00\xff secret", file_name="a b.txt")
            bot_world.say(5, media="photo", content=b"many colours" * 20)
            bot_world.say(5, media="voice", content=b"", size=30_000_000)
            document, photo, voice = [update.message for update in await bot.get_updates()]
            assert document is not None
            assert document.document is not None
            assert (document.caption, document.document.file_name) == ("Read this", "a b.txt")
            assert await (await bot.get_file(document.document)).download_as_bytearray() == b"\x00\xff secret"
            assert photo is not None
            assert await (await photo.photo[-1].get_file()).download_as_bytearray() == b"many colours" * 20
            assert voice is not None
            assert voice.voice is not None
            await refused(bot.get_file(voice.voice), "file is too big")
            sent = await bot.send_document(5, b"an answer", filename="answer.txt", caption="Here")
            assert sent.document is not None
            await bot.send_document(5, sent.document.file_id)
            for send in (bot.send_photo, bot.send_audio, bot.send_video, bot.send_voice):
                await send(5, b"bytes")
            await refused(bot.send_photo(5, b"bytes", caption="x" * 1025), "message caption is too long")
        [upload] = bot_world.messages(5)[0].uploads
        assert (upload.file_name, upload.size) == ("answer.txt", 9)
        assert bot_world.calls("sendDocument")[0].uploads == {"document": upload}

    run(work())


def test_commands_buttons_and_members(bot_world: World) -> None:
    async def work() -> None:
        async with bot_of(bot_world) as bot:
            await bot.set_my_commands([BotCommand("new", "Begin anew")])
            assert [one.command for one in await bot.get_my_commands()] == ["new"]
            await refused(bot.set_my_commands([BotCommand("No!", "Never")]), "BOT_COMMAND_INVALID")
            bot_world.chat(FORUM, title="Us", members={5: "administrator", 6: "creator", 8: "restricted"})
            assert (await bot.get_chat(FORUM)).title == "Us"
            assert (await bot.get_chat_member(FORUM, 5)).status == "administrator"
            assert (await bot.get_chat_member(FORUM, 6)).status == "creator"
            assert (await bot.get_chat_member(FORUM, 8)).status == "restricted"
            await refused(bot.get_chat_member(FORUM, 7), "PARTICIPANT_ID_INVALID")
            markup = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="yes")]])
            asked = await bot.send_message(FORUM, "Sure?", reply_markup=markup)
            bot_world.press(FORUM, 5, asked.message_id, "yes")
            [update] = await bot.get_updates()
            assert update.callback_query is not None
            assert update.callback_query.data == "yes"
            await update.callback_query.answer()
            await refused(update.callback_query.answer(), "query is too old")
        assert bot_world.state.commands == {"default": [{"command": "new", "description": "Begin anew"}]}

    run(work())


def test_whoever_sends_too_fast_is_told_to_wait(bot_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "true")

    async def work() -> None:
        async with bot_of(bot_world) as bot:
            bot_world.chat(5)
            bot_world.chat(6)
            bot_world.limit(1000)
            sent = await bot.send_message(5, "one")
            await bot.send_message(6, "elsewhere")
            with pytest.raises(RetryAfter) as told:
                await bot.edit_message_text("two", 5, sent.message_id)
            assert isinstance(told.value.retry_after, timedelta)
            assert timedelta() < told.value.retry_after <= timedelta(seconds=1000)
            bot_world.limit(0.000_001)  # which is over by now
            await bot.edit_message_text("two", 5, sent.message_id)
        assert [call.status for call in bot_world.calls("editMessageText")] == [429, 200]

    run(work())


@pytest.mark.process
def test_a_bot_of_aiogram_is_served_as_well(bot_world: World) -> None:
    heard = bot_world.say(5, text="hello")
    ran = subprocess.run(
        [counterparts_python(), str(AIOGRAM_CLIENT), bot_world.url, bot_world.token],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    assert "message is not modified" in seen.pop("refusal")
    assert seen == {
        "username": "segue_bot",
        "heard": "hello",
        "reply_to": message_id(heard),
        "bold": ["bold"],
        "edited": "Thought",
        "fetched": "not really a photo",
        "left": 0,
    }


def test_worlds_do_not_meet(bot_api: BotApi, bot_world: World) -> None:
    other = bot_api.world(username="other_bot")
    other.say(5, text="only there")
    assert bot_world.state.pending == []
    assert other.url != bot_world.url
    other.close()
