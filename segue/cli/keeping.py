"""`segue backup` and `segue restore`: a home as one file, and back."""

import time
from pathlib import Path

import click

from segue import __version__, app
from segue.cli.options import AS_JSON, DRY_RUN, YES
from segue.cli.output import confirm, note, progress, say, show_json
from segue.core.errors import Invalid
from segue.core.moments import ago
from segue.core.text import count, size
from segue.storage import guards
from segue.upkeep import archive, backups, rescuing
from segue.upkeep.archive import Contents
from segue.upkeep.placing import RESTORED_CONFIG


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@AS_JSON
def backup(file: Path, as_json: bool) -> None:
    """Write everything to FILE: conversations, memory, attachments, and the settings without secrets.

    Other processes may go on writing. FILE appears when it is complete and was read back; until then, a FILE of that
    name stays as it is.
    """
    if file.is_dir():
        raise Invalid(f"{file} is a folder; name a file to write to.")
    with app.open_store() as store:
        home = app.settings().home
        with progress("Backing up", 2 * _size(home)) as advance:
            contents = backups.back_up(store, home, file, now=time.time(), program=__version__, advance=advance)
    if as_json:
        show_json({"file": str(file), "bytes": file.stat().st_size, **_facts(contents)})
        return
    note(f"{_amount(contents)}, {size(file.stat().st_size)}, written to {file} and verified.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@YES
@DRY_RUN
def restore(file: Path, yes: bool, dry_run: bool) -> None:
    """Make the home what it was when FILE was written. What is there now is kept in a backup of its own."""
    now = time.time()
    contents = archive.verify(file)
    settings = app.settings()
    say(f"{file}: {_amount(contents)}, backed up {ago(contents.made_at, now)}.")
    if dry_run:
        say("The backup is sound. Nothing was changed.")
        return
    guards.make_private_folder(settings.home)
    store, aside = rescuing.open_or_set_aside(settings.database_path, now)
    with store:
        if here := rescuing.describe(store, settings.home):
            confirm(f"Replace {here} in {settings.home}?", yes=yes)
            aside = rescuing.keep_copy(store, settings.home, now=now, program=__version__)
        with progress("Restoring", 2 * sum(member.bytes for member in contents.files.values())) as advance:
            backups.restore(store, settings.home, file, advance)
    if aside:
        note(f"What was here is in {aside}.")
    if (settings.home / RESTORED_CONFIG).exists():
        note(f"Your config.yaml stays; the one of the backup is {RESTORED_CONFIG} beside it.")
    say(f"Restored {_amount(contents)}.")


def _amount(contents: Contents) -> str:
    return f"{count(contents.sessions, 'session')}, {count(contents.messages, 'message')}"


def _facts(contents: Contents) -> dict[str, object]:
    return contents._asdict() | {"files": {name: one._asdict() for name, one in contents.files.items()}}


def _size(home: Path) -> int:
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
