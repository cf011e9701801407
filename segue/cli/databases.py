"""`segue db`: from one kind of database to another."""

from pathlib import Path

import click

from segue import app
from segue.cli.groups import CommandGroup
from segue.cli.options import AS_JSON, YES
from segue.cli.output import confirm, note, progress, say, show_json
from segue.config import SQLITE, Settings, masked
from segue.core.errors import Invalid
from segue.core.places import is_address
from segue.core.text import count
from segue.storage.store import SqlStore
from segue.upkeep import migrating
from segue.upkeep.migrating import End


@click.group(cls=CommandGroup)
def db() -> None:
    """Where conversations are kept."""


@db.command()
@click.option("--to", "wanted", required=True, metavar="URL|sqlite", help="postgresql://… or sqlite, the file at home.")
@click.option("--replace", is_flag=True, help="Let what is there become what is here, whatever it was.")
@YES
@AS_JSON
def migrate(wanted: str, replace: bool, yes: bool, as_json: bool) -> None:
    """Copy everything to another database, and compare the two. Interrupted, it goes on where it was.

    Here nothing is changed. Stop other programs that write first; what they write meanwhile is brought the next time.
    """
    settings = app.settings()
    place = _place(wanted, settings)
    with app.open_for_reading(settings) as source, app.open_store(place) as target:
        migrating.check_apart(source, target)
        _check(source, target, settings, _spelled(place), replace=replace, yes=yes)
        with progress("Copying", 3 * source.count_rows()) as advance:
            compared, writable_tables = migrating.migrate(source, target, settings.database_place, advance)
    if as_json:
        show_json([table._asdict() for table in compared])
        return
    for table in compared:
        say(f"{table.rows:>10,}  {table.table:<14}fingerprint {table.digest[:16]}", dim=True)
    rows = {table.table: table.rows for table in compared}
    say(f"{count(rows['sessions'], 'session')}, {count(rows['messages'], 'message')}: equal in both.")
    say(f"Each of {count(writable_tables, 'table')} took a new row, which was taken back.")
    note(f"`database: {masked(wanted)}` in {settings.config_path} makes it the one that is used.")
    note(f"What is in {settings.database_place} stays there until you remove it.")


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


def _spelled(place: str | Path) -> str:
    return masked(str(place))


def _check(source: SqlStore, target: SqlStore, settings: Settings, there_at: str, *, replace: bool, yes: bool) -> None:
    there = migrating.in_the_way(End(source, settings.database_place), End(target, there_at))
    if not there:
        return
    if not replace:
        raise Invalid(
            f"{there_at} holds {_told(there)}, and not as a copy of {settings.database_place} that nobody has changed;"
            " --replace puts what is here in their place."
        )
    here = f"{_told(migrating.held(source))} of {settings.database_place}"
    confirm(f"Let {here} take the place of {_told(there)} in {there_at}?", yes=yes)


def _told(held: migrating.Held) -> str:
    return f"{count(held.sessions, 'session')} and {count(held.messages, 'message')}"
