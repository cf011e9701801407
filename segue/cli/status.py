"""`segue status` and `segue sessions stats`: one look at the whole."""

import time
from typing import Any

import click

from segue import app
from segue.cli.lane_words import run_row
from segue.cli.options import AS_JSON
from segue.cli.output import say, show_json, table
from segue.cli.tables import session_table
from segue.cli.tidying import tidy_up
from segue.core.inbox import InboxState
from segue.core.moments import ago
from segue.core.outbox import OutboxState
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sessions import Kind, Listed, as_row
from segue.core.text import count
from segue.ports.store import Filter, Transaction
from segue.sessions import listing
from segue.sessions.watching import Watch, watch
from segue.upkeep.living import is_gone

_RECENT = 5


@click.command()
@AS_JSON
def status(as_json: bool) -> None:
    """Where things are, how much there is, and the latest conversations."""
    settings = app.settings()
    with app.open_for_reading(settings) as store:
        facts, recent, watched = store.read(OWNER_AT_CONSOLE, _look)
        facts["home"] = str(settings.home)
        facts["database"] = settings.database_place
        facts["database_bytes"] = store.size()
        facts["config"] = str(settings.config_path) if settings.config_path.exists() else None
        facts["notices"] = store.notices
        tidy_up(store, settings)
    if as_json:
        show_json(facts | _watch_rows(watched) | {"recent": [as_row(session) for session in recent]})
        return
    say(f"Home      {facts['home']}")
    say(f"Config    {facts['config'] or 'none; defaults are in force (`segue init` writes one)'}")
    say(f"Database  {facts['database']}, {facts['database_bytes'] / 1_000_000:,.1f} MB")
    say(f"          {count(facts['sessions'], 'session')}, {count(facts['messages'], 'message')}", nl=False)
    say(f", {count(facts['lanes'], 'lane')}, {facts['trash']:,} in the trash")
    _tell_gateway(watched)
    for notice in facts["notices"]:
        say(f"Notice    {notice}", fg="yellow")
    if recent:
        say()
        table(*session_table(recent, time.time()))


@click.command()
@AS_JSON
def stats(as_json: bool) -> None:
    """Count conversations and messages, one line per platform."""
    with app.open_for_reading() as store:
        found, size = store.read(OWNER_AT_CONSOLE, listing.stats), store.size()
    if as_json:
        sources: dict[str, Any] = {
            one.source: {"sessions": one.sessions, "messages": one.messages} for one in found.sources
        }
        show_json({"sessions": found.sessions, "messages": found.messages, "sources": sources, "database_bytes": size})
        return
    say(f"Total sessions: {found.sessions:,}")
    say(f"Total messages: {found.messages:,}")
    for one in found.sources:
        say(f"  {one.source}: {count(one.sessions, 'session')}, {count(one.messages, 'message')}")
    say(f"Database size: {size / 1_000_000:,.1f} MB")


def _look(tx: Transaction) -> tuple[dict[str, Any], list[Listed], Watch]:
    found = listing.stats(tx)
    facts = {
        "sessions": found.sessions,
        "messages": found.messages,
        "lanes": len(tx.lanes.listed()),
        "trash": len(tx.trash.listed()),
    }
    return facts, listing.list_sessions(tx, Filter(kinds=(Kind.INTERACTIVE,)), _RECENT), watch(tx, is_gone)


def _tell_gateway(watched: Watch) -> None:
    """Whether the gateway does its work; of what is nought, nothing is said."""
    say(f"Gateway   {_gateway(watched)}")
    counted = [f"{number:,} {state}" for state, number in watched.inbox.items() if number]
    counted += [f"{watched.undelivered:,} to be sent"] if watched.undelivered else []
    counted += [f"{watched.outbox[OutboxState.DEAD]:,} not deliverable"] if watched.outbox[OutboxState.DEAD] else []
    if counted:
        say(f"          {', '.join(counted)}")
    if watched.inbox[InboxState.RUNNING] and not watched.is_up:
        say("          what was being answered is carried on when a gateway runs", fg="yellow")
    if watched.unattended:
        waiting = count(sum(queue.waiting for queue in watched.unattended), "message")
        oldest = ago(watched.now - watched.left_waiting, watched.now)
        say(f"          nobody is at work on {waiting}, the oldest of {oldest}", fg="yellow")


def _gateway(watched: Watch) -> str:
    if not watched.is_up:
        return "not running"
    runs = "; ".join(
        f"process {run.pid} on {run.host}, since {ago(run.began_at, watched.now)}" for run in watched.gateways
    )
    names = [f"{one.platform}:{one.account}" if one.account else one.platform for one in watched.platforms]
    return f"{runs}; connected: {', '.join(names) or 'nothing'}"


def _watch_rows(watched: Watch) -> dict[str, Any]:
    return {
        "gateway": {
            "up": watched.is_up,
            "runs": [run_row(run) for run in watched.gateways],
            "platforms": [one._asdict() for one in watched.platforms],
        },
        "inbox": watched.inbox | {"unattended_seconds": watched.left_waiting},
        "outbox": watched.outbox | {"undelivered": watched.undelivered},
    }
