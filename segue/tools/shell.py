"""A command that runs: started in a session of its own, read as it speaks, and ended with all that it has started.

It ends with this program as well: a keeper knows its session before it runs.
"""

import asyncio
import os
import shutil
import signal
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from errno import ENOENT
from pathlib import Path
from typing import Self

from segue.tools.keepers import Keeper, shared_keeper
from segue.tools.processes import members, signal_all

Heard = Callable[[bytes], None]

_READ_AT_ONCE = 64 * 1024
_MOMENT = 0.02
_MOST_KILLS = 50
_WAITING = 'read -r go || exit 125; exec bash --noprofile --norc -c "$1" </dev/null'
"""Becomes bash when it is told that a keeper knows of it; if nobody is left to say so, it ends."""


class Hearing:
    """What comes out of a pipe, told as it comes."""

    def __init__(self, reading: int, heard: Heard) -> None:
        self._reading = reading
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self.is_over = asyncio.Event()
        os.set_blocking(reading, False)
        self._loop.add_reader(reading, self._read)

    def close(self) -> None:
        self._loop.remove_reader(self._reading)
        os.close(self._reading)

    def _read(self) -> None:
        try:
            data = os.read(self._reading, _READ_AT_ONCE)
        except BlockingIOError:
            return
        if data:
            self._heard(data)
        else:
            self._loop.remove_reader(self._reading)
            self.is_over.set()


class Shell:
    """A process of bash and those that it starts. Whoever starts one closes it, whatever happens between."""

    def __init__(self, process: Process, keeper: Keeper) -> None:
        self._process = process
        self._keeper = keeper

    @classmethod
    async def start(
        cls, command: str, folder: Path, environment: Mapping[str, str], writing: int, keeper: Keeper
    ) -> Self:
        """Run a command that says what it says into a pipe."""
        waiting, go = os.pipe()
        try:
            process = await _started(command, folder, environment, waiting, writing)
        except BaseException:
            os.close(go)
            raise
        finally:
            os.close(waiting)
        try:
            keeper.watch(process.pid)
            os.write(go, b"go\n")
        except OSError:
            await _killed(process)
            raise
        finally:
            os.close(go)
        return cls(process, keeper)

    @property
    def pid(self) -> int:
        """Of bash, and the number of its session."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Negative when a signal ended it."""
        return self._process.returncode

    async def ended(self, seconds: float | None = None) -> bool:
        """Wait for bash, not for what it leaves in the background; whether it ended in time."""
        return await within(seconds, self._process.wait)

    async def alone(self, seconds: float) -> bool:
        """Wait until nothing that it started is there any more; whether it came to that in time."""
        return await within(seconds, self._deserted)

    async def stop(self, patience: float) -> None:
        """Ask everything to end, and make it end if it has not done so after that many seconds."""
        signal_all(self._process.pid, signal.SIGTERM)
        await self.alone(patience)
        await _killed(self._process)

    async def close(self) -> None:
        """End what is left, and let go of it."""
        await _killed(self._process)
        if not members(self._process.pid):
            self._keeper.forget(self._process.pid)

    async def _deserted(self) -> None:
        while members(self._process.pid):
            await asyncio.sleep(_MOMENT)


class HeardShell:
    """A command that is listened to while it runs."""

    def __init__(self, shell: Shell, hearing: Hearing) -> None:
        self._hearing = hearing
        self.running = shell

    @classmethod
    async def start(cls, command: str, folder: Path, environment: Mapping[str, str], heard: Heard) -> Self:
        reading, writing = os.pipe()
        try:
            shell = await Shell.start(command, folder, environment, writing, shared_keeper())
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        return cls(shell, Hearing(reading, heard))

    async def silent(self, seconds: float) -> bool:
        """Wait until nobody is left who could say something; whether it came to that in time."""
        return await within(seconds, self._hearing.is_over.wait)

    async def close(self) -> None:
        try:
            await self.running.close()
        finally:
            self._hearing.close()


async def _started(command: str, folder: Path, environment: Mapping[str, str], waiting: int, writing: int) -> Process:
    if shutil.which("bash", path=environment.get("PATH")) is None:
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", _WAITING, "sh", command),
            stdin=waiting,
            stdout=writing,
            stderr=writing,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):  # it did not start, and nobody wants it any more
            await _killed(await starting)
        raise


async def _killed(process: Process) -> None:
    """Kill what runs in a session, and what it managed to start meanwhile."""
    for _ in range(_MOST_KILLS):
        signal_all(process.pid, signal.SIGKILL)
        await within(_MOMENT, process.wait)
        if process.returncode is not None and not members(process.pid):
            return
        await asyncio.sleep(_MOMENT)


async def within(seconds: float | None, act: Callable[[], Awaitable[object]]) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await act()
    except TimeoutError:
        return False
    return True
