"""A real Matrix homeserver for the tests: a Synapse on this machine alone, in a folder of its own, gone afterwards."""

import base64
import fcntl
import hashlib
import hmac
import json
import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from counterparts import counterparts_python
from held_port import HeldPort
from synapse_settings import SECRET, settings, write_settings
from waiting import DEADLINE

LAUNCHER = Path(__file__).with_name("synapse_launcher.py")
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open  # whatever the environment says of proxies


class User(NamedTuple):
    user_id: str
    password: str


class Synapse:
    """A server that is running, for many tests: each has users and rooms of its own."""

    def __init__(self, url: str, pid: int, log: str) -> None:
        self.url = url
        self.pid = pid
        self._log = Path(log)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def register(self, name: str = "somebody") -> User:
        """Somebody new, whose name nobody else has."""
        nonce = self._ask("/_synapse/admin/v1/register")["nonce"]
        user = {"nonce": nonce, "username": f"{name}-{secrets.token_hex(5)}", "password": secrets.token_hex(8)}
        parts = "\0".join([nonce, user["username"], user["password"], "notadmin"])
        proof = hmac.new(SECRET.encode(), parts.encode(), hashlib.sha1).hexdigest()
        made = self._ask("/_synapse/admin/v1/register", {**user, "admin": False, "mac": proof})
        return User(made["user_id"], user["password"])

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        with _open(urllib.request.Request(self.url + path, data), timeout=DEADLINE) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


class OwnSynapse(Synapse):
    """A server of one's own, which may come and go."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="segue-synapse-")
        shutil.copytree(_template(), self._folder.name, dirs_exist_ok=True)
        self._server = _Server(Path(self._folder.name))
        super().__init__(self._server.url, 0, str(self._server.log))
        self.start()

    @property
    def address(self) -> dict[str, Any]:
        """What a `Synapse` is made of."""
        return {"url": self.url, "pid": self.pid, "log": str(self._log)}

    def start(self) -> None:
        """On the same data and the same port as before."""
        self._server.start()
        self.pid = self._server.pid

    def stop(self) -> None:
        """As when a machine is shut down in peace."""
        self._server.stop()

    def kill(self) -> None:
        """As when the plug is pulled."""
        self._server.kill()

    def close(self) -> None:
        self._server.kill()
        self._server.port.close()
        self._folder.cleanup()


class _Server:
    """The process, and what it keeps in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = HeldPort()
        self.log = folder / "log"
        self._settings = write_settings(folder, self.port.number)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port.number}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the homeserver is down"
        return self._process.pid

    def start(self) -> None:
        command = [counterparts_python(), str(LAUNCHER), "--config-path", str(self._settings)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self._folder, env=_environment(), stdin=subprocess.PIPE, stdout=log, stderr=log
            )
        end = time.monotonic() + DEADLINE
        while not self._answers():
            assert self._process.poll() is None, f"the homeserver ended:\n{self.log.read_text()[-3000:]}"
            assert time.monotonic() < end, f"the homeserver never answered:\n{self.log.read_text()[-3000:]}"
            time.sleep(0.02)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.communicate(timeout=DEADLINE)
            self._process = None

    def _answers(self) -> bool:
        try:
            with _open(f"{self.url}/health", timeout=DEADLINE):
                return True
        except OSError:
            return False


def _environment() -> dict[str, str]:
    """What keeps the tests on this machine is on the path; what they import is not."""
    without_network = str(Path(__file__).parent / "without_network")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SYNAPSE"))}
    return kept | {"PYTHONPATH": without_network}


def _template() -> Path:
    """An empty database as the first start makes it: made once for these versions and settings, and copied by all."""
    installed = Path(counterparts_python()).parents[1]
    meant = json.dumps(settings(Path("folder"), 0), sort_keys=True)
    made = installed / f"synapse-{hashlib.sha256(meant.encode()).hexdigest()[:12]}"
    with (installed / "synapse.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            _make(made)
    return made


def _make(made: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="segue-synapse-", dir=made.parent) as folder:
        here = Path(folder)
        key = base64.b64encode(secrets.token_bytes(32)).decode().rstrip("=")
        (here / "signing.key").write_text(f"ed25519 tests {key}\n")
        server = _Server(here)
        try:
            server.start()
            _wait_for_the_last_update(here / "homeserver.db")
            server.stop()
        finally:
            server.kill()
            server.port.close()
        kept = here / "kept"
        kept.mkdir()
        for name in ("homeserver.db", "signing.key"):
            (here / name).rename(kept / name)
        kept.rename(made)


def _wait_for_the_last_update(database: Path) -> None:
    """A new database gets some of its indexes while it is in use already."""
    end = time.monotonic() + DEADLINE
    while True:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as opened:
            left = opened.execute("SELECT count(*) FROM background_updates").fetchone()[0]
        if not left:
            return
        assert time.monotonic() < end, f"{left} updates of the database never ended"
        time.sleep(0.1)
