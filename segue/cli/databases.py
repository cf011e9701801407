"""`segue db`: from one kind of database to another."""

from pathlib import Path

import click

from segue import app
from segue.cli.options import YES
from segue.cli.output import confirm, note, progress, say
from segue.config import SQLITE, Settings, masked
from segue.core.errors import Invalid
from segue.core.places import is_address
from segue.core.text import count
from segue.storage.store import SqlStore
from segue.upkeep import migrating


@click.group()
def db() -> None:
    """Where conversations are kept."""


@db.command()
@click.option("--to", "wanted", required=True, metavar="URL|sqlite", help="postgresql://… or sqlite, the file at home.")
@click.option("--replace", is_flag=True, help="Let what is there become what is here, whatever it was.")
@YES
def migrate(wanted: str, replace: bool, yes: bool) -> None:
    """Copy everything to another database, and compare the two. Interrupted, it goes on where it was.

    Here nothing is changed. Stop other programs that write first; what they write meanwhile is brought the next time.
    """
    settings = app.settings()
    place = _place(wanted, settings)
    with app.open_for_reading(settings) as source, app.open_store(place) as target:
        _check(source, target, settings, replace=replace, yes=yes)
        with progress("Copying", 3 * source.count_rows()) as advance:
            compared = migrating.migrate(source, target, settings.database_place, advance)
    for table in compared:
        say(f"{table.rows:>10,}  {table.table:<14}{table.digest[:16]}", dim=True)
    rows = {table.table: table.rows for table in compared}
    say(f"{count(rows['sessions'], 'session')}, {count(rows['messages'], 'message')}: equal in both.")
    note(f"`database: {masked(wanted)}` in {settings.config_path} makes it the one that is used.")


def _place(wanted: str, settings: Settings) -> str | Path:
    if wanted == SQLITE and settings.is_on_server:
        return settings.database_path
    if wanted in (SQLITE, settings.database):
        raise Invalid(f"{settings.database_place} is what is used already; name another database.")
    if not is_address(wanted):
        raise Invalid("A database is sqlite or an address that begins with postgresql://.")
    if masked(wanted) != wanted:
        raise Invalid(
            "Leave the password out: anybody on this machine can read commands. Put it into ~/.pgpass or PGPASSWORD."
        )
    return wanted


def _check(source: SqlStore, target: SqlStore, settings: Settings, *, replace: bool, yes: bool) -> None:
    there = migrating.in_the_way(target, settings.database_place)
    if not there:
        return
    if not replace:
        raise Invalid(f"There are {_told(there)} already, no copy of this; --replace puts what is here in their place.")
    confirm(f"Let {_told(migrating.held(source))} take the place of {_told(there)} there?", yes=yes)


def _told(held: migrating.Held) -> str:
    return f"{count(held.sessions, 'session')} and {count(held.messages, 'message')}"
