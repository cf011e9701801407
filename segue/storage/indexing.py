"""The index follows the messages, a batch at a time, and never stands in their way."""

from collections.abc import Callable

from segue.core.errors import IndexDamaged, StoreBusy, StoreError
from segue.ports.store import IndexState

BATCH = 128
"""As many messages may wait before they are taken in: enough to be cheap, few enough to be looked through."""
_LARGE_BATCH = 512


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

    def follow(self, newest: int) -> None:
        """A message was added. Whatever goes wrong from here on is no business of whoever added it."""
        try:
            if self._indexed_to is None:
                self._indexed_to = self._state().indexed_to
            if newest - self._indexed_to < BATCH:
                return
            self._indexed_to = self._next(patience=0).indexed_to
        except StoreBusy:
            return  # somebody else is writing, and will do it or leave it to the next
        except StoreError:
            self._indexed_to = newest  # heard of by whoever searches; tried again a batch later

    def catch_up(self, advance: Callable[[int], object], *, anew: bool) -> None:
        if anew:
            self._begin_again(self._patience)
        before = 0
        while True:
            state = self._next(self._patience)
            advance(state.indexed_to - before)
            before = state.indexed_to
            if state.indexed_to >= state.last_id:
                return

    def _next(self, patience: float) -> IndexState:
        try:
            return self._index_more(_LARGE_BATCH, patience)
        except IndexDamaged:
            self._begin_again(patience)
            return self._index_more(_LARGE_BATCH, patience)
