"""What is said reaches people on Telegram as it was meant, and what goes wrong is told as what it is."""

from pathlib import Path
from typing import Any

import pytest
from bot_api.client import World, message_id
from telegram_bench import ALICE, GROUP, Bench, post, route, run
from waiting import DEADLINE

from segue.core.attachments import Attachment
from segue.platforms.telegram import wire
from segue.ports.platform import Post, SendFailed, SendLater, SendRefused, SendUnknown


@pytest.fixture
def bench(bot_world: World, tmp_path: Path) -> Bench:
    bot_world.chat(ALICE, type="private", first_name="Alice", threads=[9])
    bot_world.chat(GROUP, type="supergroup", title="Tea", is_forum=True, threads=[7])
    return Bench(bot_world, tmp_path)


async def failure(bench: Bench, said: Post, message: str | None = None, **own: Any) -> SendFailed:
    adapter = bench.adapter(**own)
    with pytest.raises(SendFailed) as caught:
        await (adapter.send(said) if message is None else adapter.edit(said, message))
    assert bench.world.token not in f"{caught.value.args}"
    return caught.value


def test_markdown_arrives_as_it_was_meant(bench: Bench) -> None:
    async def work() -> None:
        sent = await bench.adapter().send(post("😀 **Bold** and `code`\n\n    plain 2*3*4, *so*"))
        assert sent.message_id == str(bench.world.messages()[0].message_id)

    run(work())
    (kept,) = bench.world.messages(ALICE)
    assert kept.text == "😀 Bold and code\n\n    plain 2*3*4, so"
    assert [(one["type"], one["offset"], one["length"]) for one in kept.entities] == [
        ("bold", 3, 4),
        ("code", 12, 4),
        ("italic", 35, 2),
    ]
    (call,) = bench.world.calls("sendMessage")
    assert call.params["link_preview_options"] == {"is_disabled": True}
    assert "parse_mode" not in call.params


def test_answers_go_where_they_belong(bench: Bench) -> None:
    said = message_id(bench.world.say(ALICE, ALICE, "hello"))

    async def work() -> None:
        adapter = bench.adapter()
        await adapter.send(post("an answer", reply_to=str(said)))
        await adapter.send(post("to what is gone", reply_to="99999"))
        await adapter.send(post("to what has no number", reply_to="abc"))
        await adapter.send(post("beside", route(thread_id="9")))
        for thread in ("7", "1", None):
            where = route(GROUP, chat_type="group", thread_id=thread)
            await adapter.send(post(f"in {thread}", where))
            await adapter.typing(where)
        await adapter.typing(route())
        await adapter.typing(route(-1, chat_type="channel"))
        await adapter.typing(route(12345))

    run(work())
    told = [(kept.text, kept.reply_to, kept.thread) for kept in bench.world.messages()]
    assert told == [
        ("an answer", said, None),
        ("to what is gone", None, None),
        ("to what has no number", None, None),
        ("beside", None, 9),
        ("in 7", None, 7),
        ("in 1", None, None),
        ("in None", None, None),
    ]
    typed = [(call.status, call.params.get("message_thread_id")) for call in bench.world.calls("sendChatAction")]
    assert typed == [(200, 7), (200, 1), (200, None), (200, None), (400, None)]


def test_a_group_that_has_become_another_gets_its_answer_there(bench: Bench) -> None:
    bench.world.chat(-123, type="group", title="Old")
    bench.world.migrate(-123, -1_000_000_000_555)

    async def work() -> None:
        adapter = bench.adapter()
        await adapter.send(post("hello", route(-123, chat_type="group")))
        file = await bench.kept("a.bin", "application/octet-stream", b"abc")
        await adapter.send(post("", route(-123, chat_type="group"), file=file))

    run(work())
    hello, file = bench.world.messages(-1_000_000_000_555)
    assert (hello.text, file.uploads[0].size) == ("hello", 3)


def test_a_message_says_something_else(bench: Bench) -> None:
    async def work() -> None:
        adapter = bench.adapter()
        name = (await adapter.send(post("Half"))).message_id
        assert name is not None
        for text in ("Half **of** it", "Half **of** it", "All of it"):
            await adapter.edit(post(text), name)
        for wrong in ("424242", "abc"):
            assert isinstance(await failure(bench, post("x"), wrong), SendRefused)

    run(work())
    (kept,) = bench.world.messages(ALICE)
    assert [version.text for version in kept.versions] == ["Half", "Half of it", "All of it"]


@pytest.mark.parametrize(
    ("trouble", "kind", "sentence"),
    [
        ({"kind": "flood", "retry_after": 3}, SendLater, "for 3 s"),
        ({"kind": "error", "status": 500}, SendUnknown, "did not say whether"),
        ({"kind": "html"}, SendUnknown, "did not say whether"),
        ({"kind": "drop"}, SendUnknown, "the connection broke"),
        ({"kind": "cut", "taken": True}, SendUnknown, "the connection broke"),
        ({"kind": "garbage", "taken": True}, SendUnknown, "did not say whether"),
        ({"kind": "hang", "seconds": 2 * DEADLINE}, SendUnknown, "in time"),
        ({"kind": "error", "status": 413, "description": "Request Entity Too Large"}, SendRefused, "Too Large"),
    ],
)
def test_a_failure_is_what_it_is(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    trouble: dict[str, Any],
    kind: type[SendFailed],
    sentence: str,
) -> None:
    monkeypatch.setattr(wire, "ANSWER_SECONDS", 0.5 if trouble["kind"] == "hang" else DEADLINE)

    async def work() -> None:
        how = {name: value for name, value in trouble.items() if name != "kind"}
        for method, message in (("sendMessage", None), ("editMessageText", "1")):
            bench.world.trouble(trouble["kind"], method, **how)
            found = await failure(bench, post("hello"), message)
            assert type(found) is kind
            assert sentence in str(found)
            assert not isinstance(found, SendLater) or found.seconds == 3

    run(work())


def test_what_never_left_can_be_sent_later(bench: Bench) -> None:
    async def work() -> None:
        bench.world.down()
        assert isinstance(await failure(bench, post("hello")), SendLater)
        bench.world.up()
        wrong = bench.world.token[:-5] + "XXXXX"
        found = await failure(bench, post("hello"), token=wrong)
        assert isinstance(found, SendLater)
        assert "BotFather" in str(found)

    run(work())


def test_a_refusal_says_what_telegram_says(bench: Bench) -> None:
    bench.world.block(ALICE)

    async def work() -> None:
        for where, sentence in ((route(), "bot was blocked by the user"), (route(777), "hat not found")):
            found = await failure(bench, post("hello", where))
            assert isinstance(found, SendRefused)
            assert sentence in str(found)
        where = route(GROUP, chat_type="group", thread_id="8")
        assert "thread not found" in str(await failure(bench, post("hello", where)))
        assert "empty" in str(await failure(bench, post(" \n", route(GROUP, chat_type="group"))))

    run(work())


def test_files_are_sent_as_what_they_are(bench: Bench) -> None:
    kinds = {
        "a.png": ("image/png", "photo"),
        "b.mp3": ("audio/mpeg", "audio"),
        "c.ogg": ("audio/ogg", "voice"),
        "d.mp4": ("video/mp4", "video"),
        "e.pdf": ("application/pdf", "document"),
    }

    async def work() -> None:
        adapter = bench.adapter()
        for name, (kind, _) in kinds.items():
            file = await bench.kept(name, kind, name.encode() * 100)
            sent = await adapter.send(post("**see**", route(GROUP, chat_type="group", thread_id="7"), file=file))
            assert sent.message_id

    run(work())
    sent = bench.world.messages(GROUP)
    for kept, (name, (_, way)) in zip(sent, kinds.items(), strict=True):
        assert way in kept.message
        assert (kept.text, kept.thread) == ("see", 7)
        assert kept.entities == [{"type": "bold", "offset": 0, "length": 3}]
        assert (kept.uploads[0].file_name, kept.uploads[0].size) == (name, 500)


def test_a_picture_that_telegram_cannot_show_is_sent_as_a_file(bench: Bench) -> None:
    bench.world.trouble("error", "sendPhoto", status=400, description="Bad Request: PHOTO_INVALID_DIMENSIONS")

    async def work() -> None:
        file = await bench.kept("a.png", "image/png", b"png")
        await bench.adapter().send(post("", file=file))

    run(work())
    (kept,) = bench.world.messages(ALICE)
    assert kept.message["document"]["file_name"] == "a.png"


def test_what_is_too_long_to_stand_below_a_file_follows_it(bench: Bench) -> None:
    text = "word " * 300

    async def work() -> None:
        adapter = bench.adapter()
        file = await bench.kept("a.bin", "application/octet-stream", b"abc")
        await adapter.send(post(text, file=file))
        bench.world.trouble("flood", "sendMessage")
        assert isinstance(await failure(bench, post(text, file=file)), SendUnknown)

    run(work())
    file, said, again = bench.world.messages(ALICE)
    assert (file.text, said.text, again.text) == ("", text.strip(), "")


def test_a_file_that_is_gone_is_refused(bench: Bench) -> None:
    gone = Attachment("a.bin", sha256="0" * 64, size=3)

    async def work() -> None:
        found = await failure(bench, post("", file=gone))
        assert isinstance(found, SendRefused)
        assert "a.bin" in str(found)

    run(work())
