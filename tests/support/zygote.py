"""`segue` as a process of its own that need not load everything first: forked from one that has.

What a command does, prints and exits with is the same. How long Python takes to start is measured elsewhere.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PRELOADED = (
    "segue.app",
    "segue.cli.sessions",
    "segue.cli.searching",
    "segue.cli.moving",
    "segue.cli.showing",
    "segue.cli.removing",
    "segue.cli.marking",
    "segue.cli.status",
    "segue.cli.insights",
    "segue.cli.doctoring",
    "segue.cli.keeping",
    "segue.cli.tidying",
    "segue.cli.tables",
    "segue.storage.postgres",
    "segue.facade.session_db",
    "segue.core.redaction",
    "yaml",
)


class Zygote:
    """The process that others are forked from."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        )

    def run(
        self, arguments: tuple[str, ...], stdin: str | None, environment: Mapping[str, str], seconds: int
    ) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "0").write_bytes((stdin or "").encode("utf-8", "surrogateescape"))
            request = {"arguments": arguments, "environment": dict(environment), "cwd": os.getcwd(), "folder": name}
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(request | {"seconds": seconds}) + "\n")
            self._process.stdin.flush()
            code = json.loads(self._process.stdout.readline())
            said, complained = ((folder / number).read_text("utf-8") for number in "12")
        return subprocess.CompletedProcess(["segue", *arguments], code, said, complained)

    def close(self) -> None:
        self._process.communicate(timeout=10)


def _serve() -> None:
    for module in _PRELOADED:
        __import__(module)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(request: dict[str, Any]) -> None:
    import signal

    signal.alarm(request["seconds"])  # whoever hangs is killed, which the test sees
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY | os.O_CREAT), (2, os.O_WRONLY | os.O_CREAT)):
        os.dup2(os.open(os.path.join(request["folder"], str(number)), mode, 0o600), number)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["cwd"])
    sys.argv = ["segue", *request["arguments"]]
    code = 70
    try:
        from segue.cli import main

        main()
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


if __name__ == "__main__":
    _serve()
