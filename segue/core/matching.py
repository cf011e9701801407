"""Whether a message is what a query asks for: the meaning of the search language, said once.

An index may only propose messages; what is not certain from its tokens alone is judged here.
"""

from collections.abc import Callable
from datetime import date, datetime, tzinfo
from functools import cached_property, lru_cache
from typing import NamedTuple

from segue.core.messages import called, calls_in
from segue.core.query import And, Field, Node, Not, Only, Or, Part, Phrase, Prefix, Term, Word
from segue.core.spelling import dumps
from segue.core.tokens import Tokens, fold, is_dense, is_in, on_one_line, sought, tokens_of

_LONGEST = 10_000_000
"""Characters of a message that are searched."""


class Found(NamedTuple):
    """A message with what is known of its session."""

    id: int
    session_id: str
    seq: int
    role: str
    timestamp: float
    content: str | None
    tool_calls: str | None
    tool_name: str | None
    source: str
    model: str | None
    session_started: float
    title: str | None
    kind: str
    tags: tuple[str, ...] = ()


class Needle(NamedTuple):
    """A term as it is looked for: tokens next to each other, and texts that must stand there as they are."""

    tokens: Tokens
    literals: tuple[str, ...] = ()
    part: str = ""
    """Any part of the text, within words too."""

    @property
    def is_exact(self) -> bool:
        """Whether the tokens alone decide."""
        return not self.literals and not self.part


class Page:
    """The text of a message, ready to be looked through."""

    def __init__(self, text: str) -> None:
        self.folded = fold(text)

    @cached_property
    def tokens(self) -> list[str]:
        return tokens_of(self.folded)


@lru_cache(maxsize=256, typed=True)  # a word and a phrase of the same text are equal tuples
def needle_of(term: Term) -> Needle:
    match term:
        case Part(text):
            return Needle(Tokens((), False), part=on_one_line(fold(text)))
        case Prefix(text):
            folded = fold(text)
            return Needle(sought(folded, is_open=True), () if _is_plain(folded) else (folded,))
        case Word(text) | Phrase(text):
            words = fold(text).split()
            return Needle(sought(" ".join(words)), tuple(word for word in words if not _is_plain(word)))


def text_of(found: Found, *, in_tools: bool) -> str:
    """What of a message is searched; the output of tools only when asked for."""
    if found.role == "tool" and not in_tools:
        return ""
    return searched(found.role, found.content, found.tool_calls)


def searched(role: str, content: str | None, tool_calls: str | None) -> str:
    """What was said and which tools were called how, or what a tool answered."""
    said = (content or "")[:_LONGEST]
    if role == "system":
        return ""
    if role == "tool" or not (calls := calls_of(tool_calls)):
        return said
    return f"{said}\n{calls}"


def calls_of(tool_calls: str | None) -> str:
    """The calls of a message as words: each tool's name and its arguments."""
    return "\n".join(f"{called(call)} {_arguments(call)}" for call in calls_in(tool_calls))


def matches(node: Node, found: Found, page: Page, zone: tzinfo) -> bool:
    """Whether a message is meant by a query."""
    match node:
        case And(nodes):
            return all(matches(one, found, page, zone) for one in nodes)
        case Or(nodes):
            return any(matches(one, found, page, zone) for one in nodes)
        case Not(inner):
            return not matches(inner, found, page, zone)
        case Only(field, value):
            return _HOLDS[field](found, value, zone)
    return is_found(needle_of(node), page)


def is_found(needle: Needle, page: Page) -> bool:
    """Whether a term stands in a text."""
    if needle.part:
        return needle.part in on_one_line(page.folded)
    if needle.tokens.words and not _stand_together(needle.tokens, page.tokens):
        return False
    return all(
        literal in page.folded if needle.tokens.is_open else is_in(literal, page.folded) for literal in needle.literals
    )


def _is_plain(folded: str) -> bool:
    """Whether the tokens of a word say all there is to it."""
    words = tokens_of(folded)
    return words == [folded] or all(map(is_dense, folded))


def _stand_together(sought_for: Tokens, tokens: list[str]) -> bool:
    *firsts, last = sought_for.words
    reach = len(firsts)
    fits: Callable[[str], bool] = (lambda token: token.startswith(last)) if sought_for.is_open else last.__eq__
    if not firsts:
        return any(map(fits, tokens))
    at = -1
    while True:
        try:
            at = tokens.index(firsts[0], at + 1)
        except ValueError:
            return False
        if at + reach < len(tokens) and tokens[at : at + reach] == firsts and fits(tokens[at + reach]):
            return True


def _arguments(call: dict[str, object]) -> str:
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, dict) else call.get("arguments")
    return arguments if isinstance(arguments, str) else dumps(arguments) if arguments else ""


def _day_of(found: Found, zone: tzinfo) -> date:
    return datetime.fromtimestamp(found.timestamp, zone).date()


_HOLDS: dict[Field, Callable[[Found, str, tzinfo], bool]] = {
    Field.SOURCE: lambda found, value, _: found.source == value,
    Field.ROLE: lambda found, value, _: found.role == value,
    Field.TITLE: lambda found, value, _: fold(value) in fold(found.title or ""),
    Field.TAG: lambda found, value, _: value in found.tags,
    Field.AFTER: lambda found, value, zone: _day_of(found, zone) >= date.fromisoformat(value),
    Field.BEFORE: lambda found, value, zone: _day_of(found, zone) < date.fromisoformat(value),
    Field.SESSION: lambda found, value, _: found.session_id.startswith(value),
}
