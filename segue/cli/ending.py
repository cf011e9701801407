"""`segue sessions end`: end conversations that are open and that nobody works in."""

import time
from contextlib import suppress

import click

from segue import app
from segue.cli.completing import complete_session
from segue.cli.options import AS_JSON, DRY_RUN
from segue.cli.output import say, show_json
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.sessions import Session
from segue.core.text import count
from segue.ports.store import Transaction
from segue.sessions.ending import end_on_request
from segue.sessions.minding import Hand
from segue.upkeep.living import is_gone, this_run


class _Undone(Exception):
    """Ends a transaction of which nothing is to stay."""


@click.command()
@click.argument("wanted", nargs=-1, required=True, metavar="ID or TITLE…", shell_complete=complete_session)
@DRY_RUN
@AS_JSON
def end(wanted: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """End open conversations: all that are named, or none of them. `segue -r` goes on with one that was ended.

    One that a chat or a gateway works in is refused. On a platform the next message begins a new conversation.
    """
    hand, now = Hand(this_run("segue sessions").id, is_gone), time.time()
    ended: list[Session] = []

    def end_all(tx: Transaction) -> None:
        ended[:] = [end_on_request(tx, name, now, hand) for name in dict.fromkeys(wanted)]
        if dry_run:
            raise _Undone

    with app.open_store() as store, suppress(_Undone):
        store.write(OWNER_AT_CONSOLE, end_all)
    names = [session.id for session in ended]
    if as_json:
        show_json({"sessions": names, "dry_run": dry_run})
        return
    say(f"{count(len(names), 'conversation')} {'would be ' if dry_run else ''}ended: {', '.join(names)}.")
