"""Messages in the order of their timestamps, merged from sources that know this order only roughly.

A source gives a bound for what it has not loaded yet. Whatever is loaded and lies before the bounds of all sources is
final, and nothing more has to be loaded for it.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple, Protocol

from segue.core.matching import Found

MAX_AT_A_CUT = 200
"""Messages that are still given when time runs out before the order of all that was loaded is known."""


ENOUGH = 50
"""Messages that are waited for before they are read, for many small questions cost more than a few large ones."""
_READ_AT_ONCE = 201  # messages that are given at once: as many as are ranked, and one that tells of more
_LISTED = 500  # messages of a list that are read at once


Key = tuple[float, int]
"""The place of a message in the order, by its timestamp and its id: the highest key comes first."""


class Loaded(NamedTuple):
    key: Key
    id: int
    found: Found | None = None
    """The message itself, where it was read already."""


class Part(NamedTuple):
    """Messages that are final, the first one first."""

    messages: list[Loaded]
    is_cut: bool = False
    """Whether time ran out, so that others may come before these."""


class Source(Protocol):
    @property
    def bound(self) -> Key | None:
        """No key that is still to be loaded is higher; None when there is nothing left."""

    def load(self) -> list[Loaded]:
        """Load more. The bound may stay as it is, but not for ever."""


class ListSource(Source):
    """Messages whose order is known."""

    def __init__(self, messages: list[Loaded]) -> None:
        self._left = messages[::-1]

    @property
    def bound(self) -> Key | None:
        return self._left[-1].key if self._left else None

    def load(self) -> list[Loaded]:
        loaded, self._left = self._left[-_LISTED:], self._left[:-_LISTED]
        return loaded


def key_of(timestamp: float, message_id: int, *, newest_first: bool) -> Key:
    """Messages of one moment are in the order of their ids."""
    return (timestamp, message_id) if newest_first else (-timestamp, -message_id)


def in_order(sources: Sequence[Source], time_left: Callable[[], float]) -> Iterator[Part]:
    """All messages of all sources, loaded as they are asked for."""
    pending: list[Loaded] = []  # the first one last
    final: list[Loaded] = []
    while bounds := [(bound, number) for number, source in enumerate(sources) if (bound := source.bound) is not None]:
        if time_left() <= 0:
            yield Part([*final, *reversed(pending)][:MAX_AT_A_CUT], is_cut=True)
            return
        pending += sources[max(bounds)[1]].load()
        pending.sort(key=_KEY)
        left = [bound for source in sources if (bound := source.bound) is not None]
        first = bisect_right(pending, max(left), key=_KEY) if left else 0
        final += reversed(pending[first:])
        del pending[first:]
        if len(final) >= ENOUGH or not left:
            for at in range(0, len(final), _READ_AT_ONCE):
                yield Part(final[at : at + _READ_AT_ONCE])
            final = []


_KEY: Callable[[Loaded], Key] = attrgetter("key")
