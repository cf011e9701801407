"""What tests of the platforms may use: the other side, as real as it can be had."""

from collections.abc import Iterator

import pytest
from synapse_server import Synapse
from troublesome import Troublesome


@pytest.fixture(scope="session")
def synapse() -> Iterator[Synapse]:
    """A real Matrix homeserver, started by the first test that needs one; a test brings its own users and rooms."""
    server = Synapse()
    yield server
    server.close()


@pytest.fixture
def trouble(synapse: Synapse) -> Iterator[Troublesome]:
    """Another door to the same homeserver, on which a test may play tricks."""
    proxy = Troublesome(synapse.url)
    yield proxy
    proxy.close()
