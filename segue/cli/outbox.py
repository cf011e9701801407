"""`segue outbox`: what is to be sent, and what could not be delivered."""

import click

from segue import app
from segue.cli.groups import CommandGroup
from segue.cli.lane_words import LETTERS, letter_cells
from segue.cli.options import AS_JSON, DRY_RUN, YES, limit_option
from segue.cli.output import confirm, note, show_json
from segue.cli.previews import Preview
from segue.core.outbox import UNSENT, OutboxState
from segue.core.scope import OWNER_AT_CONSOLE
from segue.facade.lane_rows import letter_row
from segue.sessions import resending

_PIECES = Preview("piece", LETTERS, letter_cells, letter_row)


@click.group(cls=CommandGroup)
def outbox() -> None:
    """What is to be sent, and what could not be delivered."""


@outbox.command("list")
@click.option("--all", "every", is_flag=True, help="Also what was delivered or held back.")
@click.option(
    "--state",
    multiple=True,
    type=click.Choice([one.value for one in OutboxState]),
    help="Only this state (may be repeated).",
)
@limit_option(50, help="How many of the last.")
@AS_JSON
def list_(every: bool, state: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Show pieces of replies that are to be sent or were not delivered, in the order in which they were decided."""
    states = state or (tuple(OutboxState) if every else (*UNSENT, OutboxState.DEAD))
    with app.open_for_reading() as store:
        found = store.read(OWNER_AT_CONSOLE, lambda tx: tx.outbox.latest(states, limit))
    if as_json:
        show_json([letter_row(letter) for letter in found])
    elif found:
        _PIECES.table(found)
    else:
        note("There are no such pieces." if every or state else "Everything was delivered.")


@outbox.command()
@click.argument("numbers", nargs=-1, type=int, metavar="[ID]…")
@click.option("--all", "every", is_flag=True, help="Everything that could not be delivered.")
@YES
@DRY_RUN
@AS_JSON
def retry(numbers: tuple[int, ...], every: bool, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Send pieces of replies again that could not be delivered."""
    if bool(numbers) is every:
        raise click.UsageError("Give the ids of pieces, or --all.")
    with app.open_for_reading() if dry_run else app.open_store() as store:
        if every:
            letters = store.read(OWNER_AT_CONSOLE, resending.dead_letters)
        else:
            letters = store.read(OWNER_AT_CONSOLE, resending.resendable, numbers)
        if _PIECES.is_shown(letters, "To be sent again:", dry_run=dry_run, as_json=as_json):
            if every:
                confirm(f"Send {_PIECES.them(letters)} again?", yes=yes)
            letters = store.write(OWNER_AT_CONSOLE, resending.resend, [letter.id for letter in letters])
            _PIECES.tell(letters, "is sent again", "are sent again", as_json=as_json)
