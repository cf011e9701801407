"""A title for a conversation, from whoever is asked for one."""

import re
from typing import NamedTuple

from segue.core.sessions import TitleSource
from segue.core.text import shorten
from segue.core.titles import fitted_title, title_from

TITLE_INSTRUCTIONS = """\
Give a conversation a title: three to seven words in its language that tell it from others. Answer with the title alone,
without quotation marks or a full stop."""

_LONGEST_SOURCE = 2_000
_MOST_WORDS = 12
_MOST_CHARACTERS = 80
_AROUND = re.compile(r"^(?:title|titel|título|titre)\s*[:：]\s*|^[\s#*_`\"'“”„«»「」]+|[\s*_`\"'“”„«».。「」]+$", re.I)


def title_request(asked: str, answered: str) -> str:
    """What the one who names it is told."""
    return f"Person: {shorten(asked, _LONGEST_SOURCE)}\n\nAgent: {shorten(answered, _LONGEST_SOURCE)}"


class ChosenTitle(NamedTuple):
    title: str | None
    source: TitleSource


def chosen_title(answer: str, asked: str) -> ChosenTitle:
    """The title that an answer gives; if it gives none, the first words of what was asked."""
    first = next((line for line in answer.splitlines() if line.strip()), "")
    while (bare := _AROUND.sub("", first)) != first:
        first = bare
    is_title = 0 < len(first) <= _MOST_CHARACTERS and len(first.split()) <= _MOST_WORDS
    if is_title and (title := fitted_title(first)):
        return ChosenTitle(title, TitleSource.MODEL)
    return ChosenTitle(title_from(asked), TitleSource.FIRST_WORDS)
