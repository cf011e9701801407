"""A home whose gateways are forked from a process that has loaded everything, so that each begins at once."""

from pathlib import Path
from typing import Any

from fork_server import ForkServer
from gateway_process import LAUNCHER, House


class ForkedHouse(House):
    def __init__(self, fork_server: ForkServer, folder: Path, platforms: dict[str, Any], **settings: Any) -> None:
        super().__init__(folder, platforms, **settings)
        self._fork_server = fork_server

    def begin(self, *arguments: str, launcher: Path = LAUNCHER, **variables: str) -> Any:
        with self.log.open("a") as log:
            process: Any = self._fork_server.start(
                launcher,
                *(arguments or ("gateway", "run")),
                env=self._environment | variables,
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )
        self._begun.append(process)
        return process
