"""Text as it is searched: folded, and cut into tokens in the same way for a message and for a query.

A token is a word, a pictograph, or two neighbouring characters of a script that puts no spaces between words. The last
character of a run of such a script is a token too, so that one character can be found wherever it stands: it begins a
pair, or it ends the run.
"""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from segue.core.text import printable

LONGEST = 64
"""A longer word, such as a line of base64, is several tokens."""

_DENSE = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0eff"  # Thai, Lao
    "\u0f40-\u0fbc\u1000-\u104f\u1780-\u17d3"  # Tibetan, Burmese, Khmer
    "\u1100-\u11ff\uac00-\ud7a3"  # Korean has spaces, but glues its particles to the words
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u312f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
)
_PICTOGRAPHS = "\u2190-\u245f\u2500-\u2bff\U0001f000-\U0001faff"
_MARKED = "\u0900-\u0963\u0966-\u0df3\u0df5-\u0dff"  # scripts of India, whose vowel signs are no letters to Python

_TOKEN = re.compile(f"[^\\W_{_DENSE}{_PICTOGRAPHS}{_MARKED}]{{1,{LONGEST}}}|[{_DENSE}]+|[{_MARKED}]+|[{_PICTOGRAPHS}]")
_ASCII_WORD = re.compile(f"[a-z0-9]{{1,{LONGEST}}}")
_NOT_ASCII = re.compile("[^\x00-\x7f]+")
_IS_DENSE = re.compile(f"[{_DENSE}]")
_IS_LETTER = re.compile(f"[^\\W_{_DENSE}{_PICTOGRAPHS}]|[{_MARKED}]")
_SPACES = re.compile(r"\s+")

# What is written above and below letters, and what joins or varies signs without being one.
_MARKS = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff"
    "\U0001f3fb-\U0001f3ff\U000e0000-\U000e01ef]"
)
_PLAIN = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
)


class Tokens(NamedTuple):
    """A text in a query as tokens that must stand next to each other."""

    words: tuple[str, ...]
    is_open: bool
    """Whether the last one only has to begin so."""


def fold(text: str) -> str:
    """The text without what people leave away when they search: case, accents, typographic variants."""
    if "\x1b" in text or "\x9b" in text:
        text = printable(text)  # colours of a terminal would stick to the words behind them
    if text.isascii():
        return text.lower()
    return _NOT_ASCII.sub(lambda run: _folded(run[0]), text).lower()


@lru_cache(maxsize=10_000)
def _folded(run: str) -> str:
    """The same for characters beyond ASCII; in most languages few runs of them make up nearly all."""
    apart = unicodedata.normalize("NFKD", run.translate(_PLAIN)).casefold()
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFKD", apart)))


def on_one_line(folded: str) -> str:
    """The folded text with every run of white space as one space."""
    return _SPACES.sub(" ", folded).strip()


def tokens_of(folded: str) -> list[str]:
    """The tokens of a folded text, in order."""
    if folded.isascii():
        return _ASCII_WORD.findall(folded)
    if not _IS_DENSE.search(folded):
        return _TOKEN.findall(folded)
    found: list[str] = []
    for run in _TOKEN.findall(folded):
        if run.isascii() or not is_dense(run[0]):
            found.append(run)
        else:
            found += _pairs(run)
            found.append(run[-1])
    return found


def sought(folded: str, *, is_open: bool = False) -> Tokens:
    """The tokens that stand for a folded text wherever it occurs, also in the middle of a run."""
    found = tokens_of(folded)
    if not found or not is_dense(folded[-1:]):
        return Tokens(tuple(found), is_open and bool(found))
    run = _TOKEN.findall(folded)[-1]
    if len(run) == 1:
        return Tokens(tuple(found), is_open=True)  # it begins a pair, unless it ends a run
    return Tokens(tuple(found[:-1]), is_open=False)


def is_dense(character: str) -> bool:
    """Whether a character belongs to a script that is found from one character on."""
    return _IS_DENSE.match(character) is not None


def is_letter(character: str) -> bool:
    """Whether a character can be part of a word that has an end."""
    return _IS_LETTER.match(character) is not None


def is_in(literal: str, folded: str) -> bool:
    """Whether a folded literal stands in a folded text, and not as a part of longer words."""
    at = folded.find(literal)
    while at >= 0:
        if _is_whole(literal, folded, at):
            return True
        at = folded.find(literal, at + 1)
    return False


def _is_whole(literal: str, folded: str, at: int) -> bool:
    before, after = folded[at - 1 : at] if at else "", folded[at + len(literal) : at + len(literal) + 1]
    return not (is_letter(literal[0]) and is_letter(before)) and not (is_letter(literal[-1]) and is_letter(after))


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]
