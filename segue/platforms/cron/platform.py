"""Jobs, asked at their moments.

A moment is named by its job and its time, and the inbox takes each name once. So whatever crashes when, and however
many look at the clock, a moment is asked exactly once.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from segue.core.errors import Invalid
from segue.core.jobs import PLATFORM, Job
from segue.core.routes import Places, Route, parse_route
from segue.core.sources import SessionSource
from segue.platforms.cron import inbound, moments, outbound
from segue.ports.platform import Arriving, Intake, Post, Sent, Traits

LOOK_SECONDS = 1.0
"""How soon a job that was added, and a clock that was set, are noticed."""
TRAITS = Traits(Arriving.CURSOR, longest=1_000_000, can_send=False)

_log = logging.getLogger(__name__)


class Timetable(Protocol):
    """The jobs, as they are kept."""

    async def jobs(self) -> list[Job]: ...
    async def note(self, job: Job, due_at: float) -> None:
        """A moment of a job has been put down."""


async def no_places(_route: Route) -> SessionSource | None:
    return None


class CronPlatform:
    """Passes on what jobs ask."""

    def __init__(
        self,
        timetable: Timetable,
        places: Places = no_places,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = PLATFORM
        self.account = ""
        self.traits = TRAITS
        self._timetable = timetable
        self._places = places
        self._now = now
        self._sleep = sleep
        self._broken: set[Job] = set()

    async def run(self, intake: Intake) -> None:
        intake.connected()
        while True:
            jobs = [job for job in await self._timetable.jobs() if job.enabled and self._is_sound(job)]
            for job in jobs:
                await self._ask(job, intake)
            await self._sleep(self._pause(jobs))

    async def send(self, post: Post) -> Sent:
        raise outbound.refusal(post)

    async def edit(self, post: Post, message_id: str) -> None:  # noqa: ARG002 - as the port has it
        raise outbound.refusal(post)

    async def typing(self, route: SessionSource) -> None: ...

    async def _ask(self, job: Job, intake: Intake) -> None:
        due_at = moments.missed(job, self._now())
        if due_at is None:
            return
        route = await self._places(parse_route(job.deliver)) if job.deliver else None
        said = inbound.due_inbound(job, due_at, route)
        if job.deliver and route is None:
            _log.warning("%s has no home channel; what the job %s says is kept and not sent.", job.deliver, job.name)
        await intake.receive(said)
        await self._timetable.note(job, due_at)

    def _pause(self, jobs: list[Job]) -> float:
        now = self._now()
        return min([LOOK_SECONDS, *(moments.next_due(job, now) - now for job in jobs)])

    def _is_sound(self, job: Job) -> bool:
        """Whether it can ever be due: another program, or a system with other time zones, may have put it down."""
        try:
            moments.check(job)
        except Invalid as error:
            if job not in self._broken:
                self._broken.add(job)
                _log.error("The job %s cannot run: %s", job.name, error)
            return False
        return True
