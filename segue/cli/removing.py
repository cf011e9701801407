"""`segue sessions delete` and `segue sessions trash`: preview, ask, then act; and the way back."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from segue import app
from segue.cli.chatting.beginning import HISTORY
from segue.cli.completing import complete_session, complete_trashed
from segue.cli.groups import CommandGroup, DestructiveCommand
from segue.cli.options import AS_JSON, DAYS, DRY_RUN, REMOTE, YES
from segue.cli.output import Column, Refused, confirm, note, progress, say, show_json, table
from segue.cli.removals import Removal, preview, removals_named, removals_of, show_removals
from segue.cli.sources import check_sources, source_option
from segue.cli.tables import trash_cells
from segue.cli.tidying import tidy_up
from segue.core.errors import Invalid
from segue.core.moments import DAY
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sessions import preview_of
from segue.core.text import count
from segue.ports.store import Transaction, TrashEntry
from segue.sessions import attaching, discarding
from segue.sessions.minding import Hand
from segue.storage.store import SqlStore
from segue.upkeep.living import is_gone, this_run
from segue.upkeep.rescuing import KEPT

if TYPE_CHECKING:
    from segue.cli.remote import Asked

_MAX_DAYS = 1_000_000
_SHOWN = 15


@click.command(cls=DestructiveCommand)
@click.argument("wanted", nargs=-1, required=True, metavar="ID or TITLE…", shell_complete=complete_session)
@click.option("--purge", is_flag=True, help="Remove every copy at once, for good, also from the trash.")
@YES
@DRY_RUN
@REMOTE
@AS_JSON
def delete(
    wanted: tuple[str, ...], purge: bool, yes: bool, dry_run: bool, there: "Asked | None", as_json: bool
) -> None:
    """Move conversations into the trash, each with all its parts. `trash restore` brings them back."""
    if there:
        _delete_there(there, wanted, purge=purge, yes=yes, dry_run=dry_run, as_json=as_json)
        return
    with app.open_for_reading() if dry_run else app.open_store() as store:
        removals = store.read(OWNER_AT_CONSOLE, removals_named, dict.fromkeys(wanted), purge)
        if not as_json:
            say("For good, from the database and the trash:" if purge else "Into the trash:", bold=True)
            preview(removals)
        if not dry_run:
            confirm("Remove them for good?" if purge else "Go ahead?", yes=yes)
            (_purge if purge else _discard)(store, removals, is_quiet=as_json)
    if as_json:
        show_removals(removals, purged=purge, dry_run=dry_run)
    elif dry_run:
        say("Nothing was changed.")


def _discard(store: SqlStore, removals: Sequence[Removal], *, is_quiet: bool) -> None:
    for one in removals:
        store.write(OWNER_AT_CONSOLE, discarding.discard_conversation, one.id, time.time())
    if not is_quiet:
        _tell_discarded(len(removals))


def _purge(store: SqlStore, removals: Sequence[Removal], *, is_quiet: bool) -> None:
    typed: set[str] = set()
    files: set[str] = set()
    for one in removals:
        files |= store.read(OWNER_AT_CONSOLE, attaching.files_of, one.id)
        typed |= store.read(OWNER_AT_CONSOLE, discarding.said_in, one.id)
        store.write(OWNER_AT_CONSOLE, discarding.purge_conversation, one.id)
    store.compact()
    tell = note if is_quiet else say
    _sweep(store, files, tell)
    if not is_quiet:
        _tell_purged(len(removals))
    _forget_typed(typed, tell)
    if any((app.settings().home / KEPT).glob("*")):
        note(f"Older copies of the whole home are in {app.settings().home / KEPT}, and may still hold it.")


def _tell_purged(conversations: int) -> None:
    on_server = app.settings().is_on_server
    left = "no row of the database holds it" if on_server else "no copy is left in the database"
    say(f"{count(conversations, 'conversation')} removed; {left}.")
    if on_server:
        say("The server may keep its bytes in free pages, its log and its backups for a while.")


def _tell_discarded(conversations: int) -> None:
    kept = app.settings().retention.trash_days
    say(f"{count(conversations, 'conversation')} moved to the trash for {count(kept, 'day')}.")


@click.command(cls=DestructiveCommand)
@click.option(
    "--older-than",
    type=DAYS,
    default=90.0,
    show_default=True,
    metavar="DAYS",
    help="Days without activity: 90, 90d, 2w.",
)
@source_option()
@click.option("--include-idle", is_flag=True, help="Also open conversations, unless somebody works in them.")
@YES
@DRY_RUN
@AS_JSON
def prune(
    older_than: float, source: tuple[str, ...], include_idle: bool, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Move ended conversations without recent activity into the trash. Open and pinned ones stay."""
    _check_days(older_than)
    now = time.time()
    before = now - older_than * DAY
    idle = Hand(this_run("segue sessions").id, is_gone) if include_idle else None
    with app.open_for_reading() if dry_run else app.open_store() as store:
        check_sources(store, source)
        removals = store.read(OWNER_AT_CONSOLE, _prunable, before, source, idle)
        if not removals and not as_json:
            which = "unused" if include_idle else "ended"
            note(f"No {which} conversation has been quiet for {_in_days(older_than)}.")
            return
        if not as_json:
            _preview_pruning(removals)
        if removals and not dry_run:
            confirm("Go ahead?", yes=yes)
            removals = _prune(store, removals, before, now, idle)
            if not as_json:
                _tell_discarded(len(removals))
    if as_json:
        show_removals(removals, purged=False, dry_run=dry_run)
    elif dry_run:
        say("Nothing was changed.")


def _prunable(tx: Transaction, before: float, source: tuple[str, ...], idle: Hand | None) -> list[Removal]:
    return removals_of(tx, [one.id for one in discarding.find_prunable(tx, before, source, idle)])


def _preview_pruning(removals: Sequence[Removal]) -> None:
    say(f"Into the trash: {count(len(removals), 'conversation')}.", bold=True)
    preview(removals[:_SHOWN])
    if len(removals) > _SHOWN:
        note(f"… and {len(removals) - _SHOWN:,} more.")


def _prune(store: SqlStore, removals: Sequence[Removal], before: float, now: float, idle: Hand | None) -> list[Removal]:
    """Prune them; return those that went, which leaves out what somebody came back to meanwhile."""
    with progress("Pruning", len(removals)) as advance:
        gone: list[Removal] = []
        for one in removals:
            if store.write(OWNER_AT_CONSOLE, discarding.prune_conversation, one.id, before, now, idle):
                gone.append(one)
            advance(1)
    return gone


@click.group(cls=CommandGroup)
def trash() -> None:
    """What was deleted, until it is gone."""


@trash.command("list")
@AS_JSON
def list_(as_json: bool) -> None:
    """Show what is in the trash."""
    settings = app.settings()
    with app.open_for_reading(settings) as store:
        tidy_up(store, settings)
        entries = store.read(OWNER_AT_CONSOLE, lambda tx: tx.trash.listed())
    if as_json:
        show_json([entry._asdict() | {"preview": preview_of(entry.first_line)} for entry in entries])
    elif entries:
        _table(entries)
    else:
        note("The trash is empty.")


@trash.command()
@click.argument("wanted", metavar="ID or TITLE", shell_complete=complete_trashed)
def restore(wanted: str) -> None:
    """Bring a conversation back from the trash as it was."""
    with app.open_store() as store:
        restored = store.write(OWNER_AT_CONSOLE, discarding.restore_conversation, wanted)
    for sentence in restored.notes:
        note(sentence)
    if not restored.session_ids:
        raise Refused("Nothing was restored.")
    say(f"Restored {', '.join(restored.session_ids)}.")


@trash.command(cls=DestructiveCommand)
@click.option("--older-than", type=DAYS, metavar="DAYS", help="Only what has been there for longer: 7, 7d, 2w.")
@YES
@DRY_RUN
def empty(older_than: float | None, yes: bool, dry_run: bool) -> None:
    """Remove what is in the trash for good."""
    if older_than is not None:
        _check_days(older_than)
    before = None if older_than is None else time.time() - older_than * DAY
    with app.open_for_reading() if dry_run else app.open_store() as store:
        entries = store.read(OWNER_AT_CONSOLE, discarding.trash_before, before)
        if entries:
            _table(entries)
        else:
            note("There is nothing to remove.")
        if dry_run:
            say("Nothing was changed.")
            return
        if entries:
            confirm(f"Remove {count(len(entries), 'session')} for good?", yes=yes)
            files = store.read(OWNER_AT_CONSOLE, attaching.files_in_trash, entries)
            store.write(OWNER_AT_CONSOLE, lambda tx: tx.trash.remove(entries))  # what was shown, and nothing else
            _sweep(store, files, say)
            say(f"{count(len(entries), 'session')} removed.")
        store.compact()  # also when a purge could not finish, because somebody was reading


def _delete_there(
    there: "Asked", wanted: tuple[str, ...], *, purge: bool, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """The same on another machine."""
    found = [there.ask("sessions.get", {"id": name}) for name in dict.fromkeys(wanted)]
    removals = [_removal_there(one["session"], one["parts"]) for one in found]
    if not as_json:
        say(f"For good, at {there.name}:" if purge else f"Into the trash, at {there.name}:", bold=True)
        preview(removals)
    if not dry_run:
        confirm("Remove them for good?" if purge else "Go ahead?", yes=yes)
        for one in removals:
            there.ask("sessions.delete", {"id": one.id, "purge": purge})
    if as_json:
        show_removals(removals, purged=purge, dry_run=dry_run)
    elif dry_run:
        say("Nothing was changed.")
    else:
        done = "removed" if purge else "moved to the trash"
        say(f"{count(len(removals), 'conversation')} {done} at {there.name}.")


def _removal_there(row: dict[str, Any], parts: list[str]) -> Removal:
    messages, last_at = row["message_count"], row["last_active_at"]
    return Removal(row["id"], row["title"], row["first_line"], tuple(parts), messages, last_at)


def _sweep(store: SqlStore, files: set[str], tell: Callable[[str], None]) -> None:
    """The files of what was removed go, too, unless something else needs them."""
    from segue.app.connecting import files_of  # slow to load, and only this needs it
    from segue.upkeep.sweeping import sweep

    if gone := sweep(store, files_of(app.settings()), files):
        tell(f"{count(gone, 'attachment')} removed.")


def _forget_typed(typed: set[str], tell: Callable[[str], None]) -> None:
    """What was said is not offered at the prompt either; an open chat forgets it when it is left."""
    file = app.settings().home / HISTORY
    if not typed or not file.exists():
        return
    from segue.cli.chatting.past import Past  # slow to load, and only a purge needs it

    past = Past(file)
    try:
        forgotten = past.forget(typed)
    except OSError as error:
        note(f"What was typed is still in {file}: {error.strerror}.")
        return
    if past.trouble:
        note(past.trouble)
    elif forgotten:
        tell(f"{count(forgotten, 'line')} removed from what you typed before.")


def _check_days(days: float) -> None:
    if not 0 <= days <= _MAX_DAYS:
        raise Invalid(f"--older-than takes a number of days, not {days}.")


def _in_days(days: float) -> str:
    return f"{days:g} day{'' if days == 1 else 's'}"


def _table(entries: list[TrashEntry]) -> None:
    now = time.time()
    columns = [Column("Title or beginning", 1), Column("Messages", yields=2), Column("Deleted", yields=1), Column("ID")]
    table(columns, [trash_cells(entry, now) for entry in entries])
