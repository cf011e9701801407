"""A platform stays connected: what goes wrong where messages come in stops nothing that goes out, and passes."""

import asyncio
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from lane_house import Building, HeldModel, dm
from waiting import DEADLINE, until

from segue import app
from segue.app import checking, connecting
from segue.app.serving import Serving
from segue.config import settings_from
from segue.core.errors import InvalidSettings, StoreFull
from segue.core.inbound import Inbound, Receipt
from segue.core.leases import GATEWAY, Lease, Run, platform_lease
from segue.core.links import LinkState
from segue.core.outbox import What
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.gateway import probing
from segue.gateway.connecting import MOST_FAILURES, Connection, Link
from segue.gateway.metrics import Counters
from segue.gateway.probing import Probe
from segue.ports.platform import Intake, Post, Sent
from segue.ports.store import Transaction
from segue.sessions.delivering import Envelope, Posting, post
from segue.sessions.watching import watch
from segue.storage.store import SqlStore
from segue.testing import ScriptedPlatform, Stage
from segue.testing.platform import TRAITS
from segue.upkeep.living import this_run


@pytest.fixture(autouse=True)
def _brief_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("connecting.FIRST_PAUSE", "delivery.LOOK_SECONDS"):
        monkeypatch.setattr(f"segue.gateway.{name}", 0.05)


class Fragile(ScriptedPlatform):
    """Fails for some times, once it has been connected for a moment; without an error it only ends."""

    def __init__(self, stage: Stage, error: BaseException | None = None, times: int = 1) -> None:
        super().__init__(stage)
        self.begun = 0
        self.may_be_well = asyncio.Event()
        self.may_be_well.set()
        self._error, self._times = error, times

    async def run(self, intake: Intake) -> None:
        self.begun += 1
        if self.begun > self._times:
            await self.may_be_well.wait()
            await super().run(intake)
        await asyncio.sleep(0.01)
        if self._error is not None:
            raise self._error


@pytest.mark.on_file
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ConnectionError("reset"), "ConnectionError: reset"),
        (None, "The connection came to an end."),
        (asyncio.CancelledError(), "The connection came to an end."),
    ],
)
def test_an_adapter_that_fails_or_ends_is_begun_again(store: SqlStore, error: BaseException | None, told: str) -> None:
    stage = Stage()
    platform = Fragile(stage, error)
    platform.may_be_well.clear()
    building = Building(store, stage, only=[platform])
    link = building.gateway.connections[0].link

    async def work() -> None:
        await until(lambda: link.failures)
        assert (link.is_up, link.trouble) == (False, told)
        platform.may_be_well.set()
        stage.say(dm(), "hello")
        await building.quiet()

    building.run(work)
    assert platform.begun == 2
    assert stage.posted_to("alice") == ["You said: hello"]


@pytest.mark.on_file
def test_who_has_been_connected_for_a_while_has_not_failed_before(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.gateway.connecting.STEADY_SECONDS", 0.1)
    stage = Stage()
    platform = Fragile(stage, ConnectionError("reset"), times=2)
    platform.may_be_well.clear()
    building = Building(store, stage, only=[platform])
    link = building.gateway.connections[0].link

    async def work() -> None:
        await until(lambda: platform.begun == 3)
        assert link.failures == 2
        platform.may_be_well.set()
        await until(lambda: link.is_up and not link.failures)

    building.run(work)
    assert platform.begun == 3


def test_a_gateway_stands_by_while_a_living_one_is_connected_and_takes_over_from_it(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "segue")
    stage, tries = Stage(), 0
    try_to_take = Connection._take

    def counted(connection: Connection, tx: Transaction) -> Lease | Run:
        nonlocal tries
        tries += 1
        return try_to_take(connection, tx)

    monkeypatch.setattr(Connection, "_take", counted)
    monkeypatch.setattr(probing, "PATIENCE", DEADLINE)
    building = Building(store, stage, is_gone=lambda _: False)
    link = building.gateway.connections[0].link
    store.write(OWNER, _held_elsewhere)

    async def work() -> None:
        stage.say(dm(), "hello")
        await until(lambda: tries >= 3)
        assert (link.state, link.failures) == (LinkState.STANDBY, 0)
        told = await Probe(building.gateway, Counters([])).readiness()
        assert (told.is_ready, told.is_standby) == (True, True)
        assert told.notes == ("Standby for scripted: the gateway in process 8 on there holds it.",)
        assert [one.getMessage() for one in caplog.records if one.levelno > logging.INFO] == []
        store.write(OWNER, lambda tx: tx.leases.change_run("other", ended_at=1.0))
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice") == ["You said: hello"]
    assert caplog.text.count("scripted: standing by, the gateway in process 8 on there is connected") == 1
    assert caplog.text.count("scripted: took over from the gateway in process 8 on there") == 1


def _held_elsewhere(tx: Transaction) -> None:
    """Another gateway is connected."""
    tx.leases.add_run(Run("other", "segue gateway", "there", "boot", 8, "1", tx.leases.now(), tx.leases.now()))
    tx.leases.take(platform_lease("scripted", ""), "other", "owner", 3600.0)


@pytest.mark.parametrize("is_listener", [True, False])
def test_what_is_called_listens_in_every_gateway_and_one_of_them_sends(store: SqlStore, is_listener: bool) -> None:
    stage = Stage()
    platform = ScriptedPlatform(stage, traits=TRAITS._replace(is_listener=is_listener))
    building = Building(store, stage, only=[platform], is_gone=lambda _: False)
    connection = building.gateway.connections[0]
    store.write(OWNER, _held_elsewhere)

    async def work() -> None:
        stage.say(dm(), "hello")
        if is_listener:
            await until(lambda: connection.link.is_up)
            await until(lambda: store.read(OWNER, lambda tx: tx.outbox.listed(["pending"])), "an answer to be sent")
        else:
            await until(lambda: connection.link.is_standby)
            assert stage.waiting(), "nobody has taken it in"
        assert not connection.delivery.is_running
        assert stage.posted == []
        store.write(OWNER, lambda tx: tx.leases.change_run("other", ended_at=1.0))
        await building.quiet()

    building.run(work)
    assert stage.posted_to("alice") == ["You said: hello"]


def test_what_listened_before_the_lease_was_ours_is_known_as_connected(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.gateway.connecting.STEADY_SECONDS", 3600.0)
    stage = Stage()
    platform = ScriptedPlatform(stage, traits=TRAITS._replace(is_listener=True))
    building = Building(store, stage, only=[platform], is_gone=lambda _: False)
    link = building.gateway.connections[0].link
    store.write(OWNER, _held_elsewhere)

    def is_connected() -> bool:
        watched = store.read(OWNER, watch, lambda _: False)
        return [row.state for row in watched.platforms] == [LinkState.CONNECTED]

    async def work() -> None:
        await until(lambda: link.is_up)
        store.write(OWNER, lambda tx: tx.leases.change_run("other", ended_at=1.0))
        await until(is_connected, "the status of the platform")

    building.run(work)


@pytest.mark.on_file
def test_what_cannot_listen_here_does_not_give_way_and_goes_on_sending(store: SqlStore) -> None:
    stage = Stage()
    platform = Fragile(stage, ConnectionError("in use"), times=MOST_FAILURES + 1)
    platform.traits = platform.traits._replace(is_listener=True)
    building = Building(store, stage, only=[platform])
    connection = building.gateway.connections[0]

    async def work() -> None:
        await until(lambda: platform.begun > MOST_FAILURES)
        leave_a_letter(store)
        await until(lambda: stage.posted_to("alice"))
        await until(lambda: connection.link.is_up)

    building.run(work)


class Slow(Fragile):
    """Is at sending until it has been begun again."""

    async def send(self, post: Post) -> Sent:
        sent = await super().send(post)
        await until(lambda: self.begun >= 2)
        return sent


@pytest.mark.on_file
def test_what_is_being_sent_outlives_an_adapter_that_fails(store: SqlStore) -> None:
    stage = Stage(has_key=False)
    platform = Slow(stage, ConnectionError("reset"), times=MOST_FAILURES - 1)
    building = Building(store, stage, only=[platform])
    leave_a_letter(store)
    building.run(building.quiet)
    assert platform.begun >= 2
    assert stage.posted_to("alice") == ["Good news."]


def test_an_adapter_that_fails_too_often_gives_way_to_another_gateway(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.gateway.connecting.KEPT_SECONDS", 0.1)
    stage, now = Stage(), time.time()
    runs = [Run(name, "segue gateway", name, "boot", 7, "1", now, now) for name in ("one", "two")]
    broken = Fragile(stage, ConnectionError("reset"), times=99)
    one = Building(store, stage, name="one", run=runs[0], only=[broken], is_gone=lambda _: False)
    two = Building(store, stage, name="two", run=runs[1], is_gone=lambda _: False)

    async def work() -> None:
        await until(lambda: broken.begun)
        stop = asyncio.Event()
        living = asyncio.create_task(two.gateway.run(stop))
        try:
            stage.say(dm(), "hello")
            await two.quiet()
        finally:
            stop.set()
            await living
            two.gateway.close()

    one.run(work)
    assert broken.begun >= MOST_FAILURES
    assert stage.posted_to("alice") == ["You said: hello"]


def test_while_nothing_can_be_stored_what_is_to_be_sent_is_sent_and_it_goes_on_soon(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage()
    building = Building(store, stage)
    desk, link = building.gateway.desk, building.gateway.connections[0].link
    receive, tries = desk.receive, 0

    async def full(_inbound: Inbound) -> Receipt:
        nonlocal tries
        tries += 1
        raise StoreFull("The disk is full.")

    async def work() -> None:
        monkeypatch.setattr(desk, "receive", full)
        stage.say(dm("bob"), "hello")
        await until(lambda: tries == 1)
        leave_a_letter(store)
        await until(lambda: stage.posted_to("alice"))
        await until(lambda: tries >= 4)
        assert (link.trouble, link.failures) == ("The disk is full.", 0)
        monkeypatch.setattr(desk, "receive", receive)
        await until(lambda: stage.posted_to("bob"))

    building.run(work)


def test_what_is_answered_while_a_gateway_ends_is_sent_though_somebody_writes(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.gateway.gateway.LEAVING_SECONDS", DEADLINE)
    stage, model = Stage(), HeldModel()
    building = Building(store, stage, model=model)
    building.gateway.drain_seconds = DEADLINE

    async def work() -> None:
        stop = asyncio.Event()
        living = asyncio.create_task(building.gateway.run(stop))
        stage.say(dm(), "one two three")
        await building.asked()
        stop.set()
        await until(lambda: not building.gateway.desk.is_open)
        stage.say(dm("bob"), "are you there?")
        looks = stage.looks
        await until(lambda: stage.looks >= looks + 2, "somebody who looks at what was said")
        model.release()
        await living
        building.gateway.close()

    asyncio.run(work())
    assert stage.posted_to("alice") == ["You said: one two three"]


def leave_a_letter(store: SqlStore) -> None:
    envelope = Envelope("agent:main:scripted:dm:alice", "scripted:alice", "", dm(), "news")
    posting = Posting(lambda _platform, _account: TRAITS)
    store.write(OWNER, lambda tx: post(tx, posting, envelope, "Good news.", What.NOTICE, 1.0))


class Silent(ScriptedPlatform):
    """Waits for somebody who does not answer, and gives up after a while."""

    begun = 0

    async def run(self, intake: Intake) -> None:
        self.begun += 1
        if self.begun > MOST_FAILURES:
            await asyncio.Event().wait()
        await asyncio.sleep(0.2)
        raise ConnectionError("Nobody answered.")


@pytest.mark.on_file
def test_who_is_waited_for_has_not_been_connected_however_long_it_takes(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.gateway.connecting.STEADY_SECONDS", 0.02)
    monkeypatch.setattr("segue.gateway.connecting.KEPT_SECONDS", 0.1)
    states, come_to = set[str](), Link.come_to

    def noted(link: Link, state: LinkState) -> bool:
        states.add(state)
        return come_to(link, state)

    monkeypatch.setattr(Link, "come_to", noted)
    platform = Silent(Stage())
    building = Building(store, Stage(), only=[platform])
    link = building.gateway.connections[0].link

    async def work() -> None:
        await until(lambda: link.failures >= MOST_FAILURES and link.state is LinkState.RESTING)
        await until(lambda: [one.state for one in store.read(OWNER, lambda tx: tx.leases.links())] == ["resting"])

    building.run(work)
    assert states == {"connecting", "failed", "resting"}
    (row,) = store.read(OWNER, lambda tx: tx.leases.links())
    assert row.failures >= MOST_FAILURES  # a slow machine has time for another try
    assert row.trouble == "ConnectionError: Nobody answered."


@pytest.mark.parametrize("said", [None, {}, {"enabled": True}])
@pytest.mark.parametrize("name", ["api_server", "batch", "cron"])
def test_what_every_gateway_has_may_be_named(home: Path, name: str, said: dict[str, Any] | None) -> None:
    settings = settings_from({"platforms": {name: said}}, home, {})
    assert checking.troubles(settings, {}) == []
    with app.open_store(chosen=settings) as store:
        cast = connecting.cast_of(settings, store)
    assert sorted(one.name for one in cast.platforms) == ["api_server", "batch", "cron"]
    assert cast.missing == {}


@pytest.mark.parametrize("name", ["api_server", "batch", "cron"])
def test_what_every_gateway_has_knows_no_settings(home: Path, name: str) -> None:
    settings = settings_from({"platforms": {name: {"port": 1}}}, home, {})
    (told,) = checking.troubles(settings, {})
    assert told.startswith(f"platforms.{name} has the unknown key 'port'")
    with app.open_store(chosen=settings) as store, pytest.raises(InvalidSettings, match="unknown key 'port'"):
        connecting.cast_of(settings, store)


@pytest.mark.on_file
def test_hooks_that_are_set_wrong_keep_nobody_from_beginning(home: Path) -> None:
    settings = settings_from({"platforms": {"webhook": {"hooks": {"ci": {"sekret": "x"}}}}}, home, {})
    with app.open_store(chosen=settings) as store:
        cast = connecting.cast_of(settings, store)
        asyncio.run(Serving(settings, store, this_run(GATEWAY), cast.platforms, lambda: None).close())
    assert list(cast.missing) == ["webhook"]


def test_an_adapter_of_others_that_cannot_be_made_keeps_nobody_from_beginning(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clumsy(own: Mapping[str, Any]) -> ScriptedPlatform:
        return own["token"]  # type: ignore[no-any-return]

    def unmet(_own: Mapping[str, Any]) -> ScriptedPlatform:
        raise ImportError("libfoo.so is not there")

    known = {"clumsy": clumsy, "unmet": unmet}
    monkeypatch.setattr(connecting, "_connect", lambda name: connecting._of_others(known[name]))
    settings = settings_from({"platforms": {"clumsy": {}, "unmet": {}}}, home, {})
    with app.open_store(chosen=settings) as store:
        cast = connecting.cast_of(settings, store)
    assert {one.name for one in cast.platforms} == {"cron", "batch", "api_server"}
    assert cast.missing == {
        "clumsy": "platforms.clumsy cannot be made by what is installed for it: KeyError: 'token'.",
        "unmet": "platforms.unmet needs what is not installed here (libfoo.so is not there).",
    }
