"""`segue sessions delete` and `segue sessions trash`: preview, ask, then act; and the way back."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import click

from segue import app
from segue.cli.chatting.beginning import HISTORY
from segue.cli.completing import complete_session, complete_trashed
from segue.cli.groups import CommandGroup, DestructiveCommand
from segue.cli.options import AS_JSON, DRY_RUN, REMOTE, YES
from segue.cli.output import Column, Refused, confirm, note, progress, say, show_json, table
from segue.cli.tables import session_table, trash_cells
from segue.cli.tidying import tidy_up
from segue.core.errors import Invalid, SessionNotFound
from segue.core.moments import DAY, ago
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import count
from segue.ports.store import Transaction, TrashEntry
from segue.sessions import attaching, discarding, finding
from segue.sessions.minding import Hand
from segue.storage.store import SqlStore
from segue.upkeep.living import is_gone, this_run
from segue.upkeep.rescuing import KEPT

if TYPE_CHECKING:
    from segue.cli.remote import Asked

_MOSTDAYS = 1_000_000
_SHOWN = 15
_NUMBERS = [Column("Parts", yields=3), Column("Messages", yields=2), Column("Last Active", yields=1)]


class Doomed(NamedTuple):
    """A conversation as the preview shows it."""

    id: str
    name: str
    parts: int
    messages: int
    last_at: float


@click.command(cls=DestructiveCommand)
@click.argument("wanted", nargs=-1, required=True, metavar="ID or TITLE…", shell_complete=complete_session)
@click.option("--purge", is_flag=True, help="Remove every copy at once, for good, also from the trash.")
@YES
@DRY_RUN
@REMOTE
def delete(wanted: tuple[str, ...], purge: bool, yes: bool, dry_run: bool, there: "Asked | None") -> None:
    """Move conversations into the trash, each with all its parts. `trash restore` brings them back."""
    if there:
        _delete_there(there, wanted, purge=purge, yes=yes, dry_run=dry_run)
        return
    with app.open_store() as store:
        doomed = store.read(OWNER_AT_CONSOLE, _doomed, dict.fromkeys(wanted), purge)
        say("For good, from the database and the trash:" if purge else "Into the trash:", bold=True)
        _preview(doomed)
        if dry_run:
            say("Nothing was changed.")
            return
        confirm("Remove them for good?" if purge else "Go ahead?", yes=yes)
        typed: set[str] = set()
        files: set[str] = set()
        for conversation in doomed:
            if purge:
                files |= store.read(OWNER_AT_CONSOLE, attaching.files_of, conversation.id)
                typed |= store.read(OWNER_AT_CONSOLE, discarding.said_in, conversation.id)
                store.write(OWNER_AT_CONSOLE, discarding.purge_conversation, conversation.id)
            else:
                store.write(OWNER_AT_CONSOLE, discarding.discard_conversation, conversation.id, time.time())
        if purge:
            store.compact()
            _sweep(store, files)
            say(f"{count(len(doomed), 'conversation')} removed; no copy is left in the database.")
            _forget_typed(typed)
            if any((app.settings().home / KEPT).glob("*")):
                note(f"Older copies of the whole home are in {app.settings().home / KEPT}, and may still hold it.")
        else:
            kept = app.settings().retention.trash_days
            say(f"{count(len(doomed), 'conversation')} moved to the trash for {count(kept, 'day')}.")


@click.command(cls=DestructiveCommand)
@click.option("--older-than", default=90.0, show_default=True, metavar="DAYS", help="Days without activity.")
@click.option("--source", multiple=True, help="Only this platform (may be repeated).")
@click.option("--include-idle", is_flag=True, help="Also open conversations, unless somebody works in them.")
@YES
@DRY_RUN
def prune(older_than: float, source: tuple[str, ...], include_idle: bool, yes: bool, dry_run: bool) -> None:
    """Move ended conversations without recent activity into the trash. Open and pinned ones stay."""
    _check_days(older_than)
    now = time.time()
    before = now - older_than * DAY
    idle = Hand(this_run("segue sessions").id, is_gone) if include_idle else None
    with app.open_store() as store:
        found = store.read(OWNER_AT_CONSOLE, discarding.find_prunable, before, source, idle)
        if not found:
            which = "unused" if include_idle else "ended"
            note(f"No {which} conversation has been quiet for {older_than:g} days.")
            return
        say(f"Into the trash: {count(len(found), 'conversation')}.", bold=True)
        table(*session_table(found[:_SHOWN], now))
        if len(found) > _SHOWN:
            note(f"… and {len(found) - _SHOWN:,} more.")
        if dry_run:
            say("Nothing was changed.")
            return
        confirm("Go ahead?", yes=yes)
        with progress("Pruning", len(found)) as advance:
            gone: list[TrashEntry] = []
            for session in found:
                gone += store.write(OWNER_AT_CONSOLE, discarding.prune_conversation, session.id, before, now, idle)
                advance(1)
    kept = app.settings().retention.trash_days
    say(f"{count(len(gone), 'session')} moved to the trash for {count(kept, 'day')}.")


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
        show_json([entry._asdict() for entry in entries])
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
@click.option("--older-than", type=float, metavar="DAYS", help="Only what has been there for longer.")
@YES
@DRY_RUN
def empty(older_than: float | None, yes: bool, dry_run: bool) -> None:
    """Remove what is in the trash for good."""
    if older_than is not None:
        _check_days(older_than)
    before = None if older_than is None else time.time() - older_than * DAY
    with app.open_store() as store:
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
            _sweep(store, files)
            say(f"{count(len(entries), 'session')} removed.")
        store.compact()  # also when a purge could not finish, because somebody was reading


def _delete_there(there: "Asked", wanted: tuple[str, ...], *, purge: bool, yes: bool, dry_run: bool) -> None:
    """The same on another machine."""
    found = [there.ask("sessions.get", {"id": name}) for name in dict.fromkeys(wanted)]
    say(f"For good, at {there.name}:" if purge else f"Into the trash, at {there.name}:", bold=True)
    rows = [(one["session"], len(one["parts"])) for one in found]
    _preview(
        [
            Doomed(row["id"], row["title"] or row["first_line"], parts, row["message_count"], row["last_active_at"])
            for row, parts in rows
        ]
    )
    if dry_run:
        say("Nothing was changed.")
        return
    confirm("Remove them for good?" if purge else "Go ahead?", yes=yes)
    for row, _ in rows:
        there.ask("sessions.delete", {"id": row["id"], "purge": purge})
    say(f"{count(len(rows), 'conversation')} {'removed' if purge else 'moved to the trash'} at {there.name}.")


def _sweep(store: SqlStore, files: set[str]) -> None:
    """The files of what was removed go, too, unless something else needs them."""
    from segue.app.connecting import files_of  # slow to load, and only this needs it
    from segue.upkeep.sweeping import sweep

    if gone := sweep(store, files_of(app.settings()), files):
        say(f"{count(gone, 'attachment')} removed.")


def _forget_typed(typed: set[str]) -> None:
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
        say(f"{count(forgotten, 'line')} removed from what you typed before.")


def _check_days(days: float) -> None:
    if not 0 <= days <= _MOSTDAYS:
        raise Invalid(f"--older-than takes a number of days, not {days}.")


def _doomed(tx: Transaction, wanted: Iterable[str], purge: bool) -> list[Doomed]:
    """What the names mean, each conversation once; for a purge, also what is in the trash already."""
    found = [_in_trash(tx, name) if purge and _is_trashed(tx, name) else _at_hand(tx, name) for name in wanted]
    return list({one.id: one for one in found}.values())


def _at_hand(tx: Transaction, name: str) -> Doomed:
    tip = finding.get_session(tx, finding.find_tip(tx, finding.get_id(tx, name)))
    parts = [finding.get_session(tx, part) for part in finding.find_conversation(tx, tip.id)]
    title = tip.title or tip.first_line
    return Doomed(tip.id, title, len(parts), sum(part.message_count for part in parts), tip.last_active_at)


def _in_trash(tx: Transaction, name: str) -> Doomed:
    entries = discarding.find_trashed(tx, name)
    first = entries[0]
    messages = sum(entry.message_count for entry in entries)
    return Doomed(first.session_id, first.title or first.first_line, len(entries), messages, first.trashed_at)


def _is_trashed(tx: Transaction, name: str) -> bool:
    try:
        finding.get_id(tx, name)
    except SessionNotFound:
        return True
    return False


def _preview(doomed: list[Doomed]) -> None:
    now = time.time()
    columns = [Column("Title or beginning", 1), *_NUMBERS, Column("ID")]
    rows = [[one.name or "—", str(one.parts), str(one.messages), ago(one.last_at, now), one.id] for one in doomed]
    table(columns, rows)


def _table(entries: list[TrashEntry]) -> None:
    now = time.time()
    columns = [Column("Title or beginning", 1), Column("Messages", yields=2), Column("Deleted", yields=1), Column("ID")]
    table(columns, [trash_cells(entry, now) for entry in entries])
