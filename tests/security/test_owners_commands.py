"""What only an owner may command nobody else commands, whichever way they come; and an owner does."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hooks import SECRET, Caller
from hooks import House as HookHouse
from lane_house import Building, dm

from segue.core.access import OWNER_COMMANDS, AccessRules, DmAccess
from segue.core.inbound import Inbound
from segue.core.keys import KeyRules
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sources import CRON, SessionSource
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import SqlStore
from segue.testing import Stage

OPEN = AccessRules(
    DmAccess.OPEN, groups=frozenset({"*"}), mention=False, allow_bots=True, allow_roles=frozenset({"staff"})
)
KEYS = KeyRules(owners=frozenset({"scripted:alice"}))
COMMANDS = ["/restart", "/restart now", "/RESTART", " /restart", "/restart@us", "@us /restart"]


def room(person: str, chat_type: str = "group", **more: Any) -> SessionSource:
    return SessionSource(platform="scripted", chat_id="room", chat_type=chat_type, user_id=person, **more)


OTHERS = {
    "in private": dm("mallory"),
    "in a group": room("mallory"),
    "in a channel": room("mallory", "channel"),
    "in a thread": room("mallory", "thread", parent_chat_id="hall", thread_id="7"),
    "by a role": room("mallory", role_authorized=True),
    "under an owner's name": SessionSource(platform="scripted", chat_id="m", user_id="m", user_name="alice"),
    "as a bot with the owner's id": dm("alice", is_bot=True),
    "as a bot among others": room("alice", is_bot=True),
    "on another account's id": SessionSource(platform="scripted", chat_id="alice", user_id="alice\u200b"),
    "in the owner's chat": SessionSource(platform="scripted", chat_id="alice", user_id="mallory"),
}


@pytest.fixture
def store(home: Path) -> Any:
    with SqlStore(SqliteEngine(home / "state.db")) as opened:
        yield opened


def building_in(store: SqlStore, stage: Stage) -> Building:
    return Building(store, stage, keys=KEYS, access=OPEN)


@pytest.mark.parametrize("way", OTHERS)
def test_nobody_else_commands(store: SqlStore, way: str) -> None:
    stage = Stage()
    building = building_in(store, stage)

    async def work() -> None:
        for line in COMMANDS:
            stage.say(OTHERS[way], line)
        await building.quiet()

    building.run(work)
    assert building.restarts == 0
    assert not [one for one in building.model.asked if "restart" in str(one.conversation).lower()], "no model reads it"


def test_a_message_that_was_edited_into_a_command_is_judged_like_any_other(store: SqlStore) -> None:
    stage = Stage()
    building = building_in(store, stage)

    async def work() -> None:
        name = stage.say(dm("mallory"), "hello")
        await building.quiet()
        stage.say(dm("mallory"), "/restart", message_id=name, edit="1")
        await building.quiet()

    building.run(work)
    assert building.restarts == 0


def test_what_is_passed_on_is_the_passers_word(store: SqlStore) -> None:
    """A message that was forwarded comes from whoever forwards it; what it quotes gives no commands."""
    stage = Stage()
    building = building_in(store, stage)

    async def work() -> None:
        stage.say(dm("mallory"), "/restart")  # as alice wrote it elsewhere, and mallory passed it on
        stage.say(dm("mallory"), "Alice wrote:\n/restart")
        stage.say(dm("alice"), "Mallory wrote:\n/restart")
        await building.quiet()

    building.run(work)
    assert building.restarts == 0


def test_a_job_gives_no_commands_although_it_is_the_owners(store: SqlStore) -> None:
    building = building_in(store, Stage())

    async def work() -> None:
        source = SessionSource(platform=CRON, chat_id="job", chat_type="channel")
        for number, line in enumerate(COMMANDS):
            await building.gateway.desk.receive(Inbound(source, f"m{number}", line, is_person=False))
        await building.quiet()

    building.run(work)
    assert building.restarts == 0


def test_a_hook_gives_no_commands_although_it_is_the_owners(store: SqlStore) -> None:
    house = HookHouse(store, {"github": {"secret": SECRET, "template": "/restart"}}, keys=KEYS, access=OPEN)

    async def work(caller: Caller) -> None:
        assert (await caller.call({})).status_code == 200

    house.run(work)
    assert house.building.restarts == 0


def test_an_owner_does(store: SqlStore) -> None:
    """The same door, so that the tests above would notice if nobody could."""
    stage = Stage()
    building = building_in(store, stage)

    async def work() -> None:
        stage.say(dm("alice"), "/restart")
        await asyncio.sleep(0)
        await building.quiet()

    building.run(work)
    assert building.restarts == 1
    assert "restart" in OWNER_COMMANDS
    assert store.read(OWNER_AT_CONSOLE, lambda tx: tx.inbox.listed(["done"]))


def test_without_that_judgement_others_would(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.sessions.admitting.is_withheld", lambda *_, **__: False)
    stage = Stage()
    building = building_in(store, stage)

    async def work() -> None:
        stage.say(dm("mallory"), "/restart")
        await building.quiet()

    building.run(work)
    assert building.restarts == 1
