"""A gateway that crashes again and again: nobody but the turn that it crashes of is given up."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from gateway_nursery import Nursery
from kill_loop import KillLoop, Report
from torture_rounds import rounds

pytestmark = [pytest.mark.torture, pytest.mark.timeout(rounds(600, in_torture=3600))]

LIVES = (0.3, 0.9)
POISON = "culprit"
KILLS = rounds(8, in_torture=160)
THINKING = 0.06
"""Seconds between the words of ten: an answer takes 0.2 s."""
AFTERWARDS = rounds(1, in_torture=0)
"""Whether the minute after the last kill is over at once; under torture it is waited for."""


def crashed(place: str | Path, nursery: Nursery, **more: Any) -> Report:
    loop = KillLoop(place, nursery, program="segue gateway", pause=THINKING, most_attempts=3, **more)
    afterwards = {"crash_span": 1e-6} if AFTERWARDS else {}
    return asyncio.run(loop.crash_loop(KILLS, LIVES, POISON, **afterwards))


def test_in_a_crash_loop_nobody_but_the_culprit_is_given_up(place: str | Path, nursery: Nursery) -> None:
    report = crashed(place, nursery)
    print(report)
    assert report.dead == [POISON]
    assert len(report.unended) == 1, "everything else is answered"
    assert report.tools_twice in ([], ["poison"]), "which may be run again"
    assert set(report.violations) <= {"unended", "tools_twice"}


def test_without_its_guards_it_would_give_up_others(tmp_path: Path, nursery: Nursery) -> None:
    """Every crash counts against everything that ran, and nothing waits until it is over."""
    assert any(
        set(crashed(tmp_path / f"{seed}.db", nursery, seed=seed, control="blame everybody").dead) - {POISON}
        for seed in range(1, 11)
    )
