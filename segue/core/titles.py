"""What a title may be, and what the next part of a conversation is called.

A title is one visible line of at most 100 characters. Parts of a compressed conversation are numbered: `my project #2`.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

from segue.core.errors import TitleTooLong
from segue.core.text import cut, shorten

LONGEST_TITLE = 100
_WORDS_IN_A_GUESS = 7
_LEAST_OF_A_BASE = 3
_SUGGESTED = 3
_COMPARED = 500
_SHORTEST_PART = 3
_SIMILAR = 0.7

_NUMBERED = re.compile(r"(?P<base>.*\S) #(?P<number>[1-9][0-9]{0,8})", re.DOTALL)
_PICTOGRAPH = "\u00a9\u00ae\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_STRAY_JOINER = re.compile(f"(?<![{_PICTOGRAPH}\ufe0f])\u200d|\u200d(?![{_PICTOGRAPH}])")
_SELECTORS = re.compile(
    "[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)  # they change how a neighbour looks; alone they are nothing
_TAGS = re.compile("[\u2065\U000e0000-\U000e007f]")
_SPACES = re.compile(r"\s+")
_INVISIBLE_LETTERS = frozenset("\u034f\u115f\u1160\u3164\uffa0\ufffc")
_VISIBLE_FORMATS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")


def clean_title(raw: str | None) -> str | None:
    """The title that is kept of what somebody typed; None when nothing visible is left, an error when too long."""
    title = _visible(raw or "")
    if len(title) > LONGEST_TITLE:
        raise TitleTooLong(len(title), LONGEST_TITLE)
    return title or None


def fitted_title(raw: str | None) -> str | None:
    """The same for a title that nobody typed: shortened instead of refused."""
    return _visible(cut(_visible(raw or ""), LONGEST_TITLE)) or None


def title_from(first_words: str) -> str | None:
    """A title made of the first paragraph of a conversation, for when no model is there to find a better one."""
    words = _visible(first_words.lstrip().partition("\n\n")[0]).split(" ")
    return fitted_title(" ".join(words[:_WORDS_IN_A_GUESS]))


def title_key(title: str) -> str:
    """What two titles have in common that differ in upper and lower case alone."""
    return unicodedata.normalize("NFC", title.casefold())


def near_titles(wanted: str, titles: Sequence[str]) -> list[str]:
    """The titles that somebody may have meant: those that contain what was typed, then those spelt alike.

    Earlier titles come first. Spelling is compared with a limited number of them, because that takes time.
    """
    from difflib import get_close_matches  # only a mistake needs these two

    from segue.core.tokens import fold

    typed = fold(fitted_title(wanted) or "").strip()
    folded = {title: fold(title) for title in titles}
    containing = [title for title in titles if len(typed) >= _SHORTEST_PART and typed in folded[title]]
    compared = dict.fromkeys(list(folded.values())[:_COMPARED])
    alike = get_close_matches(typed, compared, _SUGGESTED, _SIMILAR)
    spelt_alike = [title for key in alike for title in titles if folded[title] == key]
    return list(dict.fromkeys([*containing, *spelt_alike]))[:_SUGGESTED]


def split_title(title: str) -> tuple[str, int]:
    """The name of the conversation and the number of the part; an unnumbered title is part 1."""
    if match := _NUMBERED.fullmatch(title):
        return match["base"], int(match["number"])
    return title, 1


def shorten_title(title: str, most: int, shorten: Callable[[str, int], str] = shorten) -> str:
    """The title shortened so that its number stays; `shorten` says how a text is made that short."""
    base, number = split_title(title)
    ending = f" #{number}"
    whole = shorten(title, most)
    if whole == title or number == 1 or most < len(ending) + _LEAST_OF_A_BASE:
        return whole
    return shorten(base, most - len(ending)) + ending


def numbered_title(base: str, number: int) -> str:
    """`base #number`, the base shortened when both together would be too long."""
    suffix = f" #{number}"
    return _visible(cut(base, LONGEST_TITLE - len(suffix))) + suffix


def next_title(title: str, taken: Iterable[str]) -> str:
    """The first number after every one the same base already has."""
    taken = set(taken)
    base, number = split_title(title)
    number = max([number, *(n for b, n in map(split_title, taken) if b == base)]) + 1
    while (candidate := numbered_title(base, number)) in taken:  # a shortened base may meet a stranger's title
        number += 1
    return candidate


def _visible(raw: str) -> str:
    characters = [" " if c.isspace() else c for c in raw if c.isspace() or _is_shown(c)]
    title = _SPACES.sub(" ", _STRAY_JOINER.sub("", "".join(characters))).strip()
    return title if _SELECTORS.sub("", title) else ""


def _is_shown(character: str) -> bool:
    if character.isascii():
        return character.isprintable()
    if _TAGS.match(character):
        return False
    if character == "\u200d" or character in _VISIBLE_FORMATS:
        return True
    return character not in _INVISIBLE_LETTERS and unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
