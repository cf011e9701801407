"""`segue inbox`: messages that wait, and those that nobody answered."""

import time

import click

from segue import app
from segue.cli.completing import complete_lane
from segue.cli.groups import CommandGroup, DestructiveCommand
from segue.cli.lane_words import (
    LETTERS,
    MESSAGES,
    entry_cells,
    entry_facts,
    entry_text,
    letter_cells,
)
from segue.cli.options import AS_JSON, DRY_RUN, YES, limit_option
from segue.cli.output import confirm, note, say, show_json, table
from segue.cli.previews import Preview
from segue.core.inbox import OPEN, UNANSWERED, Entry, InboxState
from segue.core.scope import OWNER_AT_CONSOLE
from segue.facade.lane_rows import entry_row, letter_row
from segue.ports.store import Transaction
from segue.sessions import requeueing
from segue.sessions.overseeing import find_lane
from segue.upkeep.living import is_gone

_INDENT = 14
_MESSAGES = Preview("message", MESSAGES, entry_cells, entry_row)


@click.group(cls=CommandGroup)
def inbox() -> None:
    """Messages that wait, and those that nobody answered."""


@inbox.command("list")
@click.option("--all", "every", is_flag=True, help="Also what was answered or cancelled.")
@click.option(
    "--state",
    multiple=True,
    type=click.Choice([one.value for one in InboxState]),
    help="Only this state (may be repeated).",
)
@click.option("--lane", metavar="KEY", shell_complete=complete_lane, help="Only this lane: its key, or a part of it.")
@limit_option(50, help="How many of the last.")
@AS_JSON
def list_(every: bool, state: tuple[str, ...], lane: str | None, limit: int, as_json: bool) -> None:
    """Show what waits, runs, died or was refused, in the order in which it was accepted."""
    with app.open_for_reading() as store:
        states = state or (tuple(InboxState) if every else None)
        found = store.read(OWNER_AT_CONSOLE, _listed, states, limit, lane)
    if as_json:
        show_json([entry_row(entry) for entry in found])
    elif found:
        _MESSAGES.table(found)
    elif every or state:
        note("There are no such messages.")
    else:
        where = " in this lane" if lane is not None else ""
        note(f"Nothing waits{where}, and everything was answered.")


@inbox.command()
@click.argument("number", type=int, metavar="ID")
@AS_JSON
def show(number: int, as_json: bool) -> None:
    """Show one message whole, what became of it, and what was sent in answer."""
    with app.open_for_reading() as store:
        entry, replies = store.read(OWNER_AT_CONSOLE, requeueing.look_at_message, number)
    if as_json:
        show_json(entry_row(entry) | {"replies": [letter_row(letter) for letter in replies]})
        return
    for name, text in entry_facts(entry, time.time()):
        say(f"{name:<{_INDENT}}{text}", bold=not name)
    say()
    for line in entry_text(entry).splitlines():
        say(f"  {line}")
    if replies:
        say()
        table(LETTERS, [letter_cells(letter, time.time()) for letter in replies])


@inbox.command()
@click.argument("numbers", nargs=-1, type=int, metavar="[ID]…")
@click.option("--all-dead", is_flag=True, help="Everything whose answer failed.")
@YES
@DRY_RUN
@AS_JSON
def retry(numbers: tuple[int, ...], all_dead: bool, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Let messages wait again that died, were refused, cancelled or cut off; they keep their place in line."""
    if bool(numbers) is all_dead:
        raise click.UsageError("Give the ids of messages, or --all-dead.")
    with app.open_for_reading() if dry_run else app.open_store() as store:
        if all_dead:
            entries = store.read(OWNER_AT_CONSOLE, requeueing.dead_messages)
        else:
            entries = store.read(OWNER_AT_CONSOLE, requeueing.retryable, numbers, is_gone)
        if _MESSAGES.is_shown(entries, "To be answered after all:", dry_run=dry_run, as_json=as_json):
            if all_dead:
                confirm(f"Answer {_MESSAGES.them(entries)} after all?", yes=yes)
            ids = [entry.id for entry in entries]
            entries = store.write(OWNER_AT_CONSOLE, requeueing.retry_messages, ids, time.time(), is_gone)
            _MESSAGES.tell(entries, "waits again", "wait again", as_json=as_json)


@inbox.command(cls=DestructiveCommand)
@click.argument("numbers", nargs=-1, type=int, metavar="[ID]…")
@click.option("--lane", metavar="KEY", shell_complete=complete_lane, help="Everything that waits in a lane.")
@YES
@DRY_RUN
@AS_JSON
def cancel(numbers: tuple[int, ...], lane: str | None, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Answer messages no more that wait, died, were refused or were cut off. `retry` takes it back."""
    if bool(numbers) is (lane is not None):
        raise click.UsageError("Give the ids of messages, or --lane KEY.")
    with app.open_for_reading() if dry_run else app.open_store() as store:
        if lane is not None:
            entries = store.read(OWNER_AT_CONSOLE, _waiting_in, lane)
        else:
            entries = store.read(OWNER_AT_CONSOLE, requeueing.cancellable, numbers, is_gone)
        if _MESSAGES.is_shown(entries, "To be answered no more:", dry_run=dry_run, as_json=as_json):
            confirm(f"Cancel {_MESSAGES.them(entries)}?", yes=yes)
            ids = [entry.id for entry in entries]
            if lane is None:
                entries = store.write(OWNER_AT_CONSOLE, requeueing.cancel_messages, ids, time.time(), is_gone)
            else:
                entries = store.write(OWNER_AT_CONSOLE, requeueing.cancel_waiting, ids, time.time())
            _MESSAGES.tell(entries, "is cancelled", "are cancelled", as_json=as_json)


def _listed(tx: Transaction, states: tuple[str, ...] | None, limit: int, lane: str | None) -> list[Entry]:
    """The last messages in some states; without any, those that somebody may have to do something about."""
    key = None if lane is None else _key_of(tx, lane)
    if states is not None:
        found = tx.inbox.latest(states, limit, key)
    else:
        both = [*tx.inbox.latest(OPEN, limit, key), *tx.inbox.latest(UNANSWERED, limit, key)]
        found = sorted(both, key=lambda entry: entry.id)[-limit:]
    return [requeueing.with_full_reason(tx, entry) for entry in found]


def _key_of(tx: Transaction, wanted: str) -> str:
    """Return the key of a lane, which may be so new that only its messages name it."""
    return wanted if tx.inbox.latest(tuple(InboxState), 1, wanted) else find_lane(tx, wanted).key


def _waiting_in(tx: Transaction, wanted: str) -> list[Entry]:
    """What waits in a lane, which may be so new that it is known only by what waits there."""
    return tx.inbox.waiting(wanted) or tx.inbox.waiting(find_lane(tx, wanted).key)
