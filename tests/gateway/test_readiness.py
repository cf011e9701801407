"""Whether a gateway is alive and ready, as it is judged and as it is in one that runs."""

import asyncio
import time
from typing import Any

import pytest
from lane_house import Building
from lane_rows import say
from secret_shapes import URL_SAFE, key
from waiting import DEADLINE, until

from segue.core.errors import StoreFull
from segue.gateway import probing
from segue.gateway.metrics import Counters
from segue.gateway.probing import Probe
from segue.gateway.readiness import LinkState, StoreState, health, readiness
from segue.storage.store import SqlStore
from segue.testing import Stage

UP, DOWN = LinkState("telegram", "", True), LinkState("slack", "work", False, "No route to host")
JOBS = LinkState("cron", "", True)
STANDBY = LinkState("matrix", "", False, None, "process 7 on far")
HOOKS = LinkState("webhook", "", True, is_listener=True)
WELL: dict[str, Any] = {"store": StoreState(), "is_begun": True, "is_draining": False}


@pytest.mark.on_file
@pytest.mark.parametrize(
    ("links", "how", "reasons", "notes"),
    [
        ([UP, JOBS], {}, (), ()),
        ([UP, DOWN, JOBS], {}, (), ("slack:work is not connected: No route to host.",)),
        ([JOBS], {}, (), ()),
        ([], {}, (), ()),
        ([STANDBY, JOBS], {}, (), ("Standby for matrix: the gateway in process 7 on far holds it.",)),
        (
            [STANDBY, DOWN],
            {},
            (),
            (
                "slack:work is not connected: No route to host.",
                "Standby for matrix: the gateway in process 7 on far holds it.",
            ),
        ),
        ([UP], {"store": StoreState(None, 2, 9.0)}, (), ()),
        (
            [UP],
            {"store": StoreState(None, 2, 75.0)},
            (),
            ("No process works on 2 messages, the oldest accepted 75 s ago; `segue doctor` names the lanes.",),
        ),
        (
            [DOWN, JOBS],
            {},
            ("No platform is connected.", "slack:work is not connected: No route to host."),
            (),
        ),
        ([UP], {"store": StoreState("The disk is full.")}, ("The store cannot be used: The disk is full.",), ()),
        ([UP], {"is_begun": False}, ("The gateway is just beginning.",), ()),
        ([UP], {"is_draining": True}, ("The gateway takes nothing more in: it is about to end.",), ()),
        (
            [LinkState("rude", "", False, "\x1b[2Jno\nway" + "!" * 500)],
            {},
            ("No platform is connected.", "rude is not connected: no way" + "!" * 193 + "…"),
            (),
        ),
    ],
)
def test_what_speaks_against_giving_work_is_said(
    links: list[LinkState], how: dict[str, Any], reasons: tuple[str, ...], notes: tuple[str, ...]
) -> None:
    told = readiness(links, **WELL | how)
    assert (told.is_ready, told.reasons, told.notes) == (not reasons, reasons, notes)


@pytest.mark.on_file
@pytest.mark.parametrize(
    ("links", "is_standby"),
    [
        ([UP, JOBS], False),
        ([STANDBY, UP], False),
        ([STANDBY], True),
        ([STANDBY, HOOKS], True),
        ([DOWN, HOOKS], False),
        ([], False),
    ],
)
def test_a_gateway_is_standby_when_others_hold_all_that_only_one_can(links: list[LinkState], is_standby: bool) -> None:
    assert readiness(links, **WELL).is_standby == is_standby


@pytest.mark.on_file
def test_no_sentence_holds_a_secret() -> None:
    token = key("Telegram token", "123456789:AA", URL_SAFE, 34).secret
    link = LinkState("telegram", "", False, f"ConnectionError: https://api.telegram.org/bot{token}/getMe")
    told = readiness([link], **WELL)
    assert "redacted: Telegram token" in told.reasons[1]
    assert token not in str(told)


@pytest.mark.on_file
def test_whoever_answers_is_alive() -> None:
    assert health(10.0, 25.0) == (True, 15.0)


def full(*_: object, **__: object) -> None:
    raise StoreFull("The disk is full.")


def test_a_gateway_is_ready_from_its_beginning_to_its_end(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "PATIENCE", DEADLINE)
    monkeypatch.setattr(probing, "FRESH_SECONDS", 0.0)
    building = Building(store, Stage())
    probe, found = Probe(building.gateway, Counters([])), {}

    async def work() -> None:
        found["before"] = await probe.readiness()
        await until(lambda: building.gateway.connections[0].link.is_up)
        found["up"] = await probe.readiness()
        with monkeypatch.context() as patch:
            for name in ("write", "write_at_once", "write_together"):
                patch.setattr(store, name, full)
            found["full"] = await probe.readiness()
        found["well again"] = await probe.readiness()
        await building.gateway.desk.close()
        found["leaving"] = await probe.readiness()
        assert probe.health().is_alive

    building.run(work)
    assert {name: one.is_ready for name, one in found.items()} == {
        "before": False,
        "up": True,
        "full": False,
        "well again": True,
        "leaving": False,
    }
    assert found["full"].reasons == ("The store cannot be used: The disk is full.",)


def test_messages_that_no_process_works_on_are_found(store: SqlStore) -> None:
    say(store, "unattended", at=time.time() - 900)
    building = Building(store, Stage())

    async def look() -> StoreState:
        try:
            return await Probe(building.gateway, Counters([])).store()
        finally:
            building.gateway.close()

    found = asyncio.run(look())
    assert (found.trouble, found.unattended) == (None, 1)
    assert found.unattended_seconds >= 900


@pytest.mark.on_file
def test_a_store_that_hangs_is_asked_once_and_keeps_nobody_waiting(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "PATIENCE", 0.2)
    monkeypatch.setattr(probing, "FRESH_SECONDS", 0.0)
    building = Building(store, Stage())
    probe, asked = Probe(building.gateway, Counters([])), 0
    released = asyncio.Event()

    async def hang(*_: object, **__: object) -> None:
        nonlocal asked
        asked += 1
        await released.wait()

    async def work() -> None:
        await until(lambda: building.gateway.connections[0].link.is_up)
        with monkeypatch.context() as patch:
            patch.setattr(type(building.gateway.door), "write", hang)
            async with asyncio.timeout(DEADLINE):  # what hangs goes on hanging
                told = await asyncio.gather(*(probe.readiness() for _ in range(20)))
                told.append(await probe.readiness())
            assert asked == 1
            released.set()
        assert {one.is_ready for one in told} == {False}
        assert told[0].reasons == ("The store cannot be used: It has not answered for 0.2 seconds.",)

    building.run(work)
