"""Jobs: put down, removed, and asked now. When each is due is found out by whoever keeps the time."""

from segue.core.errors import Invalid, NotFound
from segue.core.inbox import Want
from segue.core.jobs import Job, inbound_of, is_job_name
from segue.core.keys import DEFAULT_AGENT, KeyRules
from segue.core.queueing import QueueRules
from segue.core.routes import parse_route
from segue.core.sources import SessionSource
from segue.ports.store import Transaction
from segue.sessions.accepting import Accepted, accept, entry_in_lane, with_route_known
from segue.sessions.pairing import rules_with_owners


def add_job(tx: Transaction, job: Job) -> Job:
    """Put a job down. Its schedule and zone are taken as they are: whoever keeps the time has checked them."""
    if not is_job_name(job.name):
        raise Invalid(f"{job.name!r} cannot name a job: use small letters, digits, dots, - and _, at most 64.")
    if not job.prompt.strip():
        raise Invalid("A job needs a prompt: say what the agent is to do.")
    if job.deliver is not None:
        job = job._replace(deliver=str(parse_route(job.deliver)))
    if not tx.jobs.add(job):
        raise Invalid(f"There is a job {job.name!r} already; `segue cron remove {job.name}` removes it.")
    return job


def get_job(tx: Transaction, name: str) -> Job:
    job = tx.jobs.find(name)
    if job is None:
        raise NotFound(f"There is no job {name!r}; `segue cron list` shows which there are.")
    return job


def remove_job(tx: Transaction, name: str) -> Job:
    """Let a job run no more. What it said stays."""
    job = get_job(tx, name)
    tx.jobs.remove(name)
    return job


def note_due(tx: Transaction, job: Job, due_at: float) -> None:
    """A moment of a job was put down to be answered, or would be too late; an older one never comes after it."""
    standing = tx.jobs.find(job.name)
    if standing is not None and standing.created_at == job.created_at and standing.ran_until < due_at:
        tx.jobs.change(job.name, last_due_at=due_at)


def ask_now(
    tx: Transaction, job: Job, message_id: str, route: SessionSource | None, now: float, keys: KeyRules
) -> Accepted:
    """Put down what a job asks, outside of its moments; a gateway answers it."""
    asked = with_route_known(tx, inbound_of(job, message_id, route))
    entry = entry_in_lane(asked, rules_with_owners(tx, keys), DEFAULT_AGENT, Want.QUEUED, now)
    return accept(tx, entry, QueueRules())
