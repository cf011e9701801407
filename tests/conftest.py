"""What every test may use: a home of its own, a store on each database, and the command line as a real process."""

import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bot_api.client import BotApi, World
from homes import NewHome, keep_in
from hypothesis import settings
from postgres_server import Emptied, Server
from synapse_server import Synapse
from troublesome import Troublesome
from zygote import Zygote

from segue import SessionDB
from segue.facade import searching
from segue.storage.postgres import PostgresEngine
from segue.storage.sqlite import SqliteEngine
from segue.storage.store import Engine, SqlStore

settings.register_profile("segue", deadline=None, print_blob=True)
settings.load_profile("segue")

WITHOUT_NETWORK = str(Path(__file__).parent / "support" / "without_network")
runpy.run_path(f"{WITHOUT_NETWORK}/sitecustomize.py")
sys.path.append(WITHOUT_NETWORK)  # which some tests hand on, and others the variable
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), WITHOUT_NETWORK]))

DATABASES = ["sqlite", "postgres"]
Run = Callable[..., subprocess.CompletedProcess[str]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The command line and the documents are tried as people do, which takes its time."""
    for item in items:
        if {"cli", "docs"} & set(item.path.parts[-2:-1]):
            item.add_marker(pytest.mark.process)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where nothing may be left out, a test that was skipped is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if reporter and skipped and os.environ.get("CI") == "true":
        reporter.write_line(f"\n{len(skipped)} skipped, which CI=true does not allow:", red=True)
        for report in skipped:
            reporter.write_line(f"  {report.nodeid}: {report.longrepr[2] if report.longrepr else ''}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The command line and the Python API are tried on each database: the one that the home's configuration names."""
    is_edge = Path(metafunc.module.__file__ or "").parent.name in {"cli", "facade"}
    if is_edge and "database" in metafunc.fixturenames and not metafunc.definition.get_closest_marker("on_file"):
        metafunc.parametrize("database", DATABASES, indirect=True, scope="module")


@pytest.fixture(autouse=True)
def _time_to_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found does not depend on how busy the machine is."""
    monkeypatch.setattr(searching, "TIME", 20.0)


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
def bot_api() -> Iterator[BotApi]:
    """Telegram's Bot API on this machine, started by the first test that needs it."""
    server = BotApi()
    yield server
    server.close()


@pytest.fixture
def bot_world(bot_api: BotApi) -> Iterator[World]:
    """A bot and everybody around it, of which there is nothing to complain in the end."""
    world = bot_api.world()
    yield world
    complaints = world.state.complaints
    world.close()
    assert complaints == []


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


@pytest.fixture(params=DATABASES)
def engine(request: pytest.FixtureRequest, home: Path) -> Engine:
    """An empty database of each kind there is."""
    if request.param == "sqlite":
        return SqliteEngine(home / "state.db")
    emptied: Emptied = request.getfixturevalue("emptied")
    return PostgresEngine(emptied.empty())


@pytest.fixture
def store(engine: Engine) -> Iterator[SqlStore]:
    """An empty store on each database there is."""
    with SqlStore(engine) as opened:
        yield opened


@pytest.fixture
def db(home: Path) -> Iterator[SessionDB]:
    """The Python API on an empty home."""
    with SessionDB() as opened:
        yield opened


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
            return zygote.run(arguments, stdin, variables, seconds=60)
        return subprocess.run(  # what Python itself is told, it is told at its start
            [sys.executable, "-m", "segue", *arguments],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            env=variables,
        )

    return command
