"""Gateways are tried on each database; what no database matters to is tried on a file."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames and metafunc.definition.get_closest_marker("on_file"):
        metafunc.definition.add_marker(pytest.mark.parametrize("engine", ["sqlite"], indirect=True))


@pytest.fixture(autouse=True)
def _disk_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here has to be there after a power cut, which is tried elsewhere."""
    monkeypatch.setattr("segue.storage.connection.SYNCHRONOUS", "OFF")
