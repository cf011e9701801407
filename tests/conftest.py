"""What every test may use: a home of its own, a store on each database, and the command line as a real process."""

import os
import runpy
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bot_api.client import BotApi, World
from costs import pytest_configure
from counterparts import counterparts_python
from fork_server import ForkServer
from homes import NewHome, keep_in
from hypothesis import HealthCheck, settings
from postgres_server import Emptied, Server
from shared_server import SharedServer
from synapse_server import Synapse
from troublesome import Troublesome
from waiting import DEADLINE
from zygote import Zygote

from segue import SessionDB
from segue.facade import searching
from segue.sessions.commanding import looking
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import Engine, SqlStore

settings.register_profile("segue", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("segue")

WITHOUT_NETWORK = str(Path(__file__).parent / "support" / "without_network")
runpy.run_path(f"{WITHOUT_NETWORK}/sitecustomize.py")
sys.path.append(WITHOUT_NETWORK)  # which some tests hand on, and others the variable
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), WITHOUT_NETWORK]))

__all__ = ["pytest_configure"]  # what pytest finds here by its name, and is written elsewhere
DATABASES = ["sqlite", "postgres"]
SERVERS = frozenset({"postgres_server", "synapse", "bot_api", "zygote", "fork_server", "nursery", "model_server"})
"""Fixtures that start processes."""
Run = Callable[..., subprocess.CompletedProcess[str]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a server or other processes is slow; so are the command line and documents as people use them."""
    for item in items:
        if needs_servers(item) or {"cli", "docs"} & set(item.path.parts[-2:-1]):
            item.add_marker(pytest.mark.process)


def needs_servers(item: pytest.Item) -> bool:
    called_with = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return not SERVERS.isdisjoint(getattr(item, "fixturenames", ())) or any(
        isinstance(value, str) and value == "postgres" for value in called_with
    )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where nothing may be left out, a test that was skipped is a failure."""
    if skipped_in(session.config) and os.environ.get("CI") == "true":
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was left out is told, each reason once."""
    reasons = Counter(report.longrepr[2] for report in skipped_in(terminalreporter.config))
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"Left out: {count} tests. {reason}", yellow=True)
    if reasons and os.environ.get("CI") == "true":
        terminalreporter.write_line("CI=true allows none to be left out.", red=True)


def skipped_in(config: pytest.Config) -> list[Any]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return list(reporter.stats.get("skipped", [])) if reporter else []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The command line and the Python API are tried on each database: the one that the home's configuration names."""
    is_edge = Path(metafunc.module.__file__ or "").parent.name in {"cli", "facade"}
    if is_edge and "database" in metafunc.fixturenames and not metafunc.definition.get_closest_marker("on_file"):
        metafunc.parametrize("database", DATABASES, indirect=True, scope="module")


@pytest.fixture(autouse=True)
def _time_to_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found does not depend on how busy the machine is."""
    monkeypatch.setattr(searching, "TIME", 20.0)
    monkeypatch.setattr(looking, "SEARCH_SECONDS", 20.0)


@pytest.fixture(scope="module")
def database(request: pytest.FixtureRequest) -> str:
    """Where the homes of a test keep their conversations."""
    return str(getattr(request, "param", "sqlite"))


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str) -> Path:
    """A fresh home folder: not made yet, or with a configuration that names a server."""
    folder = tmp_path / "home"
    monkeypatch.setenv("SEGUE_HOME", str(folder))
    if database == "postgres":
        emptied: Emptied = request.getfixturevalue("emptied")
        keep_in(folder, emptied.empty())
    return folder


@pytest.fixture(scope="module")
def new_home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, database: str) -> NewHome:
    """Makes homes that several tests look at."""

    def make(name: str) -> Path:
        home = tmp_path_factory.mktemp("homes") / name
        if database == "postgres":
            server: Server = request.getfixturevalue("postgres_server")
            keep_in(home, server.new_database())
        return home

    return make


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A real PostgreSQL, started by the first test that needs one."""
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="session")
def emptied(postgres_server: Server) -> Iterator[Emptied]:
    database = Emptied(postgres_server)
    yield database
    database.close()


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this run have in common, and no other run."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def bot_api(run_folder: Path) -> Iterator[BotApi]:
    """Telegram's Bot API on this machine, started by the first test that needs it, for all workers."""
    counterparts_python()  # or the test is skipped
    shared = SharedServer(run_folder, "bot_api.client:BotApiServer")
    yield BotApi(**shared.address)
    shared.close()


@pytest.fixture
def bot_world(bot_api: BotApi) -> Iterator[World]:
    """A bot and everybody around it, of which there is nothing to complain in the end."""
    world = bot_api.world()
    yield world
    complaints = world.state.complaints
    world.close()
    assert complaints == []


@pytest.fixture(scope="session")
def synapse(run_folder: Path) -> Iterator[Synapse]:
    """A real Matrix homeserver, started by the first test that needs one, for all workers.

    A test brings its own users and rooms.
    """
    counterparts_python()  # or the test is skipped
    shared = SharedServer(run_folder, "synapse_server:OwnSynapse")
    yield Synapse(**shared.address)
    shared.close()


@pytest.fixture
def trouble(synapse: Synapse) -> Iterator[Troublesome]:
    """Another door to the same homeserver, on which a test may play tricks."""
    proxy = Troublesome(synapse.url)
    yield proxy
    proxy.close()


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A database file with every table and no row, to be copied by tests that are not about making one."""
    file = tmp_path_factory.mktemp("empty") / "state.db"
    SqliteEngine(file).close()
    return file.read_bytes()


@pytest.fixture
def prepared_home(home: Path, database: str, empty_file: bytes) -> Path:
    """A home whose database has been made."""
    file = home / "state.db"
    if database == "sqlite" and not file.exists():
        home.mkdir(mode=0o700, exist_ok=True)
        file.touch(mode=0o600)
        file.write_bytes(empty_file)
    return home


@pytest.fixture(params=DATABASES)
def engine(request: pytest.FixtureRequest, home: Path) -> Engine:
    """An empty database of each kind there is."""
    if request.param == "sqlite":
        prepared: Path = request.getfixturevalue("prepared_home")
        return SqliteEngine(prepared / "state.db")
    emptied: Emptied = request.getfixturevalue("emptied")
    return emptied.engine()


@pytest.fixture
def store(engine: Engine) -> Iterator[SqlStore]:
    """An empty store on each database there is."""
    with SqlStore(engine) as opened:
        yield opened


@pytest.fixture
def db(prepared_home: Path) -> Iterator[SessionDB]:
    """The Python API on an empty home."""
    with SessionDB() as opened:
        yield opened


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """What gateways and small programs are forked from."""
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    running = Zygote()
    yield running
    running.close()


@pytest.fixture
def run(home: Path, zygote: Zygote) -> Run:
    """Run `segue` as people do: another process, its output captured."""

    def command(*arguments: str, stdin: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = os.environ | {"SEGUE_HOME": str(home), "PYTHONIOENCODING": "utf-8"} | environment
        if not any(name.startswith("PYTHON") for name in environment):
            return zygote.run(arguments, stdin, variables)
        return subprocess.run(  # what Python itself is told, it is told at its start
            [sys.executable, "-m", "segue", *arguments],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=DEADLINE,
            env=variables,
        )

    return command
