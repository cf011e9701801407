"""`segue gateway run` with its door open, as a process of its own that answers without a model."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple


class There(NamedTuple):
    """Another machine, as far as its gateway can tell."""

    home: Path
    url: str
    token: str
    process: "subprocess.Popen[bytes]"

    @property
    def log(self) -> str:
        return (self.home / "log").read_text()


@contextmanager
def gateway_at(home: Path, **settings: Any) -> Iterator[There]:
    """A gateway of a home, which may have something in it already, and a token that may do everything."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "config.yaml").write_text(json.dumps({"gateway": {"port": 0}} | settings))
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environment |= {"SEGUE_HOME": str(home)}
    made = [sys.executable, "-m", "segue", "tokens", "add", "laptop", "--scope", "admin", "--json"]
    told = subprocess.run(made, env=environment, capture_output=True, check=True, timeout=60).stdout
    with (home / "log").open("w") as log:
        gateway = subprocess.Popen([sys.executable, "-m", "segue", "gateway", "run"], env=environment, stderr=log)
    try:
        yield There(home, _address(home / "log"), json.loads(told)["token"], gateway)
    finally:
        gateway.terminate()
        gateway.wait(30)


def _address(log: Path) -> str:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for line in log.read_text().splitlines():
            if "Programs call http" in line:
                return line.partition("Programs call ")[2].partition(",")[0]
        time.sleep(0.1)
    raise AssertionError(log.read_text())
