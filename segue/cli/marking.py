"""`segue sessions rename, archive, unarchive, pin, unpin, tag, untag`."""

from collections.abc import Callable

import click

from segue import app
from segue.cli.completing import complete_session
from segue.cli.output import say
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.text import count
from segue.ports.store import Transaction
from segue.sessions import finding, marking, titling

WANTED = click.argument("wanted", nargs=-1, required=True, metavar="ID or TITLE…", shell_complete=complete_session)


@click.command()
@click.argument("wanted", metavar="ID or TITLE", shell_complete=complete_session)
@click.argument("words", nargs=-1, required=True, metavar="NEW TITLE…")
def rename(wanted: str, words: tuple[str, ...]) -> None:
    """Give a conversation a title. Quotes are not needed; an empty title ("") takes it away."""
    with app.open_store() as store:
        session_id, title = store.write(OWNER_AT_CONSOLE, _rename, wanted, " ".join(words))
    say(f"{session_id} is now called '{title}'." if title else f"{session_id} has no title now.")


@click.command()
@WANTED
def archive(wanted: tuple[str, ...]) -> None:
    """Put conversations aside: lists leave them out, `list --archived` shows them, nothing is deleted."""
    _each(wanted, "archived", lambda tx, one: marking.archive_conversation(tx, one, archived=True))


@click.command()
@WANTED
def unarchive(wanted: tuple[str, ...]) -> None:
    """Bring archived conversations back into the lists."""
    _each(wanted, "back in the lists", lambda tx, one: marking.archive_conversation(tx, one, archived=False))


@click.command()
@WANTED
def pin(wanted: tuple[str, ...]) -> None:
    """Keep conversations for good: `prune` never takes them."""
    _each(wanted, "pinned", lambda tx, one: marking.pin_conversation(tx, one, pinned=True))


@click.command()
@WANTED
def unpin(wanted: tuple[str, ...]) -> None:
    """Let conversations be pruned again."""
    _each(wanted, "no longer pinned", lambda tx, one: marking.pin_conversation(tx, one, pinned=False))


@click.command()
@click.argument("wanted", metavar="ID or TITLE", shell_complete=complete_session)
@click.argument("tags", nargs=-1, required=True, metavar="TAG…")
def tag(wanted: str, tags: tuple[str, ...]) -> None:
    """Give a conversation tags; `list --tag` finds it by them."""
    _tagged(wanted, lambda tx, one: marking.tag_conversation(tx, one, add=tags))


@click.command()
@click.argument("wanted", metavar="ID or TITLE", shell_complete=complete_session)
@click.argument("tags", nargs=-1, required=True, metavar="TAG…")
def untag(wanted: str, tags: tuple[str, ...]) -> None:
    """Take tags away from a conversation."""
    _tagged(wanted, lambda tx, one: marking.tag_conversation(tx, one, remove=tags))


def _each(wanted: tuple[str, ...], state: str, work: Callable[[Transaction, str], object]) -> None:
    """Mark all that were named, or none of them."""

    def mark_all(tx: Transaction) -> list[str]:
        found = list(dict.fromkeys(finding.get_id(tx, name) for name in wanted))
        for one in found:
            work(tx, one)
        return found

    with app.open_store() as store:
        found = store.write(OWNER_AT_CONSOLE, mark_all)
    say(f"{count(len(found), 'conversation')} {state}: {', '.join(found)}.")


def _tagged(wanted: str, work: Callable[[Transaction, str], list[str]]) -> None:
    with app.open_store() as store:
        session_id = store.read(OWNER_AT_CONSOLE, finding.get_id, wanted)
        tags = store.write(OWNER_AT_CONSOLE, work, session_id)
    say(f"{session_id} has the tags {', '.join(tags)}." if tags else f"{session_id} has no tags.")


def _rename(tx: Transaction, wanted: str, title: str) -> tuple[str, str | None]:
    session_id = finding.get_id(tx, wanted)
    return session_id, titling.set_title(tx, session_id, title)
