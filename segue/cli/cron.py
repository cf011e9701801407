"""`segue cron`: what the agent does at certain moments."""

import time
import uuid
from datetime import datetime
from types import ModuleType

import click

from segue import app
from segue.cli.completing import complete_job
from segue.cli.groups import CommandGroup, DestructiveCommand
from segue.cli.options import AS_JSON
from segue.cli.output import Column, note, say, show_json, table
from segue.config import Settings
from segue.config.zones import HOST, zone_of
from segue.core.errors import Invalid
from segue.core.jobs import Job
from segue.core.leases import GATEWAY
from segue.core.moments import ago
from segue.core.routes import parse_route
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import one_line
from segue.ports.store import Transaction
from segue.sessions.accepting import Accepted
from segue.sessions.handing import find_place
from segue.sessions.scheduling import add_job, ask_now, get_job, remove_job
from segue.upkeep.living import is_gone

_JOBS = [
    Column("Job"),
    Column("Schedule"),
    Column("Next"),
    Column("Last", yields=3),
    Column("To", yields=2),
    Column("Prompt", 1, yields=1),
]
_NAME = click.argument("name", shell_complete=complete_job)


@click.group(cls=CommandGroup)
def cron() -> None:
    """Let your agent do something at certain moments. A gateway that runs does it."""


@cron.command("list")
@AS_JSON
def list_(as_json: bool) -> None:
    """Show the jobs, and when each runs next."""
    schedules, now = _schedules(), time.time()
    with app.open_for_reading() as store:
        jobs = store.read(OWNER_AT_CONSOLE, lambda tx: tx.jobs.listed())
    if as_json:
        show_json([_plain(job, schedules, now) for job in jobs])
    elif jobs:
        table(_JOBS, [_row(job, schedules, now) for job in jobs])
    else:
        say("There are no jobs; `segue cron add` adds one.")


@cron.command("add")
@click.argument("name")
@click.argument("schedule")
@click.argument("prompt")
@click.option("--zone", metavar="NAME", help="The time zone, such as Europe/Berlin; otherwise that of the settings.")
@click.option(
    "--deliver", metavar="PLATFORM[:[TYPE:]CHAT]", help="Where the answer goes; without a chat, the home channel."
)
@click.option("--agent", default="main", show_default=True, help="Who does it.")
@AS_JSON
def add_(
    name: str, schedule: str, prompt: str, zone: str | None, deliver: str | None, agent: str, as_json: bool
) -> None:
    """Let the agent do PROMPT whenever SCHEDULE says.

    SCHEDULE is minute, hour, day of the month, month and day of the week: "30 7 * * 1-5" is half past seven on
    weekdays. Each run has a conversation of its own.
    """
    schedules, now, settings = _schedules(), time.time(), app.settings()
    zone = zone or _usual_zone(settings)
    schedules.zone_named(zone)
    if agent != "main" and agent not in settings.agents:
        raise Invalid(f"There is no agent {agent!r} in the settings; `agents` there says which there are.")
    job = Job(name, schedules.checked_schedule(schedule), zone, prompt, now, agent, deliver)
    with app.open_store(chosen=settings) as store:
        job = store.write(OWNER_AT_CONSOLE, add_job, job)
    if as_json:
        show_json(_plain(job, schedules, now))
        return
    say(f"{job.name} runs next on {_moment(job, schedules.next_due(job, now))}, whenever a gateway runs.")
    if job.deliver and (name := parse_route(job.deliver).platform) not in settings.platforms:
        note(f"`platforms` in config.yaml does not name {name}: until it does, what is answered is not delivered.")


@cron.command("remove", cls=DestructiveCommand)
@_NAME
@AS_JSON
def remove_(name: str, as_json: bool) -> None:
    """Let a job run no more. What it has said stays."""
    with app.open_store() as store:
        job = store.write(OWNER_AT_CONSOLE, remove_job, name)
    if as_json:
        show_json({"name": job.name, "removed": True})
        return
    say(f"{job.name} runs no more.")


@cron.command("run")
@_NAME
@AS_JSON
def run_(name: str, as_json: bool) -> None:
    """Let a gateway do a job now, beside its moments."""
    settings = app.settings()
    message_id = f"{name}@by-hand-{uuid.uuid4().hex}"
    with app.open_store(chosen=settings) as store:
        accepted, is_served = store.write(OWNER_AT_CONSOLE, _ask, name, message_id, settings)
    if accepted.is_refused:
        raise Invalid(f"{name} was not run: {accepted.entry.reason}")
    if as_json:
        show_json({"name": name, "message_id": message_id, "gateway": is_served})
    elif is_served:
        say(f"{name} runs now.")
    else:
        say(f"{name} runs as soon as a gateway does; at the moment there is none.")


def _ask(tx: Transaction, name: str, message_id: str, settings: Settings) -> tuple[Accepted, bool]:
    job = get_job(tx, name)
    route = find_place(tx, parse_route(job.deliver), settings.homes) if job.deliver else None
    accepted = ask_now(tx, job, message_id, route, time.time(), settings.key_rules)
    runs = tx.leases.open_runs()
    return accepted, any(run.program == GATEWAY and not is_gone(run) for run in runs)


def _usual_zone(settings: Settings) -> str:
    """The zone of the settings, by the name that every machine knows it by."""
    name = getattr(zone_of(settings.session.reset.timezone or HOST, settings.tz), "key", None)
    if not name:
        raise Invalid("This machine does not say the name of its time zone: add --zone, as in --zone Europe/Berlin.")
    return str(name)


def _schedules() -> ModuleType:
    try:
        from segue.platforms.cron import moments
    except ModuleNotFoundError as error:
        raise Invalid("Jobs need the extra `gateway`: pip install 'segue[gateway]'.") from error
    return moments


def _row(job: Job, schedules: ModuleType, now: float) -> list[str]:
    last = "never" if job.last_due_at is None else ago(job.last_due_at, now)
    return [job.name, job.schedule, _next(job, schedules, now), last, job.deliver or "", one_line(job.prompt)]


def _next(job: Job, schedules: ModuleType, now: float) -> str:
    """The next moment as its zone has it, or why there is none."""
    try:
        return _moment(job, schedules.next_due(job, now)) if job.enabled else "paused"
    except Invalid:
        return f"never: no zone {job.zone} here"


def _moment(job: Job, at: float) -> str:
    from zoneinfo import ZoneInfo

    return f"{datetime.fromtimestamp(at, ZoneInfo(job.zone)):%Y-%m-%d %H:%M} {job.zone}"


def _plain(job: Job, schedules: ModuleType, now: float) -> dict[str, object]:
    try:
        due = schedules.next_due(job, now) if job.enabled else None
    except Invalid:
        due = None
    return {**job._asdict(), "enabled": bool(job.enabled), "next_due_at": due}
