"""A moment of a job becomes a message."""

from segue.core.inbound import Inbound
from segue.core.jobs import Job, due_name, inbound_of
from segue.core.sources import SessionSource


def due_inbound(job: Job, due_at: float, route: SessionSource | None) -> Inbound:
    """What a job asks at one of its moments."""
    return inbound_of(job, due_name(job, due_at), route)
