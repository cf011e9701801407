"""Python programs as processes of their own, forked from one that has loaded the product, so that each begins at once.

A program does the same as under `python -c CODE` or `python FILE`: it has its own arguments, environment, folder and
streams, and can be killed. How long Python takes to start is measured elsewhere.
"""

import gc
import json
import os
import pkgutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from waiting import DEADLINE

PIPE = subprocess.PIPE
_LENGTH = struct.Struct("!I")
_POLL_INTERVAL = 0.003
_PACKAGES = (
    *("app", "agent", "agent.providers", "cli", "cli.chatting", "config", "core", "facade", "gateway", "sessions"),
    *("storage", "testing", "tools", "upkeep", "platforms.batch", "platforms.cron"),
)
"""Whose modules are loaded."""
_PRELOADED = ("ctypes", "difflib", "rich.table", "segue.web.listening", "segue.web.premises", "yaml", "zoneinfo")


class Forked:
    """A program that was started, with as much of `subprocess.Popen` as the tests need."""

    def __init__(self, server: "ForkServer", pid: int, stdout: IO[bytes] | None, stderr: IO[bytes] | None) -> None:
        self._server = server
        self.pid = pid
        self.stdout, self._stderr = stdout, stderr
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._server.exit_code(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = time.monotonic() + (DEADLINE if timeout is None else timeout)
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or DEADLINE)
            time.sleep(_POLL_INTERVAL)
        return code

    def send_signal(self, sign: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sign)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """What it says until its end."""
        said = self.stdout.read() if self.stdout else b""
        self.wait(timeout)
        complained = b""
        if self._stderr:
            self._stderr.seek(0)
            complained = self._stderr.read()
        self.close()
        return said, complained

    def close(self) -> None:
        for stream in (self.stdout, self._stderr):
            if stream:
                stream.close()


class ForkServer:
    """The process that programs are forked from."""

    def __init__(self, *modules: str) -> None:
        """Modules that its programs need beside those of the product are loaded, too."""
        self._socket, other = socket.socketpair()
        with other:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).resolve()), str(other.fileno()), *modules],
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                env=os.environ | {"PYTHONIOENCODING": "utf-8"},
            )
        self._lock = threading.Lock()

    def start(
        self,
        program: str | Path,
        *arguments: object,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: IO[Any] | None = None,
        stdout: IO[Any] | int | None = None,
        stderr: IO[Any] | int | None = None,
    ) -> Forked:
        """Begin a program: a file, or code. With PIPE, output can be read while it runs and errors when it ended."""
        reading: IO[bytes] | None = None
        complaints: IO[bytes] | None = None
        opened: list[int] = []
        with Path(os.devnull).open("rb") as nothing:
            streams = [(stdin or nothing).fileno()]
            if isinstance(stdout, int):
                source, target = os.pipe()
                opened.append(target)
                reading = open(source, "rb", buffering=0)  # noqa: SIM115 - closed by whoever reads it
                streams.append(target)
            else:
                streams.append(stdout.fileno() if stdout else sys.__stdout__.fileno())  # type: ignore[union-attr]
            if isinstance(stderr, int):
                complaints = tempfile.TemporaryFile()  # noqa: SIM115
                streams.append(complaints.fileno())
            else:
                streams.append(stderr.fileno() if stderr else sys.__stderr__.fileno())  # type: ignore[union-attr]
            request = {
                "program": str(program),
                "is_file": isinstance(program, Path),
                "arguments": [str(one) for one in arguments],
                "environment": dict(os.environ if env is None else env),
                "cwd": str(cwd or Path.cwd()),
            }
            pid = self._ask(request, streams)
        for descriptor in opened:
            os.close(descriptor)
        return Forked(self, pid, reading, complaints)

    def run(
        self,
        program: str | Path,
        *arguments: object,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float | None = None,
    ) -> "subprocess.CompletedProcess[str]":
        """Let a program come to its end; what it said."""
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as out,
            tempfile.TemporaryFile("w+", encoding="utf-8") as err,
        ):
            process = self.start(program, *arguments, env=env, cwd=cwd, stdout=out, stderr=err)
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess([str(one) for one in arguments], code, out.read(), err.read())

    def exit_code(self, pid: int) -> int | None:
        """How a program ended; None as long as it runs."""
        code: int | None = self._ask({"ended": pid}, [])
        return code

    def close(self) -> None:
        self._socket.close()
        self._process.wait(DEADLINE)

    def _ask(self, request: Mapping[str, Any], descriptors: list[int]) -> Any:
        payload = json.dumps(request).encode()
        with self._lock:
            head = _LENGTH.pack(len(payload))
            if descriptors:
                socket.send_fds(self._socket, [head], descriptors)
            else:
                self._socket.sendall(head)
            self._socket.sendall(payload)
            return json.loads(_receive(self._socket, _LENGTH.unpack(_receive(self._socket, _LENGTH.size))[0]))


def _receive(connection: socket.socket, length: int) -> bytes:
    received = b""
    while len(received) < length:
        piece = connection.recv(length - len(received))
        if not piece:
            raise EOFError("The other end has gone away.")
        received += piece
    return received


def _serve(connection: socket.socket, modules: Sequence[str]) -> None:
    for package in _PACKAGES:
        parent = import_module(f"segue.{package}")
        for module in pkgutil.iter_modules(parent.__path__, f"{parent.__name__}."):
            import_module(module.name)
    for name in (*_PRELOADED, *modules):
        import_module(name)
    gc.freeze()  # what is here is copied by no child only because it was looked at
    while True:
        head, descriptors, _, _ = socket.recv_fds(connection, _LENGTH.size, 3)
        if not head:
            return
        request = json.loads(_receive(connection, _LENGTH.unpack(head)[0]))
        answer: int | None
        if "ended" in request:
            pid, status = os.waitpid(request["ended"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        elif (answer := os.fork()) == 0:
            connection.close()
            _become(request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        told = json.dumps(answer).encode()
        connection.sendall(_LENGTH.pack(len(told)) + told)


def _become(request: dict[str, Any], descriptors: list[int]) -> None:
    import runpy
    import traceback
    from types import ModuleType

    code = 1
    try:
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
        os.environ.clear()
        os.environ.update(request["environment"])
        time.tzset()
        os.chdir(request["cwd"])
        named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:0] = [path for path in named if path and path not in sys.path]
        if request["is_file"]:
            sys.path.insert(0, os.path.dirname(request["program"]))
            sys.argv = [request["program"], *request["arguments"]]
            runpy.run_path(request["program"], run_name="__main__")
        else:
            sys.argv = ["-c", *request["arguments"]]
            sys.modules["__main__"] = module = ModuleType("__main__")
            exec(compile(request["program"], "<string>", "exec"), module.__dict__)
        code = 0
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 - told as Python tells it
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = 1
        os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
