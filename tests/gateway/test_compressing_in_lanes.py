"""`/compress` in a lane: done once and told, whatever happens in between."""

import logging
from pathlib import Path

import pytest
from lane_house import Building, dm
from serving_house import Served, use_obedient_model, write_settings
from waiting import until

from segue.core.errors import StoreFault
from segue.core.inbox import Entry
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.gateway.clerk import Told
from segue.gateway.holding import LaneHolder
from segue.ports import failpoints
from segue.ports.failpoints import Point
from segue.ports.store import Transaction
from segue.sessions.reading import view_of
from segue.storage.store import SqlStore
from segue.testing import Stage


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What broke off is tried again soon."""
    monkeypatch.setattr("segue.gateway.lanes.LOOK_SECONDS", 0.05)


def posted_after(building: Building) -> list[str]:
    async def work() -> None:
        for line in ("the leeks are green", "/compress the leeks"):
            building.stage.say(dm(), line)
            await building.quiet()

    building.run(work)
    return building.stage.posted_to("alice")[1:]


def test_what_is_cut_off_is_done_again_and_told_once(store: SqlStore) -> None:
    tried: list[str] = []

    async def compress(_holder: LaneHolder, _entry: Entry, focus: str, _told: Told) -> str:
        tried.append(focus)
        if len(tried) == 1:
            raise StoreFault("The disk is gone.")
        return "Compressed."

    assert posted_after(Building(store, Stage(), compress=compress)) == ["Compressed."]
    assert tried == ["the leeks", "the leeks"]


def test_nothing_is_compressed_that_was_cancelled_meanwhile(store: SqlStore) -> None:
    stage = Stage()

    async def compress(_holder: LaneHolder, _entry: Entry, _focus: str, told: Told) -> str:
        stage.say(dm(), "/stop")
        await until(lambda: store.read(OWNER, lambda tx: tx.inbox.listed(("cancelled",))))
        store.write(OWNER, told, "Compressed.")
        return "Compressed."

    assert posted_after(Building(store, stage, compress=compress)) == ["1 waiting message cancelled."]


def test_what_goes_wrong_is_told_and_not_tried_for_ever(store: SqlStore, caplog: pytest.LogCaptureFixture) -> None:
    async def compress(_holder: LaneHolder, _entry: Entry, _focus: str, _told: Told) -> str:
        raise RuntimeError("An odd model.")

    with caplog.at_level(logging.CRITICAL):
        posted = posted_after(Building(store, Stage(), compress=compress))
    assert posted == ["The conversation could not be compressed; it stays as it is."]


@pytest.mark.parametrize(("protect_last_n", "kept"), [(20, ["fact 6", "fact 7"]), (1, ["fact 7"])])
def test_in_a_lane_as_many_turns_are_kept_as_in_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protect_last_n: int, kept: list[str]
) -> None:
    use_obedient_model(monkeypatch)
    stage = Stage()
    home = write_settings(tmp_path / "home", compression={"protect_last_n": protect_last_n})
    served = Served(home, {"scripted": stage})

    async def work() -> None:
        for number in range(8):
            stage.say(dm("owner"), f"fact {number}")
            await served.quiet()
        stage.say(dm("owner"), "/compress")
        await served.quiet()

    def view(tx: Transaction) -> list[str | None]:
        (lane,) = tx.lanes.listed()
        return [one.content for one in view_of(tx, str(lane.session_id))[1:] if one.role == "user"]

    try:
        served.run(work)
        assert served.store.read(OWNER, view) == kept
    finally:
        served.close()


def test_the_answer_is_there_in_the_moment_in_which_it_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_obedient_model(monkeypatch)
    stage = Stage()
    served = Served(write_settings(tmp_path / "home"), {"scripted": stage})
    seen: list[tuple[list[str], list[str]]] = []

    def look(tx: Transaction) -> tuple[list[str], list[str]]:
        letters = tx.outbox.listed(("pending", "sending", "delivered"))
        return [one.text for one in letters[-1:]], [one.text for one in tx.inbox.listed(("waiting", "running"))]

    def act(point: Point) -> None:
        if point is Point.AFTER_COMPRESSION:
            seen.append(served.store.read(OWNER, look))

    async def work() -> None:
        for number in range(12):
            stage.say(dm("owner"), f"{number} leeks " * 800)
            await served.quiet()
        monkeypatch.setattr(failpoints, "_act", act)
        stage.say(dm("owner"), "/compress")
        await served.quiet()

    try:
        served.run(work)
    finally:
        served.close()
    [((answer,), open_entries)] = seen
    assert answer.startswith("What was said first is a summary now")
    assert open_entries == []
    assert stage.posted_to("owner").count(answer) == 1
