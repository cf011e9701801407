"""`segue gateway run` as people run it: killed, asked to end, started twice, and started again."""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess, Popen
from typing import Any, cast

import pytest
import waiting
from fork_server import ForkServer
from gateway_process import LAUNCHER, House, kill
from lane_house import dm
from torture_rounds import rounds
from waiting import DEADLINE

from segue.core.background import Process, ProcessState
from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.ports.store import Transaction
from segue.storage.engines import engine_at
from segue.storage.store import SqlStore
from segue.testing import Stage
from segue.testing.remote import Backstage

pytestmark = [pytest.mark.torture, pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")]

KEY = "agent:main:scripted:dm:owner"
CHILDREN = rounds(3, in_torture=5)

MakeHouse = Callable[..., House]


class ForkedHouse(House):
    """A home whose gateways and commands need not load everything first."""

    def __init__(self, server: ForkServer, folder: Path, **settings: Any) -> None:
        super().__init__(folder, **settings)
        self._server = server

    def begin(self, *arguments: str, launcher: Path = LAUNCHER, **variables: str) -> "Popen[str]":
        with self.log.open("a") as log:
            process = self._server.start(
                launcher,
                *(arguments or ("gateway", "run")),
                env=self._environment | variables,
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )
        self._begun.append(gateway := cast("Popen[str]", process))
        return gateway

    def ask(self, *arguments: str) -> "CompletedProcess[str]":
        return self._server.run(LAUNCHER, *arguments, env=self._environment, cwd=self.folder)


@pytest.fixture
def make_house(tmp_path: Path, fork_server: ForkServer) -> Iterator[MakeHouse]:
    made: list[House] = []

    def make(**settings: Any) -> House:
        made.append(ForkedHouse(fork_server, tmp_path, **settings))
        return made[-1]

    yield make
    for house in made:
        house.close()


def on_stage(house: House, work: Callable[[Stage], Awaitable[None]]) -> Stage:
    """Something that happens on a stage which outlives the gateways."""
    stage = Stage()

    async def all_of_it() -> None:
        async with Backstage(stage, house.socket):
            await work(stage)

    asyncio.run(all_of_it())
    return stage


async def until(is_so: Callable[[], object], house: House) -> None:
    """Wait until something is the case, or fail with what the gateways wrote down."""
    try:
        await waiting.until(is_so)
    except TimeoutError:
        raise AssertionError(house.log.read_text()) from None


async def ended(process: "Popen[str]") -> int:
    return await asyncio.to_thread(process.wait, DEADLINE)


def terminal(command: str, **more: Any) -> str:
    return f"use terminal {json.dumps({'command': command, **more})}"


def look(house: House, work: Callable[[Transaction], Any]) -> Any:
    with SqlStore(engine_at(house.home / "state.db")) as store:
        return store.read(OWNER, work)


def is_alive(process: Process) -> bool:
    """Whether anything is left of the session that a process began."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, *fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if state != "Z" and fields[2] == str(process.pid):
            return True
    return False


def test_what_ran_in_the_background_of_a_killed_gateway_is_gone_and_known_as_lost(make_house: MakeHouse) -> None:
    house = make_house()

    async def work(stage: Stage) -> None:
        gateway = house.begin()
        for number in range(CHILDREN):
            stage.say(dm("owner"), terminal("trap '' TERM HUP; while :; do sleep 1; done", background=True))
            await until(partial(_has_more, stage, number), house)
        children: list[Process] = look(house, lambda tx: tx.processes.running())
        assert len(children) == CHILDREN
        assert all(map(is_alive, children)), "the control: they live as long as the gateway does"
        await asyncio.to_thread(kill, gateway)
        await until(lambda: not any(map(is_alive, children)), house)
        house.begin()
        stage.say(dm("owner"), "and now?")
        await until(lambda: "You said: and now?" in stage.posted_to("owner"), house)
        lost: list[Process] = look(house, lambda tx: [tx.processes.find(child.id) for child in children])
        assert [child.state for child in lost] == [ProcessState.LOST] * CHILDREN

    on_stage(house, work)


def test_an_answer_that_comes_in_time_is_given_before_the_gateway_ends(make_house: MakeHouse) -> None:
    house = make_house(agent={"approvals": "allow", "drain_timeout": 600})
    said = f"wait until {house.folder / 'released'}"

    async def work(stage: Stage) -> None:
        gateway = house.begin()
        stage.say(dm("owner"), said)
        await until(lambda: house.home.joinpath("state.db").exists() and look(house, _has_running), house)
        gateway.send_signal(signal.SIGTERM)
        while "is not connected" not in house.log.read_text():
            assert gateway.poll() is None, house.log.read_text()
            stage.say(dm("bob"), "You are ending, are you not?")  # which it says by taking in nothing more
            await asyncio.sleep(0.05)
        (house.folder / "released").touch()
        assert await ended(gateway) == 0, house.log.read_text()
        assert stage.posted_to("owner") == [f"You said: {said}"]
        assert not look(house, _has_running)

    on_stage(house, work)


def test_an_answer_that_takes_too_long_is_carried_on_by_the_next_life(make_house: MakeHouse) -> None:
    house = make_house(agent={"approvals": "allow", "drain_timeout": 1})
    said = f"wait until {house.folder / 'released'}"

    async def work(stage: Stage) -> None:
        gateway = house.begin()
        stage.say(dm("owner"), said)
        await until(lambda: house.home.joinpath("state.db").exists() and look(house, _has_running), house)
        gateway.send_signal(signal.SIGTERM)
        assert await ended(gateway) == 0, house.log.read_text()  # or it would wait for as long as the answer takes
        assert stage.posted == []
        lane = look(house, lambda tx: tx.lanes.find(KEY))
        assert (lane.phase, lane.phase_reason) == ("interrupted", "shutdown_timeout")
        (house.folder / "released").touch()
        stage.say(dm("owner"), "meanwhile")
        house.begin()
        await until(lambda: len(stage.posted) >= 2, house)
        stage.say(dm("owner"), "and last")
        await until(lambda: "You said: and last" in stage.posted_to("owner"), house)
        assert stage.posted_to("owner") == [f"You said: {said}", "You said: meanwhile", "You said: and last"]
        lane = look(house, lambda tx: tx.lanes.find(KEY))
        assert lane.phase == "active"

    on_stage(house, work)


def test_a_second_gateway_of_one_home_refuses_to_start(make_house: MakeHouse) -> None:
    house = make_house()

    async def work(stage: Stage) -> None:
        gateway = house.begin()
        await until(lambda: stage.looks, house)
        refused = await asyncio.to_thread(house.ask, "gateway", "run")
        assert refused.returncode != 0
        (sentence,) = refused.stderr.strip().splitlines()
        assert f"A gateway of this home runs already, as process {gateway.pid}" in sentence
        stage.say(dm("owner"), "are you there?")
        await until(lambda: stage.posted, house)
        stopped = await asyncio.to_thread(house.ask, "gateway", "stop")
        assert stopped.returncode == 0, stopped.stderr
        assert await ended(gateway) == 0
        third = house.begin()
        before = stage.looks
        await until(lambda: stage.looks > before, house)
        assert third.poll() is None, "the control: where none runs, one starts"

    on_stage(house, work)


def test_a_gateway_that_nobody_has_buried_is_in_nobodys_way(make_house: MakeHouse) -> None:
    """Where it was started by something that does not ask how it ended, as in many containers, a zombie is left."""
    house = make_house()

    async def work(stage: Stage) -> None:
        gateway = house.begin()
        await until(lambda: stage.looks, house)
        os.kill(gateway.pid, signal.SIGKILL)
        stat = Path(f"/proc/{gateway.pid}/stat")
        await until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", house)
        stage.say(dm("owner"), "are you there?")
        house.begin()
        await until(lambda: stage.posted, house)

    on_stage(house, work)


def test_two_that_begin_at_the_same_moment_are_one_in_the_end(make_house: MakeHouse) -> None:
    house = make_house()

    async def work(stage: Stage) -> None:
        gateways = [house.begin() for _ in range(3)]
        await until(lambda: stage.looks and sum(one.poll() is None for one in gateways) <= 1, house)
        assert [one.poll() is None for one in gateways].count(True) == 1, house.log.read_text()
        assert house.log.read_text().count("runs already") == 2
        stage.say(dm("owner"), "are you there?")
        await until(lambda: stage.posted, house)

    on_stage(house, work)


def test_a_command_that_kills_the_gateway_is_not_run_again(make_house: MakeHouse) -> None:
    house = make_house()

    async def work(stage: Stage) -> None:
        gateway = house.begin()
        stage.say(dm("owner"), terminal("echo ran >> ran; kill -9 $PPID"))
        assert await ended(gateway) == -signal.SIGKILL
        house.begin()
        await until(lambda: stage.posted, house)
        assert (house.folder / "ran").read_text() == "ran\n"
        assert "unknown" in stage.posted_to("owner")[0]

    on_stage(house, work)


def _has_more(stage: Stage, number: int) -> bool:
    return len(stage.posted) > number


def test_a_gateway_and_other_processes_write_to_one_file_at_the_same_time(make_house: MakeHouse) -> None:
    house = make_house()
    people, lines = [f"person{number}" for number in range(6)], range(rounds(3, in_torture=5))
    chats = range(rounds(4, in_torture=8))

    async def work(stage: Stage) -> None:
        house.begin()
        await until(lambda: stage.looks, house)
        asked = [asyncio.to_thread(house.ask, "chat", "-q", f"from chat {number}") for number in chats]
        said = asyncio.create_task(talk(stage))
        done = await asyncio.gather(*asked)
        await said
        assert [(one.returncode, one.stdout.strip()) for one in done] == [
            (0, f"You said: from chat {number}") for number in chats
        ], done[0].stderr

    async def posted(stage: Stage, count: int) -> None:
        await until(lambda: len(stage.posted) >= count, house)

    async def talk(stage: Stage) -> None:
        for number in lines:
            for person in people:
                stage.say(dm(person), f"{person} {number}")
            await posted(stage, len(people) * (number + 1))

    stage = on_stage(house, work)
    for person in people:
        assert stage.posted_to(person) == [f"You said: {person} {number}" for number in lines]
    stored: list[list[str]] = look(house, _everything_said)
    chatted = [[f"from chat {number}", f"You said: from chat {number}"] for number in chats]
    talked = [[text for n in lines for text in (f"{one} {n}", f"You said: {one} {n}")] for one in people]
    assert sorted(stored) == sorted([*chatted, *talked])


def test_a_restart_resets_no_session(make_house: MakeHouse) -> None:
    house = make_house(agent={"entry": "for_a_test:answer"})
    answer = "def answer(conversation):\n    return str(len([one for one in conversation if one['role'] == 'user']))\n"
    (house.home / "for_a_test.py").write_text(answer)

    async def work(stage: Stage) -> None:
        gateway = house.begin()
        stage.say(dm("owner"), "one")
        await until(lambda: stage.posted, house)
        first = look(house, lambda tx: tx.lanes.find(KEY))
        for number, way in enumerate(("an update", "gateway restart", "/restart"), 2):
            life = look(house, _lives)
            if way == "an update":
                gateway.send_signal(signal.SIGTERM)
                assert await ended(gateway) == 0
                house.begin()
            elif way == "/restart":
                stage.say(dm("owner"), way)
            else:
                assert (await asyncio.to_thread(house.ask, *way.split())).returncode == 0
            await until(partial(_is_another, house, life), house)
            stage.say(dm("owner"), f"message {number}")
            await until(partial(_has_heard, stage, str(number)), house)
            lane = look(house, lambda tx: tx.lanes.find(KEY))
            assert (lane.session_id, lane.phase) == (first.session_id, "active"), way
            assert look(house, lambda tx: tx.lanes.resets(KEY)) == [], way

    on_stage(house, work)


def _is_another(house: House, life: list[str]) -> bool:
    return look(house, _lives) not in ([], life)


def _has_heard(stage: Stage, text: str) -> bool:
    return text in stage.posted_to("owner")


def _has_running(tx: Transaction) -> bool:
    return bool(tx.inbox.listed(("running",)))


def _lives(tx: Transaction) -> list[str]:
    return [run.id for run in tx.leases.open_runs()]


def _everything_said(tx: Transaction) -> list[list[str]]:
    """What was said in each session."""
    return [[str(one.content) for one in tx.messages.of(session.id)] for session in tx.sessions.in_order()]
