"""Where the answers of jobs and hooks go: which chat a route means, and what may be sent there."""

import asyncio
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from lane_house import Building
from waiting import DEADLINE, until

from segue.app.connecting import places_of
from segue.config import Settings
from segue.core.inbound import Inbound
from segue.core.outbox import OutboxState
from segue.core.routes import parse_route
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.core.sending import Action, Match, SendPolicy, SendRule
from segue.core.sources import SessionSource
from segue.sessions.handing import find_place, set_home
from segue.storage.store import SqlStore
from segue.testing import Stage

HOME = SessionSource(platform="scripted", chat_id="home", chat_type="channel")
NO_GROUPS = SendPolicy((SendRule(Action.DENY, Match(chat_type="group")),))


def talk_in(store: SqlStore, chat_id: str, chat_type: str) -> None:
    """Somebody talks to the agent there."""
    stage = Stage()
    building = Building(store, stage)

    async def work() -> None:
        stage.say(SessionSource(platform="scripted", chat_id=chat_id, chat_type=chat_type, user_id="alice"), "hello")
        await building.quiet()

    building.run(work)


def test_a_route_without_a_chat_leads_to_the_home_channel(store: SqlStore) -> None:
    assert store.read(OWNER, find_place, parse_route("scripted"), {}) is None
    assert store.read(OWNER, find_place, parse_route("scripted"), {"scripted": HOME}) == HOME
    store.write(OWNER, set_home, HOME)
    assert store.read(OWNER, find_place, parse_route("scripted"), {}) == HOME


@pytest.mark.parametrize("text", ["scripted:-100", "scripted:group:-200"])
def test_rules_for_groups_hold_for_what_is_delivered_to_one(store: SqlStore, text: str) -> None:
    talk_in(store, "-100", "group")
    stage = Stage()
    building = Building(store, stage, name="another", policy=NO_GROUPS)
    route = store.read(OWNER, find_place, parse_route(text), {})
    hook = SessionSource(platform="scripted", chat_id="news", chat_type="channel")

    async def work() -> None:
        await building.gateway.desk.receive(Inbound(hook, "1", "news", is_person=False, is_offered=True, route=route))
        await building.quiet()

    building.run(work)
    assert stage.posted == []
    [letter] = store.read(OWNER, lambda tx: tx.outbox.listed([OutboxState.SUPPRESSED]))
    assert letter.reason == "The send policy denies chat_type group."


class Stuck:
    """A store that answers when it is told to."""

    is_near = is_asked = False

    def __init__(self) -> None:
        self.answers = threading.Event()

    def read(self, *_: Any) -> SessionSource:
        self.is_asked = True
        assert self.answers.wait(DEADLINE), "whoever asks keeps waiting who could answer"
        return HOME


def test_nobody_waits_for_a_store_that_is_asked_where_a_route_leads(tmp_path: Path) -> None:
    store = Stuck()

    async def work() -> None:
        places = places_of(Settings(tmp_path), cast(SqlStore, store))
        asking = asyncio.ensure_future(places(parse_route("scripted")))
        await until(lambda: store.is_asked)
        store.answers.set()
        assert await asking == HOME

    asyncio.run(work())
