"""What Telegram allows in a text and makes of it. Offsets and lengths are counted in UTF-16 units."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

from bot_api.records import Entities

MOST_TEXT = 4096
MOST_CAPTION = 1024
MOST_ENTITIES = 100

_STYLES = {"bold", "italic", "underline", "strikethrough", "spoiler"}
_QUOTES = {"blockquote", "expandable_blockquote"}
_CODE = {"pre", "code"}
_FOUND = {"mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number"}
_NEEDS = {"text_link": "url", "text_mention": "user", "custom_emoji": "custom_emoji_id"}
_KINDS = _STYLES | _QUOTES | _CODE | _FOUND | set(_NEEDS) | {"date_time"}

_BLANK = " \n"
_TO_SPACES = {code: " " for code in range(33) if code not in (10, 13)}
_AWAY = dict.fromkeys([13, 0x0333, 0x033F, 0x030A, *range(0x2028, 0x202F)])
_CLEANING: dict[int, str | None] = {**_TO_SPACES, **_AWAY}


class Span(NamedTuple):
    start: int
    end: int
    kind: str


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def faults(text: str, entities: Entities) -> Iterator[str]:
    """Why these entities are not what the Bot API describes."""
    if len(entities) > MOST_ENTITIES:
        yield f"{len(entities)} entities are more than {MOST_ENTITIES}"
    borders = set(_borders(text))
    for one in entities:
        yield from _faults_of_one(one, borders, units(text))
    spans = sorted((_span(one) for one in entities), key=lambda span: (span.start, -span.end))
    for outer, inner in combinations(spans, 2):
        yield from _faults_of_two(outer, inner)


def tidied(text: str, entities: Entities) -> tuple[str, Entities]:
    """The text as Telegram keeps it: no control characters, nothing blank around it, entities moved along."""
    places = [0]
    for character in text:
        is_kept = _CLEANING.get(ord(character), "") is not None
        places += [places[-1] + _width(character) * is_kept] * _width(character)
    cleaned = text.translate(_CLEANING)
    moved = [one | {"offset": places[one["offset"]], "length": _length(places, one)} for one in entities]
    return _trimmed(cleaned, [one for one in (_narrowed(cleaned, one) for one in moved) if one["length"] > 0])


def part(text: str, start: int, end: int) -> str:
    """What is between two offsets."""
    return text.encode("utf-16-le", "surrogatepass")[2 * start : 2 * end].decode("utf-16-le", "surrogatepass")


def _faults_of_one(entity: dict[str, Any], borders: set[int], most: int) -> Iterator[str]:
    start, end, kind = _span(entity)
    if kind not in _KINDS:
        yield f"there is no entity {kind!r}"
    if kind in _NEEDS and not entity.get(_NEEDS[kind]):
        yield f"{kind} has no {_NEEDS[kind]}"
    if start < 0 or end <= start or end > most:
        yield f"{kind} from {start} to {end} is not in a text of {most}"
    elif not {start, end} <= borders:
        yield f"{kind} from {start} to {end} cuts a character in two"


def _faults_of_two(outer: Span, inner: Span) -> Iterator[str]:
    if inner.start >= outer.end:
        return
    if inner.end > outer.end:
        yield f"{outer} and {inner} cross"
    elif not _may_contain(outer.kind, inner.kind) and not (
        outer[:2] == inner[:2] and _may_contain(inner.kind, outer.kind)
    ):
        yield f"{outer} cannot contain {inner}"


def _may_contain(outer: str, inner: str) -> bool:
    if outer in _QUOTES:
        return inner not in _QUOTES
    return not {outer, inner} & _CODE and bool({outer, inner} & _STYLES)


def _span(entity: dict[str, Any]) -> Span:
    return Span(entity["offset"], entity["offset"] + entity["length"], entity["type"])


def _borders(text: str) -> Iterator[int]:
    """The offsets at which a character begins or ends."""
    reached = 0
    yield reached
    for character in text:
        reached += _width(character)
        yield reached


def _width(character: str) -> int:
    return 2 if character > "\uffff" else 1


def _length(places: list[int], entity: dict[str, Any]) -> int:
    start, end, _kind = _span(entity)
    return places[end] - places[start]


def _narrowed(text: str, entity: dict[str, Any]) -> dict[str, Any]:
    """An entity does not begin with a blank, unless there is more to it than its looks."""
    start, end, kind = _span(entity)
    if kind in _NEEDS:
        return entity
    while start < end and part(text, start, start + 1) in _BLANK:
        start += 1
    return entity | {"offset": start, "length": end - start}


def _trimmed(text: str, entities: Entities) -> tuple[str, Entities]:
    ended = text.rstrip(_BLANK)
    most = units(ended)
    entities = [one | {"length": min(one["length"], most - one["offset"])} for one in entities if one["offset"] < most]
    blank = units(ended) - units(ended.lstrip(_BLANK))
    first = min([blank, *(one["offset"] for one in entities)])
    moved = [one | {"offset": one["offset"] - first} for one in entities]
    return ended[first:], sorted(moved, key=lambda one: (one["offset"], -one["length"], one["type"]))
