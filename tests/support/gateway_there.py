"""`segue gateway run` with its door open, as a process of its own that answers without a model."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from waiting import DEADLINE, wait_until

COMMAND = (sys.executable, "-m", "segue")


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
def gateway_at(home: Path, *, command: tuple[str, ...] = COMMAND, limits: str = "", **settings: Any) -> Iterator[There]:
    """A gateway of a home, which may have something in it already, and a token that may do everything.

    `limits` are commands of a shell before the gateway begins, such as `ulimit -n 256`.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "config.yaml").write_text(json.dumps({"gateway": {"port": 0}} | settings))
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environment |= {"SEGUE_HOME": str(home)}
    made = [sys.executable, "-m", "segue", "tokens", "add", "laptop", "--scope", "admin", "--json"]
    told = subprocess.run(made, env=environment, capture_output=True, check=True, timeout=DEADLINE).stdout
    with (home / "log").open("w") as log:
        begun = ["sh", "-c", f'{limits}\nexec "$@"', "sh", *command, "gateway", "run"]
        gateway = subprocess.Popen(begun, env=environment, stderr=log)
    try:
        yield There(home, _address(home / "log"), json.loads(told)["token"], gateway)
    finally:
        gateway.terminate()
        gateway.wait(DEADLINE)


def _address(log: Path) -> str:
    def told() -> re.Match[str] | None:
        return re.search("Programs call (http[^,\n]+),", log.read_text())

    try:
        wait_until(told, "an address in the log")
    except TimeoutError:
        raise AssertionError(log.read_text()) from None
    found = told()
    assert found is not None
    return found[1]
