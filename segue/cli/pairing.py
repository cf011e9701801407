"""`segue pairing`: who is let in."""

import time

import click

from segue import app
from segue.cli.completing import complete_person
from segue.cli.groups import CommandGroup, DestructiveCommand
from segue.cli.options import AS_JSON
from segue.cli.output import Column, say, show_json, table
from segue.config import Settings
from segue.core.errors import Invalid, NotFound
from segue.core.moments import ago
from segue.core.pairing import PairedPerson, Pairing
from segue.core.scope import OWNER_AT_CONSOLE
from segue.sessions.pairing import Approved, Pairings, approve, list_pairings, revoke

_PEOPLE = [Column("Person"), Column("Name", 1, yields=2), Column("Role"), Column("Since", yields=1)]
_WAITING = [
    Column("Asks to be let in"),
    Column("Name", 1, yields=2),
    Column("Asked"),
    Column("For another", yields=1),
]


@click.group(cls=CommandGroup)
def pairing() -> None:
    """Let people in who write to your agent, and send them away again."""


@pairing.command("list")
@AS_JSON
def list_(as_json: bool) -> None:
    """Show who was let in, and who asks to be."""
    now = time.time()
    with app.open_for_reading() as store:
        found = store.read(OWNER_AT_CONSOLE, list_pairings, now)
    if as_json:
        show_json(_plain(found))
        return
    if found.people:
        table(_PEOPLE, [[one.id, one.name, one.role, ago(one.paired_at, now)] for one in found.people])
    if found.people and found.waiting:
        say()
    if found.waiting:
        table(_WAITING, [_waiting(one, now) for one in found.waiting])
    if not found.people and not found.waiting:
        say("Nobody was let in by pairing, and nobody asks to be.")


@pairing.command("approve")
@click.argument("code")
@click.option("--owner", "as_owner", is_flag=True, help="As an owner: they may do and see what you may.")
@AS_JSON
def approve_(code: str, as_owner: bool, as_json: bool) -> None:
    """Let the person in who was given CODE."""
    with app.open_store() as store:
        done = store.write(OWNER_AT_CONSOLE, approve, code, time.time(), as_owner=as_owner)
    if not isinstance(done, Approved):
        raise Invalid(
            "Nobody waits with this code: it is wrong, older than an hour, or used; whoever needs a new one writes to"
            " your agent again."
        )
    if as_json:
        show_json(_person(done.person))
        return
    named = f"{done.person.id} ({done.person.name})" if done.person.name else done.person.id
    say(f"{named} is now {'an owner' if done.person.is_owner else 'let in'}.")


@pairing.command("revoke", cls=DestructiveCommand)
@click.argument("person", metavar="PLATFORM:ID", shell_complete=complete_person)
@AS_JSON
def revoke_(person: str, as_json: bool) -> None:
    """Let a person in no longer. What was said stays."""
    platform, _, peer = person.partition(":")
    settings = app.settings()
    with app.open_store(chosen=settings) as store:
        is_gone = store.write(OWNER_AT_CONSOLE, revoke, platform, peer)
    by_settings = _by_settings(settings, platform, peer)
    if not is_gone and by_settings:
        raise Invalid(f"{person} is let in by {by_settings} in {settings.config_path}; remove it there.")
    if not is_gone:
        raise NotFound(f"Nobody is let in as {person!r}; `segue pairing list` shows who is.")
    if as_json:
        show_json({"person": person, "revoked": True, "still_by": by_settings})
        return
    say(f"{person} is let in no longer.")
    if by_settings:
        say(f"But {by_settings} in {settings.config_path} still lets them in; remove it there, too.")


def _by_settings(settings: Settings, platform: str, peer: str) -> str | None:
    """The setting that lets somebody in, whatever was paired."""
    if f"{platform}:{peer}" in settings.owners:
        return "owners"
    return f"access.{platform}.allow" if peer in settings.access_on(platform).allow else None


def _waiting(one: Pairing, now: float) -> list[str]:
    left = f"{max(1, int((one.expires_at - now) // 60))}m"
    return [f"{one.platform}:{one.peer}", one.name, ago(one.created_at, now), left]


def _plain(found: Pairings) -> dict[str, object]:
    return {"people": list(map(_person, found.people)), "waiting": list(map(_asking, found.waiting))}


def _person(one: PairedPerson) -> dict[str, object]:
    return one._asdict()


def _asking(one: Pairing) -> dict[str, object]:
    shown = ("platform", "peer", "name", "chat", "created_at", "expires_at")
    return {name: value for name, value in one._asdict().items() if name in shown}
