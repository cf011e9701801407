"""Somebody who follows a page: a folder with the files that it shows, a shell, and what they type."""

import os
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from held_port import HeldPort
from waiting import DEADLINE

PATIENCE = DEADLINE

Output = int | IO[bytes]


class Reader:
    """Types as somebody would whose environment is activated. The port that a page names is one of their own."""

    def __init__(self, folder: Path, port: str, config: str) -> None:
        self.folder = folder
        self._port, self._held = port, HeldPort()
        self._begun: list[subprocess.Popen[bytes]] = []
        home = folder / "home"
        home.mkdir(mode=0o700)
        (home / "config.yaml").touch(mode=0o600)
        (home / "config.yaml").write_text(self._ours(config), "utf-8")
        without_keys = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        self._environment = without_keys | {
            "SEGUE_HOME": str(home),
            "PATH": os.pathsep.join([str(_commands(folder / "bin")), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join([str(folder / "installed"), *sys.path]),
        }

    def install(self, package: Path) -> None:
        """As pip does it: a wheel is built and unpacked."""
        target = self.folder / "installed"
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
        subprocess.run(build, cwd=package, check=True, capture_output=True, timeout=PATIENCE)
        (wheel,) = target.glob("*.whl")
        with zipfile.ZipFile(wheel) as opened:
            opened.extractall(target)

    def begin(self, lines: str) -> Path:
        """Type what goes on behind the prompt; where it writes what it has to say."""
        log = self.folder / "log"
        with log.open("ab") as said:
            command = ["bash", "-ec", f"{self._ours(lines)}\nwait"]
            self._begun.append(self._popen(command, stdout=said, stderr=said))
        return log

    def say(self, line: str, until: str = "") -> str:
        """Type a line, again and again until what it prints holds something."""
        end = time.monotonic() + PATIENCE
        while True:
            shell = self._popen(["bash", "-ec", self._ours(line)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            said, errors = (heard.decode() for heard in shell.communicate(timeout=PATIENCE))
            if shell.returncode == 0 and until in said:
                return said
            assert time.monotonic() < end, f"{line}: {said}{errors}"
            time.sleep(0.2)

    def stop(self) -> None:
        """End everything that was begun, and what that has begun."""
        for shell in self._begun:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait(PATIENCE)
        self._begun.clear()
        self._held.close()

    def _popen(self, command: list[str], stdout: Output, stderr: Output) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )

    def _ours(self, text: str) -> str:
        return text.replace(self._port, str(self._held.number))


def _commands(folder: Path) -> Path:
    folder.mkdir()
    for name, words in (("python", ""), ("segue", "-m segue")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (folder / name).chmod(0o700)
    return folder
