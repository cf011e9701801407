"""Two gateways on one database: both take calls, one is connected, and the other one says that it stands by."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hooks import HOOK, Caller
from lane_house import dm
from open_door import OpenDoor, probe_for_as_long_as_it_takes
from postgres_server import Server
from serving_house import use_obedient_model, write_settings
from waiting import DEADLINE, until

from segue.core.credentials import Level
from segue.gateway import probing
from segue.platforms.webhook.platform import WebhookPlatform
from segue.testing import Stage

Doors = tuple[OpenDoor, OpenDoor]


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def doors(postgres_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: Stage) -> Iterator[Doors]:
    use_obedient_model(monkeypatch)
    probe_for_as_long_as_it_takes(monkeypatch)
    monkeypatch.setattr(probing, "FRESH_SECONDS", 0.0)
    settings: dict[str, Any] = {
        "database": postgres_server.new_database(),
        "gateway": {"port": 0},
        "platforms": {"webhook": {"port": 0, "hooks": {"github": HOOK}}},
    }
    homes = [write_settings(tmp_path / name, **settings) for name in ("blue", "green")]
    opened = [OpenDoor(home, {"scripted": stage}) for home in homes]
    yield opened[0], opened[1]
    for door in opened:
        door.close()


async def ready(door: OpenDoor, token: str) -> dict[str, Any]:
    async with httpx2.AsyncClient(timeout=DEADLINE, verify=False) as client:
        answer = await client.get(f"{door.url}/ready", headers={"Authorization": f"Bearer {token}"})
    found: dict[str, Any] = answer.json()
    return found | {"code": answer.status_code}


async def is_answered(door: OpenDoor, token: str, text: str) -> None:
    """A hook is taken, a completion is answered, and a method is there."""
    (hooks,) = (one for one in door._programs if isinstance(one, WebhookPlatform))
    await until(hooks.is_listening.is_set)
    caller = Caller(hooks.port)
    hooked = await caller.call({"action": text, "pull_request": {"title": text}})
    await caller.close()
    assert (hooked.status_code, hooked.json()) == (200, {"status": "accepted"})
    said = {"model": "main", "messages": [{"role": "user", "content": text}]}
    async with httpx2.AsyncClient(timeout=DEADLINE, verify=False) as client:
        shown = {"Authorization": f"Bearer {token}"}
        answer = await client.post(f"{door.url}/v1/chat/completions", headers=shown, json=said)
    assert answer.json()["choices"][0]["message"]["content"] == f"You said: {text}"
    assert (await door.ask(token, "health"))["is_taking_in"]


def test_both_take_calls_and_the_one_that_stands_by_is_ready_without_warnings_and_takes_over(
    doors: Doors, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "segue")
    blue, green = doors
    token = blue.token("owner", Level.WRITE)

    async def beside() -> None:
        await until(lambda: "scripted: standing by" in caplog.text)
        stands_by = await ready(green, token)
        assert (stands_by["code"], stands_by["status"], stands_by["standby"]) == (200, "ready", True)
        notes = {note.partition(":")[0] for note in stands_by["notes"]}
        assert notes == {"Standby for scripted", "Standby for cron"}
        for door, text in ((blue, "to the one"), (green, "to the other")):
            await is_answered(door, token, text)
        stage.say(dm("owner"), "hello")
        await until(lambda: stage.posted_to("owner") == ["You said: hello"])
        assert [one.getMessage() for one in caplog.records if one.levelno > logging.INFO] == []
        stop.set()
        await until(lambda: "scripted: took over" in caplog.text)
        stage.say(dm("owner"), "still there?")
        await until(lambda: len(stage.posted_to("owner")) == 2)
        assert "standby" not in await ready(green, token)

    async def both() -> None:
        async def wait() -> None:
            await stop.wait()

        async with asyncio.TaskGroup() as group:
            group.create_task(blue.beside(wait))
            await until(lambda: "scripted is connected" in caplog.text)
            group.create_task(green.beside(beside))

    stop = asyncio.Event()
    asyncio.run(both())
