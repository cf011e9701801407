"""`segue gateway run` as a process of its own, with a stage that others installed as a platform."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from serving_house import write_settings
from waiting import DEADLINE

from segue.testing.remote import RemotePlatform

SUPPORT = Path(__file__).parent
LAUNCHER = SUPPORT / "gateway_launcher.py"


def connect(own: Mapping[str, Any]) -> RemotePlatform:
    """The platform, as its entry point makes it."""
    return RemotePlatform(Path(own["socket"]))


def install_platform(folder: Path) -> Path:
    """What an installer leaves of a package that brings a platform."""
    installed = folder / "staged-1.dist-info"
    installed.mkdir(parents=True, exist_ok=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: staged\nVersion: 1\n")
    (installed / "entry_points.txt").write_text("[segue.platforms]\nscripted = gateway_process:connect\n")
    return folder


class House:
    """A home, and the gateways that live in it one after another."""

    def __init__(self, folder: Path, platforms: Mapping[str, Any] | None = None, **settings: Any) -> None:
        """On a stage, unless other platforms are named."""
        self.folder = folder
        self.socket = folder / "socket"
        named = {"scripted": {"socket": str(self.socket)}} if platforms is None else dict(platforms)
        self.home = write_settings(folder / "home", platforms=named, **settings)
        self.log = folder / "log"
        path = os.pathsep.join([str(install_platform(folder / "installed")), str(SUPPORT), *sys.path])
        self._environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        self._environment |= {"SEGUE_HOME": str(self.home), "OPENAI_API_KEY": "x", "PYTHONPATH": path}
        self._begun: list[subprocess.Popen[str]] = []

    @property
    def variables(self) -> list[str]:
        """What a shell has to be told to work in this home."""
        names = ("SEGUE_HOME", "OPENAI_API_KEY", "PYTHONPATH")
        return [f"{name}={self._environment[name]}" for name in names]

    def begin(self, *arguments: str, launcher: Path = LAUNCHER, **variables: str) -> "subprocess.Popen[str]":
        """A gateway, or another command; what it writes down is added to the log."""
        with self.log.open("a") as log:
            process = subprocess.Popen(
                [sys.executable, str(launcher), *(arguments or ("gateway", "run"))],
                cwd=self.folder,
                env=self._environment | variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                text=True,
            )
        self._begun.append(process)
        return process

    def ask(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Another process of the same home."""
        command = [sys.executable, str(LAUNCHER), *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=DEADLINE
        )

    def close(self) -> None:
        for process in self._begun:
            if process.poll() is None:
                process.kill()
            process.wait(DEADLINE)


def kill(process: "subprocess.Popen[str]") -> float:
    """Kill a gateway without a warning; when."""
    process.send_signal(signal.SIGKILL)
    process.wait(DEADLINE)
    return time.monotonic()
