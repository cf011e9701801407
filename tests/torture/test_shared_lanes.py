"""Several gateways share the lanes of one PostgreSQL, also when they are paused or killed."""

import asyncio
from collections.abc import Iterator

import pytest
from gateway_nursery import Nursery
from postgres_server import Server
from shared_loop import SharedLoop
from torture_rounds import rounds

pytestmark = [pytest.mark.torture, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.mark.parametrize("has_key", [True, False], ids=["with a key", "without"])
def test_nobody_is_answered_twice_and_nothing_stale_is_stored(
    postgres_server: Server, nursery: Nursery, has_key: bool
) -> None:
    loop = SharedLoop(postgres_server.new_database(), nursery, has_key=has_key)
    report = asyncio.run(loop.share(rounds(15, in_torture=120)))
    print(f"{loop.pauses} pauses; refused: {dict(loop.kinds)}; {report}")
    assert report.violations == {}
    assert loop.kinds["lane"] > 0, "the run is void: nobody came back too late"


def test_without_leases_that_are_checked_somebody_would_be(postgres_server: Server, nursery: Nursery) -> None:
    """The control: whoever was away goes on as if nothing had happened."""
    loop = SharedLoop(postgres_server.new_database(), nursery, control="hold everything")
    report = asyncio.run(loop.share(15))
    print(f"{loop.pauses} pauses; {report}")
    assert report.violations
