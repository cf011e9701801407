"""The names of notes: what a model calls one, made into the name of a file that is in the folder and nowhere else."""

import unicodedata
from typing import NamedTuple

from segue.core.text import one_line, shorten
from segue.ports.tool import ToolFailed

SUFFIX = ".md"
SKILLS = "skills"
MOST_CHARACTERS = 60
_MOST_BYTES = 200
_ROUNDS = 4


class NoteName(NamedTuple):
    """Where a note is kept: in the folder itself, or in the one for skills."""

    folder: str
    slug: str

    @property
    def file(self) -> str:
        return self.slug + SUFFIX

    def __str__(self) -> str:
        return f"{self.folder}/{self.slug}" if self.folder else self.slug


def note_name(said: str) -> NoteName:
    """The note that is meant by a name; the name of a note means that note."""
    folded = _folded(said).removesuffix(SUFFIX)
    is_skill = folded.startswith(f"{SKILLS}/")
    slug = "-".join(folded.removeprefix(f"{SKILLS}/").split())
    if not is_slug(slug):
        raise ToolFailed(
            f"{shorten(one_line(said), MOST_CHARACTERS)!r} is no name of a note: use up to {MOST_CHARACTERS} letters,"
            f" digits, - and _, begun with a letter or a digit, and {SKILLS}/ before it for a skill."
        )
    return NoteName(SKILLS if is_skill else "", slug)


def is_slug(text: str) -> bool:
    """Whether a text is the name of a file that is not hidden, not too long, and no way out of its folder."""
    is_short = 0 < len(text) <= MOST_CHARACTERS and len(text.encode("utf-8", "replace")) <= _MOST_BYTES
    return is_short and text[0].isalnum() and all(map(_is_plain, text)) and _folded(text) == text


def _is_plain(character: str) -> bool:
    return character.isalnum() or character in "-_" or unicodedata.category(character).startswith("M")


def _folded(text: str) -> str:
    """The same name for what looks the same: a disk may not tell apart what only differs in case or composition."""
    for _ in range(_ROUNDS):
        before, text = text, unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        if text == before:
            break
    return text.strip()
