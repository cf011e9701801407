"""The jobs of a store, for whoever keeps the time."""

from segue.agent.door import Door
from segue.core.jobs import Job
from segue.core.scope import OWNER_AT_CONSOLE
from segue.ports.store import Store
from segue.sessions.scheduling import note_due


class StoredTimetable:
    """Reads the jobs anew each time, so that a job that a command adds runs without a restart."""

    def __init__(self, store: Store) -> None:
        self._door = Door(store, OWNER_AT_CONSOLE)

    async def jobs(self) -> list[Job]:
        return await self._door.read(lambda tx: tx.jobs.listed())

    async def note(self, job: Job, due_at: float) -> None:
        await self._door.write(note_due, job, due_at)

    def close(self) -> None:
        self._door.close()
