"""A job: what the agent is asked at certain moments, without anybody saying it."""

import re
from datetime import UTC, datetime
from typing import NamedTuple

from segue.core.inbound import Inbound
from segue.core.sources import CRON, SessionSource

PLATFORM = CRON
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


class Job(NamedTuple):
    """A row of the jobs."""

    name: str
    schedule: str
    """A cron expression: minute, hour, day of the month, month, day of the week."""
    zone: str
    """The IANA name of the time zone in which the schedule is read."""
    prompt: str
    created_at: float
    agent: str = "main"
    deliver: str | None = None
    """Where the answer goes, as people write it; nothing when it is only kept."""
    enabled: int = 1
    last_due_at: float | None = None
    """The last moment at which it ran."""

    @property
    def ran_until(self) -> float:
        """Moments up to this one have run or never will."""
        return self.created_at if self.last_due_at is None else self.last_due_at


def is_job_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def due_name(job: Job, due_at: float) -> str:
    """What a moment of a job is called: the same whoever finds that it is due, so that it runs once."""
    return f"{job.name}@{datetime.fromtimestamp(due_at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def inbound_of(job: Job, message_id: str, route: SessionSource | None) -> Inbound:
    """What a job asks, as a message; its answer is kept, and sent to the route if there is one."""
    source = SessionSource(platform=PLATFORM, chat_id=job.name, chat_name=job.name, chat_type="channel")
    return Inbound(source, message_id, job.prompt, is_person=False, agent=job.agent, route=route)
