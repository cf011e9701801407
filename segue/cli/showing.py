"""`segue sessions show`: a conversation as it was said."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from segue import app
from segue.cli.completing import complete_session
from segue.cli.options import AS_JSON, REMOTE
from segue.cli.output import pages, pour, show_json
from segue.cli.render import transcript
from segue.core.scope import OWNER_AT_CONSOLE
from segue.sessions import exporting, finding, reading

if TYPE_CHECKING:
    from segue.cli.remote import Asked


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="ID or TITLE", shell_complete=complete_session)
@click.option("--around", type=int, metavar="SEQ", help="Only those around a message.")
@click.option("--raw", is_flag=True, help="The words alone, without decoration.")
@REMOTE
@AS_JSON
def show(
    words: tuple[str, ...],
    around: int | None,
    raw: bool,
    there: "Asked | None",
    as_json: bool,
) -> None:
    """Read a conversation from its beginning, all its parts in order."""
    if there:
        from segue.cli.remote_sessions import conversation, parts_of  # only this needs it

        gateway, wanted = there, " ".join(words)
        if as_json:
            show_json(conversation(gateway, wanted))
            return
        _show(parts_of(gateway, wanted, around), around, raw=raw)
        return
    with app.open_for_reading() as store:
        session_id = store.read(OWNER_AT_CONSOLE, finding.get_id, " ".join(words))
        if as_json:
            show_json(store.read(OWNER_AT_CONSOLE, exporting.export_conversation, session_id))
            return
        if around is None:
            parts = store.read(OWNER_AT_CONSOLE, reading.transcript_of, session_id)
        else:
            parts = store.read(OWNER_AT_CONSOLE, reading.excerpt_of, session_id, around)
    _show(parts, around, raw=raw)


def _show(parts: Sequence[reading.Part], around: int | None, *, raw: bool) -> None:
    if raw:
        pour(message.content for part in parts for message in part.messages if message.content)
    else:
        pages(transcript(parts, around=around))
