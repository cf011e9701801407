"""`segue sessions search`: what was said, by what it says."""

import sys
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from segue import app
from segue.cli.options import AS_JSON, MOMENT, REMOTE, limit_option, since_option
from segue.cli.output import cut, line_width, note, pages, show_json, style
from segue.cli.sources import check_sources, check_sources_there, source_option
from segue.core.matching import Found
from segue.core.messages import SUMMARY_SEQ, Message, called
from segue.core.moments import ago
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.snippets import stretches
from segue.core.text import one_line
from segue.facade.searching import as_row, consult, message_after, message_before
from segue.ports.store import Narrowing, Transaction
from segue.sessions import finding
from segue.sessions.searching import INCOMPLETE, Answer, Hit, Sort, Wish, by_conversation

if TYPE_CHECKING:
    from segue.cli.remote import Asked

_SPEAKERS = {"user": ("●", "yellow"), "assistant": ("◆", "green"), "tool": ("⚙", "cyan")}
_INDENT = "  "
_GAP = _INDENT + "⋮"

Place = tuple[float, str, int]


class Passage(NamedTuple):
    """A hit, and what was said around it where that is wanted."""

    hit: Hit
    before: Message | None = None
    after: Message | None = None


class Conversation(NamedTuple):
    """Hits that belong together, the best first."""

    id: str
    name: str
    passages: list[Passage]


class FreeWords(click.Command):
    """A command whose words may look like options: only the options it has are options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = {name: param for param in self.get_params(ctx) for name in param.opts if name.startswith("-")}
        options: list[str] = []
        words: list[str] = []
        rest = deque(args)
        while rest:
            argument = rest.popleft()
            if argument == "--":
                words += rest
                break
            if (option := known.get(argument)) is not None and not _is_word(argument, rest):
                options.append(argument)
                if not (isinstance(option, click.Option) and option.is_flag):
                    if not rest:
                        return super().parse_args(ctx, [argument])  # which says what is missing
                    options.append(rest.popleft())
            elif _has_value(argument, known):
                options.append(argument)
            else:
                words.append(argument)
        return super().parse_args(ctx, [*options, "--", *words])


def _has_value(argument: str, known: Collection[str]) -> bool:
    """True of an option that is written together with its value: `--limit=5` or `-n5`."""
    if argument.startswith("-n"):
        return argument[2:].isdecimal()
    return argument.startswith("--") and argument.partition("=")[0] in known


def _is_word(argument: str, rest: Sequence[str]) -> bool:
    """True of a -n without a number behind it, which belongs to something like `grep -n`."""
    return argument == "-n" and not (rest and rest[0].isdecimal())


@click.command(cls=FreeWords)
@click.argument("words", nargs=-1, required=True, metavar="QUERY")
@source_option()
@source_option("--exclude-source", help="All platforms but this one (may be repeated).")
@click.option(
    "--role",
    multiple=True,
    type=click.Choice(list(_SPEAKERS)),
    help="Only what was said by one of them (may be repeated); tool is the output of tools.",
)
@since_option("Only what was said on a day or later: 2025-03-05, yesterday, 7d.")
@click.option("--before", type=MOMENT, metavar="DATE", help="Only what was said before a day, written alike.")
@limit_option(20, most=1000, help="How many messages at most.")
@click.option("--offset", default=0, type=click.IntRange(0), help="How many of the first messages to leave out.")
@click.option(
    "--sort",
    type=click.Choice([sort.value for sort in Sort]),
    default="rank",
    show_default=True,
    help="What comes first.",
)
@click.option("--context", "has_context", is_flag=True, help="Show the message before and after each, too.")
@REMOTE
@AS_JSON
def search(
    words: tuple[str, ...],
    source: tuple[str, ...],
    exclude_source: tuple[str, ...],
    role: tuple[str, ...],
    since: float | None,
    before: float | None,
    limit: int,
    offset: int,
    sort: str,
    has_context: bool,
    there: "Asked | None",
    as_json: bool,
) -> None:
    """Find messages by what they say. Any QUERY will do; quotes are not needed.

    \b
    lisbon hotel          both words, in any order
    "third week"          a phrase (in single quotes for the shell)
    lisbon OR porto       either; NOT leaves out; (…) groups
    deplo*   ~onfig       the beginning of a word; any part of one
    rm -rf   --foo        words, as they are no options of this command
    -- --json             words even so
    source:telegram role:user title:trip tag:work after:2025-01-01 before:… session:… in:tools
    """
    narrowing = Narrowing(
        sources=source,
        exclude_sources=exclude_source,
        roles=role,
        since=since,
        until=before,
    )
    wish = Wish(limit, offset, Sort(sort), narrowing)
    if there:
        check_sources_there(there, (*source, *exclude_source))
        _show_told(there, words, wish, as_json=as_json)
        return

    with app.open_for_reading() as store:
        check_sources(store, (*source, *exclude_source))
        look = partial(consult, store, OWNER_AT_CONSOLE, " ".join(words))
        if as_json:
            answer, rows = look(lambda tx, ask: _rows(tx, ask(wish)))
            show_json(rows)
        else:
            answer, found = look(lambda tx, ask: _conversations(tx, ask(wish), has_context=has_context))
    notes = [*_misspelt(words), *answer.notes, *_outlook(len(answer.hits), wish, answer.notes)]
    if not as_json and found and sys.stdout.isatty():  # in a pager they are part of what is read
        pages(chain(_lines(found, time.time()), (style(sentence, fg="yellow") for sentence in notes)))
        return
    if not as_json:
        pages(_lines(found, time.time()))
    for sentence in notes:
        note(sentence)


def _show_told(gateway: "Asked", words: tuple[str, ...], wish: Wish, *, as_json: bool) -> None:
    """What another machine finds."""
    narrowing = wish.narrowing
    params = {
        "query": " ".join(words),
        "sources": list(narrowing.sources),
        "exclude_sources": list(narrowing.exclude_sources),
        "roles": list(narrowing.roles),
        "since": narrowing.since,
        "until": narrowing.until,
        "sort": wish.sort.value,
        "limit": min(wish.limit, 1000),
        "offset": wish.offset,
    }
    answer = gateway.ask("sessions.search", params)
    if as_json:
        show_json(answer["hits"])
    else:
        pages(_lines(_grouped(gateway, answer["hits"]), time.time()))
    for sentence in [*_misspelt(words), *answer["notes"], *_outlook(len(answer["hits"]), wish, answer["notes"])]:
        note(sentence)


def _grouped(gateway: "Asked", rows: list[dict[str, Any]]) -> list[Conversation]:
    """Hits as they were told, by conversation, the best first."""
    tips = {one: gateway.ask("sessions.get", {"id": one})["tip"] for one in {row["session_id"] for row in rows}}
    grouped: dict[str, list[Passage]] = {}
    for row in rows:
        grouped.setdefault(tips[row["session_id"]], []).append(Passage(_hit(row)))
    named = {tip: gateway.ask("sessions.get", {"id": tip})["session"] for tip in grouped}
    return [Conversation(tip, _called(named[tip]), passages) for tip, passages in grouped.items()]


def _called(row: dict[str, Any]) -> str:
    return str(row["title"] or row["first_line"] or row["id"])


def _hit(row: dict[str, Any]) -> Hit:
    known = {name: row[name] for name in Found._fields if name in row}
    return Hit(Found(**known | {"content": None, "tool_calls": None, "kind": ""}), row["score"], row["snippet"])


def _misspelt(words: tuple[str, ...]) -> Iterator[str]:
    """Words that somebody may have meant as options."""
    known = [name for param in search.params for name in param.opts if name.startswith("--")]
    for word in words:
        name = word.partition("=")[0]
        if name.startswith("--") and name not in known and (near := get_close_matches(name, known, 1)):
            yield f"{word} was searched for as a word; did you mean {near[0]}?"


def _outlook(hits: int, wish: Wish, notes: Sequence[str]) -> Iterator[str]:
    """What lies beyond these."""
    if hits == wish.limit:
        yield f"… and perhaps more; --offset {wish.offset + wish.limit} shows the next."
    elif not hits and INCOMPLETE not in notes:
        yield "There are no more." if wish.offset else "Nothing was found."


def _rows(tx: Transaction, answer: Answer) -> tuple[Answer, list[dict[str, Any]]]:
    return answer, [as_row(tx, hit) for hit in answer.hits]


def _conversations(tx: Transaction, answer: Answer, *, has_context: bool) -> tuple[Answer, list[Conversation]]:
    grouped = by_conversation(tx, answer.hits).items()
    told = _passage if has_context else lambda _, hit: Passage(hit)
    return answer, [Conversation(tip, _name(tx, tip), [told(tx, hit) for hit in hits]) for tip, hits in grouped]


def _name(tx: Transaction, session_id: str) -> str:
    session = finding.get_session(tx, session_id)
    return session.title or session.first_line or session_id


def _passage(tx: Transaction, hit: Hit) -> Passage:
    return Passage(hit, message_before(tx, hit.found), message_after(tx, hit.found))


def _lines(conversations: list[Conversation], now: float) -> Iterator[str]:
    for number, conversation in enumerate(conversations):
        if number:
            yield ""
        yield f"{style(one_line(conversation.name), bold=True)}  {style(one_line(conversation.id), dim=True)}"
        yield from _told(conversation, now)
    if conversations:
        best = conversations[0].passages[0].hit.found
        yield ""
        yield style(one_line(f"segue sessions show {best.session_id} --around {best.seq}"), dim=True)


def _told(conversation: Conversation, now: float) -> Iterator[str]:
    """The hits, the best first; with what was said around them, in the order it was said and each message once."""
    passages = conversation.passages
    said = {_place(one.hit, one.hit.found.seq): _line(one.hit, conversation.id, now) for one in passages}
    if all(one.before is one.after is None for one in passages):
        yield from said.values()
        return
    neighbours: set[tuple[Place, Place]] = set()
    for one in passages:
        beside = {_place(one.hit, message.seq): message for message in (one.before, one.after) if message}
        neighbours.update(pairwise(sorted([_place(one.hit, one.hit.found.seq), *beside])))
        said = {place: _quiet_line(message) for place, message in beside.items()} | said
    places = sorted(said)
    for previous, place in zip([None, *places], places, strict=False):
        if previous is not None and (previous, place) not in neighbours:
            yield style(_GAP, dim=True)
        yield said[place]


def _place(hit: Hit, seq: int) -> Place:
    """Where a message of the same session stands among all of the conversation."""
    return hit.found.session_started, hit.found.session_id, seq


def _line(hit: Hit, conversation: str, now: float) -> str:
    where = f"#{hit.found.seq} · {ago(hit.found.timestamp, now)}"
    if hit.found.session_id != conversation:
        where += f" · in {hit.found.session_id}"
    return f"{_sign(hit.found)} {_marked(hit.snippet)}  {style(one_line(where), dim=True)}"


def _quiet_line(message: Message) -> str:
    """A message beside a hit: set in, and as much of it as fits into a line."""
    calls = ", ".join(map(called, message.calls))
    text = one_line(message.content or "") or one_line(f"→ {calls}" if calls else "(no words)")
    room = line_width() - len(_INDENT) - 2
    return f"{_INDENT}{_sign(message)} {style(cut(text, room), dim=True)}"


def _sign(message: Found | Message) -> str:
    speaker = "summary" if message.seq == SUMMARY_SEQ else message.role
    sign, colour = _SPEAKERS.get(speaker, ("■", "magenta"))
    return style(sign, fg=colour)


def _marked(snippet: str) -> str:
    """The snippet with its matches in colour, where there is colour; otherwise with the marks."""
    plain = one_line(snippet)
    if style("x", bold=True) == "x":
        return plain
    return "".join(style(text, bold=True, fg="yellow") if is_match else text for text, is_match in stretches(plain))
