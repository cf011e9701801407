"""A turn ends when somebody says so or it takes too long, whatever its tool thinks of that."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lane_house import dm
from obedient_model import Obedient
from serving_house import Served, use_obedient_model, write_settings
from waiting import until

from segue.core.lifecycle import Phase
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.sessions.finding import get_session
from segue.testing import Stage
from segue.tools import shell

KEY = "agent:main:scripted:dm:owner"
DEAF = "trap '' TERM INT HUP QUIT; echo $$ > deaf; while :; do echo >> beats; sleep 0.1; done"
"""A shell, and what it starts, that no signal reaches which could be ignored. It shows that it is there."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which tools work."""
    use_obedient_model(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def stage() -> Stage:
    return Stage()


def served(place: Path, stage: Stage, **settings: object) -> Iterator[Served]:
    made = Served(write_settings(place / "home", **settings), {"scripted": stage})
    yield made
    made.close()


@pytest.fixture
def patient(place: Path, stage: Stage) -> Iterator[Served]:
    yield from served(place, stage)


@pytest.fixture
def hasty(place: Path, stage: Stage) -> Iterator[Served]:
    yield from served(place, stage, agent={"approvals": "allow", "turn_timeout": 1})


def terminal(command: str) -> str:
    return f"use terminal {json.dumps({'command': command, 'timeout': 500})}"


async def deaf_shell(place: Path) -> int:
    """The number of the session of the shell, as soon as it runs."""
    file = place / "deaf"
    await until(lambda: file.exists() and file.read_text().strip(), "a shell")
    return int(file.read_text())


def is_there(session: int) -> bool:
    """Whether anything is left of a session of processes."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, *fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if state != "Z" and fields[2] == str(session):
            return True
    return False


def test_stop_ends_a_tool_that_ignores_signals_within_two_seconds(
    place: Path, stage: Stage, patient: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed at once, and whoever waited for anything else would wait for ever; killing has an end as well."""
    for name in ("segue.tools.terminal._PATIENCE", "segue.gateway.gateway.OVERHEAR_SECONDS"):
        monkeypatch.setattr(name, 3600.0)
    assert shell._MOST_KILLS * 2 * shell._MOMENT <= 2.0

    async def work() -> None:
        stage.say(dm("owner"), terminal(DEAF))
        session = await deaf_shell(place)
        stage.say(dm("owner"), "/stop")
        await until(lambda: not is_there(session) and stage.posted, "the end of the shell")
        stage.say(dm("owner"), "and now?")
        await patient.quiet()

    patient.run(work)
    assert stage.posted_to("owner")[-1] == "You said: and now?"


def test_stop_ends_the_subagents_too_and_says_how_much_was_stopped(stage: Stage, patient: Served) -> None:
    async def work() -> None:
        stage.say(dm("owner"), 'use delegate {"task": "wait 3600"}')
        await until(lambda: any(request.conversation[-1]["content"] == "wait 3600" for request in Obedient.asked))
        stage.say(dm("owner"), "two")
        await until(lambda: not stage.waiting())
        stage.say(dm("owner"), "/stop")
        await patient.quiet()
        stage.say(dm("owner"), "/stop")
        await patient.quiet()

    Obedient.asked.clear()
    patient.run(work)
    told = stage.posted_to("owner")
    assert "Stopped, with 1 subagent. 1 waiting message cancelled." in told
    assert told[-1] == "Nothing was being done.", "there was nothing more"
    main = patient.store.read(OWNER, lambda tx: tx.lanes.find(KEY))
    assert main is not None
    (name,) = patient.store.read(OWNER, lambda tx: tx.sessions.spawned_by([str(main.session_id)]))
    subagent = patient.store.read(OWNER, get_session, name)
    assert (subagent.end_reason, subagent.is_open) == ("stopped", False)


def test_nothing_else_ends_that_tool(place: Path, stage: Stage, patient: Served) -> None:
    """The control: asked to end, as others would ask it, it goes on."""

    async def work() -> None:
        stage.say(dm("owner"), terminal(DEAF))
        session = await deaf_shell(place)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.killpg(session, number)
        beats = place / "beats"
        heard = beats.stat().st_size
        await until(lambda: beats.stat().st_size >= heard + 3, "a shell that goes on")
        assert is_there(session)
        stage.say(dm("owner"), "/stop")
        await patient.quiet()

    patient.run(work)


def test_a_turn_that_takes_too_long_is_stopped_and_its_sender_told(place: Path, stage: Stage, hasty: Served) -> None:
    async def work() -> None:
        while not (place / "deaf").exists():  # it can be too late before there is a shell
            stage.say(dm("owner"), terminal(DEAF))
            await hasty.quiet()
        session = await deaf_shell(place)
        assert not is_there(session)
        lane = hasty.store.read(OWNER, lambda tx: tx.lanes.find(KEY))
        assert lane is not None
        assert lane.phase is Phase.ACTIVE
        while stage.posted_to("owner")[-1] != "You said: and now?":  # the machine may be too slow for this as well
            stage.say(dm("owner"), "and now?")
            await hasty.quiet()

    hasty.run(work)
    *late, _ = stage.posted_to("owner")
    assert set(late) == {"The answer took longer than 1 seconds and was stopped."}
    dead, *_ = hasty.store.read(OWNER, lambda tx: tx.inbox.listed(("dead",)))
    assert "took longer than 1 seconds" in (dead.reason or "")
    assert (dead.ended_at or 0.0) - dead.admitted_at >= 1.0


def test_one_that_ends_in_time_is_not(stage: Stage, hasty: Served) -> None:
    """The control: the same limit, and a tool that is quicker; as often as the machine was not."""

    async def work() -> None:
        while True:
            began = time.monotonic()
            stage.say(dm("owner"), terminal("echo done"))
            await hasty.quiet()
            if time.monotonic() - began < 1:
                break

    hasty.run(work)
    assert stage.posted_to("owner")[-1].startswith("The tool said: done")
