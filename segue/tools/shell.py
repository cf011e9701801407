"""A command that runs: started in a session of its own, read as it speaks, and ended with all that it has started."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from segue.tools.processes import members, signal_all

Heard = Callable[[bytes], None]

_READ_AT_ONCE = 64 * 1024
_MOMENT = 0.02
_MOST_KILLS = 50


class Shell:
    """A process of bash and those that it starts. Whoever starts one closes it, whatever happens between."""

    def __init__(self, process: Process, reading: int, heard: Heard) -> None:
        self._process = process
        self._reading = reading
        self._heard = heard
        self._is_silent = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(reading, False)
        self._loop.add_reader(reading, self._read)

    @classmethod
    async def start(cls, command: str, folder: Path, environment: Mapping[str, str], heard: Heard) -> Self:
        reading, writing = os.pipe()
        try:
            process = await _started(command, folder, environment, writing)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        return cls(process, reading, heard)

    @property
    def exit_code(self) -> int | None:
        """Negative when a signal ended it."""
        return self._process.returncode

    async def ended(self, seconds: float) -> bool:
        """Wait for bash, not for what it leaves in the background; whether it ended in time."""
        return await _within(seconds, self._process.wait)

    async def silent(self, seconds: float) -> bool:
        """Wait until nobody is left who could say something; whether it came to that in time."""
        return await _within(seconds, self._is_silent.wait)

    async def alone(self, seconds: float) -> bool:
        """Wait until nothing that it started is there any more; whether it came to that in time."""
        return await _within(seconds, self._deserted)

    async def stop(self, patience: float) -> None:
        """Ask everything to end, and make it end if it has not done so after that many seconds."""
        signal_all(self._process.pid, signal.SIGTERM)
        await self.alone(patience)
        await _killed(self._process)

    async def close(self) -> None:
        """End what is left, and let go of it."""
        try:
            await _killed(self._process)
        finally:
            self._loop.remove_reader(self._reading)
            os.close(self._reading)

    async def _deserted(self) -> None:
        while members(self._process.pid):
            await asyncio.sleep(_MOMENT)

    def _read(self) -> None:
        try:
            data = os.read(self._reading, _READ_AT_ONCE)
        except BlockingIOError:
            return
        if data:
            self._heard(data)
        else:
            self._loop.remove_reader(self._reading)
            self._is_silent.set()


async def _started(command: str, folder: Path, environment: Mapping[str, str], writing: int) -> Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *("bash", "--noprofile", "--norc", "-c", command),
            stdin=DEVNULL,
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
        await _within(_MOMENT, process.wait)
        if process.returncode is not None and not members(process.pid):
            return
        await asyncio.sleep(_MOMENT)


async def _within(seconds: float, act: Callable[[], Awaitable[object]]) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await act()
    except TimeoutError:
        return False
    return True
