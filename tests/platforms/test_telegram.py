"""Telegram is asked for what people say, and nothing of that is lost or heard twice."""

import asyncio
import itertools
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bot_api.client import World, message_id
from bot_api.records import Call
from telegram_bench import ALICE, GROUP, Bench, run
from waiting import DEADLINE

from segue.core.commands import known
from segue.core.errors import StoreError
from segue.core.inbound import Cursor, Inbound
from segue.platforms.telegram import fetching
from segue.platforms.telegram.failing import ANOTHER, WRONG_TOKEN, TelegramFailed
from segue.platforms.telegram.inbound import KINDS
from segue.ports.platform import Arriving
from segue.testing.ledger import Ledger


@pytest.fixture
def bench(bot_world: World, tmp_path: Path) -> Iterator[Bench]:
    bot_world.chat(ALICE, type="private", first_name="Alice")
    bot_world.chat(GROUP, type="supergroup", title="Tea")
    yield Bench(bot_world, tmp_path)
    assert not any(call.params.get("drop_pending_updates") for call in bot_world.calls())


def test_telegram_is_never_told_more_than_what_is_put_down(bench: Bench) -> None:
    """Killed at each message in turn, nothing is lost, and nothing is confirmed before it is safe."""
    texts = [f"message {number}" for number in range(6)]
    for text in texts:
        bench.world.say(ALICE, ALICE, text)
    first = bench.world.state.pending[0]

    async def work() -> None:
        for number in range(len(texts)):

            def die(inbound: Inbound, at: str = texts[number]) -> None:
                if inbound.text == at and at not in bench.ledger.texts:
                    bench.ledger.before_commit = lambda _: None
                    raise StoreError("The process is killed here.")

            bench.ledger.before_commit = die
            with pytest.raises(StoreError):
                await bench.adapter().run(bench.ledger)
            assert bench.world.state.pending[0] <= first + number
        async with bench.connected():
            await bench.heard(*texts)
            await bench.until(lambda: bench.world.state.pending == [])

    run(work())
    assert len(bench.ledger.brought) == len(texts) * 2
    offsets = [offset for offset in bench.offsets() if offset is not None]
    assert max(offsets) == first + len(texts)
    assert bench.ledger.cursors["updates"] == str(max(offsets) - 1)


class Timed(Ledger):
    """Notes when the place moved."""

    def __init__(self) -> None:
        super().__init__()
        self.moved: list[tuple[int, float]] = []

    async def advance(self, cursor: Cursor) -> None:
        await super().advance(cursor)
        self.moved.append((int(cursor.value), time.monotonic()))


def test_no_offset_goes_ahead_of_what_is_put_down(bench: Bench) -> None:
    ledger = bench.ledger = Timed()

    async def work() -> None:
        for life in itertools.count():
            async with bench.connected():
                for number in range(5):
                    bench.world.say(ALICE, ALICE, f"message {life} {number}")
                    bench.world.update({"poll": {"id": "1"}})
                    await asyncio.sleep(0.02 * (number % 2))
            if life >= 3 and len(asked()) > 5:
                break
        async with bench.connected():
            await bench.until(lambda: bench.world.state.pending == [])
        assert len(ledger.accepted) == 5 * (life + 1)

    def asked() -> list[Call]:
        return [call for call in bench.world.calls("getUpdates") if call.params.get("offset") is not None]

    run(work())
    for call in asked():
        assert any(place == call.params["offset"] - 1 and at <= call.at for place, at in ledger.moved)


def test_what_brings_no_message_is_passed_by(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    message: dict[str, Any] = {"message_id": 90, "date": 1, "chat": {"id": ALICE, "type": "private"}}
    odd: list[Any] = [
        {"poll": {"id": "1"}},
        {"of_tomorrow": {"x": [1, {"y": None}]}},
        {"message": None},
        {"message": {"text": "nowhere"}},
        {"message": {**message, "chat": "nonsense", "text": "a"}},
        {"message": {**message, "pinned_message": message}},
        {"message": {**message, "message_id": 91, "text": "half \ud83d"}},
        {"message": {**message, "message_id": 92, "location": {"latitude": 10**400, "longitude": 1}}},
        {"message": {**message, "message_id": 93, "text": "a", "entities": "x", "photo": 5, "from": [], "quote": 7}},
    ]

    async def work() -> None:
        async with bench.connected():
            for update in odd:
                bench.world.update(update)
            last = bench.world.say(ALICE, ALICE, "and on")["update_id"]
            await bench.until(lambda: "and on" in bench.ledger.texts)
            await bench.until(lambda: bench.ledger.cursors["updates"] == str(last))
            await bench.until(lambda: bench.world.state.pending == [])

    run(work())
    assert bench.ledger.texts == ["half \ud83d", "a", "and on"]
    assert "cannot be read" in caplog.text


def test_updates_that_are_numbered_anew_are_heard(bench: Bench) -> None:
    """When nobody has written for a week, Telegram begins to count elsewhere."""
    bench.ledger.cursors["updates"] = "2000000000"

    async def work() -> None:
        async with bench.connected():
            for text in ("one", "two"):
                bench.world.say(ALICE, ALICE, text)
            await bench.heard("one", "two")
            await bench.until(lambda: bench.world.state.pending == [])

    run(work())


def test_a_message_that_is_ignored_does_not_come_for_ever(bench: Bench) -> None:
    """Also where whoever takes it in does not move the place."""
    bench.world.say(ALICE, ALICE, "one")

    async def work() -> None:
        async with bench.connected():
            await bench.heard("one")
            bench.ledger.cursors.clear()
            bench.world.say(ALICE, ALICE, "two")
            await bench.heard("one", "two")
            await bench.until(lambda: bench.world.state.pending == [])

    run(work())


def test_only_one_program_may_ask(bench: Bench) -> None:
    async def work() -> None:
        first = asyncio.create_task(bench.adapter().run(bench.ledger))
        await bench.until(lambda: bench.world.state.is_polled)
        second = asyncio.create_task(bench.adapter().run(bench.ledger))
        done, waiting = await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        with pytest.raises(TelegramFailed, match="Another program asks Telegram"):
            done.pop().result()

    run(work())
    assert "half" in ANOTHER


def test_a_wrong_token_is_told_and_never_shown(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = bench.world.token[:-5] + "XXXXX"

    async def work() -> None:
        with pytest.raises(TelegramFailed, match="BotFather") as caught:
            await bench.adapter(token=wrong).run(bench.ledger)
        assert wrong not in f"{caught.value} {caught.value!r} {caught.value.args}"
        async with bench.connected() as adapter:
            bench.world.say(ALICE, ALICE, "hello")
            await bench.heard("hello")
            assert bench.world.token not in repr(adapter._settings)
        bench.world.down()
        with pytest.raises(TelegramFailed, match="cannot be reached: nobody answers") as caught:
            await bench.adapter().run(bench.ledger)
        assert caught.value.__cause__ is None
        bench.world.up()

    run(work())
    assert bench.world.token not in caplog.text
    assert wrong not in caplog.text
    assert "BotFather" in WRONG_TOKEN


@pytest.mark.parametrize(
    ("kind", "status", "sentence"),
    [
        ("error", 500, "cannot be reached: Internal Server Error"),
        ("html", 502, "cannot be reached"),
        ("drop", 0, "the connection broke"),
        ("cut", 0, "the connection broke"),
        ("garbage", 0, "cannot be reached"),
    ],
)
def test_trouble_is_told_in_a_sentence(bench: Bench, kind: Any, status: int, sentence: str) -> None:
    bench.world.trouble(kind, "getUpdates", status=status)

    async def work() -> None:
        with pytest.raises(TelegramFailed, match=sentence):
            await bench.adapter().run(bench.ledger)

    run(work())


def test_telegram_is_left_alone_for_as_long_as_it_says(bench: Bench) -> None:
    bench.world.say(ALICE, ALICE, "hello")
    bench.world.trouble("flood", "getUpdates", retry_after=1)

    async def work() -> None:
        async with bench.connected():
            await bench.heard("hello")

    run(work())
    (refused,) = bench.world.untaken("getUpdates")
    assert bench.world.calls("getUpdates")[0].at - refused.at >= 1


def test_a_webhook_is_taken_away_only_where_there_is_one(bench: Bench) -> None:
    async def work() -> None:
        async with bench.connected():
            pass
        assert bench.world.calls("deleteWebhook") == []
        async with bench.adapter()._line.opened() as line:
            await line.set_webhook("http://127.0.0.1:9/nobody")
        bench.world.say(ALICE, ALICE, "meanwhile")
        async with bench.connected():
            await bench.heard("meanwhile")
        assert len(bench.world.calls("deleteWebhook")) == 1

    run(work())
    assert bench.world.state.allowed_updates == list(KINDS)


def test_people_are_shown_the_commands_once(bench: Bench) -> None:
    async def work() -> None:
        for _ in range(2):
            async with bench.connected() as adapter:
                assert adapter.bot == "segue_bot"
                assert adapter.traits.arriving is Arriving.CURSOR
        bench.world.trouble("flood", "getMyCommands")
        async with bench.connected():
            pass

    run(work())
    assert len(bench.world.calls("setMyCommands")) == 1
    (shown,) = bench.world.state.commands.values()
    assert [one["command"] for one in shown] == [spec.name for spec in known(in_terminal=False)]


def test_names_of_groups_and_topics_are_learned(bench: Bench) -> None:
    async def work() -> None:
        async with bench.connected():
            bench.world.say(GROUP, ALICE, new_chat_title="Coffee")
            bench.world.chat(GROUP, is_forum=True)
            bench.world.say(GROUP, ALICE, thread=7, forum_topic_created={"name": "Cakes", "icon_color": 1})
            bench.world.migrate(GROUP, -1_000_000_000_777)
            await bench.until(lambda: bench.world.state.pending == [])

    run(work())
    learned = [(one.chat_name, one.thread_id, one.chat_topic) for one in bench.ledger.learned]
    assert learned == [("Coffee", None, None), ("Tea", "7", "Cakes")]
    assert bench.ledger.accepted == []


def test_an_album_is_addressed_as_a_whole(bench: Bench) -> None:
    """Whichever of its messages has the words, and also when the adapter dies between them."""
    mention = [{"type": "mention", "offset": 0, "length": 10}]
    photo: dict[str, Any] = {"media": "photo", "content": b"jpeg"}

    def say(album: str, text: str | None = None) -> None:
        bench.world.say(GROUP, ALICE, text, entities=mention if text else None, media_group_id=album, **photo)

    async def work() -> None:
        say("1")
        say("1", "@segue_bot look")
        say("1")
        say("2")
        async with bench.connected():
            await bench.until(lambda: len(bench.ledger.accepted) == 4)
        say("1")
        async with bench.connected():
            await bench.until(lambda: len(bench.ledger.accepted) == 5)

    run(work())
    assert [one.is_mention for one in bench.ledger.accepted] == [True, True, True, False, True]


def test_files_are_kept_while_they_are_received(bench: Bench) -> None:
    told: dict[str, Any] = {"media": "document", "content": b"%PDF", "file_name": "a.pdf"}
    told["mime_type"] = "application/pdf"

    async def say(text: str | None = None, **more: Any) -> None:
        number = len(bench.ledger.accepted)
        bench.world.say(ALICE, ALICE, text, **more)
        await bench.until(lambda: len(bench.ledger.accepted) > number)

    async def work() -> None:
        async with bench.connected():
            bench.world.trouble("drop", "download")
            await say("read this", **told)
            await say(**{**told, "size": 21_000_000})
            bench.world.trouble("error", "getFile", times=2, status=502)
            await say(**told)
            bench.world.trouble("html", "download", times=2)
            await say(**told)
            await say(document={"file_id": "gone", "file_unique_id": "g"})

    run(work())
    kept, huge, unanswered, broken, gone = (one.files[0] for one in bench.ledger.accepted)
    assert (kept.name, kept.kind, kept.size, bool(kept.sha256)) == ("a.pdf", "application/pdf", 4, True)
    assert bench.ledger.texts[0] == "read this"
    reasons = [huge.reason, unanswered.reason, broken.reason, gone.reason]
    assert reasons == [
        "it is larger than 20 MB",
        "it could not be fetched: Internal Server Error",
        "it could not be fetched: Telegram answered 502",
        "Telegram does not give it: Invalid file_id",
    ]
    assert bench.world.token not in str(reasons)


def test_a_file_that_does_not_come_does_not_hold_up_the_rest(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "FETCHING_SECONDS", 0.3)
    bench.world.trouble("hang", "download", times=2, seconds=2 * DEADLINE)
    bench.world.say(ALICE, ALICE, "slow", media="document", content=b"x", file_name="a.bin")
    bench.world.say(ALICE, ALICE, "next")

    async def work() -> None:
        async with bench.connected():
            await bench.heard("slow", "next")

    run(work())
    assert bench.ledger.accepted[0].files[0].reason == "it could not be fetched within 0.3 seconds"


def test_nobody_fills_the_disk_who_is_not_heard(bench: Bench) -> None:
    bench.ledger._welcome = lambda _: False
    bench.world.say(ALICE, ALICE, "take this", media="document", content=b"x" * 1000, file_name="a.bin")

    async def work() -> None:
        async with bench.connected():
            await bench.heard("take this")

    run(work())
    assert bench.world.calls("getFile") == []
    assert bench.ledger.accepted[0].files == ()


def test_what_people_edit_and_where_they_write_comes_along(bench: Bench) -> None:
    bench.world.chat(GROUP, is_forum=True, threads=[7])

    async def work() -> None:
        async with bench.connected():
            said = bench.world.say(ALICE, ALICE, "teh")
            for text in ("the", "the end"):
                bench.world.edit(ALICE, message_id(said), text, edit_date=1_700_000_000)
            bench.world.say(GROUP, ALICE, "in a topic", thread=7)
            bench.world.say(GROUP, ALICE, "in general")
            bench.world.say(ALICE, ALICE, "beside", thread=9)
            bench.world.say(-1_000_000_000_999, None, "news")
            await bench.until(lambda: len(bench.ledger.accepted) == 7)

    bench.world.chat(-1_000_000_000_999, type="channel", title="News")
    run(work())
    assert bench.ledger.texts == ["teh", "the", "the end", "in a topic", "in general", "beside", "news"]
    threads = [one.source.thread_id for one in bench.ledger.accepted[3:]]
    assert threads == ["7", "1", "9", None]
    assert bench.ledger.accepted[-1].source.chat_type == "channel"
