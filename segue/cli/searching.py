"""`segue sessions search`: what was said, by what it says."""

import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import click

from segue import app
from segue.cli.options import AS_JSON
from segue.cli.output import note, pages, show_json, style
from segue.core.moments import ago
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.snippets import stretches
from segue.core.text import one_line
from segue.facade.searching import answer, as_row
from segue.ports.store import Narrowing, Transaction
from segue.sessions import finding
from segue.sessions.searching import Hit, Sort, Wish

_SPEAKERS = {"user": ("●", "yellow"), "assistant": ("◆", "green"), "tool": ("⚙", "cyan")}


class Conversation(NamedTuple):
    """Hits that belong together."""

    id: str
    name: str
    hits: list[Hit]


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="QUERY")
@click.option("--source", multiple=True, help="Only this platform (may be repeated).")
@click.option("--role", multiple=True, help="Only what was said by user, assistant or tool (may be repeated).")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many messages at most.")
@click.option(
    "--sort",
    type=click.Choice([sort.value for sort in Sort]),
    default="rank",
    show_default=True,
    help="What comes first.",
)
@AS_JSON
def search(
    words: tuple[str, ...], source: tuple[str, ...], role: tuple[str, ...], limit: int, sort: str, as_json: bool
) -> None:
    """Find messages by what they say. Any QUERY will do; quotes are not needed.

    \b
    lisbon hotel          both words, in any order
    "third week"          a phrase (in single quotes for the shell)
    lisbon OR porto       either; NOT leaves out; (…) groups
    deplo*   ~onfig       the beginning of a word; any part of one
    source:telegram role:user title:trip tag:work after:2025-01-01 before:… session:… in:tools
    """
    wish = Wish(limit, 0, Sort(sort), Narrowing(sources=source, roles=role))
    with app.open_for_reading() as store:
        found = answer(store, OWNER_AT_CONSOLE, " ".join(words), wish)
        if as_json:
            show_json(store.read(OWNER_AT_CONSOLE, lambda tx: [as_row(tx, hit) for hit in found.hits]))
        else:
            pages(_lines(store.read(OWNER_AT_CONSOLE, _grouped, found.hits), time.time()))
    for sentence in found.notes:
        note(sentence)
    if not found.hits:
        note("Nothing was found.")


def _grouped(tx: Transaction, hits: Iterable[Hit]) -> list[Conversation]:
    """Hits by conversation, in the order of the best of each."""
    grouped: dict[str, Conversation] = {}
    for hit in hits:
        tip = finding.find_tip(tx, hit.found.session_id)
        if tip not in grouped:
            session = finding.get_session(tx, tip)
            grouped[tip] = Conversation(tip, session.title or session.first_line or tip, [])
        grouped[tip].hits.append(hit)
    return list(grouped.values())


def _lines(conversations: list[Conversation], now: float) -> Iterator[str]:
    for number, conversation in enumerate(conversations):
        if number:
            yield ""
        yield f"{style(one_line(conversation.name), bold=True)}  {style(one_line(conversation.id), dim=True)}"
        for hit in conversation.hits:
            yield _line(hit, conversation.id, now)
    if conversations:
        best = conversations[0].hits[0].found
        yield ""
        yield style(one_line(f"segue sessions show {best.session_id} --around {best.seq}"), dim=True)


def _line(hit: Hit, conversation: str, now: float) -> str:
    sign, colour = _SPEAKERS.get(hit.found.role, ("■", "magenta"))
    where = f"#{hit.found.seq} · {ago(hit.found.timestamp, now)}"
    if hit.found.session_id != conversation:
        where += f" · in {hit.found.session_id}"
    return f"{style(sign, fg=colour)} {_marked(hit.snippet)}  {style(one_line(where), dim=True)}"


def _marked(snippet: str) -> str:
    """The snippet with its matches in colour, where there is colour; otherwise with the marks."""
    plain = one_line(snippet)
    if style("x", bold=True) == "x":
        return plain
    return "".join(style(text, bold=True, fg="yellow") if is_match else text for text, is_match in stretches(plain))
