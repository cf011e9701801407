"""Several gateways share the lanes of one PostgreSQL, also when they are paused or killed."""

import asyncio
from functools import partial

import pytest
from gateway_nursery import Nursery
from postgres_server import Server
from shared_loop import SharedLoop
from torture_rounds import rounds

pytestmark = [pytest.mark.torture, pytest.mark.timeout(900)]

SECONDS = rounds(0, in_torture=120)
PAUSES, KILLS, REFUSALS = rounds(6, in_torture=60), 1, 2


@pytest.mark.parametrize("has_key", [True, False], ids=["with a key", "without"])
def test_nobody_is_answered_twice_and_nothing_stale_is_stored(
    postgres_server: Server, nursery: Nursery, has_key: bool
) -> None:
    loop = SharedLoop(postgres_server.new_database(), nursery, has_key=has_key)

    def is_enough() -> bool:
        return loop.pauses >= PAUSES and loop.report.kills >= KILLS and loop.kinds["lane"] >= REFUSALS

    report = asyncio.run(loop.share(is_enough, SECONDS))
    print(f"{loop.pauses} pauses; refused: {dict(loop.kinds)}; {report}")
    assert report.violations == {}
    assert is_enough(), "the run is void: too little happened, or nobody came back too late"


def test_without_leases_that_are_checked_somebody_would_be(postgres_server: Server, nursery: Nursery) -> None:
    """The control: whoever was away goes on as if nothing had happened."""
    for seed in range(1, 21):
        loop = SharedLoop(postgres_server.new_database(), nursery, seed=seed, control="hold everything")
        report = asyncio.run(loop.share(partial(_has_paused, loop)))
        print(f"{loop.pauses} pauses; {report}")
        if report.violations:
            return
    pytest.fail("nothing was wrong, so that the other test proves nothing")


def _has_paused(loop: SharedLoop) -> bool:
    return loop.pauses >= PAUSES
