"""`segue backup` and `segue restore`: a home as one file, and back."""

import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from segue import __version__, app
from segue.cli.files import check_replacing
from segue.cli.groups import DestructiveCommand
from segue.cli.options import AS_JSON, DRY_RUN, REPLACE, YES
from segue.cli.output import confirm, note, progress, say, show_json
from segue.config import Settings
from segue.core.errors import Invalid, NotFound, StoreReadOnly, unwritten
from segue.core.moments import ago
from segue.core.text import count, size
from segue.storage import guards
from segue.storage.store import SqlStore
from segue.upkeep import archive, backups, rescuing
from segue.upkeep.archive import Contents
from segue.upkeep.placing import RESTORED_CONFIG


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@REPLACE
@AS_JSON
def backup(file: Path, yes: bool, as_json: bool) -> None:
    """Write everything to FILE: conversations, memory, attachments, and the settings without secrets.

    Other processes may go on writing. FILE appears when it is complete and was read back; until then, an older file of
    that name stays as it is.
    """
    _check_target(file, yes=yes)
    settings = app.settings()
    with _opened(settings) as store, progress("Backing up", 2 * _size(settings.home)) as advance:
        contents = backups.back_up(store, settings.home, file, now=time.time(), program=__version__, advance=advance)
    if as_json:
        show_json({"file": str(file), "bytes": file.stat().st_size, **_facts(contents)})
        return
    note(f"{_amount(contents)}, {size(file.stat().st_size)}, written to {file} and verified.")


@click.command(cls=DestructiveCommand)
@click.argument("file", type=click.Path(path_type=Path))
@YES
@DRY_RUN
def restore(file: Path, yes: bool, dry_run: bool) -> None:
    """Make the home what it was when FILE was written. What is there now is kept in a backup of its own."""
    now, settings = time.time(), app.settings()
    contents = archive.read_contents(file)
    say(f"{file}: {_amount(contents)}, backed up {ago(contents.made_at, now)}.")
    if dry_run:
        with TemporaryDirectory() as folder, progress("Looking", _unpacked(contents)) as advance:
            backups.check_backup(file, Path(folder), advance)
        say("The backup is sound. Nothing was changed.")
        return
    if here := rescuing.describe(settings):
        confirm(f"Replace {here} in {settings.home}? What is there is kept in a backup of its own.", yes=yes)
    for path in _restore(settings, file, contents, now, is_empty=not here):
        note(f"What was here is in {path}.")
    if (settings.home / RESTORED_CONFIG).exists():
        note(f"Your config.yaml stays; the one of the backup is {RESTORED_CONFIG} beside it.")
    say(f"Restored {_amount(contents)}.")


def _restore(settings: Settings, file: Path, contents: Contents, now: float, *, is_empty: bool) -> list[Path]:
    """Restore, and say where what was there is now."""
    guards.make_private_folder(settings.home)
    store, aside = rescuing.open_or_set_aside(settings, now)
    kept = [aside] if aside else []

    def keep() -> None:
        kept.append(rescuing.keep_copy(store, settings.home, now=now, program=__version__))

    with store, progress("Restoring", 2 * _unpacked(contents)) as advance:
        backups.restore(store, settings.home, file, keep=bool if is_empty or aside else keep, advance=advance)
    return kept


def _opened(settings: Settings) -> SqlStore:
    """The store; one that can only be read can be backed up, though it cannot remember that it was."""
    if not settings.home.exists():
        raise NotFound(f"There is nothing to back up: {settings.home} does not exist.")
    if not app.has_store(settings):
        return app.open_for_reading(settings)
    try:
        return app.open_store(chosen=settings)
    except StoreReadOnly:
        return app.open_store(chosen=settings, read_only=True)


def _check_target(file: Path, *, yes: bool) -> None:
    try:
        if file.is_dir():
            raise Invalid(f"{file} is a folder; name a file to write to.")
        if str(file) == "-" or (file.exists() and not file.is_file()):
            raise Invalid(f"{file} is not an ordinary file, so a backup cannot take its place and be read back.")
    except OSError as error:
        raise unwritten(file, error) from error
    check_replacing(file, yes=yes)


def _amount(contents: Contents) -> str:
    return f"{count(contents.sessions, 'session')}, {count(contents.messages, 'message')}"


def _facts(contents: Contents) -> dict[str, object]:
    return contents._asdict() | {"files": {name: one._asdict() for name, one in contents.files.items()}}


def _unpacked(contents: Contents) -> int:
    return sum(member.bytes for member in contents.files.values())


def _size(home: Path) -> int:
    """About how much there is; files come and go while it is counted."""
    total = 0
    for path in home.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.lstat().st_size
    return total
