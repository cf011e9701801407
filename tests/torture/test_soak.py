"""A gateway that works for long loses nothing and does not grow; only before a release there is time for it."""

import os
from pathlib import Path

import pytest
from soak_loop import SETTLED, Sample, growth, slope, soaked

MINUTES = float(os.environ.get("SEGUE_SOAK_MINUTES", "30"))


if os.environ.get("SEGUE_TORTURE"):

    @pytest.mark.torture
    @pytest.mark.timeout(60 * MINUTES + 1200)
    def test_under_load_and_kills_nothing_is_lost_and_nothing_grows(tmp_path: Path) -> None:
        loop, wrong = soaked(tmp_path, MINUTES)
        assert wrong == []
        assert loop.report.kills > 0, "the run is void: nobody was killed"


def life(*, memory: float = 0.0, files: float = 0.0, log: float = 0.0) -> list[Sample]:
    """Half an hour in which so much is added each minute, after a kill."""
    killed = [Sample(float(second), 0, 0, 90.0, 90, 1.0, 0, 7) for second in range(0, 60, 2)]
    minutes = [second / 60 for second in range(60, 1860, 2)]
    long = [
        Sample(60 * at, 0, 0, 40 + memory * at + (at * 30) % 3, int(15 + files * at), 4 + log * at, 1, 8)
        for at in minutes
    ]
    return killed + long


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        (life(), []),
        (life(memory=1.0), ["Memory grows by"]),
        (life(files=1.0), ["open files became"]),
        (life(log=4.0), ["The log was"]),
    ],
    ids=["nothing", "memory", "files", "the log"],
)
def test_what_grows_is_told(samples: list[Sample], told: list[str]) -> None:
    found = growth(samples)
    assert len(found) == len(told)
    assert all(word in sentence for word, sentence in zip(told, found, strict=True))


def test_the_slope_is_that_of_the_memory() -> None:
    samples = [one for one in life(memory=1.0) if one.pid == 8]
    assert slope(samples[int(SETTLED * len(samples)) :]) == pytest.approx(60, rel=0.1)
