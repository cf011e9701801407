"""Processes that go on beside a conversation: each is a row, has a keeper, and ends with the program at the latest."""

import asyncio
import os
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from segue.core.background import Process, ProcessState
from segue.core.errors import StoreError
from segue.core.scope import Scope
from segue.ports.store import Store
from segue.ports.tool import ToolFailed
from segue.sessions.backgrounding import (
    begin_process,
    end_process,
    find_process,
    processes_around,
    running_processes,
)
from segue.tools.keepers import Keeper
from segue.tools.recording import Recorded, read_record
from segue.tools.shell import Shell
from segue.tools.threads import in_thread

MOST = 20
"""Processes at once."""
_PATIENCE = 2.0  # seconds between asking to end and killing
_DRAINING = 0.5  # seconds for what bash has left behind
_DAYS = 7 * 86_400.0  # for which what an ended process has said is kept


class Kept:
    """A process that this program keeps."""

    def __init__(self, shell: Shell, keeper: Keeper) -> None:
        self.shell = shell
        self.keeper = keeper
        self.is_stopped = False
        """Whether somebody asked for its end."""

    async def stop(self) -> None:
        self.is_stopped = self.shell.exit_code is None
        await self.shell.stop(_PATIENCE)

    async def over(self) -> None:
        """Wait until nothing is left of it and its last words are written down."""
        await self.shell.ended()
        await self.shell.alone(_DRAINING)
        await self.shell.close()
        await in_thread(self.keeper.close)


class Background:
    """What one run of a program keeps, and what is known of the rest."""

    def __init__(
        self, store: Store, scope: Scope, run_id: str, folder: Path, *, now: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._scope = scope
        self._run_id = run_id
        self._folder = folder
        self._now = now
        self._kept: dict[str, tuple[Kept, asyncio.Task[None]]] = {}
        self.told: dict[str, int] = {}
        """How many bytes of what each process has said were told: tools come and go with every turn."""

    async def start(self, session_id: str, command: str, cwd: Path, environment: Mapping[str, str]) -> Process:
        """Start a process and write down that it is there; it is there only if both succeed."""
        if len(self._kept) >= MOST:
            raise ToolFailed(f"{MOST} processes run in the background already; stop one with the tool process.")
        await in_thread(self._make_room)
        process_id = uuid.uuid4().hex[:12]
        kept = await _started(command, cwd, environment, self._folder / process_id)
        following = asyncio.create_task(self._follow(process_id, kept))
        self._kept[process_id] = (kept, following)
        state = str(ProcessState.RUNNING)
        process = Process(process_id, session_id, self._run_id, command, str(cwd), kept.shell.pid, state, self._now())
        try:
            await in_thread(self._store.write, self._scope, begin_process, process)
        except BaseException:
            await self._stop(process_id)
            raise
        return process

    async def around(self, session_id: str) -> list[Process]:
        return await in_thread(self._store.read, self._scope, processes_around, session_id)

    async def find(self, process_id: str) -> Process | None:
        return await in_thread(self._store.read, self._scope, find_process, process_id)

    async def output(self, process_id: str) -> Recorded:
        """What a process has said last, whoever keeps it."""
        return await in_thread(read_record, self._folder / process_id)

    async def stop(self, process: Process) -> None:
        """End a process that runs, if it is ours to end."""
        if process.id not in self._kept:
            raise ToolFailed(f"{process.id} is kept by another program of this user; stop it where it was started.")
        await self._stop(process.id)

    async def close(self) -> None:
        """End everything, and say so."""
        await asyncio.gather(*map(self._stop, list(self._kept)))

    async def _stop(self, process_id: str) -> None:
        if process_id in self._kept:
            kept, following = self._kept[process_id]
            await kept.stop()
            await asyncio.shield(following)

    async def _follow(self, process_id: str, kept: Kept) -> None:
        try:
            await kept.over()
            state = ProcessState.STOPPED if kept.is_stopped else ProcessState.ENDED
            with suppress(StoreError):  # the next start says that it is lost
                code, now = kept.shell.exit_code, self._now()
                await in_thread(self._store.write, self._scope, end_process, process_id, state, code, now)
        finally:
            del self._kept[process_id]

    def _make_room(self) -> None:
        """The folder, for its owner alone, without what ended long ago."""
        for place in reversed([self._folder, *self._folder.parents]):
            if not place.exists():
                place.mkdir(0o700, exist_ok=True)
        running = {process.id for process in self._store.read(self._scope, running_processes)}
        for file in self._folder.iterdir():
            with suppress(FileNotFoundError):
                if file.name not in running and self._now() - file.lstat().st_mtime > _DAYS:
                    file.unlink()


async def _started(command: str, cwd: Path, environment: Mapping[str, str], file: Path) -> Kept:
    reading, writing = os.pipe()
    try:
        keeper = Keeper(reading, file)
        try:
            return Kept(await Shell.start(command, cwd, environment, writing, keeper), keeper)
        except BaseException:
            await in_thread(keeper.close)
            raise
    finally:
        os.close(reading)
        os.close(writing)
