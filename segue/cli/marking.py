"""`segue sessions rename, archive, unarchive, pin, unpin, tag, untag`: here, or at another machine."""

from typing import TYPE_CHECKING, Any

import click

from segue import app
from segue.cli.completing import complete_session
from segue.cli.options import REMOTE
from segue.cli.output import say
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import count
from segue.ports.store import Transaction
from segue.sessions import finding, marking

if TYPE_CHECKING:
    from segue.cli.remote import Asked

WANTED = click.argument("wanted", nargs=-1, required=True, metavar="ID or TITLE…", shell_complete=complete_session)
ONE = click.argument("wanted", metavar="ID or TITLE", shell_complete=complete_session)
TAGS = click.argument("tags", nargs=-1, required=True, metavar="TAG…")


@click.command()
@ONE
@click.argument("words", nargs=-1, required=True, metavar="NEW TITLE…")
@REMOTE
def rename(wanted: str, words: tuple[str, ...], there: "Asked | None") -> None:
    """Give a conversation a title. Quotes are not needed; an empty title ("") takes it away."""
    (marked,) = _marked((wanted,), {"title": " ".join(words)}, there)
    say(f"{marked.id} is now called '{marked.title}'." if marked.title else f"{marked.id} has no title now.")


@click.command()
@WANTED
@REMOTE
def archive(wanted: tuple[str, ...], there: "Asked | None") -> None:
    """Put conversations aside: lists leave them out, `list --archived` shows them, nothing is deleted."""
    _tell(_marked(wanted, {"archived": True}, there), "archived")


@click.command()
@WANTED
@REMOTE
def unarchive(wanted: tuple[str, ...], there: "Asked | None") -> None:
    """Bring archived conversations back into the lists."""
    _tell(_marked(wanted, {"archived": False}, there), "back in the lists")


@click.command()
@WANTED
@REMOTE
def pin(wanted: tuple[str, ...], there: "Asked | None") -> None:
    """Keep conversations for good: `prune` never takes them."""
    _tell(_marked(wanted, {"pinned": True}, there), "pinned")


@click.command()
@WANTED
@REMOTE
def unpin(wanted: tuple[str, ...], there: "Asked | None") -> None:
    """Let conversations be pruned again."""
    _tell(_marked(wanted, {"pinned": False}, there), "no longer pinned")


@click.command()
@ONE
@TAGS
@REMOTE
def tag(wanted: str, tags: tuple[str, ...], there: "Asked | None") -> None:
    """Give a conversation tags; `list --tag` finds it by them."""
    _tell_tags(_marked((wanted,), {"add_tags": list(tags)}, there))


@click.command()
@ONE
@TAGS
@REMOTE
def untag(wanted: str, tags: tuple[str, ...], there: "Asked | None") -> None:
    """Take tags away from a conversation."""
    _tell_tags(_marked((wanted,), {"remove_tags": list(tags)}, there))


def _marked(wanted: tuple[str, ...], marks: dict[str, Any], there: "Asked | None") -> list[marking.Marked]:
    """Mark all that were named, or none of them; at another machine, one after the other."""

    def mark_all(tx: Transaction) -> list[marking.Marked]:
        found = dict.fromkeys(finding.get_id(tx, name) for name in wanted)
        return [marking.mark_conversation(tx, one, **marks) for one in found]

    if there:
        rows = [there.ask("sessions.patch", {"id": name, **marks}) for name in wanted]
        return [marking.Marked(row["id"], row["title"], row["tags"]) for row in rows]
    with app.open_store() as store:
        return store.write(OWNER_AT_CONSOLE, mark_all)


def _tell(marked: list[marking.Marked], state: str) -> None:
    say(f"{count(len(marked), 'conversation')} {state}: {', '.join(one.id for one in marked)}.")


def _tell_tags(marked: list[marking.Marked]) -> None:
    (one,) = marked
    say(f"{one.id} has the tags {', '.join(one.tags)}." if one.tags else f"{one.id} has no tags.")
