"""`segue status` and `segue sessions stats`: one look at the whole."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from segue import app, config
from segue.app.checking import model_by_settings
from segue.cli.options import AS_JSON, REMOTE
from segue.cli.output import say, show_json, table
from segue.cli.tables import session_table
from segue.cli.tidying import tidy_up
from segue.core.inbox import InboxState
from segue.core.links import LinkState, called
from segue.core.moments import ago
from segue.core.outbox import OutboxState
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sessions import listed_from
from segue.core.text import count, one_line
from segue.facade.standing import standing
from segue.ports.store import SourceCount
from segue.sessions import listing
from segue.upkeep.living import is_gone

if TYPE_CHECKING:
    from segue.cli.remote import Asked

_NO_MODEL = "none by key or settings; a model server on this machine answers, if one runs"
_STATES = ("waiting", "running", "dead", "refused")


@click.command()
@REMOTE
@AS_JSON
def status(there: "Asked | None", as_json: bool) -> None:
    """Where things are, how much there is, and the latest conversations."""
    facts = _facts_there(there) if there else _facts()
    if as_json:
        show_json(facts)
        return
    say(f"Home      {facts['home']}")
    if not there:
        say(f"Config    {facts['config'] or 'none; defaults are in force (`segue init` writes one)'}")
    say(f"Model     {one_line(facts['model'] or _NO_MODEL)}")
    say(f"Database  {facts['database']}, {facts['database_bytes'] / 1_000_000:,.1f} MB")
    amounts = [count(facts[noun + "s"], noun) for noun in ("session", "message", "lane")]
    say(f"          {', '.join(amounts)}, {facts['trash']:,} in the trash")
    _tell_gateway(facts)
    for notice in facts["notices"]:
        say(f"Notice    {notice}", fg="yellow")
    if facts["recent"]:
        say()
        table(*session_table([listed_from(row) for row in facts["recent"]], time.time()))


def _facts() -> dict[str, Any]:
    settings = app.settings()
    with app.open_for_reading(settings) as store:
        facts = store.read(OWNER_AT_CONSOLE, standing, is_gone) | {
            "home": str(settings.home),
            "database": settings.database_place,
            "database_bytes": store.size(),
            "model": model_by_settings(settings, config.environment_of_models()),
            "config": str(settings.config_path) if settings.config_path.exists() else None,
            "notices": store.notices,
        }
        tidy_up(store, settings)
    return facts


@click.command()
@REMOTE
@AS_JSON
def stats(there: "Asked | None", as_json: bool) -> None:
    """Count conversations and messages, one line per platform."""
    found, size = _stats_there(there) if there else _stats()
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


def _stats() -> tuple[listing.Stats, int]:
    with app.open_for_reading() as store:
        return store.read(OWNER_AT_CONSOLE, listing.stats), store.size()


def _stats_there(there: "Asked") -> tuple[listing.Stats, int]:
    facts = there.ask("status", {})
    sources = [SourceCount(name, one["sessions"], one["messages"]) for name, one in facts["sources"].items()]
    return listing.Stats(facts["sessions"], facts["messages"], sources), facts["database_bytes"]


def _facts_there(there: "Asked") -> dict[str, Any]:
    """The same of another machine, which does not say where it keeps what it has."""
    facts: dict[str, Any] = there.ask("status", {})
    return facts | {"home": there.name, "database": f"Segue {facts['version']}"}


def _tell_gateway(facts: dict[str, Any]) -> None:
    """Whether the gateway does its work; of what is nought, nothing is said."""
    gateway, inbox, outbox, now = facts["gateway"], facts["inbox"], facts["outbox"], time.time()
    first, *others = _gateways(gateway, now)
    say(f"Gateway   {first}")
    for line in others:
        say(f"          {line}")
    for line, is_well in platform_lines(gateway["platforms"], now) if gateway["up"] else ():
        say(f"          {line}", fg=None if is_well else "yellow")
    for name, sentence in gateway["left_out"].items() if gateway["up"] else ():
        say(f"          {one_line(name)} is left out: {sentence}", fg="yellow")
    counted = [f"{inbox[state]:,} {state}" for state in _STATES if inbox[state]]
    counted += [f"{outbox['undelivered']:,} to be sent"] if outbox["undelivered"] else []
    counted += [f"{outbox[OutboxState.DEAD]:,} not deliverable"] if outbox[OutboxState.DEAD] else []
    if counted:
        say(f"          {', '.join(counted)}")
    if inbox[InboxState.RUNNING] and not gateway["up"]:
        say("          what was being answered is carried on when a gateway runs", fg="yellow")
    if inbox["unattended"]:
        waiting, oldest = count(inbox["unattended"], "message"), ago(now - inbox["unattended_seconds"], now)
        say(f"          nobody is at work on {waiting}, the oldest of {oldest}", fg="yellow")


def _gateways(gateway: dict[str, Any], now: float) -> list[str]:
    """Return a line for each gateway that runs: where, since when, and which platforms it has connected."""
    if not gateway["up"]:
        return ["not running"]
    up = [one for one in gateway["platforms"] if one["state"] == LinkState.CONNECTED]
    idle = "nothing" if len(gateway["runs"]) == 1 else "nothing (standby)"
    return [
        f"process {run['pid']} on {run['host']}, since {ago(run['began_at'], now)};"
        f" connected: {', '.join(_name(one) for one in up if _is_of(one, run)) or idle}"
        for run in gateway["runs"]
    ]


def _is_of(platform: dict[str, Any], run: dict[str, Any]) -> bool:
    return (platform.get("pid"), platform.get("host")) == (run["pid"], run["host"])


def platform_lines(platforms: list[dict[str, Any]], now: float) -> Iterator[tuple[str, bool]]:
    """A line for each platform that is not connected, and whether that is as it should be."""
    for one in platforms:
        name, since = _name(one), ago(one["since"], now)
        told = one_line(one["trouble"] or "it is not said why").removesuffix(".")
        match one["state"]:
            case LinkState.CONNECTING:
                yield f"{name} is being connected, since {since}", True
            case LinkState.FAILED:
                yield f"{name} is not connected, since {since}: {told}{_next_try(one, now)}", False
            case LinkState.RESTING:
                failed = f"failed {count(one['failures'], 'time')} in a row and is left alone for a while"
                yield f"{name} {failed}, since {since}: {told}{_next_try(one, now)}", False


def _name(one: dict[str, Any]) -> str:
    return called(one["platform"], one["account"])


def _next_try(one: dict[str, Any], now: float) -> str:
    seconds = (one["retry_at"] or now) - now
    return f"; the next try is in {seconds:.0f} s" if seconds >= 1 else "; it is tried again"
