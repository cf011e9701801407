"""`segue` as a process of its own that need not load everything first: forked from one that has.

What a command does, prints and exits with is the same. How long Python takes to start is measured elsewhere.
"""

import gc
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from waiting import DEADLINE

_PACKAGES = ("cli", "config", "core", "facade", "sessions", "storage", "upkeep")
"""Whose modules are loaded; not those of packages within, which chats and the browser need."""
_PRELOADED = (
    "click.shell_completion",
    "ctypes",
    "difflib",
    "rich.table",
    "segue.app.batching",
    "segue.app.checking",
    "segue.app.connecting",
    "segue.app.crew",
    "segue.cli.chatting.past",
    "segue.gateway.timetable",
    "segue.platforms.batch.platform",
    "segue.platforms.cron.moments",
    "segue.platforms.cron.platform",
    "segue.platforms.webhook.platform",
    "textwrap",
    "yaml",
    "zoneinfo",
)


_PATIENCE = {
    "segue.cli.gateway": "_STOPPING_SECONDS",
    "segue.cli.remote": "_OPENING_SECONDS",
    "segue.facade.searching": "TIME",
}
"""How long a command waits or looks: what comes of it does not depend on how busy the machine is."""


class Zygote:
    """The process that others are forked from."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        )

    def run(
        self,
        arguments: Sequence[str],
        stdin: str | None,
        environment: Mapping[str, str],
        *,
        program: Path | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command, or another program in Python, and return its output as text."""
        typed = (stdin or "").encode("utf-8", "surrogateescape")
        done = self.run_bytes(arguments, typed, environment, program=program, cwd=cwd)
        return subprocess.CompletedProcess(done.args, done.returncode, _text(done.stdout), _text(done.stderr))

    def run_bytes(
        self,
        arguments: Sequence[str],
        stdin: bytes | Path,
        environment: Mapping[str, str],
        *,
        terminal: Path | None = None,
        program: Path | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command that reads bytes or a file, and writes to a terminal if one is named."""
        with tempfile.TemporaryDirectory() as name:
            files = [Path(name, number) for number in "012"]
            if isinstance(stdin, bytes):
                files[0].write_bytes(stdin)
            else:
                files[0] = stdin
            if terminal is not None:
                files[1:] = [terminal, terminal]
            code = self._ask(
                {
                    "arguments": list(arguments),
                    "environment": dict(environment),
                    "cwd": str(cwd or os.getcwd()),
                    "files": [str(file) for file in files],
                    "program": program and str(program),
                }
            )
            said, complained = (b"" if terminal else file.read_bytes() for file in files[1:])
        return subprocess.CompletedProcess(["segue", *arguments], code, said, complained)

    def _ask(self, request: Mapping[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return int(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        self._process.communicate(timeout=DEADLINE)


def _text(data: bytes) -> str:
    """What reading a file as text makes of its bytes."""
    return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def _serve() -> None:
    for package in _PACKAGES:
        parent = import_module(f"segue.{package}")
        for module in pkgutil.iter_modules(parent.__path__, f"{parent.__name__}."):
            import_module(module.name)
    for name in _PRELOADED:
        import_module(name)
    for place, constant in _PATIENCE.items():
        assert isinstance(getattr(import_module(place), constant), float)
        setattr(import_module(place), constant, DEADLINE)
    gc.freeze()  # what is here is copied by no child only because it was looked at
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(request: dict[str, Any]) -> None:
    import signal

    signal.alarm(int(DEADLINE))  # whoever hangs is killed, which the test sees
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY | os.O_CREAT), (2, os.O_WRONLY | os.O_CREAT)):
        os.dup2(os.open(request["files"][number], mode | os.O_NOCTTY, 0o600), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as Python opens them at its start
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False, buffering=1 if os.isatty(1) else -1)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["cwd"])
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [path for path in named if path and path not in sys.path]
    sys.argv = [request["program"] or "segue", *request["arguments"]]
    code = 70
    try:
        _run(request["program"])
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 - told as Python tells it
        import traceback

        traceback.print_exc()
        code = 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                code = 1
        os._exit(code)


def _run(program: str | None) -> None:
    if program is None:
        from segue.cli import main

        main()
    else:
        import runpy

        sys.path[0] = os.path.dirname(program)
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    _serve()
