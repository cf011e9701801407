"""What several files of this folder need once: the processes that others are forked from."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from gateway_nursery import Nursery
from postgres_server import Server


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Where gateways are forked from."""
    made = Nursery()
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """Where conversations are kept: a file, or a database of its own on a server."""
    if request.param == "sqlite":
        return tmp_path / "state.db"
    server: Server = request.getfixturevalue("postgres_server")
    return server.new_database()
