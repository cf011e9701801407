"""The index follows the messages, a batch at a time, and never stands in their way."""

from collections.abc import Callable

from segue.core.errors import IndexDamaged, StoreBusy, StoreError
from segue.ports.store import IndexState

BATCH = 128
"""As many messages may wait before they are taken in: enough to be cheap, few enough to be looked through."""
_LARGE_BATCH = 512
_SMALL_BATCH = 8
"""For those who have other things to do as well."""


class Indexing:
    """When to take messages into the index, and what to do when that fails."""

    def __init__(
        self,
        state: Callable[[], IndexState],
        index_more: Callable[[int, float], IndexState],
        begin_again: Callable[[float], None],
        patience: float,
    ) -> None:
        self._state = state
        self._index_more = index_more
        self._begin_again = begin_again
        self._patience = patience
        self._indexed_to: int | None = None
        self._newest = 0

    def follow(self, newest: int) -> None:
        """A message was added. Whatever goes wrong from here on is no business of whoever added it."""
        if self.is_behind(newest):
            self._follow(newest, _LARGE_BATCH)

    def is_behind(self, newest: int) -> bool:
        """Whether so many messages wait that it is time to take them in."""
        self._newest = max(self._newest, newest)
        if self._indexed_to is None:
            try:
                self._indexed_to = self._state().indexed_to
            except StoreError:
                return False  # whoever searches hears of it
        return newest - self._indexed_to >= BATCH

    def follow_a_little(self) -> bool:
        """Take a few messages in; whether it is worth while to go on."""
        self._follow(self._newest, _SMALL_BATCH)
        return self._newest - (self._indexed_to or 0) >= _SMALL_BATCH

    def _follow(self, newest: int, most: int) -> None:
        try:
            self._indexed_to = self._next(most, patience=0).indexed_to
        except StoreBusy:
            return  # somebody else is writing, and will do it or leave it to the next
        except StoreError:
            self._indexed_to = newest  # heard of by whoever searches; tried again a batch later

    def catch_up(self, advance: Callable[[int], object], *, anew: bool) -> None:
        if anew:
            self._begin_again(self._patience)
        before = 0
        while True:
            state = self._next(_LARGE_BATCH, self._patience)
            advance(state.indexed_to - before)
            before = state.indexed_to
            if state.indexed_to >= state.last_id:
                return

    def _next(self, most: int, patience: float) -> IndexState:
        try:
            return self._index_more(most, patience)
        except IndexDamaged:
            self._begin_again(patience)
            return self._index_more(most, patience)
