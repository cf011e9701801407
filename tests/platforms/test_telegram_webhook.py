"""Telegram calls: only whoever knows the secret is heard, and is told so when what was said is safe."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from bot_api.client import World
from telegram_bench import ALICE, Bench, run
from telegram_counterpart import SECRET

from segue.listening.server import CannotListen
from segue.platforms.telegram import platform
from segue.platforms.telegram.failing import TelegramFailed
from segue.platforms.telegram.inbound import KINDS
from segue.platforms.telegram.listening import HEADER
from segue.platforms.telegram.platform import TelegramPlatform
from segue.ports.platform import Arriving

MESSAGE = {"message_id": 1, "date": 1, "chat": {"id": ALICE, "type": "private"}, "text": "hello"}
BODY = json.dumps({"update_id": 1, "message": MESSAGE}).encode()


@pytest.fixture
def bench(bot_world: World, tmp_path: Path) -> Bench:
    bot_world.chat(ALICE, type="private", first_name="Alice")
    return Bench(bot_world, tmp_path)


def door(**more: Any) -> dict[str, Any]:
    """A door that Telegram itself does not find: the tests call there."""
    return {"mode": "webhook", "webhook": {"url": "http://127.0.0.1:9/in", "secret": SECRET, "port": 0, **more}}


async def call(
    adapter: TelegramPlatform, body: bytes = BODY, path: str = "/in", secret: str = SECRET, **headers: str
) -> httpx2.Response:
    said = {HEADER: secret, **headers}
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{adapter.port}") as client:
        return await client.post(path, content=body, headers=said)


def test_telegram_is_told_where_and_by_which_secret(bench: Bench) -> None:
    async def work() -> None:
        async with bench.connected(**door()) as adapter:
            assert adapter.traits.arriving is Arriving.ACK_GATED
            assert adapter.bot == "segue_bot"

    run(work())
    (told,) = bench.world.calls("setWebhook")
    assert (told.params["secret_token"], told.params["allowed_updates"]) == (SECRET, list(KINDS))
    assert told.params.get("drop_pending_updates") in (None, False)
    assert bench.world.calls("getUpdates") == []


def test_what_is_brought_is_confirmed_when_it_is_safe(bench: Bench) -> None:
    async def work() -> None:
        async with bench.connected(**door()) as adapter:
            bench.ledger.refusals = 1
            away = await call(adapter)
            assert (away.status_code, away.headers["Retry-After"]) == (503, "5")
            assert bench.ledger.accepted == []
            for _ in range(2):
                assert (await call(adapter)).status_code == 200
            assert (await call(adapter, b'{"update_id": 2, "poll": {}}')).status_code == 200
            assert (await call(adapter, b"[1, 2]")).status_code == 200

    run(work())
    assert bench.ledger.texts == ["hello"]
    assert bench.ledger.cursors == {}


@pytest.mark.parametrize("secret", ["", SECRET[:-1], SECRET + "x", SECRET.upper(), "\xff\xfe"])
def test_nobody_is_heard_without_the_secret(bench: Bench, secret: str, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with bench.connected(**door()) as adapter:
            async with httpx2.AsyncClient() as client:
                headers = [(HEADER.encode(), secret.encode("latin-1"))] if secret else []
                answer = await client.post(f"http://127.0.0.1:{adapter.port}/in", content=BODY, headers=headers)
            assert answer.status_code == 401

    run(work())
    assert bench.ledger.brought == []
    assert SECRET not in caplog.text


def test_who_guesses_waits_and_telegram_does_not(bench: Bench) -> None:
    async def work() -> None:
        async with bench.connected(**door()) as adapter:
            found = [(await call(adapter, secret="guess")).status_code for _ in range(12)]
            assert found == [401] * 10 + [429] * 2
            assert (await call(adapter)).status_code == 200

    run(work())


@pytest.mark.parametrize(
    ("body", "path", "headers", "status"),
    [
        (b"x" * 1_100_000, "/in", {}, 413),
        (b"no json", "/in", {}, 200),
        (b"\xff\xfe", "/in", {}, 200),
        (b"[" * 100 + b"]" * 100, "/in", {}, 200),
        (BODY, "/elsewhere", {}, 404),
        (BODY, "/in", {"Host": "evil.example"}, 403),
        (BODY, "/in", {"Host": "bot.example.org"}, 200),
    ],
)
def test_what_is_no_update_is_refused_or_left_aside(
    bench: Bench, body: bytes, path: str, headers: dict[str, str], status: int
) -> None:
    """What Telegram itself brings is not brought again for ever because it makes no sense."""

    async def work() -> None:
        async with bench.connected(**door(hosts=["bot.example.org"])) as adapter:
            assert (await call(adapter, body, path, **headers)).status_code == status

    run(work())


def test_a_port_that_is_taken_is_told(bench: Bench) -> None:
    async def work() -> None:
        async with bench.connected(**door()) as adapter:
            with pytest.raises(CannotListen, match=r"choose another platforms\.telegram\.webhook\.port"):
                await bench.adapter(**door(port=adapter.port)).run(bench.ledger)

    run(work())


def test_it_is_noticed_when_telegram_calls_elsewhere_or_in_vain(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(platform, "WATCH_SECONDS", 0.1)

    async def work() -> None:
        adapter = bench.adapter(**door())
        running = asyncio.create_task(adapter.run(bench.ledger))
        await bench.until(lambda: bench.ledger.is_connected)
        bench.world.trouble("drop", "getWebhookInfo")
        bench.world.say(ALICE, ALICE, "is anybody there?")
        await bench.until(lambda: "in vain: Connection failed" in caplog.text)
        async with bench.adapter()._line.opened() as line:
            await line.delete_webhook()
        with pytest.raises(TelegramFailed, match="Another program has told Telegram"):
            await running

    run(work())
    assert bench.world.untaken("getWebhookInfo")
