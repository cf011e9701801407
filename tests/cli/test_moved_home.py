"""A home that was moved to a server and back is talked in as before, from the terminal and through a gateway."""

import itertools
import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fork_server import ForkServer
from forked_house import ForkedHouse
from homes import Beside
from postgres_server import Server
from serving_house import write_settings
from waiting import DEADLINE, wait_until

from segue.cli.remote import Remote

pytestmark = pytest.mark.on_file

Run = Callable[..., subprocess.CompletedProcess[str]]
LAUNCHER = Path(__file__).parents[1] / "support" / "counting_launcher.py"
ADDRESS = re.compile("Programs call (http[^,\n]+),")
TURNS = 10
"""Of each kind, after every move."""
SETTINGS: dict[str, Any] = {"model": "openai/counting", "gateway": {"port": 0}}


class MovedHome(ForkedHouse):
    """A home that changes its database, and whoever talks in it."""

    def __init__(self, fork_server: ForkServer, folder: Path, run: Run) -> None:
        super().__init__(fork_server, folder, {}, **SETTINGS)
        self._run = run
        self._tokens = itertools.count(1)

    def told(self, *arguments: str) -> str:
        done = self._run(*arguments, SEGUE_HOME=str(self.home), OPENAI_API_KEY="x")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def use(self, database: str) -> None:
        write_settings(self.home, **SETTINGS, database=database)

    def talk(self, turns: int) -> None:
        """Have so many turns in a chat, and as many through a gateway."""
        lines = [f"line {number}" for number in range(turns)]
        with (self.folder / "lines").open("w+") as typed, (self.folder / "said").open("w+") as said:
            typed.write("\n".join(lines) + "\n")
            typed.seek(0)
            chat = self._fork_server.start(LAUNCHER, env=self._environment, stdin=typed, stdout=said, stderr=said)
            assert chat.wait(DEADLINE) == 0
            said.seek(0)
            assert re.findall("You said: (.*)\n", said.read()) == lines
        name = f"token-{next(self._tokens)}"  # tokens stay where they were given out
        token = json.loads(self.told("tokens", "add", name, "--scope", "admin", "--json"))["token"]
        self.log.unlink(missing_ok=True)
        gateway = self.begin(launcher=LAUNCHER)
        wait_until(lambda: ADDRESS.search(self.log.read_text()), "the address")
        (url,) = ADDRESS.findall(self.log.read_text())
        for line in lines:
            answer = Remote(url, token).ask("chat.send", {"conversation": "desk", "text": line, "wait_seconds": 100})
            assert f"You said: {line}" in json.dumps(answer)
        gateway.send_signal(signal.SIGTERM)
        assert gateway.wait(DEADLINE) == 0, self.log.read_text()

    def counts(self) -> list[int]:
        """How many turns are done, model calls counted, messages of the gateway answered, and things not in order."""
        statements = (
            "SELECT count(*) FROM turns WHERE state = 'done' AND kind = 'answer'",
            "SELECT count(*) FROM usage WHERE purpose = 'answer'",
            "SELECT count(*) FROM inbox WHERE state = 'done'",
            "SELECT count(*) FROM turns WHERE state <> 'done'",
        )
        with Beside(self.home) as beside:
            return [beside.ask(sql)[0][0] for sql in statements]


@pytest.fixture
def moved(fork_server: ForkServer, tmp_path: Path, run: Run) -> Iterator[MovedHome]:
    home = MovedHome(fork_server, tmp_path, run)
    yield home
    home.close()


def migrate(home: MovedHome, database: str) -> None:
    assert "took a new row, which was taken back." in home.told("db", "migrate", "--to", database)
    home.use(database)


def restore(home: MovedHome, database: str) -> None:
    file = home.folder / f"{database[:6]}.zip"
    home.told("backup", str(file))
    home.use(database)
    home.told("restore", str(file), "--yes")


@pytest.mark.parametrize("move", [migrate, restore])
def test_after_a_move_to_a_server_and_back_every_turn_is_answered(
    moved: MovedHome, postgres_server: Server, move: Callable[[MovedHome, str], None]
) -> None:
    moved.talk(2)
    answered = 4
    for database in (postgres_server.new_database(), "sqlite"):
        move(moved, database)
        moved.talk(TURNS)
        answered += 2 * TURNS
        assert moved.counts() == [answered, answered, answered // 2, 0]
        assert "✗" not in moved.told("doctor")
