"""What somebody asks of past conversations, understood without a model.

Any text is a request. Whatever names an act and its object in a known way is that act; everything else is a search.
English is understood best; of other languages the common commands, their question words and their politeness.
"""

import re
from dataclasses import dataclass

from segue.core import phrases


@dataclass(frozen=True, slots=True)
class Nth:
    """The conversation with that number in the last list."""

    number: int


@dataclass(frozen=True, slots=True)
class About:
    """Whatever conversation these words fit."""

    words: str


@dataclass(frozen=True, slots=True)
class That:
    """The one that was spoken of last."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The conversation before this one."""


@dataclass(frozen=True, slots=True)
class Days:
    """Conversations of some days, counted back from today."""

    first: int
    last: int = 0


Which = Nth | About | That | Latest | Days


@dataclass(frozen=True, slots=True)
class Find:
    text: str
    days: Days | None = None


@dataclass(frozen=True, slots=True)
class Show:
    which: Which


@dataclass(frozen=True, slots=True)
class Summarise:
    which: Which


@dataclass(frozen=True, slots=True)
class Resume:
    which: Which


@dataclass(frozen=True, slots=True)
class List:
    days: Days | None = None


@dataclass(frozen=True, slots=True)
class Help:
    pass


@dataclass(frozen=True, slots=True)
class Greet:
    pass


Act = type[Show] | type[Summarise] | type[Resume]
Request = Find | Show | Summarise | Resume | List | Help | Greet

_LONGEST_COMMAND = 300
"""Longer texts are never a command."""
_LONGEST_QUESTION = 2_000
"""What comes behind is not read."""
_LEADING: dict[Act, re.Pattern[str]] = {
    Resume: phrases.RESUME,
    Summarise: phrases.SUMMARISE,
    Show: phrases.SHOW,
}
_UNSPACED: dict[Act, re.Pattern[str]] = {
    Resume: phrases.RESUME_UNSPACED,
    Summarise: phrases.SUMMARISE_UNSPACED,
    Show: phrases.SHOW_UNSPACED,
}
_DAYS = ((Days(1, 1), phrases.YESTERDAY), (Days(0, 0), phrases.TODAY), (Days(7, 0), phrases.THIS_WEEK))


def understand(text: str, listed: int = 0, act: Act = Show) -> Request:
    """The request that a text is, when `listed` conversations were offered last and a bare number means `act`."""
    said = " ".join(text[:_LONGEST_QUESTION].split())
    if len(said) > _LONGEST_COMMAND:
        return Find(said)
    bare = _without_courtesy(said)
    if not said or phrases.HELP.fullmatch(bare or said):
        return Help()
    if not bare:
        return Greet()
    if (number := _number(bare)) is not None and _is_answer(bare, number, listed):
        return act(Nth(number))
    return _listing(bare) or _command(bare) or _unspaced_command(bare) or _search(said)


def is_asked(text: str) -> bool:
    """Whether a text only asks for something; who tells something as well has said what can be found later."""
    if not isinstance(understand(text), Find):
        return True
    pieces = (piece.strip() for piece in phrases.SENTENCE.findall(text[:_LONGEST_QUESTION]))
    return all(phrases.MARKED_QUESTION.search(piece) or phrases.QUESTION.match(piece) for piece in pieces if piece)


def _is_answer(bare: str, number: int, listed: int) -> bool:
    """Whether a number alone is meant for the last list; otherwise it is what somebody looks for."""
    return 1 <= number <= listed or not (bare.isdigit() or bare.lower() in phrases.ORDINALS)


def _without_courtesy(said: str) -> str:
    """A text without greetings and politeness around it."""
    bare = phrases.COURTESY.sub("", said)
    while found := phrases.GREETING.match(bare) or phrases.POLITE.match(bare):
        bare = bare[found.end() :].lstrip(".!。！、，")
    return bare.strip()


def _listing(bare: str) -> List | None:
    rest, days = _without_days(bare)
    return List(days) if phrases.LIST.fullmatch(rest) else None


def _command(bare: str) -> Request | None:
    """An act that the text begins with, and its object."""
    for act, pattern in _LEADING.items():
        if found := pattern.match(bare):
            which = _which(bare[found.end() :].strip())
            if act is Show and isinstance(which, About) and not phrases.CONVERSATION.search(which.words):
                return None  # `show jumping` is what somebody looks for
            return act(which)
    return None


def _unspaced_command(bare: str) -> Request | None:
    """The same where the act stands anywhere in the sentence; then its object must be a conversation for certain."""
    for act, pattern in _UNSPACED.items():
        if found := pattern.search(bare):
            object_ = f"{bare[: found.start()]} {bare[found.end() :]}".strip(phrases.AROUND_AN_ACT)
            rest = " ".join(phrases.THE_CONVERSATION_ABOUT.sub(" ", object_).split())
            which = _which(rest)
            if phrases.CONVERSATION.search(object_) or not isinstance(which, About):
                return act(which)
    return None


def _search(said: str) -> Find | List:
    rest, days = _without_days(said)
    if days is not None and not rest:
        return List(days)
    return Find(rest if days else said, days)


def _which(rest: str) -> Which:
    if (number := _number(rest)) is not None:
        return Nth(number)
    if phrases.LATEST.fullmatch(rest):
        return Latest()
    if phrases.THAT.fullmatch(rest):
        return That()
    left, days = _without_days(rest)
    if days is not None and (not left or phrases.CONVERSATION.fullmatch(left.strip(" ,"))):
        return days
    return About(rest)


def _number(text: str) -> int | None:
    """The number that a text is, in digits or in words."""
    found = phrases.NUMBERED.fullmatch(text)
    word = (found["spaced"] or found["dense"] or found["korean"]).lower() if found else ""
    return int(word) if word.isdecimal() else phrases.ORDINALS.get(word)


def _without_days(text: str) -> tuple[str, Days | None]:
    for days, pattern in _DAYS:
        if found := pattern.search(text):
            left = f"{text[: found.start()]} {text[found.end() :]}"
            return phrases.COURTESY.sub("", " ".join(left.split())), days
    return text, None
