"""`segue sessions browse`: choose a conversation on a full screen, and go on with it."""

import shlex

import click

from segue.cli.browsing import pick
from segue.cli.output import note, say


@click.command()
def browse() -> None:
    """Look through conversations on a full screen: filter, preview, resume, rename, tag, archive, delete, export."""
    session_id, can_write = pick("browse needs a terminal; use `segue sessions list`.")
    if session_id is None:
        return
    if can_write:
        from segue.cli.chatting.command import resume  # only this needs it

        resume(session_id)
    else:  # nobody can talk where nothing can be stored
        say(session_id)
        note(f"segue sessions show {shlex.quote(session_id)}")
