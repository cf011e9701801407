"""Gateways that die soon after another, and gateways that die while an agent remembers."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from gateway_nursery import Nursery
from short_lives import ShortLives
from waiting import until

from segue.ports.failpoints import REMEMBERING, Point
from segue.sessions.finalising import CUT_OFF

pytestmark = pytest.mark.torture


async def cut_off(lives: ShortLives, times: int) -> None:
    """Kill so many gateways while they answer the same message."""
    lives.say("first tool")
    for number in range(1, times + 1):
        pid = await lives.begin(pause=36_000.0)
        await until(lambda: lives.entries("running"))
        await until(partial(_is_attempt, lives, number), f"attempt {number}")
        await until(lambda: lives.tools)
        await lives.kill(pid)


def _is_attempt(lives: ShortLives, number: int) -> bool:
    return lives.attempts() == number


def test_after_three_deaths_in_a_minute_what_was_cut_off_goes_on_when_it_is_over(
    place: str | Path, nursery: Nursery
) -> None:
    lives = ShortLives(place, nursery)

    async def work() -> None:
        async with lives.open():
            await cut_off(lives, 3)
            pid = await lives.begin()
            lives.say("other please", "bob")
            await until(lambda: [entry.text for entry in lives.entries("done")] == ["other please"], "bob's answer")
            looks = lives.looks
            await until(lambda: lives.looks >= looks + 3, "some looks at what is left")
            lives.say("second please")
            await until(lambda: lives.entries("waiting"))
            looks = lives.looks
            await until(lambda: lives.looks >= looks + 3, "some looks at what waits behind it")
            assert lives.told == ""
            assert [entry.text for entry in lives.entries("running")] == ["first tool"]
            await lives.kill(pid)
            pid = await lives.begin(crash_span=1e-6)  # a minute later, so to speak
            await until(lambda: len(lives.entries("done")) == 3 and not lives.entries("waiting", "running"))
            await until(lambda: "second." in lives.told)
            await lives.kill(pid)

    asyncio.run(work())
    assert lives.entries("dead") == []
    assert sorted(entry.text for entry in lives.entries("done")) == ["first tool", "other please", "second please"]
    assert "first." in lives.told
    assert lives.tools == ["first"], "the tool ran in the first life alone"
    lives.close()


def test_after_two_deaths_it_goes_on(place: str | Path, nursery: Nursery) -> None:
    """What the test above relies on: without the third death, the answer is brought to its end."""
    lives = ShortLives(place, nursery)

    async def work() -> None:
        async with lives.open():
            await cut_off(lives, 2)
            pid = await lives.begin()
            await until(lambda: lives.entries("done"))
            await lives.kill(pid)

    asyncio.run(work())
    assert [entry.text for entry in lives.entries("done")] == ["first tool"]
    assert lives.entries("dead") == []
    lives.close()


@pytest.mark.parametrize("point", sorted(REMEMBERING))
def test_killed_while_an_agent_remembers_the_next_life_brings_it_to_its_end(
    place: str | Path, nursery: Nursery, point: Point
) -> None:
    lives = ShortLives(place, nursery, idle=0.1, watch=0.02)

    async def work() -> None:
        async with lives.open():
            lives.say("first please")
            assert await lives.dies(await lives.begin(failpoint=point, nth=1))
            begun = lives.farewell()
            assert begun is not None
            assert (begun.attempt, begun.ended_at) == (1, None)
            pid = await lives.begin()
            await until(lambda: lives.lane and lives.lane.finalised_at)
            lives.say("other please", "bob")
            await until(lambda: "remembered-other" in lives.tools, "another look at what has expired")
            await lives.kill(pid)

    asyncio.run(work())
    ended = lives.farewell()
    assert ended is not None
    assert (ended.attempt, ended.state, ended.ended_at is None) == (2, "done", False)
    times = 1 if point is Point.AFTER_FAREWELL_BEGINS else 2  # what it did before it was killed, nobody knows
    assert lives.tools == [*["remembered-first"] * times, "remembered-other"]
    lives.close()


def test_when_it_kills_every_gateway_it_is_given_up(place: str | Path, nursery: Nursery) -> None:
    lives = ShortLives(place, nursery, idle=0.1, watch=0.02)
    dying = {"failpoint": Point.AFTER_FAREWELL_BEGINS, "nth": 1, "crash_span": 1e-6}  # more than a minute apart

    async def work() -> None:
        async with lives.open():
            lives.say("first please")
            for _ in range(3):
                assert await lives.dies(await lives.begin(**dying))
            pid = await lives.begin(**dying)
            await until(lambda: lives.lane and lives.lane.finalised_at)
            lives.say("other please", "bob")
            assert await lives.dies(pid), "it looked again, and began with bob's, not with alice's"

    asyncio.run(work())
    ended = lives.farewell()
    assert ended is not None
    assert (ended.attempt, ended.state, ended.reason) == (3, "failed", CUT_OFF)
    assert lives.tools == []
    lives.close()


def test_without_the_row_it_would_be_done_again(tmp_path: Path, nursery: Nursery) -> None:
    lives = ShortLives(tmp_path / "state.db", nursery, idle=0.1, watch=0.02, control="note no farewell")

    async def work() -> None:
        async with lives.open():
            lives.say("first please")
            pid = await lives.begin()
            await until(lambda: len(lives.tools) > 1)
            await lives.kill(pid)

    asyncio.run(work())
    lives.close()
